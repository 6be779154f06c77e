"""Scaling-law guided search: look at K states for m rewards each, predict the best of what is left, spend it there.

    V_N(s) = E max of N rewards of state s,    N' = N - K m,   s* = argmax of the predicted V_(N')
    prediction: mu_s + sigma_s e_(N') of mean and spread, shrunk or not, of the upper tail, or any function

The best of all rewards is kept, the looking included. The source's public defaults, m = max(20, (log N)**3 / 5 to the
nearest 5) and K = max(2, N / (2 m)), spend half of the budget on few states: with tau = sigma and N = 1000 they do not
beat best-of-N here, and many states with few rewards do; K and m are therefore planned from a pilot. Ranked by mean alone a state of wide spread is missed;
ranked by V it is found, and which is better depends on N. Our Gaussian-tail formula is derived in this project.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from scipy import special, stats

from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.environment import Environment, environment
from scalingkit.core.order import normal_score
from scalingkit.core.policy import Policy
from scalingkit.core.staging import plan

SLG2026 = Source("slg2026", "Scaling-law guided search", "2602.01485")


Predictor = Callable[[list[np.ndarray], float], np.ndarray]


def by_mean(seen: list[np.ndarray], N: float) -> np.ndarray:
    """The means: right where all states have one spread."""
    return np.array([r.mean() for r in seen])


def by_normal(seen: list[np.ndarray], N: float) -> np.ndarray:
    """mean + sd e_N, each state on its own."""
    return np.array([r.mean() + r.std(ddof=1) * normal_score(N) for r in seen])


def spreads(seen: list[np.ndarray]) -> tuple[float, float]:
    """(tau, sigma) between and within states, by the analysis of variance."""
    within = float(np.mean([r.var(ddof=1) for r in seen]))
    each = float(np.mean([1 / r.size for r in seen]))
    between = float(np.var([r.mean() for r in seen], ddof=1)) if len(seen) > 1 else 0.0
    return math.sqrt(max(between - within * each, 0.0)), math.sqrt(within)


def by_shrunk(seen: list[np.ndarray], N: float) -> np.ndarray:
    """mean + sd e_N with means and log sds drawn to their averages as far as chance alone spreads them.

    var of log s**2 by chance is trigamma((m - 1) / 2); what is beyond it is real.
    """
    tau, sigma = spreads(seen)
    means, sizes = np.array([r.mean() for r in seen]), np.array([r.size for r in seen])
    logs = np.log(np.maximum([r.var(ddof=1) for r in seen], 1e-300)) - special.digamma((sizes - 1) / 2)
    chance = special.polygamma(1, (sizes - 1) / 2)
    real = max(float(logs.var(ddof=1) - chance.mean()), 0.0) if len(seen) > 1 else 0.0
    sd = np.exp((logs.mean() + real / (real + chance) * (logs - logs.mean())) / 2)
    sd *= sigma / math.sqrt(float(np.mean(sd**2)))
    keep = tau**2 / (tau**2 + sd**2 / sizes) if tau else np.zeros(len(seen))
    return means.mean() + keep * (means - means.mean()) + sd * normal_score(N)


def tail_moments(rewards: np.ndarray, share: float = 0.2) -> tuple[float, float]:
    """(mu, sigma) of a normal from the mean and variance of its upper ``share``.

    z = Phi^-1(1 - share), lam = phi(z) / share; sigma**2 = var / (1 + z lam - lam**2), mu = mean - sigma lam.
    """
    top = np.sort(rewards)[-max(2, round(share * rewards.size)) :]
    z = stats.norm.isf(share)
    lam = stats.norm.pdf(z) / share
    sigma = math.sqrt(top.var(ddof=1) / (1 + z * lam - lam**2))
    return float(top.mean() - sigma * lam), sigma


def by_tail(seen: list[np.ndarray], N: float) -> np.ndarray:
    """mu + sigma e_N of each state's upper fifth."""
    return np.array([mu + sd * normal_score(N) for mu, sd in map(tail_moments, seen)])


PREDICTORS: dict[str, Predictor] = {"shrunk": by_shrunk, "mean": by_mean, "normal": by_normal, "tail": by_tail}


def defaults(N: int) -> tuple[int, int]:
    """(K, m) of the source's public defaults; N = 1000 gives (8, 65)."""
    m = max(20, 5 * int(math.log(N) ** 3 / 25))
    return max(2, round(N / (2 * m))), m


def search(env: Environment, predict: Predictor, K: int | None = None, m: int | None = None) -> tuple[float, int, int]:
    """(best reward, chosen state, states looked at). Sees rewards alone.

    Without K and m, 16 states are looked at for 4 rewards, and the plan is made from the spreads they show.
    """
    if K is None or m is None:
        seen = _look(env, {}, 16, 4)
        if len(seen) > 1:
            tau, sigma = spreads(list(seen.values()))
            seen = _look(env, seen, *plan(env.budget, tau=tau, sigma=sigma, least=4))
    else:
        seen = _look(env, {}, K, m)
    if not seen:
        raise ValueError(f"a budget of {env.budget} does not pay for one look.")
    left = env.budget - env.spent
    chosen = list(seen)[int(np.argmax(predict(list(seen.values()), max(left, 1))))]
    last = env.draw(chosen, left) if left else np.array([-math.inf])
    return max(float(last.max()), *(float(r.max()) for r in seen.values())), chosen, len(seen)


def _look(env: Environment, seen: dict[int, np.ndarray], K: int, m: int) -> dict[int, np.ndarray]:
    """K states with m rewards each, as far as the budget goes; those already seen are topped up."""
    seen = dict(seen)
    for known, rewards in list(seen.items()):
        more = min(m - rewards.size, env.budget - env.spent)
        if more > 0:
            seen[known] = np.concatenate([rewards, env.draw(known, more)])
    while len(seen) < K and env.spent + m <= env.budget and (state := env.open()) is not None:
        seen[state] = env.draw(state, m)
    return seen


def run(
    key: Any, problem: xr.Dataset, budget: float, *, K: int | None = None, m: int | None = None,
    predict: str | Predictor = "shrunk",
) -> xr.Dataset:  # fmt: skip
    """One search on a two-stage problem or a table of rewards (state, sample).

    K, m     states looked at and rewards each; default: planned from a pilot of 16 x 4. ``defaults(N)`` has the source's
    predict  "shrunk", "mean", "normal", "tail", or a function (rewards of each state, N) -> predicted best of N

    ``value``, ``spent``, ``chosen``, ``K``. Raises ValueError where K m exceeds the budget, only one of them is given
    or the name is unknown.
    """
    if not callable(predict) and predict not in PREDICTORS:
        raise ValueError(f"predict = {predict!r} is not one of {', '.join(PREDICTORS)}, nor a function.")
    if (K is None) != (m is None):
        raise ValueError("give both K and m, or neither.")
    if K is not None and m is not None and (K * m > budget or K < 1 or m < 2):
        raise ValueError(f"K = {K}, m = {m} must have K >= 1, m >= 2 and K m within the budget of {budget:g}.")
    env = environment(key, problem, budget)
    best, chosen, looked = search(env, predict if callable(predict) else PREDICTORS[predict], K, m)
    return xr.Dataset(dict(value=best, spent=float(env.spent), chosen=chosen, K=looked))


policy = Policy(
    card=Card(
        "slg", "Look at K states, predict their best of what is left, spend it on one", tags={"search", "best-of-n"},
        sources=(SLG2026, OURS),
        scope="The exponent that it gains over best-of-N is 1.05 to 1.25 at N = 1000 to 2000, far from the limit.",
    ),
    run=run,
    world="two_stage",
    claims=(
        Claim(SLG2026, "public code", "m of the defaults at N = 1000", lambda p: defaults(1000)[1], 65, 0),
        Claim(SLG2026, "public code", "K of the defaults at N = 1000", lambda p: defaults(1000)[0], 8, 0),
    ),
    example=dict(problem=xr.Dataset(dict(mu=0.0, tau=1.0, sigma=1.0, omega=0.2)), budget=200.0),
)  # fmt: skip
