"""The TPP-diversity threshold: closed form, reference numbers, and its sharpness on either side."""

import numpy as np
import pytest

from scalingkit.core import zoo
from scalingkit.design import grids, thresholds
from scalingkit.design.information import condition
from scalingkit.design.thresholds import kappa, local_slopes, spread, spread_needed, threshold, tpp_threshold

SIZES = np.geomspace(1e8, 1e10, 12)


@pytest.fixture(scope="module")
def law():
    return zoo.get("chinchilla", "laws")


def theta(alpha, beta):
    return dict(E=1.82, A=482.0, alpha=alpha, B=2085.0, beta=beta)


def test_reference_numbers():
    assert tpp_threshold(0.34, 100) == pytest.approx(0.588, abs=5e-4)
    assert tpp_threshold(0.34, 1000) == pytest.approx(0.186, abs=5e-4)
    assert np.exp(tpp_threshold(0.34, 100)) == pytest.approx(1.8, abs=0.01)
    np.testing.assert_allclose(kappa(spread_needed([2.0, 100.0, 1e6])), [2.0, 100.0, 1e6], rtol=1e-9)


def test_with_the_floor_on_a_ray():
    assert thresholds.kappa_with_floor(0.34, 0.33, 1.3) == pytest.approx(44526, rel=1e-5)
    assert thresholds.kappa_with_floor_on_ray(0.34, 0.01, 1.3) == pytest.approx(44447, rel=2e-5)
    gaps = np.array([0.1, 0.05, 0.02, 0.01])
    slopes = local_slopes(gaps, [thresholds.kappa_with_floor(0.34, 0.34 - g, 1.3) for g in gaps])
    assert abs(slopes[-1] + 2) < 0.05


def test_floor_formula_against_a_gaussian_design(law):
    design = grids.gaussian(2**15, 1.3, 0.6)
    t = theta(0.34, 0.28)
    f, g = design["N"].values ** -0.34, design["D"].values ** -0.28
    c = np.corrcoef(f, g)[0, 1]
    assert thresholds.kappa_with_floor(0.34, 0.28, 1.3, 0.6) == pytest.approx((1 + c) / (1 - c), rel=0.02)
    assert float(condition(law, t, design, block="scale+E")) > float(condition(law, t, design, block="scale"))


@pytest.mark.parametrize("kappa_star", [30.0, 100.0, 1000.0])
@pytest.mark.parametrize(("gap", "corr"), [(0.0, 0.0), (0.03, 0.0), (0.03, 0.4)])
def test_threshold_is_sharp_on_either_side(law, kappa_star, gap, corr):
    beta = 0.34
    sd = tpp_threshold(beta, kappa_star, alpha=beta + gap, sd_size=1.3, corr=corr)
    t = theta(beta + gap, beta)
    below, above = (float(condition(law, t, grids.gaussian(2**14, 1.3, s * sd, corr=corr))) for s in (0.97, 1.03))
    assert below > kappa_star > above
    assert spread(beta + gap, beta, 1.3, sd, corr * 1.3 * sd) == pytest.approx(float(spread_needed(kappa_star)))


def test_a_wide_gap_needs_no_spread():
    assert tpp_threshold(0.28, 1000, alpha=0.4, sd_size=1.3) == 0.0


def test_relative_error_version_is_sharp(law):
    n, s, rho = 48, 0.01, 0.1
    t = theta(0.34, 0.34)
    base = grids.gaussian(n, 1.3, 0.5)
    f2 = float(np.mean((482 * base["N"].values ** -0.34) ** 2))
    sd = tpp_threshold(0.34, rel_se=rho, n=n, noise=s, mean_square=f2)
    v = spread(0.34, 0.34, 1.3, sd)
    assert s * np.sqrt(thresholds.vif(v) / (n * f2)) == pytest.approx(rho)
    design = grids.gaussian(2**14, 1.3, sd)
    scale = np.sqrt(design.sizes["run"] / n)  # as if there were n of them
    f2 = float(np.mean((482 * design["N"].values ** -0.34) ** 2))
    sd = tpp_threshold(0.34, rel_se=rho, n=n, noise=s, mean_square=f2)
    wide, tight = (
        thresholds.relative_error(law, t, grids.gaussian(2**14, 1.3, m * sd), s * scale) for m in (0.95, 1.05)
    )
    assert wide > rho > tight
    assert np.isinf(tpp_threshold(0.34, rel_se=1e-6, n=n, noise=s, mean_square=f2))


def test_kaplan_reference():
    kaplan = zoo.get("kaplan", "laws")
    t = _kaplan(kaplan, 0.095, 0.03)
    ray = grids.ray(np.geomspace(1e8, 1e10, 30))
    assert float(condition(kaplan, t, ray)) == pytest.approx(2428, rel=1e-3)
    v = thresholds.weighted_spread(kaplan, t, ray)
    assert 4 / v == pytest.approx(2457, rel=1e-3)
    gaps = np.array([0.1, 0.05, 0.025, 0.0125])
    kappas = [float(condition(kaplan, _kaplan(kaplan, 0.095, g), ray)) for g in gaps]
    assert abs(local_slopes(gaps, kappas)[-1] + 2) < 0.05


def _kaplan(law, alpha_D, gap):
    names = {k.lower(): k for k in law.params}
    values = {"nc": 8.8e13, "dc": 5.4e13, "alpha_n": alpha_D * (1 + gap), "alpha_d": alpha_D}
    return {names[k]: v for k, v in values.items()}


LAWS = {
    "chinchilla": "scale",
    "kaplan": "scale",
    "data_constrained": "scale",
    "precision_aware": "scale+E",
    "farseer": "scale+E",
}


@pytest.mark.parametrize("name", LAWS)
def test_threshold_of_any_law_is_sharp(name):
    law, block = zoo.get(name, "laws"), LAWS[name]
    ray = _with_all_inputs(law, grids.ray(SIZES))
    narrow, wide = (float(condition(law, law.truth, thresholds.widened(ray, s), block=block)) for s in (0.0, 1.5))
    assert narrow > wide
    goal = np.sqrt(narrow * wide)
    found = threshold(law, law.truth, ray, goal, block=block)
    assert 0 < float(found["sd_tpp"]) < 1.5
    assert float(found["below"]) > goal > float(found["above"])
    np.testing.assert_allclose(found["N"] * found["D"], ray["N"] * ray["D"], rtol=1e-12)


def test_fixed_repetition_is_collinear_and_varying_it_adds_spread():
    """D = k N, two passes over every run's own unique tokens: exactly collinear at equal exponents (as printed)."""
    law = zoo.get("data_constrained", "laws")
    t = law.truth | dict(beta=law.truth["alpha"])
    ray = grids.ray(SIZES, 5.0)
    twice = ray.assign(U=("run", ray["D"].values / 2))
    varied = ray.assign(U=("run", ray["D"].values / np.resize([1.0, 4.0, 30.0], SIZES.size)))
    assert np.isinf(condition(law, t, twice)) or float(condition(law, t, twice)) > 1e12
    assert float(condition(law, t, varied)) < 1e6


def test_no_design_meets_what_cannot_be_met(law):
    found = threshold(law, theta(0.34, 0.34), grids.ray(SIZES), 1.0001)
    assert np.isinf(found["sd_tpp"]) and np.isnan(found["above"])


def test_fixed_precision_is_chinchilla_with_another_coefficient():
    law = zoo.get("precision_aware", "laws")
    ray = _with_all_inputs(law, grids.ray(SIZES))
    chinchilla = zoo.get("chinchilla", "laws")
    t = law.truth
    like = {k: t[k] for k in chinchilla.params}
    assert float(condition(law, t, ray)) == pytest.approx(float(condition(chinchilla, like, ray)), rel=1e-6)


def test_autodiff_threshold_meets_the_closed_form(law):
    base = grids.gaussian(2**12, 1.3, 0.0)
    found = threshold(law, theta(0.34, 0.34), base, 100.0)
    # three levels instead of a Gaussian, and sizes moved to keep the cost: near the closed form, not equal to it
    assert float(found["sd_tpp"]) == pytest.approx(tpp_threshold(0.34, 100), rel=0.25)


def test_relative_error_threshold_by_autodiff(law):
    found = threshold(law, theta(0.34, 0.34), grids.ray(SIZES), rel_se=0.1, noise=0.01, block="scale+E")
    assert float(found["below"]) > 0.1 > float(found["above"])


def test_refusals():
    with pytest.raises(grids.DesignError, match="must exceed 1"):
        spread_needed(0.5)
    with pytest.raises(grids.DesignError, match="either"):
        tpp_threshold(0.34)
    with pytest.raises(grids.DesignError, match="needs n"):
        tpp_threshold(0.34, rel_se=0.1)


def _with_all_inputs(law, runs):
    from scalingkit.core.names import RUN

    for k in law.inputs:
        if k not in runs:
            low, high = law.example[k][:2]
            runs = runs.assign({k: (RUN, np.full(runs.sizes[RUN], np.sqrt(low * high)))})
    return runs
