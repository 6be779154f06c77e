"""From a frame of the file to a runs Dataset: columns with unit and meaning, labels, and a quarantine with reasons.

No row is dropped: rows_in == rows_used + rows_quarantined, always.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.core import names, notes
from scalingkit.core import quarantine as aside
from scalingkit.core.schema import text as as_text

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
    values = {k: _numbers(frame, c) for k, c in cols.items()}
    must = [k for k in (POSITIVE if required is None else required) if k in cols]
    label = run_labels(frame, run)
    entries = _entries(frame, label, [*bad, *_unusable(cols, values, must)], duplicates)
    keep = np.ones(len(frame), dtype=bool)
    keep[[e.row for e in entries]] = False
    data = {k: (names.RUN, v[keep], {"units": cols[k].unit, "meaning": cols[k].meaning}) for k, v in values.items()}
    texts = {names.RUN: label} | {k: text(frame[source]) for k, source in (labels or {}).items()}
    ds = xr.Dataset(data | aside.variables(entries), coords={k: (names.RUN, v[keep]) for k, v in texts.items()})
    ds.attrs = {
        "params_kind": params_kind, "flops_kind": flops_kind, "rows_in": len(frame), "rows_used": int(keep.sum()),
        "rows_quarantined": len(entries), "notes": "[]",
    }  # fmt: skip
    notes.add(ds, *extra_notes, *_told(entries, len(frame)))
    return ds


def _told(entries: list[aside.Entry], rows: int) -> list[notes.Note]:
    if not entries:
        return []
    said = ", ".join(f"{n} {code}" for code, n in Counter(e.code for e in entries).most_common())
    return [notes.Note("rows-quarantined", "info", "runs", f"{len(entries)} of {rows} rows set aside: {said}.")]


def _numbers(frame: pd.DataFrame, c: Column) -> np.ndarray:
    return pd.to_numeric(frame[c.source], errors="coerce").to_numpy(np.float64) * c.factor


def _column(name: str, column: Column | str) -> Column:
    c = Column(column) if isinstance(column, str) else column
    house = names.VARIABLES.get(name)
    unit, meaning = c.unit or (house.unit if house else ""), c.meaning or (house.meaning if house else "")
    if not unit or not meaning:
        raise ValueError(f"column {name!r} needs a unit and a meaning: the house has none for it.")
    return Column(c.source, unit, meaning, c.factor)


def _unusable(cols: Mapping[str, Column], values: Mapping[str, np.ndarray], must: Iterable[str]) -> list[Bad]:
    """Rules for columns whose logarithm is needed."""
    rules = []
    for k in must:
        v, source = values[k], cols[k].source
        rules.append(Bad(np.isnan(v), source, "missing", f"{k} is missing"))
        rules.append(Bad(np.isinf(v), source, "infinite", f"{k} is infinite"))
        with np.errstate(invalid="ignore"):
            rules.append(Bad(v <= 0, source, "non-positive", f"{k} is not positive: its log is needed"))
    return rules


def _entries(frame: pd.DataFrame, label: np.ndarray, rules: list[Bad], duplicates: bool) -> list[aside.Entry]:
    """The rows set aside, in order; the first rule that holds is the reason."""
    if duplicates:
        rules = [*rules, Bad(frame.duplicated(), "", "duplicate", "every column equals an earlier row's")]
    found: dict[int, Bad] = {}
    for rule in rules:
        for i in np.flatnonzero(np.asarray(rule.mask, dtype=bool)):
            found.setdefault(int(i), rule)
    return [
        aside.Entry(i, str(label[i]), r.column, _cell(frame, r, i), r.code, r.reason)
        for i, r in sorted(found.items(), key=lambda item: item[0])
    ]


def _cell(frame: pd.DataFrame, rule: Bad, i: int) -> str:
    return str(frame[rule.column].iloc[i]) if rule.column in frame else ""


def run_labels(frame: pd.DataFrame, run: str | Sequence[str]) -> np.ndarray:
    """Unique text labels; 'row 0', 'row 1', ... where no column is named."""
    columns = [run] if isinstance(run, str) else list(run)
    if not columns:
        return as_text([f"row {i}" for i in range(len(frame))])
    joined = pd.Series(
        ["/".join(parts) for parts in zip(*(text(frame[c]) for c in columns), strict=True)], dtype=object
    )
    nth = joined.groupby(joined).cumcount()
    return as_text([j if n == 0 else f"{j}#{n + 1}" for j, n in zip(joined, nth, strict=True)])


def text(column: pd.Series) -> np.ndarray:
    """As text: whole floats without '.0', beyond 1e15 as '1e+20'; missing as ''."""
    return as_text(["" if pd.isna(v) else _plain(v) if isinstance(v, float) else str(v) for v in column])


def _plain(v: float) -> str:
    if abs(v) >= EXACT:
        return f"{v:.6g}"
    return f"{v:.0f}" if v.is_integer() else str(v)
