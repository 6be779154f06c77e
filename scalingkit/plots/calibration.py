"""Calibration: are the predictions as often right as they say?"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

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
    """The runs that move the answer most when left out, in posterior sds, with the parameter they move."""
    worst = checked["largest_shift"].to_series().nlargest(most)
    ax = axes(ax, figsize=(6.0, 1.2 + 0.3 * len(worst)))
    named = checked["influential"].sel(run=worst.index).values.astype(bool)
    moved = checked["most_moved"].sel(run=worst.index).values
    colours = [ink() if flag else muted() for flag in named]
    ax.barh(range(len(worst)), worst.values, color=colours, height=0.65)
    ax.set_yticks(range(len(worst)), [f"{r} ({m})" for r, m in zip(worst.index, moved, strict=True)])
    ax.invert_yaxis()
    ax.set(xlabel="shift when left out (posterior sd)", title="influence by run (dark: named as influential)")
    return ax
