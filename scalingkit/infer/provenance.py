"""Provenance: what a result must carry so that it can be made again: data, model, seed, versions, device, precision."""

from __future__ import annotations

import hashlib
import json
from importlib import metadata
from typing import Any

import jax
import numpy as np
import xarray as xr

from scalingkit.core.names import RUN
from scalingkit.infer.model import Model
from scalingkit.infer.prepare import Data

PACKAGES = ("scalingkit", "jax", "numpyro", "arviz", "xarray", "numpy")


def versions() -> str:
    """JSON: package -> version."""
    return json.dumps({p: metadata.version(p) for p in PACKAGES})


def data_sha256(data: Data, labels: np.ndarray) -> str:
    """Hash of what the fit has seen: run labels, inputs, outcome, groups, columns of the likelihood, in order."""
    h = hashlib.sha256("\n".join(map(str, labels)).encode())
    parts = {**data.inputs, **data.log_pivots, "y": data.y, **data.codes, **data.columns}
    for k in sorted(parts):
        h.update(k.encode())
        h.update(np.ascontiguousarray(np.asarray(parts[k], dtype=float)).tobytes())
    return h.hexdigest()


def dataset_sha256(ds: xr.Dataset) -> str:
    """Hash of every variable's name, dims and values; attributes do not count."""
    h = hashlib.sha256()
    for k in sorted(map(str, ds.variables)):
        v = ds[k]
        text = v.values.astype(str).tolist() if v.dtype.kind in "OUST" else None
        h.update(f"{k}{v.dims}{v.shape}{text}".encode())
        if text is None:
            h.update(np.ascontiguousarray(v.values.astype(np.float64)).tobytes())
    return h.hexdigest()


def attrs(model: Model, data: Data, runs: xr.Dataset, seed: int, device: Any, reason: str) -> dict[str, Any]:
    """Root attrs of a result."""
    return {
        "law": model.law.name,
        "model": json.dumps(model.to_spec(), sort_keys=True),
        "objective": f"posterior density ({type(model.likelihood).__name__} likelihood, the law's priors)",
        "data_name": str(runs.attrs.get("data_name", "")),
        "data_sha256": data_sha256(data, run_labels(runs)),
        "source": str(runs.attrs.get("source", "")),
        "seed": int(seed),
        "device": f"{device.platform}:{device.id}",
        "device_reason": reason,
        "precision": "float64" if jax.config.read("jax_enable_x64") else "float32",
        "versions": versions(),
        "centres": json.dumps(data.meta.centres),
        **{f"pivot_{k}": float(np.exp(v)) for k, v in data.log_pivots.items()},
    }


def run_labels(runs: xr.Dataset) -> np.ndarray:
    """The runs' own labels, or their numbers."""
    return runs[RUN].values.astype(str) if RUN in runs.coords else np.arange(runs.sizes[RUN]).astype(str)
