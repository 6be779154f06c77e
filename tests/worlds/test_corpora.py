"""The world of corpora: designs as named, truth as declared, optimum as searched for."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from scalingkit.worlds import corpora

THETA = dict(E=1.8, a=0.35, alpha=0.34, b=0.33, beta=0.28, level_sd=0.1, exponent_sd=0.03, noise=0.01)
FLAT = THETA | dict(level_sd=0.0, exponent_sd=0.0, noise=0.0)


def test_a_ray_has_one_ratio_and_a_spread_several():
    ratio = lambda d: np.unique(np.round(d["D"] / d["N"], 9))  # noqa: E731
    assert ratio(corpora.ray(["a", "b"], [1e8, 1e9])).tolist() == [20.0]
    assert ratio(corpora.spread(["a", "b"], [1e8, 1e9])).tolist() == [5.0, 20.0, 80.0]


def test_an_isoflop_design_keeps_its_budgets():
    design = corpora.isoflop(["a"], [1e19, 1e20], [1e8, 3e8], 4.0, 5)
    assert design.sizes["run"] == 10 and np.allclose(np.unique(np.round(np.log10(design["C"]), 9)), [19, 20])
    assert design["N"].values.min() == pytest.approx(1e8 / 4) and design["N"].values.max() == pytest.approx(1.2e9)


def test_runs_are_labelled_once():
    design = corpora.spread(["a", "b"], [1e8, 1e9])
    assert len(set(design["run"].values)) == design.sizes["run"] == 12
    assert design["N"].attrs["units"] == "parameter" and design.attrs["source"] == "simulated"


def test_without_spread_or_noise_the_loss_is_the_formula():
    design = corpora.spread(["a"], [1e8, 1e9, 1e10])
    N, D = design["N"].values, design["D"].values
    expected = 1.8 + 0.35 * (N / 1e9) ** -0.34 + 0.33 * (D / 2e10) ** -0.28
    found = corpora.simulate(3, design, **FLAT)
    np.testing.assert_allclose(found["loss"], expected, rtol=1e-14)
    np.testing.assert_allclose(corpora.mean_loss(design, **FLAT), expected, rtol=1e-14)


def test_constants_are_those_that_made_the_loss():
    design = corpora.spread(["a", "b", "c"], [1e8, 1e10])
    truth, found = corpora.constants(5, design, **THETA), corpora.simulate(5, design, **THETA)
    for c in ("a", "b", "c"):
        t, rows = {k: float(v) for k, v in truth.sel(corpus=c).items()}, found["corpus"].values == c
        N, D = design["N"].values[rows], design["D"].values[rows]
        mean = t["E"] + t["a"] * (N / 1e9) ** -t["alpha"] + t["b"] * (D / 2e10) ** -t["beta"]
        np.testing.assert_allclose(found["mean_loss"].values[rows], mean, rtol=1e-13)
    other = corpora.constants(6, design, **THETA)
    assert not np.allclose(other["alpha"], truth["alpha"])


def test_the_spread_between_corpora_is_as_declared():
    design = corpora.ray([f"c{i}" for i in range(4000)], [1e9])
    truth = corpora.constants(1, design, **THETA)
    n = 4000
    assert float(truth["alpha"].std()) == pytest.approx(0.03, rel=4 / np.sqrt(2 * n))
    assert float(np.log(truth["a"]).std()) == pytest.approx(0.1, rel=4 / np.sqrt(2 * n))
    assert float(truth["a"].mean()) == pytest.approx(0.35, abs=4 * 0.035 / np.sqrt(n))
    correlation = np.corrcoef([truth[k].values for k in truth])
    assert np.abs(correlation - np.eye(5)).max() < 4.5 / np.sqrt(n)


@pytest.mark.parametrize("change", [{}, dict(alpha=0.5, beta=0.2), dict(a=0.1, b=0.9)])
def test_the_optimum_is_the_lowest_of_a_fine_grid(change):
    theta = FLAT | change
    for C in (1e19, 1e22, 1e25):
        best = float(corpora.optimal_size(C, **theta))
        N = best * np.geomspace(0.5, 2, 100_001)
        loss = corpora.mean_loss(corpora.runs(["a"], N, C / (6 * N)), **theta)
        assert N[np.argmin(loss)] == pytest.approx(best, rel=2e-4)
        assert 6 * best * float(corpora.optimal_tokens(C, **theta)) == pytest.approx(C)


def test_exact_optimum_goes_by_the_compute_of_the_design():
    design = corpora.ray(["a"], [1e8, 1e9])
    found = corpora.world.exact["N_opt"](design, **THETA)
    np.testing.assert_allclose(found, corpora.optimal_size(6 * design["N"].values * design["D"].values, **THETA))
    np.testing.assert_allclose(corpora.world.exact["D_opt"](design, **THETA) * found * 6, design["C"].values)


def test_a_key_of_jax_serves_as_well_as_a_number():
    design = corpora.ray(["a"], [1e8, 1e9])
    a, b = (corpora.simulate(jax.random.key(s), design, **THETA)["loss"].values for s in (0, 1))
    again = corpora.simulate(jax.random.key(0), design, **THETA)["loss"].values
    assert np.array_equal(a, again) and not np.array_equal(a, b)
