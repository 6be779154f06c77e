"""Words: numbers of the identifiability report said in plain English."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scalingkit.design.information import raw
from scalingkit.infer.coordinates import Coordinates

_SHARE = 0.25  # a parameter belongs to a direction when it holds this much of it, in units of its prior sd
DATA, LEANS, PRIOR = (
    0.9,
    0.5,
    0.1,
)  # contraction from which: the data determine it; mostly the data; not the prior alone


def contraction(value: float) -> str:
    """ "0.93", "0.4", "0": two digits where they matter, none below a twentieth."""
    value = max(value, 0.0)
    if value < 0.05:
        return "0"
    return ">0.99" if value > 0.995 else f"{value:.2f}" if value >= 0.9 else f"{value:.1f}"


def status(value: float) -> str:
    """What determines a parameter with this contraction."""
    if value >= DATA:
        return "data"
    if value >= LEANS:
        return "mostly data"
    return "leans on the prior" if value >= PRIOR else "prior"


def direction(
    c: Coordinates, vector: np.ndarray, prior_sd: np.ndarray, u: np.ndarray, pivots: np.ndarray, step: float
) -> str:
    """A direction as what it does to the law's own parameters: "raise alpha (x1.3) and A (x40) while lowering ...".

    ``vector`` (p,) in units of the prior sd, ``u`` (p,) the point it starts from, ``step`` how far (in prior sds).
    """
    names = c.names
    moved = {names[i] for i in np.flatnonzero(np.abs(vector) >= _SHARE * np.abs(vector).max())}
    # A coefficient's own units move with the exponent it sits on, so the two are named together.
    moved |= {k for k, (_, e) in c.law.scales.items() if e in moved}
    ends = raw(c, np.stack([u, u + step * vector * prior_sd]), pivots)
    up, down = [], []
    for i, k in enumerate(names):
        if k not in moved:
            continue
        before, after = ends[0, i], ends[1, i]
        change = _factor(before, after)
        (up if after > before else down).append(f"{k} ({change})")
    if up and down:
        return f"raise {listed(up)} while lowering {listed(down)}"
    together = " together" if len(up or down) > 1 else ""
    return f"{'raise' if up else 'lower'} {listed(up or down)}{together}"


def _factor(before: float, after: float) -> str:
    if before > 0 and after > 0:
        ratio = after / before
        if 0.5 < ratio < 2:
            return f"{100 * (ratio - 1):+.2g}%"
        return f"x{ratio:.2g}" if 0.01 < ratio < 100 else f"x{ratio:.0e}"
    return f"{after - before:+.2g}"


def listed(items: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    items = list(items)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def short(value: float) -> str:
    """4.2e+08, 20, 0.35: three digits."""
    if 1e-2 <= abs(value) < 1e4:
        return f"{value:.3g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def times(value: float, most: float) -> str:
    """ "30x", "at least 10,000x"."""
    rounded = float(f"{value:.2g}")
    return (
        f"at least {most:,.0f}x" if value >= most * 0.999 else f"{rounded:,.0f}x" if rounded >= 10 else f"{rounded:g}x"
    )
