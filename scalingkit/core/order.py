"""Order statistics: the best of N draws, from a distribution or from a finite pool, exactly.

    E max of N = int_0^1 Q(u) N u**(N-1) du            Q the quantile function
    P(the best of N is the i-th smallest of a pool of m) = C(i-1, N-1) / C(m, N),   N drawn without replacement

The second is also the weight of the unbiased U-statistic for every "best-of-N of something" from m >= N samples.
No sampling here: sums, products and one quadrature, in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special, stats

# nodes of the double-exponential rule on (0, 1): v = expit(pi/2 sinh t), good from 1e-300 to 1 - 1e-300
_STEP = 1 / 64
_T = np.arange(-6.0, 6.0 + _STEP / 2, _STEP)
_Z = np.pi / 2 * np.sinh(_T)
_WEIGHT = _STEP * np.pi / 2 * np.cosh(_T) * special.expit(_Z) * special.expit(-_Z)
_LOG_V = -np.logaddexp(0.0, -_Z)


def budgets(m: int, N: Any = None, dense: int = 2048) -> np.ndarray:
    """The sample budgets asked for: all of 1..m by default, about 256 of them on a log scale for m > ``dense``.

    Raises ValueError for a budget that is no whole number of at least 1.
    """
    if N is None:
        every = np.arange(1, m + 1)
        return every if m <= dense else np.unique(np.geomspace(1, m, 256).round().astype(int))
    found = np.atleast_1d(np.asarray(N, float))
    if bad := [n for n in found.ravel().tolist() if not (np.isfinite(n) and n >= 1 and n == round(n))]:
        raise ValueError(f"N = {bad[0]:g}: a sample budget is a whole number of at least 1.")
    return found.astype(int)


def rank_weights(m: int, N: Any = None) -> np.ndarray:
    """P(best of N = i-th smallest of m), array (N, i): rows sum to 1, the last entry is N / m.

    N  whole numbers; a row with N > m is nan: a pool of m says nothing of it.
    """
    n = budgets(m, N)[:, None].astype(float)
    i = np.arange(m, 1, -1.0)[None]
    down = np.cumprod(np.maximum(i - n, 0) / np.maximum(i - 1, 1), axis=1)  # weight of rank i - 1 over that of m
    table = np.concatenate([down[:, ::-1], np.ones_like(n)], axis=1) * (n / m)
    return np.where(n <= m, table, np.nan)


def tie_average(scores: np.ndarray, values: np.ndarray) -> np.ndarray:
    """``values`` in the order of rising scores, averaged within blocks of equal scores, along the last axis.

    A tie is broken by chance, so each of its members is chosen equally often: that is the mean of the block.
    """
    order = np.argsort(scores, axis=-1, kind="stable")
    s, v = np.take_along_axis(scores, order, -1), np.take_along_axis(np.broadcast_to(values, scores.shape), order, -1)
    starts = np.ones(s.shape, bool)
    starts[..., 1:] = s[..., 1:] != s[..., :-1]
    if starts.all():
        return v
    block = np.cumsum(starts.ravel()) - 1  # every row begins a block of its own
    mean = np.bincount(block, v.ravel().astype(float)) / np.bincount(block)
    return np.where(np.isfinite(v), mean[block].reshape(v.shape), v)


def harmonic(N: Any) -> Any:
    """H_N = 1 + 1/2 + ... + 1/N = digamma(N + 1) + gamma: E max of N exponential(1)."""
    return special.digamma(np.asarray(N, float) + 1) + np.euler_gamma


def expected_max(dist: Any, N: Any) -> Any:
    """E max of N independent draws of ``dist``, a frozen scipy.stats distribution; N may be any real number >= 1.

    int_0^1 isf(1 - v**(1/N)) dv by a double-exponential rule, to about 1e-12 relative; ``inf`` where the mean does not
    exist. Closed forms, for comparison: exponential H_N, uniform N/(N+1), GPD (N B(N, 1-xi) - 1)/xi.
    """
    return _over_best(lambda p: dist.isf(p), N) if np.isfinite(dist.mean()) else np.full(np.shape(N), np.inf)[()]


def normal_score(N: Any) -> Any:
    """e_N = E max of N standard normals: 0, .564190, .846284, ... ; e_16 = 1.765991, e_256 = 2.826863."""
    return _score(float(N)) if np.ndim(N) == 0 else expected_max(stats.norm(), N)


@lru_cache(4096)
def _score(N: float) -> float:
    return float(expected_max(stats.norm(), N))


def exposure(h: Callable[[np.ndarray], np.ndarray], N: Any, jumps: Iterable[float] = ()) -> Any:
    """E h(U) with U ~ Beta(N, 1): what the chosen one of N has of a property h(u) at score quantile u.

    int_0^1 N u**(N-1) h(u) du.  h takes the tail p = 1 - u, which keeps its digits near the top.
    jumps  tails p at which h is not continuous: the integral is split there
    """
    return _over_best(h, N, jumps)


def gpd_expected_max(xi: Any, scale: Any, N: Any) -> Any:
    """E max of N draws of a generalised Pareto from 0: scale (N B(N, 1-xi) - 1) / xi, H_N scale at xi = 0.

    xi > 0 is heavy, xi < 0 has the end point -scale / xi; ``inf`` for xi >= 1. Any real N > 0.
    """
    xi, scale, N = np.broadcast_arrays(*(np.asarray(a, float) for a in (xi, scale, N)))
    small, safe = np.abs(xi) < 1e-4, np.where(xi < 1, xi, 0.5)
    away = np.where(small, 0.5, safe)
    # Gamma(N+1) / Gamma(N+1-xi) through the beta function, which keeps its digits for large N
    rise, fall = np.maximum(away, 1e-9), np.maximum(-away, 1e-9)
    ratio = np.where(
        away > 0,
        special.gammaln(rise) - special.betaln(N + 1 - rise, rise),
        special.betaln(N + 1, fall) - special.gammaln(fall),
    )
    mean = np.expm1(ratio + special.gammaln(1 - away)) / away
    x = np.where(small, xi, 0.0)
    log = x * harmonic(N) + x**2 / 2 * (special.zeta(2) - special.polygamma(1, N + 1))
    log = log + x**3 / 6 * (2 * special.zeta(3) + special.polygamma(2, N + 1))
    near = np.where(x == 0, harmonic(N), np.expm1(log) / np.where(x == 0, 1.0, x))
    return np.where(xi < 1, scale * np.where(small, near, mean), np.inf)[()]


def advantage(dist: Any, r: Any, N: int) -> Any:
    """A_N(r) = N int_(-inf)^r F(t)**(N-1) dt = N E (r - best of the other N-1)_+: what reward r adds to the best of N.

    grad E max of N = E[grad log pi(y) A_N(r(y))]: exact for a reward with distribution ``dist`` (frozen scipy.stats).
    At N = 1 the integral is r up to a constant: r - mean is given. Only the upper tail matters for large N.
    """
    r = np.asarray(r, float)
    if N == 1:
        return r - dist.mean()
    with np.errstate(divide="ignore"):
        below = -np.expm1((N - 1) * dist.logcdf(r))  # 1 - P(the others' best <= r)
    ones = np.ones_like(r)[..., None]
    return N * _piece(lambda tail: r[..., None] - dist.isf(tail), (N - 1) * ones, ones, below[..., None])


def _over_best(of_tail: Callable[[np.ndarray], np.ndarray], N: Any, jumps: Iterable[float] = ()) -> Any:
    """int_0^1 f(1 - v**(1/N)) dv, in pieces between the jumps."""
    n = np.asarray(N, float)
    if (n < 1).any() or not np.isfinite(n).all():
        raise ValueError(f"N = {N!r}: a sample budget is at least 1.")
    # what is above each cut, 1 - v, from 1 (v = 0) down to 0 (v = 1)
    inner = [-np.expm1(n * np.log1p(-p)) for p in sorted(jumps, reverse=True) if 0 < p < 1]
    cuts = [np.ones_like(n), *inner, np.zeros_like(n)]
    return sum(_piece(of_tail, n[..., None], a[..., None], b[..., None]) for a, b in pairwise(cuts))


def _piece(of_tail: Callable[[np.ndarray], np.ndarray], n: np.ndarray, upper: np.ndarray, lower: np.ndarray) -> Any:
    """The part with 1 - v between ``lower`` and ``upper``."""
    width = upper - lower
    above = lower + width * special.expit(-_Z)
    with np.errstate(divide="ignore"):
        log_v = np.where(above < 0.5, np.log1p(-above), np.log((1 - upper) + width * special.expit(_Z)))
        log_v = np.where((upper == 1) & (above >= 0.5), np.log(width) + _LOG_V, log_v)
    # at the far ends the weight is below 1e-280: what the quantile does there (inf) cannot count
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        tail = np.clip(-np.expm1(log_v / n), 1e-300, 1.0)
        terms = np.nan_to_num(np.asarray(of_tail(tail)) * _WEIGHT, posinf=0.0, neginf=0.0)
    return (width * np.where(_WEIGHT > 1e-280, terms, 0.0)).sum(-1)[()]


def mixture_isf(p: float, good: Any, bad: Any, tail: np.ndarray) -> np.ndarray:
    """Score r with p good.sf(r) + (1-p) bad.sf(r) = tail, by bisection between the two parts' own quantiles."""
    a, b = np.asarray(good.isf(tail), float), np.asarray(bad.isf(tail), float)
    low, high = np.minimum(a, b), np.maximum(a, b)
    for _ in range(200):
        middle = low + (high - low) / 2
        above = p * good.sf(middle) + (1 - p) * bad.sf(middle) > tail
        low, high = np.where(above, middle, low), np.where(above, high, middle)
        if np.all(high - low <= 4e-16 * np.maximum(np.abs(high), 1e-300)):
            break
    return low + (high - low) / 2


def accuracy(p: float, good: Any, bad: Any, N: Any) -> Any:
    """P(the best-scored of N is correct): int_0^1 N u**(N-1) q(u) du, q(u) = P(correct | mixture score quantile u).

    p     share of correct answers;  good, bad  frozen scipy.stats distributions of their scores
    N     any real numbers >= 1;     N = 1 gives p; equal distributions give p for every N

    Raises ValueError for p outside [0, 1].
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p = {p!r}, the share of correct answers, must lie between 0 and 1.")
    if p in (0.0, 1.0):
        return np.full(np.shape(N), float(p))[()]

    def q(tail: np.ndarray) -> np.ndarray:
        r = mixture_isf(p, good, bad, tail)
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.log1p(-p) + bad.logpdf(r) - np.log(p) - good.logpdf(r)
        return special.expit(-np.where(np.isnan(gap), np.inf, gap))

    ends = [float(e) for d in (good, bad) for e in d.support() if np.isfinite(e)]
    return exposure(q, N, jumps=[p * float(good.sf(e)) + (1 - p) * float(bad.sf(e)) for e in set(ends)])
