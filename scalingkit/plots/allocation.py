"""Compute-optimal allocation: N* and D* against budget, with the budgets the runs reached."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from scalingkit.plots.axes import axes, label
from scalingkit.plots.theme import muted


def allocation(
    plan: xr.Dataset, quantity: str = "N", *, reached: float | None = None, prob: float = 0.9, ax: Any = None
) -> Any:
    """``plan[quantity]`` (chain, draw, budget) against budget; ``reached``: the largest budget among the runs."""
    ax = axes(ax)
    v = plan[quantity]
    extra = [d for d in v.dims if d not in ("chain", "draw", "budget")]
    lines = {"": v} if not extra else {str(k): v.sel({extra[0]: k}) for k in v[extra[0]].values}
    for name, one in lines.items():
        x = one.stack(sample=("chain", "draw"), create_index=False).transpose("sample", "budget").values
        lo, mid, hi = np.nanquantile(x, [(1 - prob) / 2, 0.5, (1 + prob) / 2], axis=0)
        line = ax.plot(plan["budget"], mid, lw=1.8, label=name or None)[0]
        ax.fill_between(plan["budget"], lo, hi, color=line.get_color(), alpha=0.25, lw=0)
    if reached is not None:
        ax.axvspan(reached, float(plan["budget"].max()), color=muted(), alpha=0.12, lw=0)
        ax.axvline(reached, color=muted(), lw=1, ls="--")
        foot = ax.get_xaxis_transform()  # height as a share of the axes: the limits are not known yet
        ax.text(reached, 0.02, " beyond the runs", color=muted(), fontsize=8, va="bottom", transform=foot)
    yscale = "linear" if quantity == "loss" else "log"
    ax.set(xscale="log", yscale=yscale, xlabel="budget C (FLOP)", ylabel=label(quantity))
    star = quantity if quantity == "loss" else f"{quantity}*"
    ax.set_title(f"{star} at the compute-optimal point, median and {prob:.0%} interval")
    if len(lines) > 1:
        ax.legend()
    return ax
