"""Preposterior: the variance a target would have after more runs, averaged over what the parameters may be.

    V(X) = mean over draws s of  g_s' (P_s + sum over x in X of w j_s(x) j_s(x)')^-1 g_s

P_s: prior precision and information of the runs so far, both at draw s; j_s: the Jacobian of a new run; g_s: the
target's gradient; w = weight / noise**2. No data need be imagined: to this order the posterior variance depends on
where the runs are, not on what they show; what they may show enters through the draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scalingkit.core.law import Law
from scalingkit.design import prior
from scalingkit.design.evidence import Evidence
from scalingkit.design.grids import DesignError
from scalingkit.design.information import Outcome, inputs, outcome, pivoted_at, unconstrained
from scalingkit.design.state import State
from scalingkit.design.targets import Target
from scalingkit.infer.coordinates import Coordinates
from scalingkit.infer.coordinates import of as coordinates


@dataclass(frozen=True)
class Preposterior:
    """u (S, p), precision (S, p, p), gradients (S, p); pivots (K,), weight of one run; ``lost``: share of unusable draws."""

    law: Law
    of: Outcome
    u: np.ndarray
    precision: np.ndarray
    g: np.ndarray
    pivots: np.ndarray
    weight: float
    lost: float

    def rows(self, x: np.ndarray) -> np.ndarray:
        """sqrt(w) j (S, m, p) of runs at inputs x (m, K)."""
        J = pivoted_at(coordinates(self.law), self.u, x / self.pivots, self.of)
        return np.where(np.isfinite(J), J, 0.0) * np.sqrt(self.weight)

    def variance(self, x: np.ndarray) -> float:
        """V after runs at x (m, K)."""
        return float(self.variances(x[None])[0])

    def variances(self, x: np.ndarray) -> np.ndarray:
        """V (b,) after each of b designs x (b, m, K)."""
        b, m, k = x.shape
        R = self.rows(x.reshape(-1, k)).reshape(len(self.u), b, m, -1)
        P = self.precision[:, None] + np.swapaxes(R, -1, -2) @ R
        solved = np.linalg.solve(P, np.broadcast_to(self.g[:, None, :, None], (*P.shape[:2], self.g.shape[1], 1)))
        return np.mean(np.sum(self.g[:, None] * solved[..., 0], -1), 0)

    def now(self) -> float:
        """V without any new run."""
        solved = np.linalg.solve(self.precision, self.g[..., None])[..., 0]
        return float(np.mean(np.sum(self.g * solved, -1)))

    def slope(self, log_x: np.ndarray) -> tuple[float, np.ndarray]:
        """log V and its gradient in the log inputs (m, K)."""
        f = _log_variance(coordinates(self.law), self.of)
        m = len(log_x)
        # padded with runs of weight zero: one compiled function for designs of up to 8 runs, one for up to 16, ...
        at = np.pad(log_x - np.log(self.pivots), ((0, -m % 8), (0, 0)), mode="edge")
        weights = np.where(np.arange(len(at)) < m, self.weight, 0.0)
        value, gradient = f(*map(jnp.asarray, (at, self.u, self.precision, self.g, weights)))
        return float(value), np.asarray(gradient)[:m]


def preposterior(found: Evidence, state: State, goal: Target, draws: int) -> Preposterior:
    """From a state: every k-th of its draws, each with the runs' information and the prior at that draw.

    Raises DesignError where the target has no gradient at more than half of the draws (no interior optimum).
    """
    c = coordinates(found.law)
    theta = state.theta[:: max(1, len(state.theta) // draws)][:draws]
    u = unconstrained(c, theta, state.pivots)
    g = goal.gradient(found.law, u, state.pivots, found.of)
    fine = np.all(np.isfinite(g), 1) & np.all(np.isfinite(u), 1)
    if fine.mean() < 0.5:
        raise DesignError(
            f"{goal} does not exist at {1 - fine.mean():.0%} of the draws, so no design can be judged by it."
        )
    # the usable draws again in place of the others, so that their number (and the compiled shape) stays
    u, g = np.resize(u[fine], u.shape), np.resize(g[fine], g.shape)
    _, sd = prior.moments(found.law)
    weight = found.weight / state.noise**2
    precision = np.broadcast_to(np.diag(1 / sd**2), (len(u), sd.size, sd.size))
    if found.runs is not None:
        J = pivoted_at(c, u, inputs(found.law, found.runs) / state.pivots, found.of)
        precision = precision + weight * np.swapaxes(J, -1, -2) @ J
    return Preposterior(found.law, found.of, u, precision, g, state.pivots, weight, float(1 - fine.mean()))


@lru_cache(maxsize=64)
def _log_variance(c: Coordinates, of: Outcome) -> Any:
    def curve(u: jax.Array, x: jax.Array) -> jax.Array:
        return outcome(of, c.curve(u, tuple(x)))

    rows = jax.vmap(jax.vmap(jax.jacfwd(curve), (None, 0)), (0, None))

    def value(log_x: jax.Array, u: jax.Array, P: jax.Array, g: jax.Array, w: jax.Array) -> jax.Array:
        R = rows(u, jnp.exp(log_x)) * jnp.sqrt(w)[None, :, None]
        solved = jnp.linalg.solve(P + jnp.swapaxes(R, -1, -2) @ R, g[..., None])[..., 0]
        return jnp.log(jnp.mean(jnp.sum(g * solved, -1)))

    return jax.jit(jax.value_and_grad(value))
