"""A runs Dataset told to people and to programs: the same counts, columns, conventions, quarantine and notes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import names, schema
from scalingkit.core import quarantine as aside


def summary(ds: xr.Dataset) -> dict[str, Any]:
    """A runs Dataset in plain JSON values."""
    along = [k for k, v in ds.data_vars.items() if v.dims == (names.RUN,)]
    return {
        "source": ds.attrs.get("source", ""), "data_name": ds.attrs.get("data_name", ""), "sha256": ds.attrs.get("sha256", ""),
        **{k: int(ds.attrs[k]) for k in schema.COUNTS},
        "columns": schema.structure(ds, "columns"),
        "units": {str(k): str(ds[k].attrs.get("units", "1")) for k in along},
        "conventions": {k: ds.attrs[k] for k in ("params_kind", "flops_kind", "flop_per_param_token") if k in ds.attrs},
        "completed": schema.structure(ds, "completed"),
        "ranges": {str(k): _range(ds[k].values) for k in along},
        "labels": {str(k): _counted(c.values) for k, c in ds.coords.items() if c.dims == (names.RUN,) and k != names.RUN},
        "replicates": schema.structure(ds, "replicates"),
        "quarantine": [e._asdict() for e in aside.entries_of(ds)],
        "notes": json.loads(ds.attrs.get("notes", "[]")),
    }  # fmt: skip


def _counted(values: np.ndarray) -> dict[str, Any]:
    labels = sorted({str(v) for v in values})
    return {"count": len(labels), "first": labels[:20]}


def _range(values: np.ndarray) -> list[float] | None:
    good = values[np.isfinite(values)]
    return [float(good.min()), float(good.max())] if good.size else None


def report(ds: xr.Dataset, most: int = 20) -> str:
    """The same in plain text, for people; ``most`` rows of the quarantine."""
    s = summary(ds)
    lines = [
        f"{s['data_name']}: {s['rows_in']} rows in, {s['rows_used']} used, {s['rows_quarantined']} set aside",
        f"conventions: N is {s['conventions'].get('params_kind', 'unknown')}, C is {s['conventions'].get('flops_kind', 'unknown')}",
        "columns:",
    ]
    shown = [k for k in s["units"] if k in s["columns"] or k in s["completed"] or k in names.VARIABLES]
    lines += [f"  {_column_line(k, s)}" for k in shown]
    lines += [
        f"  {k:<10} {v['count']} label(s): {', '.join(x[:40] for x in v['first'][:5])}" for k, v in s["labels"].items()
    ]
    r = s["replicates"]
    if r.get("replicated"):
        lines.append(
            f"replicates: {r['replicated']} of {r['design_points']} design points have several rows ({r['rows_in_replicated']} rows)"
        )
    if s["quarantine"]:
        lines.append("set aside:")
        lines += [f"  {_entry_line(e)}" for e in s["quarantine"][:most]]
        if len(s["quarantine"]) > most:
            lines.append(f"  and {len(s['quarantine']) - most} more (runs.quarantine(ds))")
    if s["notes"]:
        lines.append("notes:")
        lines += [f"  {n['severity']} [{n['code']}] {n['about']}: {n['text']}" for n in s["notes"]]
    return "\n".join(lines)


def _column_line(role: str, s: dict[str, Any]) -> str:
    c, span = s["columns"].get(role), s["ranges"][role]
    where = f"{span[0]:.4g} to {span[1]:.4g} {s['units'][role]}" if span else "no values"
    if c:
        factor = f" x {c['factor']:g}" if c["factor"] != 1 else ""
        return f"{role:<10} {where}, from {c['column']!r}{factor} ({c['found']})"
    made = s["completed"].get(role)
    return f"{role:<10} {where}" + (f", {made['formula']}" if made else "")


def _entry_line(e: dict[str, Any]) -> str:
    where = f" {e['column']!r} = {e['value']!r}" if e["column"] else ""
    label = f" ({e['label']})" if e["label"] != f"row {e['row']}" else ""
    return f"row {e['row']}{label}{where}: {e['code']}: {e['reason']}"
