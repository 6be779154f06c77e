"""Floor 6: Jupyter widgets; Dataset in, view out."""

from typing import Any

_WIDGETS = {
    "DesignBoard": "design_board",
    "IdentifiabilityExplorer": "identifiability_explorer",
    "Panel": "base",
    "PosteriorExplorer": "posterior_explorer",
}
__all__ = ["DesignBoard", "IdentifiabilityExplorer", "Panel", "PosteriorExplorer"]


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _WIDGETS:
        raise AttributeError(f"scalingkit.widgets has no {name!r}; it has {', '.join(sorted(_WIDGETS))}")
    return getattr(importlib.import_module(f"scalingkit.widgets.{_WIDGETS[name]}"), name)
