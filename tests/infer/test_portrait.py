"""Portrait: what is drawn of a posterior is what is in it, for our trees and for anybody's."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from scalingkit.infer import portrait as module
from scalingkit.infer.laplace import laplace
from scalingkit.infer.marginal import density, on_log, window
from scalingkit.infer.model import Model
from scalingkit.infer.pooling import Partial, Separate
from scalingkit.infer.portrait import FIT, PortraitError, offered, portrait
from scalingkit.infer.predict import predict
from tests.infer.conftest import make_table


@pytest.fixture(scope="module")
def tree() -> xr.DataTree:
    runs = make_table(90)
    tilt = np.where(runs["corpus"] == "web", 1.1, 1.0)  # one corpus is worse at every size
    model = Model("chinchilla", {"E": Separate("corpus"), "alpha": Partial("corpus"), "beta": Partial("family")})
    return laplace(model, runs.assign(loss=runs["loss"] * tilt), draws=600)


def foreign() -> xr.DataTree:
    """A tree that another package made: a number, one a school, and its replicated outcomes."""
    rng = np.random.default_rng(0)
    theta = rng.normal(0, [[[1.0, 2.0, 3.0]]], (4, 200, 3))
    post = {"mu": (("chain", "draw"), rng.normal(5, 1, (4, 200))), "theta": (("chain", "draw", "school"), theta)}
    y = (("chain", "draw", "obs"), rng.normal(0, 1, (4, 200, 50)))
    coords = {"chain": range(4), "draw": range(200)}
    return xr.DataTree.from_dict(
        {
            "/posterior": xr.Dataset(post, coords=coords | {"school": ["a", "b", "c"]}),
            "/posterior_predictive": xr.Dataset({"y": y}, coords=coords),
            "/observed_data": xr.Dataset({"y": ("obs", rng.normal(0, 1, 50))}),
        }
    )


def draws_of(tree, name, **group):
    return tree["posterior"][name].sel(group).values.ravel()


def test_what_can_be_chosen(tree):
    can = offered(tree)
    assert can["params"][:5] == ["E", "A", "alpha", "B", "beta"] and "sigma" in can["params"]
    assert set(can["dims"]) == {"corpus", "family"}
    assert len(can["groups"]) == 6 and can["along"] == ["N", "D", FIT] and can["law"] == "chinchilla"


def test_densities_are_those_of_each_group_s_draws(tree):
    read = portrait(tree, ["E", "alpha", "beta"], level=0.5)
    group = str(read["group"].values[1])
    where = offered(tree)["labels"][group]
    x = draws_of(tree, "E", corpus=where["corpus"])
    one = read.sel(param="E")
    low, high = read["interval"].sel(param="E", group=group).values[[0, 2]]
    np.testing.assert_allclose([low, high], np.quantile(x, [0.05, 0.95]))
    grid, height = one["value"].values, one["density"].sel(group=group).values
    assert grid[int(np.argmax(height))] == pytest.approx(np.median(x), abs=x.std())
    fine = np.linspace(low, high, 500)
    assert np.trapezoid(np.interp(fine, grid, height), fine) == pytest.approx(0.9, abs=0.04)
    other = next(g for g in read["group"].values if offered(tree)["labels"][g]["corpus"] == "web")
    assert read["interval"].sel(param="E", group=other)[0] > high  # the worse corpus is told apart
    assert not read["shared"].any()


def test_prior_and_posterior_on_one_scale(tree):
    read = portrait(tree, ["alpha", "beta", "alpha_sd", "sigma"])
    prior, post = (np.ravel(tree[k]["alpha_sd"].values) for k in ("prior", "posterior"))
    assert bool(read["log"].sel(param="alpha_sd")) and bool(read["shared"].sel(param="alpha_sd"))
    expected = np.log10(post).std() / np.log10(prior).std()
    np.testing.assert_allclose(read["sd_ratio"].sel(param="alpha_sd"), expected)
    assert float(read["sd_ratio"].sel(param="sigma").max()) < 0.7
    grid = read["value"].sel(param="sigma").values
    mass = np.trapezoid(read["prior_density"].sel(param="sigma"), grid)
    sigma = np.ravel(tree["prior"]["sigma"].values)
    sigma = np.log10(sigma) if bool(read["log"].sel(param="sigma")) else sigma
    assert mass == pytest.approx(np.mean((sigma >= grid[0]) & (sigma <= grid[-1])), abs=0.05)


def test_density_of_a_part_keeps_its_mass():
    x = np.random.default_rng(0).standard_normal(20_000)
    grid = np.linspace(-0.5, 0.5, 64)
    np.testing.assert_allclose(density(x, grid), stats.norm.pdf(grid), rtol=0.06)
    whole = np.linspace(-6, 6, 128)
    assert abs(density(x, whole) - stats.norm.pdf(whole)).max() < 0.02
    assert density(np.full(50, 3.0), whole).max() == 0


def test_windows_and_scales():
    post, prior = np.random.default_rng(0).normal(1, 0.01, 4000), np.random.default_rng(1).normal(0, 10, 4000)
    low, high = window(post, prior)
    assert low < 0.97 and high > 1.03 and high - low < 0.6  # the posterior is no needle
    assert window(np.full(9, 2.0), None) == (1.0, 3.0)
    assert (
        on_log(np.geomspace(1, 100, 50)) and not on_log(np.linspace(9, 10, 50)) and not on_log(np.linspace(-9, 9, 50))
    )


def test_the_strongest_pair_is_shown_unless_another_is_asked_for(tree):
    read = portrait(tree, ["E", "A", "alpha", "beta"])
    assert list(read["axis"].values) == ["A", "alpha"] and abs(read["cloud_correlation"]).min() > 0.9
    asked = portrait(tree, ["E", "A", "alpha", "beta"], pair=("sigma", "beta"))
    assert list(asked["axis"].values) == ["sigma", "beta"]
    half = portrait(tree, ["E", "A", "alpha", "beta"], pair=(None, "alpha"))
    assert list(half["axis"].values) == ["A", "alpha"]
    one = portrait(tree, ["alpha"])
    assert one["axis"].values[0] == "alpha" != one["axis"].values[1]
    group = str(asked["group"].values[0])
    where = offered(tree)["labels"][group]
    joint = np.stack([draws_of(tree, "sigma"), draws_of(tree, "beta", family=where["family"])])
    assert all((abs(joint - p[:, None]).max(0) < 1e-12).any() for p in asked["cloud"].sel(group=group).values.T[:20])


def test_the_band_is_that_of_predict(tree):
    group = offered(tree)["groups"][0]
    read = portrait(tree, groups=[group], along="D", level=0.25, reach=10, prob=0.8)
    where = offered(tree)["labels"][group]
    data = tree["constant_data"].dataset
    mine = np.all([data[d].values.astype(str) == v for d, v in where.items()], axis=0)
    N, D = data["N"].values[mine], data["D"].values[mine]
    assert float(read["held"].sel(input="N")[0]) == pytest.approx(np.quantile(N, 0.25))
    assert read["x"].values[0, [0, -1]] == pytest.approx([D.min(), 10 * D.max()])
    x = read["x"].values[0, 7]
    design = {"N": np.quantile(N, 0.25), "D": x} | {d: str(v) for d, v in where.items()}
    curve = predict(tree, design)["loss"].values.ravel()
    np.testing.assert_allclose(read["band"][0, 7], np.quantile(curve, [0.1, 0.5, 0.9]), rtol=0.01)
    wide = read["outcome"][0, 7, 2] - read["outcome"][0, 7, 0]
    assert float(wide) > float(read["band"][0, 7, 2] - read["band"][0, 7, 0])


def test_runs_are_moved_along_the_median_curve(tree):
    group = offered(tree)["groups"][0]
    read = portrait(tree, groups=[group], along="N")
    assert (read["run_group"] == 0).all() and read.sizes["run"] == 15
    middle = np.interp(np.log(read["run_x"]), np.log(read["x"][0]), read["band"][0, :, 1])
    apart = np.log(read["run_y"].values / middle)
    assert np.abs(apart).max() < 0.12 and np.abs(np.log(read["run_seen"].values / middle)).max() > 0.15
    seen = tree["observed_data"]["loss"].to_series()
    np.testing.assert_allclose(seen.loc[read["run_label"].values], read["run_seen"])


def test_runs_against_what_is_replicated(tree):
    read = portrait(tree, along=FIT, prob=0.9)
    assert "band" not in read and read.sizes["run"] == 90
    inside = (read["run_y"] >= read["run_lower"]) & (read["run_y"] <= read["run_upper"])
    assert 0.8 < float(inside.mean()) <= 1
    one = tree["posterior_predictive"]["loss"].sel(run=read["run_label"].values[3]).values
    assert float(read["run_x"][3]) == pytest.approx(np.median(one), rel=0.01)
    some = portrait(tree, groups=offered(tree)["groups"][:2], along=FIT)
    assert some.sizes["run"] == 30 and set(some["run_group"].values) == {0, 1}


def test_a_tree_of_another_package():
    tree = foreign()
    can = offered(tree)
    assert can["params"] == ["mu", "theta"] and can["groups"] == ["a", "b", "c"] and can["along"] == [FIT]
    read = portrait(tree, groups=["a", "c"])
    spread = np.diff(read["interval"].sel(param="theta").values[:, [0, 2]], axis=-1).ravel()
    np.testing.assert_allclose(spread, [1 * 3.29, 3 * 3.29], rtol=0.1)
    assert np.isnan(read["sd_ratio"]).all() and np.isnan(read["prior_density"]).all()
    assert bool(read["shared"].sel(param="mu")) and not bool(read["shared"].sel(param="theta"))
    assert read.sizes["run"] == 50 and (read["run_group"] == -1).all()  # nobody says whose they are
    bare = xr.DataTree.from_dict({"/posterior": tree["posterior"].to_dataset()})
    assert portrait(bare)["run_x"].size == 0


def test_what_the_tree_does_not_have_is_refused(tree):
    for wrong, said in (
        (dict(params=["alhpa"]), "did you mean 'alpha'"), (dict(groups=["c5"]), "no group 'c5'"),
        (dict(params=["E", "A", "B", "alpha", "beta"]), "1 to 4"), (dict(along="M"), "no input 'M'"),
        (dict(pair=("x", None)), "no parameter 'x'"), (dict(params=[]), "1 to 4"), (dict(prob=1.0), "prob"),
        (dict(reach=0.5), "reach"), (dict(level=2.0), "level"),
    ):  # fmt: skip
        with pytest.raises(PortraitError, match="(?i)" + said):
            portrait(tree, **wrong)
    with pytest.raises(PortraitError, match="no posterior"):
        portrait(xr.DataTree.from_dict({"/prior": xr.Dataset()}))


def test_one_law_for_all_runs_is_one_group():
    tree = laplace(Model("chinchilla"), make_table(40), draws=300)
    read = portrait(tree)
    assert list(read["group"].values) == [module.ALL] and not read["shared"].any() and read.sizes["run"] == 40
    assert read["band"].shape == (1, read.sizes["x_point"], 3)
