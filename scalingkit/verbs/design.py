"""Verbs ``design check`` and ``design suggest``: is this design enough, and which runs come next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from scalingkit import answers
from scalingkit.answers import Answer
from scalingkit.verbs.base import BadInput, Column, Json, Opt, Seed, Sub, open_tree, pairs, read_runs, verb
from scalingkit.verbs.identify import LawName, Noise, Runs, Tree, condition


@verb
def design_check(
    runs: Annotated[str, typer.Argument(metavar="RUNS", help="A table of the catalogue, or a file of your own.")],
    law: LawName = "chinchilla",
    kappa: Annotated[
        float, typer.Option(help="Condition number of the scale coefficients that is good enough.")
    ] = 1000.0,
    table: Sub = None,
    option: Opt = None,
    column: Column = None,
    noise: Noise = None,
    as_json: Json = False,
) -> tuple[Answer, int]:
    """Can this design tell the law's parameters apart? Exit 0 where it can, 1 where it cannot."""
    from scalingkit.core import zoo
    from scalingkit.design.adequacy import adequacy

    data = read_runs(runs, table, option, column)
    found = adequacy(zoo.get(law, "laws"), data, kappa=kappa, noise=noise)
    good = bool(found["adequate"])
    result: dict[str, Any] = {"verdict": found.attrs["verdict"], "adequate": good, "kappa goal": kappa}
    result |= {"condition": condition(found), "weakest contraction": float(found["direction_contraction"][0])}
    result |= {k: float(found[k]) for k in ("sd_log_tpp", "sd_needed", "sd_missing", "noise") if k in found}
    told = answers.merged_notes(data, found)
    return Answer("design check", result, warnings=told, provenance=answers.provenance(data)), 0 if good else 1


@verb
def design_suggest(
    budget: Annotated[str, typer.Option(help="What the new runs may cost together: 1e21, in FLOP or the cost's unit.")],
    target: Annotated[str, typer.Option(help="What is to become known: loss@N,D, nstar@BUDGET or a parameter's name.")],
    runs: Runs = None,
    count: Annotated[int, typer.Option("--runs", help="At most so many runs.")] = 3,
    law: LawName = "chinchilla",
    tree: Tree = None,
    group: Annotated[list[str] | None, typer.Option(help="Group of a pooled posterior, as corpus=c4.")] = None,
    cost: Annotated[
        str | None, typer.Option(help='6 (times N D), "6*N*D + 1e18", file.py:function or module:function.')
    ] = None,
    goal: Annotated[float | None, typer.Option(help="sd wanted: then the cheapest runs that reach it.")] = None,
    table: Sub = None,
    option: Opt = None,
    column: Column = None,
    noise: Noise = None,
    out: Annotated[Path | None, typer.Option(help="CSV file for the suggested runs.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> Answer:
    """The runs that make a number best known for a budget, against grid and random designs of the same budget."""
    from scalingkit.core import runs as tables
    from scalingkit.core import zoo
    from scalingkit.design import spoken
    from scalingkit.design.evidence import read
    from scalingkit.design.suggest import suggest

    if runs is None and tree is None:
        raise BadInput("design suggest needs a table (a name or a file) or --tree with a kept posterior.")
    data = None if runs is None else read_runs(runs, table, option, column)
    source: Any = zoo.get(law, "laws") if tree is None else open_tree(tree)
    price = spoken.cost(cost)
    given: dict[str, Any] = {
        "target": spoken.target(target, read(source, data).law, price), "budget": _budget(budget), "cost": price,
        "count": count, "noise": noise, "group": pairs(group, "--group") or None, "seed": seed,
    }  # fmt: skip
    found = suggest(source, data, goal=goal, **given)
    if goal is not None:
        given["budget"] = found.attrs["spent"]
    rivals = {m: suggest(source, data, method=m, **given) for m in ("grid", "random")}
    if out is not None:
        columns = {k: found[k].values for k in found.data_vars if found[k].dims == ("run",) and k != "drop"}
        tables.write(tables.make(name="suggested", run=found["run"].values, **columns), out)
    told = answers.merged_notes(*([] if data is None else [data]), found)
    origin = [x for x in (data, source) if hasattr(x, "attrs")]
    return Answer("design suggest", _suggested(found, rivals), warnings=told, provenance=answers.provenance(*origin))


def _budget(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise BadInput(f"--budget {text!r} is not a positive number, such as 1e21.")
    return value


def _suggested(found: Any, rivals: dict[str, Any]) -> dict[str, Any]:
    rows = [
        {"run": str(found["run"].values[i]), "N": float(found["N"][i]), "D": float(found["D"][i]),
         "tokens per parameter": float(found["D"][i] / found["N"][i]), "cost": float(found["C"][i]),
         "sd without it": f"x{float(found['drop'][i]):.2f}"}
        for i in range(found.sizes["run"])
    ]  # fmt: skip
    now = float(found["sd_now"])
    ways = [{"design": "none", "runs": 0, "spent": 0.0, "sd of the target": now, "share of now": 1.0}]
    for name, one in {"suggested": found, **rivals}.items():
        sd = float(one["sd_after"])
        row = {"design": name, "runs": one.sizes["run"], "spent": one.attrs["spent"]}
        ways.append(row | {"sd of the target": sd, "share of now": sd / now})
    kept = {k: found.attrs[k] for k in ("text", "target", "budget", "spent", "cost")}
    return kept | {"runs": rows, "compared": ways}
