"""Verbs ``data list|show|fetch`` and ``runs check``: public tables and one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from scalingkit import progress
from scalingkit.answers import Answer
from scalingkit.verbs.base import BadInput, Column, Json, pairs, verb


@verb
def data_list(as_json: Json = False) -> Answer:
    """The catalogue: every public table, its size and licence, and where it is to be had."""
    from scalingkit import catalog

    return Answer("data list", catalog.status())


@verb
def data_show(name: str, as_json: Json = False) -> Answer:
    """One table: columns and units, traps handled, published numbers, licence, citation, addresses."""
    from scalingkit import catalog

    return Answer("data show", catalog.show(name))


@verb
def data_fetch(
    names: Annotated[list[str], typer.Argument(help="Tables to fetch; 'all' for every one.")], as_json: Json = False
) -> Answer:
    """Verify a table's files in the mirror, or download them into the cache."""
    from scalingkit import catalog

    wanted = catalog.names() if names == ["all"] else names
    return Answer(
        "data fetch",
        {n: {f: str(p) for f, p in catalog.fetch(n).items()} for n in progress.over(wanted, "fetching", quiet=as_json)},
    )


@verb
def runs_check(
    file: Annotated[str, typer.Argument(help="CSV, TSV, Parquet, JSON lines or JSON; a W&B export is recognised.")],
    column: Column = None,
    unit: Annotated[list[str] | None, typer.Option("--unit", help='Unit of a column, as role=unit: "N=B".')] = None,
    group: Annotated[str | None, typer.Option(help="Column of a further group label.")] = None,
    params_kind: Annotated[str | None, typer.Option(help="non-embedding, total or active.")] = None,
    flops_kind: Annotated[str | None, typer.Option(help="6ND, exact or reported.")] = None,
    checkpoints: Annotated[str, typer.Option(help="last, or all to keep every checkpoint of a run.")] = "last",
    as_json: Json = False,
) -> Answer:
    """What the house understands of a table: columns, units, conventions, rows set aside and why."""
    from scalingkit.core import notes, runs

    if not Path(file).exists():
        raise BadInput(f"there is no file {file!r}.")
    given: dict[str, Any] = {
        "columns": pairs(column, "--column"),
        "units": pairs(unit, "--unit"),
        "checkpoints": checkpoints,
    }
    given |= {"params_kind": params_kind, "flops_kind": flops_kind, "group": group}
    ds = runs.read(file, **{k: v for k, v in given.items() if v})
    return Answer("runs check", runs.summary(ds) | {"report": runs.report(ds)}, warnings=notes.of(ds))
