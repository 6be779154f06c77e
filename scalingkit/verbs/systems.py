"""Verbs ``table`` and ``show``: the systems of the house."""

from __future__ import annotations

from typing import Annotated

import typer

from scalingkit.answers import Answer
from scalingkit.verbs.base import BadInput, Json, verb


@verb
def table(
    kind: Annotated[str | None, typer.Argument(help="laws, worlds, estimators, policies or papers.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only systems with this tag.")] = None,
    as_json: Json = False,
) -> Answer:
    """The systems of the house: laws, worlds, estimators, policies, papers."""
    from scalingkit.core import zoo

    if kind is not None and kind not in zoo.KINDS:
        raise BadInput(f"{kind!r} is not a kind of system; there are {', '.join(zoo.KINDS)}.")
    return Answer("table", zoo.table(kind, tag).to_dict("records"))


@verb
def show(name: Annotated[str, typer.Argument(help="A law or another system.")], as_json: Json = False) -> Answer:
    """One system: its formula, parameters with priors and units, published values, claims and scope."""
    from scalingkit.core import zoo
    from scalingkit.core.describe import describe

    return Answer("show", describe(zoo.get(name)))
