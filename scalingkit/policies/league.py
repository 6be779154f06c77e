"""League: each of N candidates meets K random others; the one with the best mean win rate is taken.

    mu = W P,   Delta = min of mu over the strong set - max of mu over the wrong ones
    P(fail) <= (1 - p_cs)**N + 2 N exp(-K Delta**2 / 8) + 2 N exp(-(N - 1) Delta**2 / 8)

p_cs is the mass of answers that are right and strong. No pair needs p_c > 1/2: a right answer that loses to one kind
of wrong answer may still have the better record, where a knockout fails for every N. The bound is the source's and is
empty at sizes people run (168 where the failure is .00025): both are reported.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.policy import Policy
from scalingkit.core.world import generator

SOURCE = Source("knockout2024", "Provable scaling laws of test-time compute: knockout and league (as summarised)")


def gap(problem: xr.Dataset) -> tuple[float, float]:
    """(Delta, p_cs) with the strong set all right answers whose mean win rate tops every wrong answer's.

    Delta <= 0 where no right answer does: the league is then not promised to work.
    """
    p, good = problem["p"].values, problem["good"].values > 0
    mu = problem["win"].values @ p
    worst = mu[~good].max(initial=-np.inf)
    strong = good & (mu > worst)
    if not strong.any():
        return float(mu[good].max(initial=-np.inf) - worst), 0.0
    return float(mu[strong].min() - worst), float(p[strong].sum())


def bound(problem: xr.Dataset, N: int, K: int) -> float:
    """The source's bound on P(fail); it may exceed 1. inf where Delta <= 0."""
    delta, mass = gap(problem)
    if delta <= 0:
        return math.inf
    tail = math.exp(-K * delta**2 / 8) + math.exp(-(N - 1) * delta**2 / 8)
    return (1 - mass) ** N + 2 * N * tail


def affordable(budget: float, K: int) -> int:
    """Largest N with N (1 + K) <= budget calls, two at least to have an opponent."""
    return max(1, int(budget // (1 + K)))


def run(key: Any, problem: xr.Dataset, budget: float, *, N: int | None = None, K: int = 8) -> xr.Dataset:
    """One league on a problem of types (worlds.compared_answers.problem); ties for the best record by chance.

    ``value`` 1 where the winner is right; ``spent`` calls; ``N``. A budget below two candidates buys one, unjudged.
    Raises ValueError for a plan that the budget does not pay.
    """
    rng, n = generator(key), affordable(budget, K) if N is None else int(N)
    spent = n * (1 + K) if n > 1 else 1
    if spent > budget:
        raise ValueError(f"N = {n} and K = {K} take {spent} calls; the budget is {budget:g}.")
    p, win = problem["p"].values, problem["win"].values
    kinds = rng.choice(p.size, n, p=p)
    best = int(rng.choice(np.flatnonzero((r := records(rng, kinds, win, K)) == r.max()))) if n > 1 else 0
    return xr.Dataset(dict(value=float(problem["good"].values[kinds[best]]), spent=float(spent), N=n))


def records(rng: Any, kinds: np.ndarray, win: np.ndarray, K: int) -> np.ndarray:
    """Wins of each candidate in K matches against others drawn with replacement."""
    n = kinds.size
    other = rng.integers(0, n - 1, (n, K))
    other += other >= np.arange(n)[:, None]
    return (rng.random((n, K)) < win[kinds[:, None], kinds[other]]).sum(1)


def _example() -> xr.Dataset:
    """Three types: right; wrong and beaten; wrong and a little beaten."""
    win = [[0.5, 0.8, 0.7], [0.2, 0.5, 0.4], [0.3, 0.6, 0.5]]
    return xr.Dataset(
        dict(p=("level", [0.3, 0.3, 0.4]), win=(("level", "versus"), win), good=("level", [1.0, 0.0, 0.0]))
    )


def _vacuous(_: Policy) -> float:
    """The bound where 64 candidates with 64 matches hardly ever fail."""
    win = [[0.5, 0.73, 0.73], [0.27, 0.5, 0.5], [0.27, 0.5, 0.5]]
    p = xr.Dataset(dict(p=("level", [0.2, 0.2, 0.6]), win=(("level", "versus"), win), good=("level", [1.0, 0.0, 0.0])))
    return bound(p, 64, 64)


policy = Policy(
    card=Card(
        "league",
        "Each of N candidates meets K others; the best record is taken",
        tags={"best-of-n", "comparison", "test-time"},
        sources=(SOURCE, OURS),
        scope="Needs the mean win rates ordered, not every pair; its bound says nothing at usual sizes.",
    ),
    run=run,
    world="compared_answers",
    claims=(
        Claim(OURS, "example", "gap of the example: .67 - .47", lambda p: gap(_example())[0], 0.2, 1e-12, "derived"),
        Claim(OURS, "by hand", "bound at N = K = 64, Delta = .23", _vacuous, 168.2, 0.05, "derived"),
    ),
    example=dict(problem=_example(), budget=90.0),
)
