"""Bands: how surely the law predicts where no run has been, off the ray and beyond the largest run.

    Var(log L at x) = j(x)' Cov j(x)                      linearised; Cov of the data alone, or of the posterior
    reach along a direction = the largest factor r at which the interval's half-width stays within a tolerance

On a ray D = k N the data alone say nothing off it: their band at another TPP is thousands of times the one at k.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from scalingkit.core.law import Law
from scalingkit.design.information import Outcome

TPP_FACTORS = np.array([0.1, 0.25, 1.0, 4.0, 10.0, 100.0])
FARTHEST = 10_000.0
FACTORS = np.geomspace(1.0, FARTHEST, 41)


def data_only(J: np.ndarray, j: np.ndarray, noise: float) -> np.ndarray:
    """sd (m,) of the curve at rows j (m, p) from the runs' Jacobian J (n, p) alone; infinite where not determined."""
    scale = np.linalg.norm(J, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    if len(J) < J.shape[1]:
        return np.full(len(j), np.inf)
    _, s, Vt = np.linalg.svd(J / scale, full_matrices=False)
    along = (j / scale) @ Vt.T
    # A singular value that is rounding: what lies along its vector is unknown, what does not is not touched by it.
    lost = s <= np.finfo(float).eps * max(J.shape) * s[0]
    touched = np.any(np.abs(along[:, lost]) > 1e-9 * np.linalg.norm(along, axis=1, keepdims=True), axis=1)
    return np.where(touched, np.inf, noise * np.linalg.norm(along[:, ~lost] / s[~lost], axis=1))


def posterior_sd(law: Law, theta: np.ndarray, x: np.ndarray, of: Outcome) -> np.ndarray:
    """sd (m,) over draws theta (S, p) of the curve (or its log) at inputs x (m, K)."""
    columns = [jnp.asarray(theta[:, None, i]) for i in range(theta.shape[1])]
    f = np.asarray(law.curve(*(jnp.asarray(x[None, :, i]) for i in range(x.shape[1])), *columns))
    f = np.log(f) if of == "log" else f
    return np.broadcast_to(f, (len(theta), len(x))).std(0, ddof=1)


def directions(law: Law, anchor: np.ndarray) -> dict[str, np.ndarray]:
    """Name in words -> inputs (len(FACTORS), K) going out from the anchor run (K,)."""
    names = list(law.inputs)
    ways: dict[str, tuple[str, ...]] = {}
    if "N" in names and "D" in names:
        ways["N and D together"] = ("N", "D")
        ways["N alone"], ways["D alone"] = ("N",), ("D",)
    else:
        scaled = tuple(dict.fromkeys(x for x, _ in law.scales.values())) or tuple(names[:1])
        ways = {f"{k}": (k,) for k in scaled}
    return {
        said: np.stack(
            [anchor[i] * (FACTORS if k in moved else np.ones_like(FACTORS)) for i, k in enumerate(names)], -1
        )
        for said, moved in ways.items()
    }


def reach(half_width: np.ndarray, within: float) -> float:
    """The largest factor up to which the half-width stays within the tolerance; 0 where it is exceeded at once."""
    ok = half_width <= within
    if not ok[0]:
        return 0.0
    return float(FACTORS[-1] if ok.all() else FACTORS[int(np.argmin(ok)) - 1])


def off_ray(law: Law, anchor: np.ndarray) -> np.ndarray:
    """Inputs at the anchor's size and TPP_FACTORS times its tokens; shape (len(TPP_FACTORS), K)."""
    x = np.tile(anchor, (TPP_FACTORS.size, 1))
    x[:, list(law.inputs).index("D")] *= TPP_FACTORS
    return x
