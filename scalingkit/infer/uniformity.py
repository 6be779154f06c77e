"""Uniformity: are these numbers uniform on (0, 1)? The ECDF against an envelope that holds at all points at once.

    gamma(u) = min over z of 2 min(F_z(n ECDF(z)), 1 - F_z(n ECDF(z) - 1)),   F_z: Binomial(n, z)

Under uniformity gamma's distribution is known by simulation, so p = P(gamma <= observed), and the pointwise level whose
band holds everywhere with probability 95% is its 5% quantile. Used for PIT values and for ranks in calibration.
Source: Sailynoja, Buerkner and Vehtari 2022, Graphical test for discrete uniformity (arXiv:2103.10522).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrik

POINTS = 100
SIMULATIONS = 2000


class Uniformity(NamedTuple):
    """p value, and the picture: ECDF, lower and upper 95% simultaneous bounds at the points z."""

    p_value: float
    z: np.ndarray
    ecdf: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def direction(self) -> str:
        """In words, how the values depart from uniform: where the ECDF is furthest from the diagonal."""
        gap = self.ecdf - self.z
        left, right = gap[self.z < 0.5].mean(), gap[self.z >= 0.5].mean()
        if left * right > 0:
            return "values too low" if left > 0 else "values too high"
        return "too many near 0 and 1 (spread too narrow)" if left > 0 else "too many near 1/2 (spread too wide)"


def uniformity(u: np.ndarray, level: float = 0.95) -> Uniformity:
    """Test of u (n,) in [0, 1]. Raises ValueError where there are none, or where one is outside."""
    u = np.asarray(u, float).ravel()
    if not u.size or np.any(~((u >= 0) & (u <= 1))):
        raise ValueError("uniformity takes at least one number, all between 0 and 1.")
    z = _points(u.size)
    null = _null(u.size)
    gamma = _gamma(_counts(u[None], z), u.size, z)[0]
    cut = np.quantile(null, 1 - level)
    # a band at the pointwise level `cut` is one at all points together
    low = np.ceil(bdtrik(np.full_like(z, cut / 2), u.size, z))
    high = np.ceil(bdtrik(np.full_like(z, 1 - cut / 2), u.size, z))
    p = (1 + np.sum(null <= gamma)) / (1 + null.size)
    return Uniformity(float(p), z, _counts(u[None], z)[0] / u.size, low / u.size, high / u.size)


def _points(n: int) -> np.ndarray:
    k = min(n, POINTS)
    return np.arange(1, k + 1) / (k + 1)


def _counts(u: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.stack([np.searchsorted(np.sort(row), z, side="right") for row in u])


def _gamma(counts: np.ndarray, n: int, z: np.ndarray) -> np.ndarray:
    below = bdtr(counts, n, z)
    above = 1 - np.where(counts > 0, bdtr(np.maximum(counts - 1, 0), n, z), 0.0)
    return np.min(2 * np.minimum(below, above), axis=1)


@lru_cache(maxsize=256)
def _null(n: int) -> np.ndarray:
    """gamma of uniform samples of size n, sorted. One fixed stream: the same table gives the same p value."""
    rng = np.random.default_rng(20220)
    return np.sort(_gamma(_counts(rng.random((SIMULATIONS, n)), _points(n)), n, _points(n)))
