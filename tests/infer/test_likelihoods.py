"""Likelihoods: pointwise densities on the outcome's own scale against SciPy; draws; what is refused."""

from __future__ import annotations

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats as st
import xarray as xr
from scipy.integrate import quad

from scalingkit.infer.likelihoods import (
    BetaBinomial,
    Censored,
    DataError,
    LogNormal,
    LogStudentT,
    Normal,
    Rounded,
    find_step,
)
from scalingkit.infer.model import Model
from scalingkit.infer.prepare import prepare

POINTS = 20
rng = np.random.default_rng(5)
M = rng.uniform(1.5, 4.0, POINTS)
Y = M * np.exp(0.05 * rng.standard_normal(POINTS))
SIGMA = rng.uniform(0.01, 0.1, POINTS)
T = rng.normal(size=POINTS)
SE = rng.uniform(0.01, 0.1, POINTS)
HIT = np.arange(POINTS) % 3 == 0


def log_density_of(likelihood, nuisance, columns=None, y=Y):
    return np.asarray(likelihood.observe(M, nuisance, columns or {}).log_prob(y))


CASES = {
    "lognormal": (LogNormal(), {"sigma": SIGMA}, {}, st.lognorm.logpdf(Y, s=SIGMA, scale=M)),
    "student": (
        LogStudentT(), {"sigma": SIGMA, "nu": 4.5}, {}, st.t.logpdf(np.log(Y / M) / SIGMA, 4.5) - np.log(SIGMA) - np.log(Y),
    ),
    "log-linear sigma": (
        LogNormal(sigma_on="log_N"), {"sigma": SIGMA, "sigma_slope": 0.3}, {"sigma_on": T},
        st.lognorm.logpdf(Y, s=SIGMA * np.exp(0.3 * T), scale=M),
    ),
    "normal": (Normal(), {"sigma": SIGMA}, {}, st.norm.logpdf(Y, M, SIGMA)),
    "known errors": (Normal(se="se", sigma=None), {}, {"se": SE}, st.norm.logpdf(Y, M, SE)),
    "known and more": (Normal(se="se"), {"sigma": SIGMA}, {"se": SE}, st.norm.logpdf(Y, M, np.hypot(SE, SIGMA))),
    "rounded": (
        Rounded(step=0.01), {"sigma": SIGMA}, {"step": 0.01},
        np.log(st.lognorm.cdf(Y + 0.005, s=SIGMA, scale=M) - st.lognorm.cdf(Y - 0.005, s=SIGMA, scale=M)) - np.log(0.01),
    ),
    "rounded normal": (
        Rounded(Normal(), step=0.1), {"sigma": SIGMA}, {"step": 0.1},
        np.log(st.norm.cdf(Y + 0.05, M, SIGMA) - st.norm.cdf(Y - 0.05, M, SIGMA)) - np.log(0.1),
    ),
    "censored": (
        Censored(), {"sigma": SIGMA}, {"censored": HIT},
        np.where(HIT, st.lognorm.logsf(Y, s=SIGMA, scale=M), st.lognorm.logpdf(Y, s=SIGMA, scale=M)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_pointwise_log_density(case):
    likelihood, nuisance, columns, want = CASES[case]
    np.testing.assert_allclose(log_density_of(likelihood, nuisance, columns), want, rtol=1e-8, atol=1e-8)
    # negative control: another curve has another density
    other = np.asarray(likelihood.observe(M * 1.01, nuisance, columns).log_prob(Y))
    assert not np.allclose(other, want, rtol=1e-3)


def test_beta_binomial():
    p, n, k = np.linspace(0.05, 0.95, POINTS), np.arange(POINTS) + 10.0, np.arange(POINTS) // 2 + 1.0
    found = BetaBinomial().observe(p, {"phi": 30.0}, {"trials": n}).log_prob(k)
    np.testing.assert_allclose(found, st.betabinom.logpmf(k, n, 30 * p, 30 * (1 - p)), rtol=1e-9)
    edge = (
        BetaBinomial()
        .observe(np.array([0.0, 1.0]), {"phi": 30.0}, {"trials": np.array([5.0, 5.0])})
        .log_prob(np.array([0.0, 5.0]))
    )
    assert np.isfinite(np.asarray(edge)).all()


@pytest.mark.parametrize("case", ["lognormal", "student", "normal", "rounded"])
def test_densities_are_on_the_outcomes_own_scale(case):
    """They integrate to one over y itself: the Jacobian of the log is in."""
    likelihood, nuisance, columns, _ = CASES[case]
    first = {k: np.ravel(v)[0] for k, v in nuisance.items()}
    f = jax.jit(lambda y: likelihood.observe(M[0], first, columns).log_prob(y))
    area, _ = quad(lambda y: float(np.exp(f(y))), 0.02, M[0] * 4, points=[M[0]], limit=200)
    assert area == pytest.approx(1.0, abs=2e-3)


def test_rounding_far_in_the_tails_keeps_its_gradient():
    """40 sds out the two distribution functions are both 1 to machine precision; their difference must not be."""
    likelihood = Rounded(Normal(), step=0.01)
    f = lambda m: likelihood.observe(m, {"sigma": 0.05}, {"step": 0.01}).log_prob(5.0)  # noqa: E731
    for m in (3.0, 7.0):
        np.testing.assert_allclose(f(m), st.norm.logpdf(5.0, m, 0.05), atol=0.2 * 40)
        assert np.isfinite(jax.grad(f)(m))
        np.testing.assert_allclose(jax.grad(f)(m), (5.0 - m) / 0.05**2, rtol=0.01)


def test_a_fine_step_is_the_density_and_a_coarse_one_is_not():
    fine = log_density_of(Rounded(step=1e-5), {"sigma": SIGMA}, {"step": 1e-5})
    np.testing.assert_allclose(fine, CASES["lognormal"][3], atol=1e-4)
    coarse = log_density_of(Rounded(step=0.5), {"sigma": SIGMA}, {"step": 0.5})
    assert not np.allclose(coarse, CASES["lognormal"][3], atol=0.1)


def test_the_step_is_found():
    y = np.round(rng.uniform(2, 4, 50), 3)
    assert find_step(y) == pytest.approx(1e-3)
    pixels = 2.0 + 0.0137 * rng.integers(0, 60, 80)
    assert find_step(np.r_[pixels, 2.0, 2.0137]) == pytest.approx(0.0137, rel=1e-6)
    with pytest.raises(DataError, match=r"Rounded\(step"):
        find_step(rng.uniform(2, 4, 50))


def test_default_degrees_of_freedom_have_a_variance():
    prior = LogStudentT().nuisance()["nu"]
    draws = np.asarray(prior.sample(jax.random.key(0), (4000,)))
    assert draws.min() > 2
    assert st.kstest(draws - 2, st.gamma(2, scale=10).cdf).pvalue > 0.001
    assert st.kstest(draws, st.gamma(2, scale=10).cdf).pvalue < 1e-6
    np.testing.assert_allclose(prior.log_prob(7.0), st.gamma.logpdf(5.0, 2, scale=10), rtol=1e-10)


def test_columns_come_from_the_runs_and_are_centred(table):
    runs = table()
    model = Model(law="chinchilla", likelihood=LogStudentT(sigma_on="log_C"))
    data = prepare(model, runs)
    want = np.log(runs["C"].values)
    np.testing.assert_allclose(data.columns["sigma_on"], want - want.mean(), rtol=1e-12)
    assert data.meta.centres == {"log_C": pytest.approx(want.mean())}


def test_data_that_do_not_fit_the_likelihood_are_named(table):
    runs = table()
    below = runs.assign(loss=("run", np.where(np.arange(24) == 3, -1.0, runs["loss"].values)))
    with pytest.raises(DataError, match="run 'r3'.*positive"):
        prepare(Model(law="chinchilla"), below)
    prepare(Model(law="chinchilla", likelihood=Normal()), below)  # on the outcome's own scale this is admissible
    with pytest.raises(DataError, match="Did you mean 'loss_se'"):
        prepare(Model(law="chinchilla", likelihood=Normal(se="loss_sd")), runs)
    zero = runs.assign(loss_se=("run", np.zeros(24)))
    with pytest.raises(DataError, match="'loss_se' must be positive"):
        prepare(Model(law="chinchilla", likelihood=Normal(se="loss_se", sigma=None)), zero)
    with pytest.raises(DataError, match="true or false"):
        prepare(Model(law="chinchilla", likelihood=Censored("width")), runs)
    counts = xr.Dataset(
        {"N": ("run", [1e8, 1e9]), "D": ("run", [1e9, 1e10]), "k": ("run", [3.0, 9.0]), "n": ("run", [5.0, 5.0])}
    )
    with pytest.raises(DataError, match="row 1.*whole numbers"):
        prepare(Model(law="chinchilla", likelihood=BetaBinomial()), counts)


def test_what_cannot_be_said_is_refused():
    with pytest.raises(ValueError, match="no gradient in nu"):
        Rounded(LogStudentT())
    with pytest.raises(ValueError, match="no gradient in nu"):
        Censored(base=LogStudentT())
    with pytest.raises(ValueError, match="no noise"):
        Normal(sigma=None)
    with pytest.raises(ValueError, match="must be positive"):
        Rounded(step=0.0)


@pytest.mark.parametrize(
    "likelihood", [c[0] for c in CASES.values()] + [BetaBinomial(phi=dist.Gamma(2.0, 0.1))], ids=str
)
def test_spec_goes_round(likelihood):
    model = Model(law="chinchilla", likelihood=likelihood)
    assert Model.from_spec(model.to_spec()) == model
    assert type(Model.from_spec(model.to_spec()).likelihood) is type(likelihood)
