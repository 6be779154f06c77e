"""From any table to a runs Dataset. Each step sets rows aside with a reason; none drops one.

frame -> column roles -> numbers with units -> screens -> N, D, C completed -> repeats -> Dataset
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr

from scalingkit.core import cells, layout, names, roles, schema, steps, tables
from scalingkit.core.errors import RunsError, hint, listed
from scalingkit.core.quarantine import Quarantine, said
from scalingkit.core.work import Options, Reading


def read(
    source: Any,
    *,
    columns: Mapping[str, str | None] | None = None,
    units: Mapping[str, object] | None = None,
    params_kind: str | None = None,
    flops_kind: str | None = None,
    dedupe: bool = True,
    checkpoints: Literal["last", "all"] = "last",
    diverged: bool | float = True,
    unit_jump: bool = True,
    group: str | Sequence[str] | Mapping[str, str] | None = None,
    extras: bool | Sequence[str] = True,
    vocab: float | None = None,
    name: str | None = None,
    decimal: Literal[".", ","] = ".",
    encoding: str = "utf-8-sig",
    flop_per_param_token: float = names.FLOP_PER_PARAM_TOKEN,
) -> xr.Dataset:
    """A table of training runs as a runs Dataset (dim run): rows_in == rows_used + rows_quarantined.

    source       path (CSV, TSV, JSON, JSON lines, Parquet, netCDF, a Weights & Biases export; also .gz), pandas or
                 polars frame, xarray Dataset, mapping of arrays, list of records
    columns      role -> header, where names do not tell ({"N": "Model Size"}; None: use no column). Any other role
                 ({"score": "MMLU"}) becomes a variable that must be finite. The precedence is in core/roles.py.
    units        role or header -> what one is worth: 1e9, "B", "T", "1e21", "PF-days", "bits", "perplexity"
    params_kind  "non-embedding", "total", "active", "unknown": which parameters N counts; chooses among columns
    flops_kind   "6ND", "exact", "reported", "unknown": how C was counted
    dedupe       set aside rows that equal an earlier one in every column
    checkpoints  "last": only the last checkpoint of a run is used; "all": all, with the coordinate ``trajectory``
    diverged     True: the rule of screen.diverged; a number: the loss above which a run diverged; False: no rule
    unit_jump    set aside rows that stand more than 5000-fold off from their column, or off 6ND by 1000-fold
    group        more columns that are labels: "optimizer", ["optimizer", "lr"] or {"optimizer": "config.opt"}
    extras       keep the other columns: True, False, or a list of headers; they are not screened
    vocab        size of the vocabulary, where no column has it (diverged rule, total parameters)
    decimal      "," where 2,31 means 2.31
    A runs Dataset (or a .nc file that ``write`` made) comes back as it is, if nothing else is asked.
    Raises RunsError, and nothing else, for a table or a request that cannot be read without guessing.
    """
    asked = {k: v for k, v in locals().items() if k != "source" and v != DEFAULTS[k]}
    source = tables.dataset_of(source)
    if isinstance(source, xr.Dataset) and schema.is_runs(source):
        if not asked:
            return schema.validate(source)
        before = int(source.attrs["rows_quarantined"])
    else:
        before = 0
    if checkpoints not in ("last", "all"):
        raise RunsError(f"checkpoints={checkpoints!r} is neither 'last' nor 'all'.")
    if decimal not in (".", ","):
        raise RunsError(f"decimal={decimal!r} is neither '.' nor ','.")
    options = Options(
        dict(columns or {}), dict(units or {}), schema.kind(params_kind, names.PARAMS_KINDS, "params_kind"),
        schema.kind(flops_kind, names.FLOPS_KINDS, "flops_kind"), dedupe, checkpoints, diverged, unit_jump,
        _groups(group), extras, vocab, decimal, float(flop_per_param_token),
    )  # fmt: skip
    table = tables.load(source, encoding)
    table.name = name or table.name
    r = _start(table, options)
    if before:
        r.note(
            "rows-quarantined", "warning", "runs", f"{before} row(s) were set aside before and are not in this reading."
        )
    for step in steps.ORDER:
        step(r)
    _some_left(r)
    return layout.dataset(r)


DEFAULTS = {k: p.default for k, p in inspect.signature(read).parameters.items() if k != "source"}


def _groups(group: str | Sequence[str] | Mapping[str, str] | None) -> dict[str, str]:
    if isinstance(group, Mapping):
        return dict(group)
    return {g: g for g in ([group] if isinstance(group, str) else group or [])}


def _start(table: tables.Table, options: Options) -> Reading:
    headers = list(table.frame.columns)
    if not len(table.frame):
        raise RunsError(f"{table.name}: the table has no rows (columns: {listed(headers) or 'none'}).")
    if text := tables.chart_export(headers):
        raise RunsError(f"{table.name}: {text}")
    for label, header in options.group.items():
        if header not in headers:
            raise RunsError(f"group: the table has no column {header!r} (for {label}).{hint(header, headers)}")
    columns = roles.resolve(
        headers, options.columns, options.units, options.params_kind, options.flops_kind,
        lambda header, role: cells.could_be_numbers(table.frame[header], role),
    )  # fmt: skip
    reserved = ("chain", "draw", "quarantined", *(r for r in schema.RESERVED if r.startswith("quarantine_")))
    if bad := sorted(set(reserved) & {*options.columns, *options.group}):
        raise RunsError(f"{listed(bad)} is a name the house keeps for itself: call the column something else.")
    _agree(columns, "N", options.params_kind, "params_kind")
    _agree(columns, "C", options.flops_kind, "flops_kind")
    _something(table, columns)
    labels = {k: cells.labels(table.frame[columns[k].header]) for k in (*roles.LABELS, "run") if k in columns}
    labels |= {k: cells.labels(table.frame[h]) for k, h in options.group.items()}
    n = len(table.frame)
    own = labels.pop("run", np.full(n, "", dtype=object))
    shown = [v or f"row {i}" for i, v in enumerate(own)]
    r = Reading(table, options, columns, Quarantine(shown), labels=labels)
    r.said["own"] = own
    return r


def _agree(columns: Mapping[str, roles.Column], role: str, asked: str | None, option: str) -> None:
    column = columns.get(role)
    if column and column.kind and asked and asked != column.kind:
        raise RunsError(
            f"{option}={asked!r}, but the header {column.header!r} of {role} says {column.kind}. Give the column that "
            f"is {asked} (columns={{{role!r}: ...}}), or leave {option} out."
        )


def _something(table: tables.Table, columns: Mapping[str, roles.Column]) -> None:
    known = [c for c in columns if c not in (*roles.LABELS, *roles.HELPERS)]
    shape = {"d_model", "n_layers"} <= set(columns)
    if not known and not shape:
        raise RunsError(
            f"{table.name}: no column is known as N, D, C or loss among {listed(table.frame.columns)}. "
            f"Name them: columns={{'N': ..., 'D': ..., 'loss': ...}}, or {{'x': ..., 'y': ...}} for a curve."
        )


def _some_left(r: Reading) -> None:
    if r.alive.any():
        return
    q = sorted(r.quarantine.entries)
    first = "; ".join(f"row {e.row}, column {e.column!r}, {e.value!r}: {e.reason}" for e in q[:3])
    raise RunsError(f"{r.table.name}: none of the {len(q)} rows can be used: {said(r.quarantine.counts())}. {first}.")
