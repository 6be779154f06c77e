"""Run tables: read any, check it, keep account of every row.

    read(source) -> Dataset (dim run)      make(N=..., D=..., loss=...)      concat([a, b])      select(ds, mask, reason)
    validate(ds)   report(ds)   quarantine(ds)   to_frame(ds)   write(ds, path)   check(source)

The schema is in core/schema.py, the steps in core/reading.py, the precedence of column names in core/roles.py, units in
core/units.py and the screening rules in core/screen.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.core import names, notes, schema
from scalingkit.core import quarantine as aside
from scalingkit.core.errors import RunsError, hint, listed
from scalingkit.core.reading import NONE, read
from scalingkit.core.roles import LABELS
from scalingkit.core.schema import validate

__all__ = [
    "RunsError", "check", "concat", "make", "quarantine", "read", "report", "select", "to_frame", "validate", "write",
]  # fmt: skip

quarantine = aside.frame


def make(
    *, name: str = "made", params_kind: str | None = None, flops_kind: str | None = None, **arrays: Any
) -> xr.Dataset:
    """A runs Dataset from clean arrays: N=, D=, C=, loss=, x=, y=, any other number; family=, corpus=, seed=, any text.

    No row is judged, so none is set aside: arrays with NaN, inf or non-positive values are a RunsError.
    """
    if not arrays:
        raise RunsError("make needs arrays by name: make(N=..., D=..., loss=...).")
    texts = {k: np.asarray(v).dtype.kind in "OUST" and not _numeric(v) for k, v in arrays.items()}
    labels = [k for k in arrays if k in LABELS or k == "run" or texts[k]]
    ds = read(
        arrays, columns={k: k for k in arrays if k not in labels or k in (*LABELS, "run")}, name=name,
        group=[k for k in labels if k not in (*LABELS, "run")], params_kind=params_kind, flops_kind=flops_kind,
        dedupe=False, checkpoints="all", diverged=False, unit_jump=False,
    )  # fmt: skip
    if ds.attrs["rows_quarantined"]:
        first = aside.entries_of(ds)[0]
        raise RunsError(
            f"make takes clean arrays: {first.column}[{first.row}] = {first.value}: {first.reason}. Use read."
        )
    return ds


def _numeric(values: Any) -> bool:
    try:
        np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError):
        return False
    return np.asarray(values).dtype.kind not in "UST"


def select(ds: xr.Dataset, keep: Any, reason: str, code: str = "selected") -> xr.Dataset:
    """The runs where ``keep`` (mask along run) holds; the others go to the quarantine with ``reason``.

    >>> select(ds, ds.loss < 3, "loss of 3 nat or more")          # doctest: +SKIP
    """
    keep = np.asarray(keep, dtype=bool)
    if keep.shape != (ds.sizes[names.RUN],):
        raise RunsError(f"the mask has shape {keep.shape}; the table has {ds.sizes[names.RUN]} runs.")
    if not keep.any():
        raise RunsError(f"no run is left: all {len(keep)} are set aside ({reason}).")
    rows = _rows(ds)
    entries = aside.entries_of(ds)
    entries += [aside.Entry(int(rows[i]), str(ds.run.values[i]), "", "", code, reason) for i in np.flatnonzero(~keep)]
    out = ds.drop_dims(names.QUARANTINED).isel({names.RUN: keep}).assign(aside.variables(sorted(entries)))
    out.attrs = dict(ds.attrs) | {"rows_used": int(keep.sum()), "rows_quarantined": len(entries)}
    return out


def _rows(ds: xr.Dataset) -> np.ndarray:
    """Input row of each run: the rows that are not in the quarantine, in order."""
    gone = set(ds["quarantine_row"].values.tolist())
    return np.array([i for i in range(int(ds.attrs["rows_in"])) if i not in gone], dtype=np.int64)


def concat(
    tables: Sequence[xr.Dataset], *, name: str = "", params_kind: str | None = None, flops_kind: str | None = None
) -> xr.Dataset:
    """One runs Dataset from several, with the label ``table``. Tables of different kinds are refused.

    ``params_kind`` or ``flops_kind`` states that all tables follow one convention, where their attrs do not say so.
    Variables that not all tables have are NaN where they are missing (labels: '(none)'); N, D, C, U and the outcome
    are kept only where all have them, and attrs['left_out'] names the rest.
    """
    if not tables:
        raise RunsError("concat needs at least one runs Dataset.")
    for ds in tables:
        validate(ds)
    kinds = {
        "params_kind": _same_kind(tables, "params_kind", schema.kind(params_kind, names.PARAMS_KINDS, "params_kind")),
        "flops_kind": _same_kind(tables, "flops_kind", schema.kind(flops_kind, names.FLOPS_KINDS, "flops_kind")),
    }
    _same_units(tables)
    titles = _titles(tables)
    strict = [k for k in (*schema.POSITIVE, "error", "x", "y") if any(k in ds for ds in tables)]
    left_out = [k for k in strict if not all(k in ds for ds in tables)]
    labels = [[str(v) for v in ds.run.values] for ds in tables]
    if len({v for part in labels for v in part}) < sum(map(len, labels)):
        labels = [[f"{t}: {v}" for v in part] for t, part in zip(titles, labels, strict=True)]
    columns = dict.fromkeys(
        str(k) for ds in tables for k, v in ds.variables.items() if v.dims == (names.RUN,) and k != "run"
    )
    data, coords = {}, {"run": (names.RUN, schema.text(v for part in labels for v in part))}
    for k in columns:
        if k not in left_out:
            _stack(k, tables, data, coords)
    sizes = [ds.sizes[names.RUN] for ds in tables]
    coords.setdefault(
        "table", (names.RUN, schema.text(t for t, n in zip(titles, sizes, strict=True) for _ in range(n)))
    )
    entries, start = [], 0
    for ds, title in zip(tables, titles, strict=True):
        entries += [e._replace(row=e.row + start, label=f"{title}: {e.label}") for e in aside.entries_of(ds)]
        start += int(ds.attrs["rows_in"])
    out = xr.Dataset({**data, **aside.variables(entries)}, coords=coords)
    out.attrs = kinds | {
        "source": "; ".join(dict.fromkeys(str(ds.attrs.get("source", "")) for ds in tables)),
        "data_name": name or " + ".join(titles), "sha256": "+".join(str(ds.attrs.get("sha256", "")) for ds in tables),
        "rows_in": start, "rows_used": sum(sizes), "rows_quarantined": len(entries), "left_out": json.dumps(left_out),
        "notes": notes.dump(n for ds in tables for n in notes.of(ds)),
    }  # fmt: skip
    return validate(out)


def _same_kind(tables: Sequence[xr.Dataset], key: str, stated: str | None) -> str:
    kinds = [str(ds.attrs.get(key, "unknown")) for ds in tables]
    known = set(kinds) - {"unknown"}
    clash = len(known) > 1 or (stated and known - {stated})
    if clash or (len(set(kinds)) > 1 and not stated):
        said = ", ".join(
            f"{ds.attrs.get('data_name', i)}: {k}" for i, (ds, k) in enumerate(zip(tables, kinds, strict=True))
        )
        mend = (
            "convert one of them first"
            if clash
            else f"if they do follow one convention, say {key}={next(iter(known))!r}"
        )
        raise RunsError(f"tables of different {key} are not mixed ({said}): {mend}.")
    return stated or kinds[0]


def _same_units(tables: Sequence[xr.Dataset]) -> None:
    for k in dict.fromkeys(k for ds in tables for k in ds.data_vars):
        units = {str(ds[k].attrs["units"]) for ds in tables if k in ds and "units" in ds[k].attrs}
        if len(units) > 1:
            raise RunsError(
                f"{k} has different units in the tables ({listed(sorted(units))}): convert one of them first."
            )


def _titles(tables: Sequence[xr.Dataset]) -> list[str]:
    out: list[str] = []
    for i, ds in enumerate(tables):
        title = str(ds.attrs.get("data_name", f"table {i}"))
        out.append(title if title not in out else f"{title} {i}")
    return out


def _stack(k: str, tables: Sequence[xr.Dataset], data: dict[str, Any], coords: dict[str, Any]) -> None:
    parts = [ds[k].values if k in ds.variables else None for ds in tables]
    numbers = all(p is None or p.dtype == np.float64 for p in parts)
    if numbers:
        filled = [np.full(ds.sizes[names.RUN], np.nan) if p is None else p for p, ds in zip(parts, tables, strict=True)]
        first = next(ds[k] for ds in tables if k in ds.variables)
        data[k] = (names.RUN, np.concatenate(filled), dict(first.attrs))
        return
    texts = [[NONE] * ds.sizes[names.RUN] if p is None else p for p, ds in zip(parts, tables, strict=True)]
    coords[k] = (names.RUN, schema.text(v for part in texts for v in part))


def to_frame(ds: xr.Dataset) -> pd.DataFrame:
    """The runs as a pandas frame: a row per run, labels and variables as columns, ``run`` first."""
    along = [k for k, v in ds.variables.items() if v.dims == (names.RUN,) and k != names.RUN]
    texts = [k for k in along if k in ds.coords]
    columns = {
        names.RUN: ds[names.RUN].values,
        **{str(k): ds[k].values for k in (*texts, *(k for k in along if k not in texts))},
    }
    return pd.DataFrame(columns)


def write(ds: xr.Dataset, path: str | Path, overwrite: bool = False) -> Path:
    """Write to .nc (all of it), .csv or .parquet (the runs; the conventions and the quarantine stay behind).

    Written to a temporary name beside ``path`` and renamed, so that a reader never sees half a file.
    """
    path = Path(path).expanduser()
    makers = {".csv": _write_csv, ".parquet": _write_parquet, ".nc": _write_netcdf}
    if path.suffix.lower() not in makers:
        raise RunsError(f"{path.name}: runs are written to .nc, .csv or .parquet.{hint(path.suffix, makers)}")
    if path.exists() and not overwrite:
        raise RunsError(f"{path}: is there already; write(ds, path, overwrite=True) replaces it.")
    if not path.parent.is_dir():
        raise RunsError(f"{path.parent}: the folder does not exist.")
    validate(ds)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".runs-", suffix=path.suffix)
    os.close(handle)
    try:
        makers[path.suffix.lower()](ds, temporary)
        Path(temporary).chmod(0o644)
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    return path


def _write_csv(ds: xr.Dataset, path: str) -> None:
    to_frame(ds).to_csv(path, index=False)


def _write_parquet(ds: xr.Dataset, path: str) -> None:
    to_frame(ds).to_parquet(path, index=False)


def _write_netcdf(ds: xr.Dataset, path: str) -> None:
    ds.to_netcdf(path)


def check(source: Any, **options: Any) -> dict[str, Any]:
    """What ``read`` makes of ``source``, as plain JSON values: counts, columns, conventions, quarantine, notes."""
    ds = source if _is_runs(source) and not options else read(source, **options)
    return summary(ds)


def _is_runs(source: Any) -> bool:
    return isinstance(source, xr.Dataset) and names.RUN in source.dims and "rows_in" in source.attrs


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
