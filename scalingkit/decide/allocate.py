"""Allocate: how large a model, on how many tokens, for a budget: per posterior draw, so that the answer has a width.

    (N*, D*) = argmin f(N, D)  subject to  C(N, D) = budget            for every draw, budget and group

The answer is a distribution. It also says how often there is no interior optimum at all (a law such as Farseer's can
have none at some draws), and how far the budget lies beyond the runs the law was fitted on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.law import Law
from scalingkit.core.names import BUDGET, CHAIN, DRAW, FLOP_PER_PARAM_TOKEN, unit
from scalingkit.core.notes import Note, dump
from scalingkit.design.cost import Cost, per_run, words
from scalingkit.design.cost import unit as cost_unit
from scalingkit.design.evidence import Evidence, read
from scalingkit.design.grids import DesignError
from scalingkit.design.optimum import TPP_WINDOW, optimum

FAR = 10.0  # budgets this many times the largest run's cost are noted as beyond the runs
MANY = 0.05  # share of draws without an interior optimum that is worth a note


def allocate(
    source: Any, *, budget: Any, cost: Cost | None = None, flop_per_param_token: float = FLOP_PER_PARAM_TOKEN,
    law: Law | str | None = None, runs: xr.Dataset | None = None, at: Mapping[str, Any] | None = None,
    region: tuple[float, float] | None = None, prob: float = 0.9,
) -> xr.Dataset:  # fmt: skip
    """Compute-optimal size and tokens at one or more budgets.

    source   a posterior DataTree, or parameter values (mapping or Dataset) with ``law=``
    budget   FLOP (or the unit of ``cost``), one or several
    cost     a function cost(N, D) of one's own, growing in both; default 6 N D (``flop_per_param_token``)
    at       inputs of the law besides N and D, e.g. {"U": 1e11}
    region   (low, high) of sizes N to look in; default: 0.001 to a million tokens per parameter

    Returns ``N``, ``D``, ``loss`` (the law's output), ``tokens_per_param`` and ``interior`` with dims (chain, draw,
    groups..., budget), NaN where a draw has no interior optimum; ``<name>_interval`` (quantile: lower, median,
    upper of ``prob``); ``no_interior`` (share of such draws); ``extrapolation`` (budget over the largest run's cost),
    ``extrapolation_N`` and ``extrapolation_D`` (median optimum over the largest run's). attrs["notes"] flags budgets
    beyond the runs and missing optima. Raises DesignError, CostError.
    """
    found = read(source, runs, law=law)
    if found.draws is None:
        raise DesignError("allocate needs parameter values: a posterior from fit, or a mapping of values with law=...")
    budgets = _budgets(budget)
    rate = flop_per_param_token if cost is None else cost
    out = _optima(found, budgets, rate, at, region)
    out = _summary(out, found.law.output, prob)
    out = _reach(out, found, budgets, rate)
    out.attrs |= {
        "law": found.law.name, "cost": words(rate), "prob": prob, "source": "allocate",
        "at": ", ".join(f"{k} = {v:g}" for k, v in (at or {}).items()),
    }  # fmt: skip
    out.attrs["notes"] = dump(_notes(out, found.law))
    return out


def _optima(found: Evidence, budgets: np.ndarray, cost: Cost, at: Any, region: Any) -> xr.Dataset:
    assert found.draws is not None
    names = list(found.law.params)
    arrays = xr.broadcast(*(found.draws[k] for k in names))
    first = [d for d in (CHAIN, DRAW) if d in arrays[0].dims]
    arrays = [a.transpose(*first, ...) for a in arrays]
    dims, shape = arrays[0].dims, arrays[0].shape
    best = optimum(found.law, np.stack([a.values.ravel() for a in arrays], -1), budgets, cost, at, region)
    coords = {d: arrays[0][d] for d in dims if d in arrays[0].coords} | {
        BUDGET: (BUDGET, budgets, {"units": cost_unit(cost)})
    }

    def named(values: np.ndarray, units: str, meaning: str) -> xr.DataArray:
        return xr.DataArray(
            values.reshape(*shape, budgets.size), coords, (*dims, BUDGET), attrs={"units": units, "meaning": meaning}
        )

    return xr.Dataset(
        {
            "N": named(best.N, unit("N"), "compute-optimal size"),
            "D": named(best.D, unit("D"), "compute-optimal training tokens"),
            found.law.output: named(best.value, unit(found.law.output), f"{found.law.output} at the optimum"),
            "tokens_per_param": named(best.D / best.N, "token/parameter", "D/N at the optimum"),
            "interior": named(best.interior, "1", "whether the draw has an interior optimum"),
        }
    )


def _summary(out: xr.Dataset, output: str, prob: float) -> xr.Dataset:
    if not 0 < prob < 1:
        raise DesignError(f"prob = {prob:g} must lie between 0 and 1.")
    over = [d for d in (CHAIN, DRAW) if d in out.dims]
    levels = [(1 - prob) / 2, 0.5, (1 + prob) / 2]
    some = out["interior"].any(over)
    for k in ("N", "D", output, "tokens_per_param"):
        # a budget at which no draw has an optimum is NaN, without a warning about empty slices
        values = out[k].where(some, 0.0)
        q = values.quantile(levels, over, skipna=True, keep_attrs=True).where(some)
        out[f"{k}_interval"] = q.assign_coords(quantile=["lower", "median", "upper"]).transpose(..., "quantile")
    share = 1 - out["interior"].mean(over)
    return out.assign(no_interior=share.assign_attrs(units="1", meaning="share of draws without an interior optimum"))


def _reach(out: xr.Dataset, found: Evidence, budgets: np.ndarray, cost: Cost) -> xr.Dataset:
    if found.runs is None or any(k not in found.runs for k in ("N", "D")):
        return out
    N, D = found.runs["N"].values, found.runs["D"].values
    largest = per_run(cost, N, D).max()
    attrs = {"units": "1", "meaning": "budget over the cost of the most expensive run"}
    out["extrapolation"] = (BUDGET, budgets / largest, attrs)
    for k, v in (("N", N), ("D", D)):
        about = {"units": "1", "meaning": f"median optimal {k} over the largest {k} among the runs"}
        out[f"extrapolation_{k}"] = (out[f"{k}_interval"].sel(quantile="median", drop=True) / v.max()).assign_attrs(
            about
        )
    return out


def _notes(out: xr.Dataset, law: Law) -> list[Note]:
    notes = []
    for i, b in enumerate(out[BUDGET].values):
        share = float(out["no_interior"].isel({BUDGET: i}).max())
        if share > MANY:
            text = (
                f"{share:.0%} of the draws have no interior optimum between {TPP_WINDOW[0]:g} and {TPP_WINDOW[1]:g} "
                "tokens per parameter; the interval is over the others only."
            )
            notes.append(Note("no-interior-optimum", "error" if share > 0.5 else "warning", f"budget {b:.3g}", text))
        far = float(out["extrapolation"][i]) if "extrapolation" in out else 0.0
        if far > FAR:
            text = (
                f"the budget is {far:,.0f} times the largest run's cost; the interval assumes that the law holds there."
            )
            notes.append(Note("beyond-runs", "warning", f"budget {b:.3g}", text))
    return notes


def _budgets(budget: Any) -> np.ndarray:
    b = np.atleast_1d(np.asarray(budget, float))
    if b.ndim > 1 or not b.size or not np.all(np.isfinite(b) & (b > 0)):
        raise DesignError(f"budget = {budget!r} must be positive finite numbers.")
    return b
