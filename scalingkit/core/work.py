"""A table on its way to a runs Dataset: what the caller asked, and what is known so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from scalingkit.core import roles, tables
from scalingkit.core.notes import Note
from scalingkit.core.quarantine import Quarantine

OUTCOMES = ("loss", "error", "y")
NONE = "(none)"


@dataclass
class Options:
    """What the caller asked of ``read``."""

    columns: Mapping[str, str | None]
    units: Mapping[str, object]
    params_kind: str | None
    flops_kind: str | None
    dedupe: bool
    checkpoints: str
    diverged: bool | float
    unit_jump: bool
    group: Mapping[str, str]
    extras: bool | Sequence[str]
    vocab: float | None
    decimal: str
    k: float


@dataclass
class Reading:
    """The table on its way: ``values`` by role (float64, NaN where there is none), ``labels``, the quarantine, notes."""

    table: tables.Table
    options: Options
    columns: dict[str, roles.Column]
    quarantine: Quarantine
    values: dict[str, np.ndarray] = field(default_factory=dict)
    labels: dict[str, np.ndarray] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    said: dict[str, Any] = field(default_factory=dict)

    @property
    def alive(self) -> np.ndarray:
        return self.quarantine.alive

    def raw(self, role: str) -> Callable[[int], Any]:
        """row -> the cell as it was, of the column that plays ``role`` (of the value, where it was computed)."""
        if role in self.columns:
            column = self.table.frame[self.columns[role].header]
            cells: list[Any] = []  # made once, and only where a row is set aside

            def at(i: int) -> Any:
                if not cells:
                    cells.extend(column.to_numpy(dtype=object))
                return cells[i]

            return at
        return lambda i: f"{self.values[role][i]:.6g}"

    def at(self, role: str) -> str:
        return self.columns[role].header if role in self.columns else role

    def note(self, code: str, severity: Literal["info", "warning", "error"], about: str, text: str) -> None:
        self.notes.append(Note(code, severity, about, text))


def checked(r: Reading) -> list[str]:
    """Roles whose cells must be numbers, in a fixed order."""
    first = (*roles.INPUTS, "P", *OUTCOMES, "loss_se", "x")
    own = sorted(k for k in r.columns if k not in (*first, *roles.LABELS, *roles.HELPERS))
    return [k for k in first if k in r.columns] + own
