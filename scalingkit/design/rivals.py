"""Rivals: a ray and a spread design of equal cost, cut from one table of runs, fitted and judged on the other runs.

    ray      n runs in a narrow band of tokens per parameter (TPP), at several sizes: D about k N
    spread   n runs, each of about the cost of its partner on the ray, whatever their TPP
    score    root mean square of log y - log f on runs that neither was fitted to

The band is the narrowest the table offers, give or take (``width``, nats of log TPP, is reported). Both are cut from one
and the same region: the dearest fifth of the runs and the quarter that is farthest from the ray in TPP are kept from both.
The held-out runs are the same for both and are judged by region:

    beyond    dearer than any run that either could have             ("exclusion": beyond or outside; the fair score)
    outside   farther from the ray in TPP than either could have
    off       off the ray, cheap enough, left over by both: the spread may have neighbours there
    on        in the ray's own band, left over by the ray

FLOP as 6 N D. A win is a smaller score. Draws of one table are not independent, so ``win_rate`` treats each table as one
cluster: a beta-binomial over tables, mean rate uniform a priori.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.special import betaln

from scalingkit.core.law import Law
from scalingkit.core.names import FLOP_PER_PARAM_TOKEN, RUN
from scalingkit.design.grids import DesignError
from scalingkit.infer.subsets import Arithmetic, subset_fits

REGIONS = ("exclusion", "beyond", "outside", "off", "on")
DESIGNS = ("ray", "spread")
DEAREST, FARTHEST = 0.8, 0.75  # quantiles of cost and of |log TPP - ray's| from which runs are kept from both
WIDER = 1.5  # bands up to this multiple of the narrowest are used
PARTNER = np.log(1.6)  # a partner's cost is within this factor
TOTAL = 0.1  # the two designs' total costs agree to this, relative
LEAST = 3  # fewest held-out runs that give a score


class Pair(NamedTuple):
    """Two subsets and the regions, as masks over the runs; width of the ray's band, costs."""

    ray: np.ndarray
    spread: np.ndarray
    regions: dict[str, np.ndarray]
    width: float
    cost: tuple[float, float]


def rivals(
    runs: xr.Dataset, law: Law, *, pairs: int = 40, size: int | None = None, seed: int = 0, methods: Sequence[str] = ("huber",),
    arithmetic: Sequence[Arithmetic] = ("float64",), starts: int = 8,
) -> xr.Dataset:  # fmt: skip
    """Scores of ``pairs`` random pairs of equal-cost subsets of ``runs``, fitted with ``law``.

    ``size`` runs in each subset (default: two more than twice the law's parameters). Dims pair, objective, arithmetic,
    region, design. ``rmse``, ``win`` (pair, objective, arithmetic, region; NaN where fewer than three runs are held out),
    ``width`` and ``sd_log_tpp`` (pair, design), ``cost``, ``held_out`` (pair, region).
    Raises DesignError where the table has no ray, or no spread of the same cost.
    """
    size = size or 2 * len(law.params) + 2
    drawn = draw(runs, pairs, size, seed)
    keep = np.stack([m for p in drawn for m in (p.ray, p.spread)])
    y = np.log(runs["loss"].values)
    regions = np.stack([[p.regions[r] for r in REGIONS] for p in drawn])
    rmse = np.full((len(drawn), len(methods), len(arithmetic), len(REGIONS), 2), np.nan)
    for i, method in enumerate(methods):
        for j, a in enumerate(arithmetic):
            fitted = subset_fits(law, runs, keep, method=method, arithmetic=a, starts=starts, seed=seed)
            error = (fitted["log_fitted"].values - y).reshape(len(drawn), 2, -1)
            rmse[:, i, j] = _scores(error, regions)
    return _made(runs, drawn, rmse, methods, arithmetic, law, seed, size)


def draw(runs: xr.Dataset, pairs: int, size: int, seed: int = 0) -> list[Pair]:
    """Random pairs of equal-cost subsets; the same for every law and method with this size and seed."""
    N, D = (np.asarray(runs[k].values, float) for k in ("N", "D"))
    rng = np.random.default_rng(seed)
    tau, cost = np.log(D / N), np.log(FLOP_PER_PARAM_TOKEN * N * D)
    cheap = cost <= np.quantile(cost, DEAREST)
    bands = _bands(tau, np.log(N), cheap, size + LEAST)  # so that the ray leaves some of its band for the score
    found: list[Pair] = []
    for _ in range(20 * pairs):
        if len(found) == pairs:
            break
        pair = _pair(rng, tau, cost, cheap, bands, size)
        found += [pair] if pair is not None else []
    if len(found) < pairs:
        raise DesignError(
            f"only {len(found)} of {pairs} pairs of {size} runs could be cut at equal cost from {tau.size} runs."
        )
    return found


def _bands(tau: np.ndarray, u: np.ndarray, cheap: np.ndarray, size: int) -> list[tuple[float, float]]:
    """The narrowest bands (low, high) of tau with ``size`` cheap runs over at least half the table's spread of sizes."""
    order = np.flatnonzero(cheap)[np.argsort(tau[cheap], kind="stable")]
    least = 0.5 * u[cheap].std()
    found = []
    for i in range(len(order) - size + 1):
        wide = next((j for j in range(i + size, len(order) + 1) if u[order[i:j]].std() >= least), None)
        if wide is not None:
            found.append((tau[order[i]], tau[order[wide - 1]]))
    if not found:
        raise DesignError(f"no band of tokens per parameter holds {size} runs of different sizes.")
    width = np.array([b - a for a, b in found])
    narrow = width <= max(WIDER * width.min(), 0.1)
    return [b for b, ok in zip(found, narrow, strict=True) if ok]


def _pair(
    rng: np.random.Generator, tau: np.ndarray, cost: np.ndarray, cheap: np.ndarray,
    bands: Sequence[tuple[float, float]], size: int,
) -> Pair | None:  # fmt: skip
    low, high = bands[rng.integers(len(bands))]
    inside = (tau >= low) & (tau <= high)
    away = np.abs(tau - (low + high) / 2)
    outside = away > max(np.quantile(away[cheap], FARTHEST), (high - low) / 2 + 1e-9)
    ray = np.zeros(tau.size, bool)
    ray[rng.choice(np.flatnonzero(inside & cheap), size, replace=False)] = True
    spread = _partners(rng, cost, ray, cheap & ~outside & ~inside)
    if spread is None:
        return None
    left = ~(ray | spread)
    regions = {
        "exclusion": (~cheap | outside) & ~inside,
        "beyond": ~cheap & ~inside,
        "outside": outside & cheap & ~inside,
        "off": left & cheap & ~inside & ~outside,
        "on": left & inside & cheap,
    }
    total = [float(np.exp(cost[m]).sum()) for m in (ray, spread)]
    return Pair(ray, spread, regions, float(np.ptp(tau[ray])), (total[0], total[1]))


def _partners(rng: np.random.Generator, cost: np.ndarray, ray: np.ndarray, may: np.ndarray) -> np.ndarray | None:
    """As many runs of ``may``, each of about its partner's cost, with a total within TOTAL; None after 50 tries."""
    wanted = np.exp(cost[ray]).sum()
    for _ in range(50):
        chosen = np.zeros(cost.size, bool)
        for i in rng.permutation(np.flatnonzero(ray)):
            near = np.flatnonzero(may & ~chosen & (np.abs(cost - cost[i]) <= PARTNER))
            if not near.size:
                break
            chosen[rng.choice(near)] = True
        if chosen.sum() == ray.sum() and abs(np.exp(cost[chosen]).sum() / wanted - 1) <= TOTAL:
            return chosen
    return None


def _scores(error: np.ndarray, regions: np.ndarray) -> np.ndarray:
    """rmse (pair, region, design); a fit that ran away scores infinity, a region with too few runs NaN."""
    square = np.where(np.isfinite(error), error, np.inf)[:, None] ** 2  # (pair, 1, design, run)
    count = regions.sum(-1)[..., None]
    total = np.where(regions[:, :, None], square, 0.0).sum(-1)
    return np.where(count >= LEAST, np.sqrt(total / np.maximum(count, 1)), np.nan)


def _made(runs, drawn, rmse, methods, arithmetic, law, seed, size) -> xr.Dataset:
    tau = np.log(runs["D"].values / runs["N"].values)
    with np.errstate(invalid="ignore"):
        win = np.where(np.isnan(rmse).any(-1), np.nan, rmse[..., 1] < rmse[..., 0])
    return xr.Dataset(
        {
            "rmse": (("pair", "objective", "arithmetic", "region", "design"), rmse, {"meaning": "of log loss", "units": "1"}),
            "win": (("pair", "objective", "arithmetic", "region"), win, {"meaning": "1 where the spread's rmse is smaller"}),
            "width": ("pair", [p.width for p in drawn], {"units": "nat", "meaning": "ray: largest minus smallest log TPP"}),
            "sd_log_tpp": (("pair", "design"), [[tau[m].std() for m in p[:2]] for p in drawn], {"units": "nat"}),
            "cost": (("pair", "design"), [p.cost for p in drawn], {"units": "FLOP", "meaning": "6 N D, summed"}),
            "held_out": (("pair", "region"), [[int(p.regions[r].sum()) for r in REGIONS] for p in drawn]),
        },
        coords={"objective": list(methods), "arithmetic": list(arithmetic), "region": list(REGIONS), "design": list(DESIGNS)},
        attrs={"law": law.name, "seed": seed, "size": size, "runs": runs.sizes[RUN], "source": "rivals"},
    )  # fmt: skip


def win_rate(wins: Any, tries: Any, prob: float = 0.9) -> tuple[float, float, float]:
    """Mean rate over clusters (tables) and its interval: wins_t ~ BetaBinomial(tries_t; mean, concentration).

    mean ~ Uniform(0, 1), log concentration ~ Uniform(log 0.5, log 500); by quadrature. More draws of one table narrow
    what is known of that table, not of tables at large. Returns (mean, lower, upper) of the posterior; NaN for nothing.
    """
    k, n = np.asarray(wins, float), np.asarray(tries, float)
    k, n = k[n > 0], n[n > 0]
    if not n.size:
        return (np.nan, np.nan, np.nan)
    mean = (np.arange(400) + 0.5) / 400
    size = np.geomspace(0.5, 500, 60)
    a, b = mean[:, None] * size, (1 - mean[:, None]) * size
    log_p = sum(betaln(ki + a, ni - ki + b) - betaln(a, b) for ki, ni in zip(k, n, strict=True))
    p = np.exp(log_p - np.max(log_p)).sum(1)
    p /= p.sum()
    low, high = np.interp([(1 - prob) / 2, (1 + prob) / 2], p.cumsum(), mean)
    return float(p @ mean), float(low), float(high)
