"""The base of every widget: the result follows the controls, errors are said, the static twin is beside the view."""

from __future__ import annotations

import base64

import ipywidgets
import numpy as np
import pytest
import xarray as xr

from scalingkit.widgets.base import VIEW, Panel


def line(slope: float, n: int) -> xr.Dataset:
    if n < 2:
        raise ValueError("a line needs two points")
    return xr.Dataset({"y": ("x", slope * np.arange(n))})


class Line(Panel):
    computed = shown = 0

    def controls(self):
        return {
            "slope": ipywidgets.FloatSlider(1.0, min=0, max=10),
            "n": ipywidgets.IntSlider(3, min=0, max=10),
        }

    def compute(self, slope, n):
        self.computed += 1
        return line(slope, n)

    def show(self, result):
        self.shown += 1
        self.picture.value = f"{float(result['y'].sum()):g}"

    def twin(self, result):
        from scalingkit.plots.axes import axes

        ax = axes()
        ax.plot(result["y"])
        return ax.figure


def test_the_result_is_the_pure_functions_own():
    w = Line()
    w.control["slope"].value = 2.5
    xr.testing.assert_identical(w.result, line(2.5, 3))
    assert w.picture.value == "7.5"


def test_several_changes_at_once_are_computed_once():
    w = Line()
    before = w.computed
    with w.hold():
        w.control["slope"].value, w.control["n"].value = 2.0, 5
    assert w.computed == before + 1 and w.result.sizes["x"] == 5
    w.control["slope"].value, w.control["n"].value = 3.0, 4
    assert w.computed == before + 3  # without it: one each


def test_what_changes_while_computing_is_computed_with_the_last_values():
    class Nervous(Line):
        def show(self, result):
            super().show(result)
            if self.control["slope"].value < 5:  # a control that moves while the numbers are under way
                self.control["slope"].value += 1

    w = Nervous()
    w.control["n"].value = 4
    assert w.control["slope"].value == 5 and float(w.result["y"][1]) == 5


def test_nothing_is_computed_where_nothing_changed():
    w = Line()
    before = w.computed
    w.refresh()
    assert w.computed == before


def test_an_error_is_a_line_in_the_widget_and_the_last_result_stays():
    w = Line()
    w.control["n"].value = 1
    assert "a line needs two points" in w.line.value and isinstance(w.error, ValueError)
    assert w.result.sizes["x"] == 3
    w.control["n"].value = 4
    assert w.line.value == "" and w.error is None and w.result.sizes["x"] == 4


def test_an_error_of_the_first_values_is_raised():
    class Wrong(Line):
        def controls(self):
            return {**super().controls(), "n": ipywidgets.IntSlider(1, min=0, max=10)}

    with pytest.raises(ValueError, match="two points"):
        Wrong()


def test_outside_a_kernel_the_static_twin_is_shown_and_no_view():
    data, _ = Line()._repr_mimebundle_()
    assert VIEW not in data
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")


def test_in_a_kernel_the_view_has_the_twin_beside_it(monkeypatch):
    monkeypatch.setattr("scalingkit.widgets.base.in_kernel", lambda: True)
    data, _ = Line()._repr_mimebundle_()
    assert data[VIEW]["model_id"] and data["image/png"]
