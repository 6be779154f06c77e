"""Complexity scaling on the travelling salesman problem: the printed fits at full precision. Constants only.

decay         y = asymptote + (scale / (x - shift))**exponent
growth        y = ((x - shift) / scale)**exponent
saturation    y = asymptote - (scale / x)**exponent
exponential   y = asymptote + sign * scale / base**(x**(1 / root))
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.catalog._errors import CatalogError
from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Published, Table
from scalingkit.catalog._tidy import Bad, Column, tidy
from scalingkit.core.card import Card, Source
from scalingkit.core.notes import Note

weissman2025 = Source("weissman2025", "Weissman, Krumdick, Abbott 2025, Complexity scaling laws", "2506.12932")
FIGURES = (1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 19)
ONLY = Note(
    "constants-only", "warning", "exponent", "Only the printed constants are public; no point was measured here."
)

_N = r"(-?[\d.]+(?:e[+-]?\d+)?)"
_X = rf"\(x(?: - {_N})?\)"
_POWER = re.compile(rf"y = (?:{_N} ([+-]) )?\({_N} / {_X}\)\^{_N}")
_GROWTH = re.compile(rf"y = \({_X} / {_N}\)\^{_N}")
_EXPONENTIAL = re.compile(rf"y = {_N} ([+-]) \({_N} / {_N}\^\(x(?:\^\(1/{_N}\))?\)\)")
_LENGTH = re.compile(rf"{_N} nodes, total length {_N}")


def parse(text: str) -> dict[str, Any]:
    """The constants of one printed expression. Raises CatalogError for a form not known here.

    >>> parse("y = ((x - 5.0) / 200.0)^1.5")["exponent"]
    1.5
    """
    if m := _POWER.fullmatch(text):
        form = "power decay" if m[2] != "-" else "power saturation"
        return {"form": form} | _numbers(
            asymptote=m[1] or 0, sign=(m[2] or "+") + "1", scale=m[3], shift=m[4] or 0, exponent=m[5]
        )
    if m := _GROWTH.fullmatch(text):
        return {"form": "power growth"} | _numbers(sign=1, shift=m[1] or 0, scale=m[2], exponent=m[3])
    if m := _EXPONENTIAL.fullmatch(text):
        form = "exponential" if m[5] is None else "subexponential"
        return {"form": form} | _numbers(asymptote=m[1], sign=m[2] + "1", scale=m[3], base=m[4], root=m[5] or 1)
    raise CatalogError(f"tsp-complexity-fits: cannot read the expression {text!r}; its form is none of the known ones.")


def _numbers(**values: Any) -> dict[str, Any]:
    return {k: float(v) for k, v in values.items()}


def read(files: Files, subtable: str) -> xr.Dataset:
    """One row a printed curve, or (``tours``) the printed lengths of the example tours."""
    lines = [
        (f"figure {k}", *_split(s)) for k in FIGURES for s in files[f"fits/figure_{k}.txt"].read_text().splitlines()
    ]
    frame = pd.DataFrame(lines, columns=["figure", "curve", "expression"])
    is_tour = frame["expression"].str.fullmatch(_LENGTH.pattern)
    if subtable == "tours":
        return _tours(frame[is_tour].reset_index(drop=True))
    frame = frame[~is_tour].reset_index(drop=True)
    constants = pd.DataFrame([parse(e) for e in frame["expression"]])
    return _curves(frame.join(constants).assign(method=_method(frame), axis=_axis(frame)))


def _split(line: str) -> tuple[str, str]:
    curve, _, expression = line.partition(":")
    return " ".join(curve.split()), expression.strip()


def _curves(frame: pd.DataFrame) -> xr.Dataset:
    again = Bad(
        frame.duplicated(["curve", "expression"]), "expression", "duplicate", "an earlier figure prints the same curve"
    )
    meaning = {
        "exponent": "power of the law; of 1/x where the curve decays or saturates, of x where it grows",
        "scale": "x scale of a power; coefficient of an exponential",
        "shift": "subtracted from x",
        "asymptote": "what the curve tends to for large x (none where it grows)",
        "base": "base of the exponential",
        "root": "x**(1 / root) stands in the exponential; 1 for a plain one",
        "sign": "+1 where the term is added, -1 where it is taken from the asymptote",
    }
    return tidy(
        frame,
        columns={k: Column(k, "1", v) for k, v in meaning.items()},
        labels={"figure": "figure", "curve": "curve", "form": "form", "method": "method", "axis": "axis"},
        run=("figure", "curve"),
        bad=[again],
        extra_notes=[ONLY],
    )


def _method(frame: pd.DataFrame) -> pd.Series:
    return frame["curve"].str.extract(r"\b(ppo|sft|opt|rand)\b", expand=False)


def _axis(frame: pd.DataFrame) -> pd.Series:
    """What x is: compute, parameters, nodes or dimensions, as far as the curve's name says."""
    c = frame["curve"]
    named = [
        c.str.contains(r"\bcomp\b|opt model size"),
        c.str.contains(r"\bparam\b"),
        c.str.contains("node"),
        c.str.contains("dim"),
    ]
    return pd.Series(np.select(named, ["compute", "parameters", "nodes", "dimensions"], ""), index=frame.index)


def _tours(frame: pd.DataFrame) -> xr.Dataset:
    found = frame["expression"].str.extract(_LENGTH)
    frame = frame.assign(nodes=found[0].astype(float), length=found[1].astype(float))
    columns = {
        "nodes": Column("nodes", "city", "cities of the example"),
        "length": Column("length", "1", "printed length of the tour, in sides of the unit cube"),
    }
    return tidy(frame, columns=columns, labels={"curve": "curve"}, run="curve")


PRINTED = "fits/figure_1.txt at the pinned commit"
REASON = "the repository prints the regression, not the points: they lie in institutional deposits (DOI 10.7294/29374511, 10.7294/29374535, 10.7294/30359275)"


def _fit(axis: str, method: str, exponent: float) -> Fit:
    return Fit(
        law="power",
        options={"where": {"axis": axis, "method": method}, "rename": {"x": axis, "y": "suboptimality"}},
        expected={"alpha": exponent},
        tolerance={"alpha": 5e-5},
        where=PRINTED,
        reason=REASON,
    )


table = Table(
    card=Card(
        "tsp_complexity_fits",
        "printed fits of TSP solvers: suboptimality against compute, parameters, cities and dimensions",
        tags={"reinforcement-learning", "constants", "combinatorial"},
        sources=(weissman2025,),
        scope="Constants of regressions, without intervals. No run of the study is here.",
    ),
    read=read,
    subtables={
        "curves": "83 printed curves, one row each: form and constants",
        "tours": "6 printed tour lengths of the examples in figure 2",
    },
    params_kind="unknown",
    flops_kind="unknown",
    columns={
        "exponent": "power of the law (1)",
        "scale": "x scale of a power, or coefficient of an exponential (1, in the figure's unit of x)",
        "shift": "subtracted from x (unit of x)",
        "asymptote": "limit for large x (unit of y)",
        "base": "base of the exponential (1)",
        "root": "root of x inside the exponential (1)",
        "sign": "+1 or -1: how the term enters (1)",
        "nodes": "cities of the example (city)",
        "length": "tour length (1)",
    },
    traps=(
        "Constants only: the points lie in institutional deposits, so no law is fitted here.",
        "Five forms are mixed in one list; `form` says which, and constants a form does not have are NaN.",
        "Figures repeat curves of earlier figures word for word: the repeats are set aside as duplicates.",
        "The unit of compute is the one of the figure's axis and is not stated in the file; scale is in that unit.",
        "Five shifts differ from 5 only because the regression stopped at a bound (4.995, 1.998): not measured values.",
    ),
    published={
        "compute_exponent_ppo": Published(0.4394998397689396, PRINTED),
        "compute_exponent_sft": Published(0.554617313078783, PRINTED),
        "parameter_exponent_ppo": Published(0.5815870240040848, PRINTED),
        "parameter_exponent_sft": Published(0.7121998919665815, PRINTED),
        "optimal_size_exponent_ppo": Published(0.8159695041487856, PRINTED),
        "optimal_size_exponent_sft": Published(0.657868085089342, PRINTED),
        "node_exponent_ppo": Published(1.8612724614419522, "fits/figure_3.txt at the pinned commit"),
        "node_exponent_sft": Published(1.687746879914161, "fits/figure_3.txt at the pinned commit"),
    },
    fits=(
        _fit("compute", "ppo", 0.4395),
        _fit("compute", "sft", 0.5546),
        _fit("parameters", "ppo", 0.5816),
        _fit("parameters", "sft", 0.7122),
    ),
)
