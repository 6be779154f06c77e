"""Discovery: the folder is the registry. There is no list to keep.

A file ``laws/<name>.py`` defines ``law``, ``worlds/<name>.py`` ``world``, ``estimators/<name>.py`` ``estimator``,
``policies/<name>.py`` ``policy``, ``papers/<name>.py`` ``paper``. A name starting with an underscore is a helper;
``papers/paper.py`` says what a paper is, ``papers/verify.py`` and ``papers/tables.py`` are verbs over all of them.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from typing import Any

KINDS = {"laws": "law", "worlds": "world", "estimators": "estimator", "policies": "policy", "papers": "paper"}
VERBS = {"papers": {"paper", "tables", "verify"}}


class UnknownName(KeyError):
    """No system of that name; the text gives the nearest names."""

    def __str__(self) -> str:
        return str(self.args[0])


def names(kind: str | None = None) -> list[str]:
    """Names in one folder ("laws"), or in all; imports none of the files."""
    kinds = [kind] if kind else list(KINDS)
    found = []
    for k in kinds:
        package = importlib.import_module(f"scalingkit.{k}")
        found += [
            m.name
            for m in pkgutil.iter_modules(package.__path__)
            if not m.name.startswith("_") and m.name not in VERBS.get(k, ())
        ]
    return sorted(found)


def get(name: str, kind: str | None = None) -> Any:
    """The system called ``name``. Raises UnknownName, a KeyError, with the nearest names where there is none.

    >>> get("chinchilla").output
    'loss'
    """
    for k in [kind] if kind else list(KINDS):
        if name in names(k):
            return getattr(importlib.import_module(f"scalingkit.{k}.{name}"), KINDS[k])
    have = names(kind)
    close = difflib.get_close_matches(name, have, 3)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(have)}."
    raise UnknownName(f"no {KINDS.get(kind or '', 'system')} called {name!r}. {hint}")


def systems(kind: str | None = None, tag: str | None = None) -> dict[str, Any]:
    """Name -> system, for a kind and a tag."""
    found = {n: get(n, k) for k in ([kind] if kind else KINDS) for n in names(k)}
    return {n: s for n, s in found.items() if tag is None or tag in s.card.tags}


def table(kind: str | None = None, tag: str | None = None) -> Any:
    """A pandas table of the systems: kind, name, summary, tags, sources."""
    import pandas as pd

    kinds = [kind] if kind else list(KINDS)
    rows = [
        dict(
            kind=KINDS[k], name=n, summary=s.card.summary, tags=", ".join(sorted(s.card.tags)),
            sources="; ".join(x.key for x in s.card.sources),
        )
        for k in kinds
        for n, s in systems(k, tag).items()
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["kind", "name", "summary", "tags", "sources"])
