"""Calibrate: is the inference right? Ranks of the truth in the posterior, and how often intervals hold it.

    rank_j = #{s: theta_js < theta_j},  theta_j ~ prior, y_j ~ p(y | theta_j), theta_js ~ p(theta | y_j)
    coverage = share of tables whose central interval holds the truth

Ranks are uniform if sampler, model and code are all right (simulation-based calibration). The log likelihood is ranked
too: it is a quantity of parameters and data, and catches a sampler that ignores the data and returns the prior, which
the parameters' own ranks do not. Sources: Talts et al. 2018 (arXiv:1804.06788); Modrak et al. 2023 (arXiv:2211.02383).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import betaincinv

from scalingkit.infer.replicate import LOG_LIKELIHOOD, replicate
from scalingkit.infer.uniformity import uniformity

RANKS = 100  # draws kept for ranks, evenly spaced: neighbours in a chain are not independent
ALARM = 0.01


def sbc(model: Any, design: xr.Dataset, n: int = 200, *, seed: int = 0, **options: Any) -> xr.Dataset:
    """Simulation-based calibration: ``n`` tables with truths from the prior. ``options`` go to ``replicate``; ``store=``
    keeps what is done and goes on with it, ``client=`` has a Dask cluster do it.

    Variables: those of ``ranks``. ``attrs["passes"]`` is 1 where all ranks are uniform; ``attrs["verdict"]`` says it.
    Raises ValueError where a fixed truth is given: ranks are uniform only over the prior.
    """
    if options.get("truth"):
        raise ValueError("sbc draws the truth from the prior; for a fixed truth use coverage.")
    return ranks(replicate(model, design, n, seed=seed, **options), seed=seed)


def coverage(
    model: Any, design: xr.Dataset, n: int = 200, *, seed: int = 0, level: float = 0.9, **options: Any
) -> xr.Dataset:
    """How often the central ``level`` interval of each parameter holds the truth, over ``n`` simulated tables.

    Variables: those of ``covered``. ``options`` (fitted, truth, sampler, draws, ...) go to ``replicate``.
    """
    return covered(replicate(model, design, n, seed=seed, **options), level)


def ranks(made: xr.Dataset, seed: int = 0) -> xr.Dataset:
    """From the result of ``replicate``: ``rank`` (simulation, param) among RANKS draws, ``p_value`` (param) of uniformity,
    and the picture ``ecdf`` (param, z) with 95% simultaneous bounds ``lower``, ``upper`` (z)."""
    size = made.sizes["draw"]
    keep = np.unique(np.linspace(0, size - 1, min(RANKS, size)).astype(int))
    draws = made["draws"].isel(draw=keep)
    rank = (draws < made["truth"]).sum("draw")
    # spread over its own width, a rank is continuous and exactly uniform
    jitter = np.random.default_rng(seed).random(rank.shape)
    u = (rank.values + jitter) / (keep.size + 1)
    tests = [uniformity(u[:, j]) for j in range(u.shape[1])]
    out = xr.Dataset(
        {
            "rank": rank, "p_value": ("param", [t.p_value for t in tests]),
            "says": ("param", [_rank_words(t.direction) for t in tests]),
            "ecdf": (("param", "z"), np.stack([t.ecdf for t in tests])),
            "lower": ("z", tests[0].lower), "upper": ("z", tests[0].upper),
        },
        coords={"param": made["param"], "z": tests[0].z},
    )  # fmt: skip
    bad = [k for k in out.param.values if float(out.p_value.sel(param=k)) * out.sizes["param"] < ALARM]
    said = ", ".join(f"{k} (p = {float(out.p_value.sel(param=k)):.2g}: {out.says.sel(param=k).item()})" for k in bad)
    verdict = f"Ranks are not uniform for {said}." if bad else "Ranks are uniform: sampler, model and code agree."
    out.attrs = dict(made.attrs) | {"verdict": verdict, "passes": int(not bad)} | _failed(made, verdict)
    return out


def covered(made: xr.Dataset, level: float = 0.9) -> xr.Dataset:
    """From the result of ``replicate``: ``coverage`` (param) with its 95% binomial interval ``lower``, ``upper``
    (Jeffreys), median ``width`` (param), ``inside`` (simulation, param).

    ``passes`` is 1 where every interval holds ``level``, at 99% over all parameters together.
    """
    made = made.sel(param=[k for k in made.param.values if k != LOG_LIKELIHOOD])
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(made["draws"].transpose("draw", "simulation", "param").values, tails, axis=0)
    inside = (made["truth"].values >= low) & (made["truth"].values <= high)
    n, k = inside.shape
    hits = inside.sum(0)
    bounds = _jeffreys(hits, n, 0.05)
    strict = _jeffreys(hits, n, ALARM / k)
    out = xr.Dataset(
        {
            "coverage": ("param", hits / n), "lower": ("param", bounds[0]), "upper": ("param", bounds[1]),
            "width": ("param", np.median(high - low, 0)), "inside": (("simulation", "param"), inside),
        },
        coords={"param": made["param"]},
    )  # fmt: skip
    bad = made.param.values[(strict[0] > level) | (strict[1] < level)]
    said = ", ".join(f"{p} {float(out.coverage.sel(param=p)):.0%}" for p in bad)
    verdict = f"{level:.0%} intervals hold the truth " + (
        f"at another rate for {said}." if bad.size else "as often as they say."
    )
    out.attrs = dict(made.attrs) | {"level": level, "verdict": verdict, "passes": int(not bad.size)}
    out.attrs |= _failed(made, verdict)
    return out


def _failed(made: xr.Dataset, verdict: str) -> dict[str, Any]:
    """Fits that failed may be those that would have been wrong: without them nothing passes."""
    n = made.attrs.get("failed", 0)
    return {"verdict": f"{verdict} But {n} fits failed and are left out.", "passes": 0} if n else {}


def _jeffreys(hits: np.ndarray, n: int, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    low = np.where(hits == 0, 0.0, betaincinv(hits + 0.5, n - hits + 0.5, alpha / 2))
    high = np.where(hits == n, 1.0, betaincinv(hits + 0.5, n - hits + 0.5, 1 - alpha / 2))
    return low, high


def _rank_words(direction: str) -> str:
    """What PIT values say of predictions, ranks say of the posterior."""
    return {"values too low": "posterior too high", "values too high": "posterior too low"}.get(
        direction, "posterior too narrow" if "narrow" in direction else "posterior too wide"
    )
