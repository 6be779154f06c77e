"""Small helpers every picture shares: axes, group colours, labels with units, log ticks, saving."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import names
from scalingkit.plots.theme import PALETTE

AXIS = {
    "N": "model size N (parameters)",
    "D": "training tokens D",
    "C": "training compute C (FLOP)",
    "U": "unique tokens U",
    "loss": "loss (nat per token)",
}


def axes(ax: Any = None, **figure: Any) -> Any:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(**{"figsize": (6.2, 4.2), **figure})[1]


def label(name: str, data: xr.DataArray | None = None) -> str:
    """Axis label of a variable with its unit."""
    if name in AXIS and (data is None or data.attrs.get("units", names.unit(name)) == names.unit(name)):
        return AXIS[name]
    unit = (data.attrs.get("units") if data is not None else None) or names.unit(name)
    return name if unit in ("", "1") else f"{name} ({unit})"


def group_of(runs: xr.Dataset, by: str | None = None) -> str | None:
    """The group coordinate to colour by: the one asked for, else family or corpus where it has more than one label."""
    if by is not None:
        return by
    for g in (names.CORPUS, names.FAMILY):
        if g in runs.coords and len(np.unique(runs[g].values.astype(str))) > 1:
            return g
    return None


def group_colours(labels: Any) -> dict[str, str]:
    """Label -> colour, by sorted label, the same in every picture."""
    unique = sorted({str(v) for v in np.ravel(labels)})
    return {v: PALETTE[i % len(PALETTE)] for i, v in enumerate(unique)}


def to_image(figure: Any, format: str = "png", dpi: int = 130) -> bytes:
    """The figure as bytes; the figure is closed."""
    import matplotlib.pyplot as plt

    out = io.BytesIO()
    metadata = {"Date": None} if format == "svg" else None
    figure.savefig(out, format=format, dpi=dpi, metadata=metadata)
    plt.close(figure)
    return out.getvalue()


def save(figure: Any, path: str | Path) -> Path:
    """Write the figure, through a temporary name."""
    path = Path(path)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(to_image(figure, path.suffix.lstrip(".") or "png"))
    part.replace(path)
    return path
