"""Seed noise: pooled as by hand, with an interval that covers, and a warning where one number will not do."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from scalingkit.core import zoo

NOISE = zoo.get("seed_noise")


def table(cells, **columns):
    """Cells of outcomes, each with its own x."""
    y = np.concatenate([np.asarray(c, float) for c in cells])
    x = np.repeat(np.arange(1.0, len(cells) + 1), [len(c) for c in cells])
    return xr.Dataset({"x": ("run", x), "y": ("run", y)} | {k: ("run", v) for k, v in columns.items()})


def test_pooled_by_hand_on_the_log_scale():
    found = NOISE(table([[1.0, np.e], [np.e, np.e, np.e**4], [7.0]]))
    assert float(found["sd"]) == pytest.approx(np.sqrt((0.5 + 6.0) / 3)) and int(found["dof"]) == 3
    assert found["cell_runs"].values.tolist() == [2, 3] and found["level"].values.tolist() == ["x=1", "x=2"]


def test_a_common_factor_changes_nothing():
    a, b = NOISE(table([[1.0, 1.1], [2.0, 2.3]])), NOISE(table([[10.0, 11.0], [0.2, 0.23]]))
    xr.testing.assert_allclose(a, b)


def test_the_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(1)
    found = [NOISE(table(np.exp(0.05 * rng.standard_normal((6, 4)))), prob=0.8) for _ in range(200)]
    inside = np.mean([float(f["lower"]) <= 0.05 <= float(f["upper"]) for f in found])
    assert abs(inside - 0.8) < 4 * np.sqrt(0.16 / 200)


def test_unequal_cells_are_seen_and_equal_ones_pass():
    rng = np.random.default_rng(2)
    z = rng.standard_normal((2, 40))
    assert float(NOISE(table(np.exp(z * [[0.01], [0.1]])))["equal_p"]) < 1e-6
    assert float(NOISE(table(np.exp(z * 0.05)))["equal_p"]) > 0.01


def test_cells_are_told_apart_by_every_input_and_group():
    data = table([[1.0, 2.0, 4.0, 8.0]], N=[1e9, 1e9, 1e9, 1e9])
    data = data.assign_coords(corpus=("run", ["a", "a", "b", "b"]), seed=("run", ["1", "2", "1", "2"]))
    assert NOISE(data)["level"].values.tolist() == ["corpus=a", "corpus=b"]
    assert int(NOISE(data, by=["x"])["dof"]) == 3
    assert NOISE(data.assign(N=("run", [1e9, 1e9, 1e9, 1e9 + 1])))["level"].values.size == 1


def test_checkpoints_taken_for_replicates_miss_the_luck_of_their_seed():
    world = zoo.get("learning_curves")
    for key in (0, 1):
        right, truth, room = NOISE.judge(world, key)
        low, _, _ = NOISE.wrong(world, key)
        assert abs(right - truth) < room and low < 0.7 * truth


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: NOISE(table([[1.0], [2.0]])), "no two runs agree in x"),
        (lambda: NOISE(table([[1.0, 2.0]]), by=["width"]), "no width in the runs"),
        (lambda: NOISE(table([[1.0, -2.0]])), "row 1: y = -2"),
        (lambda: NOISE(table([[1.0, np.nan]]), log=False), "row 1: y = nan"),
        (lambda: NOISE(table([[1.0, 2.0]]), outcome="los"), "no los"),
    ],
)
def test_refusals_say_what_and_where(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_negative_outcomes_are_fine_without_the_log():
    assert float(NOISE(table([[1.0, -1.0]]), log=False)["sd"]) == pytest.approx(np.sqrt(2))
