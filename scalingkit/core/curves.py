"""Pieces from which the curves of several laws are made: elementwise, in JAX operations, smooth at their limits."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp


def boxcox(u: Any, p: Any) -> Any:
    """(exp(p u) - 1) / p, which is u at p = 0; value 0 and slope 1 at u = 0 for every p.

    So ``value + slope * boxcox(log(x / x_ref), p)`` is the stretched power b + a x**p, told by its value and its slope
    in log x at x_ref instead of by a and b, which nothing but their product determines when p is small.
    """
    z = p * u
    small = jnp.abs(z) < 1e-4
    series = u * (1 + z / 2 * (1 + z / 3 * (1 + z / 4)))
    return jnp.where(small, series, jnp.expm1(z) / jnp.where(small, 1.0, p))


def farseer(N: Any, D: Any, at: tuple[float, float], G: Any, G_slope: Any, gamma: Any, B: Any, B_slope: Any, beta: Any,
            A: Any, A_slope: Any, alpha: Any) -> Any:  # fmt: skip
    """Farseer's surface told by values and log-slopes at the reference (size, tokens) = ``at``: see laws/farseer.py.

    The data term is formed as one exponential: its coefficient and D**-A(N) alone can leave the range of float64.
    """
    u, log_d = jnp.log(N) - math.log(at[0]), math.log(at[1])
    exponent = A * jnp.exp(A_slope * boxcox(u, alpha))
    log_b = jnp.log(B) + A * log_d + (B_slope + A * A_slope * log_d) * boxcox(u, beta)
    return G * jnp.exp(G_slope * boxcox(u, gamma)) + jnp.exp(log_b - exponent * jnp.log(D))
