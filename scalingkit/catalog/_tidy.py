"""From a frame of the file to a runs Dataset: columns with unit and meaning, labels, and a quarantine with reasons.

No row is dropped: rows_in == rows_used + rows_quarantined, always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.core import names, notes

POSITIVE = ("N", "D", "U", "C", "loss")
EXACT = 1e15  # beyond this, a whole float is written with six digits


@dataclass(frozen=True)
class Column:
    """``source`` column of the frame, times ``factor``, in ``unit``, meaning ``meaning`` (the house's, if empty)."""

    source: str
    unit: str = ""
    meaning: str = ""
    factor: float = 1.0


@dataclass(frozen=True)
class Bad:
    """Rows to set aside: ``mask`` over the frame, the ``column`` that shows why, a ``code`` and a ``reason``."""

    mask: Any
    column: str
    code: str
    reason: str


def tidy(
    frame: pd.DataFrame,
    *,
    columns: Mapping[str, Column | str],
    labels: Mapping[str, str] | None = None,
    run: str | Sequence[str] = (),
    bad: Iterable[Bad] = (),
    duplicates: bool = True,
    required: Iterable[str] | None = None,
    params_kind: str = "unknown",
    flops_kind: str = "unknown",
    extra_notes: Iterable[notes.Note] = (),
) -> xr.Dataset:
    """A runs Dataset (dim run) from every row of ``frame``, in its order.

    columns     name in the Dataset -> Column (or the bare source name); float64
    labels      coord along run -> source column; text
    run         source column(s) joined by '/' as the run's label; made unique by '#2', '#3', ...
    bad         rows set aside by name, first match counts; then missing, infinite or non-positive values of
                ``required`` columns (default: N, D, U, C and loss as far as present), then exact duplicates of an
                earlier row (all columns of the frame; not where duplicates=False: said in the table's traps)
    """
    frame = frame.reset_index(drop=True)
    cols = {k: _column(k, v) for k, v in columns.items()}
    values = {
        k: pd.to_numeric(frame[c.source], errors="coerce").to_numpy(np.float64) * c.factor for k, c in cols.items()
    }
    must = [k for k in (POSITIVE if required is None else required) if k in cols]
    why = _reasons(frame, cols, values, list(bad), must, duplicates)
    keep = np.array([w is None for w in why], dtype=bool)
    label = run_labels(frame, run)
    data = {k: ("run", v[keep], {"units": cols[k].unit, "meaning": cols[k].meaning}) for k, v in values.items()}
    coords: dict[str, Any] = {"run": ("run", label[keep])}
    for k, source in (labels or {}).items():
        coords[k] = ("run", text(frame[source])[keep])
    ds = xr.Dataset(data, coords=coords) if data else xr.Dataset(coords=coords)
    ds = ds.assign(quarantine(why, label, frame))
    ds.attrs = {
        "params_kind": params_kind, "flops_kind": flops_kind, "rows_in": len(frame), "rows_used": int(keep.sum()),
        "rows_quarantined": int((~keep).sum()), "notes": "[]",
    }  # fmt: skip
    notes.add(ds, *extra_notes)
    if (~keep).any():
        codes = pd.Series([w[1] for w in why if w is not None]).value_counts()
        said = ", ".join(f"{n} {c}" for c, n in codes.items())
        notes.add(
            ds,
            notes.Note("rows-quarantined", "info", "runs", f"{(~keep).sum()} of {len(frame)} rows set aside: {said}."),
        )
    return ds


def _column(name: str, column: Column | str) -> Column:
    c = Column(column) if isinstance(column, str) else column
    house = names.VARIABLES.get(name)
    unit, meaning = c.unit or (house.unit if house else ""), c.meaning or (house.meaning if house else "")
    if not unit or not meaning:
        raise ValueError(f"column {name!r} needs a unit and a meaning: the house has none for it.")
    return Column(c.source, unit, meaning, c.factor)


def _reasons(frame, cols, values, bad, must, duplicates) -> list[tuple[str, str, str] | None]:
    """Per row None, or (column, code, reason): the first rule that holds."""
    rules = list(bad)
    for k in must:
        v, source = values[k], cols[k].source
        rules.append(Bad(np.isnan(v), source, "missing", f"{k} is missing"))
        rules.append(Bad(np.isinf(v), source, "infinite", f"{k} is infinite"))
        with np.errstate(invalid="ignore"):
            rules.append(Bad(v <= 0, source, "non-positive", f"{k} is not positive: its log is needed"))
    why: list[tuple[str, str, str] | None] = [None] * len(frame)
    for rule in rules:
        for i in np.flatnonzero(np.asarray(rule.mask, dtype=bool)):
            why[i] = why[i] or (rule.column, rule.code, rule.reason)
    if duplicates:
        for i in np.flatnonzero(frame.duplicated().to_numpy()):
            why[i] = why[i] or ("", "duplicate", "every column equals an earlier row's")
    return why


def quarantine(why: Sequence[tuple[str, str, str] | None], label: np.ndarray, frame: pd.DataFrame) -> dict[str, Any]:
    """The quarantine's variables along dim ``quarantined``."""
    rows = [(i, w) for i, w in enumerate(why) if w is not None]
    shown = [str(frame[w[0]].iloc[i]) if w[0] in frame else "" for i, w in rows]
    parts = {
        "row": np.array([i for i, _ in rows], dtype=np.int64),
        "label": _str([str(label[i]) for i, _ in rows]),
        "column": _str([w[0] for _, w in rows]),
        "value": _str(shown),
        "code": _str([w[1] for _, w in rows]),
        "reason": _str([w[2] for _, w in rows]),
    }
    return {f"quarantine_{k}": ("quarantined", v) for k, v in parts.items()}


def run_labels(frame: pd.DataFrame, run: str | Sequence[str]) -> np.ndarray:
    """Unique text labels; 'row 0', 'row 1', ... where no column is named."""
    columns = [run] if isinstance(run, str) else list(run)
    if not columns:
        return _str([f"row {i}" for i in range(len(frame))])
    joined = pd.Series(
        ["/".join(parts) for parts in zip(*(text(frame[c]) for c in columns), strict=True)], dtype=object
    )
    nth = joined.groupby(joined).cumcount()
    return _str([j if n == 0 else f"{j}#{n + 1}" for j, n in zip(joined, nth, strict=True)])


def text(column: pd.Series) -> np.ndarray:
    """As text: whole floats without '.0', beyond 1e15 as '1e+20'; missing as ''."""
    return _str(["" if pd.isna(v) else _plain(v) if isinstance(v, float) else str(v) for v in column])


def _plain(v: float) -> str:
    if abs(v) >= EXACT:
        return f"{v:.6g}"
    return f"{v:.0f}" if v.is_integer() else str(v)


def _str(values: Sequence[str]) -> np.ndarray:
    """NumPy text, also when empty."""
    return np.array(list(values), dtype=str) if len(values) else np.array([], dtype="<U1")
