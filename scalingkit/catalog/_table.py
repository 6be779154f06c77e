"""Table: what one public run table says about itself, and how its file becomes a Dataset.

A file ``catalog/<id with underscores>.py`` defines ``table``. The registry (``data/registry.toml``) says where the
bytes are and whose they are; the Table says what they mean, what is wrong with them and what was printed about them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

from scalingkit.core.card import Card


@dataclass(frozen=True)
class Fit:
    """One law fitted to one table, and the numbers it should give.

    law        name of the law ("chinchilla")
    options    load    keyword arguments of ``catalog.load`` besides the name (table, rule, ...)
               where   {coord: value or list of values}: keep these rows only
               at_most, at_least   {variable: bound}: keep rows with variable <= / >= bound
               rename  {name in the law: variable of the Dataset}
               delta   Huber threshold on the log of the outcome (default 1e-3)
               fixed   {parameter: value} held
               ties    {parameter: other parameter it equals}
    expected   {parameter, "objective" or a derived name: printed (or our recorded) value}
    tolerance  the same keys: absolute room
    where      where the expected values are printed; "our ..." where they are what we found ourselves
    reason     why a printed number cannot be reproduced here; empty where it can
    """

    law: str
    options: Mapping[str, Any]
    expected: Mapping[str, float]
    tolerance: Mapping[str, float]
    where: str
    reason: str = ""

    def __post_init__(self) -> None:
        if set(self.expected) != set(self.tolerance):
            raise ValueError(f"fit of {self.law}: expected and tolerance name different things.")
        if unknown := set(self.options) - OPTIONS:
            raise ValueError(f"fit of {self.law}: unknown options {sorted(unknown)}; there are {sorted(OPTIONS)}.")

    @property
    def printed(self) -> bool:
        """Whether somebody else printed the expected values."""
        return not self.where.lower().startswith("our ")


OPTIONS = {"load", "where", "at_most", "at_least", "rename", "delta", "fixed", "ties"}


@dataclass(frozen=True)
class Published:
    """A printed number: ``value``, ``where`` it is printed; ``recalled`` where nobody here has re-read the page."""

    value: float
    where: str
    recalled: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """One public table.

    card         name (the id with underscores), one line, sources, scope
    read         read(files, subtable, **options) -> Dataset; ``files[name]`` is the verified path of a file
    subtables    name -> what it holds; the first is what ``load`` gives
    options      option -> what it does and its default, in words
    params_kind  which parameters N counts: a key of core.names.PARAMS_KINDS
    flops_kind   how C is counted: a key of core.names.FLOPS_KINDS
    columns      name in the Dataset -> meaning, with the unit
    traps        sentences: what is wrong with or odd about the source, and what is done about it
    published    name -> Published
    fits         laws fitted by ``scalingkit verify --data``
    rebuild      derived file -> function of its origins (name -> path) giving the same bytes, where we can
    """

    card: Card
    read: Callable[..., xr.Dataset]
    subtables: Mapping[str, str]
    params_kind: str
    flops_kind: str
    columns: Mapping[str, str]
    traps: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    published: Mapping[str, Published] = field(default_factory=dict)
    fits: tuple[Fit, ...] = ()
    rebuild: Mapping[str, Callable[[Mapping[str, Path]], bytes]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The id: 'chinchilla-epoch-svg'."""
        return self.card.name.replace("_", "-")
