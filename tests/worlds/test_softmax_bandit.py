"""The bandit: trained for the best of N, a policy is better at it than one trained for the mean."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from scalingkit.core import zoo
from scalingkit.worlds import softmax_bandit

BANDIT = zoo.get("softmax_bandit", "worlds")


def test_the_value_by_enumeration():
    r, pi = np.array([0.0, 1.0, 5.0]), np.array([0.5, 0.3, 0.2])
    pairs = sum(pi[a] * pi[b] * max(r[a], r[b]) for a in range(3) for b in range(3))
    assert softmax_bandit.value(pi, r, 2) == pytest.approx(pairs, abs=1e-14)


def test_training_for_the_tail_beats_training_for_the_mean_early_on():
    """50 arms, 8 rollouts, deployed with 64; every objective in the end finds the best arm, the question is how soon."""
    design = xr.Dataset(coords={"target": ["mean", "max@m", "tea"], "step": [0, 5, 20]})
    runs = [BANDIT.simulate(k, design, m=8, N=64, lr=0.5, arms=50) for k in range(3)]
    best = np.mean([r["best"].values for r in runs], 0)
    assert np.allclose(best[:, 0], best[0, 0]) and np.all(np.diff(best, axis=1) > 0)
    assert best[1, 1] > best[0, 1] and best[2, 1] > best[0, 1]
