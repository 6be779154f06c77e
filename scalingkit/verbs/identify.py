"""Verb ``identify``: what a table, or a kept posterior, can and cannot tell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from scalingkit import answers
from scalingkit.answers import Answer
from scalingkit.verbs.base import BadInput, Column, Json, Opt, Sub, open_tree, pooling_of, read_runs, verb

Runs = Annotated[str | None, typer.Argument(metavar="RUNS", help="A table of the catalogue, or a file of your own.")]
LawName = Annotated[str, typer.Option("--law", help="A law's name; see `scalingkit table laws`.")]
Tree = Annotated[Path | None, typer.Option("--tree", help="A posterior kept by `scalingkit fit --out`.")]
Noise = Annotated[
    float | None, typer.Option(help="Noise of one run, as a share of its loss; estimated where not given.")
]


@verb
def identify(
    runs: Runs = None,
    law: LawName = "chinchilla",
    pool: Annotated[list[str] | None, typer.Option(help="parameter=dim, or parameter=dim:separate.")] = None,
    tree: Tree = None,
    table: Sub = None,
    option: Opt = None,
    column: Column = None,
    noise: Noise = None,
    within: Annotated[
        float, typer.Option(help="Half-width of the loss's interval up to which it counts as known.")
    ] = 0.01,
    as_json: Json = False,
) -> Answer:
    """What the data determine, what the prior does, what stays free, how far it holds, which run to add."""
    from scalingkit.core import zoo
    from scalingkit.design.identify import identify as judge

    if runs is None and tree is None:
        raise BadInput("identify needs a table (a name or a file) or --tree with a kept posterior.")
    if pool and tree is not None:
        raise BadInput("--pool belongs to a table; a kept posterior has its own pooling.")
    data = None if runs is None else read_runs(runs, table, option, column)
    source: Any = zoo.get(law, "laws") if tree is None else open_tree(tree)
    if pool:
        from scalingkit.infer.laplace import laplace
        from scalingkit.infer.model import Model

        source = laplace(Model(law=source, pool=pooling_of(pool)), data)
    found = judge(source, data, noise=noise, within=within)
    told = answers.merged_notes(*([] if data is None else [data]), found)
    origin = [x for x in (data, source) if hasattr(x, "attrs")]
    return Answer("identify", _result(found), warnings=told, provenance=answers.provenance(*origin))


def _result(found: Any) -> dict[str, Any]:
    out = {"verdict": found.attrs["verdict"], "identified": bool(found.attrs["identified"]), "law": found.attrs["law"]}
    dim = next((str(d) for d in found["contraction"].dims if d != "param"), None)
    if dim is None:
        return out | numbers(found)
    groups = {str(g): found.sel({dim: g}) for g in found[dim].values}
    return out | {"groups": {g: {"verdict": str(one["verdict"].values), **numbers(one)} for g, one in groups.items()}}


def numbers(one: Any) -> dict[str, Any]:
    """The numbers of one group: parameters, directions, condition, reach, runs to add."""
    parameters = [
        {"parameter": str(p), "determined by": str(one["status"].sel(param=p).values), **_each(one, str(p))}
        for p in one["param"].values
    ]
    weak = [
        {"contraction": float(c), "combination": str(w), "moves a run by": float(e)}
        for c, w, e in zip(*(one[k].values for k in ("direction_contraction", "words", "effect")), strict=True)
    ]
    reach = {str(w): float(r) for w, r in zip(one["way"].values, one["reach"].values, strict=True)}
    out = {"parameters": parameters, "directions": weak, "condition": condition(one), "noise": float(one["noise"])}
    out |= {"reach": reach, "add": added(one)}
    return out | {k: float(one[k]) for k in ("sd_log_tpp", "tpp_threshold", "decade_error") if k in one}


def _each(one: Any, p: str) -> dict[str, float]:
    at = one.sel(param=p)
    out = {k: float(at[k]) for k in ("contraction", "sd", "prior_sd", "vif")}
    if "profile_interval" in at:
        out |= dict(zip(("lower", "upper"), map(float, at["profile_interval"].values), strict=True))
    return out


def condition(one: Any) -> dict[str, float]:
    """Block -> condition number."""
    return {str(b): float(one["kappa"].sel(block=b)) for b in one["block"].values}


def added(one: Any) -> list[dict[str, float]]:
    """The runs to add, in order."""
    keys = [k for k in one.data_vars if str(k).startswith("add_") and one[k].dims == ("add",)]
    rows = [{str(k)[4:]: float(one[k][i]) for k in keys} for i in range(one.sizes.get("add", 0))]
    return [r for r in rows if r["contraction"] == r["contraction"]]
