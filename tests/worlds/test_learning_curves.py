"""The world of learning curves: seeds are lucky once, rows each time."""

from __future__ import annotations

import numpy as np
import pytest

from scalingkit.worlds import learning_curves as world

THETA = dict(E=0.5, A=1.2, alpha=0.35, seed_sd=0.04, noise=0.03)


def test_checkpoints_share_seeds_and_runs_do_not():
    shared, own = world.runs([1e5, 1e6], 3), world.runs([1e5, 1e6], 3, checkpoints=False)
    assert len(set(shared["seed"].values)) == 3 and len(set(own["seed"].values)) == 6


def test_without_noise_the_outcome_is_the_formula():
    design = world.runs([1e5, 1e7, 1e9], 2)
    found = world.simulate(0, design, **(THETA | dict(seed_sd=0.0, noise=0.0)))
    np.testing.assert_allclose(found["y"], 0.5 + 1.2 * (design["x"] / 1e7) ** -0.35, rtol=1e-14)


def test_the_luck_of_a_seed_is_common_to_its_checkpoints():
    design = world.runs([1e5, 1e7, 1e9], 4)
    found = world.simulate(0, design, **(THETA | dict(noise=0.0)))
    residual = np.log(found["y"].values / world.mean(design, **THETA)).reshape(3, 4)
    np.testing.assert_allclose(residual, np.broadcast_to(residual[:1], (3, 4)), atol=1e-13)
    assert residual.std() > 0.005


@pytest.mark.parametrize("checkpoints, expected", [(True, 16 / 25), (False, 0.0)])
def test_correlation_between_levels(checkpoints, expected):
    design = world.runs([1e6, 1e8], 20_000, checkpoints=checkpoints)
    residual = np.log(world.simulate(2, design, **THETA)["y"].values / world.mean(design, **THETA)).reshape(2, -1)
    assert np.corrcoef(residual)[0, 1] == pytest.approx(expected, abs=4.5 / np.sqrt(20_000))
    assert residual.std() == pytest.approx(world.total_sd(**THETA), rel=0.02)
    assert world.total_sd(**THETA) == pytest.approx(0.05)
