"""One small format for what benchmarks find, so that the page of the documentation is made from it.

    table = Table("pointfit", "Point fits against scipy and simple-scaling-laws", seed=0)
    table.add("global fit against the 4,500-start grid", ours=0.8, peer=61.0, unit="s CPU", goal=50, note="same minimum")
    table.write(options.json)         # nothing where --json was not given

A row is {what, ours, peer, ratio, unit, goal, limit, met, note}. ``ratio`` is how many times better ours is, whichever of
less and more is better; ``goal`` is the least ratio aimed at, ``limit`` the worst value of ours aimed at; ``met`` says
whether they were reached (null: nothing was aimed at, or it was not measured). Files go to data/benchmarks/SCRIPT.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("scalingkit", "jax", "numpyro", "numpy", "scipy", "pymc", "nutpie", "saber-risk", "simple-scaling-laws")


class Table:
    """Rows of one script, with what a reader needs to judge them: seed, versions, processor, cores."""

    def __init__(self, script: str, title: str, seed: int | None = None) -> None:
        self.about: dict[str, Any] = {"script": script, "title": title, "seed": seed, **machine()}
        self.rows: list[dict[str, Any]] = []

    def add(
        self, what: str, ours: float | None, peer: float | None = None, *, unit: str, better: str = "less",
        goal: float | None = None, limit: float | None = None, note: str = "",
    ) -> dict[str, Any]:  # fmt: skip
        """One comparison. ``better``: "less" (seconds) or "more" (draws a second). ``ours=None``: not measured."""
        if better not in ("less", "more"):
            raise ValueError(f"better = {better!r} is 'less' or 'more'.")
        less = better == "less"
        both = bool(ours) and bool(peer)
        ratio = (peer / ours if less else ours / peer) if both else None  # type: ignore[operator]
        aimed = [] if goal is None else [ratio is not None and ratio >= goal]
        if limit is not None and ours is not None:
            aimed.append(ours <= limit if less else ours >= limit)
        known = ours is not None and (goal is None or ratio is not None)
        row = {"what": what, "ours": ours, "peer": peer, "ratio": ratio, "unit": unit, "better": better}
        row |= {"goal": goal, "limit": limit, "met": all(aimed) if aimed and known else None, "note": note}
        self.rows.append({k: _plain(v) for k, v in row.items()})
        return self.rows[-1]

    def text(self) -> str:
        """The rows for a terminal."""
        head = ("", "ours", "peer", "ratio", "goal", "met", "unit", "note")
        lines = [head, *(_cells(r) for r in self.rows)]
        wide = [max(len(line[i]) for line in lines) for i in range(len(head))]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, wide, strict=True)).rstrip() for line in lines)

    def write(self, path: str | os.PathLike[str] | None) -> None:
        """Print the rows; keep them in ``path`` (JSON, whole or not at all) where one is given."""
        print(self.text(), flush=True)
        if path is None:
            return
        place = Path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = place.with_name(f".{place.name}.{os.getpid()}")
        aside.write_text(json.dumps(self.about | {"rows": self.rows}, indent=1, allow_nan=False) + "\n")
        os.replace(aside, place)


def argument(parser: argparse.ArgumentParser) -> None:
    """Give ``parser`` the option --json FILE."""
    parser.add_argument("--json", metavar="FILE", help="keep the rows here (the documentation reads data/benchmarks/)")


def machine() -> dict[str, Any]:
    """Processor, cores and versions. (Versions of a peer in another interpreter: ``table.about["versions"] |= {...}``.)"""
    versions: dict[str, str] = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {"processor": _processor(), "cores": os.cpu_count(), "versions": versions}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), platform.machine())
    except OSError:
        return platform.processor() or platform.machine()


def _plain(v: Any) -> Any:
    v = v.item() if hasattr(v, "item") else v
    if isinstance(v, float) and not math.isfinite(v):
        raise ValueError(f"{v} is no result: leave it None and say why in the note.")
    return v


def _cells(r: dict[str, Any]) -> tuple[str, ...]:
    goal = [] if r["goal"] is None else [f">= {r['goal']:g}x"]
    if r["limit"] is not None:
        goal.append(f"{'<=' if r['better'] == 'less' else '>='} {r['limit']:g}")
    met = {None: "", True: "yes", False: "NO"}[r["met"]]
    ratio = "" if r["ratio"] is None else f"{r['ratio']:.3g}x"
    ours, peer = ("" if r[k] is None else f"{r[k]:.4g}" for k in ("ours", "peer"))
    return r["what"], ours, peer, ratio, ", ".join(goal), met, r["unit"], r["note"]
