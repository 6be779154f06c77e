"""The Laplace approximation: exact where the posterior is Gaussian, labelled as approximate, refused where flat."""

from __future__ import annotations

import numpy as np
import numpyro.distributions as dist
import pytest
import xarray as xr

from scalingkit.core import notes
from scalingkit.core.card import Card
from scalingkit.core.law import Law
from scalingkit.core.param import Param
from scalingkit.infer.laplace import _gaussian, laplace
from scalingkit.infer.likelihoods import DataError, Normal
from scalingkit.infer.model import Model

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


def table() -> xr.Dataset:
    x = np.linspace(0.5, 3, 12)
    y = 1 + 0.5 * x + NOISE * np.random.default_rng(4).standard_normal(12)
    return xr.Dataset(
        {"x": ("run", x), "y": ("run", y), "se": ("run", np.full(12, NOISE))},
        coords={"run": [f"r{i}" for i in range(12)]},
    )


def oracle(runs: xr.Dataset, noise: float = NOISE) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of (a, b): the conjugate normal equations."""
    X = np.stack([np.ones(12), runs["x"].values], 1)
    precision = X.T @ X / noise**2 + np.eye(2) / PRIOR_SD**2
    return np.linalg.solve(precision, X.T @ runs["y"].values / noise**2), np.linalg.inv(precision)


def z_scores(tree: xr.DataTree, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
    draws = np.stack([tree["posterior"][k].values.ravel() for k in ("a", "b")])
    se = np.sqrt(np.diag(cov) / draws.shape[1])
    sd = (draws.std(1) / np.sqrt(np.diag(cov)) - 1) * np.sqrt(2 * draws.shape[1])
    return np.concatenate([(draws.mean(1) - mean) / se, sd])


def test_gaussian_posterior_is_met_and_a_wrong_oracle_is_not():
    runs = table()
    tree = laplace(Model(law=line, likelihood=Normal(sigma=None, se="se")), runs, draws=4000)
    np.testing.assert_allclose([tree["mode"]["a"], tree["mode"]["b"]], oracle(runs)[0], atol=1e-4)
    assert np.abs(z_scores(tree, *oracle(runs))).max() < 4.5
    assert np.abs(z_scores(tree, *oracle(runs, noise=1.2 * NOISE))).max() > 6


def test_labelled_as_approximate_and_whole():
    tree = laplace("chinchilla", chinchilla_runs(), draws=50)
    assert tree.attrs["route"] == "laplace" and "approximate" in [n.code for n in notes.of(tree)]
    assert {"posterior", "log_likelihood", "posterior_predictive", "observed_data", "mode"} <= set(tree.children)
    again = laplace("chinchilla", chinchilla_runs(), draws=50)
    xr.testing.assert_identical(tree["posterior"].to_dataset(), again["posterior"].to_dataset())


def chinchilla_runs() -> xr.Dataset:
    rng = np.random.default_rng(0)
    N, D = 10 ** rng.uniform(7, 10, 30), 10 ** rng.uniform(9, 12, 30)
    loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.01 * rng.standard_normal(30))
    return xr.Dataset(
        {"N": ("run", N), "D": ("run", D), "loss": ("run", loss)}, coords={"run": [f"r{i}" for i in range(30)]}
    )


def test_flat_mode_is_refused():
    with pytest.raises(DataError, match="flat"):
        _gaussian(np.diag([1.0, 0.0]), 10, 0)
    assert _gaussian(np.diag([1.0, 4.0]), 10, 0).shape == (10, 2)
