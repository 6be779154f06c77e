"""Slices: bands of the curve along one input with the runs moved onto it, or every run against what is replicated.

held    each other input at a quantile of the group's own runs
moved   y_i f(slice) / f(own inputs), f the median curve; the difference is added where something is not positive
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.names import CHAIN, DRAW, GROUP, RUN
from scalingkit.infer.model import Model
from scalingkit.infer.predict import predict

MOST_RUNS, MOST_DRAWS, STEPS = 400, 800, 31
PADDED = 6  # groups are predicted in this many rows, so that choosing another group compiles nothing
POINT = "x_point"


class Seen:
    """A tree read for chosen groups. ``labels``: group dim -> the label of each group."""

    def __init__(self, tree: xr.DataTree, model: Model | None, outcome: str, labels: Mapping[str, list[str]]) -> None:
        self.tree, self.model, self.outcome, self.labels = tree, model, outcome, labels

    @cached_property
    def data(self) -> xr.Dataset:
        return self.tree["constant_data"].to_dataset() if "constant_data" in self.tree.children else xr.Dataset()

    @cached_property
    def y(self) -> np.ndarray:
        return self.tree["observed_data"].dataset[self.outcome].values.ravel().astype(float)

    @cached_property
    def group(self) -> np.ndarray:
        """For each run the index of its group, -1 for a group not chosen or not known."""
        if not self.labels:
            return np.zeros(self.y.size, int)
        if not all(d in self.data.variables for d in self.labels):
            return np.full(self.y.size, -1)
        place = {names: i for i, names in enumerate(zip(*self.labels.values(), strict=True))}
        rows = zip(*(self.data[d].values.astype(str) for d in self.labels), strict=True)
        return np.array([place.get(r, -1) for r in rows])

    @cached_property
    def some(self) -> np.ndarray:
        """At most MOST_RUNS of the runs of the chosen groups; of all where nobody says which run is whose."""
        known = self.group >= 0
        mine = np.flatnonzero(known if known.any() else np.ones(self.y.size, bool))
        return mine[_evenly(mine.size, MOST_RUNS)]

    @cached_property
    def small(self) -> xr.DataTree:
        """The posterior alone, evenly thinned, with the attributes ``predict`` reads."""
        post = self.tree["posterior"].to_dataset()
        keep = _evenly(post.sizes[DRAW], max(1, MOST_DRAWS // post.sizes.get(CHAIN, 1)))
        thin = xr.DataTree.from_dict({"/posterior": post.isel({DRAW: keep})})
        thin.attrs = self.tree.attrs
        return thin

    def predicted(self, design: xr.Dataset, kind: str = "mean") -> np.ndarray:
        """(sample, *dims of the design's inputs)."""
        assert self.model is not None
        made = predict(self.small, design, model=self.model, kind=kind)  # type: ignore[arg-type]
        v = next(iter(made.data_vars.values()))
        return v.values.reshape(-1, *v.shape[2:])

    def runs(self, **columns: Any) -> xr.Dataset:
        """Columns of the runs that are shown, with their labels."""
        names = self.tree["observed_data"].dataset.coords
        label = names[RUN].values.astype(str)[self.some] if RUN in names else self.some.astype(str)
        made = {f"run_{k}": (RUN, v) for k, v in {**columns, "group": self.group[self.some]}.items()}
        return xr.Dataset(made, coords={"run_label": (RUN, label)})


def _evenly(n: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int)) if n else np.zeros(0, int)


def replicated(seen: Seen, quantiles: list[float]) -> xr.Dataset:
    """run_x: the replicated median; run_y: what was observed; run_lower, run_upper; empty where nothing is replicated."""
    if not {"posterior_predictive", "observed_data"} <= set(seen.tree.children):
        return xr.Dataset({f"run_{k}": (RUN, np.zeros(0)) for k in ("x", "y", "lower", "upper", "group")})
    v = seen.tree["posterior_predictive"].dataset[seen.outcome]
    flat = v.transpose(CHAIN, DRAW, ...).values.reshape(v.sizes[CHAIN] * v.sizes[DRAW], -1)
    low, mid, high = np.quantile(flat[_evenly(len(flat), MOST_DRAWS)][:, seen.some], quantiles, axis=0)
    return seen.runs(x=mid, y=seen.y[seen.some], lower=low, upper=high)


def sliced(seen: Seen, along: str, level: float, reach: float, quantiles: list[float]) -> xr.Dataset:
    """x, band and outcome (group, x_point[, bound]) and the runs; ``held`` (group, input) is where the others stand."""
    model = seen.model
    assert model is not None
    groups = len(next(iter(seen.labels.values()), [""]))
    own = [{x: seen.data[x].values[seen.group == g] for x in model.law.inputs} for g in range(groups)]
    others = [x for x in model.law.inputs if x != along]
    held = {x: np.array([np.quantile(o[x], level) for o in own]) for x in others}
    x = np.stack([_axis(o[along], reach) for o in own])
    row = np.minimum(np.arange(max(groups, PADDED if seen.labels else 1)), groups - 1)
    labels = {d: (GROUP, np.array(v)[row]) for d, v in seen.labels.items()}
    design = xr.Dataset(
        {along: ((GROUP, POINT), x[row])} | {k: (GROUP, v[row]) for k, v in held.items()}, coords=labels
    )
    band = _quantiles(seen.predicted(design)[:, :groups], quantiles)
    out = xr.Dataset({"x": ((GROUP, POINT), x), "band": band})
    out["x"].attrs["last"] = json.dumps([float(o[along].max()) for o in own])
    if others:
        out["held"] = ((GROUP, "input"), np.stack([held[k] for k in others], 1))
        out = out.assign_coords(input=others)
    if model.outcome != model.law.output:  # counts and the like are not on the curve's scale
        return out
    if not model.likelihood.needs():
        out["outcome"] = _quantiles(seen.predicted(design, "outcome")[:, :groups], quantiles)
    return out.merge(_moved(seen, held, along))


def _quantiles(v: np.ndarray, at: list[float]) -> xr.DataArray:
    return xr.DataArray(np.moveaxis(np.quantile(v, at, axis=0), 0, -1), dims=(GROUP, POINT, "bound"))


def _axis(seen: np.ndarray, reach: float) -> np.ndarray:
    low, high = float(seen.min()), float(seen.max())
    if low > 0:
        return np.exp(np.linspace(math.log(low), math.log(high * reach), STEPS))
    return np.linspace(low, high + (reach - 1) * (high - low), STEPS)


def _moved(seen: Seen, held: Mapping[str, np.ndarray], along: str) -> xr.Dataset:
    assert seen.model is not None
    shown = seen.some.size
    fill = np.full(min(seen.y.size, MOST_RUNS) - shown, seen.some[0])  # one size of table, whatever is chosen
    at = np.concatenate([seen.some, fill])
    mine = seen.data.isel({RUN: at}).drop_vars(RUN, errors="ignore")
    inputs = {k: (RUN, mine[k].values) for k in seen.model.law.inputs}
    labels = {d: (RUN, mine[d].values) for d in seen.labels}
    there = {k: (RUN, v[seen.group[at]]) for k, v in held.items()}
    designs = (xr.Dataset(d, coords=labels) for d in (inputs, inputs | there))
    old, new = (np.median(seen.predicted(d), axis=0)[:shown] for d in designs)
    y = seen.y[seen.some]
    positive = min(y.min(), old.min(), new.min()) > 0
    return seen.runs(x=mine[along].values[:shown], y=y * new / old if positive else y + new - old, seen=y)
