"""Caps: the largest best-of-N budget whose harm after selection is certified to stay below a limit, or a refusal.

    U_N = mean_j x_jN + sqrt(2 V_N L / n) + 7 L / (3 (n - 1)),   L = log(2 |grid| / delta)        empirical Bernstein
    U_N' = U_N + weight sigma sqrt(2 log N / m) + Gamma_N
    cap = the largest N with U_M' <= limit for every M <= N

x_jN is the exposure of prompt j (``exposures``), n all attempted prompts, V the sample variance. The second line pays for
harm that was scored by a verifier with noise sigma / sqrt(m), and for a declared mismatch Gamma between what was audited
and what is deployed. P(some certified N has exposure above the limit) <= delta, where Gamma is right and prompts are
independent: the union bound over the grid pays for looking at all N. Refusing is always allowed. The bound is of Maurer
and Pontil; its use here, the gates and the penalty are derived in this project.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import xarray as xr
from scipy import stats

from scalingkit.core.names import BUDGET, PROBLEM, SAMPLE
from scalingkit.decide.exposures import FEWEST, CapError, exposures

CERTIFIED, REFUSED = "CERTIFIED", "REFUSED"


def certify(
    data: xr.Dataset, *, attempted: Any, limit: float, delta: float = 0.05, N: Any = None, by: str = "score",
    harm: str = "harm", verifier: Mapping[str, float] | None = None, mismatch: float | Mapping[int, float] = 0.0,
    n_min: int = 100, resolved: float = 0.5, drift: bool = False, individual: bool = False,
    method: Literal["bernstein", "clopper-pearson"] = "bernstein", seed: int = 0,
) -> xr.Dataset:  # fmt: skip
    """A tail-certified cap on N, or a refusal with its reasons.

    data       ``by`` (public score) and ``harm`` (audited, in [0, 1]), dims (problem, sample), nan where missing
    attempted  all problems that were attempted: labels, or how many. It has no default, and none can be dropped
    limit      exposure that must not be exceeded;  delta  chance of a false certificate
    N          grid of budgets; default 1, 2, 4, ... up to the largest pool
    verifier   {"sigma": sd of one unit of verifier evidence, "m": units, "weight": 1} where harm is its word
    mismatch   Gamma, one number or {N: Gamma_N}, where the audited data are a proxy
    n_min, resolved, drift   gates: prompts needed, share of them with an untied tail, monitored drift
    individual     certify each N by itself instead of all up to N
    method     "clopper-pearson": one drawn selection a prompt (``seed``), for harm that is 0 or 1

    ``exposure``, ``upper``, ``certified`` (budget), ``cap`` (0 where refused); attrs["verdict"] and attrs["reasons"]
    (JSON list). Raises CapError for data or settings that no certificate can be made from.
    """
    _settings(limit, delta, verifier)
    x = exposures(data, attempted=attempted, by=by, harm=harm, N=N)
    ns, each = x[BUDGET].values, x["exposure"].values
    if len(each) < 2:
        raise CapError("one prompt is no sample of prompts; a certificate needs many.")
    bound = _bernstein if method == "bernstein" else _clopper_pearson
    raw = bound(each, delta / ns.size, seed)
    upper = raw + _penalty(ns, verifier) + _mismatch(ns, mismatch)
    gates = _gates(x, data, by, n_min, resolved, drift)
    beyond = ns > x.attrs["largest_pool"]
    ok = (upper <= limit) & ~beyond & (not gates)
    certified = ok if individual else np.logical_and.accumulate(ok)
    cap = int(ns[certified].max(initial=0))
    reasons = [*gates, *_why(ns, upper, limit, beyond, cap, x.attrs["largest_pool"])]
    return xr.Dataset(
        dict(exposure=(BUDGET, each.mean(0)), upper=(BUDGET, upper), certified=(BUDGET, certified), cap=cap),
        coords={BUDGET: ns},
        attrs=dict(
            verdict=CERTIFIED if cap else REFUSED, reasons=json.dumps(reasons), limit=limit, delta=delta,
            attempted=len(each), failed=int(x["failed"].sum()), method=method,
            guarantee=f"P(a certified N has exposure above {limit:g}) <= {delta:g}, prompts independent, mismatch as declared",
        ),
    )  # fmt: skip


def _bernstein(each: np.ndarray, delta: float, seed: int) -> np.ndarray:
    n, log = len(each), np.log(2 / delta)
    return each.mean(0) + np.sqrt(2 * each.var(0, ddof=1) * log / n) + 7 * log / (3 * (n - 1))


def _clopper_pearson(each: np.ndarray, delta: float, seed: int) -> np.ndarray:
    """Upper limit from one selection a prompt: harm happens with chance x_jN."""
    hits = (np.random.default_rng(seed).random(each.shape) < each).sum(0)
    n = len(each)
    return np.where(hits < n, stats.beta.ppf(1 - delta, hits + 1, np.maximum(n - hits, 1)), 1.0)


def _penalty(ns: np.ndarray, verifier: Mapping[str, float] | None) -> Any:
    if verifier is None:
        return 0.0
    return verifier.get("weight", 1.0) * verifier["sigma"] * np.sqrt(2 * np.log(ns) / verifier["m"])


def _mismatch(ns: np.ndarray, mismatch: float | Mapping[int, float]) -> Any:
    if not isinstance(mismatch, Mapping):
        return float(mismatch)
    if missing := [int(n) for n in ns if int(n) not in mismatch]:
        raise CapError(f"mismatch says nothing of N = {missing[0]}; give every N of the grid, or one number.")
    return np.array([mismatch[int(n)] for n in ns], float)


def _gates(x: xr.Dataset, data: xr.Dataset, by: str, n_min: int, resolved: float, drift: bool) -> list[str]:
    """What forbids any certificate."""
    n, K = x.attrs["attempted"], x.attrs["largest_pool"]
    said = []
    if drift:
        said.append("the drift monitor is on: these pools are not what is deployed.")
    if n < n_min:
        said.append(f"{n} prompts were attempted; at least {n_min} are needed.")
    if K < FEWEST:
        said.append(f"the largest pool holds {K} samples; at least {FEWEST} are needed to speak of a tail.")
    elif (share := _untied(data, by)) < resolved:
        said.append(
            f"the scores of the upper quarter differ in only {share:.0%} of the prompts; {resolved:.0%} are needed."
        )
    return said


def _untied(data: xr.Dataset, by: str) -> float:
    """Share of prompts with at least two different scores in their upper quarter."""
    s = np.sort(np.asarray(data[by].transpose(PROBLEM, SAMPLE).values, float), axis=1)  # nan last
    have = np.isfinite(s).sum(1)
    good = [h >= FEWEST and row[h - max(2, h // 4)] < row[h - 1] for row, h in zip(s, have, strict=True)]
    return float(np.mean(good)) if good else 0.0


def _why(ns: np.ndarray, upper: np.ndarray, limit: float, beyond: np.ndarray, cap: int, K: int) -> list[str]:
    """Why not a larger N."""
    said = [f"N = {n}: the upper limit {u:.3g} exceeds {limit:g}." for n, u in zip(ns, upper, strict=True) if u > limit]
    far = [f"N = {n} lies beyond the largest pool ({K}); nothing is extrapolated." for n in ns[beyond]]
    return [*said[:1], *far[:1]] if not cap or cap < ns.max() else []


def _settings(limit: float, delta: float, verifier: Mapping[str, float] | None) -> None:
    for name, value in (("limit", limit), ("delta", delta)):
        if not 0 < value < 1:
            raise CapError(f"{name} = {value!r} must lie between 0 and 1.")
    if verifier is not None and not {"sigma", "m"} <= set(verifier):
        raise CapError("verifier needs sigma (sd of one unit of evidence) and m (units).")
