"""Verb ``design board``: a small notebook with the DesignBoard on the user's table, ready to run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from scalingkit.answers import Answer
from scalingkit.verbs.base import BadInput, Column, Json, Opt, Sub, pairs, read_runs, verb


@verb
def design_board(
    data: Annotated[str, typer.Argument(help="A table of the catalogue, or a file of your own.")],
    law: Annotated[str, typer.Option(help="The law the runs are to tell about.")] = "chinchilla",
    budget: Annotated[
        float | None, typer.Option(help="Where N* is asked for, in FLOP; default 100 times the dearest run.")
    ] = None,
    table: Sub = None,
    option: Opt = None,
    column: Column = None,
    out: Annotated[Path, typer.Option(help="The notebook to write.")] = Path("design_board.ipynb"),
    overwrite: Annotated[bool, typer.Option(help="Replace what stands at --out.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Start JupyterLab on it.")] = False,
    as_json: Json = False,
) -> Answer:
    """Drag planned runs on the N-D plane and see what they would tell: writes a notebook; --open starts JupyterLab."""
    from scalingkit.core import zoo

    if out.suffix != ".ipynb":
        raise BadInput(f"--out {str(out)!r} must end in .ipynb.")
    if out.exists() and not overwrite:
        raise BadInput(f"{str(out)!r} exists; give --overwrite or another --out.")
    chosen = zoo.get(law, "laws")
    if missing := [k for k in ("N", "D") if k not in chosen.inputs]:
        raise BadInput(f"law {law!r} has no input {' and no '.join(missing)}: the board places runs by N and D.")
    runs = read_runs(data, table, option, column)
    _write(out, _cells(data, law, budget, table, pairs(option, "--set"), pairs(column, "--column"), out.parent))
    command = [sys.executable, "-m", "jupyter", "lab", str(out), *(["--allow-root"] if _root() else [])]
    result = {"notebook": str(out), "runs": int(runs.sizes["run"]), "law": law}
    result["open"] = f"jupyter lab {out}" + (" --allow-root" if _root() else "")
    if open_:
        subprocess.run(command, check=False, stdout=sys.stderr)
    return Answer("design board", result)


def _cells(
    data: str, law: str, budget: float | None, table: str | None, options: dict[str, str], columns: dict[str, str], at: Path
) -> list[tuple[str, str]]:  # fmt: skip
    """(kind, source) of the notebook's cells."""
    if Path(data).exists():
        named = f", columns={columns!r}" if columns else ""
        load = f"runs = sk.runs.read({os.path.relpath(data, at or '.')!r}{named})"
    else:
        more = "".join(f", {k}={v!r}" for k, v in ({"table": table} if table else {}).items())
        more += "".join(f", {k}={v!r}" for k, v in options.items())
        load = f"runs = sk.load({data!r}{more})"
    at_budget = f", budget={budget:g}" if budget else ""
    make = f"board = DesignBoard(sk.get({law!r}), runs{at_budget})\nboard"
    return [
        ("markdown", f"# Which run next?\n\nThe runs of `{data}` as squares; drag, add (double click) and suggest new ones."),
        ("code", f"import scalingkit as sk\nfrom scalingkit.widgets import DesignBoard\n\n{load}"),
        ("code", make),
        ("code", "board.planned, board.result  # the plan, and the numbers the board shows"),
    ]  # fmt: skip


def _write(out: Path, cells: list[tuple[str, str]]) -> None:
    """A notebook, whole or not at all."""
    book: dict[str, Any] = {
        "nbformat": 4, "nbformat_minor": 5,
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "cells": [_cell(i, *c) for i, c in enumerate(cells)],
    }  # fmt: skip
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.part")
    part.write_text(json.dumps(book, indent=1) + "\n")
    part.replace(out)


def _cell(i: int, kind: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"id": f"cell-{i}", "cell_type": kind, "metadata": {}, "source": source.splitlines(True)}
    return cell | {"outputs": [], "execution_count": None} if kind == "code" else cell


def _root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
