"""The design board at rest: trained and planned runs on the N-D plane, with what they would tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from scalingkit.design.words import short
from scalingkit.plots.axes import axes, label
from scalingkit.plots.plane import _iso_flop
from scalingkit.plots.theme import PALETTE


def board(trained: xr.Dataset | None, planned: xr.Dataset | None, read: xr.Dataset, *, ax: Any = None) -> Any:
    """Squares: trained. Dots: planned. ``read``: the numbers of ``design.board.board``, said below the title."""
    ax = axes(ax, figsize=(7.0, 5.2))
    N, D = [], []
    parts = (
        (trained, "trained", dict(marker="s", facecolor="none", edgecolor=PALETTE[0], s=30)),
        (planned, "planned", dict(marker="o", color=PALETTE[1], s=46, zorder=3)),
    )
    for runs, name, style in parts:
        if runs is None:
            continue
        N.append(runs["N"].values)
        D.append(runs["D"].values)
        ax.scatter(N[-1], D[-1], label=f"{name} ({runs.sizes['run']})", **style)
    ax.set(xscale="log", yscale="log", xlabel=label("N"), ylabel=label("D"))
    if N:
        _iso_flop(ax, np.concatenate(N), np.concatenate(D))
        ax.legend(loc="lower right")
    ax.set_title(said(read), fontsize=9)
    return ax


def said(read: xr.Dataset) -> str:
    """The read-outs in three lines."""
    kappa = {str(b): float(v) for b, v in zip(read["block"].values, read["kappa"].values, strict=True)}
    low, high = float(read["n_star_low"]), float(read["n_star_high"])
    unit = read["cost"].attrs["units"]
    return (
        f"N* at {short(read.attrs['budget'])} {unit}: {short(low)} to {short(high)} (expected {read.attrs['prob']:.0%})\n"
        f"condition number: scale block {short(kappa['scale'])}, all parameters {short(kappa['full'])}; "
        f"plan costs {short(float(read['cost']))} {unit}\n"
        f"least known: {read.attrs['weakest']} (contraction {float(read['contraction']):.2f})"
    )
