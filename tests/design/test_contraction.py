"""Contraction: Laplace against the exact conjugate posterior, and what pooling can and cannot do."""

import numpy as np
import pytest
import xarray as xr

from scalingkit.core import zoo
from scalingkit.design import grids, prior
from scalingkit.design.contraction import contraction, directions, laplace, per_parameter
from scalingkit.design.information import fisher, jacobian

SIZES = np.geomspace(3e8, 3e10, 10)
TRUTH = dict(E=1.82, A=482.0, alpha=0.348, B=2085.0, beta=0.366)
TAU = dict.fromkeys(TRUTH, ("corpus", 0.05))


@pytest.fixture(scope="module")
def law():
    return zoo.get("chinchilla", "laws")


def corpora(tpps):
    parts = [grids.ray(SIZES, k) for k in tpps]
    for i, p in enumerate(parts):
        parts[i] = p.assign_coords(run=[f"{i}-{r}" for r in p["run"].values], corpus=("run", [f"c{i}"] * SIZES.size))
    return xr.concat(parts, "run")


def weakest(law, runs, **more):
    return float(contraction(law, TRUTH, runs, 0.01, **more)["direction_contraction"][0])


def test_laplace_is_bayes_theorem():
    rng = np.random.default_rng(0)
    J, sd = rng.standard_normal((7, 3)), np.array([0.5, 1.0, 2.0])
    cov = laplace(J, 0.3, sd)
    np.testing.assert_allclose(np.linalg.inv(cov), np.diag(1 / sd**2) + J.T @ J / 0.09, rtol=1e-9)
    values, vectors = directions(cov, sd)
    assert np.all(np.diff(values) >= 0) and np.all(values <= 1)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(3), atol=1e-12)
    assert np.all(per_parameter(cov, sd) > 0)
    assert np.all(per_parameter(laplace(J[:0], 0.3, sd), sd) == 0), "no runs, no contraction"


def test_unpooled_equals_the_fisher_route(law):
    runs = grids.spread(SIZES)
    _, sd = prior.moments(law)
    F = fisher(law, TRUTH, runs, 0.01).values
    want = 1 - np.diag(np.linalg.inv(np.diag(1 / sd**2) + F)) / sd**2
    np.testing.assert_allclose(contraction(law, TRUTH, runs, 0.01)["contraction"], want, rtol=1e-7)


def test_prior_moments_exact_and_sampled(law):
    import numpyro.distributions as dist

    mean, sd = prior.moments(law)
    assert mean[2] == pytest.approx(-1.05) and sd[2] == pytest.approx(0.4)
    other = law.with_priors(alpha=dist.Gamma(4.0, 10.0))
    mean, sd = prior.moments(other)  # log Gamma(4): mean digamma(4) - log 10, variance trigamma(4)
    assert mean[2] == pytest.approx(1.256118 - np.log(10), abs=0.02) and sd[2] == pytest.approx(
        np.sqrt(0.283823), rel=0.03
    )


def test_one_level_of_tokens_leaves_beta_to_the_prior(law):
    found = contraction(law, TRUTH, grids.factorial(SIZES, [4.4e9]), 0.01)["contraction"]
    assert float(found.sel(param="beta")) == pytest.approx(0, abs=1e-6)
    assert float(found.sel(param="alpha")) > 0.5
    both = contraction(law, TRUTH, grids.factorial(SIZES, [4.4e9, 4.4e10, 4.4e11]), 0.01)["contraction"]
    assert float(both.sel(param="beta")) > 0.3, "the control: three levels are enough to learn it"


def test_pooling_corpora_that_share_k_does_not_contract_the_sloppy_direction(law):
    one, eight = corpora([20.0]), corpora([20.0] * 8)
    alone, pooled = weakest(law, one, pool=TAU), weakest(law, eight, pool=TAU)
    assert alone < 0.05 and pooled < 0.05
    # complete pooling of everything does not help either
    assert weakest(law, eight) < 0.05
    # the direction is the one that trades size against data
    vector = contraction(law, TRUTH, eight, 0.01, pool=TAU)["vector"].isel(direction=0)
    assert abs(float(vector.sel(param="alpha"))) + abs(float(vector.sel(param="A"))) > 0.5
    # control 1: eight corpora with different k do contract it
    assert weakest(law, corpora(20.0 * np.geomspace(0.1, 10, 8)), pool=TAU) > 0.3
    # control 2: naive pooling (multiplying the eight posteriors, prior and all) claims a contraction of 7/8
    J = jacobian(law, TRUTH, one, coords="pivoted", of="log").values
    _, sd = prior.moments(law)
    naive = directions(laplace(J, 0.01, sd) / 8, sd)[0][0]
    assert naive > 0.85


def test_separate_coefficients_make_different_k_useless(law):
    free = dict.fromkeys(("E", "A", "B"), ("corpus", np.inf))
    runs = corpora(20.0 * np.geomspace(0.1, 10, 8))
    found = contraction(law, TRUTH, runs, 0.01, pool=free)
    assert np.isnan(found["contraction"].sel(param="A"))
    assert float(found["direction_contraction"][0]) < float(weakest(law, runs)) - 0.1


def test_parameters_by_group(law):
    runs = corpora([20.0, 20.0])
    by = {k: xr.DataArray([v, v], dims="corpus", coords={"corpus": ["c0", "c1"]}) for k, v in TRUTH.items()}
    same = contraction(law, TRUTH, runs, 0.01)["contraction"]
    np.testing.assert_allclose(contraction(law, by, runs, 0.01)["contraction"], same, rtol=1e-9)


def test_refusals(law):
    with pytest.raises(grids.DesignError, match="pool names gamma"):
        contraction(law, TRUTH, grids.ray(SIZES), 0.01, pool={"gamma": ("corpus", 0.1)})
    with pytest.raises(grids.DesignError, match="no group column corpus"):
        contraction(law, TRUTH, grids.ray(SIZES), 0.01, pool=TAU)
