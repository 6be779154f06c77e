"""A design is adequate when its coefficients are told apart and nothing is left to the prior: each alone is not enough."""

import numpy as np
import pytest

from scalingkit.core import zoo
from scalingkit.design import grids
from scalingkit.design.adequacy import adequacy
from scalingkit.design.grids import DesignError
from scalingkit.design.information import condition
from scalingkit.design.thresholds import widened

LAW = zoo.get("chinchilla", "laws")
SIZES = np.geomspace(1e8, 1e10, 12)
TRUTH = dict(E=1.82, A=482.0, alpha=0.36, B=2085.0, beta=0.36)


def judged(made, **given):
    return adequacy(LAW, made, theta=TRUTH, noise=0.004, **given)


def test_a_ray_lacks_spread_and_the_missing_spread_mends_it():
    ray = grids.ray(SIZES)
    found = judged(ray)
    assert not int(found["adequate"]) and found.attrs["verdict"].startswith("Not adequate")
    lack = float(found["sd_missing"])
    assert 0.1 < lack < 0.3
    assert (
        float(condition(LAW, TRUTH, widened(ray, 1.02 * lack)))
        < 1000
        < float(condition(LAW, TRUTH, widened(ray, 0.98 * lack)))
    )


def test_a_spread_design_is_adequate():
    found = judged(grids.spread(SIZES, (4, 20, 100)))
    assert int(found["adequate"]) and found.attrs["verdict"].startswith("Adequate")
    assert float(found["sd_log_tpp"]) > float(found["sd_needed"])


def test_one_level_of_tokens_has_spread_but_is_not_adequate():
    found = judged(grids.factorial(SIZES, [4.4e9]))
    assert float(found["kappa"].sel(block="scale")) < 1000 and not int(found["adequate"])
    assert "left to the prior" in found.attrs["verdict"]


def test_a_goal_below_one_is_refused():
    with pytest.raises(DesignError, match="must exceed 1"):
        judged(grids.ray(SIZES), kappa=0.5)
