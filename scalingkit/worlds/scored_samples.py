"""Scored samples: problems whose answers are right or wrong, and a score that tells the two apart badly.

    correct ~ Bernoulli(p),   score | correct ~ Normal(mu1, sd1),   score | wrong ~ Normal(mu0, sd0)
    accuracy(N) = int_0^1 N u**(N-1) q(u) du,   q(u) = P(correct | score at mixture quantile u)

With sd0 > sd1 the best of many is wrong however far apart the means are; with sd0 < sd1 it is right at last.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpyro.distributions as dist
import xarray as xr
from scipy import stats

from scalingkit.core import order
from scalingkit.core.card import OURS, Card, Claim
from scalingkit.core.names import PROBLEM, SAMPLE
from scalingkit.core.param import Param
from scalingkit.core.world import World, generator


def simulate(key: Any, design: xr.Dataset, *, p: float, mu1: float, sd1: float, mu0: float, sd0: float) -> xr.Dataset:
    """``score`` and ``correct`` (0 or 1) for every (problem, sample) of the design's coordinates."""
    rng = generator(key)
    shape = (design.sizes[PROBLEM], design.sizes[SAMPLE])
    correct = rng.random(shape) < p
    score = np.where(correct, mu1, mu0) + np.where(correct, sd1, sd0) * rng.standard_normal(shape)
    return design.assign(score=((PROBLEM, SAMPLE), score), correct=((PROBLEM, SAMPLE), correct.astype(float)))


def accuracy(N: Any, *, p: float, mu1: float, sd1: float, mu0: float, sd0: float) -> Any:
    """P(the best-scored of N answers is correct)."""
    return order.accuracy(p, stats.norm(mu1, sd1), stats.norm(mu0, sd0), N)


def _full(design: xr.Dataset, value: float) -> np.ndarray:
    return np.full((design.sizes[PROBLEM], design.sizes[SAMPLE]), value)


def design(problems: int = 6, samples: int = 8) -> xr.Dataset:
    """Coordinates of ``problems`` x ``samples``."""
    return xr.Dataset(coords={PROBLEM: [f"problem-{i}" for i in range(problems)], SAMPLE: np.arange(samples)})


THETA = dict(p=0.2, mu1=1.5, sd1=1.0, mu0=0.0, sd0=1.5)  # rises to N = 16, then falls

world = World(
    card=Card(
        "scored_samples",
        "Right and wrong answers under a score with normal tails",
        tags={"best-of-n", "reward"},
        sources=(OURS,),
        scope="Answers are independent given the problem, and all problems are alike.",
    ),
    simulate=simulate,
    params={
        "p": Param(dist.Uniform(0.0, 1.0), "share of correct answers"),
        "mu1": Param(dist.Normal(0.0, 2.0), "mean score of correct answers"),
        "sd1": Param(dist.HalfNormal(2.0), "sd of their scores"),
        "mu0": Param(dist.Normal(0.0, 2.0), "mean score of wrong answers"),
        "sd0": Param(dist.HalfNormal(2.0), "sd of their scores"),
    },
    exact={
        "correct": lambda d, *, p, **_: _full(d, p),
        "score": lambda d, *, p, mu1, mu0, **_: _full(d, p * mu1 + (1 - p) * mu0),
        "accuracy": lambda d, *, N=16, **theta: accuracy(N, **theta),
    },
    claims=(
        Claim(
            OURS, "by quadrature", "accuracy at N = 16, near its peak", lambda w: accuracy(16, **THETA), 0.4439, 5e-5,
            evidence="derived",
        ),
        Claim(
            OURS, "by quadrature", "accuracy at N = 2**20, long past it", lambda w: accuracy(2**20, **THETA), 0.0041,
            5e-5, evidence="derived",
        ),
    ),
    example=dict(design=design(), theta=THETA),
)  # fmt: skip
