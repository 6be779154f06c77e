"""Fit: the conjugate answer where there is one, the same draws for the same seed, and an honest word where it fails."""

from __future__ import annotations

import importlib

import arviz_stats
import numpy as np
import numpyro.distributions as dist
import pytest
import xarray as xr

from scalingkit.core import notes
from scalingkit.core.card import Card
from scalingkit.core.law import Law
from scalingkit.core.param import Param
from scalingkit.infer import findings, nuts
from scalingkit.infer.fit import TARGETS, diagnose, fit
from scalingkit.infer.likelihoods import DataError, Normal
from scalingkit.infer.model import Model
from scalingkit.infer.pooling import Partial
from scalingkit.infer.prepare import prepare

module = importlib.import_module("scalingkit.infer.fit")
PRIOR_SD, NOISE = 2.0, 0.3
line = Law(
    card=Card("line", "a straight line with Gaussian priors"),
    inputs={"x": "input"},
    output="y",
    curve=lambda x, a, b: a + b * x,
    params={"a": Param(dist.Normal(0.0, PRIOR_SD), "level"), "b": Param(dist.Normal(0.0, PRIOR_SD), "slope")},
    linear=("a", "b"),
    example=dict(x=(0.5, 3, 12), noise=NOISE, truth=dict(a=1.0, b=0.5)),
)
LINE = Model(law=line, likelihood=Normal(sigma=None, se="se"))


def table(n: int = 12) -> xr.Dataset:
    x = np.linspace(0.5, 3, n)
    y = 1 + 0.5 * x + NOISE * np.random.default_rng(4).standard_normal(n)
    columns = {"x": ("run", x), "y": ("run", y), "se": ("run", np.full(n, NOISE))}
    return xr.Dataset(columns, coords={"run": [f"r{i}" for i in range(n)], "corpus": ("run", ["a", "b"] * (n // 2))})


def oracle(runs: xr.Dataset, noise: float = NOISE, prior_sd: float = PRIOR_SD) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd of (a, b): the normal equations with the prior."""
    X = np.stack([np.ones(runs.sizes["run"]), runs["x"].values], 1)
    precision = X.T @ X / noise**2 + np.eye(2) / prior_sd**2
    return np.linalg.solve(precision, X.T @ runs["y"].values / noise**2), np.sqrt(np.diag(np.linalg.inv(precision)))


def z_scores(tree: xr.DataTree, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """How far means and sds lie from the oracle, in their Monte Carlo errors."""
    post = tree["posterior"].to_dataset()
    ess = np.array([float(arviz_stats.ess(post, method="bulk")[k]) for k in ("a", "b")])
    assert ess.min() > 400
    got = [(float(post[k].mean()), float(post[k].std())) for k in ("a", "b")]
    m, s = np.array(got).T
    return np.concatenate([(m - mean) / (sd / np.sqrt(ess)), (s / sd - 1) * np.sqrt(ess)])


@pytest.fixture(scope="module")
def fitted() -> xr.DataTree:
    return fit(LINE, table(), draws=500, tune=300, seed=3)


def test_the_conjugate_posterior_is_met_and_wrong_ones_are_not(fitted):
    assert np.abs(z_scores(fitted, *oracle(table()))).max() < 4.5
    assert np.abs(z_scores(fitted, *oracle(table(), noise=1.3 * NOISE))).max() > 6
    mean, sd = oracle(table())
    assert np.abs(z_scores(fitted, mean + 0.3 * sd, sd)).max() > 6


def test_pointwise_log_likelihood_is_that_of_the_law(fitted):
    post, runs = fitted["posterior"].to_dataset(), table()
    f = post["a"] + post["b"] * runs["x"]
    expected = -0.5 * ((runs["y"] - f) / NOISE) ** 2 - np.log(NOISE * np.sqrt(2 * np.pi))
    got = fitted["log_likelihood"]["y"]
    assert got.dims == ("chain", "draw", "run")
    np.testing.assert_allclose(got.values, expected.transpose("chain", "draw", "run").values, rtol=1e-10)


def test_groups_attrs_and_dims_are_those_promised(fitted):
    assert {
        "posterior", "prior", "posterior_predictive", "prior_predictive", "log_likelihood", "sample_stats",
        "observed_data", "constant_data",
    } <= set(fitted.children)  # fmt: skip
    assert {
        "law", "model", "data_sha256", "seed", "route", "device", "precision", "versions", "divergences", "rhat_max",
        "ess_bulk_min", "target_accept", "notes", "pivot_x",
    } - set(fitted.attrs) <= {"pivot_x"}  # fmt: skip
    assert all(isinstance(v, (str, int, float)) for v in fitted.attrs.values())
    assert fitted["posterior"]["a"].dims == ("chain", "draw")


def test_replicated_outcomes_scatter_by_curve_and_noise_together(fitted):
    post, runs = fitted["posterior"].to_dataset(), table()
    curve = (post["a"] + post["b"] * runs["x"]).std(("chain", "draw"))
    seen = fitted["posterior_predictive"]["y"].std(("chain", "draw"))
    np.testing.assert_allclose(seen, np.sqrt(NOISE**2 + curve**2), rtol=0.08)
    assert not np.allclose(seen, curve, rtol=0.5)


def test_same_seed_same_draws_and_another_seed_others(fitted):
    again, other = (fit(LINE, table(), draws=500, tune=300, seed=s) for s in (3, 4))
    for group in ("posterior", "posterior_predictive", "prior"):
        xr.testing.assert_identical(again[group].to_dataset(), fitted[group].to_dataset())
    assert not np.array_equal(other["posterior"]["a"], fitted["posterior"]["a"])


def test_the_runs_are_left_as_they_were():
    runs = table()
    before = runs.copy(deep=True)
    fit(LINE, runs, draws=20, tune=20, chains=1)
    xr.testing.assert_identical(runs, before)


class Stub:
    """A sampler whose draws diverge below a given target_accept, and which keeps count."""

    clean_from = 0.0
    tried: list[float]

    def __init__(self, model, data, starts, settings, seed, device) -> None:
        self.settings, self.chains = settings, len(starts)
        self.rng = np.random.default_rng(seed)
        Stub.tried.append(settings.target_accept)

    def more(self, draws, tell=lambda done: None, stop=None) -> nuts.Chains:
        shape = (self.chains, draws)
        z = {k: self.rng.standard_normal(shape) for k in ("a", "b")}
        bad = np.zeros(shape, bool)
        bad[0, 0] = self.settings.target_accept < Stub.clean_from
        return nuts.Chains(z, bad, *(np.ones(shape) for _ in range(4)))


def sampled(monkeypatch, clean_from: float, targets=TARGETS, draws: int = 100):
    Stub.clean_from, Stub.tried = clean_from, []
    monkeypatch.setattr(nuts, "Run", Stub)
    data = prepare(LINE, table())
    return module._sample(module.Direct(LINE, data), [{}] * 4, targets, draws, 50, 0, None, lambda text: None)


def test_target_accept_is_raised_until_nothing_diverges(monkeypatch):
    got = sampled(monkeypatch, clean_from=0.98)
    assert Stub.tried == [0.9, 0.95, 0.99] and got.target == 0.99 and not got.chains.diverging.any()
    assert sampled(monkeypatch, clean_from=0.0).target == TARGETS[0]


def test_a_target_of_ones_own_is_kept_and_divergences_are_an_error_that_names_parameters(monkeypatch):
    got = sampled(monkeypatch, clean_from=2.0, targets=(0.8,))
    assert Stub.tried == [0.8] and got.chains.diverging.sum() == 1
    found = findings.notes(LINE, prepare(LINE, table()), got.chains, got.z, module.Judged({}, {}), got.target, 100, 0)
    told = [n for n in found if n.code == "divergences"]
    assert len(told) == 1 and told[0].severity == "error" and set(told[0].about.split(", ")) <= {"a", "b"}
    clean = sampled(monkeypatch, clean_from=0.0)
    quiet = findings.notes(
        LINE, prepare(LINE, table()), clean.chains, clean.z, module.Judged({}, {}), clean.target, 100, 0
    )
    assert "divergences" not in [n.code for n in quiet]


def test_chains_go_on_until_they_agree_but_not_for_ever(monkeypatch):
    verdicts = iter([False, True])
    monkeypatch.setattr(module, "diagnose", lambda posterior: type("J", (), {"good": next(verdicts)}))
    assert sampled(monkeypatch, 0.0, draws=500).chains.diverging.shape == (4, 1000)
    monkeypatch.setattr(module, "diagnose", lambda posterior: type("J", (), {"good": False}))
    assert sampled(monkeypatch, 0.0, draws=500).chains.diverging.shape == (4, 2000)


def test_chains_that_stand_apart_are_judged_bad():
    rng = np.random.default_rng(0)
    agree = xr.Dataset({"a": (("chain", "draw"), rng.standard_normal((4, 1000)))})
    assert diagnose(agree).good
    assert not diagnose(agree + xr.DataArray([0, 0, 0, 3.0], dims="chain")).good
    assert not diagnose(agree * 0).good


def test_one_group_is_said():
    model = Model(law=line, likelihood=Normal(sigma=None, se="se"), pool={"a": Partial("corpus")})
    one = table().assign_coords(corpus=("run", ["only"] * 12))
    codes = {n.code for n in notes.of(fit(model, one, draws=50, tune=100, chains=2))}
    assert "one-group" in codes


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: r.drop_vars("y"), "no column 'y'"),
        (lambda r: r.drop_vars("x"), "no column 'x'"),
        (lambda r: r.assign(y=r["y"].where(r["run"] != "r3")), "'r3'"),
        (lambda r: r.isel(run=[]), "no rows"),
    ],
)
def test_runs_that_cannot_be_fitted_are_refused_by_name(change, says):
    with pytest.raises(DataError, match=says):
        fit(LINE, change(table()), draws=10, tune=10)


@pytest.mark.parametrize("bad", [{"draws": 0}, {"chains": 1.5}, {"tune": 1}, {"target_accept": 1.0}])
def test_impossible_lengths_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        fit(LINE, table(), **bad)


def test_float32_is_refused():
    import subprocess
    import sys

    code = "import scalingkit as sk, numpy as np; sk.fit('chinchilla', None)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"JAX_ENABLE_X64": "0", "PATH": ""}, capture_output=True, text=True
    )
    assert "PrecisionError" in done.stderr and "float64" in done.stderr
