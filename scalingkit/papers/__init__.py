"""Floor 5: one file per source paper; the folder is the registry.

    sk.papers.get("tpp-identifiability").rerun(fast=True)       one paper, rerun
    sk.papers.table()                                           all of them, with what came of their claims

``paper.py`` says what a paper is. ``tables.py`` and ``verify.py`` are the verbs over all tables and claims.
"""

from __future__ import annotations

from typing import Any


def names() -> list[str]:
    """Names of all papers."""
    from scalingkit.core import zoo

    return zoo.names("papers")


def get(name: str) -> Any:
    """The Paper called ``name`` (hyphens may stand for underscores). Raises UnknownName with the nearest names."""
    from scalingkit.core import zoo

    return zoo.get(name.replace("-", "_"), "papers")


def table() -> list[dict[str, Any]]:
    """One row a paper: name, title, sources, number of claims by outcome."""
    found = [get(n) for n in names()]
    return [
        {"name": p.name, "title": p.card.summary, "sources": "; ".join(map(str, p.card.sources)), "claims": p.counts()}
        for p in found
    ]
