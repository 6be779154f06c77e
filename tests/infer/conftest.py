"""Posteriors without sampling: prior draws dressed as a posterior, for what only reads a tree."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest
import xarray as xr
from numpyro import handlers

from scalingkit.infer.model import Model
from scalingkit.infer.prepare import Data, prepare


def make_table(n: int = 24, seed: int = 0) -> xr.Dataset:
    """Runs on a grid of N and D with groups: corpus (3), family (2), model nested in family (4), width per corpus."""
    rng = np.random.default_rng(seed)
    i = np.arange(n)
    N, D = 10 ** rng.uniform(7, 10, n), 10 ** rng.uniform(9, 12, n)
    loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.02 * rng.standard_normal(n))
    groups = {
        "corpus": np.array(["c4", "pile", "web"])[i % 3],
        "family": np.array(["gpt", "llama"])[i // 3 % 2],
        "model": np.array([["gpt-a", "gpt-b"], ["llama-a", "llama-b"]])[i // 3 % 2, i // 6 % 2],
    }
    return xr.Dataset(
        {
            "N": ("run", N), "D": ("run", D), "C": ("run", 6 * N * D), "loss": ("run", loss),
            "loss_se": ("run", np.full(n, 0.01)), "width": ("run", np.array([1.0, 2.0, 4.0])[i % 3]),
            "censored": ("run", (i % 5 == 0).astype(float)),
        },
        coords={"run": [f"r{k}" for k in i], **{k: ("run", v) for k, v in groups.items()}},
    )  # fmt: skip


def make_dressed(model: Model, runs: xr.Dataset, chains: int = 2, draws: int = 3, seed: int = 0) -> xr.DataTree:
    """A tree with the groups, dims and attrs that ``predict`` reads; draws of the prior."""
    data = prepare(model, runs)
    keys = jax.random.split(jax.random.key(seed), chains * draws)
    values = jax.jit(jax.vmap(lambda key: _prior(model, data, key)))(keys)
    dims = model.site_dims
    variables = {
        k: (("chain", "draw", *dims.get(k, ())), np.asarray(v).reshape(chains, draws, *v.shape[1:]))
        for k, v in values.items()
        if k != model.outcome and k not in model.hidden
    }
    used = {d for v in variables.values() for d in v[0]}
    labels = {d: list(v) for d, v in data.meta.labels.items() if d in used}
    posterior = xr.Dataset(variables, coords={"chain": range(chains), "draw": range(draws), **labels})
    tree = xr.DataTree.from_dict({"/posterior": posterior})
    tree.attrs = {"law": model.law.name, "model": json.dumps(model.to_spec()), "centres": json.dumps(data.meta.centres)}
    tree.attrs |= {f"pivot_{x}": float(np.exp(v)) for x, v in data.log_pivots.items()}
    return tree


def _prior(model: Model, data: Data, key: jax.Array) -> dict[str, jax.Array]:
    trace = handlers.trace(handlers.seed(model, key)).get_trace(data, observed=False)
    return {k: s["value"] for k, s in trace.items() if s["type"] in ("sample", "deterministic")}


@pytest.fixture
def table():
    """The function that makes a small table of runs."""
    return make_table


@pytest.fixture
def dressed():
    """The function that dresses prior draws as a posterior."""
    return make_dressed
