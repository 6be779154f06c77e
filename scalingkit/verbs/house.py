"""Verbs ``verify``, ``doctor`` and ``tour``: the claims, the installation, the main job from end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scalingkit import progress
from scalingkit.answers import Answer
from scalingkit.verbs.base import Json, Seed, verb


@verb
def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Laws, tables or papers; all where none is named.")] = None,
    data: Annotated[
        bool, typer.Option("--data", help="Tables of the catalogue: fit each and compare with printed numbers.")
    ] = False,
    papers: Annotated[
        bool, typer.Option("--papers", help="Every paper: rerun in FAST mode, its claims judged.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Papers at full size (minutes) instead of FAST.")] = False,
    as_json: Json = False,
) -> tuple[Answer, int]:
    """Is what the sources print so? Claims of laws, of papers named (rerun in FAST mode unless --full), or (--data)
    published numbers of tables. Exit 1 where a claim that we assert fails."""
    from scalingkit.papers import verify as claims

    if data:
        report = claims.tables(names, each=lambda n: progress.over(n, "fitting", quiet=as_json))
    else:
        report = claims.everything(names, papers_too=papers, fast=not full)
    return Answer("verify", report.plain(), warnings=report.notes()), 0 if report.holds else 1


@verb
def papers(as_json: Json = False) -> Answer:
    """The papers behind the house: each with its claims and what came of them (no rerun; see verify)."""
    from scalingkit import papers as shelf

    return Answer("papers", shelf.table())


@verb
def doctor(as_json: Json = False) -> Answer:
    """Versions, devices, precision, data mirror, and whether widgets can show in this kernel."""
    from scalingkit.doctor import examine

    report, told = examine()
    return Answer("doctor", report, warnings=told)


@verb
def tour(
    out: Annotated[Path, typer.Option(help="Folder for posterior.zarr and report.html.")] = Path("out/tour"),
    seed: Seed = 0,
    simulated: Annotated[
        bool, typer.Option(help="Use the shipped simulated table even where the real one is to be had.")
    ] = False,
    as_json: Json = False,
) -> Answer:
    """The main job: a real table, the hierarchical fit, what is identified, checks, N* and D*, and a report."""
    from scalingkit.tour import tour as go

    with progress.stages(quiet=as_json) as say:
        return go(out, seed=seed, simulated=simulated, say=say)
