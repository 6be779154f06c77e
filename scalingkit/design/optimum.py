"""Optimum: the size and tokens that make the curve lowest at a cost, for any law with inputs N and D.

    min over log N of f(N, D(N)),   C(N, D(N)) = budget;     at an interior optimum
    d log f / d log N + d log f / d log D * (d log D / d log N)_C = 0

The curve is scanned over log N, the lowest interior valley bracketed and the derivative's zero found by bisection to
rounding: minimising values alone would stop at the square root of it. Where no valley lies inside the window there is
**no interior optimum** and the answer is NaN, never the window's edge. The closed form of the Chinchilla law,
N* = (alpha A / (beta B))**(1/(alpha+beta)) (C/6)**(beta/(alpha+beta)), is the test's oracle, not a special case here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scalingkit.core.law import Law
from scalingkit.core.precision import require_x64
from scalingkit.design.cost import Cost, per_run, slopes, tokens
from scalingkit.design.grids import DesignError
from scalingkit.infer.coordinates import Coordinates
from scalingkit.infer.coordinates import of as coordinates

TPP_WINDOW = (1e-3, 1e6)  # tokens per parameter between which an optimum is looked for by default
_SCAN, _BISECT, _AT_ONCE = 121, 55, 1_000_000


@dataclass(frozen=True)
class Optimum:
    """Arrays (draw, budget): N, D, the curve there, and whether the optimum is interior (else NaN)."""

    N: np.ndarray
    D: np.ndarray
    value: np.ndarray
    interior: np.ndarray


def optimum(
    law: Law, theta: np.ndarray, budgets: np.ndarray, cost: Cost | None = None, at: Mapping[str, Any] | None = None,
    region: tuple[float, float] | None = None,
) -> Optimum:  # fmt: skip
    """The optimum of every draw ``theta`` (S, p, raw parameters) at every budget (B,).

    ``at``: values of the inputs other than N and D; ``region``: sizes N between which to look (default: those from
    1e-3 to 1e6 tokens per parameter). Raises DesignError where the law has no N and D, or ``at`` is incomplete.
    """
    require_x64("an allocation")
    rest = other_inputs(law, at)
    ends = np.stack([window(cost, b, region) for b in budgets])
    per_budget = [_one_budget(law, theta, float(b), cost, rest, e) for b, e in zip(budgets, ends, strict=True)]
    return Optimum(*(np.stack([getattr(o, k) for o in per_budget], -1) for k in ("N", "D", "value", "interior")))


def other_inputs(law: Law, at: Mapping[str, Any] | None) -> dict[str, float]:
    """Values of the inputs besides N and D. Raises DesignError naming what is missing."""
    if absent := [k for k in ("N", "D") if k not in law.inputs]:
        raise DesignError(f"law {law.name!r} has no input {' and no '.join(absent)}: nothing to allocate between.")
    need = [k for k in law.inputs if k not in ("N", "D")]
    at = dict(at or {})
    if missing := [k for k in need if k not in at]:
        said = ", ".join(f"{k}: {law.inputs[k]}" for k in missing)
        raise DesignError(f"law {law.name!r} also takes {said}. Give it by at={{{missing[0]!r}: ...}}.")
    if unknown := [k for k in at if k not in need]:
        raise DesignError(f"at= names {', '.join(unknown)}, which law {law.name!r} does not take; it takes {need}.")
    return {k: float(at[k]) for k in need}


def window(cost: Cost | None, budget: float, region: tuple[float, float] | None) -> np.ndarray:
    """(log N low, log N high) of the search at a budget."""
    if region is not None:
        if not 0 < region[0] < region[1]:
            raise DesignError(f"region = {region} must be two sizes N, the smaller first.")
        return np.log(np.asarray(region, float))
    return np.array([size_at(cost, k, budget) for k in TPP_WINDOW[::-1]])


def size_at(cost: Cost | None, tpp: float, budget: float) -> float:
    """log N of the run at ``tpp`` tokens per parameter that costs ``budget``, by bisection."""
    lo, hi = 0.0, 80.0
    for _ in range(70):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if float(per_run(cost, np.exp(mid), tpp * np.exp(mid))) < budget else (lo, mid)
    return (lo + hi) / 2


def _one_budget(law: Law, theta: np.ndarray, budget: float, cost: Cost | None, rest: dict, ends: np.ndarray) -> Optimum:
    chunk = max(1, _AT_ONCE // _SCAN)
    parts = [_search(law, theta[i : i + chunk], budget, cost, rest, ends) for i in range(0, len(theta), chunk)]
    return Optimum(*(np.concatenate([getattr(p, k) for p in parts]) for k in ("N", "D", "value", "interior")))


def _search(law: Law, theta: np.ndarray, budget: float, cost: Cost | None, rest: dict, ends: np.ndarray) -> Optimum:
    c = coordinates(law)
    other = jnp.asarray([rest[k] for k in law.inputs if k in rest])
    grid = np.linspace(*ends, _SCAN)
    log_d = np.log(tokens(cost, np.exp(grid), budget))
    f = np.asarray(_values(c)(jnp.asarray(theta), jnp.asarray(grid), jnp.asarray(log_d), other))
    lo, hi, interior = _valley(f, grid)
    for _ in range(_BISECT):
        mid = (lo + hi) / 2
        y = np.log(tokens(cost, np.exp(mid), budget))
        g = np.asarray(_slopes(c)(jnp.asarray(theta), jnp.asarray(mid), jnp.asarray(y), other))
        by_size, by_tokens = slopes(cost, np.exp(mid), np.exp(y))
        falling = g[:, 0] - g[:, 1] * by_size / by_tokens < 0
        lo, hi = np.where(falling, mid, lo), np.where(falling, hi, mid)
    N = np.exp((lo + hi) / 2)
    D = tokens(cost, N, budget)
    value = np.asarray(_at(c)(jnp.asarray(theta), jnp.asarray(np.log(N)), jnp.asarray(np.log(D)), other))
    N, D, value = (np.where(interior, a, np.nan) for a in (N, D, value))
    return Optimum(N, D, value, interior)


def _valley(f: np.ndarray, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bracket of the lowest point of f (S, G), and whether it is interior: a valley, and lower than both ends."""
    usable = np.where(np.isfinite(f), f, np.inf)
    i = np.argmin(usable, -1)
    last = grid.size - 1
    best = np.take_along_axis(usable, i[:, None], 1)[:, 0]
    # finite neighbours on both sides: the edge of what the cost allows is an edge too
    j = np.clip(i, 1, last - 1)
    sides = np.stack([usable[np.arange(len(f)), j - 1], usable[np.arange(len(f)), j + 1]])
    interior = (i > 0) & (i < last) & np.isfinite(best) & np.all(np.isfinite(sides), 0) & np.any(sides > best, 0)
    return grid[j - 1], grid[j + 1], interior


def place(law: Law, log_n: Any, log_d: Any, other: Any) -> list[Any]:
    """The law's inputs in its order, from log N, log D and the rest."""
    rest = iter(range(len(law.inputs)))
    return [jnp.exp(log_n) if k == "N" else jnp.exp(log_d) if k == "D" else other[next(rest)] for k in law.inputs]


def _curve(c: Coordinates) -> Any:
    return lambda theta, x, y, other: c.law.curve(*place(c.law, x, y, other), *theta)


@lru_cache(maxsize=128)
def _values(c: Coordinates) -> Any:
    return jax.jit(jax.vmap(jax.vmap(_curve(c), (None, 0, 0, None)), (0, None, None, None)))


@lru_cache(maxsize=128)
def _at(c: Coordinates) -> Any:
    return jax.jit(jax.vmap(_curve(c), (0, 0, 0, None)))


@lru_cache(maxsize=128)
def _slopes(c: Coordinates) -> Any:
    def log_curve(xy: jax.Array, theta: jax.Array, other: jax.Array) -> jax.Array:
        return jnp.log(_curve(c)(theta, xy[0], xy[1], other))

    return jax.jit(jax.vmap(lambda t, x, y, o: jax.grad(log_curve)(jnp.stack([x, y]), t, o), (0, 0, 0, None)))
