"""Rays and spreads cut at equal cost from one table, judged on the same runs; a fair coin stays fair."""

from __future__ import annotations

import numpy as np
import pytest

from scalingkit.core import zoo
from scalingkit.design import grids, rivals_study
from scalingkit.design.rivals import REGIONS, TOTAL, draw, rivals, win_rate


@pytest.fixture(scope="module")
def runs():
    return rivals_study.unit_runs("corpora-0:one", zoo.get("chinchilla", "laws"))


@pytest.fixture(scope="module")
def found(runs):
    law = zoo.get("chinchilla", "laws")
    return rivals(runs, law, pairs=6, starts=2, arithmetic=("float64", "float32", "script64"))


def test_pairs_are_of_one_size_and_cost_and_share_what_they_may_not_see(runs):
    tau = np.log(runs["D"].values / runs["N"].values)
    for pair in draw(runs, 8, 12, seed=1):
        assert pair.ray.sum() == pair.spread.sum() == 12 and not (pair.ray & pair.spread).any()
        assert abs(pair.cost[1] / pair.cost[0] - 1) <= TOTAL
        assert np.ptp(tau[pair.ray]) == pytest.approx(pair.width)
        assert tau[pair.spread].std() > 3 * tau[pair.ray].std()
        for region in REGIONS:
            assert not (pair.regions[region] & (pair.ray | pair.spread)).any(), region
        cost = (runs["N"] * runs["D"]).values
        assert cost[pair.regions["beyond"]].min() > cost[pair.ray | pair.spread].max()


def test_the_same_seed_cuts_the_same_pairs_and_another_does_not(runs):
    one, two, other = (draw(runs, 3, 12, seed=s) for s in (0, 0, 1))
    assert all(
        np.array_equal(a.ray, b.ray) and np.array_equal(a.spread, b.spread) for a, b in zip(one, two, strict=True)
    )
    assert not all(np.array_equal(a.ray, b.ray) for a, b in zip(one, other, strict=True))


def test_spread_wins_off_the_ray_and_float32_is_float32(found):
    win = found["win"].sel(region="exclusion").mean("pair")
    assert float(win.sel(arithmetic="float64").item()) > 0.5
    assert np.isfinite(found["rmse"].sel(arithmetic="float32", region="exclusion")).all()
    a, b = (found["rmse"].sel(arithmetic=k, region="exclusion").values for k in ("float32", "script64"))
    assert not np.array_equal(a, b)


def test_the_score_is_the_brute_force_one(runs, found):
    from scalingkit.infer.subsets import subset_fits

    pair = draw(runs, 6, 12, seed=0)[2]
    fitted = subset_fits(zoo.get("chinchilla", "laws"), runs, pair.spread[None], starts=2)
    error = (fitted["log_fitted"].values[0] - np.log(runs["loss"].values))[pair.regions["exclusion"]]
    here = found["rmse"].sel(arithmetic="float64", region="exclusion", design="spread").values[2, 0]
    assert here == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-6)


def test_two_designs_of_one_kind_are_a_fair_coin(runs, monkeypatch):
    """Negative control: with the ray replaced by a second spread, nothing is left to win."""
    from scalingkit.design import rivals as module

    pairs = draw(runs, 16, 12, seed=3)
    both = [p._replace(ray=q.spread) for p, q in zip(pairs, pairs[8:] + pairs[:8], strict=True)]
    monkeypatch.setattr(module, "draw", lambda *a: both)
    fair = rivals(runs, zoo.get("chinchilla", "laws"), pairs=16, starts=2)["win"].sel(region="exclusion").values
    assert 3 <= fair.sum() <= 13  # 16 fair tosses: 99.6% are inside


def test_a_rate_knows_that_draws_of_one_table_are_one_table():
    alone, many = win_rate([200], [200]), win_rate([20] * 10, [20] * 10)
    assert alone[2] - alone[1] > 2 * (many[2] - many[1]), "ten tables tell more than ten times the draws of one"
    few, ten_times = win_rate([160], [200]), win_rate([1600], [2000])
    ratio = (ten_times[2] - ten_times[1]) / (few[2] - few[1])
    assert ratio > 0.8, "more draws of one table narrow it as if they were tables (independent ones: 0.32)"
    assert win_rate([10] * 8, [20] * 8)[0] == pytest.approx(0.5, abs=1e-6)
    assert np.isnan(win_rate([0], [0])).all()


def test_tables_without_a_ray_or_a_rival_are_refused():
    with pytest.raises(grids.DesignError, match="equal cost"):
        draw(grids.ray(np.geomspace(1e8, 1e10, 40)), 3, 12)
    with pytest.raises(grids.DesignError, match="no band"):
        draw(grids.ray(np.full(40, 1e9)), 3, 50)
    with pytest.raises(grids.DesignError, match="does not vary"):
        rivals_study.unit_runs("corpora-0:one", zoo.get("precision_aware", "laws"))
