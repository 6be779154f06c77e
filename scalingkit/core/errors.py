"""Refusals of the runs table: for people, with what, where and how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RunsError(ValueError):
    """A run table (or a request about one) that cannot be answered without guessing."""


def hint(wrong: str, have: Iterable[str]) -> str:
    """' Did you mean ...?' or the list of what there is."""
    have = list(have)
    lowered = {h.casefold().strip(): h for h in have}
    close = difflib.get_close_matches(wrong.casefold().strip(), lowered, 3, 0.6)
    if close:
        return f" Did you mean {' or '.join(repr(lowered[c]) for c in close)}?"
    return f" There are: {listed(have)}." if have else ""


def listed(names: Iterable[object], most: int = 8) -> str:
    """'a, b, c and 4 more'."""
    said = [str(n) for n in names]
    more = f" and {len(said) - most} more" if len(said) > most else ""
    return ", ".join(said[:most]) + more
