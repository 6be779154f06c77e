"""Subsets: one law fitted to many subsets of one table at once, predicting every run of it.

    u_s = argmin sum_i keep_si rho_delta(log y_i - log f(x_i; u))        for each subset s

"float64"  our descent (see pointfit), all subsets and starts in one program.
"float32"  what a script in single precision does: SciPy's L-BFGS-B at its default tolerances, raw unpivoted
           parameters, objective and gradient computed in float32. It is kept here, away from everything that says
           what is identified: those refuse float32.
"script64" the same script in float64, so that what precision does is not confused with what the optimiser does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import minimize
from scipy.special import ndtri
from scipy.stats import qmc

from scalingkit.core.law import Law
from scalingkit.core.names import RUN
from scalingkit.core.precision import require_x64
from scalingkit.infer import robust
from scalingkit.infer.coordinates import Coordinates, of
from scalingkit.infer.pointfit import _Problem, _table

Arithmetic = Literal["float64", "float32", "script64"]


def subset_fits(
    law: Law, runs: xr.Dataset, keep: np.ndarray, *, method: str = "huber", delta: float = 1e-3, starts: int = 8,
    seed: int = 0, arithmetic: Arithmetic = "float64",
) -> xr.Dataset:  # fmt: skip
    """Fit ``law`` to each row of ``keep`` (subset, run); method "huber" or "lsq-log", on log residuals.

    Dims subset, run. ``objective`` (subset), in that arithmetic; ``log_fitted`` (subset, run): log f at every run of
    the table, -inf to inf or NaN where the fit ran away. Raises RunsError for an unusable table.
    """
    require_x64("subset fits")
    if method not in ("huber", "lsq-log"):
        raise ValueError(f"method {method!r} is not known here: it is 'huber' or 'lsq-log'.")
    delta = float(delta) if method == "huber" else float("inf")
    problem = _Problem(of(law), True, delta, _table(law, runs, True, None))
    keep = np.asarray(keep, bool)
    begin = _starts(problem, starts, seed)
    if arithmetic == "float64":
        objective, log_f = _descents(problem, keep, begin)
    else:
        dtype = np.float32 if arithmetic == "float32" else np.float64
        objective, log_f = _script(problem, keep, begin, delta, dtype)
    about = {"law": law.name, "method": method, "arithmetic": arithmetic, "starts": starts, "seed": seed}
    values = {"objective": ("subset", objective), "log_fitted": (("subset", RUN), log_f)}
    return xr.Dataset(values, coords={RUN: problem.table.labels}, attrs=about)


def _starts(problem: _Problem, count: int, seed: int) -> np.ndarray:
    """The prior's centre and quasi-random points about it, shape (count, p)."""
    mean, sd = problem.coordinates.prior
    points = qmc.Halton(mean.size, rng=np.random.default_rng(seed)).random(max(count - 1, 1))[: count - 1]
    return np.vstack([mean, mean + sd * ndtri(np.clip(points, 1e-6, 1 - 1e-6))])


def _descents(problem: _Problem, keep: np.ndarray, begin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every subset from every start; the best of each. One program."""
    m, k = len(keep), len(begin)
    w = np.repeat(problem.pad(keep.astype(float), zero=True), k, axis=0)
    end = problem.descend(np.tile(begin, (m, 1)), w=w, project=True)
    value = np.where(np.isfinite(end.objective), end.objective, np.inf).reshape(m, k)
    best = value.argmin(1)
    u = end.u.reshape(m, k, -1)[np.arange(m), best]
    log_f = np.asarray(_outcomes(problem.coordinates)(u, problem.target.x))[:, : problem.n]
    return value.min(1), log_f


@lru_cache(maxsize=64)
def _outcomes(coordinates: Coordinates) -> Any:
    return jax.jit(jax.vmap(lambda u, x: robust.outcome(coordinates, True, u, x), (0, None)))


@lru_cache(maxsize=64)
def _raw_objective(coordinates: Coordinates) -> Any:
    """(value and gradient) in raw parameters on unscaled inputs, in the dtype of what it is given."""

    def value(u: jax.Array, x: tuple[jax.Array, ...], ty: jax.Array, w: jax.Array, delta: jax.Array) -> jax.Array:
        return robust.objective(coordinates, True, u, robust.Target(x, ty, w, delta))

    return jax.jit(jax.value_and_grad(value))


def _script(
    problem: _Problem, keep: np.ndarray, begin: np.ndarray, delta: float, dtype: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Subset by subset, start by start, as a script does it."""
    c = problem.coordinates
    x = tuple(jnp.asarray(problem.pad(problem.table.inputs[k]), dtype) for k in c.law.inputs)
    ty, limit = jnp.asarray(problem.target.ty, dtype), jnp.asarray(delta, dtype)
    raw = problem.raw(begin)
    ones = dict.fromkeys(problem.pivots, 1.0)
    points = [c.unconstrained({k: v[i] for k, v in raw.items()}, ones) for i in range(len(begin))]
    both, outcome = _raw_objective(c), _outcomes(c)
    values, ends = np.full(len(keep), np.inf), np.tile(points[0], (len(keep), 1))
    for i, row in enumerate(problem.pad(keep.astype(float), zero=True)):
        w = jnp.asarray(row, dtype)

        def fun(u: np.ndarray, w: jax.Array = w) -> tuple[float, np.ndarray]:
            f, g = both(jnp.asarray(u, dtype), x, ty, w, limit)
            if f.dtype != dtype or g.dtype != dtype:
                raise TypeError(f"the objective of law {c.law.name!r} left {np.dtype(dtype).name}: it gave {f.dtype}.")
            return (float(f), np.asarray(g, float)) if np.isfinite(f) else (1e10, np.zeros(len(u)))

        for start in points:
            found = minimize(fun, start, jac=True, method="L-BFGS-B")
            if found.fun < values[i]:
                values[i], ends[i] = found.fun, found.x
    log_f = np.asarray(outcome(jnp.asarray(ends, dtype), x), float)[:, : problem.n]
    return values, log_f
