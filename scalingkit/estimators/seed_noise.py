"""Seed noise: the spread between runs that differ in their seed only, pooled over cells of equal inputs.

    s**2 = sum_cells sum_i (log y_i - mean log y)**2 / dof,   dof = sum_cells (n - 1)
    interval: dof s**2 / sigma**2 ~ chi-squared(dof)

A cell is the runs that agree in every input and group column; cells of one run say nothing. ``equal_p`` is Bartlett's
test that all cells have one sd: small, and a single number is a poor summary. Checkpoints of one run are not replicates,
and cells that share seeds are not independent: then the sd is right and the interval too tight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from scalingkit.core.card import OURS, Card, Claim
from scalingkit.core.estimator import Estimator
from scalingkit.core.names import CORPUS, FAMILY, LEVEL, RUN, SEED

INPUTS = ("N", "D", "U", "C", "P", "x", FAMILY, CORPUS)


def estimate(
    data: xr.Dataset,
    *,
    outcome: str | None = None,
    by: Sequence[str] | None = None,
    log: bool = True,
    prob: float = 0.9,
) -> xr.Dataset:
    """The pooled sd of the (log) outcome, its interval, and the sd of every cell.

    data     dim ``run``; the outcome is ``loss``, else ``y``, unless named
    by       columns that must agree within a cell; default: those of N, D, U, C, P, x, family, corpus that are there
    log      sd of log y, a relative spread; else of y itself

    Scalars ``sd``, ``lower``, ``upper``, ``dof``, ``equal_p`` (nan for fewer than two cells of two); ``cell_sd`` and
    ``cell_runs`` with dim ``level``, labelled by the columns that differ between cells. Raises ValueError where no two
    runs are replicates.
    """
    outcome = outcome or next((k for k in ("loss", "y") if k in data), "loss")
    by = [k for k in INPUTS if k in data.variables] if by is None else list(by)
    if missing := [k for k in (outcome, *by) if k not in data.variables]:
        raise ValueError(f"no {', '.join(missing)} in the runs; they have {', '.join(map(str, data.variables))}.")
    y = np.asarray(data[outcome].values, float)
    if bad := np.flatnonzero(~np.isfinite(y) | (log & (y <= 0))).tolist():
        raise ValueError(f"row {bad[0]}: {outcome} = {y[bad[0]]:g} cannot be used{' on a log scale' if log else ''}.")
    cells = _cells(data, by)
    replicated = {cell: rows for cell, rows in cells.items() if len(rows) > 1}
    if not replicated:
        raise ValueError(
            f"no two runs agree in {', '.join(by)}: the seed noise needs replicates. Give by= to say which are."
        )
    samples = [np.log(y[rows]) if log else y[rows] for rows in replicated.values()]
    return _pooled(samples, prob).assign_coords({LEVEL: _labels(replicated, by)})


def _cells(data: xr.Dataset, by: list[str]) -> dict[tuple[Any, ...], list[int]]:
    """Values of the columns ``by`` -> rows, in order of appearance."""
    cells: dict[tuple[Any, ...], list[int]] = {}
    for i, cell in enumerate(
        zip(*(data[k].values.tolist() for k in by), strict=True) if by else [()] * data.sizes[RUN]
    ):
        cells.setdefault(cell, []).append(i)
    return cells


def _labels(cells: Iterable[tuple[Any, ...]], by: list[str]) -> list[str]:
    """Each cell in words, naming only the columns in which cells differ."""
    cells = list(cells)
    shown = [j for j in range(len(by)) if len({c[j] for c in cells}) > 1]
    return [
        ", ".join(f"{by[j]}={c[j]:g}" if isinstance(c[j], float) else f"{by[j]}={c[j]}" for j in shown) for c in cells
    ]


def _pooled(samples: list[np.ndarray], prob: float) -> xr.Dataset:
    squares, dof = sum(np.sum((s - s.mean()) ** 2) for s in samples), sum(s.size - 1 for s in samples)
    high, low = stats.chi2.ppf([(1 - prob) / 2, (1 + prob) / 2], dof)
    spreads = np.array([s.std(ddof=1) for s in samples])
    equal_p = float(stats.bartlett(*samples).pvalue) if len(samples) > 1 and np.all(spreads > 0) else np.nan
    return xr.Dataset(
        dict(
            sd=np.sqrt(squares / dof), lower=np.sqrt(squares / low), upper=np.sqrt(squares / high), dof=dof,
            equal_p=equal_p, cell_sd=(LEVEL, spreads), cell_runs=(LEVEL, [s.size for s in samples]),
        )
    )  # fmt: skip


# ---------------------------------------------------------------- judged on the world "learning_curves"

THETA = dict(E=0.5, A=1.2, alpha=0.35, seed_sd=0.03, noise=0.02)


def design(levels: int = 40, seeds: int = 6) -> xr.Dataset:
    """Every x with its own seeds: no run shares its luck with another."""
    x = np.repeat(np.geomspace(1e5, 1e9, levels), seeds)
    labels = [f"seed-{i}" for i in range(x.size)]
    return xr.Dataset({"x": (RUN, x)}, coords={RUN: [f"run-{i}" for i in range(x.size)], SEED: (RUN, labels)})


def judge(world: Any, key: Any) -> tuple[float, float, float]:
    """sd between seeds, within 4 standard errors: sd / sqrt(2 dof)."""
    found = estimate(world.simulate(key, design(), **THETA))
    truth = float(np.hypot(THETA["seed_sd"], THETA["noise"]))
    return float(found["sd"]), truth, 4 * truth / np.sqrt(2 * int(found["dof"]))


def wrong(world: Any, key: Any) -> tuple[float, float, float]:
    """Checkpoints of one run taken for replicates: the luck of their seed is common to them, and never seen."""
    data = world.simulate(key, design(), **THETA)
    shared = data.assign_coords({SEED: (RUN, [f"seed-{x:g}" for x in data["x"].values])})
    found = estimate(world.simulate(key, shared, **THETA))
    truth = float(np.hypot(THETA["seed_sd"], THETA["noise"]))
    return float(found["sd"]), truth, 4 * truth / np.sqrt(2 * int(found["dof"]))


def by_hand(estimator: Estimator) -> float:
    """Two cells, (1, 3) and (2, 2, 5): squares 2 + 6 over 3 degrees of freedom."""
    data = xr.Dataset({"x": (RUN, [1.0, 1.0, 2.0, 2.0, 2.0]), "y": (RUN, [1.0, 3.0, 2.0, 2.0, 5.0])})
    return float(estimator(data, log=False)["sd"])


estimator = Estimator(
    card=Card(
        "seed_noise",
        "sd between seeds, pooled over equal runs",
        tags={"seeds", "noise"},
        sources=(OURS,),
        scope="Says how far runs of one recipe scatter, not how far a fitted law is off.",
    ),
    estimate=estimate,
    world="learning_curves",
    judge=judge,
    wrong=wrong,
    claims=(Claim(OURS, "sqrt(8 / 3)", "pooled sd of two small cells", by_hand, 1.632993, 1e-6, evidence="derived"),),
    example=dict(data=design(3, 4).assign(y=(RUN, np.linspace(1.0, 2.0, 12)))),
)
