"""Profiles: how the best fit worsens when one parameter is held away from its best value. All at once, no prior.

    deviance_k(t) = min over the other u of sum_i w_i (y_i - f(x_i; u))**2, u_k = t, less its minimum over all t

A flat profile is a parameter that the data do not determine. Values run along u_k (the logarithm of a positive
parameter, coefficients at the pivot) and are given in the parameter's own units. The interval is where the deviance
stays below the chi-square quantile; an end that is not reached inside the walk is infinite (or 0).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from scalingkit.design.descent import VALUES, best_of, walk
from scalingkit.design.information import Outcome
from scalingkit.infer.coordinates import Coordinates

STEPS = VALUES  # on either side
_WIDE = 4.0  # how many standard errors the walk goes, never beyond as many prior sds as _PRIOR
_PRIOR = 3.0


@dataclass(frozen=True)
class Profile:
    """``value`` and ``deviance`` (p, 2 STEPS + 1); ``interval`` (p, 2); ``best`` (p,) in u; ``least``: the minimum."""

    value: np.ndarray
    deviance: np.ndarray
    interval: np.ndarray
    best: np.ndarray
    least: float


def profile(
    c: Coordinates, of: Outcome, u: np.ndarray, x: np.ndarray, y: np.ndarray, w: np.ndarray, se: np.ndarray,
    prior_sd: np.ndarray, prob: float = 0.9,
) -> Profile:  # fmt: skip
    """Profiles of every parameter from a start ``u`` (p,).

    x (n, K) inputs over their pivots, y (n,) outcome on the scale ``of``, w (n,) 1/noise**2 (0 leaves a run out),
    ``se`` (p,) standard errors from the likelihood alone (may be infinite), which set the walk's length.
    """
    p = u.size
    none = np.zeros(p)
    best, centre = best_of(c, of, u[None], x, y, w, none, none)
    length = np.minimum(_WIDE * np.nan_to_num(se, nan=np.inf, posinf=np.inf), _PRIOR * prior_sd)
    out = np.arange(1, STEPS + 1) / STEPS
    which, sign = np.repeat(np.arange(p), 2), np.tile([-1.0, 1.0], p)
    values = best[which][:, None] + sign[:, None] * length[which][:, None] * out
    sides = walk(c, of, np.tile(best, (2 * p, 1)), which, values, x, y, w).reshape(p, 2, STEPS)
    deviance = np.concatenate([sides[:, 0, ::-1], np.full((p, 1), centre), sides[:, 1]], 1)
    least = float(np.min(deviance))
    along = best[:, None] + length[:, None] * np.r_[-out[::-1], 0, out]
    at = np.stack([np.asarray(c.to[k](jnp.asarray(along[i]))) for i, k in enumerate(c.names)])
    level = ndtri((1 + prob) / 2) ** 2
    interval = np.stack([_crossings(at[i], deviance[i] - least, level) for i in range(p)])
    return Profile(at, deviance - least, interval, best, least)


def _crossings(at: np.ndarray, deviance: np.ndarray, level: float) -> tuple[float, float]:
    """Ends of the interval round the lowest point, linearly between steps; infinite where the profile stays below."""
    i = int(np.argmin(deviance))
    ends = [-np.inf, np.inf]
    for side, step in ((0, -1), (1, 1)):
        j = i
        while 0 <= j + step < at.size:
            j += step
            if deviance[j] > level:
                a, b = deviance[j - step], deviance[j]
                ends[side] = at[j - step] + (at[j] - at[j - step]) * (level - a) / (b - a)
                break
    return ends[0], ends[1]
