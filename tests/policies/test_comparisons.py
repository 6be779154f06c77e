"""Knockout and league: exact recursions, bounds that hold, and judges that mislead."""

from __future__ import annotations

import numpy as np
import pytest

from scalingkit.core import zoo
from scalingkit.policies import knockout, league
from scalingkit.worlds import compared_answers

KNOCKOUT, LEAGUE = zoo.get("knockout"), zoo.get("league")


def rate(policy, problem, budget, keys=3000, **options):
    """Share of failures with its standard error."""
    wrong = 1 - np.array([float(policy(k, problem, budget, **options)["value"]) for k in range(keys)])
    return wrong.mean(), max(wrong.std() / keys**0.5, 1 / keys)


@pytest.mark.parametrize(("N", "K"), [(1, 1), (2, 4), (7, 3), (16, 1), (32, 5)])
def test_the_recursion_against_simulation(N, K):
    problem = compared_answers.types(0.3, 0.7)
    found, error = rate(KNOCKOUT, problem, N + K * (N - 1), N=N, K=K)
    assert abs(found - knockout.exact_failure(0.3, 0.7, N, K)) < 4.5 * error


def test_limits_of_the_recursion():
    for N in (1, 2, 5, 64):
        assert knockout.exact_failure(0.3, 0.5, N, 7) == pytest.approx(0.7, abs=1e-12)
        assert knockout.exact_failure(0.3, 1.0, N, 1) == pytest.approx(0.7**N, rel=1e-12)
    a = 0.3
    for _ in range(4):
        a = a * a + 2 * a * (1 - a) * knockout.majority(0.6, 3)
    assert knockout.exact_failure(0.3, 0.6, 16, 3) == pytest.approx(1 - a, rel=1e-12)


def test_an_even_number_of_comparisons_buys_nothing():
    for j in (1, 2, 5):
        assert knockout.majority(0.63, 2 * j) == pytest.approx(knockout.majority(0.63, 2 * j - 1), rel=1e-12)
    assert knockout.majority(0.63, 3) > knockout.majority(0.63, 2) + 0.01


def test_more_candidates_help_only_where_the_judge_is_better_than_chance():
    for p_c, sign in ((0.7, -1), (0.4, 1)):
        curve = [knockout.exact_failure(0.4, p_c, 2**r, 3) for r in range(8)]
        assert np.all(sign * np.diff(curve) > 0)


def test_the_bound_holds_everywhere_and_is_not_the_failure():
    ratio = []
    for p_g in np.linspace(0.05, 0.95, 10):
        for p_c in np.linspace(0.55, 0.99, 8):
            for N in (1, 2, 3, 8, 64, 500):
                for K in (1, 3, 15):
                    fail, top = knockout.exact_failure(p_g, p_c, N, K), knockout.bound(p_g, p_c, N, K)
                    assert fail <= top * (1 + 1e-12), (p_g, p_c, N, K)
                    ratio.append(top / max(fail, 1e-300))
    assert np.median(ratio) > 1.5
    assert knockout.exact_failure(0.3, 0.3, 64, 99) > 100 * knockout.bound(0.3, 0.7, 64, 99)  # no such bound below 1/2


def test_the_slope_is_late_when_the_judge_is_near_chance():
    early = np.log2(knockout.exact_failure(0.1, 0.55, 2**5, 1) / knockout.exact_failure(0.1, 0.55, 2**4, 1))
    assert abs(early - knockout.exponent(0.55)) > 0.05
    late = np.log2(knockout.exact_failure(0.1, 0.55, 2**301, 1) / knockout.exact_failure(0.1, 0.55, 2**300, 1))
    assert late == pytest.approx(knockout.exponent(0.55), abs=1e-4)


def test_a_plan_spends_what_it_has_and_beats_its_neighbours():
    problem = compared_answers.types(0.3, 0.7)
    N, K = knockout.plan(200, problem["p"].values, problem["win"].values, problem["good"].values)
    assert N + K * (N - 1) <= 200 and K % 2 == 1
    best = knockout.exact_failure(0.3, 0.7, N, K)
    for other in (1, 3, 31):
        assert best <= knockout.exact_failure(0.3, 0.7, knockout.affordable(200, other), other)
    with pytest.raises(ValueError, match="calls; the budget"):
        KNOCKOUT(0, problem, 10, N=8, K=3)


def test_a_league_works_where_a_knockout_fails_for_every_n():
    """Right answers lose to a rare kind of wrong one and beat the common kind."""
    problem = compared_answers.problem(
        [0.3, 0.2, 0.5], [[0.5, 0.1, 0.9], [0.9, 0.5, 0.3], [0.1, 0.7, 0.5]], [1.0, 0.0, 0.0]
    )
    assert league.gap(problem)[0] > 0.09
    p, win = problem["p"].values, problem["win"].values
    assert min(1 - knockout.winner(p, win, 2**r, 9)[0] for r in range(12)) > 0.3
    found, error = rate(LEAGUE, problem, 64 * 65, keys=200, N=64, K=64)
    assert found + 4.5 * error < 0.2


def test_the_league_against_its_bound():
    problem = compared_answers.problem(
        [0.2, 0.2, 0.6], [[0.5, 0.73, 0.73], [0.27, 0.5, 0.5], [0.27, 0.5, 0.5]], [1.0, 0.0, 0.0]
    )
    found, _ = rate(LEAGUE, problem, 64 * 65, keys=400, N=64, K=64)
    assert found <= 0.01 and league.bound(problem, 64, 64) == pytest.approx(168.2, abs=0.1)
    upset = compared_answers.types(0.4, 0.3)
    assert league.gap(upset)[0] < 0 and np.isinf(league.bound(upset, 64, 64))
    assert rate(LEAGUE, upset, 32 * 17, keys=200, N=32, K=16)[0] > 0.9
