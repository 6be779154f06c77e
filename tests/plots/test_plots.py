"""Pictures: axes in, labelled in words and units, nothing written into the data, both papers legible."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgb

from scalingkit import plots
from scalingkit.core import runs as tables
from scalingkit.decide.allocate import allocate
from scalingkit.infer.laplace import laplace
from scalingkit.infer.model import Model
from scalingkit.infer.pooling import Partial
from scalingkit.plots.axes import save
from scalingkit.plots.theme import PALETTE, colours


def make_runs(n: int = 36, seed: int = 1) -> xr.Dataset:
    rng = np.random.default_rng(seed)
    N, D = 10 ** rng.uniform(7, 10, n), 10 ** rng.uniform(9, 12, n)
    loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.01 * rng.standard_normal(n))
    return tables.make(N=N, D=D, loss=loss, corpus=np.array(["c4", "pile", "web"])[np.arange(n) % 3])


@pytest.fixture(scope="module")
def tree() -> xr.DataTree:
    return laplace(Model(law="chinchilla", pool={"alpha": Partial("corpus")}), make_runs(), draws=200)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def labelled(ax) -> bool:
    return bool(ax.get_xlabel()) and bool(ax.get_ylabel() or ax.get_yticklabels())


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_picture_of_a_tree_is_labelled(tree, mode, tmp_path):
    with plots.theme(mode):
        drawn = {
            "plane": plots.plane(make_runs()),
            "plane by loss": plots.plane(make_runs().drop_vars("corpus")),
            "forest": plots.forest(tree, "alpha", reference={"c4": 0.34}),
            "fit": plots.fit_against_data(tree),
            "residuals": plots.residuals(tree, "N"),
        }
        assert all(labelled(ax) for ax in drawn.values()), [k for k, a in drawn.items() if not labelled(a)]
        assert save(drawn["plane"].figure, tmp_path / "plane.png").stat().st_size > 10_000
    bare = plt.subplots()[1]
    assert not labelled(bare)


def test_axes_are_logarithmic_where_the_quantity_is(tree):
    ax = plots.plane(make_runs())
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert plots.residuals(tree, "D").get_xscale() == "log"


def test_forest_has_a_row_a_group_and_the_population(tree):
    names = [t.get_text() for t in plots.forest(tree, "alpha").get_yticklabels()]
    assert names == ["c4", "pile", "web", "population"]
    assert [t.get_text() for t in plots.forest(tree, "beta").get_yticklabels()] == ["beta"]


def test_allocation_marks_where_the_runs_end(tree):
    plan = allocate(tree, budget=[1e20, 1e22, 1e24])
    ax = plots.allocation(plan, "N", reached=1e22)
    assert "beyond the runs" in " ".join(t.get_text() for t in ax.texts)
    assert not plots.allocation(plan, "N").texts


def test_prior_posterior_and_ridges_take_named_parameters(tree):
    assert [a.get_xlabel() for a in plots.prior_posterior(tree, ["E", "beta"]).flat] == ["E", "beta"]
    grid = plots.ridges(tree, ["E", "beta", "B"])
    assert grid[2, 0].get_ylabel() in ("B", "log10 B") and grid[2, 0].get_xlabel() == "E"


def test_curves_draw_a_band_and_a_line_per_group(tree):
    N = np.geomspace(1e7, 1e10, 9)
    predicted = xr.DataArray(
        np.random.default_rng(0).normal(3, 0.1, (1, 50, 2, 9)), dims=("chain", "draw", "corpus", "size"),
        coords={"N": ("size", N), "corpus": ["c4", "web"]}, name="loss",
    )  # fmt: skip
    ax = plots.curves(predicted, "N")
    assert len(ax.lines) == 2 and len(ax.collections) == 2 and ax.get_xscale() == "log"


def test_pit_and_influence_show_what_was_found(tree):
    from scalingkit.infer.check import check

    found = check(tree)
    ax = plots.pit(found, runs=tree["constant_data"].to_dataset(), by="corpus")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["c4 (12)", "pile (12)", "web (12)", "all (36)"]
    ax = plots.influence(found, most=5)
    assert len(ax.get_yticklabels()) == 5 and ax.get_xscale() == "log"


def test_pictures_leave_the_data_alone():
    runs = make_runs()
    before = runs.copy(deep=True)
    plots.plane(runs)
    xr.testing.assert_identical(runs, before)


def luminance(colour: str) -> float:
    c = np.array(to_rgb(colour))
    linear = np.where(c <= 0.03928, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a: str, b: str) -> float:
    hi, lo = sorted((luminance(a), luminance(b)), reverse=True)
    return (hi + 0.05) / (lo + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_ink_and_palette_stand_out_from_the_paper(mode):
    paper = colours(mode)["paper"]
    assert contrast(colours(mode)["ink"], paper) > 7 and contrast(colours(mode)["muted"], paper) > 4
    assert min(contrast(c, paper) for c in PALETTE) > 2.4
    assert contrast("#dddddd", colours("light")["paper"]) < 2.4


def test_theme_leaves_drawing_at_the_end_of_a_cell_on_and_everything_else_as_it_was():
    before = plt.rcParams["axes.grid"]
    was = plt.isinteractive()
    try:
        plt.ioff()
        with plots.theme():
            plt.ion()  # what the first figure of a notebook does
            assert plt.rcParams["axes.grid"]
        assert plt.isinteractive()
        assert plt.rcParams["axes.grid"] == before
    finally:
        (plt.ion if was else plt.ioff)()
