"""DesignBoard: runs as points on the log N - log D plane that a person drags, adds and removes; the numbers follow.

    board = DesignBoard(posterior)            # or a law and the runs trained so far
    board                                     # drag; double click adds; Delete removes; "suggest" places the best next
    board.runs                                # the runs, trained and planned, as a runs Dataset
    board.result                              # condition numbers, weakest direction, cost, N* interval

The view is one ES module, shipped in the package; the numbers are ``design.board.board``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets
import xarray as xr

from scalingkit.design import board as numbers
from scalingkit.design.cost import Cost, per_run
from scalingkit.design.cost import unit as cost_unit
from scalingkit.design.grids import DesignError, design
from scalingkit.widgets.base import Live

MOST = 200


class DesignBoard(Live, anywidget.AnyWidget):
    """Drag the runs you plan; see what they would tell.

    ``source``, ``runs``: what ``suggest`` takes; trained runs are shown locked. ``plan``: runs (N, D) to begin with.
    ``budget``: where N* is asked for; ``spend``: what a suggested run may cost (default: the dearest run so far).
    """

    _esm = Path(__file__).with_name("design_board.js")
    plan = traitlets.Dict().tag(sync=True)
    numbers = traitlets.Dict().tag(sync=True)
    locked = traitlets.List().tag(sync=True)
    frame = traitlets.Dict().tag(sync=True)
    complaint = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self, source: Any, runs: xr.Dataset | None = None, *, plan: Any = None, spend: float | None = None,
        budget: float | None = None, cost: Cost | None = None, **standing: Any,
    ) -> None:  # fmt: skip
        self.now = numbers.standing(source, runs, budget=budget, cost=cost, **standing)
        first = design(plan["N"], plan["D"]) if plan is not None else None
        points = (
            []
            if first is None
            else [_point(i, *nd) for i, nd in enumerate(zip(first["N"].values, first["D"].values, strict=True))]
        )
        trained = self.now.found.runs
        self.spend = spend or self._dearest(trained, first)
        super().__init__(plan={"seq": 0, "points": points}, locked=_locked(trained))
        self.frame = self._frame(trained, points)
        self.refresh()
        self.observe(self.refresh, names="plan")
        self.on_msg(self._asked)

    def values(self) -> dict[str, Any]:
        """The planned runs as (N, D) lists."""
        points = self.plan.get("points", [])
        return {"N": [float(p["N"]) for p in points], "D": [float(p["D"]) for p in points]}

    def compute(self, N: list[float], D: list[float]) -> xr.Dataset:
        if len(N) > MOST:
            raise DesignError(f"{len(N)} planned runs are more than the board takes ({MOST}).")
        return numbers.board(self.now, N, D)

    def show(self, result: xr.Dataset) -> None:
        self.numbers = _plain(result) | {"seq": self.plan.get("seq", 0)}

    def complain(self, text: str) -> None:
        self.complaint = text
        if text:  # an answer all the same, so that the view does not wait for one
            self.numbers = {**self.numbers, "seq": self.plan.get("seq", 0)}

    def twin(self, result: xr.Dataset) -> Any:
        from scalingkit.plots.board import board

        return board(self.now.found.runs, self.planned, result).figure

    @property
    def planned(self) -> xr.Dataset | None:
        """The planned runs alone; None where there are none."""
        at = self.values()
        return design(at["N"], at["D"], name="planned", cost=self.now.cost) if at["N"] else None

    @property
    def runs(self) -> xr.Dataset:
        """Trained and planned runs as one runs Dataset; the outcomes of planned runs are missing."""
        return numbers.runs_with(self.now, **self.values())

    def suggest(self) -> tuple[float, float]:
        """Place the run, costing at most ``spend``, that makes N* best known; returns its (N, D)."""
        N, D = numbers.suggested(self.now, **self.values(), spend=self.spend)
        points = list(self.plan.get("points", []))
        taken = [int(p["id"]) for p in points]
        points = [*points, _point(max(taken, default=-1) + 1, N, D)]
        wanted = self._frame(self.now.found.runs, points)  # the suggestion may lie outside what is shown
        grown = {k: [min(self.frame[k][0], wanted[k][0]), max(self.frame[k][1], wanted[k][1])] for k in "ND"}
        self.frame = wanted | grown
        self.plan = {"seq": self.plan.get("seq", 0) + 1, "points": points}
        return N, D

    def _asked(self, _: Any, content: Any, __: Any) -> None:
        if isinstance(content, dict) and content.get("type") == "suggest":
            try:
                self.suggest()
            except ValueError as e:  # a refusal of the search: said in the widget, where the person looks
                self.error = e
                self.complain(f"{type(e).__name__}: {e}")

    def _dearest(self, *tables: xr.Dataset | None) -> float:
        costs = [per_run(self.now.cost, t["N"].values, t["D"].values).max() for t in tables if t is not None]
        return float(max(costs)) if costs else self.now.budget / 100

    def _frame(self, trained: xr.Dataset | None, points: list[dict[str, float]]) -> dict[str, Any]:
        """Decades of N and D to show: all runs, and room to plan around them."""
        N, D = ([p[k] for p in points] for k in "ND")
        if trained is not None:
            N, D = [*N, *trained["N"].values], [*D, *trained["D"].values]
        if not N:
            N, D = [1e8, 1e10], [2e9, 2e11]
        unit = float(per_run(None, 1.0, 1.0)) if callable(self.now.cost) else float(per_run(self.now.cost, 1.0, 1.0))
        law = self.now.law.name
        return {"N": _decades(N), "D": _decades(D), "flop": unit, "unit": cost_unit(self.now.cost), "law": law}


def _point(i: int, N: float, D: float) -> dict[str, Any]:
    return {"id": i, "N": float(N), "D": float(D)}


def _locked(runs: xr.Dataset | None) -> list[dict[str, Any]]:
    if runs is None:
        return []
    rows = zip(runs["run"].values, runs["N"].values, runs["D"].values, strict=True)
    return [{"name": str(r), "N": float(n), "D": float(d)} for r, n, d in rows]


def _decades(values: list[float]) -> list[float]:
    lo, hi = float(np.log10(np.min(values))), float(np.log10(np.max(values)))
    room = max(0.5, 0.12 * (hi - lo))
    return [lo - room, hi + room]


def _plain(result: xr.Dataset) -> dict[str, Any]:
    """Numbers of a result for the page; JSON has no infinity, so it goes as null."""
    out: dict[str, Any] = {k: _finite(float(v)) for k, v in result.data_vars.items() if v.ndim == 0}  # type: ignore[misc]
    out["kappa"] = {
        str(b): _finite(float(v)) for b, v in zip(result["block"].values, result["kappa"].values, strict=True)
    }
    return out | {k: result.attrs[k] for k in ("weakest", "budget", "prob")}


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None
