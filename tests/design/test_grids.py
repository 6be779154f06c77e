"""Planned runs: their counts, levels, units and costs."""

import numpy as np
import pytest

from scalingkit.design import grids
from scalingkit.design.cost import CostError, per_run, slopes, tokens

SIZES = np.geomspace(1e8, 1e10, 9)


def tpp(runs):
    return (runs["D"] / runs["N"]).values


def test_ray_has_one_tpp_and_units():
    runs = grids.ray(SIZES)
    np.testing.assert_allclose(tpp(runs), 20)
    np.testing.assert_allclose(runs["C"], 6 * runs["N"] * runs["D"])
    assert runs["N"].attrs["units"] == "parameter" and runs["C"].attrs["units"] == "FLOP"
    assert len(set(runs["run"].values)) == 9


def test_spread_takes_levels_in_turn_and_keeps_each_cost():
    runs = grids.spread(SIZES, (5, 20, 80), like=20)
    np.testing.assert_allclose(tpp(runs), np.resize([5, 20, 80], 9))
    np.testing.assert_allclose(runs["C"], grids.ray(SIZES)["C"])
    assert not np.allclose(grids.spread(SIZES)["C"], grids.ray(SIZES)["C"])


def test_other_grids():
    assert grids.ladder(SIZES, (1, 5)).sizes["run"] == 18
    iso = grids.isoflop([1e19, 1e20], points=5, tpp=(2, 200))
    np.testing.assert_allclose(iso["C"], np.repeat([1e19, 1e20], 5))
    assert tpp(iso).min() == pytest.approx(2) and tpp(iso).max() == pytest.approx(200)
    both = grids.factorial([1e8, 1e9], [1e9, 1e10, 1e11])
    assert both.sizes["run"] == 6 and len(np.unique(both["D"])) == 3


def test_gaussian_moments():
    runs = grids.gaussian(2**13, 1.3, 0.6, corr=-0.5)
    u, t = np.log(runs["N"].values), np.log(tpp(runs))
    assert u.std() == pytest.approx(1.3, rel=0.01) and t.std() == pytest.approx(0.6, rel=0.01)
    assert np.corrcoef(u, t)[0, 1] == pytest.approx(-0.5, abs=0.01)


@pytest.mark.parametrize("cost", [None, lambda N, D: 6 * N * D + 1e9 * N])
def test_equal_total_cost_keeps_tpp(cost):
    for made in (grids.ray(SIZES, total=1e22, cost=cost), grids.spread(SIZES, total=1e22, cost=cost)):
        assert float(made["C"].sum()) == pytest.approx(1e22, rel=1e-9)
    np.testing.assert_allclose(tpp(made), np.resize([5, 20, 80], 9))


def test_design_and_extend_keep_labels_unique():
    a, b = grids.ray(SIZES[:2]), grids.ray(SIZES[2:4])
    a = a.assign(loss=("run", [3.0, 2.9])).assign_coords(corpus=("run", ["c4", "c4"]))
    both = grids.extend(a, b)
    assert both.sizes["run"] == 4 and len(set(both["run"].values)) == 4
    assert np.isnan(both["loss"].values[2:]).all() and list(both["corpus"].values) == ["c4", "c4", "", ""]
    more = grids.design([1e8, 1e9], 2e10, P=16)
    assert list(more["P"].values) == [16, 16] and list(more["D"].values) == [2e10, 2e10]


def test_from_runs_drops_the_outcome():
    runs = grids.ray(SIZES).assign(loss=("run", np.ones(9)))
    assert "loss" not in grids.from_runs(runs) and "N" in grids.from_runs(runs)
    with pytest.raises(grids.DesignError, match="no D"):
        grids.from_runs(runs.drop_vars("D"))


def test_cost_inverts_and_refuses():
    own = lambda N, D: 6 * N * D * (1 + N / 1e11)  # noqa: E731
    N = np.array([1e8, 1e10])
    for cost in (None, 4.0, own):
        D = tokens(cost, N, 1e21)
        np.testing.assert_allclose(per_run(cost, N, D), 1e21, rtol=1e-10)
    assert slopes(None, 1e9, 1e10)[0] == 1
    by_size, by_tokens = slopes(own, 1e11, 1e12)
    assert by_size == pytest.approx(1.5, abs=1e-6) and by_tokens == pytest.approx(1, abs=1e-6)
    assert np.isnan(tokens(lambda N, D: 6 * N * D + 1e30, 1e9, 1e21))
    with pytest.raises(CostError, match="positive and finite"):
        per_run(lambda N, D: -N, 1e9, 1e9)
    with pytest.raises(CostError):
        per_run(0.0, 1e9, 1e9)


@pytest.mark.parametrize("sizes", [[], [0.0], [np.nan], [-1e8], [np.inf]])
def test_bad_sizes_are_refused(sizes):
    with pytest.raises(grids.DesignError, match="sizes must be positive"):
        grids.ray(sizes)
