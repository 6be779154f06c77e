"""Board: what planned runs would add to those there are, fast enough to follow a hand that moves them.

    kappa     condition number of J'J over all runs: of the scale block, and of the full matrix (never the same number)
    weakest   the direction with the least contraction, (S^-2 + J'WJ / s**2)^-1 over all runs
    N*        exp(log N* -+ z sqrt(V(X))) at a budget, V: expected posterior variance after the planned runs X

Linearised about what the trained runs say (see ``state``); V is averaged over draws (see ``preposterior``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import norm

from scalingkit.core.law import Law
from scalingkit.core.names import RUN
from scalingkit.core.precision import require_x64
from scalingkit.design import prior, words
from scalingkit.design import region as regions
from scalingkit.design.contraction import directions, laplace
from scalingkit.design.cost import Cost, per_run
from scalingkit.design.cost import unit as cost_unit
from scalingkit.design.cost import words as cost_words
from scalingkit.design.evidence import Evidence, read
from scalingkit.design.grids import DesignError, design, extend, from_runs
from scalingkit.design.information import (
    as_mapping,
    block_params,
    condition_array,
    inputs,
    jacobian_array,
    pivot_array,
    pivoted_at,
    raw,
    unconstrained,
)
from scalingkit.design.optimum import optimum
from scalingkit.design.preposterior import Preposterior, preposterior
from scalingkit.design.state import State
from scalingkit.design.suggest import _others, _search, _start
from scalingkit.design.targets import Size
from scalingkit.infer.coordinates import of as coordinates

BLOCKS = ("scale", "full")


@dataclass(frozen=True)
class Standing:
    """What the trained runs say, prepared once: evidence, state, judge of N* at ``budget``, and its centre."""

    found: Evidence
    state: State
    judge: Preposterior
    budget: float
    cost: Cost | None
    at: dict[str, float]
    n_star: float

    @property
    def law(self) -> Law:
        return self.found.law

    @property
    def theta(self) -> dict[str, float]:
        """The parameter values at which condition numbers are taken."""
        return dict(as_mapping(self.law, raw(coordinates(self.law), self.state.u, self.state.pivots)))


def standing(
    source: Any, runs: xr.Dataset | None = None, *, budget: float | None = None, cost: Cost | None = None,
    theta: Any = None, noise: float | None = None, law: Law | str | None = None, group: dict[str, Any] | None = None,
    at: dict[str, float] | None = None, draws: int = 64,
) -> Standing:  # fmt: skip
    """What is known before anything is planned, from whatever ``suggest`` takes.

    ``budget``: where N* is wanted (default 100 times the dearest run); ``theta``: values at which to judge where no run
    is trained (default the law's published ones). Raises DesignError, PrecisionError.
    """
    require_x64("a design")
    evidence = read(source, runs, law=law, noise=noise)
    if evidence.runs is None and evidence.draws is None:
        found, state = evidence, _untrained(evidence, theta)
    else:
        found, state = _start(evidence, theta, group)
    x = None if found.runs is None else inputs(found.law, found.runs)
    rest = dict(at or {}) or _others(found, x)
    if budget is None:
        budget = 1e21 if x is None else 100 * float(_price(found.law, x, cost).max())
    judge = preposterior(found, state, Size(budget, cost, rest), draws)
    centre = raw(coordinates(found.law), state.u, state.pivots)[None]
    n_star = float(optimum(found.law, centre, np.array([budget]), cost, rest).N[0, 0])
    return Standing(found, state, judge, float(budget), cost, rest, n_star)


def board(now: Standing, N: Any, D: Any, *, prob: float = 0.9) -> xr.Dataset:
    """Read-outs with runs planned at ``N``, ``D`` (arrays, may be empty).

    ``kappa`` (block), ``contraction`` of the weakest direction (its words in attrs["weakest"]), ``cost`` of the planned
    runs, ``cost_trained``, ``n_star`` with ``n_star_low``, ``n_star_high`` (expected ``prob`` interval) and
    ``n_star_sd`` (of log N*); ``n_star_sd_now`` without the plan.
    """
    x, planned = everything(now, N, D)
    price = _price(now.law, x, now.cost) if len(x) else np.empty(0)
    sd_now, sd = np.sqrt(now.judge.now()), np.sqrt(now.judge.variance(x[planned]) if planned.any() else now.judge.now())
    z = float(norm.ppf((1 + prob) / 2))
    along, said = _weakest(now, x)
    one = {"units": "1"}
    size = {"units": "param", "meaning": f"N* at budget {now.budget:.3g}"}
    return xr.Dataset(
        {
            "kappa": ("block", _kappa(now, x), one | {"meaning": "condition number of J'J, columns of length 1"}),
            "contraction": ((), along, one | {"meaning": "contraction of the weakest direction"}),
            "cost": ((), price[planned].sum(), {"units": cost_unit(now.cost), "meaning": "cost of the planned runs"}),
            "cost_trained": ((), price[~planned].sum(), {"units": cost_unit(now.cost)}),
            "n_star": ((), now.n_star, size),
            "n_star_low": ((), now.n_star * np.exp(-z * sd), size),
            "n_star_high": ((), now.n_star * np.exp(z * sd), size),
            "n_star_sd": ((), sd, one | {"meaning": "expected sd of log N*"}),
            "n_star_sd_now": ((), sd_now, one | {"meaning": "sd of log N* without the plan"}),
            "planned": ((), int(planned.sum())),
        },
        coords={"block": list(BLOCKS)},
        attrs={"weakest": said, "budget": now.budget, "prob": prob, "law": now.law.name, "cost": cost_words(now.cost)},
    )


def suggested(now: Standing, N: Any, D: Any, *, spend: float, seed: int = 0) -> tuple[float, float]:
    """(N, D) of the one run, costing at most ``spend``, that makes N* best known after the trained and planned runs."""
    x, planned = everything(now, N, D)
    judge = now.judge
    if planned.any():
        R = judge.rows(x[planned])
        judge = replace(judge, precision=judge.precision + np.swapaxes(R, -1, -2) @ R)
    region = regions.default(now.law, x if len(x) else None, spend, now.cost, now.at)
    best = _search(judge, region, spend, now.cost, 1, "design", seed)[0]
    names = list(now.law.inputs)
    return float(best[names.index("N")]), float(best[names.index("D")])


def runs_with(now: Standing, N: Any, D: Any) -> xr.Dataset:
    """The trained runs and the planned ones as one runs Dataset; outcomes of planned runs are missing."""
    trained = now.found.runs
    if not np.size(N):
        return trained if trained is not None else from_runs(design(1.0, 1.0)).isel({RUN: slice(0, 0)})
    rest = {k: np.full(np.size(N), v) for k, v in now.at.items()}
    plan = design(np.asarray(N, float), np.asarray(D, float), name="planned", cost=now.cost, **rest)
    return plan if trained is None else extend(trained, plan)


def everything(now: Standing, N: Any, D: Any) -> tuple[np.ndarray, np.ndarray]:
    """The law's inputs (n, K) of all runs, and which are planned (n,)."""
    N, D = np.atleast_1d(np.asarray(N, float)), np.atleast_1d(np.asarray(D, float))
    if N.shape != D.shape or not np.all(np.isfinite(N) & np.isfinite(D) & (N > 0) & (D > 0)):
        raise DesignError("planned runs need as many N as D, all of them positive numbers.")
    made = {"N": N, "D": D} | {k: np.full(N.shape, v) for k, v in now.at.items()}
    plan = np.stack([made[k] for k in now.law.inputs], -1)
    trained = np.empty((0, plan.shape[1])) if now.found.runs is None else inputs(now.law, now.found.runs)
    return np.concatenate([trained, plan]), np.r_[np.zeros(len(trained), bool), np.ones(len(plan), bool)]


def _kappa(now: Standing, x: np.ndarray) -> np.ndarray:
    """kappa of each block in natural coordinates, of the outcome itself: what ``condition`` gives."""
    law, names = now.law, list(now.law.params)
    if not len(x):
        return np.full(len(BLOCKS), np.inf)
    theta = np.array([[now.theta[k] for k in names]])
    # padded with copies, cut afterwards: another number of runs compiles nothing
    J = jacobian_array(law, theta, np.pad(x, ((0, -len(x) % 64), (0, 0)), mode="edge"), "natural", "output")
    J = J[0, : len(x)]
    return np.array(
        [
            np.nan if block == "scale" and not law.scales
            else float(condition_array(J[:, [names.index(k) for k in block_params(law, block)]]))  # type: ignore[arg-type]
            for block in BLOCKS
        ]
    )  # fmt: skip


def _weakest(now: Standing, x: np.ndarray) -> tuple[float, str]:
    """Contraction of the least known direction after all runs, and what it does to the parameters."""
    c, state = coordinates(now.law), now.state
    _, sd = prior.moments(now.law)
    cov = np.diag(sd**2)
    if len(x):
        J = pivoted_at(c, state.u[None], x / state.pivots, now.found.of)[0] * np.sqrt(now.found.weight)
        cov = laplace(J, state.noise, sd)
    along, vectors = directions(cov, sd)
    step = float(np.sqrt(max(1 - along[0], 0)))  # one posterior sd
    return float(along[0]), words.direction(c, vectors[0], sd, state.u, state.pivots, step)


def _untrained(found: Evidence, theta: Any) -> State:
    """No run yet: the prior's spread about given (or published) values, judged at these alone."""
    law = found.law
    theta = dict(theta or law.truth)
    c, (_, sd) = coordinates(law), prior.moments(law)
    usual = {k: np.array([{"N": 1e9, "D": 2e10}.get(law.alike.get(k, k), 1.0)]) for k in law.inputs}
    pivots = pivot_array(c, np.stack([usual[k] for k in law.inputs], -1))
    values = np.array([[float(theta[k]) for k in law.params]])
    return State(unconstrained(c, values, pivots)[0], np.diag(sd**2), values, found.noise or 0.02, pivots)


def _price(law: Law, x: np.ndarray, cost: Cost | None) -> np.ndarray:
    names = list(law.inputs)
    return per_run(cost, x[:, names.index("N")], x[:, names.index("D")])
