"""Region: where runs may be placed, and designs drawn or laid out in it at a given cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from scalingkit.core.law import Law
from scalingkit.design.cost import Cost, CostError, per_run
from scalingkit.design.grids import DesignError
from scalingkit.design.optimum import size_at

TPP = (1.0, 1000.0)


@dataclass(frozen=True)
class Region:
    """``N`` and ``tpp``: (low, high) of the size and of tokens per parameter; ``at``: the law's other inputs."""

    N: tuple[float, float]
    tpp: tuple[float, float] = TPP
    at: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for k in ("N", "tpp"):
            lo, hi = getattr(self, k)
            if not 0 < lo < hi < np.inf:
                raise DesignError(f"region {k} = ({lo:g}, {hi:g}) must be two positive numbers, the smaller first.")

    def inputs(self, law: Law, log_n: np.ndarray, log_tpp: np.ndarray) -> np.ndarray:
        """The law's inputs (..., K) at sizes and TPP given by their logs."""
        log_n, log_tpp = np.broadcast_arrays(log_n, log_tpp)
        made = {"N": np.exp(log_n), "D": np.exp(log_n + log_tpp)}
        made |= {k: np.full(log_n.shape, v) for k, v in self.at.items()}
        return np.stack([made[k] for k in law.inputs], -1)

    def cheapest(self, cost: Cost | None) -> float:
        """Cost of the cheapest run of the region."""
        return float(per_run(cost, self.N[0], self.N[0] * self.tpp[0]))


def default(law: Law, x: np.ndarray | None, budget: float, cost: Cost | None, at: Mapping[str, float]) -> Region:
    """From the smallest run so far (or a thousandth of what the budget buys) up to what the budget buys."""
    names = list(law.inputs)
    largest = np.exp(size_at(cost, TPP[0], budget))
    smallest = largest / 1000 if x is None else x[:, names.index("N")].min()
    if smallest >= largest:
        raise CostError(
            f"the budget {budget:.3g} does not buy one run at the smallest size so far ({smallest:.3g}): raise it, or "
            "give region=Region(N=(low, high))."
        )
    return Region((float(smallest), float(largest)), TPP, at)


def random_designs(
    region: Region, law: Law, count: int, budget: float, cost: Cost | None, many: int, seed: int
) -> np.ndarray:
    """(many, count, K) designs of equal cost: shares of the budget ~ Dirichlet(1), log TPP uniform, inside the region.

    Fewer runs than ``count`` where the budget does not buy that many in the region; the whole budget is spent but for
    what the region's upper end cuts off.
    """
    rng = np.random.default_rng(seed)
    count = affordable(region, count, budget, cost)
    least = region.cheapest(cost)
    shares = rng.dirichlet(np.ones(count), many) * (budget - count * least) + least
    tpp = np.exp(rng.uniform(*np.log(region.tpp), (many, count)))
    log_n = np.clip(sizes(cost, tpp, shares), *np.log(region.N))
    # a run pushed up to the smallest size keeps its cost by fewer tokens
    over = per_run(cost, np.exp(log_n), tpp * np.exp(log_n)) > shares * (1 + 1e-9)
    log_tpp = np.where(over, np.log(shares / per_run(cost, np.exp(log_n), np.exp(log_n))), np.log(tpp))
    return region.inputs(law, log_n, np.clip(log_tpp, *np.log(region.tpp)))


def grid_design(region: Region, law: Law, count: int, budget: float, cost: Cost | None) -> np.ndarray:
    """(count, K): equal shares of the budget, TPP log-evenly over the region: an iso-FLOP sweep."""
    count = affordable(region, count, budget, cost)
    tpp = np.geomspace(*region.tpp, count) if count > 1 else np.array([np.sqrt(np.prod(region.tpp))])
    log_n = np.clip(sizes(cost, tpp, np.full(count, budget / count)), *np.log(region.N))
    return region.inputs(law, log_n, np.log(tpp))


def sizes(cost: Cost | None, tpp: np.ndarray, budget: np.ndarray) -> np.ndarray:
    """log N (elementwise) of runs at these TPP that cost these budgets."""
    if not callable(cost):
        return np.log(budget / per_run(cost, 1.0, 1.0) / tpp) / 2
    lo, hi = np.zeros(tpp.shape), np.full(tpp.shape, 80.0)
    for _ in range(60):
        mid = (lo + hi) / 2
        below = per_run(cost, np.exp(mid), tpp * np.exp(mid)) < budget
        lo, hi = np.where(below, mid, lo), np.where(below, hi, mid)
    return (lo + hi) / 2


def affordable(region: Region, count: int, budget: float, cost: Cost | None) -> int:
    """How many of ``count`` runs the budget buys at all. Raises CostError where not even one."""
    most = int(budget / region.cheapest(cost) * (1 + 1e-9))
    if most < 1:
        raise CostError(
            f"the budget {budget:.3g} does not buy the cheapest run of the region ({region.cheapest(cost):.3g}): raise "
            "it, or let the region start lower."
        )
    return min(count, most)
