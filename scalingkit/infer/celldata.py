"""celldata: a table laid out by cell, a row of runs for each, so that sums over a cell's runs are sums along an axis.

    y[g, i], mask[g, i]        run i of cell g; rows are filled up with copies of their first run, masked out

Cells are the groups of one dim, or the whole table (one cell).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from scalingkit.infer.prepare import Data


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["whole", "inputs", "y", "mask", "columns", "codes", "cell_codes", "centre", "level"],
    meta_fields=[],
)
@dataclass(frozen=True)
class CellData:
    """whole: the table as it was; inputs, y, mask, columns (cell, run); codes dim -> group (cell, run); cell_codes dim ->
    group (cell), for dims constant within cells; centre: the curve at the mode (cell, run); level: the integrated
    coefficients there, each (cell)."""

    whole: Data
    inputs: dict[str, Any]
    y: Any
    mask: Any
    columns: dict[str, Any]
    codes: dict[str, Any]
    cell_codes: dict[str, Any]
    centre: Any
    level: dict[str, Any]


def lay_out(data: Data, dim: str | None, fill: int | None = None) -> tuple[CellData, np.ndarray]:
    """The table by groups of ``dim``, and (cell, run) row numbers; ``centre`` and ``level`` are still empty.

    fill   length of a row (default: the largest cell's)
    """
    code = np.zeros(data.meta.runs, int) if dim is None else np.asarray(data.codes[dim])
    cells = 1 if dim is None else data.sizes[dim]
    counts = np.bincount(code, minlength=cells)
    order = np.argsort(code, kind="stable")
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    width = np.arange(fill or counts.max())
    mask = width < counts[:, None]
    rows = order[np.where(mask, first[:, None] + width, first[:, None])]
    by_run = {d: np.asarray(c)[rows] for d, c in data.codes.items() if d != dim}
    by_cell = {d: c[:, 0] for d, c in by_run.items() if (c == c[:, :1]).all()}
    columns = {k: v if np.ndim(v) == 0 else np.asarray(v)[rows] for k, v in data.columns.items()}
    out = CellData(
        whole=data,
        inputs={x: np.asarray(v)[rows] for x, v in data.inputs.items()},
        y=np.asarray(data.y)[rows],
        mask=mask.astype(float),
        columns=columns,
        codes={d: c for d, c in by_run.items() if d not in by_cell},
        cell_codes=by_cell,
        centre=np.ones_like(mask, float),
        level={},
    )
    return out, rows
