"""Pages made at build time from the package itself, so that they cannot fall behind it.

write(docs) fills docs/generated/ (laws, catalogue, codes, API, changes, benchmarks) and docs/notebooks/ (copies of the
notebooks).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import scalingkit
from scalingkit.core import notes, zoo

GROUPS = {
    "Vocabulary": ("core",),
    "Run tables": ("catalog",),
    "Inference": ("infer",),
    "Design and decisions": ("design", "decide"),
    "Claims and pictures": ("papers", "plots"),
}


def write(docs: Path) -> None:
    """Make every generated page anew below ``docs``; a file that would not change keeps its time (quick rebuilds)."""
    made = {**law_pages(), "catalogue.md": catalogue_page(), "codes.md": codes_page(), "api.md": api_page()}
    made["papers.md"] = papers_page()
    made["changes.md"] = changes_page(docs.parent / "news")
    made["benchmarks.md"] = benchmarks_page(docs.parent / "data" / "benchmarks")
    fill(docs / "generated", {name: text.encode() for name, text in made.items()})
    books = docs.parent / "notebooks"
    paths = [p for p in sorted(books.rglob("*.ipynb")) if ".ipynb_checkpoints" not in p.parts]
    copies = {str(p.relative_to(books)): p.read_bytes() for p in paths}
    fill(docs / "notebooks", {**copies, "index.md": notebooks_page(copies).encode()})


def fill(folder: Path, files: dict[str, bytes]) -> None:
    """Make ``folder`` hold exactly ``files``."""
    for old in [p for p in folder.rglob("*") if p.is_file() and str(p.relative_to(folder)) not in files]:
        old.unlink()
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)
    shutil.rmtree(folder / ".ipynb_checkpoints", ignore_errors=True)


# ------------------------------------------------------------------------------------------------------------ pieces


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table; "" where it has no row."""
    lines = [" | ".join(cell(c) for c in row) for row in rows]
    head = list(head)
    rule = " | ".join("---" for _ in head)
    return "\n".join(f"| {line} |" for line in [" | ".join(head), rule, *lines]) + "\n" if lines else ""


def cell(value: Any) -> str:
    """Text of one cell: what Markdown would take for markup stays as written."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return plain(" ".join(text.split())).replace("|", "\\|")


def plain(text: str) -> str:
    """Text outside `code spans` with Markdown's own signs escaped."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([\\*_<>\[\]$#~])", r"\\\1", p) for p in parts)


def code(value: Any) -> str:
    return f"`{value}`"


def verbatim(text: str) -> str:
    return f"```text\n{text.strip()}\n```\n"


def toctree(names: Iterable[str], **options: Any) -> str:
    head = "".join(f":{k}: {v}\n" for k, v in options.items())
    return "```{toctree}\n" + head + "\n" + "\n".join(names) + "\n```\n"


# -------------------------------------------------------------------------------------------------------------- laws


def law_pages() -> dict[str, str]:
    """File name -> page: one for each law, and their list."""
    laws = zoo.systems("laws")
    rows = [(f"[{n}](laws/{n}.md)", plain(x.card.summary), ", ".join(x.inputs)) for n, x in laws.items()]
    lines = [f"| {' | '.join(r)} |" for r in rows]
    index = "# Laws\n\nOne file each in `scalingkit/laws/`; `scalingkit show NAME` prints the same.\n\n"
    index += "\n".join(["| law | what it says | inputs |", "| --- | --- | --- |", *lines]) + "\n\n"
    index += toctree((f"laws/{n}" for n in laws), hidden="")
    return {"laws.md": index} | {f"laws/{n}.md": law_page(x) for n, x in laws.items()}


def law_page(law: Any) -> str:
    """Formula as the file's docstring says it, parameters with priors and units, published values, claims."""
    parts = [f"# {law.name}\n", verbatim(module_doc(law))]
    if law.card.scope:
        parts += ["## What it does not tell\n", plain(law.card.scope) + "\n"]
    parts += ["## Inputs\n", table(["input", "meaning"], ((code(k), v) for k, v in law.inputs.items()))]
    head = ["parameter", "meaning", "unit", "prior", "prior 90%", "sits on"]
    parts += ["## Parameters\n", table(head, (param_row(law, k, p) for k, p in law.params.items()))]
    if law.scales:
        parts += ["The prior of a parameter that sits on a power is that of the whole term at the design's pivot.\n"]
    published = [(source, *(float(v[k]) for k in law.params)) for source, v in law.published.items()]
    if published:
        parts += ["## Published values\n", table(["source", *map(code, law.params)], published)]
    if law.claims:
        head = ["claim", "source", "evidence", "printed", "found here", "within", "outcome"]
        parts += ["## Claims, computed now\n", table(head, (claim_row(law, c) for c in law.claims))]
    return "\n".join(parts)


def module_doc(law: Any) -> str:
    import sys

    return sys.modules[f"scalingkit.laws.{law.name}"].__doc__ or law.card.summary


def param_row(law: Any, name: str, param: Any) -> list[str]:
    on = "{}**-{}".format(*law.scales[name]) if name in law.scales else ""
    return [code(name), param.doc, param.unit, code(prior(param.prior)), interval(param.prior), code(on) if on else ""]


def prior(d: Any) -> str:
    """``LogNormal(loc=0.5, scale=0.3)``."""
    values = ", ".join(f"{k}={float(getattr(d, k)):.4g}" for k in d.arg_constraints if getattr(d, k, None) is not None)
    return f"{type(d).__name__}({values})"


def interval(d: Any) -> str:
    """5% and 95% points; "" where the distribution has no quantile function."""
    try:
        return " to ".join(f"{float(d.icdf(q)):.3g}" for q in (0.05, 0.95))
    except NotImplementedError:
        return ""


def claim_row(law: Any, claim: Any) -> list[Any]:
    values = law.published.get(claim.source) or law.truth
    verdict = claim.check(law, values)
    room = f"{claim.within:g}{' relative' if claim.relative else ''}"
    where = f"{claim.source}; {claim.where}"
    outcome = "agrees" if verdict.agrees else "DIFFERS"
    return [claim.statement, where, claim.evidence, float(claim.value), verdict.found, room, outcome]


# --------------------------------------------------------------------------------------------------------- catalogue


def catalogue_page() -> str:
    """Every public table: what it is, its licence and source, traps handled, published numbers."""
    from scalingkit import catalog

    text = (
        "# Public run tables\n\n`sk.load(NAME)` gives the table as a runs Dataset; `scalingkit data show NAME` prints "
        "its card, and `scalingkit data fetch NAME` downloads it once, checked by its sha256. None of these tables is "
        "part of the project: the licences are their owners'.\n\n"
    )
    return text + "\n".join(table_section(catalog.show(name)) for name in catalog.names())


def table_section(shown: dict[str, Any]) -> str:
    parts = [f"## {shown['name']}\n", plain(shown["title"]) + "\n"]
    facts = [
        ("licence", shown["licence"]),
        ("citation", shown["citation"]),
        ("origin", f"{shown['repository']} at {shown['commit'][:12]}"),
        ("parameters counted", shown["params_kind"]),
        ("FLOP counted", shown["flops_kind"]),
        ("mirror only", shown["mirror_only"]),
    ]
    parts += [table(["", ""], ((k, v) for k, v in facts if v))]
    parts += [table(["sub-table", "holds"], ((code(k), v) for k, v in shown["subtables"].items()))]
    if shown["traps"]:
        parts += ["Traps handled:\n", "\n".join(f"- {plain(t)}" for t in shown["traps"]) + "\n"]
    rows = [
        (k, p["value"], p["where"] + (" (recalled)" if p["recalled"] else "")) for k, p in shown["published"].items()
    ]
    parts += [table(["published", "value", "where"], rows)]
    if shown["scope"]:
        parts += ["What it does not tell: " + plain(shown["scope"]) + "\n"]
    return "\n".join(p for p in parts if p)


# ------------------------------------------------------------------------------------------------------------ papers


def papers_page() -> str:
    """Every paper behind the house: its claims and what came of them."""
    from scalingkit import papers

    text = (
        "# Papers\n\nWhat each source claims, in our words, and what comes of it here. `scalingkit verify NAME` reruns a "
        "paper in its fast form, `--full` at full size; both exit 1 where an outcome below is not so. *Published*: the "
        "source prints it. *Derived*: ours. *Conjecture*: our guess at a detail. A claim marked *full* is judged at full "
        "size only.\n\n"
    )
    return text + "\n".join(paper_section(papers.get(n)) for n in papers.names())


def paper_section(paper: Any) -> str:
    sources = "; ".join(map(str, paper.card.sources))
    head = ["claim", "outcome", "evidence", "must be", "why, or what is offered"]
    rows = (
        [c.statement, c.outcome + (" (full)" if c.full else ""), c.evidence, c.asked() if c.quantity else "", c.why]
        for c in paper.claims
    )
    about = f"{plain(paper.card.summary)}. Source: {plain(sources)}.\n"
    return "\n".join([f"## {paper.name}\n", about, table(head, rows), f"Scope: {plain(paper.card.scope)}\n"])


# ---------------------------------------------------------------------------------------------- codes, API, changes


def codes_page() -> str:
    head = "# Codes of notes\n\nEvery answer carries its notes: in text, in `attrs['notes']` and in `--json`.\n\n"
    return head + table(
        ["code", "what it means and what to do"], ((code(k), v) for k, v in sorted(notes.CODES.items()))
    )


def api_page() -> str:
    """Autodoc directives for the public surface, in the order of ``scalingkit.__all__``, by floor."""
    parts = ["# API\n\nEverything here is an attribute of the package: `import scalingkit as sk`.\n"]
    for title, floors in GROUPS.items():
        parts.append(f"## {title}\n")
        found = {n: m for n, m in scalingkit._PUBLIC.items() if m[0].split(".")[0] in floors}
        parts += [directive(module, attribute) for module, attribute in found.values()]
    return "\n".join(parts)


def directive(module: str, attribute: str) -> str:
    if not attribute:
        return eval_rst(f".. automodule:: scalingkit.{module}\n   :members:\n")
    thing = getattr(__import__(f"scalingkit.{module}", fromlist=[attribute]), attribute)
    kind = "autoclass" if isinstance(thing, type) else "autofunction"
    members = "   :members:\n" if kind == "autoclass" else ""
    return eval_rst(f".. {kind}:: scalingkit.{module}.{attribute}\n{members}")


def eval_rst(text: str) -> str:
    return "```{eval-rst}\n" + text + "```\n"


def as_written(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Show a docstring as it is written: formulas and aligned columns are not reStructuredText."""
    text = "\n".join(lines).strip().replace("``", "`")
    lines[:] = ["", "::", "", *(f"   {line}" for line in text.splitlines()), ""] if text else []


def changes_page(news: Path) -> str:
    """The fragments of ``news/``: NAME.md added, NAME.changed.md changed, NAME.fixed.md fixed."""
    kinds: dict[str, list[str]] = {"Added": [], "Changed": [], "Fixed": []}
    for path in sorted(news.glob("*.md")):
        if path.name != "README.md":
            kind = path.stem.partition(".")[2].capitalize() or "Added"
            kinds[kind].append("- " + " ".join(path.read_text(encoding="utf-8").split()))
    parts = [f"## {kind}\n\n" + "\n".join(lines) + "\n" for kind, lines in kinds.items() if lines]
    return f"# Changes\n\nIn version {scalingkit.__version__}.\n\n" + "\n".join(parts)


def benchmarks_page(kept: Path) -> str:
    """What the scripts of benchmarks/ kept with --json; a goal that was missed is shown as missed."""
    head = (
        "# Benchmarks\n\nMade from what the scripts in `benchmarks/` measured, ours and the peer side by side in one run. "
        "A ratio says how many times better ours is; seconds drift with the machine, ratios less so. Goals that are not "
        "met are shown. `python benchmarks/NAME.py --json data/benchmarks/NAME.json` makes a table anew.\n\n"
    )
    return head + "\n".join(benchmark_section(json.loads(p.read_text())) for p in sorted(kept.glob("*.json")))


def benchmark_section(found: dict[str, Any]) -> str:
    head = ["", "ours", "peer", "ratio", "unit", "aimed at", "reached", "note"]
    versions = ", ".join(f"{k} {v}" for k, v in found["versions"].items())
    machine = f"{found['cores']} cores ({found['processor']})"
    about = f"`benchmarks/{found['script']}.py`, seed {found['seed']}; {machine}; {versions}.\n"
    return "\n".join([f"## {plain(found['title'])}\n", about, table(head, map(benchmark_row, found["rows"]))])


def benchmark_row(r: dict[str, Any]) -> list[Any]:
    aims = [] if r["goal"] is None else [f"at least {r['goal']:g} times"]
    if r["limit"] is not None:
        aims.append(f"at {'most' if r['better'] == 'less' else 'least'} {r['limit']:g}")
    ours, peer = ("" if r[k] is None else f"{r[k]:.3g}" for k in ("ours", "peer"))
    ours = ours or "not measured"
    ratio = "" if r["ratio"] is None else f"{r['ratio']:.3g}x"
    met = {True: "yes", False: "MISSED", None: ""}[r["met"]]
    return [r["what"], ours, peer, ratio, r["unit"], ", ".join(aims), met, r["note"]]


def notebooks_page(copies: dict[str, bytes]) -> str:
    head = "# Notebooks\n\nAs executed by `make notebooks`; `make lab` opens them.\n\n"
    return head + (toctree((name.removesuffix(".ipynb") for name in copies), maxdepth=1) if copies else "")
