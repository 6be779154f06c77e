"""What every verb shares: options, refusals in one line, reading of tables and posteriors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from scalingkit.answers import Answer
from scalingkit.answers_text import show_answer

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object: verb, result, diagnostics, warnings, provenance.")
]
Data = Annotated[str, typer.Option("--data", help="A table of the catalogue, or a file of your own.")]
Sub = Annotated[str | None, typer.Option("--table", help="Sub-table of the catalogue's table.")]
Opt = Annotated[list[str] | None, typer.Option("--set", help="Option of the catalogue's table, as name=value.")]
Column = Annotated[list[str] | None, typer.Option("--column", help='Role of a column, as role=header: "N=Model Size".')]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]


class BadInput(ValueError):
    """Something the command line asked for that is not to be had."""


# errors of floors that need not be loaded: looked for only where they are
_OWN = {
    "design.grids": "DesignError", "design.cost": "CostError", "infer.spec": "SpecError",
    "infer.likelihoods": "DataError", "infer.store": "StoreError",
}  # fmt: skip


def refusals() -> tuple[type[BaseException], ...]:
    """The house's own errors: what they say is for the user. Whatever else is raised is a fault of ours, shown whole."""
    from scalingkit.catalog import CatalogError
    from scalingkit.core.errors import RunsError
    from scalingkit.core.precision import PrecisionError
    from scalingkit.core.zoo import UnknownName

    always = (BadInput, CatalogError, RunsError, PrecisionError, UnknownName, FileNotFoundError)
    loaded = ((sys.modules.get(f"scalingkit.{module}"), name) for module, name in _OWN.items())
    return (*always, *(getattr(m, name) for m, name in loaded if hasattr(m, name)))


def verb(run: Callable[..., Answer | tuple[Answer, int]]) -> Callable[..., None]:
    """A verb returns an Answer (and an exit status); here it is printed, and refusals become one line and exit 2."""

    @wraps(run)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        as_json = bool(kwargs.get("as_json"))
        try:
            answer = run(*args, **kwargs)
        except KeyboardInterrupt:
            typer.echo("stopped; what was finished is kept", err=True)
            raise typer.Exit(130) from None
        except Exception as e:
            if not isinstance(e, refusals()):
                raise
            _refuse(run.__name__, e, as_json)
            raise typer.Exit(2) from None
        answer, status = answer if isinstance(answer, tuple) else (answer, 0)
        if as_json:
            typer.echo(answer.to_json())
        else:
            show_answer(answer)
        if status:
            raise typer.Exit(status)

    return wrapped


def _refuse(name: str, e: BaseException, as_json: bool) -> None:
    text = " ".join(str(e.args[0] if isinstance(e, KeyError) and e.args else e).split())
    if as_json:
        error = {"type": type(e).__name__, "text": text}
        typer.echo(json.dumps({"verb": name.replace("_", " "), "error": error}, indent=1))
    typer.echo(f"scalingkit: {text}", err=True)


def pairs(texts: list[str] | None, what: str) -> dict[str, str]:
    out = {}
    for t in texts or []:
        key, sign, value = t.partition("=")
        if not sign or not key or not value:
            raise BadInput(f"{what} {t!r} is not of the form name=value.")
        out[key.strip()] = value.strip()
    return out


def read_runs(data: str, table: str | None, options: list[str] | None, columns: list[str] | None) -> Any:
    """A table of the catalogue by name, or a file by path."""
    from scalingkit import catalog
    from scalingkit.core import runs

    if Path(data).exists() or Path(data).suffix or "/" in data:
        if not Path(data).exists():
            raise BadInput(f"there is no file {data!r}.")
        if table or options:
            raise BadInput("--table and --set belong to tables of the catalogue; for a file give --column role=header.")
        return runs.read(data, columns=pairs(columns, "--column") or None)
    if columns:
        raise BadInput("--column belongs to files; the catalogue's tables have their columns named.")
    return catalog.load(data, table=table, **pairs(options, "--set"))


def pooling_of(texts: list[str] | None) -> dict[str, Any]:
    from scalingkit.infer import pooling

    kinds = {"partial": pooling.Partial, "separate": pooling.Separate}
    out = {}
    for param, how in pairs(texts, "--pool").items():
        dim, _, kind = how.partition(":")
        if (kind or "partial") not in kinds:
            raise BadInput(
                f"--pool {param}={how}: {kind!r} is not a pooling; write {param}={dim}:partial or :separate."
            )
        out[param] = kinds[kind or "partial"](dim)
    return out


def open_tree(path: Path) -> Any:
    from scalingkit.infer.store import load_tree

    if not path.exists():
        raise BadInput(f"there is no posterior at {str(path)!r}; `scalingkit fit ... --out {path}` makes one.")
    return load_tree(path)
