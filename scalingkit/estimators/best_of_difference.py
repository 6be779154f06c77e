"""Best-of-N of two scores on the same samples: the paired difference, with a band over all N at once.

    d_N = mean over problems of V_N(chosen by a) - V_N(chosen by b)
    band: d_N +- c s_N / sqrt(n),  P(max_N |sum_i g_i (d_iN - d_N)| / (s_N sqrt(n)) <= c) = prob,  g_i ~ Normal(0, 1)

The same problems and the same samples are behind both curves, so most of their scatter cancels; c is the Gaussian
multiplier bootstrap of the largest t over N, so the whole curve is covered, not each N alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from scalingkit.core import order
from scalingkit.core.card import OURS, Card, Claim
from scalingkit.core.estimator import Estimator
from scalingkit.core.names import BUDGET, PROBLEM, SAMPLE


def estimate(
    data: xr.Dataset, *, a: str = "score", b: str = "other", of: str | None = None, N: Any = None, prob: float = 0.9,
    repeats: int = 2000, seed: int = 0,
) -> xr.Dataset:  # fmt: skip
    """What choosing by ``a`` is worth over choosing by ``b``, on the same samples.

    data  variables ``a``, ``b`` (and ``of``) with dims (problem, sample), none missing
    of    the property of the chosen sample; default: the score ``a`` itself

    ``difference``, ``se``, pointwise ``lower``/``upper`` and simultaneous ``band_lower``/``band_upper`` (budget), and
    ``critical``, the largest t that chance allows. Raises ValueError for fewer than two problems or missing samples.
    """
    arrays = {name: np.asarray(data[name].transpose(PROBLEM, SAMPLE).values, float) for name in (a, b, of or a)}
    for name, x in arrays.items():
        if bad := np.argwhere(~np.isfinite(x)).tolist():
            raise ValueError(f"{name}: problem {bad[0][0]}, sample {bad[0][1]} is missing; a pair needs both.")
    n, m = arrays[a].shape
    if n < 2:
        raise ValueError("one problem alone says nothing of the scatter between problems; give two or more.")
    ns = order.budgets(m, N)
    weights = order.rank_weights(m, ns).T
    each = sum(
        sign * order.tie_average(arrays[by], arrays[of or a]) @ weights for sign, by in ((1, a), (-1, b))
    )  # fmt: skip
    return _banded(np.asarray(each), ns, prob, repeats, seed).assign_attrs(a=a, b=b, value_of=of or a)


def _banded(each: np.ndarray, ns: np.ndarray, prob: float, repeats: int, seed: int) -> xr.Dataset:
    """Mean of the per-problem differences with bands, array (problem, budget)."""
    n = len(each)
    mean, sd = each.mean(0), each.std(0, ddof=1)
    # where all problems agree exactly there is no scatter to divide by: the band is the point
    scaled = (each - mean) / np.where(sd > 0, sd, 1.0) / np.sqrt(n)
    largest = np.abs(np.random.default_rng(seed).standard_normal((repeats, n)) @ scaled).max(1)
    critical = float(np.quantile(largest, prob))
    z, se = float(stats.t.ppf((1 + prob) / 2, n - 1)), sd / np.sqrt(n)
    out = dict(
        difference=mean, se=se, lower=mean - z * se, upper=mean + z * se, band_lower=mean - critical * se,
        band_upper=mean + critical * se,
    )  # fmt: skip
    return xr.Dataset(
        {k: (BUDGET, v) for k, v in out.items()} | {"critical": critical}, coords={BUDGET: ns}, attrs=dict(prob=prob)
    )


# ---------------------------------------------------------------- judged on the world "scored_samples"

THETA = dict(p=0.3, mu1=1.0, sd1=1.0, mu0=0.0, sd0=1.0)


def _two(world: Any, key: Any) -> xr.Dataset:
    """A score, and another that knows nothing."""
    design = xr.Dataset(coords={PROBLEM: np.arange(300), SAMPLE: np.arange(32)})
    data = world.simulate(key, design, **THETA)
    blind = np.random.default_rng([7, int(key)]).standard_normal((300, 32))
    return data.assign(other=((PROBLEM, SAMPLE), blind))


def judge(world: Any, key: Any) -> tuple[float, float, float]:
    """Accuracy gained over choosing at random, at N = 16, within 4.5 standard errors."""
    found = estimate(_two(world, key), of="correct", N=16)
    truth = float(world.exact["accuracy"](None, N=16, **THETA)) - THETA["p"]
    return float(found["difference"][0]), truth, 4.5 * float(found["se"][0])


def wrong(world: Any, key: Any) -> tuple[float, float, float]:
    """The gain in score taken for the gain in accuracy."""
    found = estimate(_two(world, key), N=16)
    truth = float(world.exact["accuracy"](None, N=16, **THETA)) - THETA["p"]
    return float(found["difference"][0]), truth, 4.5 * float(found["se"][0])


def by_hand(estimator: Estimator) -> float:
    """Two problems, N = 2 of 2: a takes 3 and 1, b (which prefers the lower) 0 and 1: differences 3 and 0."""
    pair = {"score": [[3.0, 0.0], [1.0, 1.0]], "other": [[0.0, 3.0], [1.0, 1.0]]}
    data = xr.Dataset({k: ((PROBLEM, SAMPLE), np.array(v)) for k, v in pair.items()})
    return float(estimator(data, N=2)["difference"][0])


estimator = Estimator(
    card=Card(
        "best_of_difference",
        "Two scores on the same samples: paired gain in best-of-N, band over all N",
        tags={"best-of-n", "reward"},
        sources=(OURS,),
        scope="The band is over N for these kinds of problems; problems must be a sample of those that matter.",
    ),
    estimate=estimate,
    world="scored_samples",
    judge=judge,
    wrong=wrong,
    claims=(Claim(OURS, "(3 + 0) / 2", "paired difference by hand", by_hand, 1.5, 1e-12, evidence="derived"),),
    example=dict(data=xr.Dataset({
        "score": ((PROBLEM, SAMPLE), np.array([[3.0, 0.0, 1.0], [1.0, 2.0, 0.0]])),
        "other": ((PROBLEM, SAMPLE), np.array([[0.0, 3.0, 1.0], [1.0, 0.0, 2.0]])),
    })),
)  # fmt: skip
