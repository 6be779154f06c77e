"""Grids: planned runs as a runs Dataset (dim ``run``; N, D, C with units), before any of them is trained.

    ray        D = k N                            one number of tokens per parameter (TPP)
    spread     D = k_i N_i, k_i in turn           TPP differs between neighbours in size
    ladder     every size at several multiples of a base TPP
    isoflop    every budget at several sizes, D = C / (6 N)
    factorial  every size with every number of tokens
    gaussian   log N and log TPP jointly normal: the design on which kappa = coth(v/4) is exact
    from_runs  the design of a table of runs

``total=`` makes two designs comparable: all N and D are stretched by one common factor, so that TPP stays and the
whole design costs that much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.names import RUN, VARIABLES
from scalingkit.design.cost import Cost, per_run, words


class DesignError(ValueError):
    """A design that cannot be made, or a table that is none."""


def ray(sizes: Any, tpp: float = 20.0, *, total: float | None = None, cost: Cost | None = None) -> xr.Dataset:
    """Runs at ``sizes`` parameters, each with ``tpp`` tokens per parameter."""
    N = _positive("sizes", sizes)
    return _made(N, _positive("tpp", tpp) * N, "ray", total, cost)


def spread(
    sizes: Any, tpp: Any = (5.0, 20.0, 80.0), *, like: float | None = None, total: float | None = None,
    cost: Cost | None = None,
) -> xr.Dataset:  # fmt: skip
    """Runs at ``sizes``, taking the TPP levels in turn.

    ``like=20`` keeps every run at what it would cost on the ray of 20 tokens per parameter (under C ~ N D): size
    N sqrt(like / k) instead of N.
    """
    N = _positive("sizes", sizes)
    k = np.resize(_positive("tpp", tpp), N.shape)
    if like is not None:
        N = N * np.sqrt(_positive("like", like) / k)
    return _made(N, k * N, "spread", total, cost)


def ladder(
    sizes: Any, multiples: Any = (1.0, 2.0, 5.0, 10.0), *, tpp: float = 20.0, total: float | None = None,
    cost: Cost | None = None,
) -> xr.Dataset:  # fmt: skip
    """Every size at every multiple of ``tpp`` tokens per parameter, as model ladders are trained."""
    N, m = (a.ravel() for a in np.meshgrid(_positive("sizes", sizes), _positive("multiples", multiples), indexing="ij"))
    return _made(N, float(tpp) * m * N, "ladder", total, cost)


def isoflop(
    budgets: Any, *, points: int = 7, tpp: tuple[float, float] = (2.0, 200.0), flop_per_param_token: float = 6.0
) -> xr.Dataset:
    """``points`` sizes at every budget C, log-evenly between two TPP: N = sqrt(C / (6 TPP)), D = C / (6 N)."""
    C, k = np.meshgrid(_positive("budgets", budgets), np.geomspace(*_positive("tpp", tpp), points), indexing="ij")
    N = np.sqrt(C / (flop_per_param_token * k)).ravel()
    return _made(N, k.ravel() * N, "isoflop", None, flop_per_param_token)


def factorial(sizes: Any, tokens: Any, *, total: float | None = None, cost: Cost | None = None) -> xr.Dataset:
    """Every size with every number of tokens."""
    N, D = np.meshgrid(_positive("sizes", sizes), _positive("tokens", tokens), indexing="ij")
    return _made(N.ravel(), D.ravel(), "factorial", total, cost)


def gaussian(
    n: int, sd_size: float, sd_tpp: float, *, corr: float = 0.0, centre: tuple[float, float] = (1e9, 20.0),
    seed: int = 0, total: float | None = None, cost: Cost | None = None,
) -> xr.Dataset:  # fmt: skip
    """(log N, log TPP) ~ Normal with these sds and correlation, by scrambled Sobol points; centre = (N, TPP)."""
    from scipy.stats import norm, qmc

    if not -1 <= corr <= 1:
        raise DesignError(f"corr = {corr:g} is not a correlation: it lies between -1 and 1.")
    power = int(np.ceil(np.log2(max(n, 2))))
    z = norm.ppf(qmc.Sobol(2, seed=seed).random_base2(power)[:n])
    u = np.log(centre[0]) + sd_size * z[:, 0]
    tau = np.log(centre[1]) + sd_tpp * (corr * z[:, 0] + np.sqrt(1 - corr**2) * z[:, 1])
    return _made(np.exp(u), np.exp(u + tau), "gaussian", total, cost)


def from_runs(runs: xr.Dataset) -> xr.Dataset:
    """The design of a table of runs: its inputs and labels, without outcomes."""
    missing = [k for k in ("N", "D") if k not in runs]
    if missing:
        raise DesignError(
            f"the runs have no {' and no '.join(missing)}; they have {', '.join(map(str, runs.data_vars))}."
        )
    keep = [k for k in runs.data_vars if runs[k].dims == (RUN,) and k not in ("loss", "loss_se", "error", "y")]
    return runs[keep].assign_attrs(runs.attrs)


def design(N: Any, D: Any, *, name: str = "design", cost: Cost | None = None, **more: Any) -> xr.Dataset:
    """Runs at the given N and D (arrays of one length or numbers), with further inputs by name (U, P, ...)."""
    arrays = [_positive(k, v) for k, v in {"N": N, "D": D, **more}.items()]
    try:
        N, D, *rest = np.broadcast_arrays(*arrays)
    except ValueError as e:
        sizes = ", ".join(f"{k} {a.size}" for k, a in zip(("N", "D", *more), arrays, strict=True))
        raise DesignError(f"the inputs have different lengths: {sizes}.") from e
    made = _made(np.atleast_1d(N), np.atleast_1d(D), name, None, cost)
    return made.assign({k: _variable(k, np.atleast_1d(v)) for k, v in zip(more, rest, strict=True)})


def extend(runs: xr.Dataset, new: xr.Dataset) -> xr.Dataset:
    """``runs`` with ``new`` appended; labels stay unique. What only one of the two has is missing (NaN, "")."""
    taken = set(map(str, runs[RUN].values))
    labels = [_free(str(r), taken) for r in new[RUN].values]
    groups = {k: (RUN, np.full(new.sizes[RUN], "")) for k in runs.coords if k != RUN and k not in new.coords}
    parts = [runs, new.assign_coords({RUN: labels, **groups})]
    keep = [[k for k in p.variables if p[k].dims == (RUN,)] for p in parts]
    both = xr.concat(
        [p[[k for k in ks if k in p.data_vars]] for p, ks in zip(parts, keep, strict=True)],
        RUN, join="outer", data_vars="all", coords="different", compat="equals", combine_attrs="override",
    )  # fmt: skip
    return both


def stretched(runs: xr.Dataset, total: float, cost: Cost | None = None) -> xr.Dataset:
    """All N and D times one common factor, so that the whole design costs ``total``; TPP stays."""
    N, D = runs["N"].values, runs["D"].values
    lo, hi = -60.0, 60.0
    for _ in range(80):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if per_run(cost, N * np.exp(mid), D * np.exp(mid)).sum() < total else (lo, mid)
    s = np.exp((lo + hi) / 2)
    new = {k: (RUN, runs[k].values * s, runs[k].attrs) for k in ("N", "D")}
    return runs.assign(new).assign(C=_variable("C", per_run(cost, N * s, D * s)))


def _made(N: np.ndarray, D: np.ndarray, name: str, total: float | None, cost: Cost | None) -> xr.Dataset:
    labels = [f"{name}-{i:02d}" for i in range(N.size)]
    values = {"N": N, "D": D, "C": per_run(cost, N, D)}
    out = xr.Dataset({k: _variable(k, v) for k, v in values.items()}, coords={RUN: labels})
    out.attrs = {"source": f"design: {name}", "data_name": name, "cost": words(cost)}
    return out if total is None else stretched(out, float(_positive("total", total)), cost)


def _variable(name: str, values: np.ndarray) -> tuple[str, np.ndarray, dict[str, str]]:
    known = VARIABLES.get(name)
    attrs = {"units": known.unit, "meaning": known.meaning} if known else {"units": "1", "meaning": name}
    return (RUN, np.asarray(values, float), attrs)


def _positive(name: str, values: Any) -> np.ndarray:
    a = np.asarray(list(values) if isinstance(values, Sequence) else values, dtype=float)
    if a.size == 0 or not np.all(np.isfinite(a) & (a > 0)):
        raise DesignError(f"{name} must be positive finite numbers; got {values!r}.")
    return a


def _free(label: str, taken: set[str]) -> str:
    new, i = label, 1
    while new in taken:
        new, i = f"{label}.{i}", i + 1
    taken.add(new)
    return new
