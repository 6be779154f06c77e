"""What a run costs: a number of FLOP per parameter and token, or a function of one's own.

C(N, D) = k N D,  k = 6 by default;    D(C, N): the tokens that use up C at size N
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scalingkit.core.names import FLOP_PER_PARAM_TOKEN

Cost = float | Callable[[Any, Any], Any]
_LOG_TOKENS = (0.0, 230.0)  # the bracket in which tokens are looked for: 1 to 1e100


class CostError(ValueError):
    """A cost model that gives no usable cost, or a budget that no run meets."""


def per_run(cost: Cost | None, N: Any, D: Any) -> np.ndarray:
    """Cost of each run, elementwise; FLOP for a number, the function's own unit otherwise.

    Raises CostError where a cost is not a positive finite number.
    """
    N, D = np.broadcast_arrays(np.asarray(N, float), np.asarray(D, float))
    c = cost(N, D) if callable(cost) else _coefficient(cost) * N * D
    c = np.broadcast_to(np.asarray(c, float), N.shape)
    if not np.all(np.isfinite(c) & (c > 0)):
        i = int(np.flatnonzero(~(np.isfinite(c) & (c > 0)).ravel())[0])
        where = f"N = {N.ravel()[i]:.3g}, D = {D.ravel()[i]:.3g}"
        raise CostError(f"the cost at {where} is {c.ravel()[i]:.3g}: a cost must be positive and finite.")
    return c


def tokens(cost: Cost | None, N: Any, budget: Any) -> np.ndarray:
    """D with C(N, D) = budget, elementwise: closed form for a number, bisection in log D for a function.

    The function must grow with D. NaN where no D between 1 and 1e100 costs the budget (a fixed cost above it).
    """
    N, budget = np.broadcast_arrays(np.asarray(N, float), np.asarray(budget, float))
    if not callable(cost):
        return budget / (_coefficient(cost) * N)
    lo, hi = (np.full(N.shape, b) for b in _LOG_TOKENS)
    possible = (per_run(cost, N, np.exp(lo)) <= budget) & (budget <= per_run(cost, N, np.exp(hi)))
    for _ in range(64):
        mid = (lo + hi) / 2
        below = per_run(cost, N, np.exp(mid)) < budget
        lo, hi = np.where(below, mid, lo), np.where(below, hi, mid)
    return np.where(possible, np.exp((lo + hi) / 2), np.nan)


def slopes(cost: Cost | None, N: Any, D: Any, step: float = 1e-5) -> tuple[np.ndarray, np.ndarray]:
    """(d log C / d log N, d log C / d log D): exactly (1, 1) for a number, central differences for a function."""
    N, D = np.broadcast_arrays(np.asarray(N, float), np.asarray(D, float))
    if not callable(cost):
        return np.ones(N.shape), np.ones(N.shape)
    up, down = np.exp(step), np.exp(-step)
    by_size = np.log(per_run(cost, N * up, D) / per_run(cost, N * down, D)) / (2 * step)
    by_tokens = np.log(per_run(cost, N, D * up) / per_run(cost, N, D * down)) / (2 * step)
    return by_size, by_tokens


def unit(cost: Cost | None) -> str:
    """ "FLOP" for a number, "cost" for a function of one's own."""
    return "cost" if callable(cost) else "FLOP"


def words(cost: Cost | None) -> str:
    """The cost model in words, for attrs."""
    if callable(cost):
        return f"user function {getattr(cost, '__name__', type(cost).__name__)}"
    return f"{_coefficient(cost):g} N D"


def _coefficient(cost: float | None) -> float:
    k = FLOP_PER_PARAM_TOKEN if cost is None else float(cost)
    if not np.isfinite(k) or k <= 0:
        raise CostError(f"cost = {k:g} FLOP per parameter and token must be positive.")
    return k
