"""Verify: is what was printed, or said in a notebook, so?

    sk.verify(("zero divergences", tree.attrs["divergences"], 0), ("alpha", 0.347, 0.3478, 0.005))

The last cell of every notebook calls it; it raises where a statement does not hold. ``claims`` walks the claims of the
zoo, ``tables`` the published numbers of the catalogue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scalingkit.core import zoo
from scalingkit.core.notes import Note


class ClaimFailed(AssertionError):
    """Something that is claimed is not so; the text lists what."""


def verify(*statements: Sequence[Any]) -> None:
    """Raise ClaimFailed unless every statement holds; print each with its outcome.

    A statement is (text, truth), (text, found, expected) for equality, or (text, found, expected, within) for
    |found - expected| <= within. NaN never holds. No statement at all is an error: a check that cannot fail.
    """
    if not statements:
        raise ValueError("verify was given no statement; say what must hold.")
    lines, failed = [], 0
    for s in statements:
        holds, told = _judge(*s)
        failed += not holds
        lines.append(f"{'holds ' if holds else 'FAILS '} {told}")
    print("\n".join(lines))
    if failed:
        raise ClaimFailed(
            f"{failed} of {len(lines)} statements do not hold:\n" + "\n".join(line for line in lines if line[0] == "F")
        )


def _judge(text: str, found: Any, *rest: Any) -> tuple[bool, str]:
    if not rest:
        return bool(found), text
    if len(rest) == 1:
        return bool(found == rest[0]), f"{text}: {found} (expected {rest[0]})"
    expected, within = map(float, rest)
    value = float(found)
    return math.isfinite(value) and abs(
        value - expected
    ) <= within, f"{text}: {value:.6g} (expected {expected:g} +- {within:g})"


@dataclass(frozen=True)
class Report:
    """Outcomes of many checks. ``holds``: none that we assert failed."""

    outcomes: tuple[dict[str, Any], ...]
    bad: tuple[str, ...] = ("DIFFERS", "differs")

    @property
    def holds(self) -> bool:
        return not any(o["outcome"] in self.bad for o in self.outcomes)

    def plain(self) -> dict[str, Any]:
        summary: dict[str, int] = {}
        for o in self.outcomes:
            summary[o["outcome"]] = summary.get(o["outcome"], 0) + 1
        return {"outcomes": list(self.outcomes), "summary": summary}

    def notes(self) -> list[Note]:
        failed = [o for o in self.outcomes if o["outcome"] in self.bad]
        return [Note("claim-differs", "error", f"{o['name']}", f"{o['what']}: {o['why']}") for o in failed]


def claims(names: Iterable[str] | None = None) -> Report:
    """The claims of laws, worlds, estimators and policies: each printed number computed here."""
    kinds = [k for k in zoo.KINDS if k != "papers"]
    systems = [_system(n, kinds) for n in names] if names else [s for k in kinds for s in zoo.systems(k).values()]
    out = []
    for s in systems:
        for c in getattr(s, "claims", ()):
            verdict = c.check(*_arguments(s, c))
            out.append(
                {
                    "name": s.card.name, "what": c.statement, "outcome": "agrees" if verdict.agrees else "DIFFERS",
                    "why": f"{verdict.found:.6g} against {c.value:.6g} ({c.evidence}, {c.source.key}, {c.where})",
                    "found": verdict.found, "expected": c.value, "within": c.within, "evidence": c.evidence,
                }
            )  # fmt: skip
    return Report(tuple(out))


def _system(name: str, kinds: list[str]) -> Any:
    """A system that is no paper; an unknown name is answered from all names, papers too."""
    return next((zoo.get(name, k) for k in kinds if name in zoo.names(k)), None) or zoo.get(name)


def papers(names: Iterable[str] | None = None, fast: bool = True) -> Report:
    """The claims of papers, each judged on a rerun (FAST unless ``fast=False``): all papers where none is named."""
    from scalingkit import papers as shelf

    rows = [_claim_row(p.name, c) for p in map(shelf.get, names or shelf.names()) for c in p.check(fast)]
    return Report(tuple(rows))


def everything(names: Iterable[str] | None = None, papers_too: bool = False, fast: bool = True) -> Report:
    """Names of papers are rerun, other names are computed; without names every claim, papers where asked for."""
    from scalingkit import papers as shelf

    wanted, known = list(names or ()), set(shelf.names())
    reruns = [n for n in wanted if n.replace("-", "_") in known] or (sorted(known) if papers_too and not wanted else [])
    rest = [n for n in wanted if n not in reruns]
    first = claims(rest).outcomes if rest or not (wanted or papers_too) else ()
    return Report((*first, *(papers(reruns, fast).outcomes if reruns else ())))


def _claim_row(name: str, judged: Any) -> dict[str, Any]:
    c = judged.claim
    outcome = (f"{c.outcome}, explained" if c.outcome == "differs" else c.outcome) if judged.holds else "DIFFERS"
    found = "" if c.quantity is None else f"{judged.found:.6g} against {c.asked()} ({c.evidence})"
    return {
        "name": name, "what": c.statement, "outcome": outcome, "why": "; ".join(filter(None, (found, c.why))),
        "found": judged.found, "expected": c.value, "within": c.within, "evidence": c.evidence, "where": c.where,
    }  # fmt: skip


def _arguments(system: Any, claim: Any) -> tuple[Any, ...]:
    """What a claim's quantity takes: (law, its published values), or the system alone."""
    if hasattr(system, "published"):
        values = system.published.get(claim.source) or system.truth
        return system, values
    return (system,)


def tables(names: Iterable[str] | None = None, each: Callable[[list[str]], Iterable[str]] = iter) -> Report:
    """Every public table with a declared law: fitted, and compared with what was printed.

    A difference whose reason the table declares is reported as "differs, explained": it is not a failure of ours.
    ``each`` walks the names (a progress bar, say).
    """
    from scalingkit import catalog
    from scalingkit.papers.tables import verify_tables

    wanted = list(names) if names else catalog.names()
    return Report(tuple(_row(o) for n in each(wanted) for o in verify_tables([n])))


def _row(o: Any) -> dict[str, Any]:
    from scalingkit import catalog

    declared = any(f.reason for f in catalog.table(o.table).fits if (f.law, f.where) == (o.law, o.where))
    outcome = "differs, explained" if o.outcome == "differs" and declared else o.outcome
    return {
        "name": o.table, "what": o.law or "-", "outcome": outcome, "why": o.why, "where": o.where, "rows": o.rows,
        "expected": dict(o.expected), "found": dict(o.found),
    }  # fmt: skip
