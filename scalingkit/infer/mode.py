"""Mode: the highest point of the posterior in unconstrained space, from several starts, and its curvature.

z* = argmin U(z),   U = -log density with the Jacobians of the transforms
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.optimize import minimize

from scalingkit.infer.nuts import Potential
from scalingkit.infer.prepare import Data

STARTS = 6
NEAR = 3.0  # a mode that much lower in log density may still hold mass


OPTIONS = {"maxiter": 600, "gtol": 1e-4}
DENSE = 300  # parameters up to which the p x p inverse Hessian of BFGS costs less than L-BFGS-B's bookkeeping


class Unravel:
    """Flat vector to sites by name, and back (``flat``); NumPy and JAX arrays alike."""

    def __init__(self, point: Mapping[str, np.ndarray]) -> None:
        self.shapes = {k: np.shape(point[k]) for k in sorted(point)}

    def __call__(self, z: Any) -> dict[str, Any]:
        out, at = {}, 0
        for k, shape in self.shapes.items():
            size = math.prod(shape)
            out[k] = z[at : at + size].reshape(shape)
            at += size
        return out

    def flat(self, point: Mapping[str, Any]) -> np.ndarray:
        return np.concatenate([np.ravel(np.asarray(point[k], dtype=float)) for k in self.shapes])


class Mode(NamedTuple):
    """z at the mode, by site and flat; U there; how many of the starts reached it; flat to sites; all
    ends of descents with U less than NEAR above the best, the best first."""

    z: dict[str, np.ndarray]
    flat: np.ndarray
    value: float
    reached: int
    starts: int
    unravel: Unravel
    tops: list[np.ndarray]


def find(potential: Potential, data: Data, seed: int, starts: int = STARTS) -> Mode:
    """Best of ``starts`` descents from points of the prior (BFGS, analytic gradients)."""
    points = potential.starts(starts, seed)
    unravel = Unravel(points[0])
    data = jax.device_put(data)

    def f(z: np.ndarray) -> tuple[float, np.ndarray]:
        found, by_site = potential.slope(unravel(z), data)
        value, slope = float(found), unravel.flat(by_site)
        return (value, slope) if np.isfinite(value) and np.isfinite(slope).all() else (1e12, np.zeros_like(slope))

    method = "BFGS" if len(unravel.flat(points[0])) <= DENSE else "L-BFGS-B"
    ends = [minimize(f, unravel.flat(p), jac=True, method=method, options=OPTIONS) for p in points]
    ends.sort(key=lambda e: e.fun)
    best = ends[0]
    tops = [e.x for e in ends if e.fun < best.fun + NEAR]
    reached = sum(e.fun < best.fun + 0.05 for e in ends)
    z = {k: np.asarray(v) for k, v in unravel(best.x).items()}
    return Mode(z, best.x, float(best.fun), reached, starts, unravel, tops)


def jittered(mode: Mode, chains: int, seed: int, width: float = 0.1) -> list[dict[str, np.ndarray]]:
    """Starts of the chains: the descents that ended near the top, in turn, each shaken so that R-hat means something.

    Where the posterior has several modes of like height the chains start in different ones, and R-hat shows it.
    """
    rng = np.random.default_rng([seed, 1])
    tops = [mode.tops[i % len(mode.tops)] for i in range(chains)]
    return [{k: np.asarray(v) for k, v in mode.unravel(t + rng.normal(0, width, t.size)).items()} for t in tops]
