"""Floor 1: public run tables by name.

    load("chinchilla-epoch-svg")            -> runs Dataset (dim run), units, source, sha256, quarantine
    names(), card(name), show(name)         -> what there is and what it means
    fetch(name), status()                   -> the verified files; where each table is to be had

The folder is the list: a file ``catalog/<id with underscores>.py`` defines ``table``; ``data/registry.toml`` has its
addresses and checksums. Nothing is read or downloaded by the import.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalingkit.catalog import _registry, _store
from scalingkit.catalog._errors import CatalogError

if TYPE_CHECKING:
    import xarray as xr

    from scalingkit.catalog._table import Table
    from scalingkit.core.card import Card

__all__ = ["CatalogError", "card", "fetch", "load", "names", "show", "status", "table"]


def names() -> list[str]:
    """Ids of the tables that load; imports none of their files."""
    files = (m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return sorted(f.replace("_", "-") for f in files)


def table(name: str) -> Table:
    """The Table called ``name`` (hyphens or underscores). Raises CatalogError with the nearest names."""
    key = _registry.canonical(name)
    return importlib.import_module(f"{__name__}.{key.replace('-', '_')}").table


def card(name: str) -> Card:
    """The table's card: one line, sources, scope."""
    return table(name).card


def load(name: str, table: str | None = None, **options: Any) -> xr.Dataset:
    """The public table ``name`` as a runs Dataset.

    table    a sub-table (``show(name)["subtables"]``); the first by default
    options  the table's own (``show(name)["options"]``), such as rule="besiroglu"
    Raises CatalogError for an unknown name, sub-table or option, and for files that are not to be had or not intact.
    """
    t = _named(name)
    sub = _choose(t, "sub-table", table or next(iter(t.subtables)), t.subtables)
    for option in options:
        _choose(t, "option", option, t.options)
    entry = _registry.entry(t.name)
    files = _store.Files(entry, t.rebuild)
    ds = t.read(files, sub, **options)
    ds.attrs |= {
        "source": f"{entry.repository} at {entry.commit}", "data_name": t.name, "subtable": sub, "sha256": files.sha256(),
        "files": json.dumps(files.used), "licence": entry.licence, "citation": entry.citation,
        "load_options": json.dumps(options, sort_keys=True, default=str),
    }  # fmt: skip
    return ds


_named = table  # load's argument of the same name hides it


def _choose(t: Table, kind: str, wanted: str, have: Any) -> str:
    if wanted in have:
        return wanted
    import difflib

    close = difflib.get_close_matches(str(wanted), list(have), 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise CatalogError(f"table {t.name!r} has no {kind} {wanted!r}; it has {', '.join(have) or 'none'}.{hint}")


def fetch(name: str) -> dict[str, Path]:
    """File name -> verified path, downloading into the cache what is not in the mirror.

    Files that only a mirror can give are left out where others are to be had (``show(name)["files"]`` says which).
    Raises CatalogError: not known, none to be had, or not intact.
    """
    entry = _registry.entry(name)
    files = _store.Files(entry, table(name).rebuild)
    wanted = [f.name for f in entry.files if _store.locate(entry, f)[0] != "mirror-only"]
    return {f: files[f] for f in wanted or files}


def show(name: str) -> dict[str, Any]:
    """All that is known about a table, as plain values (for people and for --json)."""
    t, entry = table(name), _registry.entry(name)
    return {
        "name": t.name, "title": entry.title, "summary": t.card.summary, "scope": t.card.scope, "licence": entry.licence,
        "citation": entry.citation, "repository": entry.repository, "commit": entry.commit, "mirror_only": entry.mirror_only,
        "params_kind": t.params_kind, "flops_kind": t.flops_kind, "subtables": dict(t.subtables), "options": dict(t.options),
        "columns": dict(t.columns), "traps": list(t.traps),
        "published": {k: {"value": p.value, "where": p.where, "recalled": p.recalled} for k, p in t.published.items()},
        "fits": [{"law": f.law, "options": dict(f.options), "expected": dict(f.expected), "where": f.where, "reason": f.reason} for f in t.fits],
        "files": [{"name": f.name, "bytes": f.bytes, "sha256": f.sha256, "url": f.url, "derived": f.derived, "available": _store.locate(entry, f)[0]} for f in entry.files],
    }  # fmt: skip


def status() -> list[dict[str, Any]]:
    """Per table: name, title, licence, bytes, and where it is to be had.

    available: mirror, cache, download (worst of its files), partly (some sub-tables need a mirror) or mirror-only.
    """
    rows = []
    for name in names():
        entry = _registry.entry(name)
        size = sum(f.bytes for f in entry.files)
        rows.append(dict(name=name, title=entry.title, licence=entry.licence, bytes=size, available=_available(entry)))
    return rows


def _available(entry: _registry.Entry) -> str:
    order = ["mirror", "cache", "download", "mirror-only"]
    found = {_store.locate(entry, f)[0] for f in entry.files}
    return "partly" if "mirror-only" in found and len(found) > 1 else max(found, key=order.index)
