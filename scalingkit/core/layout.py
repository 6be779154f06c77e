"""From a screened table to the Dataset: variables, labels, run names, the other columns, attrs and notes."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.core import cells, names, repeats, roles, schema
from scalingkit.core.errors import RunsError, hint, listed
from scalingkit.core.notes import dump
from scalingkit.core.steps import is_row_number, loss_unit
from scalingkit.core.work import NONE, OUTCOMES, Reading, checked

OPEN = ("crashed", "failed", "running", "killed", "pending", "preempted")


def dataset(r: Reading) -> xr.Dataset:
    keep = r.alive
    _last_notes(r)
    numbers = [k for k in dict.fromkeys(("N", "D", "U", "C", *checked(r))) if k in r.values]
    data = {k: schema.variable(k, r.values[k][keep], loss_unit(r, k)) for k in numbers}
    if "step" in r.values and np.isfinite(r.values["step"][keep]).all():
        data["step"] = schema.variable("step", r.values["step"][keep], "step", "training step of the checkpoint")
    coords = {k: (names.RUN, schema.text(v if v else NONE for v in values[keep])) for k, values in r.labels.items()}
    coords["run"] = (names.RUN, schema.text(_run_labels(r)[keep]))
    for name, values, header in _extras(r, {*data, *coords, *schema.RESERVED, *names.VARIABLES}):
        if values.dtype == np.float64:
            data[name] = schema.variable(name, values[keep], "1", f"column {header!r}, as read")
        else:
            coords[name] = (names.RUN, schema.text(values[keep]))
    ds = xr.Dataset({**data, **r.quarantine.variables()}, coords=coords)
    ds.attrs = _attrs(r, ds)
    return ds


def _last_notes(r: Reading) -> None:
    n, aside = len(r.alive), int((~r.alive).sum())
    if aside:
        counts = ", ".join(f"{c} {k}" for k, c in r.quarantine.counts().items())
        r.note("rows-quarantined", "warning", "runs", f"{aside} of {n} rows set aside: {counts}.")
    if not {*OUTCOMES} & set(r.values) and not [
        k for k in r.columns if k not in names.VARIABLES and k in r.values and k not in roles.HELPERS
    ]:
        r.note("no-outcome", "warning", "loss", "no column is known as the loss; name one: columns={'loss': ...}.")
    for k, values in r.labels.items():
        if (none := values[r.alive] == "").any():
            r.note("label-missing", "warning", k, f"{int(none.sum())} row(s) have no {k}; they are called {NONE!r}.")
    for header in r.table.frame.columns:
        if roles.header(header).tail in ("state", "status"):
            states = np.char.lower(cells.labels(r.table.frame[header]).astype(str))
            rows = [r.quarantine.labels[i] for i in np.flatnonzero(np.isin(states, OPEN) & r.alive)]
            if rows:
                r.note("unfinished-runs", "warning", header, f"{len(rows)} run(s) did not finish: {listed(rows, 5)}.")


def _run_labels(r: Reading) -> np.ndarray:
    step = r.values.get("step")
    seed = r.labels.get("seed")
    suffix = []
    for i in range(len(r.alive)):
        parts = [f"seed {seed[i]}"] if seed is not None and seed[i] else []
        parts += [f"step {step[i]:.10g}"] if step is not None and np.isfinite(step[i]) else []
        suffix.append(", ".join(parts))
    out = np.array(r.quarantine.labels, dtype=object)
    rows = np.flatnonzero(r.alive)
    out[rows] = repeats.unique_labels([r.quarantine.labels[i] for i in rows], [suffix[i] for i in rows])
    return out


def _extras(r: Reading, taken: set[str]) -> list[tuple[str, np.ndarray, str]]:
    """The other columns: numbers where every cell that is there is one, else text; named so that files can hold them."""
    headers = list(r.table.frame.columns)
    if isinstance(r.options.extras, bool):
        wanted = headers if r.options.extras else []
    else:
        wanted = list(r.options.extras)
        for header in wanted:
            if header not in headers:
                raise RunsError(f"extras: the table has no column {header!r}.{hint(header, headers)}")
    used = {
        c.header
        for k, c in r.columns.items()
        if k not in roles.HELPERS or k == "run" or (k == "step" and "step" in taken)
    }
    used |= set(r.options.group.values())
    out = []
    for header in wanted:
        if header in used or is_row_number(header, r.table.frame[header]):
            continue
        name = re.sub(r"[/\x00-\x1f]+", ".", header).strip().strip(".") or "column"
        while name in taken:
            name += "_column"
        taken.add(name)
        out.append((name, _plain(r.table.frame[header], r.options.decimal), header))
    return out


def _plain(column: pd.Series, decimal: str) -> np.ndarray:
    parsed = cells.parse(column, "", 1.0, decimal) if cells.starts_with_number(column) else None
    if parsed is not None and not np.isin(parsed.code, ("unparsable", "diverged")).any():
        return parsed.values
    return cells.labels(column)


def _attrs(r: Reading, ds: xr.Dataset) -> dict[str, str | int | float]:
    design = {k: ds[k].values for k in ("N", "D", "x") if k in ds} or {k: ds[k].values for k in ("C",) if k in ds}
    design |= {k: ds[k].values for k in r.labels if k not in ("seed", "trajectory")}
    completed = {k: {"formula": f, "rows": int((m & r.alive).sum())} for k, (f, m) in r.said["completed"].items()}
    attrs: dict[str, str | int | float] = {
        "source": r.table.source, "data_name": r.table.name, "sha256": r.table.sha256,
        "params_kind": r.said["params_kind"], "flops_kind": r.said["flops_kind"],
        "rows_in": len(r.alive), "rows_used": int(r.alive.sum()), "rows_quarantined": int((~r.alive).sum()),
        "columns": json.dumps({k: c.said() for k, c in r.columns.items()}),
        "completed": json.dumps(completed), "replicates": json.dumps(repeats.replicates(design)),
        "flop_per_param_token": r.options.k, "notes": dump(r.notes),
    }  # fmt: skip
    if r.said.get("ratio"):
        attrs["compute_ratio"] = json.dumps(r.said["ratio"])
    if "diverged_rule" in r.said:
        attrs["diverged_rule"] = r.said["diverged_rule"]
    return attrs
