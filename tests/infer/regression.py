"""Posteriors known in closed form: a power law is a straight line in logs, so its posterior under a flat prior is exact.

log y = a - alpha (log x - mean log x) + sigma e      sigma**2 ~ scaled inverse chi2, (a, alpha) | sigma ~ Normal
"""

from __future__ import annotations

import numpy as np
import numpyro.distributions as dist
import xarray as xr

from scalingkit import LogNormal, Model, runs
from scalingkit.infer import provenance
from scalingkit.infer.prepare import prepare
from scalingkit.infer.tree import assemble

MODEL = Model(law="power", likelihood=LogNormal(sigma=dist.LogNormal(-4.0, 1.5)))


def line(n=60, sigma=0.02, seed=0, bend=0.0, shift=0.0, outlier=0.0) -> xr.Dataset:
    """Runs on a power law in two corpora; ``bend`` of log y in log x, corpus b off by ``shift``, run r3 by ``outlier``."""
    rng = np.random.default_rng(seed)
    z = np.sort(rng.uniform(-2, 2, n))
    corpus = np.array(["a", "b"])[np.arange(n) % 2]
    log_y = 0.7 - 0.3 * z + sigma * rng.standard_normal(n) + bend * z**2 + shift * (corpus == "b")
    log_y[3] += outlier
    return runs.make(x=np.exp(z + 18), y=np.exp(log_y), corpus=corpus, run=[f"r{i}" for i in range(n)])


def posterior(table: xr.Dataset, draws=1000, seed=0, narrow=1.0) -> xr.DataTree:
    """Exact draws, as a tree like those of ``fit``. ``narrow`` multiplies sigma: below 1, a model too sure of itself."""
    rng = np.random.default_rng(seed)
    data = prepare(MODEL, table)
    z, log_y = np.log(data.inputs["x"]), np.log(data.y)
    X = np.stack([np.ones_like(z), -z], 1)
    G = np.linalg.inv(X.T @ X)
    b = G @ X.T @ log_y
    free = len(z) - 2
    s2 = ((log_y - X @ b) ** 2).sum() / rng.chisquare(free, (2, draws))
    theta = b + np.sqrt(s2)[..., None] * (rng.standard_normal((2, draws, 2)) @ np.linalg.cholesky(G).T)
    at_pivot = np.exp(theta[..., 0])
    raw = at_pivot * np.exp(theta[..., 1] * data.log_pivots["x"])
    values = {"A_at_pivot": at_pivot, "A": raw, "alpha": theta[..., 1], "sigma": narrow * np.sqrt(s2)}
    tree = xr.DataTree.from_dict({f"/{k}": v for k, v in assemble(MODEL, data, table, values, seed).items()})

    class Cpu:
        platform, id = "cpu", 0

    tree.attrs = provenance.attrs(MODEL, data, table, seed, Cpu(), "exact")
    return tree
