"""Rows that are not independent: exact duplicates, checkpoints of one run; and replicates, which are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd


class Checkpoints(NamedTuple):
    """``key``: trajectory of each row ('' = a run of one row); ``earlier``: rows before their trajectory's last;
    ``last`` row of each; ``tied``: rows that share the last step with another of the same trajectory."""

    key: np.ndarray
    earlier: np.ndarray
    last: np.ndarray
    tied: np.ndarray


def duplicates(columns: Sequence[np.ndarray], alive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mask of rows equal to an earlier one that is alive in every column, and the row each repeats."""
    rows = np.flatnonzero(alive)
    mask, first = np.zeros(len(alive), dtype=bool), np.arange(len(alive))
    if not columns or len(rows) < 2:
        return mask, first
    ids = group_ids([c[rows] for c in columns])
    _, start, inverse = np.unique(ids, return_index=True, return_inverse=True)
    first[rows] = rows[start[inverse]]
    mask[rows] = first[rows] != rows
    return mask, first


def group_ids(columns: Sequence[np.ndarray]) -> np.ndarray:
    """One integer per distinct row of the columns."""
    ids = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes, uniques = pd.factorize(column, use_na_sentinel=False)
        _, ids = np.unique(ids * max(len(uniques), 1) + codes, return_inverse=True)
    return ids


def checkpoints(
    names: Sequence[np.ndarray], same: Sequence[np.ndarray], step: np.ndarray, alive: np.ndarray
) -> Checkpoints:
    """Rows that share all ``names`` (run name or id) and all of ``same`` (N, labels, seed) and differ in ``step``."""
    n = len(alive)
    key, earlier, tied = np.full(n, "", dtype=object), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    last = np.arange(n)
    named = alive & np.isfinite(step) & np.all([c != "" for c in names], axis=0)
    rows = np.flatnonzero(named)
    if not len(rows):
        return Checkpoints(key, earlier, last, tied)
    ids = group_ids([c[rows] for c in (*names, *same)])
    top = pd.Series(step[rows]).groupby(ids).transform("max").to_numpy()
    bottom = pd.Series(step[rows]).groupby(ids).transform("min").to_numpy()
    several = top > bottom
    ends = pd.Series(step[rows] == top).groupby(ids).transform("sum").to_numpy()
    end_row = pd.Series(np.where(step[rows] == top, rows, n)).groupby(ids).transform("min").to_numpy()
    key[rows[several]] = names[0][rows[several]]
    earlier[rows] = several & (step[rows] < top)
    tied[rows] = several & (step[rows] == top) & (ends > 1)
    last[rows] = end_row
    return Checkpoints(key, earlier, last, tied)


def replicates(columns: Mapping[str, np.ndarray]) -> dict[str, int]:
    """How many design points there are, how many have several rows, and how many rows those have."""
    if not columns:
        return {"design_points": 0, "replicated": 0, "rows_in_replicated": 0}
    counts = np.bincount(group_ids(list(columns.values())))
    counts = counts[counts > 0]
    several = counts[counts > 1]
    return {"design_points": len(counts), "replicated": len(several), "rows_in_replicated": int(several.sum())}


def unique_labels(names: Sequence[str], suffix: Sequence[str]) -> list[str]:
    """Labels made unique: 'a', 'a [step 100]', and '#2' where that does not tell them apart."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    first = [f"{n} [{s}]" if counts[n] > 1 and s else n for n, s in zip(names, suffix, strict=True)]
    used: set[str] = set()
    tally: dict[str, int] = {}
    out = []
    for label in first:
        new, k = label, tally.get(label, 1)
        while new in used:
            k += 1
            new = f"{label} #{k}"
        tally[label] = k
        used.add(new)
        out.append(new)
    return out
