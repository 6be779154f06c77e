"""Search on states with known tails: closed forms, equal budgets, and a truth that is never read."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from scalingkit.core import environment, zoo
from scalingkit.core.order import normal_score
from scalingkit.core.staging import best_of_n, crossover, plan, staged
from scalingkit.policies import slg
from scalingkit.worlds import two_stage

SLG, BEST = zoo.get("slg"), zoo.get("best_of")


def mean(policy, problem, budget, keys=200, **options):
    v = np.array([float(policy(k, problem, budget, **options)["value"]) for k in range(keys)])
    return v.mean(), v.std(ddof=1) / keys**0.5


@pytest.mark.parametrize(("tau", "sigma", "K", "m", "N"), [(1.0, 1.0, 32, 4, 1000), (1.0, 0.5, 20, 2, 500)])
def test_the_closed_form_of_the_second_stage(tau, sigma, K, m, N):
    """Without the looking rewards, as the formula counts."""
    found = []
    for k in range(1500):
        env = environment.environment(k, two_stage.problem(tau=tau, sigma=sigma), N)
        seen = [env.draw(env.open(), m).mean() for _ in range(K)]
        found.append(env.draw(int(np.argmax(seen)), N - K * m).max())
    want = staged(N, K, m, tau=tau, sigma=sigma)
    assert abs(np.mean(found) - want) < 4.5 * np.std(found) / len(found) ** 0.5
    assert abs(np.mean(found) - best_of_n(N, tau=tau, sigma=sigma)) > 5 * np.std(found) / len(found) ** 0.5


def test_it_beats_best_of_n_at_equal_budget():
    for tau, sigma, omega, keys in ((1.0, 1.0, 0.0, 200), (0.5, 1.0, 0.5, 1000), (2.0, 1.0, 0.2, 200)):
        problem = two_stage.problem(tau=tau, sigma=sigma, omega=omega)  # the best of unequal spreads varies more
        (a, ea), (b, eb) = mean(SLG, problem, 1000, keys), mean(BEST, problem, 1000, keys)
        assert a - b > 4.5 * np.hypot(ea, eb), (tau, sigma, omega)
    (c, ec), (b, eb) = mean(SLG, two_stage.problem(), 1000, K=8, m=65), mean(BEST, two_stage.problem(), 1000)
    assert c - b < 4.5 * np.hypot(ec, eb)  # the source's default split does not, where tau = sigma
    nothing = two_stage.problem(tau=0.0, sigma=1.0)
    (a, ea), (b, eb) = mean(SLG, nothing, 1000), mean(BEST, nothing, 1000)
    assert a - b < 4.5 * np.hypot(ea, eb)  # where states do not differ there is nothing to gain


def test_where_spreads_differ_the_mean_alone_chooses_badly():
    problem = two_stage.problem(tau=0.3, sigma=1.0, omega=0.8)
    (a, ea), (b, eb) = (mean(SLG, problem, 500, 800, K=16, m=12, predict=p) for p in ("shrunk", "mean"))
    assert a - b > 4.5 * np.hypot(ea, eb)


def test_the_truth_is_never_read():
    """An environment that yields rewards alone serves as well as the real one, to the last digit."""

    class Sealed:
        """open, draw, spent, budget, and an error for anything else."""

        __slots__ = ("_calls",)

        def __init__(self, env):
            object.__setattr__(self, "_calls", env)

        def __getattribute__(self, name):
            if name not in ("open", "draw", "spent", "budget"):
                raise AssertionError(f"the search looked at {name}")
            return getattr(object.__getattribute__(self, "_calls"), name)

    problem = two_stage.problem(omega=0.4)
    sealed = slg.search(Sealed(environment.environment(3, problem, 300)), slg.by_shrunk)
    assert sealed[0] == float(SLG(3, problem, 300)["value"])
    with pytest.raises(AssertionError, match="looked at"):
        Sealed(environment.environment(3, problem, 300))._states  # noqa: B018


def test_budgets_are_kept():
    env = environment.environment(0, two_stage.problem(), 10)
    state = env.open()
    env.draw(state, 10)
    with pytest.raises(environment.OverspentError, match="10 of 10"):
        env.draw(state, 1)
    with pytest.raises(ValueError, match="within the budget"):
        SLG(0, two_stage.problem(), 100, K=10, m=20)
    with pytest.raises(ValueError, match="not one of"):
        SLG(0, two_stage.problem(), 100, K=2, m=20, predict="median")


def test_half_a_plan_is_refused_and_a_budget_too_small_for_a_look():
    with pytest.raises(ValueError, match="both K and m"):
        SLG(0, two_stage.problem(), 100, K=4)
    with pytest.raises(ValueError, match="one look"):
        SLG(0, two_stage.problem(), 3)


def test_replay_draws_each_reward_once():
    table = xr.Dataset({"score": (("state", "sample"), np.arange(12.0).reshape(3, 4))})
    env = environment.environment(1, table, 12)
    states = [env.open() for _ in range(3)]
    drawn = np.concatenate([env.draw(s, 4) for s in states])
    assert sorted(drawn) == list(range(12)) and env.open() is None
    with pytest.raises(environment.OverspentError, match="has 0 rewards left"):
        env.draw(0, 1)
    assert float(BEST(0, table, 12)["value"]) == 11.0
    assert float(BEST(0, table, 40)["value"]) == 11.0 and float(BEST(0, table, 40)["spent"]) == 12.0


def test_tail_moments_of_a_normal():
    found = np.array([slg.tail_moments(np.random.default_rng(k).normal(1.5, 2.0, 400)) for k in range(800)])
    error = found.std(0, ddof=1) / 800**0.5
    assert np.all(np.abs(found.mean(0) - [1.5, 2.0]) < 4.5 * error + 0.01)
    assert found.std(0) == pytest.approx([0.30, 0.22], abs=0.03)
    skewed = np.mean([slg.tail_moments(np.random.default_rng(k).exponential(size=400)) for k in range(200)], 0)
    assert abs(skewed[1] - 1.0) > 0.2  # of an exponential it is not the sd


def test_the_crossover_of_two_states():
    N = crossover(1.0, 1.0, 0.0, 2.0)
    assert 1.0 + normal_score(N) == pytest.approx(0.0 + 2 * normal_score(N), abs=1e-9)
    assert np.isinf(crossover(1.0, 1.0, 0.0, 1.0)) and np.isinf(crossover(1.0, 2.0, 0.0, 1.0))
    K, m = plan(1000, tau=1.0, sigma=1.0)
    assert staged(1000, K, m, tau=1.0, sigma=1.0) > staged(1000, 8, 65, tau=1.0, sigma=1.0)
    with pytest.raises(ValueError, match="leaves nothing"):
        staged(100, 10, 10, tau=1.0, sigma=1.0)
