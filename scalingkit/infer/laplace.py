"""Laplace: the posterior as a Gaussian about its mode, in unconstrained coordinates. An approximation, and labelled so.

    z ~ Normal(z*, H^-1),   H = d2U/dz2 at the mode,   U = -log density with the Jacobians of the transforms

Good where the runs pin the parameters; too narrow on curved ridges and wrong for spreads between groups near zero, whose
mode is not where their mass is. Compare with ``fit`` before an interval is used.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import xarray as xr

from scalingkit.core.names import CHAIN, DRAW
from scalingkit.core.notes import Note, dump
from scalingkit.core.precision import require_x64
from scalingkit.infer import compiled, mode, nuts, provenance, tree
from scalingkit.infer import device as devices
from scalingkit.infer.likelihoods import DataError
from scalingkit.infer.model import as_model
from scalingkit.infer.prepare import prepare


@devices.placed()
def laplace(
    model: Any, runs: xr.Dataset, *, pool: Mapping[str, Any] | None = None, likelihood: Any = None, draws: int = 4000,
    seed: int = 0, starts: int = 8, device: str = "auto",
) -> xr.DataTree:  # fmt: skip
    """Independent draws of the Laplace approximation as a DataTree of one chain; group ``mode`` holds the mode itself.

    Root attrs as of ``fit``, with route "laplace" and ``starts_at_mode`` (how many of the starts reached it).
    Raises DataError for unusable runs or a mode without a proper curvature; PrecisionError in float32.
    """
    require_x64("a Laplace approximation")
    compiled.keep()
    model = as_model(model, pool, likelihood)
    begin = time.perf_counter()
    data = prepare(model, runs)
    pot = nuts.potential(model, data, seed)
    top = mode.find(pot, data, seed, starts)
    hessian = np.asarray(jax.jit(jax.hessian(lambda z: pot.value(top.unravel(z), data)))(top.flat))
    z = top.flat + _gaussian(hessian, draws, seed)
    unravelled = jax.vmap(top.unravel)(z)
    values = nuts.natural(model, {k: np.asarray(v)[None] for k, v in unravelled.items()}, data)
    groups = tree.assemble(model, data, runs, values, seed)
    at_mode = nuts.natural(model, {k: v[None, None] for k, v in top.z.items()}, data)
    shown = {k: v for k, v in at_mode.items() if k not in model.hidden}
    groups["mode"] = tree.dataset(model, shown, data).isel({CHAIN: 0, DRAW: 0}, drop=True)
    out = xr.DataTree.from_dict({f"/{k}": v for k, v in groups.items()})
    chosen, reason = devices.choose(device)
    text = "the posterior is approximated by a Gaussian about its mode; sample it with fit before an interval is used."
    out.attrs = provenance.attrs(model, data, runs, seed, chosen, reason) | {
        "route": "laplace", "sampler": "independent draws of a Gaussian about the mode", "seconds": round(time.perf_counter() - begin, 3),
        "starts_at_mode": f"{top.reached} of {top.starts}", "notes": dump([Note("approximate", "warning", "posterior", text)]),
    }  # fmt: skip
    return out


def _gaussian(hessian: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Deviations from the mode, (draws, p)."""
    h = (hessian + hessian.T) / 2
    values, vectors = np.linalg.eigh(h)
    if not np.isfinite(values).all() or values.min() <= 1e-10 * values.max():
        raise DataError(
            "the posterior is flat or falls away at its mode, so no Gaussian stands there; sample it with fit."
        )
    standard = np.random.default_rng([seed, 7]).standard_normal((draws, len(values)))
    return (standard / np.sqrt(values)) @ vectors.T
