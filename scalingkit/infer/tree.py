"""Tree: draws to an ArviZ DataTree with named dims and the users' labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import xarray as xr

from scalingkit.core import names
from scalingkit.core.names import CHAIN, DRAW, RUN
from scalingkit.infer import geometry
from scalingkit.infer.model import Model
from scalingkit.infer.nuts import Chains
from scalingkit.infer.pooling import covariates
from scalingkit.infer.prepare import Data
from scalingkit.infer.provenance import run_labels


def dataset(
    model: Model, values: Mapping[str, np.ndarray], data: Data, sample: tuple[str, ...] = (CHAIN, DRAW)
) -> xr.Dataset:
    """Draws by site as a Dataset: sample dims, then the group dims; law's parameters first."""
    dims = model.site_dims
    labels = data.meta.labels
    first = [k for k in model.law.params if k in values]
    order = [*first, *sorted(k for k in values if k not in first)]
    sized = {d: np.arange(n) for d, n in zip(sample, np.shape(values[order[0]]), strict=False)}
    ds = xr.Dataset({k: ((*sample, *dims.get(k, ())), np.asarray(values[k])) for k in order}, coords=sized)
    ds = ds.assign_coords({d: list(labels[d]) for d in ds.dims if d in labels})
    for k, p in model.law.params.items():
        if k in ds:
            ds[k].attrs |= {"units": p.unit, "meaning": p.doc}
    return ds


def constant_data(model: Model, runs: xr.Dataset, data: Data) -> xr.Dataset:
    """Inputs in their own units, every group label and further column that the model used."""
    law = model.law
    wanted = [*law.inputs, *model.group_columns, *(k for _, k in covariates(tuple(model.pools.values())))]
    wanted += model.likelihood.needs()
    wanted += [
        k for k in ("N", "D", "C", names.FAMILY, names.CORPUS, names.SEED, names.TRAJECTORY) if k in runs.variables
    ]
    out = xr.Dataset(coords={RUN: run_labels(runs)})
    for k in dict.fromkeys(wanted):
        v = runs[k]
        if v.dims != (RUN,):
            continue
        if v.dtype.kind in "OUST":
            out = out.assign_coords({k: (RUN, v.values.astype(str))})
        else:
            out[k] = (RUN, v.values.astype(float), {"units": str(v.attrs.get("units", names.unit(k)))})
    return out


def sample_stats(chains: Chains) -> xr.Dataset:
    """Diverging, energy, steps, tree depth, acceptance, step size; each (chain, draw)."""
    n = np.maximum(chains.n_steps, 1)
    values = {
        "diverging": chains.diverging, "energy": chains.energy, "n_steps": chains.n_steps,
        "tree_depth": np.ceil(np.log2(n + 1)).astype(int), "acceptance_rate": chains.acceptance_rate,
        "step_size": chains.step_size,
    }  # fmt: skip
    shape = chains.diverging.shape
    coords = {CHAIN: np.arange(shape[0]), DRAW: np.arange(shape[1])}
    return xr.Dataset({k: ((CHAIN, DRAW), v) for k, v in values.items()}, coords=coords)


def assemble(
    model: Model, data: Data, runs: xr.Dataset, values: Mapping[str, np.ndarray], seed: int
) -> dict[str, xr.Dataset]:
    """Posterior, prior, both predictives, pointwise log likelihood, the data. ``values``: sites by (chain, draw)."""
    shape = np.shape(next(iter(values.values())))[:2]
    flat = {k: v.reshape(shape[0] * shape[1], *v.shape[2:]) for k, v in values.items()}
    replicated, pointwise = _per_run(model, flat, data, seed)
    y = model.outcome

    def over_runs(a: Any, sample: tuple[int, ...] = shape) -> xr.Dataset:
        coords = {CHAIN: np.arange(sample[0]), DRAW: np.arange(sample[1]), RUN: run_labels(runs)}
        return xr.Dataset({y: ((CHAIN, DRAW, RUN), np.asarray(a).reshape(*sample, -1))}, coords=coords)

    _, prior = geometry.from_prior(model, data, seed + 2)
    before = {k: np.asarray(v)[None] for k, v in prior.items()}
    shown = {k: v for k, v in values.items() if k not in model.hidden}
    observed = xr.Dataset({y: (RUN, np.asarray(data.y), {"units": names.unit(y)})}, coords={RUN: run_labels(runs)})
    return {
        "posterior": dataset(model, shown, data),
        "prior": dataset(model, {k: v for k, v in before.items() if k != y and k not in model.hidden}, data),
        "posterior_predictive": over_runs(replicated),
        "prior_predictive": over_runs(before[y], (1, geometry.PRIOR_DRAWS)),
        "log_likelihood": over_runs(pointwise),
        "observed_data": observed,
        "constant_data": constant_data(model, runs, data),
    }


def _per_run(model: Model, flat: Mapping[str, np.ndarray], data: Data, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Replicated outcomes and pointwise log likelihood, both (sample, run)."""
    theta = {k: v for k, v in flat.items() if k not in model.law.scales}
    keys = jax.random.split(jax.random.key(seed + 1), len(next(iter(theta.values()))))
    replicated, pointwise = geometry.outcomes(model)(theta, keys, data)
    return np.asarray(replicated), np.asarray(pointwise)
