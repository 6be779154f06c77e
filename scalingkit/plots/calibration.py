"""Calibration: are the predictions as often right as they say?"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from scalingkit.infer.influence import LARGE, PULLS
from scalingkit.plots.axes import axes, group_colours
from scalingkit.plots.theme import ink, muted


def pit(checked: xr.Dataset, *, runs: xr.Dataset | None = None, by: str | None = None, ax: Any = None) -> Any:
    """ECDF of the leave-one-out PIT minus the diagonal, in its simultaneous 95% band; ``by`` adds a line a group.

    A hump is bias, an S is a wrong spread. ``runs`` holds the group labels (a tree's constant_data).
    """
    ax = axes(ax)
    z = checked["z"].values
    ax.fill_between(z, checked["pit_lower"] - z, checked["pit_upper"] - z, color=muted(), alpha=0.22, lw=0, step="mid")
    ax.axhline(0, color=muted(), lw=1)
    if runs is not None and by is not None:
        labels = runs[by].values.astype(str)
        for value, colour in group_colours(labels).items():
            u = np.sort(checked["pit"].values[labels == value])
            ecdf = np.searchsorted(u, z, side="right") / u.size
            ax.plot(z, ecdf - z, color=colour, lw=1.0, alpha=0.8, label=f"{value} ({u.size})")
    ax.plot(z, checked["pit_ecdf"] - z, color=ink(), lw=1.8, label=f"all ({checked.sizes['run']})")
    p = float(checked["pit_p_value"].sel(group="all"))
    ax.set(xlabel="PIT: where the outcome fell in its prediction", ylabel="ECDF minus uniform")
    ax.set_title(f"calibration, leave-one-out (uniformity p = {p:.2g}; band: 95% for all runs)")
    ax.legend()
    return ax


def influence(checked: xr.Dataset, *, most: int = 12, ax: Any = None) -> Any:
    """The runs that weigh most on the answer, the worst first, with the parameter they move most, in posterior sds.

    Filled: how far the answer moves when the run is left out. Hollow: how far the run would drag it if it counted in
    full. A hollow dot far from a filled one is an outlier that the likelihood has set aside. Muted names: not influential.
    """
    score = np.maximum(checked["largest_pull"].fillna(0) / PULLS, checked["largest_shift"] / LARGE)
    worst = checked.isel(run=np.argsort(-score.values, kind="stable")[:most])
    rows = np.arange(worst.sizes["run"])
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax = axes(ax, figsize=(6.4, 1.4 + 0.3 * rows.size))
    shift, pull = (worst[k].where(worst[k] > 0).values for k in ("largest_shift", "largest_pull"))
    ax.hlines(rows, np.fmin(shift, pull), np.fmax(shift, pull), color=muted(), lw=1)
    ax.plot(shift, rows, "o", color=ink(), ms=5, label="left out")
    ax.plot(pull, rows, "o", mfc="none", mec=ink(), ms=7, label="if it counted in full")
    named = zip(worst["run"].values, worst["most_moved"].values, strict=True)
    ax.set_yticks(rows, [f"{r} ({m})" for r, m in named])
    for text, flag in zip(ax.get_yticklabels(), worst["influential"].values, strict=True):
        text.set_color(ink() if flag else muted())
    ax.invert_yaxis()
    ax.set(xscale="log", xlabel="shift of the answer (posterior sd)", title="influence by run")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.legend()
    return ax
