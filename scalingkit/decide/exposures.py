"""Exposures: how much harm the best-scored of N carries, prompt by prompt, with every attempted prompt counted.

    x_jN = sum_i C(i-1, N-1) / C(K, N) z_(i)          z harm in the order of rising public scores, ties averaged

x_jN is unbiased for the exposure of prompt j at N <= K. A prompt whose pool failed, or is smaller than N, is not left
out: it counts as harm 1 (all attempted stay in the denominator).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import order
from scalingkit.core.names import BUDGET, PROBLEM, SAMPLE

FEWEST = 16  # a pool smaller than this says little of a tail


class CapError(ValueError):
    """Samples from which no certificate can be made; the text says what is wrong and where."""


def exposures(data: xr.Dataset, *, attempted: Any, by: str = "score", harm: str = "harm", N: Any = None) -> xr.Dataset:
    """``exposure`` (problem, budget), every attempted problem a row, with ``pool`` (problem) and ``failed`` (problem).

    data       ``by`` and ``harm`` (in [0, 1]) with dims (problem, sample), nan where a sample is missing
    attempted  the labels of all problems that were attempted, or how many: those that are not in the data failed

    Raises CapError where harm is outside [0, 1], is missing beside a score, or fewer were attempted than are in the data.
    """
    scores, harms = _arrays(data, by, harm)
    labels = _labels(data, attempted, len(scores))
    pool = np.zeros(len(labels), int)
    pool[: len(scores)] = np.isfinite(scores).sum(1)
    K = int(pool.max(initial=0))
    ns = order.budgets(max(K, 1), _powers(K) if N is None else N)
    found = np.ones((len(labels), ns.size))
    for m in np.unique(pool[pool >= FEWEST]):
        rows = np.flatnonzero(pool == m)
        there = np.isfinite(scores[rows])
        z = order.tie_average(*(a[rows][there].reshape(-1, m) for a in (scores, harms)))
        found[rows] = np.nan_to_num(z @ order.rank_weights(m, ns).T, nan=1.0)  # N > m: counted as harm
    return xr.Dataset(
        dict(exposure=((PROBLEM, BUDGET), found), pool=(PROBLEM, pool), failed=(PROBLEM, pool < FEWEST)),
        coords={PROBLEM: labels, BUDGET: ns},
        attrs=dict(by=by, harm=harm, attempted=len(labels), largest_pool=K),
    )


def _powers(K: int) -> list[int]:
    """1, 2, 4, ... up to K."""
    return [2**i for i in range(max(K, 1).bit_length())]


def _labels(data: xr.Dataset, attempted: Any, have: int) -> list[Any]:
    """Labels of the problems in the data, then those that were attempted and are not there."""
    mine = data[PROBLEM].values.tolist() if PROBLEM in data.coords else list(range(have))
    if isinstance(attempted, (int, np.integer)):
        if attempted < have:
            raise CapError(
                f"{attempted} problems attempted, and {have} are in the data; all attempted must be counted."
            )
        return [*mine, *(f"missing-{i}" for i in range(attempted - have))]
    every = list(np.asarray(attempted).tolist())
    if strangers := [m for m in mine if m not in set(every)]:
        raise CapError(f"problem {strangers[0]!r} is in the data and not among the attempted.")
    if len(set(every)) != len(every):
        raise CapError("the attempted problems are named more than once.")
    return [*mine, *(a for a in every if a not in set(mine))]


def _arrays(data: xr.Dataset, by: str, harm: str) -> tuple[np.ndarray, np.ndarray]:
    for name in (by, harm):
        if name not in data or set(data[name].dims) != {PROBLEM, SAMPLE}:
            raise CapError(f"{name!r} must be a variable with dims ({PROBLEM}, {SAMPLE}).")
    s, z = (np.asarray(data[k].transpose(PROBLEM, SAMPLE).values, float) for k in (by, harm))
    if bad := np.argwhere(np.isfinite(s) & ~((z >= 0) & (z <= 1))).tolist():
        i, j = bad[0]
        raise CapError(f"problem {i}, sample {j}: harm = {z[i, j]:g}; beside a score it must be known and in [0, 1].")
    return s, z
