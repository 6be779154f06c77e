"""The identifiability explorer at rest: runs, spectrum, condition numbers, ellipses, profile and band in eight axes.

``read`` is the Dataset of ``design.explorer.explored``. Grey: the ray; orange: the same runs spread. The windows are
fixed by the law's published values, so that what grows or shrinks is what the runs tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import zoo
from scalingkit.design.explorer import pairs
from scalingkit.design.words import short
from scalingkit.plots.axes import label
from scalingkit.plots.theme import PALETTE, muted

PLANNED = PALETTE[1]
BLOCK = {"scale": PALETTE[0], "scale+E": PALETTE[2], "full": PALETTE[3]}
LEAST_EIGENVALUE = 1e-18  # below it, rounding
SE = (1e-3, 1e5)
KAPPA = (1.0, 1e17)
LOSS = (1.2, 3.6)
DEVIANCE = (0.0, 10.0)
NARROW, WIDE = 3.5, 2.0  # half a window of log10 coefficients; exponents go from 0 to this times the published one
TITLES = (
    "The runs", "Eigenvalues of J'J", "Condition number against spread", "Standard errors, runs alone",
    "Exponents", "Coefficients", "Profile (dashed: linearised)", "Loss at the target budget",
)  # fmt: skip


def explorer(read: xr.Dataset) -> Any:
    """The figure."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(14.5, 7.0))
    drawn = (_runs, _spectrum, _condition, _errors, _exponents, _coefficients, _profile, _band)
    for ax, draw, title in zip(axes.flat, drawn, TITLES, strict=True):
        draw(ax, read)
        ax.set_title(title)
    figure.suptitle("\n".join(said(read)), fontsize=9.5, x=0.01, ha="left")
    return figure


def said(read: xr.Dataset) -> list[str]:
    """What the numbers say, in lines of plain words."""
    kappa = {str(b): float(read["kappa"].sel(design="planned", block=b)) for b in read["block"].values}
    ray = {str(b): float(read["kappa"].sel(design="ray", block=b)) for b in read["block"].values}
    full = {"scale": "scale block ({})", "scale+E": "scale block and floor ({})", "full": "{}"}
    names = blocks(read)
    each = "; ".join(f"{full[b].format(names[b])} {number(k)} (ray {number(ray[b])})" for b, k in kappa.items())
    formula = number(float(read["kappa_formula"].sel(design="planned")))
    low, high = read["profile_interval"].values
    name, share = str(read["profile_value"].attrs["meaning"]), f"{read.attrs['prob']:.0%}"
    least, most = read["profile_value"].values[[0, -1]]  # as far as the profile was followed
    ends = (f"{low:.3f}" if np.isfinite(low) else f"below {least:.3f}",
            f"{high:.3f}" if np.isfinite(high) else f"above {most:.3f}")  # fmt: skip
    interval = f"{share} interval of {name}: {' to '.join(ends)}"
    with np.errstate(over="ignore"):  # a factor beyond any float is infinite
        width = np.expm1(_z(read) * read["band"].sel(design="planned").values)
    tpp = read["tpp"].values
    far = [f"{_percent(width[np.argmin(abs(np.log(tpp / k)))])} at {k}" for k in (2, 20, 200)]
    return [
        f"Condition number of J'J: {each}. Closed form coth(v/4) of the scale block: {formula}.",
        threshold(read),
        f"Least known: {read.attrs['weakest']} (contraction {max(float(read['contraction']), 0):.2f}). {interval}.",
        f"Loss at {number(read.attrs['budget'])} FLOP, upper half-width of the {share} band, by tokens per parameter: "
        f"{', '.join(far)}.",
    ]


def threshold(read: xr.Dataset) -> str:
    """Whether the spread of tokens per parameter suffices."""
    names = blocks(read)["scale"]
    sd, needed, closed = read.attrs["sd_log_tpp"], float(read["sd_needed"]), float(read["sd_formula"])
    goal = number(read.attrs["kappa_goal"])
    if np.isinf(needed):
        return f"No sd of log TPP up to {read['sd'].values[-1]:g} brings kappa of {names} to {goal}."
    if needed == 0:
        return f"kappa of {names} is within {goal} on the ray already: the exponents differ enough."
    met = "is enough" if sd >= needed else "is not enough"
    return (
        f"sd of log TPP {sd:.2f} {met}: kappa of {names} at most {goal} needs {needed:.3f} (closed form {closed:.3f})."
    )


def number(x: float) -> str:
    """Three digits, or "infinite"."""
    if not np.isfinite(x):
        return "infinite"
    return f"{float(f'{x:.3g}'):.0f}" if 100 <= x < 1e4 else short(x)


def blocks(read: xr.Dataset) -> dict[str, str]:
    """Block -> the parameters in it."""
    law = zoo.get(read.attrs["law"], "laws")
    two = ", ".join(law.scales)
    named = {"scale": two, "scale+E": f"{two}, {', '.join(k for k in law.linear if k not in law.scales)}"}
    return {str(b): named.get(str(b), f"all {len(law.params)} parameters") for b in read["block"].values}


def windows(read: xr.Dataset) -> dict[str, tuple[tuple[float, float], tuple[float, float]]]:
    """(x, y) ranges of the two ellipses, from the published values."""
    law = zoo.get(read.attrs["law"], "laws")
    exponents, coefficients = pairs(law)
    a, b = (float(law.truth[k]) for k in exponents)
    A, B = (float(np.log10(law.truth[k])) for k in coefficients)
    return {
        "exponents": ((0.0, WIDE * a), (0.0, WIDE * b)),
        "coefficients": ((A - NARROW, A + NARROW), (B - NARROW, B + NARROW)),
    }


def edges(read: xr.Dataset, design: str) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper loss of a design's band, an infinite one cut far outside the window."""
    loss = read["loss"].values
    wide = np.exp(np.minimum(_z(read) * read["band"].sel(design=design).values, 5.0))
    return loss / wide, loss * wide


def level(read: xr.Dataset) -> float:
    """Deviance at the ends of the interval."""
    return _z(read) ** 2


def _z(read: xr.Dataset) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + read.attrs["prob"]) / 2))


def _percent(x: float) -> str:
    return f"{100 * x:.2g}%" if x < 1 else f"a factor of {number(1 + x)}" if np.isfinite(x) else "infinite"


def _runs(ax: Any, read: xr.Dataset) -> None:
    ax.plot(read["N"].sel(design="ray"), read["D"].sel(design="ray"), "o", ms=5, mfc="none", color=muted(), label="ray")
    ax.plot(read["N"].sel(design="planned"), read["D"].sel(design="planned"), "o", ms=5, color=PLANNED, label="spread")
    ax.set(xscale="log", yscale="log", xlabel=label("N"), ylabel=label("D"))
    ax.legend(loc="upper left")


def _spectrum(ax: Any, read: xr.Dataset) -> None:
    names = [str(b) for b in read["block"].values]
    for design, colour, shift, fill in (("ray", muted(), -0.15, "none"), ("planned", PLANNED, 0.15, None)):
        value = np.maximum(read["eigenvalue"].sel(design=design).values, LEAST_EIGENVALUE)
        at = np.broadcast_to(np.arange(len(names))[:, None] + shift, value.shape)
        ax.plot(at.ravel(), value.ravel(), "o", ms=6, color=colour, mfc=fill or colour)
    ax.set(yscale="log", ylim=(LEAST_EIGENVALUE / 3, 30), xlim=(-0.6, len(names) - 0.4), ylabel="eigenvalue")
    ax.set_xticks(range(len(names)), [n.removesuffix(" parameters") for n in blocks(read).values()])


def _condition(ax: Any, read: xr.Dataset) -> None:
    for b, name in blocks(read).items():
        kappa = read["kappa_scan"].sel(block=b).values
        ax.plot(read["sd"], np.where(np.isfinite(kappa), kappa, np.nan), color=BLOCK[b], label=name)
        now = float(read["kappa"].sel(design="planned", block=b))
        ax.plot(read.attrs["sd_log_tpp"], min(now, KAPPA[1]), "o", color=BLOCK[b], clip_on=False, zorder=3)
    ax.axhline(read.attrs["kappa_goal"], color=muted(), lw=1, ls="--")
    if np.isfinite(float(read["sd_needed"])):
        ax.axvline(float(read["sd_needed"]), color=muted(), lw=1, ls="--")
    ax.set(yscale="log", ylim=KAPPA, xlim=(0, read["sd"].values[-1]), xlabel="sd of log TPP (nat)", ylabel="kappa")
    ax.legend(loc="upper right")


def _errors(ax: Any, read: xr.Dataset) -> None:
    names = [str(k) for k in read["param"].values]
    for design, colour, shift, fill in (("ray", muted(), -0.15, "none"), ("planned", PLANNED, 0.15, None)):
        se = read["se"].sel(design=design).values
        at, cut = np.arange(len(names)) + shift, se > SE[1]
        ax.plot(at[~cut], se[~cut], "o", ms=6, color=colour, mfc=fill or colour)
        ax.plot(at[cut], np.full(cut.sum(), SE[1] * 0.5), "^", ms=7, color=colour, mfc=fill or colour)
    ax.set(yscale="log", ylim=SE, xlim=(-0.6, len(names) - 0.4), ylabel="se of the logarithm (cut: triangle)")
    ax.set_xticks(range(len(names)), names)


def _ellipses(ax: Any, read: xr.Dataset, pair: str, names: tuple[str, str], text: str) -> None:
    (x, y), shape = windows(read)[pair], read["ellipse"].sel(pair=pair)
    for design, colour, style in (("ray", muted(), "--"), ("planned", PLANNED, "-")):
        one = shape.sel(design=design).values
        ax.plot(one[0], one[1], color=colour, ls=style, lw=1.8)
        ax.fill(one[0], one[1], color=colour, alpha=0.15 if design == "ray" else 0.3, lw=0)
    ax.set(xlim=x, ylim=y, xlabel=text.format(names[0]), ylabel=text.format(names[1]))


def _exponents(ax: Any, read: xr.Dataset) -> None:
    _ellipses(ax, read, "exponents", pairs(zoo.get(read.attrs["law"], "laws"))[0], "{}")


def _coefficients(ax: Any, read: xr.Dataset) -> None:
    _ellipses(ax, read, "coefficients", pairs(zoo.get(read.attrs["law"], "laws"))[1], "log10 {}")


def _profile(ax: Any, read: xr.Dataset) -> None:
    value = read["profile_value"].values
    ax.plot(value, read["profile_quadratic"].values, ls="--", lw=1.2, color=muted())
    ax.plot(value, read["profile_deviance"].values, color=PLANNED)
    ax.axhline(level(read), color=muted(), lw=1, ls=":")
    ax.set(xlim=windows(read)["exponents"][0], ylim=DEVIANCE, ylabel="deviance")
    ax.set_xlabel(read["profile_value"].attrs["meaning"])


def _band(ax: Any, read: xr.Dataset) -> None:
    tpp = read["tpp"].values
    for design, colour, alpha in (("ray", muted(), 0.22), ("planned", PLANNED, 0.4)):
        ax.fill_between(tpp, *edges(read, design), color=colour, alpha=alpha, lw=0)
    ax.plot(tpp, read["loss"].values, color=PLANNED)
    ax.axvline(20, color=muted(), lw=1, ls=":")
    ax.set(xscale="log", xlim=(tpp[0], tpp[-1]), ylim=LOSS, xlabel="tokens per parameter", ylabel=label("loss"))
