"""Descent: many small non-linear least-squares problems at once (Levenberg-Marquardt in unconstrained coordinates).

    min over u of sum_i w_i (y_i - f(x_i; u))**2 + sum_k ((u_k - m_k) p_k)**2       p_k = 1/prior sd, or 0

A problem may hold some u_k fixed (profiles) or some w_i at zero (held-out runs, padding): all shapes stay the same, so
that one compiled function serves them all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scalingkit.design.information import Outcome, outcome
from scalingkit.infer.coordinates import Coordinates
from scalingkit.infer.varpro import solve as small_solve

STEPS, STARTS = 50, 12
_LONGEST = 1.0  # no parameter moves by more than this in one step: u is a logarithm


def padded(x: np.ndarray, y: np.ndarray, w: np.ndarray, least: int = 64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x (n, K), y, w with rows of weight zero added up to a power of two: few shapes, so few compilations."""
    more = max(least, 1 << (len(y) - 1).bit_length()) - len(y)
    return np.pad(x, ((0, more), (0, 0)), mode="edge"), np.pad(y, (0, more), mode="edge"), np.pad(w, (0, more))


def best_of(
    c: Coordinates, of: Outcome, starts: np.ndarray, x: np.ndarray, y: np.ndarray, w: np.ndarray, m: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, float]:  # fmt: skip
    """The best (u, objective) over ``starts`` (k, p), with prior mean m and precision p (zeros for none).

    Always STARTS problems of one shape: fewer starts are repeated, more are cut.
    """
    u0 = jnp.asarray(np.resize(starts, (STARTS, starts.shape[1])))
    u, value = _solver(c, of)(u0, x, y, w, jnp.asarray(m), jnp.asarray(p))
    i = int(np.argmin(np.nan_to_num(np.asarray(value), nan=np.inf)))
    return np.asarray(u[i]), float(value[i])


@lru_cache(maxsize=128)
def _solver(c: Coordinates, of: Outcome) -> Any:
    descend = _one(c, of, STEPS)

    def solve(u0: jax.Array, *rest: Any) -> Any:
        return descend(u0, jnp.ones(u0.shape, bool), *rest)

    return jax.jit(jax.vmap(solve, (0, None, None, None, None, None)))


@lru_cache(maxsize=128)
def walker(c: Coordinates, of: Outcome, steps: int = 25) -> Any:
    """Continuation: (u0, k, values, x, y, w) -> objective (problem, step) along fixed values of u_k.

    Out from u0 and back again, each start the last optimum, the better of the two kept: in a flat valley one way alone
    can be left behind. u0 (problem, p), k (problem,), values (problem, step). No prior: the likelihood's profile.
    """
    descend = _one(c, of, steps)

    def walk(u0: jax.Array, k: jax.Array, values: jax.Array, x: Any, y: Any, w: Any) -> Any:
        free = jnp.arange(u0.size) != k
        none = jnp.zeros_like(u0)

        def step(u: jax.Array, value: jax.Array) -> Any:
            found, objective = descend(jnp.where(free, u, value), free, x, y, w, none, none)
            return found, objective

        _, found = jax.lax.scan(step, u0, jnp.concatenate([values, values[::-1]]))
        out, back = jnp.split(found, 2)
        return jnp.minimum(out, back[::-1])

    return jax.jit(jax.vmap(walk, (0, 0, 0, None, None, None)))


def _solve(H: jax.Array, g: jax.Array) -> jax.Array:
    # written out it vectorises over the problems, but takes long to compile where there are many parameters
    return small_solve(H, g) if g.size <= 5 else jnp.linalg.solve(H, g[:, None])[:, 0]


def _one(c: Coordinates, of: Outcome, steps: int) -> Any:
    def residuals(u: jax.Array, x: Any, y: Any, w: Any, m: Any, p: Any) -> jax.Array:
        f = outcome(of, c.curve(u, tuple(x[:, i] for i in range(x.shape[1]))))
        return jnp.concatenate([jnp.sqrt(w) * (y - f), p * (u - m)])

    def descend(u0: Any, free: Any, x: Any, y: Any, w: Any, m: Any, p: Any) -> Any:
        args = (x, y, w, m, p)

        def value(u: jax.Array) -> jax.Array:
            v = jnp.sum(residuals(u, *args) ** 2)
            return jnp.where(jnp.isfinite(v), v, jnp.inf)

        def step(_: Any, state: Any) -> Any:
            u, v, damping = state
            r, J = residuals(u, *args), jax.jacfwd(residuals)(u, *args)
            J = jnp.where(free[None, :], J, 0.0)
            H, g = J.T @ J, J.T @ r
            ridge = damping * jnp.maximum(jnp.diag(H), 1e-10) + jnp.where(free, 0.0, 1.0)
            d = jnp.where(free, jnp.clip(-_solve(H + jnp.diag(ridge), g), -_LONGEST, _LONGEST), 0.0)
            d = jnp.where(jnp.isfinite(d), d, 0.0)
            new = value(u + d)
            better = new < v
            damping = jnp.clip(jnp.where(better, damping * 0.2, damping * 5.0), 1e-12, 1e8)
            return jnp.where(better, u + d, u), jnp.where(better, new, v), damping

        u, v, _ = jax.lax.fori_loop(0, steps, step, (u0, value(u0), jnp.asarray(1e-3)))
        return u, v

    return descend
