"""Rows that are set aside, each with its row number, column, cell, code and reason. A row is never dropped in silence.

rows_in == rows_used + rows_quarantined, always
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.core.names import QUARANTINED

CODES = {
    "malformed": "the file breaks this row",
    "blank": "the cell is empty",
    "missing": "the cell says that there is no value",
    "infinite": "the value is infinite or too large for a 64-bit float",
    "unparsable": "the cell is not a number in a known unit",
    "unit-twice": "the header and the cell both state a unit",
    "non-positive": "the value must be positive",
    "out-of-range": "the value must lie between 0 and 1",
    "diverged": "the run diverged: it is no better than chance",
    "unit-jump": "the value stands thousands-fold away from the rest of its column: a unit is in doubt",
    "inconsistent": "N, D and C of this row contradict each other by more than 1000-fold",
    "duplicate": "the row is equal to an earlier one in every column",
    "checkpoint": "an earlier checkpoint of a run whose last one is used",
}
FIELDS = ("row", "label", "column", "value", "code", "reason")


class Entry(NamedTuple):
    """One row set aside; ``row`` is 0-based in the input."""

    row: int
    label: str
    column: str
    value: str
    code: str
    reason: str


class Quarantine:
    """``alive`` marks the rows still in use; the first reason a row meets is the one it keeps."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = labels
        self.alive = np.ones(len(labels), dtype=bool)
        self.entries: list[Entry] = []

    def put(self, rows: Any, column: str, code: str, value: Callable[[int], Any], reason: Callable[..., str]) -> int:
        """Set aside ``rows`` (indices or mask) that are still alive; how many were."""
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        rows = [int(i) for i in rows if self.alive[i]]
        for i in rows:
            self.entries.append(Entry(i, self.labels[i], column, _shown(value(i)), code, reason(i)))
            self.alive[i] = False
        return len(rows)

    def counts(self) -> dict[str, int]:
        return dict(sorted(Counter(e.code for e in self.entries).items()))

    def variables(self) -> dict[str, tuple[str, np.ndarray]]:
        """The six variables along dim ``quarantined``, ordered by row."""
        return variables(sorted(self.entries))


def variables(entries: Sequence[Entry]) -> dict[str, tuple[str, np.ndarray]]:
    columns = list(zip(*entries, strict=True)) or [()] * len(FIELDS)
    kinds = dict.fromkeys(FIELDS, str) | {"row": np.int64}
    return {
        f"quarantine_{f}": (QUARANTINED, np.array(c, dtype=kinds[f]) if len(c) else np.empty(0, _empty(kinds[f])))
        for f, c in zip(FIELDS, columns, strict=True)
    }


def _empty(kind: type) -> str:
    return "<U1" if kind is str else "int64"


def entries_of(ds: xr.Dataset) -> list[Entry]:
    columns = [ds[f"quarantine_{f}"].values.tolist() for f in FIELDS]
    return [Entry(*row) for row in zip(*columns, strict=True)]


def frame(ds: xr.Dataset) -> pd.DataFrame:
    """The quarantine table: row, label, column, value, code, reason."""
    return pd.DataFrame(entries_of(ds), columns=list(FIELDS))


def said(counts: dict[str, int]) -> str:
    """'3 missing (the cell says that there is no value), 1 duplicate (...)'."""
    return ", ".join(
        f"{n} {code} ({CODES[code]})" for code, n in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
    )


def _shown(value: Any) -> str:
    """The cell as text; '(empty)' says more than nothing. Control characters would break files and reports."""
    text = str(value)
    text = text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
    return text[:80] if text.strip() else "(empty)"
