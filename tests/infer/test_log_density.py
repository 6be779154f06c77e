"""Exact log density: a model's log joint equals the sum of SciPy's log-pdfs, by hand, at 20 points, for every law.

By hand the curve is evaluated in raw units (no pivot) and the priors are SciPy's, so the pivoted coordinates, the
Jacobian of the outcome and the order of the parameters are all on trial.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr
from numpyro import handlers
from numpyro.infer.util import log_density
from scipy import stats

from scalingkit.core import zoo
from scalingkit.infer.likelihoods import LogNormal, LogStudentT
from scalingkit.infer.model import Model
from scalingkit.infer.pooling import Partial
from scalingkit.infer.prepare import prepare

LAWS = zoo.names("laws")


def table(law, seed=0):
    """The law's example with noise, as runs of three corpora."""
    design = law.example_design()
    n = next(iter(design.values())).size
    rng = np.random.default_rng(seed)
    y = np.asarray(law(**law.truth, **design)) * np.exp(0.02 * rng.standard_normal(n))
    return xr.Dataset(
        {x: ("run", v) for x, v in design.items()} | {law.output: ("run", y)},
        coords={"run": [f"r{i}" for i in range(n)], "corpus": ("run", np.array(["a", "b", "c"])[np.arange(n) % 3])},
    )


def points(model, data, count):
    """Values of every sampled site, drawn from the prior."""
    for i in range(count):
        trace = handlers.trace(handlers.seed(model, jax.random.key(i))).get_trace(data, observed=False)
        yield {k: s["value"] for k, s in trace.items() if s["type"] == "sample" and k != model.outcome}


def scipy_prior(prior):
    """The same distribution, from SciPy."""
    if isinstance(prior, dist.LogNormal):
        return stats.lognorm(s=float(prior.scale), scale=np.exp(float(prior.loc)))
    if isinstance(prior, dist.Normal):
        return stats.norm(float(prior.loc), float(prior.scale))
    if isinstance(prior, dist.HalfNormal):
        return stats.halfnorm(scale=float(prior.scale))
    raise AssertionError(f"write the SciPy form of {type(prior).__name__} here")


def raw_mean(law, runs, values):
    """The curve in raw units, each coefficient moved off the geometric mean of its input."""
    theta = {k: np.asarray(values.get(k, values.get(f"{k}_at_pivot"))) for k in law.params}
    for c, (x, e) in law.scales.items():
        x0 = np.exp(np.mean(np.log(runs[x].values)))
        theta[c] = theta[c] * x0 ** (theta[e] if isinstance(e, str) else e)
    return np.asarray(law(**{x: runs[x].values for x in law.inputs}, **theta))


def by_hand(law, runs, values):
    """log p(parameters) + log p(outcome | parameters) with Student-t noise on the log, all shared."""
    total = sum(
        scipy_prior(p.prior).logpdf(float(values[f"{k}_at_pivot" if k in law.scales else k]))
        for k, p in law.params.items()
    )
    sigma, nu = float(values["sigma"]), float(values["nu"])
    total += stats.lognorm(s=1.5, scale=np.exp(-4.0)).logpdf(sigma) + stats.gamma(2.0, scale=10.0).logpdf(nu - 2)
    y = runs[law.output].values
    noise = stats.t(nu, loc=np.log(raw_mean(law, runs, values)), scale=sigma)
    return total + float(np.sum(noise.logpdf(np.log(y)) - np.log(y)))


def compare(model, runs, hand, law, count=20):
    """Largest relative difference over ``count`` points."""
    data = prepare(model, runs)
    found = [(float(log_density(model, (data,), {}, v)[0]), hand(law, runs, v)) for v in points(model, data, count)]
    return max(abs(a - b) / (1 + abs(b)) for a, b in found)


@pytest.mark.parametrize("name", LAWS)
def test_log_density_is_the_sum_by_hand(name):
    law = zoo.get(name, "laws")
    assert compare(Model(law=law), table(law), by_hand, law) < 1e-9


def no_jacobian(law, runs, values):
    return by_hand(law, runs, values) + float(np.sum(np.log(runs[law.output].values)))


def prior_on_the_raw_coefficient(law, runs, values):
    x0 = np.exp(np.mean(np.log(runs["N"].values)))
    raw = float(values["A_at_pivot"]) * x0 ** float(values["alpha"])
    prior = scipy_prior(law.params["A"].prior)
    return by_hand(law, runs, values) + prior.logpdf(raw) - prior.logpdf(float(values["A_at_pivot"]))


def normal_noise(law, runs, values):
    y, m, sigma, nu = runs["loss"].values, raw_mean(law, runs, values), float(values["sigma"]), float(values["nu"])
    change = stats.norm(np.log(m), sigma).logpdf(np.log(y)) - stats.t(nu, np.log(m), sigma).logpdf(np.log(y))
    return by_hand(law, runs, values) + float(change.sum())


@pytest.mark.parametrize("wrong", [no_jacobian, prior_on_the_raw_coefficient, normal_noise])
def test_a_wrong_sum_is_seen(wrong):
    law = zoo.get("chinchilla", "laws")
    assert compare(Model(law=law), table(law), wrong, law, count=3) > 1e-3


@pytest.mark.parametrize("name", [n for n, law in zoo.systems("laws").items() if law.scales])
def test_a_curve_that_breaks_its_own_scales_is_seen(name):
    """Were an input divided by its pivot but a use of it not covered, model and raw curve would part."""
    law = zoo.get(name, "laws")
    x = next(iter(law.scales.values()))[0]
    at = list(law.inputs).index(x)
    broken = replace(law, published={}, claims=(), curve=_with_a_fixed_scale(law.curve, at))
    assert compare(Model(law=broken), table(law), by_hand, broken, count=2) > 1e-6


def _with_a_fixed_scale(curve, at):
    @functools.wraps(curve)
    def bent(*args):
        return curve(*args) * (1 + 1e-2 * jnp.exp(-args[at]))

    return bent


# ---------------------------------------------------------------- pooled, by hand


def pooled_by_hand(law, runs, values):
    """Chinchilla with alpha pooled over corpora (non-centred, on the log scale) and LogNormal noise."""
    z, sd, population = (np.asarray(values[k]) for k in ("alpha_z", "alpha_sd", "alpha_population"))
    alpha = np.exp(np.log(population) + sd * z)
    scalar = {"E": "E", "A": "A_at_pivot", "B": "B_at_pivot", "beta": "beta", "alpha": "alpha_population"}
    total = sum(scipy_prior(law.params[k].prior).logpdf(float(values[s])) for k, s in scalar.items())
    total += stats.norm.logpdf(z).sum() + stats.halfnorm(scale=0.3).logpdf(float(sd))
    sigma = float(values["sigma"])
    total += stats.lognorm(s=1.5, scale=np.exp(-4.0)).logpdf(sigma)
    corpus = np.searchsorted(["a", "b", "c"], runs["corpus"].values)
    N, D, y = (runs[k].values for k in ("N", "D", "loss"))
    N0, D0 = (np.exp(np.mean(np.log(v))) for v in (N, D))
    size = float(values["A_at_pivot"]) * (N / N0) ** -alpha[corpus]
    mean = float(values["E"]) + size + float(values["B_at_pivot"]) * (D / D0) ** -float(values["beta"])
    return total + float(stats.lognorm(s=sigma, scale=mean).logpdf(y).sum())


def test_pooled_log_density_is_the_sum_by_hand():
    law = zoo.get("chinchilla", "laws")
    model = Model(law=law, pool={"alpha": Partial("corpus")}, likelihood=LogNormal())
    assert compare(model, table(law), pooled_by_hand, law) < 1e-9


def test_groups_in_another_order_are_seen():
    law = zoo.get("chinchilla", "laws")
    model = Model(law=law, pool={"alpha": Partial("corpus")}, likelihood=LogNormal())

    def shuffled(law, runs, values):
        return pooled_by_hand(law, runs, values | {"alpha_z": np.asarray(values["alpha_z"])[::-1]})

    assert compare(model, table(law), shuffled, law, count=3) > 1e-3


# ---------------------------------------------------------------- dims


def check_dims(model, runs, expected):
    """Shapes of all sampled sites in a prior trace; the outcome has one value a run."""
    trace = handlers.trace(handlers.seed(model, jax.random.key(0))).get_trace(runs, observed=False)
    shapes = {k: np.shape(s["value"]) for k, s in trace.items() if s["type"] == "sample"}
    assert shapes == expected, shapes


@pytest.mark.parametrize("name", LAWS)
def test_one_number_for_each_parameter_and_for_the_noise(name):
    law = zoo.get(name, "laws")
    runs, sites = table(law), [f"{k}_at_pivot" if k in law.scales else k for k in law.params]
    expected = dict.fromkeys((*sites, "sigma", "nu"), ()) | {law.output: (runs.sizes["run"],)}
    check_dims(Model(law=law), runs, expected)


def test_a_pooled_parameter_has_one_value_a_group():
    law = zoo.get("chinchilla", "laws")
    model = Model(law=law, pool={"alpha": Partial("corpus")}, likelihood=LogNormal())
    expected = dict.fromkeys(("E", "A_at_pivot", "B_at_pivot", "beta", "alpha_population", "alpha_sd", "sigma"), ())
    check_dims(model, table(law), expected | {"alpha_z": (3,), "loss": (36,)})


class SigmaPerRun(LogStudentT):
    """The classic slip: the noise sampled inside the run plate."""

    def nuisance(self):
        return {}

    def observe(self, m, nuisance, columns):
        sigma = numpyro.sample("sigma", self.sigma)
        nu = numpyro.sample("nu", dist.Gamma(2.0, 0.1))
        return super().observe(m, {"sigma": sigma, "nu": nu}, columns)


def test_a_sigma_for_every_run_is_seen():
    law = zoo.get("chinchilla", "laws")
    expected = dict.fromkeys(("E", "A_at_pivot", "alpha", "B_at_pivot", "beta", "sigma", "nu"), ()) | {"loss": (36,)}
    with pytest.raises(AssertionError, match="'sigma': \\(36,\\)"):
        check_dims(Model(law=law, likelihood=SigmaPerRun()), table(law), expected)
