"""Thresholds: how far tokens per parameter (TPP) must spread before the coefficients of a law can be told apart.

Two columns f, g of the Jacobian (the scale coefficients), z = log(g/f), v = Var_w(z) under weights w ~ f**2:

    kappa = coth(v/4)                                     exact where z is Gaussian under w; about 4/v
    v     = gap**2 sd_u**2 + beta**2 sd_tau**2 - 2 gap beta cov(u, tau)
            u = log N, tau = log TPP, gap = alpha - beta (Chinchilla) or (alpha_N - alpha_D)/alpha_D (Kaplan, beta = 1)
    kappa <= kappa*   iff   v >= 4 artanh(1/kappa*)       the threshold; at gap 0: sd_tau >= (2/beta) sqrt(artanh(1/kappa*))
    VIF   = 1/(1 - exp(-v));  relative error rho of A from n runs of noise s:  v >= -log(1 - s**2/(n rho**2 A**2 mean f**2))

With the floor E projected out the cosine becomes a correlation (``kappa_with_floor``). These are statements about the
**scale block** (slope -2 in the gap on a ray, with and without E). The full matrix of five parameters has slope -6 on
a ray, and goes like 1/Var(tau) once TPP is spread: see ``local_slopes`` and ``information.condition(block="full")``.
Source of the -2 statement: arXiv 2605.08541; the closed forms here are derived in this project.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.law import Law
from scalingkit.core.names import RUN
from scalingkit.core.precision import require_x64
from scalingkit.design.grids import DesignError
from scalingkit.design.information import Block, Outcome, block_params, condition, jacobian

_WIDEST = 6.0  # sd of log TPP beyond which no design goes: a factor of 400 either way


def kappa(v: Any) -> Any:
    """coth(v/4): condition number of the two scale columns at spread v. Infinite at v = 0."""
    v = np.asarray(v, float)
    with np.errstate(divide="ignore"):
        return 1 / np.tanh(v / 4)


def spread(alpha: Any, beta: Any, sd_size: Any, sd_tpp: Any, cov: Any = 0.0) -> Any:
    """v = gap**2 sd_u**2 + beta**2 sd_tau**2 - 2 gap beta cov(u, tau), gap = alpha - beta."""
    gap = np.subtract(alpha, beta)
    return gap**2 * np.square(sd_size) + np.square(beta) * np.square(sd_tpp) - 2 * gap * beta * np.asarray(cov)


def spread_needed(kappa_star: Any) -> Any:
    """v* = 4 artanh(1/kappa*): the least spread at which kappa <= kappa*. kappa* > 1."""
    kappa_star = np.asarray(kappa_star, float)
    if np.any(~(kappa_star > 1)):
        raise DesignError(f"kappa_star = {kappa_star} must exceed 1: no condition number is smaller.")
    return 4 * np.arctanh(1 / kappa_star)


def spread_for_error(rel_se: float, *, n: int, noise: float, mean_square: float) -> float:
    """v* for relative standard error ``rel_se`` of a coefficient from ``n`` runs; infinite where n runs cannot do it.

    ``noise``: sd of the outcome; ``mean_square``: mean over the runs of the coefficient's term squared, (A f)**2, in
    the outcome's unit squared.
    """
    share = noise**2 / (n * rel_se**2 * mean_square)
    return float(-np.log1p(-share)) if share < 1 else np.inf


def vif(v: Any) -> Any:
    """1 / (1 - exp(-v)); intervals are sqrt(VIF) times wider than with the other coefficient known."""
    with np.errstate(divide="ignore"):
        return -1 / np.expm1(-np.asarray(v, float))


def tpp_threshold(
    beta: float, kappa_star: float | None = None, *, alpha: float | None = None, sd_size: float = 0.0,
    corr: float = 0.0, rel_se: float | None = None, n: int | None = None, noise: float | None = None,
    mean_square: float | None = None,
) -> float:  # fmt: skip
    """Least sd of log TPP for ``kappa_star``, or for ``rel_se`` with n, noise and mean_square; nats.

    The worst case gap 0 where ``alpha`` is not given; else what the gap and the spread of sizes give is taken off.

    >>> round(tpp_threshold(0.34, 100), 3), round(tpp_threshold(0.34, 1000), 3)
    (0.588, 0.186)
    """
    if (kappa_star is None) == (rel_se is None):
        raise DesignError("give either kappa_star or rel_se (with n, noise and mean_square), not both.")
    if rel_se is not None:
        if n is None or noise is None or mean_square is None:
            raise DesignError("rel_se needs n (runs), noise (sd of the outcome) and mean_square (of the term A f).")
        v = spread_for_error(rel_se, n=n, noise=noise, mean_square=mean_square)
    else:
        v = float(spread_needed(kappa_star))
    gap = (alpha - beta if alpha is not None else 0.0) * sd_size
    rest = v - gap**2 * (1 - corr**2)
    return 0.0 if rest <= 0 else max(0.0, (gap * corr + np.sqrt(rest)) / beta)


def kappa_with_floor(alpha: float, beta: float, sd_size: float, sd_tpp: float = 0.0, cov: float = 0.0) -> float:
    """(1 + c)/(1 - c) with c the correlation of f and g on a lognormal design: the constant projected out.

    c = (e**s_fg - 1)/sqrt((e**s_ff - 1)(e**s_gg - 1)); s_ff = alpha**2 Var u, s_gg = beta**2 Var(u + tau),
    s_fg = alpha beta Cov(u, u + tau).
    """
    s_ff = alpha**2 * sd_size**2
    s_gg = beta**2 * (sd_size**2 + sd_tpp**2 + 2 * cov)
    c = np.expm1(alpha * beta * (sd_size**2 + cov)) / np.sqrt(np.expm1(s_ff) * np.expm1(s_gg))
    return float((1 + c) / (1 - c))


def kappa_with_floor_on_ray(alpha: float, gap: float, sd_size: float) -> float:
    """4 / (gap**2 sd_u**2 G(alpha**2 sd_u**2)), G(y) = e**y (e**y - 1 - y)/(e**y - 1)**2: the small-gap limit."""
    y = alpha**2 * sd_size**2
    G = np.exp(y) * (np.expm1(y) - y) / np.expm1(y) ** 2
    return float(4 / (gap**2 * sd_size**2 * G))


def weighted_spread(law: Law, theta: Any, runs: xr.Dataset, *, of: Outcome = "output") -> float:
    """v = Var_w(log(g/f)), w ~ f**2, of the two scale columns of any law on these runs: what the closed form needs."""
    names = block_params(law, "scale")
    if len(names) != 2:
        raise DesignError(f"law {law.name!r} has {len(names)} scale coefficients; the closed form compares two.")
    J = jacobian(law, theta, runs, of=of, block="scale").values
    w = J[:, 0] ** 2 / np.sum(J[:, 0] ** 2)
    z = np.log(np.abs(J[:, 1] / J[:, 0]))
    return float(np.sum(w * (z - np.sum(w * z)) ** 2))


def widened(runs: xr.Dataset, sd_tpp: float, levels: Any = (-1.0, 0.0, 1.0)) -> xr.Dataset:
    """``runs`` with log TPP moved by levels taken in turn, scaled to add this sd; every run's N D stays what it was."""
    step = np.resize(np.asarray(levels, float), runs.sizes[RUN])
    step = (step - step.mean()) / step.std() * sd_tpp / 2
    new = {k: (RUN, runs[k].values * np.exp(s * step), runs[k].attrs) for k, s in (("N", -1.0), ("D", 1.0))}
    return runs.assign(new)


def threshold(
    law: Law, theta: Any, runs: xr.Dataset, kappa_star: float | None = None, *, rel_se: float | None = None,
    noise: float | None = None, block: Block = "scale", of: Outcome = "output",
) -> xr.Dataset:  # fmt: skip
    """The same threshold for any law in N and D, by automatic differentiation: ``runs`` are widened until it is met.

    For ``kappa_star``: kappa of ``block``. For ``rel_se`` (with ``noise``, sd of the outcome, or of its log for
    of="log"): the largest relative standard error among the scale coefficients, the other parameters of ``block``
    being estimated too. Returns ``sd_tpp``, the criterion just below and above it, and the ``runs`` widened to it.
    ``sd_tpp`` is infinite where even a factor of 400 either way does not do it.
    """
    require_x64("a threshold")
    if (kappa_star is None) == (rel_se is None):
        raise DesignError("give either kappa_star or rel_se, not both.")
    goal = float(kappa_star if kappa_star is not None else rel_se)  # type: ignore[arg-type]

    def value(sd: float) -> float:
        design = widened(runs, sd)
        if kappa_star is not None:
            return float(condition(law, theta, design, block=block, of=of))
        return relative_error(law, theta, design, noise, block=block, of=of)

    sd = _first_below(value, goal)
    out = widened(runs, 0.0 if np.isinf(sd) else sd)
    around = [np.nan, np.nan] if np.isinf(sd) else [value(sd * 0.99), value(sd * 1.01)]
    return out.assign(
        sd_tpp=((), sd, {"units": "nat", "meaning": "least sd of log TPP, added to the runs', that meets the goal"}),
        below=((), around[0], {"meaning": "criterion at 0.99 of it: not yet met"}),
        above=((), around[1], {"meaning": "criterion at 1.01 of it: met"}),
    ).assign_attrs(goal=goal, criterion="kappa" if kappa_star is not None else "rel_se", block=block, law=law.name)


def relative_error(
    law: Law, theta: Any, runs: xr.Dataset, noise: float | None, *, block: Block = "scale", of: Outcome = "output"
) -> float:
    """Largest standard error of log c over the scale coefficients c, the other parameters of ``block`` unknown too."""
    if noise is None:
        raise DesignError("a relative standard error needs the noise: the sd of the outcome (or of its log).")
    names = block_params(law, block)
    J = jacobian(law, theta, runs, coords="log", of=of, block=block).values
    length = np.linalg.norm(J, axis=0)
    _, s, Vt = np.linalg.svd(J / length, full_matrices=False)
    with np.errstate(divide="ignore", over="ignore"):
        se = noise * np.linalg.norm(Vt / s[:, None], axis=0) / length
    return float(max(se[names.index(k)] for k in law.scales))


def local_slopes(x: Any, y: Any) -> np.ndarray:
    """d log y / d log x between neighbours: the sequence whose limit is the exponent."""
    return np.diff(np.log(np.asarray(y, float))) / np.diff(np.log(np.asarray(x, float)))


def _first_below(value: Callable[[float], float], goal: float) -> float:
    """Smallest sd in [0, _WIDEST] with value(sd) <= goal, by a scan and bisection; infinite where there is none."""
    scan = np.r_[0.0, np.geomspace(1e-3, _WIDEST, 60)]
    values = np.array([value(s) for s in scan])
    met = np.flatnonzero(values <= goal)
    if not met.size:
        return np.inf
    if met[0] == 0:
        return 0.0
    lo, hi = scan[met[0] - 1], scan[met[0]]
    for _ in range(50):
        mid = (lo + hi) / 2
        lo, hi = (lo, mid) if value(mid) <= goal else (mid, hi)
    return float(hi)
