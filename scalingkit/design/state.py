"""State: where knowledge stands before a question is asked: a centre, a covariance, draws and the noise.

From a posterior its own draws; from a law and runs a Laplace approximation at the posterior's mode,
    u ~ Normal(mode, (S^-2 + J'WJ/s**2)^-1), the noise s estimated with the mode;
from a design without outcomes the same at given parameter values; from nothing but a law, the prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from scalingkit.design import prior
from scalingkit.design.contraction import laplace
from scalingkit.design.descent import STARTS, best_of
from scalingkit.design.evidence import Evidence, flat
from scalingkit.design.grids import DesignError
from scalingkit.design.information import inputs, pivot_array, pivoted_at, raw, unconstrained
from scalingkit.infer.coordinates import of as coordinates

DRAWS, NOISE = 400, 0.02


@dataclass(frozen=True)
class State:
    """Where one group stands: centre u (p,), covariance (p, p), draws of raw parameters (S, p), noise, pivots (K,)."""

    u: np.ndarray
    cov: np.ndarray
    theta: np.ndarray
    noise: float
    pivots: np.ndarray


def posterior(found: Evidence, pivots: np.ndarray) -> State:
    theta = flat(found, DRAWS)
    if len(theta) < 10:
        raise DesignError(f"{len(theta)} posterior draws are too few for a covariance; give at least 10.")
    u = unconstrained(coordinates(found.law), flat(found), pivots)
    centre = u.mean(0)
    noise = found.noise if found.noise is not None else residual_sd(found, centre, pivots)
    return State(centre, np.cov(u, rowvar=False), theta, noise, pivots)


def at_values(found: Evidence, theta: Mapping[str, float]) -> State:
    """Laplace at given parameter values, for a design that has not been run."""
    c = coordinates(found.law)
    if missing := [k for k in c.names if k not in theta]:
        raise DesignError(f"theta lacks {', '.join(missing)}.")
    pivots = pivot_array(c, inputs(found.law, found.runs))  # type: ignore[arg-type]
    u = unconstrained(c, np.array([[float(theta[k]) for k in c.names]]), pivots)[0]
    return gaussian(found, u, found.noise or NOISE, pivots)


def mode(found: Evidence, pivots: np.ndarray) -> State:
    """Laplace at the posterior's mode, the noise estimated with it; at the law's example where there is no outcome."""
    if found.y is None:
        if not (found.law.published or found.law.example.get("truth")):
            raise DesignError(f"the runs have no {found.law.output!r}, so give theta=... at which to judge the design.")
        return at_values(found, found.law.truth)
    c = coordinates(found.law)
    m, sd = prior.moments(found.law)
    starts = np.concatenate([m[None], prior.draws(found.law, STARTS - 1)])
    noise = found.noise or NOISE
    for _ in range(1 if found.noise else 3):
        best, _ = best_of(c, found.of, starts, *data(found, noise, pivots), m, 1 / sd)
        starts = np.concatenate([best[None], starts[1:]])
        noise = found.noise or residual_sd(found, best, pivots)
    return gaussian(found, best, noise, pivots)


def gaussian(found: Evidence, u: np.ndarray, noise: float, pivots: np.ndarray) -> State:
    c = coordinates(found.law)
    x = inputs(found.law, found.runs)  # type: ignore[arg-type]
    _, sd = prior.moments(found.law)
    J = pivoted_at(c, u[None], x / pivots, found.of)[0] * np.sqrt(found.weight)
    cov = laplace(J, noise, sd)
    some = np.random.default_rng(0).multivariate_normal(u, cov, DRAWS, method="eigh")
    return State(u, cov, raw(c, some, pivots), noise, pivots)


def data(
    found: Evidence, noise: float, pivots: np.ndarray, leave: np.ndarray | None = None, u: np.ndarray | None = None
) -> tuple[Any, Any, Any]:
    """Inputs over their pivots, outcome on the noise's scale, weights. ``leave``: runs of weight zero.

    Under Student-t noise a run's weight is (nu + 1)/(nu + z**2) / noise**2, z its residual at ``u``: outliers count less.
    """
    x = inputs(found.law, found.runs)  # type: ignore[arg-type]
    assert found.y is not None
    y = np.log(found.y) if found.of == "log" else found.y
    w = np.full(len(y), 1 / noise**2)
    if np.isfinite(found.nu) and u is not None:
        z = (y - curve(found, u[None], x, pivots)[0]) / noise
        w *= (found.nu + 1) / (found.nu + z**2)
    return x / pivots, y, w if leave is None else np.where(leave, 0.0, w)


def residual_sd(found: Evidence, u: np.ndarray, pivots: np.ndarray) -> float:
    """sd of the (log) residuals at u, with the degrees of freedom that the parameters took."""
    if found.y is None:
        return NOISE
    f = curve(found, u[None], inputs(found.law, found.runs), pivots)[0]  # type: ignore[arg-type]
    y = np.log(found.y) if found.of == "log" else found.y
    return float(max(np.sqrt(np.sum((y - f) ** 2) / max(len(y) - u.size, 1)), 1e-6))


def curve(found: Evidence, u: np.ndarray, x: np.ndarray, pivots: np.ndarray) -> np.ndarray:
    """The (log) curve (S, n) at u (S, p) and inputs x (n, K)."""
    theta = raw(coordinates(found.law), u, pivots)
    columns = [jnp.asarray(theta[:, None, i]) for i in range(theta.shape[1])]
    f = np.asarray(found.law.curve(*(jnp.asarray(x[None, :, i]) for i in range(x.shape[1])), *columns))
    return np.log(f) if found.of == "log" else f


def from_prior(found: Evidence, pivots: np.ndarray) -> State:
    """The prior itself, where there are neither draws nor runs."""
    c = coordinates(found.law)
    m, sd = prior.moments(found.law)
    some = prior.draws(found.law, DRAWS)
    return State(m, np.diag(sd**2), raw(c, some, pivots), found.noise or NOISE, pivots)
