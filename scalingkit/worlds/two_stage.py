"""Two stages: a state is drawn, then rewards from it; good search spends where the tail is.

    theta_s ~ Normal(mu, tau),   sigma_s = sigma exp(omega z),   reward ~ Normal(theta_s, sigma_s)
    E best of N, each with its own state (omega = 0) = mu + sqrt(tau**2 + sigma**2) e_N
    E of the best stage mean of K states from m draws, then N - K m more from it:
        mu + tau**2 / sqrt(tau**2 + sigma**2 / m) e_K + sigma e_(N - K m)

e_N = E max of N standard normals. With omega > 0 states differ in spread, and the best one depends on the budget left.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpyro.distributions as dist
import xarray as xr

from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.environment import STATE
from scalingkit.core.names import SAMPLE
from scalingkit.core.param import Param
from scalingkit.core.staging import best_of_n, staged
from scalingkit.core.world import World, generator

SLG2026 = Source("slg2026", "Scaling-law guided search", "2602.01485")


def simulate(key: Any, design: xr.Dataset, *, mu: float, tau: float, sigma: float, omega: float) -> xr.Dataset:
    """``score`` (state, sample), with the truth beside it: ``theta``, ``sigma`` (state)."""
    rng = generator(key)
    states, samples = design.sizes[STATE], design.sizes[SAMPLE]
    theta = mu + tau * rng.standard_normal(states)
    spread = sigma * np.exp(omega * rng.standard_normal(states))
    score = theta[:, None] + spread[:, None] * rng.standard_normal((states, samples))
    return design.assign(score=((STATE, SAMPLE), score), theta=(STATE, theta), spread=(STATE, spread))


def problem(mu: float = 0.0, tau: float = 1.0, sigma: float = 1.0, omega: float = 0.0) -> xr.Dataset:
    """The same world as a problem for a search."""
    return xr.Dataset(dict(mu=mu, tau=tau, sigma=sigma, omega=omega))


def _full(d: xr.Dataset, value: float, dims: tuple[str, ...]) -> np.ndarray:
    return np.full(tuple(d.sizes[k] for k in dims), value)


THETA = dict(mu=0.0, tau=1.0, sigma=1.0, omega=0.3)


world = World(
    card=Card(
        "two_stage",
        "States with normal rewards: where should the budget go?",
        tags={"search", "best-of-n"},
        sources=(SLG2026, OURS),
        scope="Normal rewards, states exchangeable; the gain measured at N = 1000 is far below the limit's.",
    ),
    simulate=simulate,
    params={
        "mu": Param(dist.Normal(0.0, 2.0), "mean of the states"),
        "tau": Param(dist.HalfNormal(2.0), "sd between states"),
        "sigma": Param(dist.HalfNormal(2.0), "sd of rewards within a state"),
        "omega": Param(dist.HalfNormal(0.5), "sd of log sigma between states"),
    },
    exact={
        "score": lambda d, *, mu, **_: _full(d, mu, (STATE, SAMPLE)),
        "theta": lambda d, *, mu, **_: _full(d, mu, (STATE,)),
        "spread": lambda d, *, sigma, omega, **_: _full(d, sigma * math.exp(omega**2 / 2), (STATE,)),
    },
    claims=(
        Claim(
            OURS, "closed form", "K = 32, m = 4, N = 1000", lambda w: staged(1000, 32, 4, tau=1.0, sigma=1.0), 5.053,
            6e-4, evidence="derived",
        ),
        Claim(
            OURS, "closed form", "best of 1000", lambda w: best_of_n(1000, tau=1.0, sigma=1.0), 4.584, 6e-4,
            evidence="derived",
        ),
    ),
    example=dict(
        design=xr.Dataset(coords={STATE: np.arange(6), SAMPLE: np.arange(8)}), theta=THETA
    ),
)  # fmt: skip
