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
from scalingkit.infer.varpro import solve as cholesky_solve

STEPS = 50
_LONGEST = 1.0  # no parameter moves by more than this in one step: u is a logarithm


def padded(x: np.ndarray, y: np.ndarray, w: np.ndarray, to: int = 32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x (n, K), y, w with rows of weight zero added up to a multiple of ``to``: fewer shapes, fewer compilations."""
    more = -len(y) % to
    return np.pad(x, ((0, more), (0, 0)), mode="edge"), np.pad(y, (0, more), mode="edge"), np.pad(w, (0, more))


@lru_cache(maxsize=128)
def solver(c: Coordinates, of: Outcome, steps: int = STEPS) -> Any:
    """(u0, free, x, y, w, m, p) -> (u, objective); u0 and free have a leading problem dim, and so does w."""
    return jax.jit(jax.vmap(_one(c, of, steps), (0, 0, None, None, 0, None, None)))


@lru_cache(maxsize=128)
def walker(c: Coordinates, of: Outcome, steps: int = 25) -> Any:
    """Continuation: (u0, k, offsets, x, y, w) -> (u, objective) along fixed values of u_k, each start the last optimum.

    u0, k and offsets (problem, step) have a leading problem dim. No prior: this is the likelihood's profile.
    """
    descend = _one(c, of, steps)

    def walk(u0: jax.Array, k: jax.Array, offsets: jax.Array, x: Any, y: Any, w: Any) -> Any:
        free = jnp.arange(u0.size) != k
        none = jnp.zeros_like(u0)

        def step(u: jax.Array, offset: jax.Array) -> Any:
            at = jnp.where(free, u, u0 + offset)
            found, value = descend(at, free, x, y, w, none, none)
            return found, (found, value)

        return jax.lax.scan(step, u0, offsets)[1]

    return jax.jit(jax.vmap(walk, (0, 0, 0, None, None, None)))


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
            d = jnp.where(free, jnp.clip(-cholesky_solve(H + jnp.diag(ridge), g), -_LONGEST, _LONGEST), 0.0)
            d = jnp.where(jnp.isfinite(d), d, 0.0)
            new = value(u + d)
            better = new < v
            damping = jnp.clip(jnp.where(better, damping * 0.2, damping * 5.0), 1e-12, 1e8)
            return jnp.where(better, u + d, u), jnp.where(better, new, v), damping

        u, v, _ = jax.lax.fori_loop(0, steps, step, (u0, value(u0), jnp.asarray(1e-3)))
        return u, v

    return descend
