"""Descent: many small non-linear least-squares problems at once (Levenberg-Marquardt in unconstrained coordinates).

    min over u of sum_i w_i (y_i - f(x_i; u))**2 + sum_k ((u_k - m_k) p_k)**2       p_k = 1/prior sd, or 0

A problem may hold one u_k fixed at a sequence of values (profiles), some runs may have weight zero (held out, padding).
One compiled function per law does all of it, at shapes padded to powers of two: compiling is what costs time here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scalingkit.design.information import Outcome, outcome, power_of_two
from scalingkit.infer.coordinates import Coordinates
from scalingkit.infer.varpro import solve as small_solve

STARTS, VALUES = 12, 9  # how many starts a search has; how many values a walk has
_STEPS = 40
_LONGEST = 1.0  # no parameter moves by more than this in one step: u is a logarithm
_STIFF = 1e5
_SMALL, _PATIENCE = 1e-11, 3  # so small a relative decrease, so many times in a row, ends the descent


def best_of(
    c: Coordinates, of: Outcome, starts: np.ndarray, x: np.ndarray, y: np.ndarray, w: np.ndarray, m: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, float]:  # fmt: skip
    """The best (u, objective) over ``starts`` (k, dim), with prior mean m and precision p (zeros for none)."""
    u, value = _run(c, of, starts, np.full(len(starts), -1), np.zeros((len(starts), VALUES)), x, y, w, m, p)
    i = int(np.argmin(np.nan_to_num(value[:, 0], nan=np.inf)))
    return u[i], float(value[i, 0])


def walk(
    c: Coordinates, of: Outcome, u0: np.ndarray, k: np.ndarray, values: np.ndarray, x: np.ndarray, y: np.ndarray, w: np.ndarray
) -> np.ndarray:  # fmt: skip
    """Continuation: the objective (problem, step) along fixed ``values`` (problem, VALUES) of u_k, k (problem,).

    Out from u0 (problem, dim) and back again, each start the last optimum, the better of the two kept: in a flat valley
    one way alone can be left behind. No prior: this is the likelihood's profile.
    """
    none = np.zeros(u0.shape[1])
    return _run(c, of, u0, k, values, x, y, w, none, none)[1]


def _run(
    c: Coordinates, of: Outcome, u0: np.ndarray, k: np.ndarray, values: np.ndarray, x: np.ndarray, y: np.ndarray, w: np.ndarray,
    m: np.ndarray, p: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(u at the end, objective by value) of every problem; problems and runs padded, the padding cut off again."""
    many, n = len(u0), len(y)
    extra, more = power_of_two(many, 16) - many, power_of_two(n, 64) - n
    rows = ((0, extra), (0, 0))
    u, value = _walker(c, of)(
        np.pad(u0, rows, mode="edge"), np.pad(k, (0, extra), mode="edge"), np.pad(values, rows, mode="edge"),
        np.pad(x, ((0, more), (0, 0)), mode="edge"), np.pad(y, (0, more), mode="edge"), np.pad(w, (0, more)), m, p,
    )  # fmt: skip
    return np.asarray(u)[:many], np.asarray(value)[:many]


@lru_cache(maxsize=128)
def _walker(c: Coordinates, of: Outcome) -> Any:
    descend = _descend(c, of)

    def walk(u0: Any, k: Any, values: Any, x: Any, y: Any, w: Any, m: Any, p: Any) -> Any:
        free = jnp.arange(u0.size) != k

        def step(u: jax.Array, value: jax.Array) -> Any:
            return descend(jnp.where(free, u, value), free, x, y, w, m, p)

        end, found = jax.lax.scan(step, u0, jnp.concatenate([values, values[::-1]]))
        out, back = jnp.split(found, 2)
        return end, jnp.minimum(out, back[::-1])

    return jax.jit(jax.vmap(walk, (0, 0, 0, None, None, None, None, None)))


def _descend(c: Coordinates, of: Outcome) -> Any:
    """(u, objective) at the end of one descent; u_k stays where ``free`` is False."""

    def residuals(u: jax.Array, x: Any, y: Any, w: Any, m: Any, p: Any) -> jax.Array:
        f = outcome(of, c.curve(u, tuple(x[:, i] for i in range(x.shape[1]))))
        return jnp.concatenate([jnp.sqrt(w) * (y - f), p * (u - m)])

    def descend(u0: Any, free: Any, *args: Any) -> Any:
        def value(u: jax.Array) -> jax.Array:
            v = jnp.sum(residuals(u, *args) ** 2)
            return jnp.where(jnp.isfinite(v), v, jnp.inf)

        def step(state: Any) -> Any:
            i, u, v, damping, quiet = state
            r, J = residuals(u, *args), jax.jacfwd(residuals)(u, *args)
            J = jnp.where(free[None, :], J, 0.0)
            H, g = J.T @ J, J.T @ r
            ridge = damping * jnp.maximum(jnp.diag(H), 1e-10) + jnp.where(free, 0.0, 1.0)
            d = jnp.where(free, jnp.clip(-_solve(H + jnp.diag(ridge), g), -_LONGEST, _LONGEST), 0.0)
            d = jnp.where(jnp.isfinite(d), d, 0.0)
            new = value(u + d)
            better = new < v
            damping = jnp.clip(jnp.where(better, damping * 0.2, damping * 5.0), 1e-12, 1e8)
            # a refused step says nothing until the damping has made it tiny
            idle = jnp.where(better, v - new <= _SMALL * (1.0 + new), damping > _STIFF)
            quiet = jnp.where(idle, quiet + 1, jnp.where(better, 0, quiet))
            return i + 1, jnp.where(better, u + d, u), jnp.where(better, new, v), damping, quiet

        def going(state: Any) -> jax.Array:
            return (state[0] < _STEPS) & (state[4] < _PATIENCE)

        start = (jnp.asarray(0), u0, value(u0), jnp.asarray(1e-3), jnp.asarray(0))
        _, u, v, _, _ = jax.lax.while_loop(going, step, start)
        return u, v

    return descend


def _solve(H: jax.Array, g: jax.Array) -> jax.Array:
    # written out it vectorises over the problems, but takes long to compile where there are many parameters
    return small_solve(H, g) if g.size <= 5 else jnp.linalg.solve(H, g[:, None])[:, 0]
