"""Poolings: the log joint equals a sum written by hand with SciPy; dims, labels and groups; what is refused."""

from __future__ import annotations

import json

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats as st
import xarray as xr
from numpyro import handlers
from numpyro.infer.util import log_density

from scalingkit.infer.likelihoods import DataError, LogNormal
from scalingkit.infer.model import Model
from scalingkit.infer.pooling import Crossed, Nested, Partial, Regressed, Separate, Shared
from scalingkit.infer.prepare import prepare

LAW_PRIORS = {"E": (0.53, 0.5), "A": (-0.7, 1.0), "alpha": (-1.05, 0.4), "B": (-0.7, 1.0), "beta": (-1.05, 0.4)}
SIGMA = (-4.0, 1.5)
POINTS = 20


def lognormal(value, loc_scale):
    return st.lognorm.logpdf(value, s=loc_scale[1], scale=np.exp(loc_scale[0]))


def half(value):
    return st.halfnorm.logpdf(value, scale=0.3)


def shared(v, runs):
    return v["alpha"], lognormal(v["alpha"], LAW_PRIORS["alpha"])


def separate(v, runs):
    return v["alpha"][codes(runs, "corpus")], lognormal(v["alpha"], LAW_PRIORS["alpha"]).sum()


def partial(v, runs):
    alpha = v["alpha_population"] * np.exp(v["alpha_sd"] * v["alpha_z"])
    prior = (
        lognormal(v["alpha_population"], LAW_PRIORS["alpha"]) + half(v["alpha_sd"]) + st.norm.logpdf(v["alpha_z"]).sum()
    )
    return alpha[codes(runs, "corpus")], prior


def centred(v, runs):
    prior = lognormal(v["alpha_population"], LAW_PRIORS["alpha"]) + half(v["alpha_sd"])
    prior += lognormal(v["alpha"], (np.log(v["alpha_population"]), v["alpha_sd"])).sum()
    return v["alpha"][codes(runs, "corpus")], prior


def nested(v, runs):
    z_family, z_model = v["alpha_z_family"], v["alpha_z_model"]
    u = np.log(v["alpha_population"]) + v["alpha_sd_family"] * z_family[codes(runs, "family")]
    u = u + v["alpha_sd_model"] * z_model[codes(runs, "model")]
    prior = (
        lognormal(v["alpha_population"], LAW_PRIORS["alpha"]) + half(v["alpha_sd_family"]) + half(v["alpha_sd_model"])
    )
    return np.exp(u), prior + st.norm.logpdf(z_family).sum() + st.norm.logpdf(z_model).sum()


def crossed(v, runs):
    z_family, z_corpus = v["alpha_z_family"], v["alpha_z_corpus"]
    u = np.log(v["alpha_population"]) + v["alpha_sd_family"] * z_family[codes(runs, "family")]
    u = u + v["alpha_sd_corpus"] * z_corpus[codes(runs, "corpus")]
    prior = (
        lognormal(v["alpha_population"], LAW_PRIORS["alpha"]) + half(v["alpha_sd_family"]) + half(v["alpha_sd_corpus"])
    )
    return np.exp(u), prior + st.norm.logpdf(z_family).sum() + st.norm.logpdf(z_corpus).sum()


def regressed(v, runs):
    x = np.array([1.0, 2.0, 4.0])  # width of c4, pile, web
    x = (x - x.mean()) / x.std()
    u = np.log(v["alpha_population"]) + v["alpha_slope_width"] * x + v["alpha_sd"] * v["alpha_z"]
    prior = (
        lognormal(v["alpha_population"], LAW_PRIORS["alpha"]) + half(v["alpha_sd"]) + st.norm.logpdf(v["alpha_z"]).sum()
    )
    return np.exp(u)[codes(runs, "corpus")], prior + st.norm.logpdf(v["alpha_slope_width"], 0, 0.5)


POOLS = {
    "shared": (Shared(), shared),
    "separate": (Separate("corpus"), separate),
    "partial": (Partial("corpus"), partial),
    "centred": (Partial("corpus", centred=True), centred),
    "nested": (Nested("family", "model"), nested),
    "crossed": (Crossed("family", "corpus"), crossed),
    "regressed": (Regressed("corpus", on=["width"]), regressed),
}


def codes(runs, dim):
    return np.unique(runs[dim].values, return_inverse=True)[1]


def by_hand(v, runs, rule, sigma_rule=None):
    """Log joint at sampled values ``v``, in raw units, without any code of the model."""
    alpha, prior = rule(v, runs)
    N0, D0 = (np.exp(np.log(runs[x].values).mean()) for x in "ND")
    A = v["A_at_pivot"] * N0**alpha
    B = v["B_at_pivot"] * D0 ** v["beta"]
    m = v["E"] + A * runs["N"].values ** -alpha + B * runs["D"].values ** -v["beta"]
    total = prior + lognormal(v["sigma"], SIGMA)
    total += sum(
        lognormal(v[s], LAW_PRIORS[k]) for k, s in dict(E="E", A="A_at_pivot", B="B_at_pivot", beta="beta").items()
    )
    return total + st.lognorm.logpdf(runs["loss"].values, s=v["sigma"], scale=m).sum()


def draws_of(model, data):
    """POINTS draws of the prior: sampled site -> (POINTS, ...)."""

    def one(key):
        trace = handlers.trace(handlers.seed(model, key)).get_trace(data, observed=False)
        return {k: s["value"] for k, s in trace.items() if s["type"] == "sample" and k != model.outcome}

    return jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(3), POINTS))


@pytest.mark.parametrize("name", POOLS)
def test_log_joint_equals_the_sum_by_hand(name, table):
    pooling, rule = POOLS[name]
    runs = table()
    model = Model(law="chinchilla", pool={"alpha": pooling}, likelihood=LogNormal())
    data = prepare(model, runs)
    values = draws_of(model, data)
    found = jax.jit(jax.vmap(lambda v: log_density(model, (data,), {}, v)[0]))(values)
    points = [{k: np.asarray(v)[i] for k, v in values.items()} for i in range(POINTS)]
    want = np.array([by_hand(v, runs, rule) for v in points])
    np.testing.assert_allclose(found, want, rtol=1e-10)
    # negative control: the same sum with the groups' order reversed is not the model's
    if pooling.columns:
        turned = runs.assign_coords({c: ("run", runs[c].values[::-1]) for c in pooling.columns})
        assert not np.allclose([by_hand(v, turned, rule) for v in points], want, rtol=1e-6)


def test_a_pooled_coefficient_is_pooled_at_the_pivot(table):
    runs = table()
    model = Model(law="chinchilla", pool={"A": Partial("family"), "alpha": Partial("corpus")})
    data = prepare(model, runs)
    trace = handlers.trace(handlers.seed(model, 0)).get_trace(data)
    v = {k: np.asarray(s["value"]) for k, s in trace.items() if "value" in s}
    N0 = np.exp(np.log(runs["N"].values).mean())
    np.testing.assert_allclose(v["A"], v["A_at_pivot"][:, None] * N0 ** v["alpha"][None, :], rtol=1e-12)
    assert model.dims("A") == ("family", "corpus") and v["A"].shape == (2, 3)


@pytest.mark.parametrize("name", POOLS)
def test_spec_goes_round(name):
    model = Model(law="chinchilla", pool={"alpha": POOLS[name][0]})
    back = Model.from_spec(json.loads(json.dumps(model.to_spec())))
    assert back == model and hash(back) == hash(model)
    assert back.pool["alpha"] == POOLS[name][0] or name != "shared"
    assert back != Model(law="chinchilla", pool={"beta": POOLS[name][0]})


def test_priors_of_the_spread_are_kept(table):
    pool = {
        "alpha": Partial("corpus", sd=dist.Exponential(2.0)),
        "E": Crossed("family", "corpus", sd=dist.HalfNormal(0.05)),
    }
    model = Model(law="chinchilla", pool=pool)
    data = prepare(model, table())
    trace = handlers.trace(handlers.seed(Model.from_spec(model.to_spec()), 0)).get_trace(data)
    assert float(trace["alpha_sd"]["fn"].rate) == 2.0
    assert float(trace["E_sd_family"]["fn"].scale) == 0.05


def test_no_noise_parameter_is_made_per_run(table):
    """Sampled inside the run plate, sigma would silently be one a run."""
    for pool in ({}, {"sigma": Partial("corpus")}):
        model = Model(law="chinchilla", pool=pool)
        trace = handlers.trace(handlers.seed(model, 0)).get_trace(prepare(model, table()))
        sizes = {k: np.shape(s["value"]) for k, s in trace.items() if s["type"] == "sample" and k != "loss"}
        assert all(24 not in s for s in sizes.values()), sizes
    assert np.shape(trace["sigma"]["value"]) == (3,)


def test_labels_are_the_users(table):
    data = prepare(Model(law="chinchilla", pool={"alpha": Crossed("family", "corpus")}), table())
    assert data.meta.labels == {"family": ("gpt", "llama"), "corpus": ("c4", "pile", "web")}
    assert data.sizes == {"family": 2, "corpus": 3}


def test_refusals_name_what_and_how(table):
    runs = table()
    with pytest.raises(ValueError, match="Did you mean 'alpha'"):
        Model(law="chinchilla", pool={"alhpa": Partial("corpus")})
    with pytest.raises(TypeError, match="use one of Shared"):
        Model(law="chinchilla", pool={"alpha": "corpus"})
    with pytest.raises(ValueError, match="which is noise"):
        Model(law="chinchilla", pool={"alpha": Partial("run")})
    with pytest.raises(ValueError, match="on="):
        Regressed("corpus")
    with pytest.raises(ValueError, match="two different"):
        Nested("family", "family")
    with pytest.raises(ValueError, match="two or more"):
        Crossed("family")
    with pytest.raises(DataError, match="Did you mean 'corpus'"):
        prepare(Model(law="chinchilla", pool={"alpha": Partial("corpora")}), runs)
    with pytest.raises(DataError, match="not nested"):
        prepare(Model(law="chinchilla", pool={"alpha": Nested("family", "corpus")}), runs)
    with pytest.raises(DataError, match="differs within corpus 'c4'"):
        prepare(Model(law="chinchilla", pool={"alpha": Regressed("corpus", on="N")}), runs)
    flat = runs.assign(width=("run", np.ones(24)))
    with pytest.raises(DataError, match="the same"):
        prepare(Model(law="chinchilla", pool={"alpha": Regressed("corpus", on="width")}), flat)
    unlabelled = runs.assign_coords(corpus=("run", np.where(np.arange(24) == 5, "", runs["corpus"].values)))
    with pytest.raises(DataError, match="run 'r5' has no corpus"):
        prepare(Model(law="chinchilla", pool={"alpha": Partial("corpus")}), unlabelled)
    assert isinstance(runs, xr.Dataset)
