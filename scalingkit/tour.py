"""Tour: the main job from end to end on a real table.

    runs -> hierarchical fit -> what is identified -> does the model describe the runs -> N* and D* -> report

The table is a public one (the mirror, the cache or a download). Where none is to be had, a shipped table takes its
place, and every page says that it is simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from scalingkit import answers, plots
from scalingkit.answers import Answer
from scalingkit.core import notes, zoo
from scalingkit.core.names import CORPUS
from scalingkit.report import Report

TABLE = "gadre-overtraining"
SIMULATED = "simulated_corpora.csv"
BUDGETS = (1e22, 1e24)
CURVE_BUDGETS = np.geomspace(1e18, 1e24, 25)


def tour(out: Path, *, seed: int = 0, simulated: bool = False, say: Callable[[str], Any] = print) -> Answer:
    """Run it all; writes ``posterior.zarr`` and ``report.html`` into ``out`` and returns what was found."""
    from scalingkit.decide.allocate import allocate
    from scalingkit.design.identify import identify
    from scalingkit.infer.check import check
    from scalingkit.infer.fit import fit
    from scalingkit.infer.store import save

    say("reading the runs ...")
    runs = table(simulated)
    say(f"  {runs.sizes['run']} runs from {runs.attrs['data_name']}")
    say("sampling the hierarchical posterior ...")
    tree = fit(model(), runs, seed=seed)
    say(
        f"  {tree.attrs['divergences']} divergences, R-hat {tree.attrs['rhat_max']:.4f}, ESS {tree.attrs['ess_bulk_min']:.0f}"
    )
    say("asking what the runs can tell, whether the model describes them, and what to plan ...")
    known, checked = identify(tree, runs), check(tree)
    plan = allocate(tree, budget=BUDGETS, runs=runs)
    answer = _answer(runs, tree, known, checked, plan)
    say("drawing the report ...")
    curve = allocate(tree, budget=CURVE_BUDGETS, runs=runs)
    answer.result["files"] = {"posterior": str(out / "posterior.zarr"), "report": str(out / "report.html")}
    save(tree, out / "posterior.zarr", overwrite=True)
    write(answer, runs, tree, known, checked, curve).write(out / "report.html")
    return answer


def model() -> Any:
    """Chinchilla's law; exponents, floor and term sizes each pooled over the corpora."""
    from scalingkit.infer.model import Model
    from scalingkit.infer.pooling import Partial

    law = zoo.get("chinchilla", "laws")
    return Model(law=law, pool={k: Partial(CORPUS) for k in law.params})


def table(simulated: bool = False) -> xr.Dataset:
    """The public table, or the shipped simulated one with a note that says so and why."""
    from scalingkit import catalog

    if not simulated:
        try:
            return catalog.load(TABLE)
        except catalog.CatalogError as e:
            return shipped(str(e))
    return shipped("it was asked for")


def shipped(why: str) -> xr.Dataset:
    """The simulated table that comes with the package, labelled so in its name and notes."""
    from scalingkit.core import runs

    ds = runs.read(_shipped_path(), params_kind="non-embedding")
    ds.attrs["data_name"] = "simulated corpora (SIMULATED, not measured)"
    text = f"this table is simulated from a known law, so nothing here is about real models; the reason: {why}"
    notes.add(ds, notes.Note("simulated-data", "warning", "data", text))
    return ds


def _shipped_path() -> Path:
    """In a wheel the table lies in the package, in a checkout in data/."""
    packed = Path(str(resources.files("scalingkit"))) / "data" / SIMULATED
    return packed if packed.exists() else Path(__file__).resolve().parent.parent / "data" / SIMULATED


def _answer(runs: xr.Dataset, tree: Any, known: xr.Dataset, checked: xr.Dataset, plan: xr.Dataset) -> Answer:
    law = zoo.get(tree.attrs["law"], "laws")
    told = answers.merged_notes(runs, tree, known, checked, plan)
    rows = [{"parameter": k, **v} for k, v in answers.posterior_parameters(tree, law.params).items()]
    result = {
        "title": f"{law.card.name}'s law on {runs.attrs['data_name']}",
        "sections": {
            "What was read": describe(runs),
            "Parameters (mean, sd, 90% interval)": rows,
            "What the runs can tell": known.attrs["verdict"],
            "Does the model describe the runs": checked.attrs["verdict"],
            "Compute-optimal plan (median, 90% interval)": plan_rows(plan),
            "How far to trust it": trust(runs, tree, checked, plan),
        },
        "parameters": {r["parameter"]: {k: v for k, v in r.items() if k != "parameter"} for r in rows},
        "plan": plan_rows(plan),
    }
    diagnostics = {k: tree.attrs[k] for k in ("divergences", "rhat_max", "ess_bulk_min", "route", "device", "seconds")}
    return Answer("tour", result, diagnostics, told, answers.provenance(runs, tree))


def describe(runs: xr.Dataset) -> str:
    """One paragraph: how many runs, of what, over which range, what was set aside."""
    N, D = runs["N"].values, runs["D"].values
    groups = ", ".join(
        f"{g} ({int((runs[CORPUS].values == g).sum())})" for g in np.unique(runs[CORPUS].values.astype(str))
    )
    aside = int(runs.attrs.get("rows_quarantined", 0))
    return (
        f"{runs.sizes['run']} runs on {len(np.unique(runs[CORPUS].values))} corpora: {groups}. N from {N.min():.3g} to "
        f"{N.max():.3g} parameters ({runs.attrs.get('params_kind', 'unknown')}), D from {D.min():.3g} to {D.max():.3g} tokens, "
        f"{(D / N).min():.3g} to {(D / N).max():.3g} tokens per parameter, loss {float(runs['loss'].min()):.3f} to "
        f"{float(runs['loss'].max()):.3f}. {aside} of {runs.attrs.get('rows_in', runs.sizes['run'])} rows were set aside."
    )


def plan_rows(plan: xr.Dataset) -> list[dict[str, Any]]:
    """A row per group and budget: N*, D*, tokens per parameter and loss, each median with its interval."""
    groups = [d for d in plan["N_interval"].dims if d not in ("budget", "quantile")]
    stacked = plan.stack(at=[*groups, "budget"])
    rows = []
    for i in range(stacked.sizes["at"]):
        one = stacked.isel(at=i)
        row: dict[str, Any] = {g: str(one[g].values) for g in groups}
        row["budget (FLOP)"] = f"{float(one['budget']):.0e}"
        for k, name in (("N", "N*"), ("D", "D*"), ("tokens_per_param", "D*/N*"), ("loss", "loss")):
            lower, median, upper = (float(v) for v in one[f"{k}_interval"].values)
            row[name] = f"{median:.3g} ({lower:.3g} to {upper:.3g})"
        if "extrapolation" in plan:
            row["beyond the runs"] = f"x {float(plan['extrapolation'].sel(budget=one['budget'])):.3g}"
        rows.append(row)
    return rows


def trust(runs: xr.Dataset, tree: Any, checked: xr.Dataset, plan: xr.Dataset) -> str:
    """What was checked, and what no check here can show."""
    clean = tree.attrs["divergences"] == 0 and tree.attrs["rhat_max"] < 1.01 and tree.attrs["ess_bulk_min"] > 400
    sampler = (
        "The sampler is clean: no divergence, R-hat below 1.01, bulk ESS above 400."
        if clean
        else "The sampler is NOT clean: read the warnings before using any number."
    )
    far = float(plan["extrapolation"].max()) if "extrapolation" in plan else float("nan")
    objections = [n.about for n in notes.of(checked)]
    fits = (
        f"The checks object to {len(objections)} things (below): the law does not describe these runs to within their noise."
        if objections
        else "The checks have no objection."
    )
    text = (
        f"{sampler} {fits} The larger budget is {far:,.0f} times the largest run: its interval holds only if the law does. "
        "The intervals are of the parameters under this law and these priors; that the law itself bends beyond the runs is "
        "not in them. Nothing here speaks of another recipe, tokenizer or data mix."
    )
    if any(n.code == "simulated-data" for n in notes.of(runs)):
        return "SIMULATED DATA: this shows how the method works and nothing about real models. " + text
    return text


def write(
    answer: Answer, runs: xr.Dataset, tree: Any, known: xr.Dataset, checked: xr.Dataset, curve: xr.Dataset
) -> Report:
    """The report's pages: the same sections as the text, with pictures."""
    sections = answer.result["sections"]
    lead = sections["How far to trust it"]
    report = Report(answer.result["title"], lead)
    report.heading("What was read")
    report.text(sections["What was read"])
    report.picture(
        lambda: plots.plane(runs),
        "The runs, with lines of equal 6ND compute. Off the cloud everything is extrapolation.",
    )
    report.heading("Parameters")
    report.table(answer_rows(answer), ["parameter", "mean", "sd", "lower", "upper"])
    report.pictures(
        *(
            (lambda p=p: plots.forest(tree, p), f"{p} by corpus; the population is what a new corpus is expected near.")
            for p in ("E", "alpha", "beta")
        )
    )
    report.picture(
        lambda: plots.prior_posterior(tree, ["E_population", "alpha_population", "beta_population"]),
        "Prior (dashed) and posterior. Where they coincide, the answer comes from the prior.",
    )
    report.heading("What the runs can tell")
    report.text(sections["What the runs can tell"])
    report.heading("Does the model describe the runs")
    report.text(sections["Does the model describe the runs"])
    report.pictures(
        (lambda: plots.fit_against_data(tree), "Each run's loss against its 90% predictive interval."),
        (
            lambda: plots.pit(checked, runs=tree["constant_data"].dataset, by=CORPUS),
            "Probability integral transform by group: inside the band, the spread of the predictions is right.",
        ),
        (lambda: plots.residuals(tree, "N"), "Residuals against size: a bend is a wrong shape."),
        (lambda: plots.residuals(tree, "D"), "Residuals against tokens."),
    )
    report.heading("Compute-optimal plan")
    report.table(sections["Compute-optimal plan (median, 90% interval)"])
    reached = float((6 * runs["N"] * runs["D"]).max())
    report.pictures(
        (lambda: plots.allocation(curve, "N", reached=reached), "Optimal size against budget."),
        (lambda: plots.allocation(curve, "D", reached=reached), "Optimal tokens against budget."),
    )
    if answer.warnings:
        report.heading("Warnings")
        report.table(
            [{"code": n.code, "severity": n.severity, "about": n.about, "text": n.text} for n in answer.warnings]
        )
    report.heading("Where this comes from")
    origin = {k: v for k, v in answer.provenance.items() if k not in ("model", "versions")} | answer.diagnostics
    report.table([{"what": k, "value": str(v)} for k, v in origin.items()])
    return report


def answer_rows(answer: Answer) -> list[dict[str, Any]]:
    return answer.result["sections"]["Parameters (mean, sd, 90% interval)"]
