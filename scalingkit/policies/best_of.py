"""Best of N: spend the whole budget on rewards of fresh states, one each, and keep the best.

    value = max of N rewards,   E = mu + sqrt(tau**2 + sigma**2) e_N        normal states and rewards

The baseline that every search must beat at equal budget.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.card import OURS, Card, Claim
from scalingkit.core.environment import Environment, environment
from scalingkit.core.order import normal_score
from scalingkit.core.policy import Policy


def search(env: Environment) -> float:
    """The best of all that the budget buys: a state each while there are new ones, then round the opened ones."""
    opened: list[int] = []
    best = -math.inf
    while env.spent < env.budget and (state := env.open()) is not None:
        opened.append(state)
        best = max(best, float(env.draw(state, 1)[0]))
    turn = 0
    while env.spent < env.budget and opened:
        # a table that runs dry leaves the rest of the budget unspent
        try:
            best = max(best, float(env.draw(opened[turn % len(opened)], 1)[0]))
        except RuntimeError:
            opened.pop(turn % len(opened))
            continue
        turn += 1
    return best


def run(key: Any, problem: xr.Dataset, budget: float) -> xr.Dataset:
    """``value``, the best reward, and ``spent``, on a two-stage problem or a table of rewards (state, sample)."""
    env = environment(key, problem, budget)
    return xr.Dataset(dict(value=search(env), spent=float(env.spent)))


def exact(problem: xr.Dataset, budget: float) -> float:
    """E of the value on the normal problem with equal spreads."""
    return float(problem["mu"]) + math.hypot(float(problem["tau"]), float(problem["sigma"])) * float(
        normal_score(int(budget))
    )


def _same_by_hand(policy: Policy) -> float:
    """A table of one state: the whole of it is drawn, the maximum kept."""
    table = xr.Dataset({"score": (("state", "sample"), np.array([[0.5, 2.0, -1.0]]))})
    return float(policy(0, table, 3)["value"])


policy = Policy(
    card=Card(
        "best_of", "The whole budget on fresh samples, the best kept", tags={"best-of-n", "search"}, sources=(OURS,),
        scope="Looks at nothing on the way: a search that does should beat it.",
    ),
    run=run,
    world="two_stage",
    exact=exact,
    claims=(Claim(OURS, "by hand", "maximum of a small table", _same_by_hand, 2.0, 1e-12, evidence="derived"),),
    example=dict(problem=xr.Dataset(dict(mu=0.5, tau=1.0, sigma=0.7, omega=0.0)), budget=40.0),
)  # fmt: skip
