"""What runs can tell, drawn from ``identify``'s Dataset: the spectrum of directions, the band off the ray, the runs to add."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.plots.axes import axes
from scalingkit.plots.plane import plane
from scalingkit.plots.theme import PALETTE, ink, muted


def spectrum(known: xr.Dataset, *, ax: Any = None) -> Any:
    """Contraction of every direction, weakest on top, each named by what it does to the parameters."""
    ax = axes(ax, figsize=(7.6, 3.4))
    value = np.clip(known["direction_contraction"].values, 0, 1)
    names = [textwrap.fill(str(w), 46) for w in known["words"].values]
    y = np.arange(value.size)
    free = value < 0.5
    for at, colour, said in (
        (free, PALETTE[1], "free: the prior decides"),
        (~free, PALETTE[0], "known: the runs decide"),
    ):
        if at.any():
            ax.barh(y[at], np.maximum(value[at], 0.004), color=colour, height=0.55, label=said)
    ax.set_axisbelow(True)
    ax.axvline(0.5, color=muted(), lw=1, ls="--")
    ax.set_yticks(y, names, fontsize=8)
    ax.set(
        ylim=(value.size - 0.4, -0.6),
        xlim=(0, 1.02),
        xlabel="contraction: share of the prior variance that the runs remove",
    )
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2)
    return ax


def off_ray(known: Mapping[str, xr.Dataset], *, ax: Any = None) -> Any:
    """Relative sd of the loss at the dearest run's size against tokens per parameter, for designs by name."""
    ax = axes(ax)
    for i, (name, one) in enumerate(known.items()):
        tpp, colour = one["tpp"].values, PALETTE[i % len(PALETTE)]
        data = np.where(np.isfinite(one["band_data"].values), one["band_data"].values, np.nan)
        ax.plot(tpp, np.minimum(data, 10), color=colour, ls=":", lw=1.4)
        ax.plot(tpp, one["band"].values, color=colour, marker="o", ms=4, label=name)
    ax.plot([], [], color=ink(), ls=":", lw=1.4, label="runs alone, linearised (cut at 10)")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="tokens per parameter at the dearest run's size",
        ylabel="relative sd of the loss",
    )
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.0))
    return ax


def suggested(runs: xr.Dataset, new: xr.Dataset, *, ax: Any = None) -> Any:
    """The runs so far on the N-D plane, and the suggested ones as stars."""
    both = {k: np.r_[runs[k].values, new[k].values] for k in ("N", "D")}
    ax = plane(runs, ax=ax, iso_flop=False)
    ax.scatter(
        new["N"],
        new["D"],
        s=150,
        marker="*",
        color=PALETTE[1],
        edgecolor=ink(),
        linewidth=0.6,
        zorder=5,
        label="suggested",
    )
    ax.set(xlim=(both["N"].min() / 1.8, both["N"].max() * 1.8), ylim=(both["D"].min() / 1.8, both["D"].max() * 1.8))
    ax.set_title(f"{runs.sizes['run']} runs and {new.sizes['run']} suggested (stars)")
    return ax
