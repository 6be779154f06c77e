"""Base of every widget: controls bound to a pure function, its Dataset readable, a static picture where none can move.

    class Growth(Panel):
        def controls(self): return {"rate": FloatSlider(0.5, min=0, max=1, description="rate")}
        def compute(self, rate): return growth(self.runs, rate)           # pure, from a lower floor
        def view(self): return FigureWidget(...)                          # made once
        def show(self, result): self.picture.data[0].y = result["size"].values
        def twin(self, result): return matplotlib figure                  # from ``plots``

``widget.result`` is the Dataset of the controls as they stand. While the numbers are computed the browser holds back
(one message under way a control), and what changed meanwhile is computed once, with the last values. An error of the
function becomes a line in the widget; the last result stays.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ipywidgets
import xarray as xr

from scalingkit.widgets.wide import Wide

VIEW = "application/vnd.jupyter.widget-view+json"


class Live:
    """What a panel and a drawn widget share: a result that follows, errors that are said, and a static twin."""

    result: xr.Dataset
    error: Exception | None = None
    _state: Any = None
    _computing = _stale = False
    _held = 0

    def values(self) -> dict[str, Any]:
        """The arguments of ``compute`` as the controls stand."""
        raise NotImplementedError

    def compute(self, *args: Any, **values: Any) -> xr.Dataset:
        """The numbers: one call to a pure function of a lower floor."""
        raise NotImplementedError

    def show(self, result: xr.Dataset) -> None:
        """Put a result into the view."""

    def complain(self, text: str) -> None:
        """Put a line of error into the view; "" takes it away."""

    def twin(self, result: xr.Dataset) -> Any:
        """The same result as a matplotlib figure."""
        raise NotImplementedError

    def refresh(self, *_: Any) -> None:
        """Compute and show, unless nothing changed. Called again while computing, it computes once more at the end."""
        if self._computing or self._held:
            self._stale = True
            return
        self._computing = True
        try:
            while True:
                self._stale = False
                self._once()
                if not self._stale:
                    break
        finally:
            self._computing = False

    def _once(self) -> None:
        values = self.values()
        if self.error is None and self._state is not None and values == self._state:
            return
        try:
            result = self.compute(**values)
        except Exception as e:  # whatever it is, the person at the controls must see it
            self.error = e
            self.complain(f"{type(e).__name__}: {e}")
            if self._state is None:  # nothing to show yet: an error of the constructor's arguments
                raise
            return
        self.error, self._state, self.result = None, values, result
        self.complain("")
        self.show(result)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Change several controls and compute once: ``with widget.hold(): ...``."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
        if self._stale:
            self.refresh()

    def picture_html(self) -> str:
        """The static twin as one <img>, for exported pages."""
        return f'<img alt="{html.escape(type(self).__name__)}" src="data:image/png;base64,{self._png()}">'

    def _png(self) -> str:
        from scalingkit.plots.axes import to_image
        from scalingkit.plots.theme import theme

        with theme():
            return base64.b64encode(to_image(self.twin(self.result))).decode()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The live view with the static twin beside it; the twin alone outside a kernel, where no manager can answer."""
        bundle = super()._repr_mimebundle_(**kwargs) or {}  # type: ignore[misc]
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        data = {**data, "image/png": self._png()}
        if not in_kernel():
            data.pop(VIEW, None)
        return data, metadata


class Panel(Live, ipywidgets.VBox):
    """ipywidgets controls above a view. ``picture`` is what ``view`` made, ``control["name"]`` a control by name."""

    def __init__(self, **layout: Any) -> None:
        self.control: dict[str, Any] = self.controls()
        self.line = ipywidgets.HTML()
        super().__init__(**layout)
        self.picture = self.view()
        self.children = [*self.arranged(), Wide()]
        self.refresh()
        for c in self.control.values():
            c.observe(self.refresh, names="value")

    def controls(self) -> dict[str, Any]:
        """Argument of ``compute`` -> the widget whose value it is."""
        raise NotImplementedError

    def view(self) -> Any:
        """The widget that ``show`` updates, such as a plotly FigureWidget."""
        return ipywidgets.HTML()

    def arranged(self) -> list[Any]:
        """The rows from top to bottom."""
        flow = ipywidgets.Layout(flex_flow="row wrap")
        return [ipywidgets.HBox(list(self.control.values()), layout=flow), self.picture, self.line]

    def values(self) -> dict[str, Any]:
        return {k: c.value for k, c in self.control.items()}

    def complain(self, text: str) -> None:
        style = "color: var(--jp-error-color1, #c2504d)"
        self.line.value = (
            f'<div class="sk-error" role="alert" style="{style}">{html.escape(text)}</div>' if text else ""
        )


def in_kernel() -> bool:
    """Whether this runs in a notebook's kernel, where a widget manager may answer."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None
