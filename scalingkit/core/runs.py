"""Run tables: read any, check it, keep account of every row.

    read(source) -> Dataset (dim run)      make(N=..., D=..., loss=...)      concat([a, b])      select(ds, mask, reason)
    validate(ds)   report(ds)   quarantine(ds)   to_frame(ds)   write(ds, path)   check(source)

The schema is in core/schema.py, the steps in core/reading.py, the precedence of column names in core/roles.py, units in
core/units.py and the screening rules in core/screen.py.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.core import names
from scalingkit.core import quarantine as aside
from scalingkit.core.account import report, summary
from scalingkit.core.errors import RunsError, hint
from scalingkit.core.joining import concat
from scalingkit.core.reading import read
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
    ds = read(source, **options)
    return summary(ds)
