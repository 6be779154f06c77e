"""Theme: one look, legible on light and on dark paper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

Mode = Literal["light", "dark"]

_INK = {
    "light": dict(paper="#ffffff", ink="#1b1f24", faint="#d5d9de", muted="#5b6470"),
    "dark": dict(paper="#14171a", ink="#e8eaed", faint="#3a4047", muted="#a3abb5"),
}
# Okabe-Ito, in an order whose first six are apart in luminance too; every colour has contrast > 2.4 on both papers
PALETTE = ("#1f83c4", "#d9632a", "#0f9d77", "#b564a8", "#b58900", "#4f9ec4", "#8a8f98", "#c2504d")


def colours(mode: Mode = "light") -> dict[str, str]:
    """paper, ink, faint and muted of a mode."""
    return dict(_INK[mode])


def rc(mode: Mode = "light") -> dict[str, Any]:
    """Matplotlib settings of a mode."""
    from matplotlib import cycler

    c = _INK[mode]
    return {
        "figure.facecolor": c["paper"], "axes.facecolor": c["paper"], "savefig.facecolor": c["paper"],
        "text.color": c["ink"], "axes.labelcolor": c["ink"], "axes.edgecolor": c["muted"],
        "xtick.color": c["ink"], "ytick.color": c["ink"], "grid.color": c["faint"], "grid.linewidth": 0.6,
        "axes.grid": True, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 11,
        "axes.titlelocation": "left", "axes.labelsize": 10, "legend.frameon": False, "legend.fontsize": 9,
        "xtick.labelsize": 9, "ytick.labelsize": 9, "figure.dpi": 110, "savefig.bbox": "tight",
        "axes.prop_cycle": cycler(color=list(PALETTE)), "figure.constrained_layout.use": True,
        "legend.labelcolor": c["ink"], "axes.titlecolor": c["ink"], "font.family": "DejaVu Sans",
    }  # fmt: skip


@contextmanager
def theme(mode: Mode = "light") -> Iterator[dict[str, str]]:
    """Draw inside it: ``with theme("dark") as ink: ...``; gives the mode's colours by name."""
    import matplotlib as mpl

    with mpl.rc_context(rc(mode)):
        try:
            yield colours(mode)
        finally:
            shown = mpl.is_interactive()
    # the first figure of a notebook turns on drawing at the end of a cell: leaving the context must not turn it off
    mpl.interactive(shown)


def ink() -> str:
    """The ink of the theme in force."""
    import matplotlib as mpl

    return str(mpl.rcParams["text.color"])


def muted() -> str:
    """The quieter ink of the theme in force."""
    import matplotlib as mpl

    return str(mpl.rcParams["axes.edgecolor"])
