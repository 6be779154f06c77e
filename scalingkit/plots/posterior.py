"""Posteriors: intervals by group, prior against posterior, and the ridges between parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.infer.marginal import on_log, window
from scalingkit.plots.axes import axes, group_colours
from scalingkit.plots.theme import ink, muted


def _draws(v: xr.DataArray) -> np.ndarray:
    return v.stack(sample=("chain", "draw"), create_index=False).transpose("sample", ...).values


def forest(
    tree: xr.DataTree, param: str, *, prob: float = 0.9, reference: dict[str, float] | None = None, ax: Any = None
) -> Any:
    """Interval (``prob``, thin) and interquartile range (thick) of one parameter by group; the population in ink.

    ``reference``: label -> point estimate of a fit without pooling, drawn as a hollow dot: shrinkage made visible.
    """
    post = tree["posterior"].dataset
    v = post[param]
    dims = [d for d in v.dims if d not in ("chain", "draw")]
    rows: list[tuple[str, np.ndarray, str]] = []
    if dims:
        stacked = v.stack(group=dims)
        keys = [k if isinstance(k, tuple) else (k,) for k in stacked["group"].values]
        labels = [" / ".join(map(str, k)) for k in keys]
        colour = group_colours(labels)
        rows = [(name, _draws(stacked.isel(group=i, drop=True)), colour[name]) for i, name in enumerate(labels)]
        if f"{param}_population" in post:
            rows.append(("population", _draws(post[f"{param}_population"]), ink()))
    else:
        rows = [(param, _draws(v), ink())]
    ax = axes(ax, figsize=(6.0, 1.1 + 0.42 * len(rows)))
    tail = (1 - prob) / 2
    for i, (name, x, colour_) in enumerate(rows):
        lo, q1, mid, q3, hi = np.quantile(x, [tail, 0.25, 0.5, 0.75, 1 - tail])
        ax.plot([lo, hi], [i, i], color=colour_, lw=1.4, solid_capstyle="round")
        ax.plot([q1, q3], [i, i], color=colour_, lw=4.5, solid_capstyle="round")
        ax.plot(mid, i, "o", color=colour_, ms=6)
        if reference and name in reference:
            ax.plot(reference[name], i, "o", mfc="none", mec=colour_, ms=9, mew=1.4)
    ax.set_yticks(range(len(rows)), [r[0] for r in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    note = "; hollow: fitted alone" if reference else ""
    ax.set(xlabel=param, title=f"{param}: {prob:.0%} and 50% intervals{note}")
    return ax


def prior_posterior(tree: xr.DataTree, params: Sequence[str], *, figure: Any = None) -> Any:
    """Prior (outline) and posterior (filled) of each parameter; returns the figure's axes.

    Where the two lie on each other, the prior speaks and the data do not.
    """
    import matplotlib.pyplot as plt
    import seaborn as sns

    params = list(params)
    columns = min(3, len(params))
    lines = -(-len(params) // columns)
    figure = figure or plt.figure(figsize=(3.1 * columns, 2.3 * lines))
    grid = figure.subplots(lines, columns, squeeze=False)
    for ax, name in zip(grid.flat, params, strict=False):
        post = np.ravel(_draws(tree["posterior"][name]))
        sns.kdeplot(x=post, ax=ax, fill=True, alpha=0.45, lw=1.2, label="posterior")
        if "prior" in tree.children and name in tree["prior"]:
            prior = np.ravel(_draws(tree["prior"][name]))
            lo, hi = window(post, prior)
            wide = (hi - lo) * 2
            sns.kdeplot(x=prior, ax=ax, color=muted(), lw=1.2, ls="--", label="prior", clip=(lo - wide, hi + wide))
            ax.set_xlim(lo, hi)
        ax.set(xlabel=name, ylabel="", yticks=[])
    for ax in grid.flat[len(params) :]:
        ax.set_axis_off()
    grid.flat[0].legend()
    return grid


def ridges(tree: xr.DataTree, params: Sequence[str], *, draws: int = 800, seed: int = 0) -> Any:
    """Pairs of parameters, joint draws below the diagonal, marginals on it. Coefficients on log axes. Returns axes."""
    import matplotlib.pyplot as plt
    import seaborn as sns

    post = tree["posterior"].dataset
    columns = {p: _draws(post[p]) for p in params}
    columns = {p: v if v.ndim == 1 else v.mean(axis=tuple(range(1, v.ndim))) for p, v in columns.items()}
    logs = {p for p, v in columns.items() if on_log(v)}
    values = {(f"log10 {p}" if p in logs else p): (np.log10(v) if p in logs else v) for p, v in columns.items()}
    size = len(next(iter(values.values())))
    pick = np.random.default_rng(seed).choice(size, min(draws, size), replace=False)
    names = list(values)
    n = len(names)
    figure, grid = plt.subplots(n, n, figsize=(1.75 * n, 1.65 * n), squeeze=False)
    for i in range(n):
        for j in range(n):
            ax = grid[i, j]
            if j > i:
                ax.set_axis_off()
                continue
            if i == j:
                sns.kdeplot(x=values[names[i]], ax=ax, fill=True, alpha=0.4, lw=1)
                ax.set(ylabel="", yticks=[])
            else:
                ax.scatter(values[names[j]][pick], values[names[i]][pick], s=3, alpha=0.35, linewidth=0)
            ax.tick_params(labelsize=7)
            ax.set_xlabel(names[j] if i == n - 1 else "")
            ax.set_ylabel(names[i] if j == 0 and i > 0 else "")
            if i < n - 1:
                ax.set_xticklabels([])
            if j > 0:
                ax.set_yticklabels([])
    figure.suptitle("Ridges: combinations that the runs leave free are long and thin", x=0.01, ha="left", fontsize=11)
    return grid
