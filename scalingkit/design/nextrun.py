"""Next runs: no dearer than the dearest so far, chosen one after another, until no direction is free.

    Cov after = Cov - w (Cov j)(Cov j)' / (1 + w j' Cov j)      w = weight / noise**2, j: the candidate's Jacobian

Each is the cheapest that gives most of the best reduction of the prior-whitened variance of the free directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scalingkit.core.law import Law
from scalingkit.design.contraction import directions
from scalingkit.design.cost import per_run
from scalingkit.design.information import Outcome, pivoted_at
from scalingkit.infer.coordinates import of as coordinates

_TPP = (1.0, 2000.0)  # what anybody would train
_LARGER, _MORE_TOKENS = 2.0, 10.0  # how far outside the runs' own sizes (upwards) and tokens (either way)
_NEARLY = 0.9  # the cheapest run that gets this share of the best reduction
_OTHERS = (0.25, 1.0, 4.0)  # times the median of an input besides N and D
MOST = 5


@dataclass(frozen=True)
class NextRuns:
    """``inputs`` (k, K), ``cost`` (k,), and the weakest direction's contraction after each, ``contraction`` (k,)."""

    inputs: np.ndarray
    cost: np.ndarray
    contraction: np.ndarray


def next_runs(
    law: Law, u: np.ndarray, cov: np.ndarray, prior_sd: np.ndarray, x: np.ndarray, pivots: np.ndarray, of: Outcome,
    weight: float, free: float, most: int = MOST,
) -> NextRuns:  # fmt: skip
    """One to ``most`` runs, until the weakest direction's contraction reaches ``free``; cov (p, p) is the posterior's."""
    at = candidates(law, x)
    cost = run_cost(law, at)
    Z = pivoted_at(coordinates(law), u[None], at / pivots, of)[0] * prior_sd * np.sqrt(weight)
    Z = np.where(np.all(np.isfinite(Z), 1, keepdims=True), Z, 0.0)
    white = cov / np.outer(prior_sd, prior_sd)
    one = np.ones(len(prior_sd))
    chosen, after = [], []
    while len(chosen) < most:
        along, vectors = directions(white, one)
        loose = vectors[along < free] if along[0] < free else vectors[:1]
        spread = Z @ white
        gain = np.sum((spread @ loose.T) ** 2, 1) / (1 + np.sum(spread * Z, 1))
        enough = np.flatnonzero(gain >= _NEARLY * gain.max())
        i = enough[np.argmin(cost[enough])]
        white = white - np.outer(spread[i], spread[i]) / (1 + spread[i] @ Z[i])
        chosen.append(i)
        after.append(directions(white, one)[0][0])
        if after[-1] >= free:
            break
    return NextRuns(at[chosen], cost[chosen], np.array(after))


def candidates(law: Law, x: np.ndarray) -> np.ndarray:
    """Inputs (m, K) of runs that could be added: sizes and TPP on a grid, other inputs at a quarter, once, four times their medians."""
    names = list(law.inputs)
    if not {"N", "D"} <= set(names):
        axes = [
            np.geomspace(a / _LARGER, b * _LARGER, 40 if len(names) == 1 else 12)
            for a, b in zip(x.min(0), x.max(0), strict=True)
        ]
        return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], -1)
    n, d = names.index("N"), names.index("D")
    sizes = np.geomspace(x[:, n].min(), x[:, n].max() * _LARGER, 31)
    N, k = (a.ravel() for a in np.meshgrid(sizes, np.geomspace(*_TPP, 31), indexing="ij"))
    rest = [np.median(x[:, i]) * np.array(_OTHERS) for i in range(len(names)) if i not in (n, d)]
    others = np.stack([m.ravel() for m in np.meshgrid(*rest, indexing="ij")], -1) if rest else np.empty((1, 0))
    out = np.empty((N.size, len(others), len(names)))
    out[..., n], out[..., d] = N[:, None], (k * N)[:, None]
    out[..., [i for i in range(len(names)) if i not in (n, d)]] = others
    out = out.reshape(-1, len(names))
    usual = (out[:, d] >= x[:, d].min() / _MORE_TOKENS) & (out[:, d] <= x[:, d].max() * _MORE_TOKENS)
    cost = run_cost(law, out)
    allowed = usual & (cost <= run_cost(law, x).max() * (1 + 1e-9))
    return out[allowed] if allowed.any() else out[[np.argmin(cost)]]


def run_cost(law: Law, x: np.ndarray) -> np.ndarray:
    """6 N D, or the product of the inputs where a law has no N and D."""
    names = list(law.inputs)
    if not {"N", "D"} <= set(names):
        return np.prod(x, -1)
    return per_run(None, x[:, names.index("N")], x[:, names.index("D")])
