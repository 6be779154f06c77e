"""Replicate: many simulated tables of one design, each fitted: what calibration and recovery are judged on.

    theta_j ~ prior (or a fixed truth),   y_j ~ p(y | theta_j, design),   draws_j ~ p(theta | y_j)      j = 1 .. n

The sampler is compiled once, with the data as arguments. Chains start at the truth, which is allowed because they are
judged on what they do after warm-up, and spares a search for the mode.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpyro import handlers
from numpyro.infer import log_likelihood
from numpyro.infer.util import unconstrain_fn

from scalingkit.core.names import RUN
from scalingkit.core.precision import require_x64
from scalingkit.infer import nuts
from scalingkit.infer.likelihoods import DataError
from scalingkit.infer.model import Model, as_model
from scalingkit.infer.prepare import Data, prepare

Draws = Mapping[str, np.ndarray]
Sampler = Callable[[Model, Data, Draws, int], Draws]
LOG_LIKELIHOOD = "log likelihood"  # a quantity that depends on the data: a sampler that ignores them fails on it


def replicate(
    model: Any, design: xr.Dataset, n: int = 200, *, seed: int = 0, fitted: Any = None,
    truth: Mapping[str, float] | None = None, sampler: Sampler | None = None, draws: int = 400, tune: int = 400,
    progress: Callable[[int, int], Any] | None = None,
) -> xr.Dataset:  # fmt: skip
    """``n`` tables simulated from ``model`` at ``design``, each fitted by ``fitted`` (default: the same model).

    truth     values of the parameters by name, raw coefficients included ("A"); what is not named comes from the prior
    sampler   function (model, data, start, seed) -> {site: draws}; default one NUTS chain
    progress  called with (done, n)

    Dataset: ``truth`` (simulation, param), ``draws`` (simulation, param, draw), ``diverging`` (simulation). Group
    parameters appear as "alpha[c4]". Interrupted, it holds what was finished. Raises DataError for a bad design.
    """
    require_x64("calibration")
    model = as_model(model, None, None)
    fitted = model if fitted is None else as_model(fitted, None, None)
    if n < 1:
        raise ValueError(f"n = {n}: at least one table must be simulated.")
    made = _simulate(model, design, n, seed, truth or {})
    table = prepare(fitted, design.assign({fitted.outcome: (RUN, made[model.outcome][0])}))
    one = partial(_one, fitted, sampler or Nuts(tune, draws), table, made, _judged(fitted, made), seed)
    done = []
    try:
        for j, result in enumerate(_side_by_side(one, n)):
            done.append(result)
            if progress:
                progress(j + 1, n)
    except KeyboardInterrupt:
        if not done:
            raise
    truths, values, bad = (np.stack(part) for part in zip(*done, strict=True))
    out = xr.Dataset(
        {
            "truth": (("simulation", "param"), truths),
            "draws": (("simulation", "param", "draw"), values),
            "diverging": ("simulation", bad),
        },
        coords={"param": _labels(fitted, table, made)},
    )
    out.attrs = {"law": model.law.name, "simulations": len(done), "seed": seed, "fixed_truth": int(bool(truth))}
    return out


class Nuts:
    """One NUTS chain, ``tune`` and ``draws`` long."""

    def __init__(self, tune: int, draws: int, target_accept: float = 0.9) -> None:
        self.settings = nuts.Settings(tune, draws, target_accept)

    def __call__(self, model: Model, data: Data, start: Draws, seed: int) -> dict[str, np.ndarray]:
        z = _unconstrain(model)(dict(start), data)
        end = nuts.chain(model, self.settings)(jax.random.key(seed), z, data)
        values = nuts.natural(model, {k: np.asarray(v)[None] for k, v in end[0].items()}, data)
        return {k: v[0] for k, v in values.items()} | {"diverging": np.asarray(end[1])}


def _side_by_side(one: Callable[[int], Any], n: int) -> Iterator[Any]:
    """Results in order. The first runs alone: it compiles, and the others find what it made."""
    yield one(0)
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        yield from pool.map(one, range(1, n))
    finally:  # interrupted: what has not begun is not begun
        pool.shutdown(cancel_futures=True)


def _one(
    model: Model, sampler: Sampler, table: Data, made: Draws, names: list[str], seed: int, j: int
) -> tuple[np.ndarray, np.ndarray, np.float64]:
    """Truth (param,), draws (param, draw) and share of divergent draws of table ``j``."""
    data = replace(table, y=np.asarray(made[model.outcome][j]))
    here = {k: v[j] for k, v in made.items()}
    fresh = _prior(model)(jax.random.key(seed + 1 + j), data)
    start = {k: here[k] if k in here and np.shape(here[k]) == np.shape(v) else np.asarray(v) for k, v in fresh.items()}
    found = dict(sampler(model, data, start, seed + 1 + j))
    bad = np.float64(np.mean(found.pop("diverging", 0.0)))
    size = len(next(iter(found.values())))
    truth = [np.ravel(here[k]) for k in names]
    draws = [np.reshape(found[k], (size, -1)).T for k in names]
    if set(fresh) <= set(here):
        both = {k: np.concatenate([here[k][None], found[k]]) for k in fresh}
        total = np.asarray(_log_likelihood(model)(both, data))
        truth.append(total[:1])
        draws.append(total[None, 1:])
    return np.concatenate(truth), np.concatenate(draws), bad


def _simulate(model: Model, design: xr.Dataset, n: int, seed: int, truth: Mapping[str, float]) -> dict[str, np.ndarray]:
    """Every site and the outcome, (simulation, ...)."""
    data = prepare(model, design, observed=False)
    fixed = _at_pivot(model, data, truth)

    def draw(key: jax.Array) -> dict[str, jax.Array]:
        held = handlers.substitute(model, data=fixed)
        trace = handlers.trace(handlers.seed(held, key)).get_trace(data, observed=False)
        if unknown := set(fixed) - {k for k, s in trace.items() if s["type"] == "sample"}:
            raise DataError(f"truth names {', '.join(sorted(unknown))}, which the model does not sample.")
        return {k: s["value"] for k, s in trace.items() if s["type"] in ("sample", "deterministic")}

    made = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(seed), n))
    return {k: np.asarray(v) for k, v in made.items()}


def _at_pivot(model: Model, data: Data, truth: Mapping[str, float]) -> dict[str, jax.Array]:
    """Values by site: raw coefficients are brought to the pivot."""
    out = {}
    for k, v in truth.items():
        if k in model.law.scales:
            x, e = model.law.scales[k]
            if isinstance(e, str) and e not in truth:
                raise DataError(f"truth gives {k!r} without its exponent {e!r}: give both.")
            v = v * float(np.exp(-(truth[e] if isinstance(e, str) else e) * data.log_pivots[x]))
        out[model.site(k)] = jnp.asarray(float(v))
    return out


def _judged(model: Model, made: Draws) -> list[str]:
    """Quantities that both models have: the law's parameters in raw units, groups, spreads, noise."""
    skip = {model.outcome, *model.hidden, *(model.site(c) for c in model.law.scales)}
    have = [k for k in made if k not in skip]
    first = [k for k in model.law.params if k in have]
    known = {*model.law.params, *model.likelihood.nuisance()}
    group = [k for k in have if any(k.startswith((f"{p}_", f"{model.site(p)}_")) for p in known)]
    return list(dict.fromkeys([*first, *(k for k in have if k in known), *sorted(group)]))


def _labels(model: Model, table: Data, made: Draws) -> list[str]:
    """ "beta", "alpha[c4]", ..., and the log likelihood where both models have the same sites."""
    out = []
    for k in _judged(model, made):
        groups = [table.meta.labels[d] for d in model.site_dims.get(k, ())]
        out += [f"{k}[{', '.join(g)}]" for g in product(*groups)] if groups else [k]
    sites = set(_prior(model)(jax.random.key(0), table))
    return [*out, LOG_LIKELIHOOD] if sites <= set(made) else out


@lru_cache(maxsize=32)
def _prior(model: Model) -> Callable[..., dict[str, jax.Array]]:
    """key, data -> one prior draw of the sampled sites."""

    def draw(key: jax.Array, data: Data) -> dict[str, jax.Array]:
        trace = handlers.trace(handlers.seed(model, key)).get_trace(data)
        return {k: s["value"] for k, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}

    return jax.jit(draw)


@lru_cache(maxsize=32)
def _unconstrain(model: Model) -> Callable[..., dict[str, jax.Array]]:
    return jax.jit(lambda values, data: unconstrain_fn(model, (data,), {}, values))


@lru_cache(maxsize=32)
def _log_likelihood(model: Model) -> Callable[..., jax.Array]:
    """sites (draw, ...), data -> log likelihood (draw,)."""

    def total(values: dict[str, jax.Array], data: Data) -> jax.Array:
        return log_likelihood(model, values, data, batch_ndims=1, parallel=True)[model.outcome].sum(-1)

    return jax.jit(total)
