"""Held out: log density of runs that a posterior has not seen, draw by draw.

log p(y_i | theta_s)        theta of a new group is drawn from its population, as ``predict(groups="new")`` does
"""

from __future__ import annotations

import json

import jax.numpy as jnp
import numpy as np
import xarray as xr

from scalingkit.core.names import CHAIN, DRAW, RUN
from scalingkit.infer.model import Model
from scalingkit.infer.predict import parameters
from scalingkit.infer.prepare import numbers


def log_density(tree: xr.DataTree, runs: xr.Dataset, model: Model | None = None, seed: int = 0) -> xr.DataArray:
    """(chain, draw, run): log density of the outcomes in ``runs`` on their own scale, given each draw of ``tree``."""
    model = model or Model.from_spec(tree.attrs["model"])
    centres = json.loads(tree.attrs.get("centres", "{}"))
    pivots = {x: float(tree.attrs[f"pivot_{x}"]) for x, _ in model.law.scales.values()}
    theta = parameters(model, tree["posterior"].to_dataset(), runs, pivots, centres, "new", seed)

    def column(name: str | None) -> np.ndarray:
        return numbers(runs, model.outcome if name is None else name)

    inputs = {x: xr.DataArray(column(x), dims=RUN) for x in model.law.inputs}
    columns = {k: _along(v) for k, v in model.likelihood.columns(column, centres).items()}
    noise = {k: theta[k] for k in model.likelihood.nuisance()}
    mean = model.law(inputs | {k: theta[k] for k in model.law.params})
    y = xr.DataArray(column(None), dims=RUN)
    m, y, *rest = (v.transpose(CHAIN, DRAW, RUN) for v in xr.broadcast(mean, y, *noise.values(), *columns.values()))
    by_name = dict(zip([*noise, *columns], (jnp.asarray(v.values) for v in rest), strict=True))
    found = model.likelihood.observe(jnp.asarray(m.values), by_name, by_name).log_prob(jnp.asarray(y.values))
    return m.copy(data=np.asarray(found)).rename("log_density")


def _along(values: object) -> xr.DataArray:
    v = np.asarray(values)
    return xr.DataArray(v, dims=RUN if v.ndim else ())
