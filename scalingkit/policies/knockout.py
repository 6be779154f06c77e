"""Knockout: N candidates in a random bracket, each match the majority of K comparisons, the last one standing is taken.

    q(K) = P(Bin(K, p_c) > K/2) + P(Bin(K, p_c) = K/2) / 2            an even K is worth no more than K - 1
    a_0 = p_g,   a_(k+1) = a_k**2 + 2 a_k (1 - a_k) q,   P(fail) = 1 - a_r          N = 2**r, exact
    P(fail) <= (1 - p_g)**N + ceil(log2 N) exp(-2 K (p_c - 1/2)**2)
    near a = 1:  P(fail) ~ N**(log2(2 (1 - q)))

The bound is the source's; the recursion and the exponent are derived here. Other N: the bracket is split as evenly as
it goes, subtrees are independent. The slope is reached late when q is near 1/2: never fit it to small N. Averaged over
problems of different p_g and p_c the curve falls more slowly than any one of them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.policy import Policy
from scalingkit.core.world import generator

SOURCE = Source("knockout2024", "Provable scaling laws of test-time compute: knockout and league (as summarised)")


def majority(p_c: Any, K: int) -> Any:
    """q(K), ties broken by chance."""
    p = np.asarray(p_c, float)
    more = stats.binom.sf(K // 2, K, p)
    return (more + 0.5 * stats.binom.pmf(K // 2, K, p) if K % 2 == 0 else more)[()]


def exact_failure(p_g: float, p_c: float, N: int, K: int) -> float:
    """P(the winner is wrong)."""
    win = np.array([[0.5, p_c], [1 - p_c, 0.5]])
    return float(winner(np.array([p_g, 1 - p_g]), win, N, K)[1])


def bound(p_g: float, p_c: float, N: int, K: int) -> float:
    """The source's bound on P(fail), for p_c > 1/2; it may exceed 1."""
    return (1 - p_g) ** N + math.ceil(math.log2(N)) * math.exp(-2 * K * (p_c - 0.5) ** 2) if N > 1 else 1 - p_g


def exponent(q: float) -> float:
    """Slope of log P(fail) in log N for large N: log2(2 (1 - q)); nought at q = 1/2."""
    return math.log2(2 * (1 - q))


def winner(p: np.ndarray, win: np.ndarray, N: int, K: int) -> np.ndarray:
    """Distribution over types of the winner among N independent candidates."""
    q = majority(win, K)

    @lru_cache(None)
    def of(n: int) -> Any:
        if n == 1:
            return np.asarray(p, float)
        a, b = of(n - n // 2), of(n // 2)
        both = a * (q @ b) + b * (q @ a)
        return both / both.sum()  # it is 1 but for rounding, which 300 rounds would double 300 times

    return of(int(N))


def affordable(budget: float, K: int) -> int:
    """Largest N with N + K (N - 1) <= budget calls: every candidate and every comparison is one."""
    return max(1, int((budget + K) // (1 + K)))


def plan(budget: float, p: np.ndarray, win: np.ndarray, good: np.ndarray) -> tuple[int, int]:
    """(N, K) of least failure within the budget, K odd."""
    odd = range(1, max(2, int(budget)), 2)
    return max(
        ((affordable(budget, K), K) for K in odd if K == 1 or affordable(budget, K) > 1),
        key=lambda nk: float(winner(p, win, *nk) @ good),
    )


def run(key: Any, problem: xr.Dataset, budget: float, *, N: int | None = None, K: int = 3) -> xr.Dataset:
    """One knockout on a problem of types (worlds.compared_answers.problem).

    N  candidates; default: as many as the budget pays for. Raises ValueError for a plan that the budget does not pay.

    ``value`` 1 where the winner is right; ``spent`` calls; ``N``.
    """
    rng, n = generator(key), affordable(budget, K) if N is None else int(N)
    if n + K * (n - 1) > budget:
        raise ValueError(f"N = {n} and K = {K} take {n + K * (n - 1)} calls; the budget is {budget:g}.")
    win, p = problem["win"].values, problem["p"].values
    champion = _bracket(rng, rng.choice(p.size, n, p=p).tolist(), win, K)
    value = float(problem["good"].values[champion])
    return xr.Dataset(dict(value=value, spent=float(n + K * (n - 1)), N=n))


def _bracket(rng: Any, kinds: list[int], win: np.ndarray, K: int) -> int:
    if len(kinds) == 1:
        return kinds[0]
    half = len(kinds) - len(kinds) // 2
    a, b = _bracket(rng, kinds[:half], win, K), _bracket(rng, kinds[half:], win, K)
    won = rng.binomial(K, win[a, b])
    return a if won * 2 > K or (won * 2 == K and rng.random() < 0.5) else b


def exact(problem: xr.Dataset, budget: float, *, N: int | None = None, K: int = 3) -> float:
    """P(the winner is right)."""
    n = affordable(budget, K) if N is None else N
    return float(winner(problem["p"].values, problem["win"].values, n, K) @ problem["good"].values)


def _two(p_g: float, p_c: float) -> xr.Dataset:
    return xr.Dataset(
        dict(
            p=("level", [p_g, 1 - p_g]),
            win=(("level", "versus"), [[0.5, p_c], [1 - p_c, 0.5]]),
            good=("level", [1.0, 0.0]),
        )
    )


def _slope(_: Policy) -> float:
    """Local slope of the exact failure at N = 2**60, q = .7 (K = 1)."""
    a, b = (exact_failure(0.3, 0.7, 2**r, 1) for r in (60, 61))
    return math.log2(b / a)


policy = Policy(
    card=Card(
        "knockout",
        "Random bracket of N candidates, majority of K comparisons a match",
        tags={"best-of-n", "comparison", "test-time"},
        sources=(SOURCE, OURS),
        scope="Matches independent and p_c the same for every pair; a judge with p_c < 1/2 makes it fail for every N.",
    ),
    run=run,
    world="compared_answers",
    exact=exact,
    claims=(
        Claim(OURS, "recursion", "log2(2 (1 - .7)), exact recursion at N = 2**60", _slope, -0.73697, 1e-5, "derived"),
    ),
    example=dict(problem=_two(0.4, 0.75), budget=60.0),
)
