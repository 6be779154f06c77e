"""Pictures of what tokens per parameter identify: condition numbers, off-ray errors, win rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from scalingkit.plots.axes import axes
from scalingkit.plots.theme import PALETTE, muted

_SAID = {"scale": "A, B (slope -2)", "scale+E": "A, B, E (slope -2)", "full": "all five (slope -6)"}


def kappa_by_gap(found: xr.Dataset, ax: Any = None) -> Any:
    """kappa of J'J on a ray against the exponent gap, by block of parameters; dotted: the limiting slope."""
    ax = axes(ax)
    gap = found["gap"].values
    for colour, block in zip(PALETTE, found["block"].values, strict=False):
        kappa = found["kappa"].sel(block=block).values
        ax.plot(gap, kappa, "o-", ms=4, color=colour, label=_SAID.get(str(block), str(block)))
        slope = -6 if block == "full" else -2
        end = int(np.argmin(gap))
        ax.plot(gap, kappa[end] * (gap / gap[end]) ** slope, ":", lw=1, color=muted(), zorder=0)
    ax.set(xscale="log", yscale="log", xlabel="exponent gap |alpha - beta|", ylabel="condition number of J'J")
    ax.set_title("Runs at one TPP")
    ax.legend(title="parameters unknown", title_fontsize=8)
    return ax


def off_ray_error(found: xr.Dataset, ax: Any = None) -> Any:
    """Standard error of the predicted loss against tokens per parameter, for a ray and a spread design."""
    ax = axes(ax)
    for colour, design in zip(PALETTE, found["design"].values, strict=False):
        ax.plot(found["tpp"], found["off_ray_se"].sel(design=design), "o-", ms=4, color=colour, label=str(design))
    ax.set(xscale="log", yscale="log", xlabel="tokens per parameter of the prediction", ylabel="standard error (nat)")
    ax.set_title("Loss at 2e10 parameters, from the runs alone")
    ax.legend(title="20 runs, equal N D", title_fontsize=8)
    return ax


def win_rates(rates: xr.DataArray, ax: Any = None, reference: float | None = None) -> Any:
    """Win rates with intervals: ``rates`` has dims bound (estimate, lower, upper) and one more; dotted: ``reference``."""
    ax = axes(ax)
    (dim,) = [d for d in rates.dims if d != "bound"]
    place = np.arange(rates.sizes[dim])[::-1]
    low, mid, high = (rates.sel(bound=b).values for b in ("lower", "estimate", "upper"))
    ax.hlines(place, low, high, color=PALETTE[0], lw=2)
    ax.plot(mid, place, "o", color=PALETTE[0])
    ax.axvline(0.5, color=muted(), lw=0.8)
    ax.text(0.49, place[0] + 0.45, "no difference", color=muted(), fontsize=8, ha="right", va="bottom")
    if reference is not None:
        ax.axvline(reference, color=PALETTE[1], ls=":")
        ax.text(
            reference - 0.01,
            place[0] + 0.45,
            f"printed {reference:.1%}",
            color=PALETTE[1],
            fontsize=8,
            ha="right",
            va="bottom",
        )
    ax.set(xlim=(0, 1.03), ylim=(-0.6, place[0] + 0.9), xlabel="share of comparisons the spread wins (90% interval)")
    ax.set_yticks(place, [str(v) for v in rates[dim].values])
    return ax
