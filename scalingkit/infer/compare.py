"""Compare: which model predicts a run it has not seen better, and by how much more than chance.

    elpd = sum_i log p(y_i | y_-i)          leave-one-out, Pareto-smoothed importance sampling
    difference_j = elpd_j - elpd_best,      se = sqrt(n) sd_i(elpd_ij - elpd_i,best)
    weight = argmax over the simplex of sum_i log sum_j w_j p_j(y_i | y_-i)          stacking

Runs of one corpus are not unseen when the others of it are seen: ``by="corpus"`` scores each run by a refit without its
whole group. Where k-hat > 0.7 smoothing has failed; ``refit=True`` replaces those scores by exact refits.
Sources: Vehtari, Gelman and Gabry 2017; Yao et al. 2018 (stacking); Vehtari et al. 2024 (k-hat).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import arviz_stats
import numpy as np
import xarray as xr
from scipy.special import logsumexp

from scalingkit.core.errors import hint, listed
from scalingkit.core.names import CHAIN, DRAW, RUN
from scalingkit.core.notes import Note, dump
from scalingkit.infer.fit import fit
from scalingkit.infer.heldout import log_density
from scalingkit.infer.influence import BAD_K, by_draw, outcome
from scalingkit.infer.model import Model

SURE = 4.0  # a difference below this many nats, or below two standard errors, is no difference
Refit = Callable[[xr.Dataset], xr.DataTree]


class ComparisonError(ValueError):
    """Models that cannot be compared, because they were not fitted to the same runs."""


def compare(
    trees: Mapping[str, xr.DataTree], *, by: str | None = None, refit: bool = False, runs: xr.Dataset | None = None,
    models: Mapping[str, Model] | None = None, **options: Any,
) -> xr.Dataset:  # fmt: skip
    """Leave-one-out scores of fitted trees by name, best first.

    by       a group column of the runs: leave one group out at a time (exact refits), instead of one run
    refit    score runs with k-hat > 0.7 by exact refits without them
    runs     the table that was fitted; refits need it. ``options`` (draws, tune, chains, ...) go to ``fit``
    models   name -> Model, needed for refits only where a law is not one of the package's

    Variables: ``elpd``, ``se``, ``p`` (effective parameters; NaN with ``by``), ``difference``, ``difference_se``,
    ``weight`` (model); ``elpd_run``, ``pareto_k`` (model, run), ``refitted`` (model, run). attrs: ``verdict``, notes.
    Raises ComparisonError for one model only, or models of different runs or outcomes.
    """
    _same_data(trees)
    if (by or refit) and runs is None:
        raise ComparisonError("refits need the runs: compare({...}, runs=runs).")
    # one Model a name: its compiled functions are found again at every refit
    known = {k: Model.from_spec(t.attrs["model"]) for k, t in trees.items() if by or refit} | dict(models or {})
    if by:
        _check_runs(trees, runs)
        score = np.stack(
            [_by_group(partial(_refit, t, known[k], options), runs, by, known[k]) for k, t in trees.items()]
        )
        k_hat, exact = np.zeros_like(score), np.ones_like(score, bool)
        p = np.full(len(trees), np.nan)
    else:
        loos = [_loo(t) for t in trees.values()]
        score = np.stack([np.asarray(x.elpd_i.values, float) for x in loos])
        k_hat = np.stack([np.asarray(x.pareto_k.values, float) for x in loos])
        p, exact = np.array([float(x.p) for x in loos]), np.zeros_like(score, bool)
        if refit:
            _check_runs(trees, runs)
            exact = k_hat > BAD_K
            for i, (name, tree) in enumerate(trees.items()):
                _exact(score[i], exact[i], partial(_refit, tree, known[name], options), runs, known[name])
    return _table(trees, score, k_hat, exact, p, by)


def _loo(tree: xr.DataTree) -> Any:
    with warnings.catch_warnings():
        # what ArviZ warns of in general is said here by run name, in the notes
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto", category=UserWarning)
        return arviz_stats.loo(tree, pointwise=True)


def stacking_weights(score: np.ndarray, tolerance: float = 1e-9, most: int = 20_000) -> np.ndarray:
    """w (model,) on the simplex that maximises the summed log of the mixed leave-one-out densities; score (model, run).

    By EM for mixture proportions, w_j <- mean_i w_j p_ij / sum_k w_k p_ik: the objective is concave, each step raises it,
    and no step size can overshoot where one model is far ahead.
    """
    density = np.exp(score - score.max(0))
    w = np.full(len(score), 1 / len(score))
    for _ in range(most):
        new = w * (density / (w @ density)).mean(1)
        if np.abs(new - w).max() < tolerance:
            break
        w = new
    return np.where(w < 1e-4, 0.0, w) / w[w >= 1e-4].sum()


def _table(trees: Mapping[str, xr.DataTree], score: Any, k_hat: Any, exact: Any, p: Any, by: str | None) -> xr.Dataset:
    total = score.sum(1)
    order = np.argsort(-total, kind="stable")
    names = np.array(list(trees))[order]
    score, k_hat, exact, p = score[order], k_hat[order], exact[order], p[order]
    n = score.shape[1]
    gap = score - score[0]
    labels = next(iter(trees.values()))["observed_data"][RUN].values.astype(str)
    out = xr.Dataset(
        {
            "elpd": ("model", score.sum(1), {"units": "nat"}),
            "se": ("model", np.sqrt(n) * score.std(1)),
            "p": ("model", p),
            "difference": ("model", gap.sum(1), {"units": "nat"}),
            "difference_se": ("model", np.sqrt(n) * gap.std(1)),
            "weight": ("model", stacking_weights(score)),
            "elpd_run": (("model", RUN), score),
            "pareto_k": (("model", RUN), k_hat),
            "refitted": (("model", RUN), exact),
        },
        coords={"model": names, RUN: labels},
    )
    notes = _notes(out)
    how = f"leave one {by} out, exact refits" if by else "leave one run out, PSIS"
    out.attrs = {"method": how, "verdict": _verdict(out, notes), "notes": dump(notes)}
    return out


def _notes(out: xr.Dataset) -> list[Note]:
    notes = []
    for name in out.model.values:
        row = out.sel(model=name)
        bad = row[RUN].values[(row.pareto_k.values > BAD_K) & ~row.refitted.values]
        if bad.size:
            text = f"k-hat > {BAD_K} for {listed(bad)}: these scores are unreliable. Use refit=True, or by= a group."
            notes.append(Note("loo-unreliable", "warning", str(name), text))
    return notes


def _verdict(out: xr.Dataset, notes: list[Note]) -> str:
    best, other = (str(m) for m in out.model.values[:2])
    gap, se = -float(out.difference[1]), float(out.difference_se[1])
    if gap > max(SURE, 2 * se):
        said = f"{best} predicts unseen runs better than {other}: {gap:.1f} nat (se {se:.1f})."
    else:
        said = f"{best} and {other} predict unseen runs about equally well: {gap:.1f} nat apart (se {se:.1f})."
    weights = ", ".join(f"{m} {float(w):.2f}" for m, w in zip(out.model.values, out.weight.values, strict=True))
    return " ".join([said, f"Stacking weights: {weights}.", *(f"{n.about}: {n.text}" for n in notes)])


def _same_data(trees: Mapping[str, xr.DataTree]) -> None:
    """Run labels, outcomes, and inputs that both hold must be equal; hashes are not enough, as they include the law."""
    if len(trees) < 2:
        raise ComparisonError("compare needs two trees or more, by name: compare({'chinchilla': a, 'kaplan': b}).")
    first, *rest = trees
    a = trees[first]
    y = a["observed_data"][outcome(a)]
    for name in rest:
        b = trees[name]
        z = b["observed_data"][outcome(b)]
        if y.sizes != z.sizes or not np.array_equal(y[RUN].values.astype(str), z[RUN].values.astype(str)):
            raise ComparisonError(
                f"{first!r} has {y.size} runs and {name!r} {z.size}, not the same ones in the same order: scores over "
                "different data cannot be compared. Fit both to one table."
            )
        _equal(first, name, outcome(b), y, z)
        if "constant_data" in a.children and "constant_data" in b.children:
            ours, theirs = a["constant_data"].to_dataset(), b["constant_data"].to_dataset()
            for k in set(ours.data_vars) & set(theirs.data_vars):
                _equal(first, name, str(k), ours[k], theirs[k])


def _equal(first: str, name: str, column: str, a: xr.DataArray, b: xr.DataArray) -> None:
    differ = np.flatnonzero(~np.isclose(a.values, b.values, rtol=1e-12, atol=0, equal_nan=True))
    if differ.size:
        where = listed(a[RUN].values[differ])
        raise ComparisonError(f"{first!r} and {name!r} saw a different {column} in {differ.size} run(s): {where}.")


def _check_runs(trees: Mapping[str, xr.DataTree], runs: xr.Dataset) -> None:
    labels = next(iter(trees.values()))["observed_data"][RUN].values.astype(str)
    have = runs[RUN].values.astype(str) if RUN in runs.coords else np.arange(runs.sizes[RUN]).astype(str)
    if not np.array_equal(labels, have):
        raise ComparisonError("the runs given are not those that the trees were fitted to (labels differ).")


def _refit(tree: xr.DataTree, model: Model, options: Mapping[str, Any], part: xr.Dataset) -> xr.DataTree:
    sizes = tree["posterior"].sizes
    lengths = dict(draws=sizes[DRAW], tune=sizes[DRAW], chains=sizes[CHAIN], seed=int(tree.attrs.get("seed", 0)))
    return fit(model, part, **(lengths | dict(options)))


def _exact(score: np.ndarray, rows: np.ndarray, again: Refit, runs: xr.Dataset, model: Model) -> None:
    """Replace the scores of ``rows`` by those of refits without each."""
    for i in np.flatnonzero(rows):
        keep = np.arange(runs.sizes[RUN]) != i
        score[i] = _held_out(again(runs.isel({RUN: keep})), runs.isel({RUN: [i]}), model)[0]


def _by_group(again: Refit, runs: xr.Dataset, by: str, model: Model) -> np.ndarray:
    """log p(y_i | all groups but that of i): (run,)."""
    if by not in runs.variables:
        columns = [str(k) for k in runs.variables if runs[k].dims == (RUN,)]
        raise ComparisonError(f"the runs have no column {by!r} to leave out by.{hint(by, columns)}")
    labels = runs[by].values.astype(str)
    if len(np.unique(labels)) < 2:
        raise ComparisonError(f"all runs have the same {by}: there is no group to leave out.")
    score = np.empty(labels.size)
    for label in np.unique(labels):
        out = labels == label
        score[out] = _held_out(again(runs.isel({RUN: ~out})), runs.isel({RUN: out}), model)
    return score


def _held_out(fitted: xr.DataTree, held: xr.Dataset, model: Model) -> np.ndarray:
    """log mean over draws of the density of each held-out outcome; new groups are drawn from their population."""
    log_p = by_draw(log_density(fitted, held, model))
    return logsumexp(log_p, axis=0) - np.log(len(log_p))
