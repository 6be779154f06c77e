"""Verbs. Each is one call into the package; ``--json`` prints the contract of answers.py on standard output.

Exit status: 0 done, 1 a claim or check failed, 2 bad input (one line that says what, where and how to mend it).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from scalingkit import answers, progress
from scalingkit.answers import Answer
from scalingkit.answers_text import show_answer

app = typer.Typer(
    help="Bayesian research toolkit for neural scaling laws.",
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip
data_app = typer.Typer(help="Public run tables: list, fetch, show.", no_args_is_help=True)
runs_app = typer.Typer(help="Run tables of your own: check.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.add_typer(runs_app, name="runs")

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


def _refusals() -> tuple[type[BaseException], ...]:
    """The house's own errors: what they say is for the user. Whatever else is raised is a fault of ours, shown whole."""
    from scalingkit.catalog import CatalogError
    from scalingkit.core.errors import RunsError
    from scalingkit.core.precision import PrecisionError
    from scalingkit.core.zoo import UnknownName

    found: list[type[BaseException]] = [
        BadInput,
        CatalogError,
        RunsError,
        PrecisionError,
        UnknownName,
        FileNotFoundError,
    ]
    for module, names in (
        ("design.grids", ["DesignError"]), ("design.cost", ["CostError"]), ("infer.spec", ["SpecError"]),
("infer.likelihoods", ["DataError"]),
        ("infer.store", ["StoreError"]),
    ):  # fmt: skip
        loaded = sys.modules.get(f"scalingkit.{module}")
        found += [getattr(loaded, n) for n in names if hasattr(loaded, n)]
    return tuple(found)


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
            if not isinstance(e, _refusals()):
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


def _pairs(texts: list[str] | None, what: str) -> dict[str, str]:
    out = {}
    for t in texts or []:
        key, sign, value = t.partition("=")
        if not sign or not key or not value:
            raise BadInput(f"{what} {t!r} is not of the form name=value.")
        out[key.strip()] = value.strip()
    return out


def _runs(data: str, table: str | None, options: list[str] | None, columns: list[str] | None) -> Any:
    """A table of the catalogue by name, or a file by path."""
    from scalingkit import catalog
    from scalingkit.core import runs

    if Path(data).exists() or Path(data).suffix or "/" in data:
        if not Path(data).exists():
            raise BadInput(f"there is no file {data!r}.")
        if table or options:
            raise BadInput("--table and --set belong to tables of the catalogue; for a file give --column role=header.")
        return runs.read(data, columns=_pairs(columns, "--column") or None)
    if columns:
        raise BadInput("--column belongs to files; the catalogue's tables have their columns named.")
    return catalog.load(data, table=table, **_pairs(options, "--set"))


def _pool(texts: list[str] | None) -> dict[str, Any]:
    from scalingkit.infer import pooling

    kinds = {"partial": pooling.Partial, "separate": pooling.Separate}
    out = {}
    for param, how in _pairs(texts, "--pool").items():
        dim, _, kind = how.partition(":")
        if (kind or "partial") not in kinds:
            raise BadInput(
                f"--pool {param}={how}: {kind!r} is not a pooling; write {param}={dim}:partial or :separate."
            )
        out[param] = kinds[kind or "partial"](dim)
    return out


@app.command()
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


@app.command()
@verb
def show(name: Annotated[str, typer.Argument(help="A law or another system.")], as_json: Json = False) -> Answer:
    """One system: its formula, parameters with priors and units, published values, claims and scope."""
    from scalingkit.core import zoo
    from scalingkit.core.describe import describe

    return Answer("show", describe(zoo.get(name)))


@data_app.command("list")
@verb
def data_list(as_json: Json = False) -> Answer:
    """The catalogue: every public table, its size and licence, and where it is to be had."""
    from scalingkit import catalog

    return Answer("data list", catalog.status())


@data_app.command("show")
@verb
def data_show(name: str, as_json: Json = False) -> Answer:
    """One table: columns and units, traps handled, published numbers, licence, citation, addresses."""
    from scalingkit import catalog

    return Answer("data show", catalog.show(name))


@data_app.command("fetch")
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


@runs_app.command("check")
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
        "columns": _pairs(column, "--column"),
        "units": _pairs(unit, "--unit"),
        "checkpoints": checkpoints,
    }
    given |= {"params_kind": params_kind, "flops_kind": flops_kind, "group": group}
    ds = runs.read(file, **{k: v for k, v in given.items() if v})
    return Answer("runs check", runs.summary(ds) | {"report": runs.report(ds)}, warnings=notes.of(ds))


@app.command()
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
    runs = _runs(data, table, option, column)
    if method in ("nuts", "laplace"):
        given = {"pool": _pool(pool), "likelihood": likelihood, "chains": chains, "draws": draws, "tune": tune}
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


def _tree(path: Path) -> Any:
    from scalingkit.infer.store import load_tree

    if not path.exists():
        raise BadInput(f"there is no posterior at {str(path)!r}; `scalingkit fit ... --out {path}` makes one.")
    return load_tree(path)


@app.command()
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

    tree = _tree(posterior)
    design = _design(_pairs(at, "--at"))
    found = draw(tree, design, kind="outcome" if outcome else "mean", seed=seed)
    y = str(next(iter(found.data_vars)))
    values = answers.named_values(found[y].squeeze("run", drop=True), ("chain", "draw"))
    result = {"at": _pairs(at, "--at"), "kind": "outcome" if outcome else "mean", "prob": answers.PROB}
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


@app.command()
@verb
def check(
    posterior: Annotated[Path, typer.Argument(help="A posterior kept by `scalingkit fit --out`.")],
    as_json: Json = False,
) -> Answer:
    """Does the model describe its runs? Posterior predictive checks, PIT by group, tails, influential runs."""
    from scalingkit.infer.check import check as look

    tree = _tree(posterior)
    return answers.of_check(tree, look(tree))


@app.command()
@verb
def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Laws, tables or papers; all where none is named.")] = None,
    data: Annotated[
        bool, typer.Option("--data", help="Tables of the catalogue: fit each and compare with printed numbers.")
    ] = False,
    as_json: Json = False,
) -> tuple[Answer, int]:
    """Is what the sources print so? Claims of laws, or (--data) published numbers of tables. Exit 1 where one fails."""
    from scalingkit.papers import verify as claims

    report = (
        claims.tables(names, each=lambda n: progress.over(n, "fitting", quiet=as_json))
        if data
        else claims.claims(names)
    )
    return Answer("verify", report.plain(), warnings=report.notes()), 0 if report.holds else 1


@app.command()
@verb
def doctor(as_json: Json = False) -> Answer:
    """Versions, devices, precision, data mirror, and whether widgets can show in this kernel."""
    from scalingkit.doctor import examine

    report, told = examine()
    return Answer("doctor", report, warnings=told)


@app.command()
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


def main() -> None:
    """Entry point of the ``scalingkit`` command."""
    app()


if __name__ == "__main__":
    main()
