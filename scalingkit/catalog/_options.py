"""Options of a table's loader: one of a few words, or a clear refusal."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from scalingkit.catalog._errors import CatalogError


def choose(table: str, option: str, value: str, allowed: Iterable[str]) -> str:
    """``value`` if allowed; else CatalogError naming the words there are."""
    allowed = [str(a) for a in allowed]
    if value in allowed:
        return value
    close = difflib.get_close_matches(str(value), allowed, 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise CatalogError(f"table {table!r}: {option}={value!r} is not known; it can be {', '.join(allowed)}.{hint}")
