"""The explorer's numbers are those of the plain functions and of the closed forms; nothing else moves with a slider."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm, qmc

from scalingkit.core import zoo
from scalingkit.core.precision import PrecisionError
from scalingkit.design import bands, explorer, grids, thresholds
from scalingkit.design.contraction import contraction
from scalingkit.design.explorer import CENTRE, SIZES, explored, gap_of, theta_at
from scalingkit.design.information import condition, fisher, jacobian
from scalingkit.design.profile import profile
from scalingkit.infer.coordinates import of as coordinates

LAW = zoo.get("chinchilla", "laws")
KAPLAN = zoo.get("kaplan", "laws")


def plain(read: xr.Dataset, design: str = "planned") -> xr.Dataset:
    """The runs of a result, for the plain functions."""
    return grids.design(read["N"].sel(design=design).values, read["D"].sel(design=design).values)


def values(read: xr.Dataset) -> dict[str, float]:
    return {str(k): float(read["theta"].sel(param=k)) for k in read["param"].values}


@pytest.fixture(scope="module")
def read() -> xr.Dataset:
    return explored(gap=0.05, sd_log_tpp=0.6, noise=0.005, runs=20)


@pytest.mark.parametrize(("law", "gap"), [("chinchilla", 0.05), ("chinchilla", -0.1), ("kaplan", 0.1)])
def test_condition_numbers_are_the_plain_functions(law, gap):
    read = explored(law, gap, 0.3, runs=13)
    for design in ("ray", "planned"):
        for block in read["block"].values:
            own = float(read["kappa"].sel(design=design, block=block))
            wanted = float(condition(zoo.get(law, "laws"), values(read), plain(read, design), block=block))
            # a singular value is known to rounding of the largest
            assert own == pytest.approx(wanted, rel=max(1e-9, 1e-14 * np.sqrt(wanted)))
            eigen = read["eigenvalue"].sel(design=design, block=block).dropna("rank").values
            assert eigen.max() / eigen.min() == pytest.approx(own) and eigen.sum() == pytest.approx(eigen.size)
    ray, spread = (read["kappa"].sel(block="full", design=d) for d in ("ray", "planned"))
    assert float(ray) > 100 * float(spread)  # the two designs are not the same numbers


def test_coth_is_the_condition_number_on_a_gaussian_spread():
    normal = norm.ppf(qmc.Sobol(1, seed=0).random(64)[:, 0])
    for law, gap in (("chinchilla", 0.06), ("kaplan", 0.02)):
        read = explored(law, gap, 0.5, runs=64, levels=normal).sel(design="planned")
        own = zoo.get(law, "laws")
        assert float(read["v"]) == pytest.approx(
            thresholds.weighted_spread(own, values(read), plain(read.expand_dims("design"))), rel=1e-9
        )
        assert float(read["kappa_formula"]) == pytest.approx(float(1 / np.tanh(read["v"] / 4)))
        assert float(read["kappa"].sel(block="scale")) == pytest.approx(float(read["kappa_formula"]), rel=0.05)
        assert float(read["kappa"].sel(block="full")) > 10 * float(read["kappa_formula"])  # another statement


def test_on_a_ray_the_slopes_are_two_and_six():
    gaps = (0.01, 0.005)
    found = [explored(gap=g)["kappa"].sel(design="ray") for g in gaps]
    for block, slope in (("scale", -2), ("scale+E", -2), ("full", -6)):
        kappa = [float(k.sel(block=block)) for k in found]
        assert thresholds.local_slopes(gaps, kappa)[0] == pytest.approx(slope, abs=0.25)


@pytest.mark.parametrize(("goal", "gap"), [(100.0, 0.0), (1000.0, 0.0), (1000.0, -0.018), (100.0, 0.05)])
def test_the_threshold_is_sharp_and_the_plain_functions(goal, gap):
    read = explored(gap=gap, kappa_goal=goal)
    needed = float(read["sd_needed"])
    ray = grids.ray(np.geomspace(*SIZES, 12))
    assert needed == pytest.approx(float(thresholds.threshold(LAW, values(read), ray, goal)["sd_tpp"]), rel=1e-4)
    for factor, met in ((0.99, False), (1.01, True)):
        after = explored(gap=gap, sd_log_tpp=factor * needed, kappa_goal=goal)
        assert (float(after["kappa"].sel(design="planned", block="scale")) <= goal) == met
    assert float(read["sd_formula"]) == pytest.approx(needed, rel=0.1)


def test_the_worst_cases_closed_form():
    read = explored(gap=0.0, kappa_goal=100.0)
    middle = (LAW.truth["alpha"] + LAW.truth["beta"]) / 2
    assert float(read["sd_formula"]) == pytest.approx(2 / middle * np.sqrt(np.arctanh(0.01)))
    assert np.isinf(read["kappa"].sel(design="ray")).all() and np.isinf(read["kappa_formula"].sel(design="ray"))


def test_no_threshold_is_needed_where_the_exponents_differ_and_none_exists_for_a_kappa_of_one():
    assert float(explored("kaplan", -0.25)["sd_needed"]) == 0
    assert np.isinf(explored(kappa_goal=1.0001)["sd_needed"])


def test_standard_errors_and_ellipses_are_those_of_the_information(read):
    F = fisher(LAW, values(read), plain(read), 0.005, coords="log").values
    cov = np.linalg.inv(F)
    np.testing.assert_allclose(read["se"].sel(design="planned"), np.sqrt(np.diag(cov)), rtol=1e-6)
    names = list(LAW.params)
    theta = values(read)
    for pair, keys in (("exponents", ("alpha", "beta")), ("coefficients", ("A", "B"))):
        k = [names.index(n) for n in keys]
        unit = np.array([theta[n] if pair == "exponents" else 1 / np.log(10) for n in keys])
        centre = np.array([theta[n] if pair == "exponents" else np.log10(theta[n]) for n in keys])
        away = read["ellipse"].sel(design="planned", pair=pair).values - centre[:, None]
        C = cov[np.ix_(k, k)] * np.outer(unit, unit)
        square = np.einsum("ia,ij,ja->a", away, np.linalg.inv(C), away)
        np.testing.assert_allclose(square, -2 * np.log(0.1), rtol=1e-5)
        wrong = np.einsum("ia,ij,ja->a", away, np.linalg.inv(C * np.eye(2)), away)
        assert np.ptp(wrong) > 1  # without the correlation it is another ellipse


def test_the_band_is_that_of_the_runs_alone(read):
    tpp = read["tpp"].values
    size = np.sqrt(1e23 / 6 / tpp)
    at = grids.design(size, size * tpp)
    np.testing.assert_allclose(at["C"], 1e23)
    np.testing.assert_allclose(read["loss"], np.asarray(LAW(N=at["N"].values, D=at["D"].values, **values(read))))
    J, j = (jacobian(LAW, values(read), one, coords="log", of="log").values for one in (plain(read), at))
    np.testing.assert_allclose(read["band"].sel(design="planned"), bands.data_only(J, j, 0.005), rtol=1e-6)
    assert (read["band"].sel(design="ray") > 10 * read["band"].sel(design="planned")).all()


def test_the_profile_is_the_likelihoods(read):
    c, runs = coordinates(LAW), plain(read)
    x = np.stack([runs["N"].values, runs["D"].values], -1)
    pivots = np.exp(np.log(x).mean(0))
    u = c.unconstrained(values(read), dict(zip("ND", pivots, strict=True)))
    y = np.log(np.asarray(LAW(N=x[:, 0], D=x[:, 1], **values(read))))
    se = float(read["se"].sel(design="planned", param="alpha"))
    # a prior sd so wide that only the likelihood sets the walk
    whole = profile(c, "log", u, x / pivots, y, np.full(20, 0.005**-2), np.full(5, se), np.full(5, 100.0))
    i = c.names.index("alpha")
    at = np.interp(np.log(read["profile_value"].values), np.log(whole.value[i]), whole.deviance[i])
    near = read["profile_deviance"].values < 6
    assert near.sum() >= 7
    np.testing.assert_allclose(read["profile_deviance"].values[near], at[near], rtol=0.02, atol=0.02)
    # near the middle the quadratic form, further out no longer
    off = abs(read["profile_deviance"] / read["profile_quadratic"].where(read["profile_quadratic"] > 0) - 1)
    assert float(off[10]) < 0.15 and float(off.max()) > 0.05
    low, high = read["profile_interval"].values
    assert low < values(read)["alpha"] < high


def test_a_ray_has_no_end_to_its_profile():
    read = explored()
    assert np.isinf(read["profile_interval"]).all() and float(read["profile_deviance"].max()) < 0.1


def test_the_weakest_direction_is_that_of_the_contraction(read):
    wanted = contraction(LAW, values(read), plain(read), 0.005)
    assert float(read["contraction"]) == pytest.approx(float(wanted["direction_contraction"][0]), rel=1e-6)
    assert float(explored(gap=0.05, noise=0.005, runs=20)["contraction"]) < 0.01 < float(read["contraction"])
    assert "alpha" in read.attrs["weakest"]


def test_the_spread_costs_what_the_ray_costs_and_has_the_sd_asked_for(read):
    cost = read["N"] * read["D"]
    np.testing.assert_allclose(cost.sel(design="planned"), cost.sel(design="ray"))
    tau = np.log(read["D"] / read["N"])
    assert float(tau.sel(design="planned").std()) == pytest.approx(0.6)
    np.testing.assert_allclose(tau.sel(design="ray"), np.log(20))


@pytest.mark.parametrize("law", ["chinchilla", "kaplan"])
def test_the_gap_moves_the_exponents_and_nothing_else(law):
    own, (N, D) = zoo.get(law, "laws"), CENTRE
    now = gap_of(own, own.truth)
    for k, v in theta_at(own, now).items():
        assert v == pytest.approx(own.truth[k])
    moved = theta_at(own, 0.08)
    assert gap_of(own, moved) == pytest.approx(0.08) and abs(now - 0.08) > 0.05
    loss = [float(own(N=N, D=D, **t)) for t in (own.truth, moved)]
    assert loss[0] == pytest.approx(loss[1])
    away = [float(own(N=10 * N, D=D, **t)) for t in (own.truth, moved)]
    assert away[0] != pytest.approx(away[1], rel=1e-3)


def test_another_number_of_runs_compiles_nothing():
    explored(runs=10, sd_log_tpp=0.2)
    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: compiled.append(event))
    try:
        for n in (3, 9, 31, 64):
            explored(gap=0.01 * n / 10, sd_log_tpp=0.01 * n, noise=0.001 * n, runs=n, budget=1e21 * n)
        assert not [e for e in compiled if "backend_compile" in e]
        jax.jit(lambda v: v * 17.375 + 5)(np.ones(7)).block_until_ready()
        assert [e for e in compiled if "backend_compile" in e]  # the count can see a compilation
    finally:
        jax.monitoring.clear_event_listeners()


def test_too_few_runs_for_the_parameters_know_nothing():
    read = explored(runs=4, sd_log_tpp=0.5)
    assert np.isinf(read["kappa"].sel(block="full")).all() and np.isinf(read["se"]).all()
    assert np.isfinite(read["kappa"].sel(block="scale", design="planned"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"law": "chincilla"}, "Did you mean"), ({"gap": 0.8}, "no positive exponent"), ({"gap": np.nan}, "not a number"),
        ({"law": "kaplan", "gap": -1.0}, "must exceed -1"), ({"runs": 2}, "from 3 to 64"), ({"runs": 7.5}, "whole number"),
        ({"sd_log_tpp": -0.1}, "between 0"), ({"noise": 0.0}, "noise"), ({"budget": np.inf}, "budget"),
        ({"kappa_goal": 1.0}, "must exceed 1"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(wrong, said):
    with pytest.raises(grids.DesignError, match=said):
        explored(**wrong)


def test_single_precision_is_refused():
    with jax.enable_x64(False), pytest.raises(PrecisionError):
        explored()


def test_the_module_keeps_what_it_shows_apart():
    assert explorer.blocks(LAW) == ("scale", "scale+E", "full") and explorer.blocks(KAPLAN) == ("scale", "full")
    assert explorer.pairs(KAPLAN) == (("alpha_N", "alpha_D"), ("Nc", "Dc"))
