"""Reward tails: problems whose rewards are generalised Pareto, each with its own place and scale.

    reward = mu_p + scale_p G,   G ~ GPD(xi),   mu_p ~ Normal(mu, tau),   log scale_p ~ Normal(log s - omega**2/2, omega)
    E max of N = mu + s (N B(N, 1-xi) - 1) / xi          averaged over problems; H_N s at xi = 0

xi > 0 is heavy, xi < 0 has an end point. The whole of the reward is tail: what a tail model says here is what it knows.
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


def simulate(key: Any, design: xr.Dataset, *, mu: float, tau: float, s: float, omega: float, xi: float) -> xr.Dataset:
    """``score`` (problem, sample) for the design's coordinates, with each problem's ``location`` and ``scale``."""
    rng = generator(key)
    problems, samples = design.sizes[PROBLEM], design.sizes[SAMPLE]
    place = rng.normal(mu, tau, problems)
    scale = s * np.exp(omega * rng.standard_normal(problems) - omega**2 / 2)
    tail = stats.genpareto.isf(rng.random((problems, samples)), xi)
    return design.assign(
        score=((PROBLEM, SAMPLE), place[:, None] + scale[:, None] * tail),
        location=(PROBLEM, place), scale=(PROBLEM, scale),
    )  # fmt: skip


def best(N: Any, *, mu: float, s: float, xi: float, **_: float) -> Any:
    """E max of N, over problems and samples."""
    return mu + order.gpd_expected_max(xi, s, N)


def design(problems: int = 8, samples: int = 16) -> xr.Dataset:
    """Coordinates of ``problems`` x ``samples``."""
    return xr.Dataset(coords={PROBLEM: [f"problem-{i}" for i in range(problems)], SAMPLE: np.arange(samples)})


THETA = dict(mu=1.0, tau=0.5, s=0.8, omega=0.3, xi=0.1)

world = World(
    card=Card(
        "reward_tails",
        "Rewards with generalised Pareto tails, problem by problem",
        tags={"best-of-n", "reward", "tail"},
        sources=(OURS,),
        scope="One shape for all problems; no bulk below the tail, no ties.",
    ),
    simulate=simulate,
    params={
        "mu": Param(dist.Normal(0.0, 2.0), "mean place of a problem"),
        "tau": Param(dist.HalfNormal(1.0), "sd of places"),
        "s": Param(dist.LogNormal(0.0, 1.0), "mean scale"),
        "omega": Param(dist.HalfNormal(0.5), "sd of log scales"),
        "xi": Param(dist.TruncatedNormal(0.0, 0.2, low=-0.5, high=0.5), "shape: > 0 heavy, < 0 bounded"),
    },
    exact={
        "location": lambda d, *, mu, **_: np.full(d.sizes[PROBLEM], mu),
        "scale": lambda d, *, s, **_: np.full(d.sizes[PROBLEM], s),
        "score": lambda d, **t: np.full((d.sizes[PROBLEM], d.sizes[SAMPLE]), float(best(1, **t))),
        "best": lambda d, *, N=16, **t: best(N, **t),
    },
    claims=(
        Claim(
            OURS, "H_256", "exponential(1): E max of 256", lambda w: best(256, mu=0.0, s=1.0, xi=0.0), 6.12434, 5e-6,
            evidence="derived",
        ),
    ),
    example=dict(design=design(), theta=THETA),
)  # fmt: skip
