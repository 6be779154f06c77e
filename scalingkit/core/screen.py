"""Values that cannot be what they say: not positive, diverged, a unit off. Conservative rules, each stated and each
with a switch; all of them depend on the values only, never on the order of rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

CHANCE_VOCAB = 50304.0  # GPT-2's vocabulary, padded: a model that knows nothing has loss ln V = 10.83 nat
JUMP, FAR_JUMP, GAP = 1e4, 5e3, 1e2
SUSPECT_GAP = 1e3
PLAUSIBLE = {"N": 1e3, "D": 1e4, "U": 1e4, "C": 1e9}
WORDS = {1e3: "thousand", 1e6: "million", 1e9: "billion", 1e12: "trillion"}


class Jump(NamedTuple):
    """``far`` rows to set aside, ``near`` rows to warn about, and the [low, high] of the rows they are held against."""

    far: np.ndarray
    near: np.ndarray
    low: float
    high: float


def diverged(loss: np.ndarray, vocab: np.ndarray | float | None, rule: bool | float) -> tuple[np.ndarray, str]:
    """Mask of diverged rows and the rule in words.

    rule True: loss >= ln V (chance) where the vocabulary V is known; where it is not, loss > ln 50304 = 10.83 nat and
    more than twice the median of the losses below that. A number: loss above it. False: none. A table whose losses
    all exceed 10.83 has another unit, and no row of it is judged.
    """
    none = np.zeros(len(loss), dtype=bool)
    if rule is False:
        return none, "off"
    with np.errstate(invalid="ignore"):
        if rule is not True:
            return loss > float(rule), f"loss above {float(rule):g}"
        if vocab is not None:
            return loss >= np.log(np.asarray(vocab, dtype=np.float64)), "loss at or above ln(vocab), which is chance"
        chance = math.log(CHANCE_VOCAB)
        below = loss[loss <= chance]
        text = "loss above ln 50304 = 10.83 nat (chance) and above twice the median of the others"
        return (loss > max(chance, 2 * float(np.median(below))) if len(below) else none), text


def jumps(values: np.ndarray, role: str) -> Jump:
    """Rows that stand off from the rest of their column.

    The sorted values are cut wherever neighbours differ by more than GAP = 100-fold. The rest of the column is the
    group with most rows (a group of implausibly small values only where there is no other; see PLAUSIBLE). A row is far
    off where the nearest of those values is more than 10^4-fold away, or their median more than 5000-fold. A row whose
    distance is above 1000-fold is only noted. Fewer than three values are never judged.
    """
    none = np.zeros(len(values), dtype=bool)
    logs = np.log10(values, where=values > 0, out=np.full(len(values), np.nan))
    good = np.flatnonzero(np.isfinite(logs))
    if len(good) < 3:
        return Jump(none, none, math.nan, math.nan)
    order = good[np.argsort(logs[good], kind="stable")]
    cuts = np.flatnonzero(np.diff(logs[order]) > math.log10(GAP)) + 1
    groups = np.split(order, cuts)
    if len(groups) == 1:
        return Jump(none, none, *values[order[[0, -1]]])
    floor = PLAUSIBLE.get(role, 0.0)
    rest = max(groups, key=lambda g: (values[g].max() >= floor, len(g), logs[g[0]]))
    low, high, middle = logs[rest[0]], logs[rest[-1]], float(np.median(logs[rest]))
    gap = np.where(logs < low, low - logs, np.where(logs > high, logs - high, 0.0))
    off = np.abs(logs - middle)
    with np.errstate(invalid="ignore"):
        outside = gap > math.log10(GAP)
        far = outside & ((gap > math.log10(JUMP)) | (off > math.log10(FAR_JUMP)))
        near = outside & ~far & (off > math.log10(SUSPECT_GAP))
    return Jump(far, near, float(values[rest[0]]), float(values[rest[-1]]))


def question(value: float, jump: Jump, role: str) -> str:
    """'is this 70 billion? Use 7e10 or give the unit': what the row may have meant."""
    short = (math.log10(jump.low) + math.log10(jump.high)) / 2 - math.log10(value)
    guess = min(WORDS, key=lambda f: abs(math.log10(f) - short)) if short > 0 else None
    against = f"the rest of the column runs from {jump.low:.3g} to {jump.high:.3g}"
    if guess and value < 1e4:
        meant = f"Is this {value:.6g} {WORDS[guess]}? Then write {value * guess:.6g}, or the unit in the cell."
        return f"{role} = {value:.6g}, but {against}. {meant}"
    return f"{role} = {value:.6g}, but {against}. Is a unit missing, or stated twice?"
