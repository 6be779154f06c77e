"""The registry of public run tables: address, checksum, licence and citation of every file.

``data/registry.toml`` in a checkout, ``scalingkit/data/registry.toml`` in an installed copy. One section a table:

    ["chinchilla-epoch-svg"]
    title, licence, citation, repository, commit
    mirror_only = "why"           where the public original cannot be used as it is
    [["chinchilla-epoch-svg".files]]
    name      file name in the mirror and in the cache
    sha256    of these bytes; bytes: how many
    url       address of the same bytes
    derived   how the file was made from ``origins`` (then there is no url)
    origins   [{url, sha256, bytes}], or ``origins_at`` (folder address) with ``origins_list`` (lines: sha256 bytes name)
    rebuilt   true where the table's ``rebuild`` makes the same bytes from the origins
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scalingkit.catalog._errors import CatalogError

PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parent


@dataclass(frozen=True)
class File:
    """One file of a table; ``url`` is empty for a derived file, ``origins`` are what it was made from."""

    name: str
    sha256: str
    bytes: int
    url: str = ""
    derived: str = ""
    origins: tuple[Mapping[str, Any], ...] = ()
    mirror_only: str = ""
    rebuilt: bool = False


@dataclass(frozen=True)
class Entry:
    """One table of the registry."""

    id: str
    title: str
    licence: str
    citation: str
    repository: str
    commit: str
    files: tuple[File, ...]
    mirror_only: str = ""

    def file(self, name: str) -> File:
        for f in self.files:
            if f.name == name:
                return f
        raise CatalogError(f"table {self.id!r} has no file {name!r}; it has {', '.join(f.name for f in self.files)}.")


def path() -> Path:
    """The registry file. The packaged one first: beside an installed package, ``data/`` belongs to somebody else."""
    for candidate in (PACKAGE / "data" / "registry.toml", CHECKOUT / "data" / "registry.toml"):
        if candidate.is_file():
            return candidate
    raise CatalogError(f"registry.toml is missing from {PACKAGE / 'data'}: the installation is broken; reinstall it.")


@cache
def entries() -> dict[str, Entry]:
    """Table id -> Entry."""
    return {k: _entry(k, v) for k, v in tomllib.loads(path().read_text(encoding="utf-8")).items()}


def _entry(key: str, section: dict[str, Any]) -> Entry:
    files = tuple(_file(f, section.get("mirror_only", "")) for f in section.pop("files"))
    return Entry(id=key, files=files, **section)


def _file(f: dict[str, Any], mirror_only: str) -> File:
    at, listed = f.pop("origins_at", ""), f.pop("origins_list", "")
    origins = [*f.pop("origins", ()), *(_origin(at, line) for line in listed.splitlines())]
    return File(**{"mirror_only": mirror_only} | f, origins=tuple(origins))


def _origin(at: str, line: str) -> dict[str, Any]:
    sha256, size, name = line.split(" ", 2)
    return {"url": at + quote(name), "sha256": sha256, "bytes": int(size), "name": name}


def entry(name: str) -> Entry:
    """The entry called ``name`` (hyphens or underscores). Raises CatalogError with the nearest names."""
    return entries()[canonical(name)]


def canonical(name: str) -> str:
    key = str(name).strip().lower().replace("_", "-")
    if key in entries():
        return key
    close = difflib.get_close_matches(key, entries(), 3, 0.5)
    close = close or [k for k in entries() if key and (key in k or k.split("-")[0] in key)]
    hint = f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(sorted(entries()))}."
    raise CatalogError(f"no public table called {name!r}. {hint} (`scalingkit data list` shows them all.)")
