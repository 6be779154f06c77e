"""Answers: one contract for every verb, as JSON and as text.

    {"verb", "result", "diagnostics", "warnings": [{"code", "severity", "about", "text"}], "provenance"}

For ``fit`` the result has ``objective`` and ``parameters.<name>.{mean or value, sd, lower, upper}``; a parameter that
differs between groups is named ``alpha[c4]``. NaN and infinity become null: JSON has neither.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from scalingkit.core import notes

PROB = 0.9
_DIAGNOSTICS = ("divergences", "rhat_max", "ess_bulk_min", "route", "sampler", "device", "seconds", "target_accept")
_PROVENANCE = (
    "law", "model", "data_name", "data_sha256", "seed", "precision", "versions", "source", "licence", "citation", "sha256",
    "load_options", "params_kind", "flops_kind", "rows_in", "rows_used", "rows_quarantined", "device_reason",
)  # fmt: skip


@dataclass
class Answer:
    """What a verb found, in the contract's five parts."""

    verb: str
    result: Any
    diagnostics: dict[str, Any] = field(default_factory=dict)
    warnings: list[notes.Note] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        told = [asdict(n) for n in self.warnings]
        parts = {"verb": self.verb, "result": self.result, "diagnostics": self.diagnostics}
        return _plain(parts | {"warnings": told, "provenance": self.provenance})

    def to_json(self) -> str:
        return json.dumps(self.plain(), indent=1, allow_nan=False)


def _plain(v: Any) -> Any:
    """JSON values: NumPy scalars unwrapped, arrays as lists, NaN and infinity as null."""
    if isinstance(v, Mapping):
        return {str(k): _plain(x) for k, x in v.items()}
    if isinstance(v, np.ndarray):
        return _plain(v.tolist())
    if isinstance(v, (list, tuple, set, frozenset)):
        return [_plain(x) for x in v]
    if isinstance(v, np.generic):
        v = v.item()
    if isinstance(v, float) and not math.isfinite(v):
        return None
    return v if v is None or isinstance(v, (str, int, float, bool)) else str(v)


def _from_attrs(attrs: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The attrs of these names, JSON texts opened."""
    out = {}
    for k in keys:
        v = attrs.get(k)
        if isinstance(v, str) and v[:1] in "{[":
            with contextlib.suppress(ValueError):  # a text may merely begin with a bracket
                v = json.loads(v)
        if v is not None:
            out[k] = v
    return out


def provenance(*things: Any) -> dict[str, Any]:
    """Provenance attrs of Datasets and trees, later ones winning."""
    out: dict[str, Any] = {}
    for t in things:
        out |= _from_attrs(t.attrs, _PROVENANCE)
    return out


def merged_notes(*things: Any) -> list[notes.Note]:
    """The notes of several results, each once, in order."""
    return list(dict.fromkeys(n for t in things for n in notes.of(t)))


def named_values(v: Any, sample: tuple[str, ...]) -> dict[str, np.ndarray]:
    """'' or '[group]' -> values over the sample dims, flattened."""
    groups = [d for d in v.dims if d not in sample]
    if not groups:
        return {"": np.ravel(v.values)}
    stacked = v.stack(_group=groups)
    out = {}
    for i, key in enumerate(stacked["_group"].values):
        label = " / ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        out[f"[{label}]"] = np.ravel(stacked.isel(_group=i).values)
    return out


def summarise(values: np.ndarray, prob: float = PROB) -> dict[str, float]:
    """Mean, sd and central interval of draws."""
    lower, upper = np.nanquantile(values, [(1 - prob) / 2, (1 + prob) / 2])
    return {
        "mean": float(np.nanmean(values)),
        "sd": float(np.nanstd(values)),
        "lower": float(lower),
        "upper": float(upper),
    }


def posterior_parameters(
    tree: Any, names: Iterable[str] | None = None, prob: float = PROB
) -> dict[str, dict[str, float]]:
    """Name (with its group) -> mean, sd, lower, upper, for the law's parameters first and then the rest."""
    post = tree["posterior"].dataset
    hidden = ("_z", "_at_pivot")
    first = [k for k in (names or []) if k in post]
    rest = [str(k) for k in post.data_vars if k not in first and not str(k).endswith(hidden)]
    out = {}
    for k in [*first, *rest]:
        for group, values in named_values(post[k], ("chain", "draw")).items():
            out[f"{k}{group}"] = summarise(values, prob)
    return out


def of_fit(tree: Any, runs: Any, names: Iterable[str]) -> Answer:
    """The answer of a sampled (or Laplace) fit."""
    result = {"objective": tree.attrs.get("objective", "posterior density"), "prob": PROB}
    result["parameters"] = posterior_parameters(tree, names)
    return Answer(
        "fit", result, _from_attrs(tree.attrs, _DIAGNOSTICS), merged_notes(runs, tree), provenance(runs, tree)
    )


def of_point(found: Any, runs: Any, names: Iterable[str], seconds: float) -> Answer:
    """The answer of a point fit; intervals where it was bootstrapped."""
    parameters: dict[str, dict[str, float]] = {}
    for k in names:
        sample = ("bootstrap",) if "bootstrap" in found[k].dims else ()
        for group, values in named_values(found[k], sample).items():
            parameters[f"{k}{group}"] = {"value": float(values[0])}
            draws = f"{k}_bootstrap"
            if draws in found:
                boot = named_values(found[draws], ("bootstrap",))[group]
                s = summarise(boot)
                parameters[f"{k}{group}"] |= {"sd": s["sd"], "lower": s["lower"], "upper": s["upper"]}
    objective = found["objective"]
    value = (
        float(objective) if objective.ndim == 0 else {g: float(v[0]) for g, v in named_values(objective, ()).items()}
    )
    result = {"objective": value, "objective_name": found.attrs.get("objective", ""), "parameters": parameters}
    extra = {k: found[k].values for k in ("gradient_norm", "agreement") if k in found and found[k].ndim == 0}
    extra |= {"device": found.attrs["device"]} if "device" in found.attrs else {}
    diagnostics = {"route": "pointfit", "seconds": round(seconds, 2), **extra}
    return Answer("fit", result, diagnostics, merged_notes(runs, found), provenance(runs, found))


def of_check(tree: Any, found: Any) -> Answer:
    """The answer of a check: the verdict, each question with its p value, and the runs that weigh most."""
    statistics = [
        {"statistic": str(k), "observed": float(r.observed), "model": float(r.replicated_mean), "sd": float(r.replicated_sd),
         "p": float(r.p_two_sided)}
        for k, r in ((k, found.sel(statistic=k)) for k in found["statistic"].values)
    ]  # fmt: skip
    groups = [
        {
            "group": str(g),
            "pit p": float(found["pit_p_value"].sel(group=g)),
            "shape": str(found["pit_says"].sel(group=g).item()),
        }
        for g in found["group"].values
    ]
    trends = [
        {
            "residuals against": str(t),
            "slope p": float(found["slope_p_value"].sel(trend=t)),
            "bend p": float(found["bend_p_value"].sel(trend=t)),
        }
        for t in found["trend"].values
    ]
    worst = found["largest_shift"].to_series().nlargest(10)
    runs = [
        {"run": str(r), "shift (sd)": float(v), "moves": str(found["most_moved"].sel(run=r).item()), "k-hat": float(found["pareto_k"].sel(run=r)),
         "influential": bool(found["influential"].sel(run=r))}
        for r, v in worst.items()
    ]  # fmt: skip
    result = {"verdict": found.attrs["verdict"], "passes": bool(found.attrs["passes"]), "statistics": statistics}
    result |= {"calibration": groups, "trends": trends, "influence": runs}
    return Answer("check", result, warnings=merged_notes(tree, found), provenance=provenance(tree))
