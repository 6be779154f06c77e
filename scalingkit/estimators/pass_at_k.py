"""pass@k: the chance that at least one of k samples succeeds, from c successes among n, for every k at once.

    pass@k = 1 - C(n-c, k) / C(n, k) = 1 - prod_(j<k) (n - c - j) / (n - j)

Unbiased for k <= n; nan beyond, where only a model of the problems can speak (a plug-in 1 - (1 - c/n)**k is biased
and is not offered). It depends on the problem through (n, c) alone, so it is worked out once for each pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import order
from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.estimator import Estimator
from scalingkit.core.names import BUDGET, PROBLEM, SAMPLE

CHEN2021 = Source("chen2021", "Chen et al. 2021, Evaluating large language models trained on code", "2107.03374")


def estimate(data: xr.Dataset, *, k: Any = None, correct: str = "correct") -> xr.Dataset:
    """pass@k per problem and on average.

    data  counts ``successes`` and ``samples`` with the same dims (problem among them), or ``correct`` (0 or 1, nan
          where missing) with dims (problem, sample)
    k     sample budgets; default: all up to the largest n (about 256 on a log scale beyond 2,048)

    ``value`` (..., budget), nan for k > n; ``mean``, ``se`` over the problems that have k samples, and ``problems``,
    how many. Raises ValueError for counts that are no counts (the first is named).
    """
    c, n = _counts(data, correct)
    ks = order.budgets(int(n.max()), k)
    value = xr.DataArray(table(c.values, n.values, ks), dims=(*c.dims, BUDGET), coords=c.coords)
    value = value.assign_coords({BUDGET: ks})
    if PROBLEM not in value.dims:
        return xr.Dataset(dict(value=value, samples=n))
    count = value.notnull().sum(PROBLEM)
    mean = value.mean(PROBLEM)
    se = (((value - mean) ** 2).sum(PROBLEM) / (count - 1).clip(1) / count.clip(1)) ** 0.5
    return xr.Dataset(dict(value=value, mean=mean, se=se.where(count > 1), problems=count, samples=n))


def table(c: Any, n: Any, k: Any) -> np.ndarray:
    """pass@k of counts c out of n, arrays of one shape -> (..., k)."""
    c, n = np.broadcast_arrays(np.asarray(c, int), np.asarray(n, int))
    ks = order.budgets(1, k)
    pairs, where = np.unique(np.stack([c.ravel(), n.ravel()], 1), axis=0, return_inverse=True)
    found = np.empty((len(pairs), ks.size))
    for row, (successes, total) in enumerate(pairs.tolist()):
        found[row] = _one(successes, total, ks)
    return found[where.ravel()].reshape(*c.shape, ks.size)


def _one(c: int, n: int, ks: np.ndarray) -> np.ndarray:
    j = np.arange(min(int(ks.max()), n))
    none = np.cumprod(np.maximum(n - c - j, 0) / (n - j))
    return np.where(ks <= n, 1 - none[np.minimum(ks, n) - 1], np.nan)


def _counts(data: xr.Dataset, correct: str) -> tuple[xr.DataArray, xr.DataArray]:
    if "successes" in data and "samples" in data:
        c, n = xr.broadcast(data["successes"], data["samples"])
    elif correct in data and SAMPLE in data[correct].dims:
        c, n = data[correct].sum(SAMPLE), data[correct].notnull().sum(SAMPLE)
    else:
        raise ValueError(
            f"pass@k needs counts successes and samples, or {correct!r} with the dim {SAMPLE}; "
            f"the data have {', '.join(map(str, data.data_vars))}."
        )
    a, b = np.asarray(c.values, float), np.asarray(n.values, float)
    ok = (a >= 0) & (a <= b) & (b >= 1) & (a == np.round(a)) & (b == np.round(b))
    if not ok.all():
        at = tuple(np.argwhere(~ok)[0].tolist())
        raise ValueError(
            f"entry {at}: {a[at]:g} successes of {b[at]:g} samples; they must be whole numbers, 0 <= c <= n and n >= 1."
        )
    return c, n


# ---------------------------------------------------------------- judged on the world "scored_samples"

THETA = dict(p=0.03, mu1=0.0, sd1=1.0, mu0=0.0, sd0=1.0)


def _pass(world: Any, key: Any, samples: int) -> tuple[xr.Dataset, float]:
    coords = {PROBLEM: np.arange(300), SAMPLE: np.arange(samples)}
    return world.simulate(key, xr.Dataset(coords=coords), **THETA), 1 - (1 - THETA["p"]) ** 16


def judge(world: Any, key: Any) -> tuple[float, float, float]:
    """pass@16 from 20 samples, within 4.5 standard errors."""
    data, truth = _pass(world, key, 20)
    found = estimate(data, k=16)
    return float(found["mean"][0]), truth, 4.5 * float(found["se"][0])


def wrong(world: Any, key: Any) -> tuple[float, float, float]:
    """1 - (1 - c/n)**k with the observed share: biased low where n is near k."""
    data, truth = _pass(world, key, 20)
    plug = 1 - (1 - data["correct"].mean(SAMPLE)) ** 16
    return float(plug.mean()), truth, float(plug.std()) / 300**0.5


def by_hand(estimator: Estimator) -> float:
    """2 of 5 succeed: one of two draws does with 1 - 3/10."""
    return float(estimator(xr.Dataset({"successes": (PROBLEM, [2]), "samples": (PROBLEM, [5])}), k=2)["mean"][0])


estimator = Estimator(
    card=Card(
        "pass_at_k",
        "Chance of a success in k samples, from counts, every k <= n",
        tags={"pass@k", "best-of-n"},
        sources=(CHEN2021, OURS),
        scope="k beyond the samples drawn is refused (nan): hard problems decide it, and they are not seen.",
    ),
    estimate=estimate,
    world="scored_samples",
    judge=judge,
    wrong=wrong,
    claims=(Claim(OURS, "1 - C(3,2)/C(5,2)", "2 of 5, k = 2", by_hand, 0.7, 1e-12, evidence="derived"),),
    example=dict(data=xr.Dataset({"successes": (PROBLEM, [2, 0, 5]), "samples": (PROBLEM, [5, 5, 5])})),
)
