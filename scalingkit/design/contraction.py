"""Contraction: how much narrower the posterior is than the prior, per parameter and per direction.

    parameter k     1 - Var_post(u_k) / Var_prior(u_k)
    direction v     1 - lambda,   lambda, v: eigenvalue and vector of S^-1 Cov_post S^-1,  S = diag(prior sd)

1: the data say it all; 0: the prior does. Before any fit the posterior covariance is the Laplace one,
(S^-2 + J'WJ)^-1. Pooling over groups: u_kg = S_k z_k + tau_k z_kg, all z ~ N(0, 1), so tau 0 is one value for all and
tau inf a value for each. Groups that share D = k N pile information on the directions that were known already; the
free one keeps its prior whatever their number (multiplying their posteriors, prior included, would hide that).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.law import Law
from scalingkit.core.names import PARAM, RUN
from scalingkit.core.precision import require_x64
from scalingkit.design import prior
from scalingkit.design.grids import DesignError
from scalingkit.design.information import (
    Outcome,
    inputs,
    jacobian_array,
    parameters,
    pivot_array,
    pivoted_at,
    unconstrained,
)
from scalingkit.infer.coordinates import of as coordinates

DIRECTION = "direction"


def laplace(J: np.ndarray, noise: float, prior_sd: np.ndarray) -> np.ndarray:
    """(S^-2 + J'J / noise**2)^-1 for J (..., n, p) in the prior's coordinates; shape (..., p, p)."""
    Z = J * (prior_sd / noise)
    F = np.swapaxes(Z, -1, -2) @ Z
    inverse = np.linalg.inv(np.eye(F.shape[-1]) + F)
    return prior_sd[:, None] * inverse * prior_sd


def per_parameter(cov: np.ndarray, prior_sd: np.ndarray) -> np.ndarray:
    """1 - Var_post / Var_prior, shape (..., p). Negative where the posterior is wider."""
    return 1 - np.diagonal(cov, axis1=-2, axis2=-1) / prior_sd**2


def directions(cov: np.ndarray, prior_sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Contractions (p,), weakest first, and the directions (p, p) as rows, in units of the prior sd."""
    values, vectors = np.linalg.eigh(cov / np.outer(prior_sd, prior_sd))
    order = np.argsort(-values)
    return 1 - values[order], vectors.T[order]


def contraction(
    law: Law, theta: Any, runs: xr.Dataset, noise: float, *, of: Outcome = "log",
    pool: Mapping[str, tuple[str, float]] | None = None,
) -> xr.Dataset:  # fmt: skip
    """Contraction to expect from ``runs`` at parameters ``theta``, before or without any fit.

    ``noise``: sd of the (log) outcome. ``pool``: parameter -> (group column of the runs, tau), tau the sd between
    groups in u; parameters not named are shared. Where everything pooled is given per group, ``theta`` may hold
    DataArrays along the group's dim.

    Returns ``contraction`` (param), ``direction_contraction`` (direction, weakest first) and ``vector`` (direction,
    param) of the population, in units of the prior sd; a parameter with tau inf has no population and is averaged out.
    """
    require_x64("a contraction")
    names = list(law.params)
    _, sd = prior.moments(law)
    J = _grouped(law, theta, runs, of, pool or {}) * (1 / noise)
    p = len(names)
    shared = [i for i, k in enumerate(names) if not np.isinf((pool or {}).get(k, ("", 0.0))[1])]
    # J is in units where every z has prior variance 1: the population of each parameter first, then the groups' z
    inverse = np.linalg.inv(np.eye(J.shape[1]) + J.T @ J)
    population = inverse[np.ix_(shared, shared)]
    values, vectors = directions(population, np.ones(len(shared)))
    full = np.zeros((len(shared), p))
    full[:, shared] = vectors
    each = np.full(p, np.nan)
    each[shared] = per_parameter(population, np.ones(len(shared)))
    coords = {PARAM: names, "prior_sd": (PARAM, sd)}
    return xr.Dataset(
        {
            "contraction": (PARAM, each),
            "direction_contraction": (DIRECTION, values),
            "vector": ((DIRECTION, PARAM), full),
        },
        coords,
    )


def _grouped(law: Law, theta: Any, runs: xr.Dataset, of: Outcome, pool: Mapping[str, tuple[str, float]]) -> np.ndarray:
    """Columns of d f / d z: one per parameter's population, then one per pooled parameter and group."""
    names = list(law.params)
    if unknown := [k for k in pool if k not in names]:
        raise DesignError(f"pool names {', '.join(unknown)}, but law {law.name!r} has {', '.join(names)}.")
    if absent := sorted({d for d, _ in pool.values() if d not in runs.coords}):
        raise DesignError(f"the runs have no group column {', '.join(absent)} to pool over.")
    _, sd = prior.moments(law)
    J = _jacobian_by_run(law, theta, runs, of)
    population = [
        np.zeros(len(J)) if np.isinf(pool.get(k, ("", 0.0))[1]) else J[:, i] * sd[i] for i, k in enumerate(names)
    ]
    columns = list(population)
    for k, (dim, tau) in pool.items():
        i = names.index(k)
        labels = runs[dim].values
        step = sd[i] if np.isinf(tau) else tau
        columns += [np.where(labels == g, J[:, i] * step, 0.0) for g in np.unique(labels) if step > 0]
    return np.stack(columns, -1)


def _jacobian_by_run(law: Law, theta: Any, runs: xr.Dataset, of: Outcome) -> np.ndarray:
    """J (n, p) in pivoted coordinates, every run at its own group's parameters."""
    x, c = inputs(law, runs), coordinates(law)
    pivots = pivot_array(c, x)
    values, dims, labels = parameters(law, theta)
    if not dims:
        return jacobian_array(law, values[None], x, "pivoted", of)[0]
    if len(dims) != 1 or dims[0] not in runs.coords:
        raise DesignError(f"theta has dims {dims}; give numbers, or one value per label of a group column of the runs.")
    out = np.empty((runs.sizes[RUN], len(c.names)))
    for g, row in zip(labels[dims[0]], values, strict=True):
        at = runs[dims[0]].values == g
        out[at] = pivoted_at(c, unconstrained(c, row[None], pivots), x[at] / pivots, of)[0]
    return out
