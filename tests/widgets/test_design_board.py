"""DesignBoard without a browser: the numbers are the plain functions', the runs come back, messages are checked."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import xarray as xr

import scalingkit as sk
from scalingkit.design import board as boards
from scalingkit.design import grids
from scalingkit.design.information import condition
from scalingkit.design.suggest import expected_sd
from scalingkit.design.targets import Size
from scalingkit.widgets.design_board import DesignBoard

LAW = sk.get("chinchilla")


@pytest.fixture(scope="module")
def trained() -> xr.Dataset:
    runs = grids.spread(np.geomspace(1e8, 3e9, 9), (5, 20, 80))
    noise = 0.01 * np.random.default_rng(0).standard_normal(9)
    return runs.assign(loss=("run", LAW.curve(runs["N"].values, runs["D"].values, **LAW.truth) * np.exp(noise)))


@pytest.fixture(scope="module")
def now(trained):
    return boards.standing(LAW, trained, budget=1e22)


PLAN = {"N": [5e8, 2e9], "D": [2e11, 1e10]}


def test_condition_numbers_are_the_plain_functions_over_all_runs(now, trained):
    read = boards.board(now, **PLAN)
    everything = boards.runs_with(now, **PLAN)
    for block in ("scale", "full"):
        plain = float(condition(LAW, now.theta, everything, block=block))
        assert float(read["kappa"].sel(block=block)) == pytest.approx(plain, rel=1e-12)
        without = float(condition(LAW, now.theta, trained, block=block))
        assert abs(without / plain - 1) > 1e-3  # the plan moves it: the comparison can fail
    assert float(read["kappa"].sel(block="full")) > float(read["kappa"].sel(block="scale"))


def test_the_interval_is_what_suggest_expects(now, trained):
    read = boards.board(now, [], [])
    sd = expected_sd(LAW, trained, target=Size(1e22))
    assert float(read["n_star_sd"]) == pytest.approx(sd, rel=1e-9)
    after = boards.board(now, **PLAN)
    assert float(after["n_star_sd"]) < sd and float(after["n_star_sd_now"]) == pytest.approx(sd)
    assert float(np.log(after["n_star_high"] / after["n_star_low"])) == pytest.approx(
        2 * 1.6448536 * float(after["n_star_sd"]), rel=1e-6
    )


def test_the_cost_is_the_plans_own_under_any_cost_model(trained):
    assert float(boards.board(boards.standing(LAW, trained), **PLAN)["cost"]) == pytest.approx(6 * 1.2e20)
    rent = boards.standing(LAW, trained, cost=lambda N, D: 1.0 + N * D / 1e19, budget=1e4)
    read = boards.board(rent, **PLAN)
    assert float(read["cost"]) == pytest.approx(2 + 1.2e20 / 1e19) and read["cost"].attrs["units"] == "cost"


def test_the_suggested_run_beats_others_of_its_cost(now):
    N, D = boards.suggested(now, [], [], spend=1e20)
    assert 6 * N * D <= 1e20 * (1 + 1e-6)
    best = float(boards.board(now, N, D)["n_star_sd"])
    tpp = np.geomspace(1, 1000, 25)
    sizes = np.sqrt(1e20 / 6 / tpp)
    others = [float(boards.board(now, n, n * k)["n_star_sd"]) for n, k in zip(sizes, tpp, strict=True)]
    assert best <= min(others) * 1.002 and best < 0.99 * max(others)


def test_another_number_of_runs_compiles_nothing(now):
    boards.board(now, **PLAN)
    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: compiled.append(event))
    try:
        for k in range(1, 8):
            boards.board(now, np.geomspace(1e8, 1e9, k), np.geomspace(1e10, 2e10, k))
        assert not [e for e in compiled if "backend_compile" in e]
        jax.jit(lambda v: v * 17.125 + 3)(np.ones(5)).block_until_ready()
        assert [e for e in compiled if "backend_compile" in e]  # the count can see a compilation
    finally:
        jax.monitoring.clear_event_listeners()


def test_a_plan_without_trained_runs_is_judged_at_published_values():
    now = boards.standing(LAW)
    empty, some = (
        boards.board(now, [], []),
        boards.board(now, [1e8, 1e9, 1e8, 1e9, 4e8, 2e9], [1e9, 1e10, 1e11, 1e11, 2e10, 4e9]),
    )
    assert np.isinf(empty["kappa"]).all() and np.isfinite(some["kappa"]).all()
    assert float(some["n_star_sd"]) < float(empty["n_star_sd"])


@pytest.mark.parametrize("bad", [{"N": [1e8], "D": []}, {"N": [-1.0], "D": [1e9]}, {"N": [np.nan], "D": [1e9]}])
def test_a_plan_that_is_none_is_refused(now, bad):
    with pytest.raises(grids.DesignError, match="positive numbers"):
        boards.board(now, **bad)


def test_the_widget_gives_result_and_runs_back(trained):
    board = DesignBoard(LAW, trained, plan=PLAN, budget=1e22)
    xr.testing.assert_identical(board.result, boards.board(board.now, **PLAN))
    runs = board.runs
    assert runs.sizes["run"] == 11 and np.isnan(runs["loss"].values[-2:]).all()
    np.testing.assert_array_equal(runs["N"].values[-2:], PLAN["N"])
    np.testing.assert_array_equal(runs["loss"].values[:9], trained["loss"].values)
    before = board.result
    board.plan = {"seq": 1, "points": [{"id": 0, "N": 1e9, "D": 2e11}]}
    assert board.result is not before and board.runs.sizes["run"] == 10 and board.numbers["seq"] == 1


def test_suggest_places_a_run_and_says_what_it_cannot(trained):
    board = DesignBoard(LAW, trained, budget=1e22)
    before = float(board.result["n_star_sd"])
    board.suggest()
    assert len(board.plan["points"]) == 1 and float(board.result["n_star_sd"]) < before
    for k in "ND":  # it is shown, wherever it lies
        low, high = board.frame[k]
        assert low < np.log10(board.plan["points"][0][k]) < high
    board.spend = 1.0
    board._asked(None, {"type": "suggest"}, None)
    assert "budget" in board.complaint and len(board.plan["points"]) == 1


def test_a_wrong_message_is_said_and_the_last_result_stays(trained):
    board = DesignBoard(LAW, trained, plan=PLAN, budget=1e22)
    kept = board.result
    board.plan = {"seq": 7, "points": [{"id": 0, "N": -1.0, "D": 1e9}]}
    assert "positive" in board.complaint and board.result is kept and board.numbers["seq"] == 7
    board.plan = {"seq": 8, "points": []}
    assert board.complaint == ""


def test_the_static_twin_is_an_image(trained):
    data, _ = DesignBoard(LAW, trained, plan=PLAN, budget=1e22)._repr_mimebundle_()
    assert len(data["image/png"]) > 10_000
