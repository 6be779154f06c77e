"""The N-D plane: where the runs lie, what they cost, and how far an answer is from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.names import FLOP_PER_PARAM_TOKEN
from scalingkit.plots.axes import axes, group_colours, group_of, label
from scalingkit.plots.theme import muted


def plane(runs: xr.Dataset, *, by: str | None = None, iso_flop: bool = True, ax: Any = None) -> Any:
    """Runs on log N against log D, coloured by group (or by loss), with lines of equal 6ND compute."""
    ax = axes(ax)
    N, D = runs["N"].values, runs["D"].values
    group = group_of(runs, by)
    if group:
        labels = runs[group].values.astype(str)
        for value, colour in group_colours(labels).items():
            at = labels == value
            ax.scatter(N[at], D[at], s=26, color=colour, alpha=0.85, edgecolor="none", label=f"{value} ({at.sum()})")
        ax.legend(title=f"{group} (runs)")
    else:
        dots = ax.scatter(N, D, s=26, c=runs["loss"].values, cmap="viridis_r", edgecolor=muted(), linewidth=0.3)
        ax.figure.colorbar(dots, ax=ax, label=label("loss", runs["loss"]))
    ax.set(xscale="log", yscale="log", xlabel=label("N"), ylabel=label("D"), title=f"{runs.sizes['run']} runs")
    if iso_flop:
        _iso_flop(ax, N, D)
    return ax


def _iso_flop(ax: Any, N: np.ndarray, D: np.ndarray) -> None:
    """Faint lines of equal compute, one every other decade, labelled at the left edge."""
    xlim, ylim = ax.get_xlim(), ax.get_ylim()
    decades = np.log10(FLOP_PER_PARAM_TOKEN * N * D)
    span = np.array(xlim)
    for k in range(int(np.ceil(decades.min())), int(np.floor(decades.max())) + 1, 2):
        line = 10.0**k / (FLOP_PER_PARAM_TOKEN * span)
        ax.plot(span, line, color=muted(), lw=0.7, ls=":", zorder=0)
        at = 10 ** (0.06 * np.log10(xlim[1]) + 0.94 * np.log10(xlim[0]))
        y = 10.0**k / (FLOP_PER_PARAM_TOKEN * at)
        if ylim[0] < y < ylim[1]:
            ax.text(at, y, f"$10^{{{k}}}$ FLOP", color=muted(), fontsize=7, rotation=-30, va="bottom")
    ax.set(xlim=xlim, ylim=ylim)
