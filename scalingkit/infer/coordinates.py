"""Coordinates: a law's parameters as points of R^p, where every point is admissible and the axes are comparable.

    theta_k = T_k(u_k)                      T_k: R -> support of the prior (exp for a positive parameter)
    c       = c_pivot * s**e                for a coefficient c on input**-e; s: geometric mean of that input
    f(u)    = curve(x / s, theta(u))        the scales identity of the law: no 1e10**alpha is ever formed

Point fits descend in u. A ridge in raw units (log A against alpha) is nearly orthogonal here.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import biject_to

from scalingkit.core.law import Law
from scalingkit.infer.powers import exponential


class Coordinates:
    """u in R^p for one law. Compared by identity, so that functions compiled for it are reused: see ``of``."""

    def __init__(self, law: Law) -> None:
        self.law = law
        self.names = tuple(law.params)
        self.to = {k: biject_to(p.prior.support) for k, p in law.params.items()}
        self.elementwise = exponential(law.curve)
        self.pivoted = tuple(dict.fromkeys(x for x, _ in law.scales.values()))

    @cached_property
    def prior(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and sd of u under the prior, from 1,000 draws; each (p,). Where starts are looked for."""
        draws = {k: p.prior.sample(jax.random.key(i), (1000,)) for i, (k, p) in enumerate(self.law.params.items())}
        u = np.stack([np.asarray(self.to[k].inv(draws[k])) for k in self.names])
        return u.mean(1), u.std(1)

    def pivots(self, data: dict[str, np.ndarray]) -> dict[str, float]:
        """Geometric mean of each pivoted input, 1 for the others; an input alike to another shares its pivot."""
        return self.law.pivots(data)

    def natural(self, u: jax.Array) -> dict[str, jax.Array]:
        """theta(u) with coefficients at the pivot; u has shape (p,)."""
        return {k: self.to[k](u[i]) for i, k in enumerate(self.names)}

    def curve(self, u: jax.Array, x: tuple[jax.Array, ...]) -> jax.Array:
        """f(u) at inputs ``x`` already divided by their pivots, in the law's order; shape (n,)."""
        return self.elementwise(*x, *(self.natural(u)[k] for k in self.names))

    def raw(self, u: jax.Array, pivots: dict[str, Any]) -> dict[str, jax.Array]:
        """Parameters in the law's own units."""
        theta = self.natural(u)
        for c, (x, e) in self.law.scales.items():
            theta[c] = theta[c] * jnp.exp(jnp.log(pivots[x]) * (theta[e] if isinstance(e, str) else e))
        return theta

    def unconstrained(self, raw: dict[str, float], pivots: dict[str, float]) -> np.ndarray:
        """The point u of parameters in raw units; shape (p,)."""
        theta = {k: float(raw[k]) for k in self.names}
        for c, (x, e) in self.law.scales.items():
            theta[c] = theta[c] * pivots[x] ** -(theta[e] if isinstance(e, str) else e)
        return np.array([float(self.to[k].inv(jnp.asarray(theta[k]))) for k in self.names])


_KNOWN: dict[int, Coordinates] = {}


def of(law: Law) -> Coordinates:
    """The coordinates of ``law``, the same object at every call (so compiled functions are found again)."""
    if id(law) not in _KNOWN:
        _KNOWN[id(law)] = Coordinates(law)
    return _KNOWN[id(law)]
