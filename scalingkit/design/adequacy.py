"""Adequacy: can this design tell the law's parameters apart at all?

    kappa(scale block) <= goal     the scale coefficients are told apart (spread of tokens per parameter, TPP)
    no free direction              no combination keeps more than half of its prior variance

Both hold: adequate. The spread needed for kappa is said twice: in closed form at worst (a gap of zero between the
exponents), and for these very runs at the fitted parameters, by automatic differentiation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.law import Law
from scalingkit.core.names import PARAM
from scalingkit.design import words
from scalingkit.design.evidence import read
from scalingkit.design.grids import DesignError
from scalingkit.design.identify import KAPPA_GOAL, identify
from scalingkit.design.information import inputs, pivot_array, raw
from scalingkit.design.thresholds import threshold, tpp_threshold
from scalingkit.infer.coordinates import of as coordinates


def adequacy(
    source: Any, runs: xr.Dataset, *, kappa: float = KAPPA_GOAL, theta: Mapping[str, float] | None = None,
    noise: float | None = None, law: Law | str | None = None,
) -> xr.Dataset:  # fmt: skip
    """``identify``'s Dataset with ``sd_needed``, ``sd_missing``, ``adequate`` (0 or 1) and attrs["verdict"] about the design.

    ``source``: a Model, a Law or its name; ``kappa``: the condition number of the scale coefficients that is good enough.
    """
    if not kappa > 1:
        raise DesignError(f"kappa = {kappa:g} must exceed 1: no condition number is smaller.")
    known = identify(source, runs, theta=theta, noise=noise, law=law, profiles=False)
    found = read(source, runs, law=law).law
    needed, missing = _spread(found, known, runs, kappa)
    at = float(known["kappa"].sel(block="scale"))
    apart = bool(np.isnan(at) or at <= kappa)
    good = apart and bool(known["identified"])
    out = known.assign(
        sd_needed=((), needed, {"units": "nat", "meaning": f"sd of log TPP for kappa {kappa:g}, exponents alike"}),
        sd_missing=(
            (),
            missing,
            {"units": "nat", "meaning": f"sd of log TPP to add to these runs for kappa {kappa:g}"},
        ),
        adequate=((), int(good)),
    )
    return out.assign_attrs(verdict=_verdict(out, found, kappa, apart, good), source="adequacy", goal=kappa)


def _spread(law: Law, known: xr.Dataset, runs: xr.Dataset, kappa: float) -> tuple[float, float]:
    """sd of log TPP for kappa at worst, and what these runs lack of it; NaN where the law has no such block."""
    if "sd_log_tpp" not in known or np.isnan(float(known["kappa"].sel(block="scale"))):
        return np.nan, np.nan
    c = coordinates(law)
    theta = raw(c, known["centre"].values, pivot_array(c, inputs(law, runs)))
    at = {k: float(v) for k, v in zip(known[PARAM].values, theta, strict=True)}
    exponent = next((e for i, e in law.scales.values() if i == "D"), None)
    beta = at.get(exponent, np.nan) if isinstance(exponent, str) else np.nan
    needed = tpp_threshold(beta, kappa) if np.isfinite(beta) and beta > 0 else np.nan
    return needed, float(threshold(law, at, runs, kappa)["sd_tpp"])


def _verdict(out: xr.Dataset, law: Law, kappa: float, apart: bool, good: bool) -> str:
    at = {str(b): float(out["kappa"].sel(block=b)) for b in out["block"].values}
    said = ["Adequate: this design tells" if good else "Not adequate: this design does not tell"]
    said[0] += f" the {law.name} law's parameters apart."
    if np.isfinite(at["scale"]) or np.isinf(at["scale"]):
        side = "within" if apart else "beyond"
        size = words.short(at["scale"]) if np.isfinite(at["scale"]) else "infinite"
        said.append(f"The condition number of the scale coefficients is {size}, {side} the {kappa:g} asked for.")
    if "sd_log_tpp" in out and np.isfinite(float(out["sd_needed"])):
        have, need, lack = (float(out[k]) for k in ("sd_log_tpp", "sd_needed", "sd_missing"))
        text = f"Tokens per parameter spread by {have:.2f} (sd of the log); {need:.2f} is enough whatever the exponents"
        said.append(text + (f", and these runs lack {lack:.2f}." if not apart and np.isfinite(lack) else "."))
    free = int((out["direction_contraction"] < 0.5).sum())
    if free:
        many = "One combination of parameters is" if free == 1 else f"{free} combinations of parameters are"
        said.append(
            f"{many} left to the prior at a noise of {100 * float(out['noise']):.2g}%: {out['words'].values[0]}."
        )
    return " ".join(said)
