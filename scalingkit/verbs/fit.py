"""Verb ``fit``: a posterior or a point fit of a law to a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from scalingkit import answers, progress
from scalingkit.answers import Answer
from scalingkit.verbs.base import BadInput, Column, Data, Json, Opt, Seed, Sub, pooling_of, read_runs, verb


@verb
def fit(
    law: Annotated[str, typer.Argument(help="A law's name; see `scalingkit table laws`.")],
    data: Data,
    table: Sub = None,
    option: Opt = None,
    column: Column = None,
    method: Annotated[str, typer.Option(help="nuts, laplace, huber, lsq-log or lsq.")] = "nuts",
    pool: Annotated[list[str] | None, typer.Option(help="parameter=dim, or parameter=dim:separate.")] = None,
    likelihood: Annotated[str, typer.Option(help="LogStudentT, LogNormal or Normal.")] = "LogStudentT",
    bootstrap: Annotated[int, typer.Option(help="Refits of a point fit, for intervals.")] = 0,
    delta: Annotated[float, typer.Option(help="Huber's threshold on log residuals.")] = 1e-3,
    chains: Annotated[int, typer.Option(help="Chains.")] = 4,
    draws: Annotated[int, typer.Option(help="Draws a chain.")] = 1000,
    tune: Annotated[int, typer.Option(help="Warm-up steps a chain.")] = 1000,
    seed: Seed = 0,
    device: Annotated[str, typer.Option(help="auto (one fit on the CPU, batches on a GPU), cpu, gpu or tpu.")] = "auto",
    out: Annotated[Path | None, typer.Option(help="Where to keep the posterior: .zarr or .nc.")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace what stands at --out.")] = False,
    as_json: Json = False,
) -> Answer:
    """Fit a law to a table: a posterior (nuts, laplace) or a point fit (huber, lsq-log, lsq)."""
    from scalingkit.core import zoo

    methods = ("nuts", "laplace", "huber", "lsq-log", "lsq")
    if method not in methods:
        raise BadInput(f"--method {method!r} is not one of {', '.join(methods)}.")
    chosen = zoo.get(law, "laws")
    runs = read_runs(data, table, option, column)
    if method in ("nuts", "laplace"):
        given = {"pool": pooling_of(pool), "likelihood": likelihood, "chains": chains, "draws": draws, "tune": tune}
        given |= {"seed": seed, "device": device}
        return _fit_posterior(chosen, runs, method, out, overwrite, as_json, **given)
    if pool:
        raise BadInput("--pool needs --method nuts or laplace: a point fit has no population.")
    return _fit_point(chosen, runs, method=method, delta=delta, bootstrap=bootstrap, seed=seed, device=device)


def _fit_posterior(
    law: Any, runs: Any, method: str, out: Path | None, overwrite: bool, quiet: bool, **given: Any
) -> Answer:
    from scalingkit.design.identify import identify
    from scalingkit.infer import likelihoods
    from scalingkit.infer.fit import fit as sample
    from scalingkit.infer.laplace import laplace
    from scalingkit.infer.model import Model
    from scalingkit.infer.store import save

    kind = getattr(likelihoods, given["likelihood"], None)
    if kind is None:
        raise BadInput(f"--likelihood {given['likelihood']!r} is not one of LogStudentT, LogNormal, Normal.")
    model = Model(law=law, pool=given["pool"], likelihood=kind())
    if method == "nuts":
        keep = {k: given[k] for k in ("chains", "draws", "tune", "seed", "device")}
        with progress.stages(quiet=quiet or not sys.stderr.isatty()) as say:
            tree = sample(model, runs, progress=say, **keep)
    else:
        tree = laplace(model, runs, draws=given["draws"], seed=given["seed"], device=given["device"])
    if out is not None:
        save(tree, out, overwrite=overwrite)
    answer = answers.of_fit(tree, runs, law.params)
    verdict = identify(tree, runs, profiles=False)
    answer.result["verdict"] = verdict.attrs["verdict"]
    answer.warnings = answers.merged_notes(runs, tree, verdict)
    return answer


def _fit_point(law: Any, runs: Any, **given: Any) -> Answer:
    import time

    from scalingkit.infer.pointfit import pointfit

    start = time.perf_counter()
    found = pointfit(law, runs, **given)
    return answers.of_point(found, runs, law.params, time.perf_counter() - start)
