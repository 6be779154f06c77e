"""Suggest: the runs to add that make a chosen number best known, for a budget; or the least budget that does.

    minimise over X: V(X), the expected posterior variance of the target (see ``preposterior``),
    subject to the sum of the runs' costs <= budget, at most ``count`` runs, all inside the region

Greedy choice from a grid at several ways of sharing the budget, exchange of single runs, then continuous refinement
(SLSQP with exact gradients) of the best of these and of a few random designs. Sequential use: train the runs, append
them with ``grids.extend``, ask again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import minimize

from scalingkit.core.law import Law
from scalingkit.core.names import RUN
from scalingkit.core.precision import require_x64
from scalingkit.design import region as regions
from scalingkit.design.cost import Cost, per_run, slopes, words
from scalingkit.design.cost import unit as cost_unit
from scalingkit.design.evidence import Evidence, labels, of_group, read
from scalingkit.design.grids import DesignError, design
from scalingkit.design.information import inputs, pivot_array
from scalingkit.design.preposterior import Preposterior, preposterior
from scalingkit.design.region import Region
from scalingkit.design.state import State, at_values, from_prior, mode, posterior
from scalingkit.design.targets import Target, target
from scalingkit.infer.coordinates import of as coordinates

_GRID = (28, 20)  # sizes by TPP of the candidates
_SHARES = (1.0, 2.0, 4.0)  # the dearest run may take this many equal shares of the budget
_RANDOM = 64
_USUAL = {"N": 1e9, "D": 2e10}


def suggest(
    source: Any, runs: xr.Dataset | None = None, *, target: Any, budget: float, count: int = 4, goal: float | None = None,
    cost: Cost | None = None, region: Region | None = None, method: str = "design", draws: int = 64,
    theta: Any = None, noise: float | None = None, law: Law | str | None = None, group: dict[str, Any] | None = None,
    seed: int = 0,
) -> xr.Dataset:  # fmt: skip
    """The runs to add, as a runs Dataset ordered by cost.

    source   a posterior DataTree, a Model, or a Law (with ``runs``; with neither, the prior is averaged over)
    target   Loss(N, D), Size(budget), a parameter's name, or a function of the parameters (see ``targets``)
    budget   what the new runs may cost together, in the unit of ``cost`` (default 6 N D, FLOP)
    count    at most so many runs
    goal     the sd wanted of the target (relative, for losses and sizes): the cheapest runs that reach it are given,
             within ``budget``
    region   Region(N=(low, high), tpp=(low, high), at={...}); default: from the smallest run so far to what the budget
             buys, 1 to 1000 tokens per parameter
    method   "design", or the baselines "grid" (iso-FLOP sweep) and "random" (the best of 100)
    theta    parameter values to judge at, for a design without outcomes; ``group``: which group of a pooled posterior

    Besides N, D, C: ``sd_now``, ``sd_after`` (expected sd of the target), ``drop`` (factor by which the sd would be
    larger without the run). Raises DesignError, CostError, PrecisionError.
    """
    require_x64("a design")
    wanted = _target(target)
    found, state = _start(read(source, runs, law=law, noise=noise), theta, group)
    x = None if found.runs is None else inputs(found.law, found.runs)
    region = region or regions.default(found.law, x, budget, cost, _others(found, x))
    judge = preposterior(found, state, wanted, draws)
    if goal is not None:
        chosen = _cheapest(judge, region, budget, cost, count, method, seed, goal)
    else:
        chosen = _search(judge, region, budget, cost, count, method, seed)
    return _answer(judge, chosen, found, wanted, cost, budget, method)


def expected_sd(
    source: Any, runs: xr.Dataset | None = None, *, target: Any, draws: int = 64, theta: Any = None,
    noise: float | None = None, law: Law | str | None = None, group: dict[str, Any] | None = None,
) -> float:  # fmt: skip
    """sd of the target (relative, for losses and sizes) that the runs leave, as ``suggest`` judges it. Arguments as there."""
    require_x64("an expected sd")
    found, state = _start(read(source, runs, law=law, noise=noise), theta, group)
    return float(np.sqrt(preposterior(found, state, _target(target), draws).now()))


def _target(said: Any) -> Target:
    return target(said)


def _start(found: Evidence, theta: Any, group: dict[str, Any] | None) -> tuple[Evidence, State]:
    """One group's evidence, and the state of knowledge in it."""
    if found.groups:
        combos = labels(found)
        if group is None and len(combos) > 1:
            raise DesignError(f"the posterior has {len(combos)} groups; name one: group={combos[0]!r}.")
        label = group or combos[0]
        if {k: str(v) for k, v in label.items()} not in [{k: str(v) for k, v in c.items()} for c in combos]:
            raise DesignError(f"no group {label!r}; the first is {combos[0]!r}.")
        found = of_group(found, label)
    c = coordinates(found.law)
    if found.runs is None:
        # no runs: the prior of a coefficient is that of its term at a pivot, here a usual small run
        usual = {k: np.array([_USUAL.get(found.law.alike.get(k, k), 1.0)]) for k in found.law.inputs}
        pivots = np.array([c.pivots(usual)[k] for k in found.law.inputs])
        return found, posterior(found, pivots) if found.draws is not None else from_prior(found, pivots)
    pivots = pivot_array(c, inputs(found.law, found.runs))
    if found.draws is not None:
        return found, posterior(found, pivots)
    return found, at_values(found, theta) if theta is not None else mode(found, pivots)


def _others(found: Evidence, x: np.ndarray | None) -> dict[str, float]:
    """Inputs besides N and D: the median of the runs'."""
    names = list(found.law.inputs)
    if absent := [k for k in ("N", "D") if k not in names]:
        raise DesignError(f"law {found.law.name!r} has no input {' and no '.join(absent)}: runs are placed by N and D.")
    rest = [k for k in names if k not in ("N", "D")]
    if rest and x is None:
        raise DesignError(
            f"law {found.law.name!r} also takes {', '.join(rest)}: give region=Region(N=..., at={{...}})."
        )
    return {k: float(np.median(x[:, names.index(k)])) for k in rest if x is not None}


def _search(
    judge: Preposterior, region: Region, budget: float, cost: Cost | None, count: int, method: str, seed: int
) -> np.ndarray:
    """Inputs (m, K) of the design by one of the methods."""
    if count < 1:
        raise DesignError(f"count = {count} must be at least 1.")
    law = judge.law
    if method == "grid":
        return regions.grid_design(region, law, count, budget, cost)
    if method == "random":
        designs = regions.random_designs(region, law, count, budget, cost, 100, seed)
        return designs[np.argmin(judge.variances(designs))]
    if method != "design":
        raise DesignError(f"method {method!r} is not one of 'design', 'grid', 'random'.")
    return _designed(judge, region, budget, cost, count, seed)


def _designed(
    judge: Preposterior, region: Region, budget: float, cost: Cost | None, count: int, seed: int
) -> np.ndarray:
    law = judge.law
    count = regions.affordable(region, count, budget, cost)
    at = _candidates(region, law)
    price = _price(law, at, cost)
    fits = price <= budget * (1 + 1e-9)
    at, price = at[fits], price[fits]
    R = judge.rows(at)
    starts = [at[_exchange(judge, R, price, budget, _greedy(judge, R, price, budget, count, s))] for s in _SHARES]
    designs = regions.random_designs(region, law, count, budget, cost, _RANDOM, seed + 1)
    starts += [designs[np.argmin(judge.variances(designs))]]
    refined = [_refine(judge, region, budget, cost, x) for x in starts]
    return min([*starts, *refined], key=judge.variance)


def _candidates(region: Region, law: Law) -> np.ndarray:
    n, k = np.meshgrid(
        np.linspace(*np.log(region.N), _GRID[0]), np.linspace(*np.log(region.tpp), _GRID[1]), indexing="ij"
    )
    return region.inputs(law, n.ravel(), k.ravel())


def _price(law: Law, x: np.ndarray, cost: Cost | None) -> np.ndarray:
    names = list(law.inputs)
    return per_run(cost, x[..., names.index("N")], x[..., names.index("D")])


def _greedy(
    judge: Preposterior, R: np.ndarray, price: np.ndarray, budget: float, count: int, share: float
) -> list[int]:
    """Indices of candidates, one after another, none dearer than ``share`` equal shares of what is left."""
    cov = np.linalg.inv(judge.precision)
    chosen: list[int] = []
    left = budget
    for i in range(count):
        allowed = np.flatnonzero(price <= min(left, left * share / (count - i)) * (1 + 1e-9))
        if not allowed.size:
            break
        gain, C = _gains(judge, cov, R)
        k = int(allowed[np.argmax(gain[allowed])])
        chosen.append(k)
        left -= price[k]
        one = C[:, k]
        cov = cov - one[:, :, None] * one[:, None, :] / (1 + np.sum(one * R[:, k], -1))[:, None, None]
    return chosen or [int(np.argmin(price))]


def _gains(judge: Preposterior, cov: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fall of V by each candidate (m,), and Cov r (S, m, p)."""
    C = R @ cov
    moved = np.einsum("smp,sp->sm", C, judge.g)
    return np.mean(moved**2 / (1 + np.sum(C * R, -1)), 0), C


def _exchange(
    judge: Preposterior, R: np.ndarray, price: np.ndarray, budget: float, chosen: list[int], rounds: int = 2
) -> list[int]:
    """Each run in turn replaced by the candidate that helps most within the budget, while that helps."""
    chosen = list(chosen)
    for _ in range(rounds):
        before = list(chosen)
        for i in range(len(chosen)):
            rest = chosen[:i] + chosen[i + 1 :]
            P = judge.precision + np.swapaxes(R[:, rest], -1, -2) @ R[:, rest]
            gain, _ = _gains(judge, np.linalg.inv(P), R)
            allowed = np.flatnonzero(price <= (budget - price[rest].sum()) * (1 + 1e-9))
            if allowed.size:
                chosen[i] = int(allowed[np.argmax(gain[allowed])])
        if chosen == before:
            break
    return chosen


def _refine(judge: Preposterior, region: Region, budget: float, cost: Cost | None, x: np.ndarray) -> np.ndarray:
    """SLSQP over (log N, log TPP) of every run, from ``x`` (m, K); the start where nothing better is found."""
    law = judge.law
    names = list(law.inputs)
    n, d = names.index("N"), names.index("D")
    m = len(x)
    start = np.r_[np.log(x[:, n]), np.log(x[:, d] / x[:, n])]
    bounds = [tuple(np.log(region.N))] * m + [tuple(np.log(region.tpp))] * m

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = judge.slope(np.log(region.inputs(law, z[:m], z[m:])))
        return value, np.r_[slope[:, n] + slope[:, d], slope[:, d]]

    def spare(z: np.ndarray) -> float:
        return float(-np.log(per_run(cost, np.exp(z[:m]), np.exp(z[:m] + z[m:])).sum() / budget))

    def spare_slope(z: np.ndarray) -> np.ndarray:
        N, D = np.exp(z[:m]), np.exp(z[:m] + z[m:])
        c = per_run(cost, N, D)
        by_size, by_tokens = slopes(cost, N, D)
        return -np.r_[c * (by_size + by_tokens), c * by_tokens] / c.sum()

    found = minimize(
        objective, np.clip(start, *np.array(bounds).T), jac=True, bounds=bounds, method="SLSQP",
        constraints={"type": "ineq", "fun": spare, "jac": spare_slope}, options={"maxiter": 80, "ftol": 1e-7},
    )  # fmt: skip
    z = np.clip(found.x, *np.array(bounds).T)
    if not np.all(np.isfinite(z)) or spare(z) < -1e-9:
        z = _shrunk(z, m, region, budget, cost) if np.all(np.isfinite(z)) else start
    return region.inputs(law, z[:m], z[m:])


def _shrunk(z: np.ndarray, m: int, region: Region, budget: float, cost: Cost | None) -> np.ndarray:
    """The same design with all sizes lowered until the budget is kept (SLSQP may overstep by its tolerance)."""
    lo, hi = 0.0, float(np.ptp(np.log(region.N)))
    low = np.log(region.N[0])
    for _ in range(50):
        mid = (lo + hi) / 2
        log_n = np.maximum(z[:m] - mid, low)
        over = per_run(cost, np.exp(log_n), np.exp(log_n + z[m:])).sum() > budget
        lo, hi = (mid, hi) if over else (lo, mid)
    return np.r_[np.maximum(z[:m] - hi, low), z[m:]]


def _cheapest(
    judge: Preposterior,
    region: Region,
    budget: float,
    cost: Cost | None,
    count: int,
    method: str,
    seed: int,
    goal: float,
) -> np.ndarray:
    """The design of the least budget whose expected sd reaches ``goal``, to 5% of the budget."""
    best = _search(judge, region, budget, cost, count, method, seed)
    if goal <= 0 or np.sqrt(judge.variance(best)) > goal:
        raise DesignError(
            f"an sd of {goal:g} is out of reach: {len(best)} runs for {budget:.3g} bring it from "
            f"{np.sqrt(judge.now()):.3g} to {np.sqrt(judge.variance(best)):.3g}. Raise budget, count or goal."
        )
    lo, hi = np.log(region.cheapest(cost)), np.log(budget)
    while hi - lo > 0.05:
        mid = (lo + hi) / 2
        made = _search(judge, region, float(np.exp(mid)), cost, count, method, seed)
        if np.sqrt(judge.variance(made)) <= goal:
            best, hi = made, mid
        else:
            lo = mid
    return best


def _answer(
    judge: Preposterior, x: np.ndarray, found: Evidence, wanted: Target, cost: Cost | None, budget: float, method: str
) -> xr.Dataset:
    law = found.law
    x = x[np.argsort(_price(law, x, cost), kind="stable")]
    columns = {k: x[:, i] for i, k in enumerate(law.inputs)}
    out = design(columns.pop("N"), columns.pop("D"), name="suggested", cost=cost, **columns)
    out["C"].attrs["units"] = cost_unit(cost)
    now, after = np.sqrt(judge.now()), np.sqrt(judge.variance(x))
    without = [np.sqrt(judge.variance(np.delete(x, i, 0))) if len(x) > 1 else now for i in range(len(x))]
    about = {"units": "1", "meaning": f"expected sd of {wanted}"}
    out = out.assign(
        drop=(RUN, np.array(without) / after, {"meaning": "factor by which that sd grows without this run"}),
        sd_now=((), now, about),
        sd_after=((), after, about),
    )
    spent = float(_price(law, x, cost).sum())
    out.attrs |= {
        "target": str(wanted), "method": method, "budget": budget, "spent": spent, "cost": words(cost), "law": law.name,
        "unusable_draws": judge.lost,
        "text": f"{len(x)} runs for {spent:.3g} {cost_unit(cost)} bring the sd of {wanted} from {now:.3g} to {after:.3g}.",
    }  # fmt: skip
    return out
