"""prepare: a runs Dataset as the arrays a model needs, checked, in float64 NumPy, before JAX sees them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import xarray as xr

from scalingkit.core.names import RUN
from scalingkit.infer import pivot
from scalingkit.infer.likelihoods import DataError
from scalingkit.infer.pooling import Nested, covariates

if TYPE_CHECKING:
    from scalingkit.infer.model import Model


@dataclass(frozen=True)
class Meta:
    """What is static about a table: its sizes decide what is compiled; labels and centres only travel along."""

    runs: int
    sizes: tuple[tuple[str, int], ...]
    observed: bool
    labels: dict[str, tuple[str, ...]] = field(compare=False, repr=False)
    centres: dict[str, float] = field(compare=False, repr=False)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["inputs", "log_pivots", "y", "codes", "parents", "covariates", "columns"],
    meta_fields=["meta"],
)
@dataclass(frozen=True)
class Data:
    """inputs (run), divided by their pivots; log_pivots; y (run) or None; codes dim -> group number (run);
    parents inner dim -> number of the outer group; covariates "dim:column" -> standardised (group); columns of the
    likelihood (run)."""

    inputs: dict[str, Any]
    log_pivots: dict[str, Any]
    y: Any
    codes: dict[str, Any]
    parents: dict[str, Any]
    covariates: dict[str, Any]
    columns: dict[str, Any]
    meta: Meta

    @property
    def sizes(self) -> dict[str, int]:
        return dict(self.meta.sizes)


def prepare(model: Model, runs: xr.Dataset, observed: bool = True) -> Data:
    """Arrays for ``model`` from ``runs`` (dim run). Never writes into ``runs``.

    Raises DataError naming the column and row where an input, outcome or group is missing, NaN, or not positive where
    the law takes its logarithm.
    """
    if RUN not in runs.dims or runs.sizes[RUN] == 0:
        raise DataError(f"the runs have no rows along the dim {RUN!r}: there is nothing to fit.")
    law, likelihood = model.law, model.likelihood
    outcome = likelihood.outcome(law.output)
    inputs = {x: numbers(runs, x) for x in law.inputs}
    y = numbers(runs, outcome) if observed else None
    for x in {x for x, _ in law.scales.values()}:
        _positive(runs, x, inputs[x])
    logs = pivot.pivots(law, inputs)
    get = lambda name: numbers(runs, outcome if name is None else name)  # noqa: E731
    centres = likelihood.centres(get)
    columns = likelihood.columns(get, centres)
    if observed and (found := likelihood.check(y, columns)):
        text, row = found.rsplit("|", 1)
        raise DataError(f"run {_label(runs, int(row))!r}: {text}.")
    labels, codes = _groups(model, runs)
    z, moments = _covariates(model, runs, labels, codes)
    return Data(
        inputs={x: v / np.exp(logs[x]) if x in logs else v for x, v in inputs.items()},
        log_pivots={x: np.asarray(v) for x, v in logs.items()},
        y=y,
        codes=codes,
        parents=_parents(model, labels, codes),
        covariates=z,
        columns=columns,
        meta=Meta(
            runs=runs.sizes[RUN],
            sizes=tuple((d, len(v)) for d, v in labels.items()),
            observed=observed,
            labels=labels,
            centres={**centres, **moments},
        ),
    )


def numbers(runs: xr.Dataset, name: str) -> np.ndarray:
    """Column ``name`` as finite float64 (run)."""
    if name not in runs:
        raise DataError(f"the runs have no column {name!r}. {_have(name, runs)}")
    if runs[name].dims != (RUN,):
        raise DataError(f"column {name!r} has dims {runs[name].dims}; it must have the one dim {RUN!r}.")
    try:
        values = np.asarray(runs[name].values).astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"column {name!r} is not numeric: its first value is {runs[name].values[0]!r}.") from None
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(
            f"run {_label(runs, bad[0])!r}: {name} is {values[bad[0]]} (and so in {bad.size} of {values.size} runs). "
            "Quarantine such rows first (scalingkit.runs does), or drop them: none is dropped silently here."
        )
    return values


def _groups(model: Model, runs: xr.Dataset) -> tuple[dict[str, tuple[str, ...]], dict[str, np.ndarray]]:
    labels, codes = {}, {}
    for dim in model.group_columns:
        if dim not in runs.coords and dim not in runs:
            raise DataError(f"the model pools over {dim!r}, but the runs have no such column. {_have(dim, runs)}")
        column = np.asarray(runs[dim].values)
        missing = [i for i, v in enumerate(column) if v is None or v != v or str(v) == ""]
        if missing:
            raise DataError(f"run {_label(runs, missing[0])!r} has no {dim}: label it, or leave the run out.")
        found, code = np.unique(column.astype(str), return_inverse=True)
        labels[dim], codes[dim] = tuple(str(v) for v in found), code.astype(np.int32)
    return labels, codes


def _parents(model: Model, labels: dict[str, tuple[str, ...]], codes: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = {}
    for outer, inner in (p.dims_ for p in model.pools.values() if isinstance(p, Nested)):
        first = np.zeros(len(labels[inner]), np.int32)
        first[codes[inner]] = codes[outer]
        clash = np.flatnonzero(first[codes[inner]] != codes[outer])
        if clash.size:
            name = labels[inner][codes[inner][clash[0]]]
            raise DataError(
                f"{inner} {name!r} occurs in more than one {outer}, so {inner} is not nested in it. Make the labels "
                f"unique ('{outer}/{inner}'), or use Crossed({outer!r}, {inner!r})."
            )
        found[inner] = first
    return found


def _covariates(
    model: Model, runs: xr.Dataset, labels: Any, codes: Any
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    values, moments = {}, {}
    for dim, name in sorted(covariates(tuple(model.pools.values()))):
        per_run = numbers(runs, name)
        per_group = np.zeros(len(labels[dim]))
        per_group[codes[dim]] = per_run
        clash = np.flatnonzero(per_group[codes[dim]] != per_run)
        if clash.size:
            group = labels[dim][codes[dim][clash[0]]]
            raise DataError(
                f"covariate {name!r} differs within {dim} {group!r}; it must be constant within each group."
            )
        mean, sd = float(per_group.mean()), float(per_group.std())
        if sd == 0:
            raise DataError(f"covariate {name!r} is the same ({mean}) in every {dim}: nothing can be regressed on it.")
        values[f"{dim}:{name}"] = (per_group - mean) / sd
        moments |= {f"{dim}:{name}:mean": mean, f"{dim}:{name}:sd": sd}
    return values, moments


def _positive(runs: xr.Dataset, name: str, values: np.ndarray) -> None:
    bad = np.flatnonzero(values <= 0)
    if bad.size:
        raise DataError(f"run {_label(runs, bad[0])!r}: {name} is {values[bad[0]]:g}; the law needs it positive.")


def _label(runs: xr.Dataset, row: int) -> str:
    return str(runs[RUN].values[row]) if RUN in runs.coords else f"row {row}"


def _have(name: str, runs: xr.Dataset) -> str:
    names = [str(k) for k in runs.variables if runs[k].dims == (RUN,) and k != RUN]
    close = difflib.get_close_matches(name, names, 1)
    return f"Did you mean {close[0]!r}?" if close else f"It has {', '.join(sorted(names))}."
