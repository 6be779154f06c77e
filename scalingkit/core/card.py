"""Card, Source, Claim: what each system says about itself, and on whose word."""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Any, Literal

Evidence = Literal["published", "derived", "conjecture"]


@dataclass(frozen=True)
class Source:
    """Where a formula or a figure comes from. Hashable: sources key the ``published`` values of a law."""

    key: str
    citation: str
    arxiv: str = ""
    url: str = ""

    def __str__(self) -> str:
        return f"{self.citation}{f' arXiv:{self.arxiv}' if self.arxiv else ''}"


OURS = Source("scalingkit", "derived in this project")


@dataclass(frozen=True)
class Card:
    """Name, one line, the sources, and what the system does not tell."""

    name: str
    summary: str
    tags: Set[str] = frozenset()
    sources: tuple[Source, ...] = ()
    scope: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", frozenset(self.tags))
        if not self.name.isidentifier():
            raise ValueError(f"card name {self.name!r} must be a Python identifier: it is also the file's name.")


@dataclass(frozen=True)
class Verdict:
    """Outcome of one claim: what was expected, what came out, and whether the two agree."""

    claim: Claim
    found: float
    agrees: bool

    def __str__(self) -> str:
        word = "agrees" if self.agrees else "DIFFERS"
        return f"{self.claim.statement}: expected {self.claim.value:.6g}, found {self.found:.6g}: {word}"


@dataclass(frozen=True)
class Claim:
    """A number somebody printed (or we derived), and the function that computes it here.

    ``|quantity(*args) - value| <= within`` (times ``|value|`` where ``relative``).
    ``evidence`` says whether the number is the paper's ("published"), ours ("derived") or our guess at a detail
    ("conjecture"); only the first may be called the paper's. NaN never agrees.
    """

    source: Source
    where: str
    statement: str
    quantity: Callable[..., Any] = field(compare=False)
    value: float
    within: float
    evidence: Evidence = "published"
    relative: bool = False

    def check(self, *args: Any, **kwargs: Any) -> Verdict:
        found = float(self.quantity(*args, **kwargs))
        room = self.within * (abs(self.value) if self.relative else 1.0)
        return Verdict(self, found, math.isfinite(found) and abs(found - self.value) <= room)
