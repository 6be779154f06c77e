"""A column of cells to float64, vectorised where the cells are plain numbers. Large integers never overflow."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from scalingkit.core import units


class Parsed(NamedTuple):
    """``values`` (float64; NaN where ``code`` is not ''), ``scaled`` = the cell states a unit, ``why`` by row."""

    values: np.ndarray
    code: np.ndarray
    scaled: np.ndarray
    why: dict[int, str]


def parse(column: pd.Series, role: str, factor: float = 1.0, decimal: str = ".") -> Parsed:
    """Cells times their own unit times ``factor`` of the header. A cell with a unit under a header with one is refused."""
    values, code, cell_factor, why = _numbers(column, role, decimal)
    scaled = cell_factor != 1.0
    if factor != 1.0:
        twice = scaled & (code == "")
        code[twice] = "unit-twice"
        why |= {int(i): f"the header says x{factor:g} and the cell x{cell_factor[i]:g}" for i in np.flatnonzero(twice)}
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        values = values * cell_factor * factor
    code[(code == "") & np.isinf(values)] = "infinite"
    values[code != ""] = np.nan
    return Parsed(values, code, scaled, why)


def _numbers(column: pd.Series, role: str, decimal: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, str]]:
    n = len(column)
    code, factor = np.full(n, "", dtype="<U12"), np.ones(n)
    why: dict[int, str] = {}
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        if pd.api.types.is_complex_dtype(column.dtype):
            return np.full(n, np.nan), np.full(n, "unparsable"), factor, why
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        code[np.isnan(values)] = "missing"
        return values.copy(), code, factor, why
    cells = column.to_numpy(dtype=object)
    try:
        values = cells.astype(np.float64) if decimal == "." and not _has_odd(cells) else None
    except (ValueError, TypeError, OverflowError):
        values = None
    if values is not None and np.isfinite(values).all():
        return values, code, factor, why
    values = np.full(n, np.nan)
    known: dict[str, units.Cell] = {}
    for i, cell in enumerate(cells):
        found = known.get(cell) if type(cell) is str else None
        if found is None:
            found = _cell(cell, role, decimal)
            if type(cell) is str:
                known[cell] = found
        values[i], factor[i], code[i] = found.value, found.factor, found.code
        if found.why:
            why[i] = found.why
    return values, code, factor, why


def _has_odd(cells: np.ndarray) -> bool:
    """Things float() takes that are not numbers in a table: True, dates."""
    return any(type(c) is not str and type(c) is not float and type(c) is not int for c in cells)


def _cell(cell: Any, role: str, decimal: str) -> units.Cell:
    if isinstance(cell, str):
        if decimal == ".":
            try:
                value = float(cell)
                if math.isfinite(value):
                    return units.Cell(value)
            except ValueError:
                pass
        return units.number(cell, role, decimal)
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return units.Cell(np.nan, 1.0, "missing")
    if isinstance(cell, bool | np.bool_ | np.datetime64 | np.timedelta64 | pd.Timestamp | pd.Timedelta):
        return units.Cell(np.nan, 1.0, "unparsable", f"a {type(cell).__name__} is not a number")
    try:
        value = float(cell)
    except OverflowError:
        return units.Cell(np.nan, 1.0, "infinite", "it is too large for a 64-bit float")
    except (TypeError, ValueError):
        return units.Cell(np.nan, 1.0, "unparsable", f"a {type(cell).__name__} is not a number")
    code = "missing" if np.isnan(value) else "infinite" if np.isinf(value) else ""
    return units.Cell(value, 1.0, code)


def starts_with_number(column: pd.Series) -> bool:
    """Whether the first cell that is there is a number: a cheap look before a column of text is parsed."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return not pd.api.types.is_bool_dtype(column.dtype)
    for cell in column.to_numpy(dtype=object):
        code = _cell(cell, "", ".").code
        if code in ("", "unparsable", "diverged"):
            return code == ""
    return False


def could_be_numbers(column: pd.Series, role: str) -> bool:
    """Whether any cell is a number or starts like one ("2,31", "8x7B"), or none is there at all.

    A column of words is not the size of a model.
    """
    if pd.api.types.is_numeric_dtype(column.dtype):
        return not pd.api.types.is_bool_dtype(column.dtype) or not len(column)
    words = False
    for cell in column.to_numpy(dtype=object):
        code = _cell(cell, role, ".").code
        if code == "" or (isinstance(cell, str) and re.match(r"\s*[-+−~≈]?\s*\d", cell)):
            return True
        words |= code in ("unparsable", "diverged")
    return not words


def labels(column: pd.Series) -> np.ndarray:
    """A column of labels as text: 1.0 and 1 are both '1'; a missing one is ''."""
    known: dict[str, str] = {}
    out = np.empty(len(column), dtype=object)
    for i, cell in enumerate(column.to_numpy(dtype=object)):
        if type(cell) is str:
            if cell not in known:
                known[cell] = _label(cell)
            out[i] = known[cell]
        else:
            out[i] = _label(cell)
    return out


def _label(value: Any) -> str:
    if isinstance(value, str):
        text = value.strip()
        text = text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
        return "" if text.casefold() in ("nan", "null", "none", "<na>", "n/a") else text
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, float | np.floating):
        return (
            ""
            if np.isnan(value)
            else str(int(value))
            if value.is_integer() and abs(value) < 1e15
            else repr(float(value))
        )
    return _label(str(value))
