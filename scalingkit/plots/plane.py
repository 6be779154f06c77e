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
        colours = group_colours(labels)
        shift = _dodge(N, D, len(colours))
        for (value, colour), by_factor in zip(colours.items(), shift, strict=True):
            at = labels == value
            ax.scatter(N[at] * by_factor, D[at], s=22, color=colour, alpha=0.9, lw=0, label=f"{value} ({at.sum()})")
        moved = "" if np.allclose(shift, 1) else ", shifted sideways by group to be seen"
        ax.legend(title=f"{group} (runs{moved})", title_fontsize=8, loc="lower right")
    else:
        dots = ax.scatter(N, D, s=26, c=runs["loss"].values, cmap="viridis_r", edgecolor=muted(), linewidth=0.3)
        ax.figure.colorbar(dots, ax=ax, label=label("loss", runs["loss"]))
    ax.set(xscale="log", yscale="log", xlabel=label("N"), ylabel=label("D"), title=f"{runs.sizes['run']} runs")
    if iso_flop:
        _iso_flop(ax, N, D)
    return ax


def _dodge(N: np.ndarray, D: np.ndarray, groups: int) -> np.ndarray:
    """A factor on N for each group: 1 unless most runs of different groups lie on each other."""
    distinct = len(np.unique(np.round(np.stack([np.log(N), np.log(D)]), 6), axis=1).T)
    if groups < 2 or distinct > 0.7 * len(N):
        return np.ones(groups)
    width = 0.012 * (np.log(N.max()) - np.log(N.min()) + 1)
    return np.exp(width * (np.arange(groups) - (groups - 1) / 2))


def _iso_flop(ax: Any, N: np.ndarray, D: np.ndarray) -> None:
    """Faint lines of equal compute, one every other decade, each labelled along the line where it is inside."""
    (x0, x1), (y0, y1) = np.log(ax.get_xlim()), np.log(ax.get_ylim())
    decades = np.log10(FLOP_PER_PARAM_TOKEN * N * D)
    for k in range(int(np.ceil(decades.min())), int(np.floor(decades.max())) + 1, 2):
        total = k * np.log(10) - np.log(FLOP_PER_PARAM_TOKEN)
        ax.plot(np.exp([x0, x1]), np.exp([total - x0, total - x1]), color=muted(), lw=0.7, ls=":", zorder=0)
        left, right = max(x0, total - y1), min(x1, total - y0)
        if right - left < 0.15 * (x1 - x0):
            continue
        at = left + 0.03 * (x1 - x0)
        ax.text(
            np.exp(at), np.exp(total - at), f"$10^{{{k}}}$ FLOP", color=muted(), fontsize=7, rotation=_slope(ax, x1 - x0, y1 - y0),
            rotation_mode="anchor", va="bottom",
        )  # fmt: skip
    ax.set(xlim=np.exp([x0, x1]), ylim=np.exp([y0, y1]))


def _slope(ax: Any, width: float, height: float) -> float:
    """Angle on paper of a line that falls one decade a decade."""
    box = ax.get_window_extent()
    return float(-np.degrees(np.arctan2(box.height / height, box.width / width)))
