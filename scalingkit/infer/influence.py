"""Influence: what each run does to the answer: by leaving it out, and by how hard it pulls.

    w_i(s) ~ 1 / p(y_i | theta_s), Pareto-smoothed             weights of the posterior without run i
    shift_i(k) = (E_w[t_k] - E[t_k]) / sd[t_k]                 t_k: log of a positive parameter, else the parameter
    pull_i(k)  = cov(t_k, log m_i) r_i / (s**2 sd[t_k])        r_i: log residual; s: 1.4826 median |r|

Both are in posterior sds. ``shift`` says where the parameter would stand without the run, under the model as fitted: a
Student-t likelihood that has set an outlier aside shows none, and two outliers can hide each other. ``pull`` is the
influence function of least squares with a robust scale: how far the run would drag the parameter if it counted in full
(leverage times outlyingness). k-hat above 0.7 says that the weights cannot be trusted, itself a sign of influence.
Sources: Vehtari et al. 2024 (arXiv:1507.02646); Belsley, Kuh and Welsch 1980 (DFBETAS); Hampel 1974.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import xarray as xr
from arviz_stats.base import array_stats

from scalingkit.core.names import CHAIN, DRAW, RUN
from scalingkit.infer.model import Model
from scalingkit.infer.predict import predict

BAD_K = 0.7  # above, the weights of a leave-one-out posterior are unreliable
LARGE = 0.5  # a shift worth naming, in posterior sds ...
PULLS = 2.0  # a pull worth naming, in posterior sds
RELATIVE = 5.0  # ... where it is also this many times what a run of a table this size does (1/sqrt n)


class TreeError(ValueError):
    """A posterior that lacks what a check needs; the message says what, and how to get it."""


def outcome(tree: xr.DataTree) -> str:
    """Name of the fitted outcome: the one variable of observed_data. Raises TreeError for a tree without one."""
    for group in ("posterior", "log_likelihood", "observed_data"):
        if group not in tree.children:
            raise TreeError(f"the tree has no group {group!r}: use a tree made by scalingkit.fit.")
    names = [str(k) for k in tree["observed_data"].data_vars]
    if len(names) != 1:
        raise TreeError(f"observed_data holds {names}; a check needs exactly one outcome.")
    return names[0]


def by_draw(values: xr.DataArray) -> np.ndarray:
    """(draw of all chains, ...) from dims chain, draw, ..."""
    v = values.transpose(CHAIN, DRAW, ...).values
    return v.reshape(-1, *v.shape[2:])


def leave_one_out(tree: xr.DataTree) -> tuple[np.ndarray, np.ndarray]:
    """Normalised weights (draw, run) of the posterior without each run, and k-hat (run)."""
    return smoothed(by_draw(tree["log_likelihood"][outcome(tree)]))


def smoothed(log_lik: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pareto-smoothed, normalised weights 1 / likelihood (draw, ...) from log likelihoods (draw, ...), and k-hat (...)."""
    log_w, k = array_stats.psislw(log_lik.T, axis=-1)
    w = np.exp(log_w - log_w.max(-1, keepdims=True))
    return (w / w.sum(-1, keepdims=True)).T, np.asarray(k)


def parameters(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Each scalar quantity of the posterior by name ("beta", "alpha[c4]"), on the log scale where positive: (draw,)."""
    out = {}
    post = tree["posterior"].to_dataset()
    pivoted = {str(k).removesuffix("_at_pivot") for k in post.data_vars if str(k).endswith("_at_pivot")}
    for name, values in post.data_vars.items():
        if name in pivoted:  # the coefficient at the pivot says the same without the exponent's part
            continue
        dims = [d for d in values.dims if d not in (CHAIN, DRAW)]
        cells = values.stack(cell=dims) if dims else values.expand_dims(cell=1, axis=-1)
        flat = by_draw(cells.transpose(CHAIN, DRAW, "cell"))
        labels = [f"[{', '.join(map(str, c))}]" for c in cells.indexes["cell"]] if dims else [""]
        for j, label in enumerate(labels):
            v = flat[:, j]
            if np.isfinite(v).all() and v.std() > 0:
                out[f"{name}{label}"] = np.log(v) if (v > 0).all() else v
    return out


def influence(tree: xr.DataTree, model: Model | None = None) -> xr.Dataset:
    """Dataset with ``pareto_k`` (run), ``shift`` and ``pull`` (run, param), the largest of each but noise's (run), ``most_moved``
    (run), ``influential`` (run, bool) and, for the runs so named left out together, ``shift_jointly`` (param),
    ``k_jointly``. ``pull`` is NaN where the outcome is not the law's own (counts, say).
    """
    model = model or Model.from_spec(tree.attrs["model"])
    w, k = leave_one_out(tree)
    named = parameters(tree)
    # a run that only widens the noise does not decide the answer
    counts = np.array([re.split(r"[\[_]", p)[0] not in model.likelihood.nuisance() for p in named])
    theta = np.stack(list(named.values()))
    mean, sd = theta.mean(1, keepdims=True), theta.std(1, keepdims=True)
    shift = ((theta @ w - mean) / sd).T
    pull = _pull(tree, model, (theta - mean) / sd)
    size = {k: np.nan_to_num(np.abs(v))[:, counts].max(1) for k, v in (("shift", shift), ("pull", pull))}
    influential = (size["shift"] > max(LARGE, RELATIVE / np.sqrt(len(k)))) | (k > BAD_K) | (size["pull"] > PULLS)
    # one scale for both: how many times above its threshold
    worst = np.where((size["pull"] / PULLS > size["shift"] / LARGE)[:, None], np.nan_to_num(pull), shift)
    sds = {"units": "posterior sd"}
    out = xr.Dataset(
        {
            "pareto_k": (RUN, k),
            "shift": ((RUN, "param"), shift, sds),
            "pull": ((RUN, "param"), pull, sds),
            "largest_shift": (RUN, size["shift"], sds),
            "largest_pull": (RUN, size["pull"], sds),
            "most_moved": (RUN, np.array(list(named))[counts][np.abs(worst)[:, counts].argmax(1)]),
            "influential": (RUN, influential),
        },
        coords={RUN: tree["observed_data"][RUN].values.astype(str), "param": list(named)},
    )
    out["shift_jointly"], out["k_jointly"] = _jointly(tree, influential, theta, mean, sd)
    return out


def ranked(found: xr.Dataset) -> list[str]:
    """Labels of the influential runs, the worst first."""
    score = np.maximum(found["largest_pull"] / PULLS, found["largest_shift"] / LARGE).values
    order = np.argsort(-score, kind="stable")
    return [str(r) for r in found[RUN].values[order[found["influential"].values[order]]]]


def residuals(tree: xr.DataTree, model: Model | None = None) -> tuple[np.ndarray, np.ndarray] | None:
    """Draws of the fitted curve at the runs (draw, run) and residuals from their median (run), on the log scale where all
    is positive; None where the observed outcome is not the law's own."""
    y = tree["observed_data"][outcome(tree)].values
    curve = predict(tree, tree["constant_data"].to_dataset(), model=model)
    name = next(iter(curve.data_vars))
    if name != outcome(tree) or curve[name].sizes.get(DRAW) != tree["posterior"].sizes[DRAW]:
        return None
    m = by_draw(curve[name])
    if (m > 0).all() and (y > 0).all():
        m, y = np.log(m), np.log(y)
    return m, y - np.median(m, 0)


def robust_scale(r: np.ndarray) -> float:
    """1.4826 median |r|: the sd of a Gaussian core, whatever the tails do."""
    return 1.4826 * float(np.median(np.abs(r)))


def _pull(tree: xr.DataTree, model: Model | None, standardised: np.ndarray) -> np.ndarray:
    """(run, param)."""
    found = residuals(tree, model)
    n = tree["observed_data"].sizes[RUN]
    if found is None or not (s := robust_scale(found[1])):
        return np.full((n, len(standardised)), np.nan)
    m, r = found
    return ((standardised @ (m - m.mean(0))) / len(m) * r / s**2).T


def _jointly(
    tree: xr.DataTree, rows: np.ndarray, theta: np.ndarray, mean: np.ndarray, sd: np.ndarray
) -> tuple[Any, Any]:
    """Shift of each parameter when all ``rows`` are left out at once; k-hat above 0.7 makes it a rough guide only."""
    said = {"units": "posterior sd", "meaning": "all influential runs left out together"}
    if not rows.any():
        return ("param", np.zeros(len(theta)), said), ((), 0.0)
    w, k = smoothed(by_draw(tree["log_likelihood"][outcome(tree)])[:, rows].sum(1, keepdims=True))
    return ("param", ((theta @ w - mean) / sd)[:, 0], said), ((), float(np.ravel(k)[0]))
