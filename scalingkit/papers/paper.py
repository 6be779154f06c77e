"""Paper: one source paper as a value: what it claims in our words, and the computation that judges each claim here.

    data = paper.rerun(fast)                 an xarray Dataset with named dims, the same at every call
    holds(claim) = |quantity(data) - value| <= within      or found >= value, or found <= value

A claim says beforehand what comes of it, and is judged by that word:

    reproduced                  what the source prints (or what we derived from it) is found again
    reproduced in a toy world   the effect is found in a simulation or solvable model of ours; their data are not
    differs                     the source's number is NOT found, and ``why`` says why; should it be found after all,
                                the word is stale and the check fails
    out of scope                not computed here; ``why`` says what is offered instead

NaN never holds, whatever the word. A claim with ``full=True`` is a statement about the long rerun only: a fast rerun
passes over it and says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import xarray as xr

from scalingkit.core.card import Card, Evidence

Word = Literal["reproduced", "reproduced in a toy world", "differs", "out of scope"]
Sense = Literal["equals", "at least", "at most"]
WORDS: tuple[Word, ...] = ("reproduced", "reproduced in a toy world", "differs", "out of scope")


@dataclass(frozen=True)
class PaperClaim:
    """One statement of a paper (or ours about it), in our words, with the number that decides it.

    evidence   "published": printed there (``where`` says where); "derived": ours; "conjecture": our guess at a detail
    quantity   function of the rerun's Dataset; None only where the claim is out of scope
    value      what it must equal (to ``within``), reach ("at least") or not exceed ("at most")
    """

    statement: str
    outcome: Word
    evidence: Evidence
    quantity: Callable[[xr.Dataset], Any] | None = None
    value: float = math.nan
    within: float = 0.0
    sense: Sense = "equals"
    where: str = ""
    why: str = ""
    full: bool = False

    def __post_init__(self) -> None:
        if self.outcome not in WORDS:
            raise ValueError(f"claim {self.statement!r}: outcome {self.outcome!r} is none of {', '.join(WORDS)}.")
        if (self.quantity is None) != (self.outcome == "out of scope"):
            raise ValueError(f"claim {self.statement!r}: every claim but one out of scope needs a quantity.")
        if self.outcome in ("differs", "out of scope") and not self.why:
            raise ValueError(f"claim {self.statement!r}: {self.outcome!r} needs a why.")
        if self.evidence == "published" and not self.where:
            raise ValueError(f"claim {self.statement!r}: say where it is printed.")

    def check(self, data: xr.Dataset) -> Judged:
        """Found here, and whether the word said of it is true."""
        if self.quantity is None:
            return Judged(self, math.nan, True)
        found = float(self.quantity(data))
        agrees = {
            "equals": abs(found - self.value) <= self.within,
            "at least": found >= self.value,
            "at most": found <= self.value,
        }[self.sense]
        return Judged(self, found, math.isfinite(found) and agrees == (self.outcome != "differs"))

    def asked(self) -> str:
        """What the number must be, in words."""
        room = f" +- {self.within:g}" if self.sense == "equals" else ""
        return f"{'' if self.sense == 'equals' else self.sense + ' '}{self.value:.6g}{room}"

    def plain(self) -> dict[str, Any]:
        """Plain values, for tables and --json."""
        keep = ("statement", "outcome", "evidence", "value", "within", "sense", "where", "why", "full")
        return {k: getattr(self, k) for k in keep}


@dataclass(frozen=True)
class Judged:
    """A claim, the number found and whether its word is true of it."""

    claim: PaperClaim
    found: float
    holds: bool

    def __str__(self) -> str:
        c = self.claim
        if c.quantity is None:
            return f"{c.statement}: out of scope ({c.why})"
        word = c.outcome if self.holds else f"FAILS as {c.outcome!r}"
        return f"{c.statement}: {self.found:.6g} (source: {c.asked()}): {word}"


@dataclass(frozen=True)
class Paper:
    """A source paper. ``papers/NAME.py`` holds ``paper = Paper(...)`` and is found by being there.

    rerun    rerun(fast: bool) -> Dataset with named dims; seeds inside, so two calls give the same numbers
    claims   judged on that Dataset, in order
    """

    card: Card
    rerun: Callable[[bool], xr.Dataset]
    claims: tuple[PaperClaim, ...]

    @property
    def name(self) -> str:
        return self.card.name

    def check(self, fast: bool = True, data: xr.Dataset | None = None) -> list[Judged]:
        """Every claim judged on ``data``, or on a new rerun; a fast one leaves out what is of the long one only."""
        data = self.rerun(fast) if data is None else data
        return [c.check(data) for c in self.claims if c.full is False or not fast]

    def counts(self) -> dict[str, int]:
        """How many claims have each outcome; words that do not occur are left out."""
        return {w: n for w in WORDS if (n := sum(c.outcome == w for c in self.claims))}
