"""Verbs ``predict`` and ``check``: questions to a kept posterior."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from scalingkit import answers
from scalingkit.answers import Answer
from scalingkit.verbs.base import Json, Seed, open_tree, pairs, verb


@verb
def predict(
    posterior: Annotated[Path, typer.Argument(help="A posterior kept by `scalingkit fit --out`.")],
    at: Annotated[
        list[str], typer.Option("--at", help="Where: name=value, such as N=7e9 and D=1.4e11; groups as corpus=c4.")
    ],
    outcome: Annotated[bool, typer.Option(help="Interval of a new run (noise included), not of the curve.")] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> Answer:
    """The outcome at a new design, with its interval."""
    from scalingkit.infer.predict import predict as draw

    tree = open_tree(posterior)
    design = _design(pairs(at, "--at"))
    found = draw(tree, design, kind="outcome" if outcome else "mean", seed=seed)
    y = str(next(iter(found.data_vars)))
    values = answers.named_values(found[y].squeeze("run", drop=True), ("chain", "draw"))
    result = {"at": pairs(at, "--at"), "kind": "outcome" if outcome else "mean", "prob": answers.PROB}
    result["predictions"] = {f"{y}{g}": answers.summarise(v) for g, v in values.items()}
    return Answer("predict", result, warnings=answers.merged_notes(tree, found), provenance=answers.provenance(tree))


def _design(at: dict[str, str]) -> Any:
    import xarray as xr

    from scalingkit.core.units import number

    design = xr.Dataset(coords={"run": ["new"]})
    for k, text in at.items():
        cell = number(text, k)
        if cell.code:  # no number: a group's label
            design = design.assign_coords({k: ("run", [text])})
        else:
            design[k] = ("run", [cell.value * cell.factor])
    return design


@verb
def check(
    posterior: Annotated[Path, typer.Argument(help="A posterior kept by `scalingkit fit --out`.")],
    as_json: Json = False,
) -> Answer:
    """Does the model describe its runs? Posterior predictive checks, PIT by group, tails, influential runs."""
    from scalingkit.infer.check import check as look

    tree = open_tree(posterior)
    return answers.of_check(tree, look(tree))
