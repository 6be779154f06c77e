"""Mode: the highest point of the posterior in unconstrained space, from several starts, and its curvature.

z* = argmin U(z),   U = -log density with the Jacobians of the transforms
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from scalingkit.infer.nuts import Potential
from scalingkit.infer.prepare import Data

STARTS = 6


class Mode(NamedTuple):
    """z at the mode, by site and flat; U there; how many of the starts reached it; the flat potential."""

    z: dict[str, np.ndarray]
    flat: np.ndarray
    value: float
    reached: int
    starts: int
    unravel: Any


def find(potential: Potential, data: Data, seed: int, starts: int = STARTS) -> Mode:
    """Best of ``starts`` descents (L-BFGS-B, analytic gradients)."""
    first, unravel = ravel_pytree(potential.start)
    gradient = jax.jit(jax.value_and_grad(lambda z: potential.value(unravel(z), data)))

    def f(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = gradient(z)
        value, slope = float(value), np.asarray(slope, dtype=float)
        return (value, slope) if np.isfinite(value) and np.isfinite(slope).all() else (1e12, np.zeros_like(slope))

    rng = np.random.default_rng(seed)
    points = [np.asarray(first)] + [np.asarray(first) * 0.5 + rng.normal(0, 0.7, first.size) for _ in range(starts - 1)]
    ends = [minimize(f, p, jac=True, method="L-BFGS-B", options={"maxiter": 600, "maxcor": 30}) for p in points]
    best = min(ends, key=lambda e: e.fun)
    reached = sum(e.fun < best.fun + 0.05 for e in ends)
    z = {k: np.asarray(v) for k, v in unravel(best.x).items()}
    return Mode(z, best.x, float(best.fun), reached, starts, unravel)


def jittered(mode: Mode, chains: int, seed: int, width: float = 0.1) -> list[dict[str, np.ndarray]]:
    """Starts of the chains: the mode, each shaken by itself so that R-hat means something."""
    rng = np.random.default_rng([seed, 1])
    return [
        {k: np.asarray(v) for k, v in mode.unravel(mode.flat + rng.normal(0, width, mode.flat.size)).items()}
        for _ in range(chains)
    ]
