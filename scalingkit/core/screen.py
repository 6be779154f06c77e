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


def jumps(values: np.ndarray, role: str, loss: np.ndarray | None = None) -> Jump:
    """Rows that stand off from the rest of their column.

    The sorted values are cut wherever neighbours differ by more than GAP = 100-fold. The rest of the column is the
    group with most rows (a group of implausibly small values only where there is no other; see PLAUSIBLE). A row is far
    off where the nearest of those values is more than 10^4-fold away, or their median more than 5000-fold; or more than
    1000-fold where the ``loss`` speaks against it (a thousand times more, and no better than the best of the rest; a
    thousand times less, and no worse than the worst). Else a row more than 1000-fold away is only noted: it may be the
    target that a ladder is to predict. Fewer than three values are never judged.
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
        if loss is not None:
            belied = near & np.where(logs > middle, loss >= loss[rest].min(), loss <= loss[rest].max())
            far, near = far | belied, near & ~belied
    return Jump(far, near, float(values[rest[0]]), float(values[rest[-1]]))


def lone(values: np.ndarray, loss: np.ndarray) -> list[tuple[int, Jump]]:
    """The largest value where it is 10 times the next and its loss the worst of all; the smallest where it is a tenth and
    its loss the best. Too little to set a row aside, and too odd to say nothing about."""
    out: list[tuple[int, Jump]] = []
    if len(values) < 3:
        return out
    order = np.argsort(values, kind="stable")
    none = np.zeros(0, dtype=bool)
    for i, rest, odd in (
        (order[-1], order[:-1], lambda i, rest: values[i] > 10 * values[rest].max() and loss[i] > loss[rest].max()),
        (order[0], order[1:], lambda i, rest: values[i] < values[rest].min() / 10 and loss[i] < loss[rest].min()),
    ):
        if odd(i, rest):
            out.append((int(i), Jump(none, none, float(values[rest].min()), float(values[rest].max()))))
    return out


def question(value: float, jump: Jump, role: str) -> str:
    """'is this 70 billion? Use 7e10 or give the unit': what the row may have meant."""
    short = (math.log10(jump.low) + math.log10(jump.high)) / 2 - math.log10(value)
    guess = min(WORDS, key=lambda f: abs(math.log10(f) - short)) if short > 0 else None
    against = f"the rest of the column runs from {jump.low:.3g} to {jump.high:.3g}"
    if guess and value < 1e4:
        meant = f"Is this {value:.6g} {WORDS[guess]}? Then write {value * guess:.6g}, or the unit in the cell."
        return f"{role} = {value:.6g}, but {against}. {meant}"
    return f"{role} = {value:.6g}, but {against}. Is a unit missing, or stated twice?"
