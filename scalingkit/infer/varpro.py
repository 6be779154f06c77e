"""Variable projection: the parameters that enter linearly are solved for, given the others.

    min over c of sum_i w_i (y_i - f0_i - sum_k X_ik c_k)**2,   c_k >= 0 where the prior's support is positive

X and f0 come from the curve itself, which is affine in c. The non-negative problem is solved exactly: every subset of
active columns is tried (2**k normal equations, k <= 6), and the best feasible one kept. So starts are needed only over
the non-linear parameters.
"""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
from numpyro.distributions import constraints

from scalingkit.infer.coordinates import Coordinates

MOST_SIGNED = 6


def projected(coordinates: Coordinates) -> tuple[str, ...]:
    """Linear parameters that can be projected out: real or positive support, at most MOST_SIGNED of the latter."""
    params = coordinates.law.params
    free = [k for k in coordinates.law.linear if _kind(params[k].prior.support) == "real"]
    signed = [k for k in coordinates.law.linear if _kind(params[k].prior.support) == "positive"]
    return tuple(k for k in coordinates.law.linear if k in free or k in signed[:MOST_SIGNED])


def project(coordinates: Coordinates, u: jax.Array, x: tuple[jax.Array, ...], y: jax.Array, w: jax.Array) -> jax.Array:
    """u with its linear parameters replaced by the weighted (non-negative) least-squares solution; shape (p,).

    Positive coefficients are kept at or above 1e-3 of the outcome's mean, because u is their logarithm.
    """
    names = projected(coordinates)
    if not names:
        return u
    index = jnp.array([coordinates.names.index(k) for k in names])
    positive = tuple(_kind(coordinates.law.params[k].prior.support) == "positive" for k in names)
    theta = coordinates.natural(u)

    def linear(c: jax.Array) -> jax.Array:
        values = theta | {k: c[i] for i, k in enumerate(names)}
        return coordinates.elementwise(*x, *(values[k] for k in coordinates.names)) + jnp.zeros_like(y)

    one = jnp.ones(len(names))
    f1, X = linear(one), jax.jacfwd(linear)(one)
    c = nonnegative_least_squares(X, y - f1 + X @ one, w, positive)
    size = jnp.sum(w * jnp.abs(y)) / jnp.maximum(jnp.sum(w[:, None] * jnp.abs(X), 0), 1e-300)
    c = jnp.where(jnp.array(positive), jnp.maximum(c, 1e-3 * size), c)
    new = jnp.stack([coordinates.to[k].inv(c[i]) for i, k in enumerate(names)])
    return u.at[index].set(new)


def nonnegative_least_squares(X: jax.Array, y: jax.Array, w: jax.Array, positive: tuple[bool, ...]) -> jax.Array:
    """argmin sum w (y - X c)**2 with c_k >= 0 where ``positive``: exact, by subsets. X (n, k), y (n,), w (n,)."""
    scale = jnp.sqrt(jnp.maximum(jnp.sum(w[:, None] * X**2, 0), 1e-300))
    Z = X / scale[None, :]
    G, b = (Z * w[:, None]).T @ Z, Z.T @ (w * y)
    signed = jnp.array(positive)
    subsets = jnp.array(list(product(*((True, False) if p else (True,) for p in positive))))

    def with_only(on: jax.Array) -> tuple[jax.Array, jax.Array]:
        M = jnp.where(on[:, None] & on[None, :], G, 0.0) + jnp.diag(jnp.where(on, 1e-12, 1.0))
        c = solve(M, jnp.where(on, b, 0.0))
        feasible = jnp.all(jnp.isfinite(c) & ((c >= 0) | ~signed))
        return c, jnp.where(feasible, 2 * (b @ c) - c @ (G @ c), -jnp.inf)

    c, gain = jax.vmap(with_only)(subsets)
    i = jnp.argmax(gain)
    best = jnp.where(jnp.isfinite(gain[i]), c[i], 0.0)
    return best / scale


def solve(H: jax.Array, g: jax.Array) -> jax.Array:
    """H^-1 g by a Cholesky factorisation written out, which vectorises over a batch where LAPACK calls do not.

    Where H is not positive definite the answer is useless, not an error: callers check that a step descends.
    """
    k = H.shape[0]
    L: list[list[jax.Array]] = [[] for _ in range(k)]
    for i in range(k):
        for j in range(i + 1):
            s = H[i, j] - sum((L[i][m] * L[j][m] for m in range(j)), start=jnp.zeros(()))
            L[i].append(jnp.sqrt(jnp.maximum(s, 1e-300)) if i == j else s / L[j][j])
    z: list[jax.Array] = []
    for i in range(k):
        z.append((g[i] - sum((L[i][m] * z[m] for m in range(i)), start=jnp.zeros(()))) / L[i][i])
    out: list[jax.Array] = [jnp.zeros(())] * k
    for i in reversed(range(k)):
        out[i] = (z[i] - sum((L[m][i] * out[m] for m in range(i + 1, k)), start=jnp.zeros(()))) / L[i][i]
    return jnp.stack(out)


def _kind(support: object) -> str:
    low, high = getattr(support, "lower_bound", None), getattr(support, "upper_bound", None)
    if low is not None and high is None:
        return "positive" if float(low) == 0.0 else "other"
    return "real" if support is constraints.real else "other"
