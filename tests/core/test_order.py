"""Order statistics: closed forms, exact rationals, enumeration, and what must be refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from scalingkit.core import order

FAR = [1, 2, 3, 16, 1e3, 1e6, 1e9]


def test_the_closed_forms_of_the_expected_maximum():
    N = np.array(FAR)
    assert order.expected_max(stats.expon(), N) == pytest.approx(order.harmonic(N), rel=1e-12)
    assert order.expected_max(stats.uniform(), N) == pytest.approx(N / (N + 1), rel=1e-12)
    for xi in (-0.5, -0.1, 0.2, 0.5, 0.8):
        closed = order.gpd_expected_max(xi, 2.0, N)
        assert order.expected_max(stats.genpareto(xi, scale=2.0), N) == pytest.approx(closed, rel=5e-12), xi


def test_normal_scores():
    assert order.normal_score(1) == pytest.approx(0, abs=1e-15)
    assert order.normal_score([2, 3]) == pytest.approx([1 / np.pi**0.5, 1.5 / np.pi**0.5], rel=1e-14)
    assert order.normal_score([10, 16, 100, 256, 1000, 1e5]) == pytest.approx(
        [1.538753, 1.765991, 2.507594, 2.826863, 3.241436, 4.38432], abs=1e-6
    )
    # the short cut of public code is far off: the check can fail
    assert abs(stats.norm.isf(1e-3) - order.normal_score(1000)) > 0.1


def test_the_gpd_is_continuous_where_xi_is_nought():
    N = np.array([1.0, 10.0, 1e6])
    assert order.gpd_expected_max(0.0, 1.0, N) == pytest.approx(order.harmonic(N), rel=1e-14)
    for edge in (1e-12, 1e-4):
        for sign in (-1, 1):
            a, b = (order.gpd_expected_max(sign * edge * f, 1.0, N) for f in (1 - 1e-6, 1 + 1e-6))
            assert a == pytest.approx(b, rel=1e-8)
    assert np.isinf(order.gpd_expected_max(1.0, 1.0, 5)) and np.isinf(order.expected_max(stats.genpareto(1.2), 5))


def test_weights_against_exact_rationals():
    for m in (1, 2, 7, 40, 1000):
        for N in {1, 2, m // 2 or 1, m - 1 or 1, m}:
            if m < N:
                continue
            exact = [float(Fraction(comb(i - 1, N - 1), comb(m, N))) for i in range(1, m + 1)]
            assert order.rank_weights(m, N)[0] == pytest.approx(exact, rel=1e-12, abs=1e-300)


def test_weights_sum_to_one_and_say_nothing_beyond_the_pool():
    w = order.rank_weights(500)
    assert w.shape == (500, 500) and w.sum(1) == pytest.approx(np.ones(500), rel=1e-12)
    assert w[:, -1] == pytest.approx(np.arange(1, 501) / 500)
    assert np.isnan(order.rank_weights(5, 6)).all()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
@settings(max_examples=60, deadline=None)
def test_enumeration_with_ties(scores, data):
    """Every subset of N, ties broken by chance: the same number."""
    N = data.draw(st.integers(1, len(scores)))
    values = data.draw(st.lists(st.floats(-5, 5), min_size=len(scores), max_size=len(scores)))
    total = 0.0
    for pick in combinations(range(len(scores)), N):
        best = max(scores[i] for i in pick)
        chosen = [values[i] for i in pick if scores[i] == best]
        total += sum(chosen) / len(chosen)
    found = order.tie_average(np.array(scores, float), np.array(values)) @ order.rank_weights(len(scores), N)[0]
    assert found == pytest.approx(total / comb(len(scores), N), abs=1e-12)


def test_without_the_average_ties_go_wrong():
    scores, values = np.array([1.0, 1.0]), np.array([0.0, 1.0])
    naive = values[np.argsort(scores, kind="stable")] @ order.rank_weights(2, 2)[0]
    assert naive == 1.0 and order.tie_average(scores, values) @ order.rank_weights(2, 2)[0] == 0.5


def test_budgets():
    assert order.budgets(5).tolist() == [1, 2, 3, 4, 5] and order.budgets(5, 3).tolist() == [3]
    wide = order.budgets(10_000)
    assert wide[0] == 1 and wide[-1] == 10_000 and len(wide) < 300
    for bad in (0, 2.5, np.nan, -1):
        with pytest.raises(ValueError, match="whole number"):
            order.budgets(5, bad)
    with pytest.raises(ValueError, match="at least 1"):
        order.normal_score(0.5)


def test_exposure_is_a_beta_mean():
    assert order.exposure(lambda p: 1 - p, 7) == pytest.approx(7 / 8, rel=1e-14)
    step = order.exposure(lambda p: (p < 0.1).astype(float), np.array([1, 5, 1000]), jumps=[0.1])
    assert step == pytest.approx(1 - 0.9 ** np.array([1, 5, 1000]), rel=1e-12)
    blind = order.exposure(lambda p: (p < 0.1).astype(float), np.array([1, 5, 1000]))
    assert np.abs(blind / step - 1).max() > 1e-6  # a jump that is not named costs digits


# ---------------------------------------------------------------- accuracy of the best-scored

HACKED = dict(p=0.2, good=stats.norm(1.5, 1), bad=stats.norm(0, 1.5))


def test_the_hacking_curve():
    N = np.array([1, 2, 4, 8, 16, 64, 256, 1024, 4096, 2**20])
    printed = [0.2, 0.2951, 0.3794, 0.4298, 0.4439, 0.4016, 0.3121, 0.2103, 0.1220, 0.0041]
    assert order.accuracy(N=N, **HACKED) == pytest.approx(printed, abs=5e-5)


def test_accuracy_against_a_direct_integral():
    good, bad, p = HACKED["good"], HACKED["bad"], HACKED["p"]
    for N in (2, 16, 300):
        inside = lambda r: p * good.pdf(r) * N * (p * good.cdf(r) + (1 - p) * bad.cdf(r)) ** (N - 1)  # noqa: B023, E731
        assert order.accuracy(N=N, **HACKED) == pytest.approx(
            integrate.quad(inside, -15, 15, epsabs=1e-13, limit=500)[0], abs=1e-10
        )


def test_tails_with_one_exponent():
    """Exponential and Pareto tails: the spec's figures and limits."""
    fast, slow = stats.expon(scale=1 / 1.5), stats.expon(scale=1.0)
    assert 1 - order.accuracy(0.3, slow, fast, 1e4) == pytest.approx(0.05177, abs=5e-6)
    # rho = hazard of the wrong over that of the right = .7: the wrong ones take over
    assert order.accuracy(0.3, slow, stats.expon(scale=1 / 0.7), 1e4) == pytest.approx(0.011975, abs=5e-7)
    pareto = order.accuracy(0.3, stats.pareto(2, scale=1.0), stats.pareto(2, scale=1.3), [1e3, 1e6])
    assert pareto == pytest.approx([0.2022926500] * 2, abs=1e-9)


def test_what_must_hold_of_any_accuracy():
    a, b = stats.gamma(2.0), stats.norm(1.0, 2.0)
    N = np.array([1, 2, 5, 40, 1e4])
    assert order.accuracy(0.35, a, b, 1) == pytest.approx(0.35, abs=1e-12)
    assert order.accuracy(0.35, a, a, N) == pytest.approx(0.35, abs=1e-12)
    assert order.accuracy(0.35, a, b, N) + order.accuracy(0.65, b, a, N) == pytest.approx(1.0, abs=1e-10)
    lifted = order.accuracy(0.35, stats.norm(0, 1), stats.norm(0.5, 1.2), N)
    assert order.accuracy(0.35, stats.lognorm(1.0), stats.lognorm(1.2, scale=np.exp(0.5)), N) == pytest.approx(
        lifted, abs=1e-10
    )
    assert order.accuracy(0.0, a, b, N).tolist() == [0.0] * 5
    with pytest.raises(ValueError, match="between 0 and 1"):
        order.accuracy(1.2, a, b, 1)


def test_bounded_scores_with_different_ends():
    """Uniform to 1.2 beats uniform to 1: P(some good one is above 1) is a lower bound, exact as N grows."""
    N = np.array([1.0, 4.0, 32.0])
    lost = 1 - order.accuracy(0.3, stats.uniform(0, 1.2), stats.uniform(0, 1), N)
    bound = (1 - 0.3 * (0.2 / 1.2)) ** N
    assert np.all(lost <= bound) and lost[0] == pytest.approx(0.7, abs=1e-12)
