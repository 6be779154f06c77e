"""The collapsed route of ``fit``: sample phi, draw the linear coefficients back, weight, resample.

    Kish = (sum w)**2 / (n sum w**2)        khat: shape of the tail of w (Vehtari et al. 2024, Pareto smoothing)

Draws are resampled within their chain by systematic resampling, in order: each draw is kept floor or ceil of n w times,
copies side by side, so that R-hat and ESS see them as the repetitions they are. Above khat = 0.7 the weights
are refused. What is done is said in the answer's attrs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from arviz_stats.base import array_stats

from scalingkit.infer import collapse, geometry, mode, nuts
from scalingkit.infer.collapse import SHARE, Collapsed
from scalingkit.infer.model import Model
from scalingkit.infer.pooling import Nested, Partial, Regressed
from scalingkit.infer.prepare import Data

WORST_K = 0.7
PINNED = 0.5  # sd of a group's value under its own runs, in sds between groups, below which values are sampled


class RouteError(ValueError):
    """The collapsed route does not apply, or what it gives cannot be trusted."""


class Way:
    """What ``fit`` needs of the route: a target of NUTS, its table, and the values of every site of its draws."""

    sampler = (
        "NumPyro NUTS on the marginal of the non-linear parameters; linear coefficients drawn back, weighted, resampled"
    )

    def __init__(self, model: Model, data: Data, top: mode.Mode, seed: int) -> None:
        how = collapse.plan(model)
        if how is None:
            raise RouteError(
                f"law {model.law.name!r} with this pooling and likelihood has no positive linear coefficient of its own in "
                "each group that could be integrated out; use route='nuts'."
            )
        self.model, self.data, self.seed = model, data, seed
        self.table = collapse.laid_out(how, data, top.z)
        self.target = replace(how, loose=pinned(how, self.table, top.z))
        self.efficiency = self.khat = float("nan")

    def starts(self, points: list[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
        return [self.target.start(p, self.table) for p in points]

    def sites(self, chains: nuts.Chains) -> dict[str, np.ndarray]:
        """Every unconstrained site by (chain, draw), resampled. Raises RouteError where khat is above 0.7."""
        c, d = chains.diverging.shape
        flat = {k: v.reshape(c * d, *v.shape[2:]) for k, v in chains.z.items()}
        keys = jax.random.split(jax.random.fold_in(jax.random.key(self.seed), 4), c * d)
        full, log_w = _back(self.target)(keys, flat, self.table)
        weights = self._judge(np.asarray(log_w).reshape(c, d))
        rows = kept(weights, np.random.default_rng([self.seed, 8]))
        return {k: np.asarray(v).reshape(c, d, *v.shape[1:])[np.arange(c)[:, None], rows] for k, v in full.items()}

    def _judge(self, log_w: np.ndarray) -> np.ndarray:
        w = np.where(np.isfinite(log_w), np.exp(log_w - np.nanmax(log_w)), 0.0)
        self.efficiency = float(w.sum() ** 2 / (w.size * (w**2).sum()))
        self.khat = khat(log_w)
        if self.khat > WORST_K:
            raise RouteError(
                f"the weights of the collapsed route have a heavy tail (Pareto k {self.khat:.2f}, above {WORST_K}; "
                f"efficiency {self.efficiency:.2f}): the runs do not pin the linear coefficients. Use route='nuts'."
            )
        return w

    def attrs(self) -> dict[str, Any]:
        return {
            "integrated": ", ".join(self.target.integrated), "efficiency": self.efficiency, "pareto_k": self.khat,
            "by_group_value": ", ".join(self.target.loose),
        }  # fmt: skip


def kept(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Systematic resampling within each chain: (chain, draw) numbers of the draws kept, in order."""
    chains, draws = weights.shape
    share = np.cumsum(weights, 1) / weights.sum(1, keepdims=True)
    at = (rng.uniform(size=(chains, 1)) + np.arange(draws)) / draws
    return np.stack([np.minimum(np.searchsorted(s, a), draws - 1) for s, a in zip(share, at, strict=True)])


def khat(log_w: np.ndarray) -> float:
    """Pareto shape of the upper tail of the weights; below 0.7 they can be trusted."""
    if np.ptp(log_w) < 1e-12:
        return float("-inf")
    against = -np.where(np.isfinite(log_w), log_w, np.min(log_w, where=np.isfinite(log_w), initial=np.inf)).ravel()
    return float(array_stats.psislw(against)[1])  # psislw takes the log of 1 / w


@lru_cache(geometry.KEPT)
def _back(how: Collapsed) -> Any:
    """Compiled (keys, z of many draws, data) -> (every site of the model, log weights)."""
    return jax.jit(
        lambda keys, z, data: jax.lax.map(lambda a: how.back(a[0], a[1], data), (keys, z), batch_size=geometry.BATCH)
    )


def pinned(how: Collapsed, table: Any, at: Any) -> tuple[str, ...]:
    """Pooled quantities that each group's runs pin down far more finely than the groups differ: sampled by their values
    in the groups, others by their standardised effects (values would form a funnel where groups may well be equal).
    Judged by one Newton step of each group's own likelihood from the mode."""
    model = how.model
    names = tuple(
        k
        for k, p in model.pools.items()
        if k in model.law.params
        and k not in how.integrated
        and isinstance(p, Partial | Nested | Regressed)
        and not getattr(p, "centred", False)
        and collapse.own_dim(model, k) == how.dim
    )
    if not names:
        return ()
    by_value = replace(how, loose=names)
    z = {k: jnp.asarray(v) for k, v in by_value.start(at, table).items()}
    sites = [collapse.effect_site(model, k) for k in names]
    directions = [(s, None) for s in sites]
    if SHARE in z:
        directions += [(SHARE, j) for j in range(z[SHARE].shape[-1])]
    slope = jax.jit(jax.grad(lambda q: by_value.own(q, table)))

    def along(site: str, j: int | None) -> dict[str, Any]:
        one = {k: jnp.zeros_like(v) for k, v in z.items()}
        one[site] = jnp.ones_like(z[site]) if j is None else one[site].at[..., j].set(1.0)
        return jax.jvp(slope, (z,), (one,))[1]

    def entry(found: dict[str, Any], site: str, j: int | None) -> np.ndarray:
        return np.asarray(found[site] if j is None else found[site][..., j])

    columns = [along(*d) for d in directions]
    H = np.stack([np.stack([entry(c, *d) for d in directions], -1) for c in columns], -1)  # (cell, a, b)
    H = H + 1e-9 * np.eye(len(directions)) * np.abs(H).max()
    step = np.stack([entry(slope(z), *d) for d in directions], -1)
    with np.errstate(invalid="ignore"):
        sd = np.sqrt(np.diagonal(np.linalg.inv(H), axis1=1, axis2=2))[:, : len(names)]
    alone = np.stack([z[s] for s in sites], -1) - np.linalg.solve(H, step[..., None])[:, : len(names), 0]
    ratio = np.median(np.where(np.isfinite(sd), sd, np.inf), 0) / alone.std(0)
    return tuple(k for k, r in zip(names, ratio, strict=True) if r < PINNED)
