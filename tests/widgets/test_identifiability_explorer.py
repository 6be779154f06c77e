"""IdentifiabilityExplorer without a browser: controls move, numbers are the plain function's, what is drawn is they."""

from __future__ import annotations

import base64
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from scalingkit.design.explorer import explored
from scalingkit.design.grids import DesignError
from scalingkit.plots import explorer as rest
from scalingkit.plots.theme import colours, theme
from scalingkit.widgets import IdentifiabilityExplorer


@pytest.fixture(scope="module")
def shared() -> IdentifiabilityExplorer:
    return IdentifiabilityExplorer(gap=0.02, runs=9)


@pytest.fixture
def widget(shared):
    """The one explorer, its controls back where they were."""
    with shared.hold():
        for k, v in dict(law="chinchilla", gap=0.02, sd_log_tpp=0.0, noise=0.01, runs=9, kappa_goal=1000.0).items():
            shared.control[k].value = v
    return shared


def trace(widget, name):
    return next(t for t in widget.picture.data if t.name == name)


def page(widget, name) -> float:
    """A number as the page carries it."""
    return float(re.search(rf'data-{name}="([^"]+)"', widget.words.value).group(1))


def test_the_result_is_the_plain_functions(widget):
    for name, value in dict(sd_log_tpp=0.4, gap=-0.1, noise=0.02, runs=15, budget=1e22, kappa_goal=100.0).items():
        before = widget.result
        widget.control[name].value = value
        xr.testing.assert_identical(widget.result, explored(**widget.values()))
        assert not widget.result.identical(before)
    assert widget.values()["sd_log_tpp"] == 0.4 and widget.values()["gap"] == -0.1
    assert page(widget, "kappa-full") == float(widget.result["kappa"].sel(design="planned", block="full"))
    assert page(widget, "kappa-scale") == float(widget.result["kappa"].sel(design="planned", block="scale"))
    widget.control["budget"].value = 1e23


def test_the_picture_is_updated_in_place(widget):
    made, traces = widget.picture, len(widget.picture.data)
    before = np.array(trace(widget, "exponents-planned").x)
    widget.control["sd_log_tpp"].value = 0.8
    assert widget.picture is made and len(made.data) == traces
    shape = widget.result["ellipse"].sel(design="planned", pair="exponents").values
    np.testing.assert_array_equal(trace(widget, "exponents-planned").x, shape[0])
    np.testing.assert_array_equal(trace(widget, "runs-planned").x, widget.result["N"].sel(design="planned"))
    assert np.ptp(shape[0]) < 0.05 * np.ptp(before)  # the cure is seen
    low, high = rest.edges(widget.result, "planned")
    np.testing.assert_array_equal(trace(widget, "band-planned").y, np.r_[low, high[::-1]])
    assert all(low < widget.result["loss"]) and all(high > widget.result["loss"])
    for t in made.data:
        assert t.marker.symbol is not None or t.mode == "lines"


def test_the_line_says_whether_the_spread_is_enough(widget):
    assert "is not enough" in widget.words.value
    widget.control["sd_log_tpp"].value = round(float(widget.result["sd_needed"]) + 0.02, 2)
    assert "is enough" in widget.words.value and "is not enough" not in widget.words.value
    assert page(widget, "kappa-scale") <= 1000
    assert widget.result.attrs["weakest"] in widget.words.value.replace("&gt;", ">")
    widget.control["sd_log_tpp"].value = 0.0
    assert "is not enough" in widget.words.value and page(widget, "kappa-scale") > 1000


def test_another_law_brings_its_names_and_back(widget):
    widget.control["law"].value = "kaplan"
    layout = widget.picture.layout
    assert layout.xaxis5.title.text == "alpha_N" and list(layout.xaxis4.ticktext) == ["Nc", "alpha_N", "Dc", "alpha_D"]
    assert list(trace(widget, "scan-scale+E").x) == [] and len(trace(widget, "scan-full").x) > 0
    assert "Nc, Dc" in widget.words.value and widget.error is None
    widget.control["law"].value = "chinchilla"
    assert layout.xaxis5.title.text == "alpha" and len(layout.xaxis4.ticktext) == 5
    assert len(trace(widget, "scan-scale+E").x) > 0


def test_an_error_is_a_line_and_the_last_result_stays(widget):
    kept, line = widget.result, widget.words.value
    gap = widget.control["gap"]
    gap.max = 0.9
    try:
        gap.value = 0.9
        assert "no positive exponent" in widget.line.value and isinstance(widget.error, DesignError)
        assert widget.result is kept and widget.words.value == line
        gap.value = 0.1
        assert widget.line.value == "" and widget.error is None and widget.result.attrs["gap"] == pytest.approx(0.1)
    finally:
        gap.value = min(gap.value, 0.3)
        gap.max = 0.3


@pytest.mark.parametrize(
    ("start", "said"),
    [({"gapp": 0.1}, "no control 'gapp'"), ({"runs": 100}, "outside its slider"), ({"law": "farseer"}, "no law")],
)
def test_a_wrong_start_is_refused(start, said):
    with pytest.raises(DesignError, match=said):
        IdentifiabilityExplorer(**start)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_twin_draws_the_same_numbers_on_either_paper(widget, mode):
    widget.control["sd_log_tpp"].value = 0.6
    with theme(mode):
        figure = widget.twin(widget.result)
    axes = figure.axes
    assert [ax.get_title(loc="left") for ax in axes] == list(rest.TITLES)
    drawn = [line.get_xydata() for line in axes[4].lines]
    shape = widget.result["ellipse"].sel(pair="exponents")
    for one, design in zip(drawn, ("ray", "planned"), strict=True):
        np.testing.assert_array_equal(one.T, shape.sel(design=design))
    np.testing.assert_array_equal(axes[6].lines[1].get_ydata(), widget.result["profile_deviance"])
    ink = colours(mode)
    assert axes[0].xaxis.label.get_color() == ink["ink"]
    assert figure.get_facecolor()[:3] == pytest.approx([int(ink["paper"][i : i + 2], 16) / 255 for i in (1, 3, 5)])
    assert "is enough" in figure.get_suptitle()
    plt.close(figure)


def test_outside_a_kernel_the_twin_is_the_picture(widget):
    data, _ = widget._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert "application/vnd.jupyter.widget-view+json" not in data


def test_words_for_what_is_not_known():
    flat = rest.said(explored(gap=0.0))
    assert "infinite" in flat[0] and "below" in flat[2] and "above" in flat[2] and "infinite" in flat[3]
    assert "on the ray already" in rest.threshold(explored(gap=0.3))
    assert "No sd of log TPP" in rest.threshold(explored(kappa_goal=1.001))
    assert rest.number(1000.0) == "1000" and rest.number(np.inf) == "infinite" and rest.number(12345.0) == "1.23e4"
