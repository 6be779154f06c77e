"""A posterior's portrait at rest: densities on their priors, joint draws of two parameters, a slice with the runs.

``read`` is the Dataset of ``infer.portrait.portrait``. A colour is a group, everywhere; dashed grey is the prior, a
plain line in ink a parameter that all groups share.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from scalingkit.infer.findings import WIDE
from scalingkit.infer.portrait import FIT
from scalingkit.plots.axes import label
from scalingkit.plots.theme import PALETTE, ink, muted


def portrait(read: xr.Dataset) -> Any:
    """The figure."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(14.5, 5.6))
    grid = figure.add_gridspec(2, 6)
    for i in range(read.sizes["param"]):
        _density(figure.add_subplot(grid[i // 2, i % 2]), read.isel(param=i))
    _cloud(figure.add_subplot(grid[:, 2:4]), read)
    _slice(figure.add_subplot(grid[:, 4:]), read)
    figure.suptitle("\n".join(said(read)), fontsize=9.5, x=0.01, ha="left")
    return figure


def colours(read: xr.Dataset) -> list[str]:
    """A colour for each group: its place among all groups, so that a choice does not change it."""
    place = [int(p) for p in read["place"].values]
    clash = len({p % len(PALETTE) for p in place}) < len(place)
    return [PALETTE[(i if clash else p) % len(PALETTE)] for i, p in enumerate(place)]


def scaled(values: np.ndarray, log: bool) -> np.ndarray:
    return np.log10(values) if log else values


def axis_name(name: str, log: bool) -> str:
    return f"log10 {name}" if log else name


def slice_names(read: xr.Dataset) -> tuple[str, str]:
    """Titles of the axes of the slice."""
    y = label(read.attrs["outcome"]) if read.attrs["outcome"] else "outcome"
    if read.attrs["along"] == FIT:
        return f"replicated {y}", f"observed {y}"
    return label(read.attrs["along"]), y


def slice_title(read: xr.Dataset) -> str:
    share = f"{read.attrs['prob']:.0%}"
    if read.attrs["along"] == FIT:
        return f"Runs against what is replicated, {share}"
    return f"Curve along {read.attrs['along']}, {share}"


def said(read: xr.Dataset) -> list[str]:
    """What the numbers say, in lines of plain words."""
    lines = [_who_speaks(read), _ridge(read)]
    if "held" in read:
        where = [f"{x} at {_spread(read['held'].sel(input=x).values)}" for x in read["input"].values]
        lines.append(
            f"Along {read.attrs['along']}: {', '.join(where)}, the {read.attrs['level']:.0%} quantile of each group's runs. "
            f"Runs are moved there along the median curve{'; dotted: a new run' if 'outcome' in read else ''}."
        )
    elif read.sizes.get("run"):
        inside = float(np.mean((read["run_y"] >= read["run_lower"]) & (read["run_y"] <= read["run_upper"])))
        lines.append(f"{inside:.0%} of {read.sizes['run']} runs lie in their {read.attrs['prob']:.0%} interval.")
    return lines


def _spread(values: np.ndarray) -> str:
    low, high = values.min(), values.max()
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _who_speaks(read: xr.Dataset) -> str:
    ratio = read["sd_ratio"].max("group")
    if not np.isfinite(ratio).any():
        return "The tree has no prior: what the prior says cannot be told from what the runs say."
    wide = [f"{p} ({float(ratio.sel(param=p)):.0%})" for p in read["param"].values if float(ratio.sel(param=p)) > WIDE]
    if wide:
        return f"The prior speaks for {', '.join(wide)}: posterior sd as a share of the prior's, widest group."
    return f"The runs speak: every posterior sd shown is below {WIDE:.0%} of its prior's."


def _ridge(read: xr.Dataset) -> str:
    x, y = read["axis"].values
    r = read["cloud_correlation"]
    at = int(np.argmax(np.abs(r.values)))
    where = f" in {read['group'].values[at]}" if read.sizes["group"] > 1 and not bool(read["cloud_shared"]) else ""
    strength = float(r[at])
    verdict = "a ridge: known together, not alone" if abs(strength) > 0.9 else "no ridge"
    return f"{x} and {y}: correlation {strength:.2f}{where}, {verdict}."


def _density(ax: Any, one: xr.Dataset) -> None:
    grid = one["value"].values
    ax.plot(grid, one["prior_density"], color=muted(), ls="--", lw=1.2)
    if bool(one["shared"]):
        ax.fill_between(grid, one["density"].values[0], color=ink(), alpha=0.12, lw=0)
        ax.plot(grid, one["density"].values[0], color=ink(), lw=1.4)
    else:
        for y, c in zip(one["density"].values, colours(one), strict=True):
            ax.fill_between(grid, y, color=c, alpha=0.25, lw=0)
            ax.plot(grid, y, color=c, lw=1.4)
    ax.set(xlabel=axis_name(str(one["param"].values), bool(one["log"])), yticks=[], xlim=(grid[0], grid[-1]))
    ax.set_ylim(bottom=0)


def _cloud(ax: Any, read: xr.Dataset) -> None:
    logs = read["cloud_log"].values
    x, y = (scaled(read["cloud"].values[i], logs[i]) for i in (0, 1))
    if bool(read["cloud_shared"]):
        ax.scatter(x[0], y[0], s=7, alpha=0.5, color=ink(), linewidth=0)
    else:
        for i, c in enumerate(colours(read)):
            ax.scatter(x[i], y[i], s=7, alpha=0.5, color=c, linewidth=0)
    titles = [axis_name(str(n), bool(g)) for n, g in zip(read["axis"].values, logs, strict=True)]
    ax.set(xlabel=titles[0], ylabel=titles[1], title="Joint draws")


def _slice(ax: Any, read: xr.Dataset) -> None:
    titles = slice_names(read)
    for i, (name, c) in enumerate(zip(read["group"].values, colours(read), strict=True)):
        if "band" in read:
            x = read["x"].values[i]
            low, mid, high = read["band"].values[i].T
            ax.fill_between(x, low, high, color=c, alpha=0.25, lw=0)
            ax.plot(x, mid, color=c, lw=1.4, label=str(name))
            if "outcome" in read:
                for edge in ("lower", "upper"):
                    ax.plot(x, read["outcome"].sel(bound=edge).values[i], color=c, lw=0.9, ls=":")
        _runs(ax, read, i, c, str(name))
    if read.attrs["along"] == FIT:
        _runs(ax, read, -1, muted(), "runs")
        if read.sizes.get("run"):
            ends = [
                float(min(read["run_x"].min(), read["run_y"].min())),
                float(max(read["run_x"].max(), read["run_y"].max())),
            ]
            ax.plot(ends, ends, color=muted(), lw=1)
    elif float(read["x"].min()) > 0:
        ax.set_xscale("log")
    ax.set(xlabel=titles[0], ylabel=titles[1], title=slice_title(read))
    if read.sizes["group"] > 1:
        ax.legend()


def _runs(ax: Any, read: xr.Dataset, group: int, colour: str, name: str) -> None:
    mine = read["run_group"].values == group if "run_group" in read else np.zeros(0, bool)
    if not mine.any():
        return
    x, y = read["run_x"].values[mine], read["run_y"].values[mine]
    if "run_lower" in read:
        low, high = read["run_lower"].values[mine], read["run_upper"].values[mine]
        ax.hlines(y, low, high, color=colour, lw=0.7, alpha=0.5)
        ax.plot(x, y, "o", color=colour, ms=4, label=name)
    else:
        ax.plot(x, y, "o", color=colour, ms=4, mfc="none", mew=0.9)
