"""Posterior predictive pictures: fit against data, residuals, calibration, curves with bands."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from scalingkit.plots.axes import axes, group_colours, group_of, label
from scalingkit.plots.theme import ink, muted


def _outcome(tree: xr.DataTree) -> str:
    return str(next(iter(tree["observed_data"].data_vars)))


def _bands(tree: xr.DataTree, prob: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    y = _outcome(tree)
    seen = tree["observed_data"][y].values
    rep = tree["posterior_predictive"][y].stack(sample=("chain", "draw"), create_index=False)
    lo, mid, hi = np.quantile(rep.transpose("sample", ...).values, [(1 - prob) / 2, 0.5, (1 + prob) / 2], axis=0)
    return seen, lo, mid, hi


def _runs(tree: xr.DataTree) -> xr.Dataset:
    return tree["constant_data"].dataset


def _coloured(tree: xr.DataTree, by: str | None) -> tuple[np.ndarray, dict[str, str], str | None]:
    runs = _runs(tree)
    group = group_of(runs, by)
    labels = runs[group].values.astype(str) if group else np.full(runs.sizes["run"], "runs")
    return labels, group_colours(labels), group


def fit_against_data(tree: xr.DataTree, *, by: str | None = None, prob: float = 0.9, ax: Any = None) -> Any:
    """Observed outcome against its posterior predictive interval, a line a run; on the diagonal the law is right."""
    ax = axes(ax, figsize=(5.2, 4.6))
    seen, lo, mid, hi = _bands(tree, prob)
    labels, colour, _ = _coloured(tree, by)
    inside = float(np.mean((seen >= lo) & (seen <= hi)))
    for value, c in colour.items():
        at = labels == value
        ax.vlines(seen[at], lo[at], hi[at], color=c, alpha=0.35, lw=1.2)
        ax.plot(seen[at], mid[at], "o", color=c, ms=3.5, label=value)
    edge = [min(seen.min(), lo.min()), max(seen.max(), hi.max())]
    ax.plot(edge, edge, color=muted(), lw=1, zorder=0)
    y = _outcome(tree)
    ax.set(xlabel=f"observed {label(y)}", ylabel=f"predicted {label(y)}")
    ax.set_title(f"{inside:.0%} of runs inside the {prob:.0%} predictive interval")
    if len(colour) > 1:
        ax.legend()
    return ax


def residuals(tree: xr.DataTree, against: str = "N", *, by: str | None = None, ax: Any = None) -> Any:
    """Log residual, log(observed / posterior median), against an input on a log axis, with a running median.

    A bend in the running median is the law being wrong in shape, not noise.
    """
    ax = axes(ax)
    seen, _, mid, _ = _bands(tree, 0.9)
    r = 100 * np.log(seen / mid)
    runs = _runs(tree)
    x = runs[against].values
    labels, colour, _ = _coloured(tree, by)
    for value, c in colour.items():
        at = labels == value
        ax.scatter(x[at], r[at], s=18, color=c, alpha=0.75, edgecolor="none", label=value)
    order = np.argsort(x)
    width = max(5, len(x) // 8)
    if len(x) >= 2 * width:
        centre = [np.exp(np.mean(np.log(x[order][i : i + width]))) for i in range(len(x) - width + 1)]
        running = [np.median(r[order][i : i + width]) for i in range(len(x) - width + 1)]
        ax.plot(centre, running, color=ink(), lw=1.6, label=f"running median ({width} runs)")
    ax.axhline(0, color=muted(), lw=1)
    ax.set(xscale="log", xlabel=label(against), ylabel="log residual x 100 (about per cent)")
    ax.set_title(f"residuals against {against}")
    ax.legend(ncols=2)
    return ax


def curves(predicted: xr.DataArray, along: str, *, by: str | None = None, prob: float = 0.9, ax: Any = None) -> Any:
    """Posterior mean curve with bands: ``predicted`` has dims chain, draw and the one that carries ``along``."""
    ax = axes(ax)
    x = predicted[along]
    other = [d for d in predicted.dims if d not in ("chain", "draw", *x.dims)]
    stacked = predicted.stack(line=other) if other else predicted.expand_dims(line=[""])
    labels = [" ".join(map(str, k)) if isinstance(k, tuple) else str(k) for k in stacked["line"].values]
    colour = group_colours(labels)
    for i, name in enumerate(labels):
        v = stacked.isel(line=i, drop=True).stack(sample=("chain", "draw"), create_index=False)
        lo, mid, hi = np.quantile(v.transpose("sample", ...).values, [(1 - prob) / 2, 0.5, (1 + prob) / 2], axis=0)
        ax.fill_between(x, lo, hi, color=colour[name], alpha=0.25, lw=0)
        ax.plot(x, mid, color=colour[name], lw=1.8, label=name or None)
    ax.set(xscale="log", xlabel=label(along), ylabel=label(str(predicted.name or "loss"), predicted))
    if len(labels) > 1:
        ax.legend()
    return ax
