"""Calibration must pass a right sampler, and catch a biased one, one that ignores the data, and a wrong model."""

from __future__ import annotations

from functools import lru_cache

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
import xarray as xr
from numpyro import handlers

from scalingkit import LogNormal, Model, get, runs
from scalingkit.infer.calibrate import coverage, covered, ranks, sbc
from scalingkit.infer.likelihoods import DataError
from scalingkit.infer.replicate import LOG_LIKELIHOOD, Nuts, Replicates, _vectorised, ready, replicate
from scalingkit.infer.studystore import StudyError

DESIGN = runs.make(x=np.geomspace(1e7, 1e8, 6))
# priors and noise that overlap, so that importance resampling from the prior is an exact sampler
LAW = get("power").with_priors(A=dist.LogNormal(0.0, 0.5), alpha=dist.Normal(0.2, 0.3))
MODEL = Model(law=LAW, likelihood=LogNormal(sigma=dist.LogNormal(-0.7, 0.2)))
HALF = Model(law=LAW, likelihood=LogNormal(sigma=dist.LogNormal(-1.6, 0.1)))


@lru_cache(maxsize=4)
def proposals(model, count=20_000):
    """Prior draws of the sampled sites, and a function that gives their log likelihood for data."""

    def draw(key, data):
        trace = handlers.trace(handlers.seed(model, key)).get_trace(data)
        return {k: s["value"] for k, s in trace.items() if s["type"] in ("sample", "deterministic") and k != "y"}

    def log_lik(values, data):
        trace = handlers.trace(handlers.substitute(handlers.seed(model, jax.random.key(0)), data=values)).get_trace(
            data
        )
        return trace["y"]["fn"].log_prob(data.y).sum()

    keys = jax.random.split(jax.random.key(99), count)
    return jax.jit(jax.vmap(draw, (0, None))), jax.jit(jax.vmap(log_lik, (0, None))), keys


def resample(model, data, start, seed, least=20):
    """The exact posterior, by importance resampling from the prior."""
    draw, log_lik, keys = proposals(model)
    values = draw(keys, data)
    w = np.exp((lw := np.asarray(log_lik(values, data))) - lw.max())
    assert w.sum() ** 2 / (w**2).sum() > least, "too few effective draws for an oracle"
    chosen = np.random.default_rng(seed).choice(w.size, 300, p=w / w.sum())
    return {k: np.asarray(v)[chosen] for k, v in values.items()}


def biased(model, data, start, seed):
    return {k: v + 0.1 if k == "alpha" else v for k, v in resample(model, data, start, seed).items()}


def prior_only(model, data, start, seed):
    draw, _, keys = proposals(model)
    chosen = np.random.default_rng(seed).choice(len(keys), 300)
    return {k: np.asarray(v)[chosen] for k, v in draw(keys, data).items()}


@pytest.fixture(scope="module")
def made():
    return replicate(MODEL, DESIGN, 150, seed=1, sampler=resample)


def test_a_right_sampler_passes(made):
    assert list(made.param.values) == ["A", "alpha", "sigma", LOG_LIKELIHOOD]
    found = ranks(made)
    assert found.attrs["passes"] == 1, found.attrs["verdict"]
    assert int(found["rank"].max()) <= 100 and int(found["rank"].min()) >= 0


def test_intervals_of_a_right_model_cover(made):
    found = covered(made)
    assert found.attrs["passes"] == 1, found.attrs["verdict"]
    assert np.all((found.coverage > 0.83) & (found.coverage < 0.97))
    assert np.all((found.lower < found.coverage) & (found.coverage < found.upper))


def test_a_biased_sampler_is_caught():
    found = sbc(MODEL, DESIGN, 150, seed=1, sampler=biased)
    assert found.attrs["passes"] == 0
    assert float(found.p_value.sel(param="alpha")) < 0.002
    assert found.says.sel(param="alpha").item() == "posterior too high"


def test_a_sampler_that_ignores_the_data_is_caught_by_the_log_likelihood_only():
    found = sbc(MODEL, DESIGN, 150, seed=1, sampler=prior_only)
    assert found.attrs["passes"] == 0 and LOG_LIKELIHOOD in found.attrs["verdict"]
    assert np.all(found.p_value.drop_sel(param=LOG_LIKELIHOOD) > 0.01)


def test_noise_half_as_large_as_it_is_fails_coverage():
    found = coverage(MODEL, DESIGN, 80, seed=1, fitted=HALF, draws=200, tune=200)
    assert found.attrs["passes"] == 0
    assert float(found.coverage.sel(param="alpha")) < 0.8
    assert "another rate" in found.attrs["verdict"]


def test_nuts_runs_through_and_a_fixed_truth_is_kept():
    truth = dict(A=np.exp(0.5) * 3e7**0.3, alpha=0.3)
    found = replicate(MODEL, DESIGN, 3, seed=2, truth=truth, draws=100, tune=150)
    assert found.draws.shape == (3, 4, 100) and found.attrs["fixed_truth"] == 1
    np.testing.assert_allclose(found.truth.sel(param="alpha"), 0.3)
    np.testing.assert_allclose(found.truth.sel(param="A"), truth["A"], rtol=1e-10)
    assert np.all(np.isfinite(found.draws)) and np.all(found.draws.std("draw") > 0)
    # the posterior stands near the truth: within 6 of its own sds
    near = np.abs(found.draws.mean("draw") - found.truth) / found.draws.std("draw")
    assert float(near.sel(param="alpha").max()) < 6


def test_progress_is_told_and_an_interrupt_keeps_what_was_finished(made):
    told = []

    def stop(done, n):
        told.append((done, n))
        if done == 5:
            raise KeyboardInterrupt

    found = replicate(MODEL, DESIGN, 50, seed=1, sampler=resample, progress=stop)
    assert told[0] == (1, 50) and found.sizes["simulation"] == found.attrs["simulations"] == 5
    xr.testing.assert_allclose(found.draws, made.draws.isel(simulation=slice(0, 5)))


def test_kept_in_a_store_it_is_the_same_and_goes_on_where_it_was(made, tmp_path):
    def stop(done, n):
        if done == 5:
            raise KeyboardInterrupt

    given = dict(seed=1, sampler=resample, store=tmp_path / "s.zarr")
    with pytest.raises(KeyboardInterrupt):
        replicate(MODEL, DESIGN, 12, progress=stop, **given)
    told = []
    found = replicate(MODEL, DESIGN, 12, progress=lambda *a: told.append(a), **given)
    assert told[0] == (5, 12) and told[-1] == (12, 12) and found.attrs["failed"] == 0
    keys = jax.random.split(jax.random.key(1), 150)
    assert np.array_equal(jax.random.key_data(keys[:12]), jax.random.key_data(jax.random.split(jax.random.key(1), 12)))
    xr.testing.assert_allclose(found.draws, made.draws.isel(simulation=slice(0, 12)))
    assert ranks(found).sizes["simulation"] == 12
    with pytest.raises(StudyError, match="seed: 1 there, 2 here"):
        replicate(MODEL, DESIGN, 12, **given | {"seed": 2})


def one_in_three_fails(model, data, start, seed):
    if seed % 3 == 0:
        raise FloatingPointError("no mode")
    return resample(model, data, start, seed)


def test_in_a_store_a_fit_that_fails_is_left_out_and_counted(tmp_path):
    found = replicate(MODEL, DESIGN, 6, seed=1, sampler=one_in_three_fails, store=tmp_path / "s.zarr")
    assert found.sizes["simulation"] == 4 and found.attrs["failed"] == 2
    for judged in (covered(found), ranks(found)):
        assert "2 fits failed" in judged.attrs["verdict"] and judged.attrs["passes"] == 0


def test_tables_side_by_side_in_one_program_are_fitted_as_one_by_one(monkeypatch):
    """What a GPU does, made on the CPU: other order of additions, so equal to rounding while chains are short."""
    task = Replicates(MODEL, MODEL, DESIGN, 3, 4, {}, Nuts(20, 6))
    alone = list(task.many([{"simulation": j} for j in range(3)]))
    side = list(_vectorised(task, ready(task), [0, 1, 2], jax.devices("cpu")[0]))
    for a, (truth, draws, bad) in zip(alone, side, strict=True):
        np.testing.assert_allclose(truth, a.truth, rtol=1e-9)
        np.testing.assert_allclose(draws, a.draws, rtol=1e-5, atol=1e-7)
        assert bad == a.diverging


def test_bad_requests_are_refused():
    with pytest.raises(ValueError, match="client needs store"):
        replicate(MODEL, DESIGN, 2, client=object())
    with pytest.raises(ValueError, match="draws the truth from the prior"):
        sbc(MODEL, DESIGN, 2, truth=dict(alpha=0.3))
    with pytest.raises(ValueError, match="at least one table"):
        replicate(MODEL, DESIGN, 0)
    with pytest.raises(DataError, match="without its exponent 'alpha'"):
        replicate(MODEL, DESIGN, 2, truth=dict(A=1.0))
    with pytest.raises(DataError, match="truth names beta"):
        replicate(MODEL, DESIGN, 2, truth=dict(beta=1.0))


@pytest.mark.slow
def test_intervals_of_the_chinchilla_law_cover_over_200_tables():
    rng = np.random.default_rng(0)
    N = np.exp(rng.uniform(np.log(4e7), np.log(1.6e10), 40))
    design = runs.make(N=N, D=N * np.exp(rng.uniform(0, np.log(1000), 40)))
    model = Model(law="chinchilla", likelihood=LogNormal(sigma=dist.LogNormal(-4.0, 0.3)))
    made = replicate(model, design, 200, seed=3)
    found = covered(made)
    assert found.attrs["passes"] == 1, found.attrs["verdict"]
    assert np.all((found.coverage >= 0.85) & (found.coverage <= 0.95)), found.coverage.to_series()
    assert ranks(made).attrs["passes"] == 1, ranks(made).attrs["verdict"]
    wrong = Model(law="chinchilla", likelihood=LogNormal(sigma=dist.LogNormal(-4.7, 0.05)))
    assert coverage(model, design, 60, seed=3, fitted=wrong).attrs["passes"] == 0
