"""Sensitivity: how far the answer moves when only the objective changes.

    theta_hat(rho) for rho in Huber(1e-4, 1e-3, 1e-2) of log residuals, squares of log residuals, squares of residuals

The same 240 Chinchilla rows give N* = 177e9 or 74e9 parameters at 1e24 FLOP under two common choices, so an answer
that hides its objective hides its largest uncertainty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import zoo
from scalingkit.core.law import Law
from scalingkit.infer.pointfit import pointfit

DELTAS = (1e-4, 1e-3, 1e-2)


def sensitivity(
    law: Law | str, runs: Any, *, deltas: Sequence[float] = DELTAS, at: Mapping[str, Any] | None = None, **options: Any
) -> xr.Dataset:
    """Point fits along the dim ``choice`` ("huber 0.001", ..., "lsq-log", "lsq"): parameters, agreement, convergence.

    ``at`` names inputs where the outcome is also predicted (``predicted``). ``options`` go to ``pointfit``.
    """
    law = zoo.get(law, "laws") if isinstance(law, str) else law
    choices: dict[str, dict[str, Any]] = {f"huber {d:g}": dict(method="huber", delta=d) for d in deltas} | {
        m: dict(method=m) for m in ("lsq-log", "lsq")
    }
    fits = [pointfit(law, runs, **options, **choice) for choice in choices.values()]
    keep = [*law.params, "objective", "gradient_norm", "agreement", "condition_number"]
    out = xr.concat([f[keep] for f in fits], "choice", combine_attrs="drop").assign_coords(choice=list(choices))
    for k, p in law.params.items():
        out[k].attrs = {"units": p.unit, "meaning": p.doc}
    out["converged"] = ("choice", np.array([f.attrs["converged"] for f in fits]))
    if at is not None:
        out["predicted"] = law(out, **at)
    return out.assign_attrs(
        law=law.name, data_name=fits[0].attrs["data_name"], data_sha256=fits[0].attrs["data_sha256"]
    )
