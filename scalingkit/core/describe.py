"""Describe: one system as plain values: what `scalingkit show` prints and the documentation is made of."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from scalingkit.core.card import Claim
from scalingkit.core.law import Law


def describe(system: Any) -> dict[str, Any]:
    """Name, formula, card; for a law also inputs, parameters with priors and units, published values and claims."""
    card = system.card
    out: dict[str, Any] = {
        "name": card.name,
        "kind": type(system).__name__.lower(),
        "summary": card.summary,
        "about": about(system),
        "scope": card.scope,
        "tags": sorted(card.tags),
        "sources": {s.key: str(s) for s in card.sources},
    }
    if isinstance(system, Law):
        out |= _law(system)
    out["claims"] = [c.plain() if hasattr(c, "plain") else _claim(c) for c in getattr(system, "claims", ())]
    return out


def about(system: Any) -> str:
    """The docstring of the system's file: the formula first."""
    function = next(
        (getattr(system, k) for k in ("curve", "simulate", "estimate", "rerun", "run") if hasattr(system, k)), None
    )
    module = sys.modules.get(getattr(inspect.unwrap(function), "__module__", "")) if function else None
    return inspect.cleandoc(module.__doc__ or "") if module else ""


def _law(law: Law) -> dict[str, Any]:
    return {
        "inputs": dict(law.inputs),
        "output": law.output,
        "parameters": {
            k: {"meaning": p.doc, "unit": p.unit, "prior": prior_text(p.prior), "at_pivot": k in law.scales}
            for k, p in law.params.items()
        },
        "published": {s.key: dict(v) for s, v in law.published.items()},
    }


def prior_text(prior: Any) -> str:
    """LogNormal(loc=0.53, scale=0.5), and so on."""
    base = prior
    arguments = [f"{k}={float(getattr(base, k)):g}" for k in base.arg_constraints if hasattr(base, k)]
    return f"{type(base).__name__}({', '.join(arguments)})"


def _claim(c: Claim) -> dict[str, Any]:
    return {
        "statement": c.statement, "value": c.value, "within": c.within, "relative": c.relative, "evidence": c.evidence,
        "source": c.source.key, "where": c.where,
    }  # fmt: skip
