"""Two stages in closed form: what is a budget worth on normal states, all of it at once or after a look?

    best of N fresh states: mu + sqrt(tau**2 + sigma**2) e_N
    K states, m rewards each, N - K m more of the best mean: mu + tau**2 / sqrt(tau**2 + sigma**2 / m) e_K + sigma e_(N - K m)

theta_s ~ Normal(mu, tau), reward ~ Normal(theta_s, sigma), e_N = E max of N standard normals. Derived in this project.
"""

from __future__ import annotations

import math
from typing import Any

from scalingkit.core.order import normal_score


def best_of_n(N: Any, *, mu: float = 0.0, tau: float, sigma: float) -> Any:
    """E of the best of N rewards, each from a state of its own."""
    return mu + math.hypot(tau, sigma) * normal_score(N)


def staged(N: int, K: int, m: int, *, mu: float = 0.0, tau: float, sigma: float) -> float:
    """E of the best of the N - K m rewards drawn from the state with the best mean of m (the first K m not counted)."""
    left = N - K * m
    if left < 1:
        raise ValueError(f"K m = {K * m} of N = {N} leaves nothing to spend on the chosen state.")
    first = tau**2 / math.sqrt(tau**2 + sigma**2 / m) * normal_score(K) if tau else 0.0
    return float(mu + first + sigma * normal_score(left))


def plan(N: int, *, tau: float, sigma: float, least: int = 1) -> tuple[int, int]:
    """(K, m) that maximise ``staged`` over a grid of powers of sqrt(2), m >= ``least``."""
    steps = [2 ** (i / 2) for i in range(2 * int(math.log2(N)) + 1)]
    pairs = {(round(K), max(least, round(m))) for K in steps for m in steps}
    return max(
        ((K, m) for K, m in sorted(pairs) if K >= 2 and K * m < N),
        key=lambda km: staged(N, *km, tau=tau, sigma=sigma),
        default=(1, 1),
    )


def crossover(mu1: float, s1: float, mu2: float, s2: float) -> float:
    """N where mu1 + s1 e_N = mu2 + s2 e_N: the state of lower mean and wider spread is the better one beyond it.

    inf where there is none.
    """
    if s1 == s2 or (want := (mu1 - mu2) / (s2 - s1)) < 0:
        return math.inf if s1 == s2 or mu1 != mu2 else 1.0
    low, high = 0.0, 1.0
    while normal_score(math.exp(high)) < want:
        high *= 2
        if high > 600:
            return math.inf
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if normal_score(math.exp(middle)) < want else (low, middle)
    return math.exp(high)
