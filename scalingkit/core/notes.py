"""Notes: coded warnings with a severity and the name of what they are about.

Every answer of the house carries its notes: in text, in ``attrs["notes"]`` (JSON) and in ``--json``. A code is spelled
once, in CODES, with what it means and what to do; the docs page of codes is made from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["info", "warning", "error"]

CODES: dict[str, str] = {
    "rows-quarantined": "Rows were set aside and not used; the quarantine table gives a reason for each.",
}


@dataclass(frozen=True)
class Note:
    """``code`` (a key of CODES), ``severity``, ``about`` (a parameter, column, row or group), ``text`` (one sentence)."""

    code: str
    severity: Severity
    about: str
    text: str

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"note code {self.code!r} is not in scalingkit.core.notes.CODES: spell it there first.")

    def __str__(self) -> str:
        return f"{self.severity} [{self.code}] {self.about}: {self.text}"


def dump(notes: Iterable[Note]) -> str:
    """JSON text for ``attrs["notes"]``."""
    return json.dumps([asdict(n) for n in notes])


def of(thing: Any) -> list[Note]:
    """The notes in the attrs of a Dataset, DataTree or mapping."""
    attrs = getattr(thing, "attrs", thing)
    return [Note(**n) for n in json.loads(attrs.get("notes", "[]"))]


def add(thing: Any, *notes: Note) -> None:
    """Append notes to the attrs of a Dataset or DataTree that the caller owns."""
    thing.attrs["notes"] = dump([*of(thing), *notes])
