"""Best of N: what the highest-scored of N samples is worth, for every N at once, from one pool of m samples.

    V_N = sum_i w_N(i) v_(i),   w_N(i) = C(i-1, N-1) / C(m, N)      v in the order of rising scores

Unbiased for every N <= m (the average over all subsets of N), by one sort and one matrix product. The value v is the
score itself (then V_N estimates E max of N) or any property of the chosen sample: correct, length, harm. Where scores
tie, the values of the tied block are averaged: ties are broken by chance.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import order
from scalingkit.core.card import OURS, Card, Claim
from scalingkit.core.estimator import Estimator
from scalingkit.core.names import BUDGET, PROBLEM, SAMPLE


def estimate(data: xr.Dataset, *, by: str = "score", of: str | None = None, N: Any = None) -> xr.Dataset:
    """Best-of-N of ``of`` chosen by ``by``, per problem and on average.

    data  variable ``by`` with dims (problem, sample), or (sample,); nan where a sample is missing
    of    the property of the chosen sample; default: the score itself
    N     sample budgets; default: all up to the largest pool (about 256 on a log scale beyond 2,048)

    ``value`` (problem, budget), nan where a problem has fewer than N samples; ``mean``, ``se`` (budget) over the
    problems that have N, ``problems`` (budget) how many, ``samples`` (problem). Raises ValueError where a score is
    there and its value is not.
    """
    scores, values = _arrays(data, by, of)
    have = np.isfinite(scores).sum(1)
    ns = order.budgets(int(have.max(initial=1)), N)
    curve = np.full((scores.shape[0], ns.size), np.nan)
    for m in np.unique(have[have > 0]):
        rows = np.flatnonzero(have == m)
        there = np.isfinite(scores[rows])
        curve[rows] = curves(_compact(scores[rows], there, m), _compact(values[rows], there, m), ns)
    count = np.isfinite(curve).sum(0)
    labels = data[PROBLEM].values if PROBLEM in data.coords else np.arange(scores.shape[0])
    return xr.Dataset(
        dict(
            value=((PROBLEM, BUDGET), curve), mean=(BUDGET, _mean(curve, count)), se=(BUDGET, _se(curve, count)),
            problems=(BUDGET, count), samples=(PROBLEM, have),
        ),
        coords={PROBLEM: labels, BUDGET: ns},
        attrs=dict(chosen_by=by, value_of=of or by),
    )  # fmt: skip


def curves(scores: np.ndarray, values: np.ndarray, N: Any = None) -> np.ndarray:
    """V_N of full pools, arrays (..., m) -> (..., N); nan for N > m."""
    scores = np.asarray(scores, float)
    return order.tie_average(scores, np.asarray(values, float)) @ order.rank_weights(scores.shape[-1], N).T


def stream(chunks: Iterable[tuple[np.ndarray, np.ndarray]], N: Any) -> xr.Dataset:
    """``mean`` and ``se`` (budget) over problems that arrive in chunks of (scores, values), each (problem, sample).

    Only the running sums are kept: the pool may be larger than memory. Chunks may have pools of different sizes; a
    problem with fewer than N samples is not counted at N.
    """
    ns = order.budgets(1, N)
    count, total, squares = np.zeros(ns.size, int), np.zeros(ns.size), np.zeros(ns.size)
    for scores, values in chunks:
        part = curves(scores, values, ns)
        there = np.isfinite(part)
        part, n = np.where(there, part, 0.0), there.sum(0)
        # Chan's update: sums of squares about the running mean keep their digits
        old, new = total / np.maximum(count, 1), part.sum(0) / np.maximum(n, 1)
        squares += np.where(there, (part - new) ** 2, 0).sum(0)
        squares += np.where((count > 0) & (n > 0), (new - old) ** 2 * count * n / np.maximum(count + n, 1), 0)
        count, total = count + n, total + part.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(count > 0, total / count, np.nan)
        se = np.where(count > 1, np.sqrt(squares / (count - 1) / count), np.nan)
    return xr.Dataset(
        dict(mean=(BUDGET, mean), se=(BUDGET, se), problems=(BUDGET, count)), coords={BUDGET: ns}
    )  # fmt: skip


def _arrays(data: xr.Dataset, by: str, of: str | None) -> tuple[np.ndarray, np.ndarray]:
    for name in (by, of or by):
        if name not in data:
            raise ValueError(f"no variable {name!r} in the samples; they have {', '.join(map(str, data.data_vars))}.")
        if SAMPLE not in data[name].dims or set(data[name].dims) - {PROBLEM, SAMPLE}:
            raise ValueError(f"{name!r} has dims {data[name].dims}; it needs ({PROBLEM}, {SAMPLE}).")
    got = [data[name].expand_dims(PROBLEM) if PROBLEM not in data[name].dims else data[name] for name in (by, of or by)]
    scores, values = (np.asarray(a.transpose(PROBLEM, SAMPLE).values, float) for a in got)
    if bad := np.argwhere(np.isfinite(scores) & ~np.isfinite(values)).tolist():
        i, j = bad[0]
        raise ValueError(f"problem {i}, sample {j}: it has a score and no {of}; give both or neither.")
    return scores, values


def _compact(array: np.ndarray, there: np.ndarray, m: int) -> np.ndarray:
    """The entries that are there, rows of m."""
    return array if m == array.shape[1] else array[there].reshape(-1, m)


def _mean(curve: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.where(count > 0, np.nansum(curve, 0) / np.maximum(count, 1), np.nan)


def _se(curve: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Standard error over problems."""
    squares = np.nansum((curve - _mean(curve, count)) ** 2, 0)
    return np.where(count > 1, np.sqrt(squares / np.maximum(count - 1, 1) / np.maximum(count, 1)), np.nan)


# ---------------------------------------------------------------- judged on the world "scored_samples"

THETA = dict(p=0.2, mu1=1.5, sd1=1.0, mu0=0.0, sd0=1.5)


def _simulated(world: Any, key: Any, problems: int = 400, samples: int = 64) -> xr.Dataset:
    coords = {PROBLEM: [f"problem-{i}" for i in range(problems)], SAMPLE: np.arange(samples)}
    return world.simulate(key, xr.Dataset(coords=coords), **THETA)


def judge(world: Any, key: Any) -> tuple[float, float, float]:
    """Accuracy of the best of 16, from pools of 64, within 4.5 standard errors."""
    found = estimate(_simulated(world, key), of="correct", N=16)
    truth = float(world.exact["accuracy"](None, N=16, **THETA))
    return float(found["mean"][0]), truth, 4.5 * float(found["se"][0])


def wrong(world: Any, key: Any) -> tuple[float, float, float]:
    """The score taken for the thing itself: the best of 16 by score is right far less often than one of 16 is."""
    data = _simulated(world, key)
    found = estimate(data.assign(oracle=data["correct"]), by="oracle", of="correct", N=16)
    truth = float(world.exact["accuracy"](None, N=16, **THETA))
    return float(found["mean"][0]), truth, 4.5 * float(found["se"][0])


def by_hand(estimator: Estimator) -> float:
    """Pool 1, 2, 4: the pairs have maxima 2, 4, 4."""
    return float(estimator(xr.Dataset({"score": (SAMPLE, [4.0, 1.0, 2.0])}), N=2)["mean"][0])


estimator = Estimator(
    card=Card(
        "best_of_n",
        "Value of the best-scored of N, every N <= m, unbiased",
        tags={"best-of-n", "reward"},
        sources=(OURS,),
        scope="Says nothing of N beyond the pool: that takes a tail model.",
    ),
    estimate=estimate,
    world="scored_samples",
    judge=judge,
    wrong=wrong,
    claims=(Claim(OURS, "(2 + 4 + 4) / 3", "best of two from three", by_hand, 10 / 3, 1e-12, evidence="derived"),),
    example=dict(data=xr.Dataset({"score": ((PROBLEM, SAMPLE), np.array([[4.0, 1.0, 2.0], [0.0, 0.0, np.nan]]))})),
)
