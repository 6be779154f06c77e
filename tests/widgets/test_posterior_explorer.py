"""PosteriorExplorer without a browser: choices move, numbers are the plain function's, what is drawn is they."""

from __future__ import annotations

import base64
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from scalingkit.infer.laplace import laplace
from scalingkit.infer.model import Model
from scalingkit.infer.pooling import Partial
from scalingkit.infer.portrait import FIT, PortraitError, portrait
from scalingkit.plots import portrait as rest
from scalingkit.plots.theme import PALETTE, colours, theme
from scalingkit.widgets import PosteriorExplorer
from tests.infer.conftest import make_table
from tests.infer.test_portrait import foreign

START = dict(params=("A", "alpha", "beta"), groups=("c4", "pile", "web"), pair_x="strongest", pair_y="strongest",
             along="N", level=0.5, reach=3.0, prob=0.9)  # fmt: skip


@pytest.fixture(scope="module")
def tree() -> xr.DataTree:
    return laplace(Model("chinchilla", {"alpha": Partial("corpus")}), make_table(45), draws=300)


@pytest.fixture(scope="module")
def shared(tree) -> PosteriorExplorer:
    return PosteriorExplorer(tree, params=["A", "alpha", "beta"])


@pytest.fixture
def widget(shared):
    with shared.hold():
        for k, v in START.items():
            shared.control[k].value = v
    return shared


def trace(widget, name):
    return next(t for t in widget.picture.data if t.name == name)


def page(widget, name) -> float:
    return float(re.search(rf'data-{name}="([^"]+)"', widget.words.value).group(1))


def test_the_result_is_the_plain_functions(widget, tree):
    for name, value in dict(
        level=0.2, reach=30, prob=0.5, along="D", pair_x="sigma", groups=("web",), params=("alpha", "nu")
    ).items():
        before = widget.result
        widget.control[name].value = value
        assert widget.error is None, widget.line.value
        xr.testing.assert_identical(widget.result, portrait(tree, **widget.values()))
        assert not widget.result.identical(before)
    assert widget.values()["pair"] == ("sigma", None) and widget.values()["groups"] == ["web"]
    assert page(widget, "level") == 0.2 and page(widget, "prob") == 0.5


def test_what_is_drawn_is_the_result_and_what_is_not_chosen_is_gone(widget):
    made, read = widget.picture, widget.result
    np.testing.assert_array_equal(trace(widget, "density-1-2").y, read["density"].sel(param="alpha", group="web"))
    np.testing.assert_array_equal(trace(widget, "prior-2").y, read["prior_density"].sel(param="beta"))
    np.testing.assert_array_equal(trace(widget, "all-2").y, read["density"].sel(param="beta")[0])
    np.testing.assert_array_equal(trace(widget, "middle-0").y, read["band"][0, :, 1])
    assert len(trace(widget, "run-1").x) == 15 and trace(widget, "run-1").text[0].count("<br>") == 1
    assert made.layout.xaxis.title.text == "log10 A" and made.layout.xaxis3.title.text == "log10 A"
    assert made.layout.xaxis4.type == "log" and "model size N" in made.layout.xaxis4.title.text
    widget.control["groups"].value = ("web",)
    assert len(trace(widget, "density-1-2").x) == 0 and len(trace(widget, "middle-1").x) == 0
    assert trace(widget, "middle-0").line.color == PALETTE[2] == rest.colours(widget.result)[0]  # web keeps its colour
    widget.control["params"].value = ("beta",)
    assert not made.layout.xaxis2.visible and len(trace(widget, "prior-1").x) == 0
    assert widget.picture is made


def test_runs_against_replicates_and_back(widget):
    widget.control["along"].value = FIT
    layout = widget.picture.layout
    assert layout.xaxis4.type == "linear" and layout.xaxis4.title.text.startswith("replicated")
    assert len(trace(widget, "middle-0").x) == 0 and len(trace(widget, "interval-0").x) == 3 * 15
    assert "lie in their 90% interval" in widget.words.value and layout.annotations[1].text.startswith("Runs against")
    widget.control["along"].value = "D"
    assert layout.xaxis4.type == "log" and len(trace(widget, "interval-0").x) == 0
    assert layout.annotations[1].text == "Curve along D, 90%"


def test_words_say_who_speaks(widget):
    assert "The runs speak" in widget.words.value and "known together, not alone" in widget.words.value
    assert "* the prior speaks" not in widget.words.value
    widget.control["params"].value = ("alpha", "nu")
    assert "The prior speaks for nu" in widget.words.value and "* the prior speaks" in widget.words.value
    assert "no ridge" in widget.words.value
    assert widget.words.value.count("<tr>") == 4


def test_an_error_is_a_line_and_the_last_result_stays(widget):
    kept = widget.result
    widget.control["params"].value = ()
    assert "choose 1 to 4 parameters, not 0" in widget.line.value and isinstance(widget.error, PortraitError)
    assert widget.result is kept
    widget.control["params"].value = ("alpha",)
    assert widget.line.value == "" and widget.error is None


@pytest.mark.parametrize(("start", "said"), [({"param": ["a"]}, "no choice 'param'"), ({"along": "M"}, "no input")])
def test_a_wrong_start_is_refused(tree, start, said):
    with pytest.raises(PortraitError, match=said):
        PosteriorExplorer(tree, **start)


def test_a_tree_of_another_package():
    w = PosteriorExplorer(foreign())
    assert w.error is None and w.control["along"].options == (FIT,)
    assert len(trace(w, "run-none").x) == 50 and len(trace(w, "density-1-2").x) == 160
    assert "The tree has no prior" in w.words.value


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_twin_draws_the_same_numbers_on_either_paper(widget, mode):
    with theme(mode):
        figure = widget.twin(widget.result)
    axes = figure.axes
    assert len(axes) == 5 and [ax.get_xlabel() for ax in axes[:3]] == ["log10 A", "alpha", "beta"]
    np.testing.assert_array_equal(axes[-1].lines[0].get_ydata(), widget.result["band"][0, :, 1])
    assert axes[-1].get_xscale() == "log" and axes[-1].get_legend() is not None
    assert axes[0].xaxis.label.get_color() == colours(mode)["ink"]
    assert "The runs speak" in figure.get_suptitle()
    plt.close(figure)


def test_outside_a_kernel_the_twin_is_the_picture(widget):
    data, _ = widget._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert "application/vnd.jupyter.widget-view+json" not in data
