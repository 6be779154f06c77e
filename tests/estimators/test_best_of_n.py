"""Best-of-N from pools: every N at once equals enumeration, ragged pools and ties included; streaming equals the whole."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import xarray as xr

from scalingkit.core import zoo
from scalingkit.estimators import best_of_n

BEST, PAIR = zoo.get("best_of_n"), zoo.get("best_of_difference")
DIMS = ("problem", "sample")


def pool(scores, **more):
    return xr.Dataset(
        {"score": (DIMS, np.asarray(scores, float))} | {k: (DIMS, np.asarray(v)) for k, v in more.items()}
    )


def test_every_n_of_a_ragged_table_by_enumeration():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (5, 7)).astype(float)
    scores[1, 2:] = np.nan
    scores[3, [0, 5]] = np.nan
    got = BEST(pool(scores))
    assert got["samples"].values.tolist() == [7, 2, 7, 5, 7] and got["problems"].values.tolist() == [
        5,
        5,
        4,
        4,
        4,
        3,
        3,
    ]
    for i, row in enumerate(scores):
        there = row[np.isfinite(row)]
        for n in range(1, 8):
            want = np.mean([max(p) for p in combinations(there, n)]) if n <= there.size else np.nan
            assert float(got["value"][i, n - 1]) == pytest.approx(want, abs=1e-12, nan_ok=True)
    assert got["mean"].values == pytest.approx(np.nanmean(got["value"].values, 0), abs=1e-12)


def test_rising_maps_move_the_score_and_not_the_choice():
    rng = np.random.default_rng(1)
    score, right = rng.normal(size=(6, 20)), rng.random((6, 20)) < 0.3
    a, b = (BEST(pool(s, right=right.astype(float)), of="right") for s in (score, np.exp(3 * score)))
    np.testing.assert_allclose(a["value"], b["value"], atol=1e-13)
    line = BEST(pool(2.5 * score - 1))["value"].values
    np.testing.assert_allclose(line, 2.5 * BEST(pool(score))["value"].values - 1, atol=1e-12)
    turned = BEST(pool(-score, right=right.astype(float)), of="right")["value"].values
    assert np.abs(turned - a["value"].values).max() > 0.05  # a falling map does move it


def test_order_of_samples_is_nothing():
    rng = np.random.default_rng(2)
    score = rng.integers(0, 5, (4, 12)).astype(float)
    shuffled = np.stack([rng.permutation(row) for row in score])
    np.testing.assert_allclose(BEST(pool(score))["value"], BEST(pool(shuffled))["value"], atol=1e-13)


def test_streaming_is_the_whole():
    rng = np.random.default_rng(3)
    score = rng.normal(1e6, 1.0, (50, 16))
    whole = BEST(pool(score), N=[1, 4, 16])
    chunks = ((score[i : i + 7],) * 2 for i in range(0, 50, 7))
    got = best_of_n.stream(chunks, [1, 4, 16])
    for k in ("mean", "se", "problems"):
        np.testing.assert_allclose(got[k], whole[k], rtol=1e-9)
    short = best_of_n.stream([(score[:, :3], score[:, :3]), (score, score)], [1, 4])
    assert short["problems"].values.tolist() == [100, 50]


def test_a_value_without_its_score_is_refused():
    data = pool([[1.0, 2.0]], right=np.array([[1.0, np.nan]]))
    with pytest.raises(ValueError, match="problem 0, sample 1"):
        BEST(data, of="right")
    with pytest.raises(ValueError, match="no variable 'reward'"):
        BEST(data, by="reward")
    with pytest.raises(ValueError, match="needs"):
        BEST(xr.Dataset({"score": ("run", [1.0])}))


def test_the_band_covers_whole_curves_and_pointwise_intervals_do_not():
    """200 tables of two equally blind scores: the true difference is 0 at every N."""
    inside = dict(band=0, point=0)
    for key in range(200):
        rng = np.random.default_rng(key)
        data = pool(rng.normal(size=(60, 24)), other=rng.normal(size=(60, 24)), right=rng.random((60, 24)) < 0.4)
        got = PAIR(data.assign(right=data["right"].astype(float)), of="right", seed=key, repeats=500)
        inside["band"] += bool(((got["band_lower"] <= 0) & (got["band_upper"] >= 0)).all())
        inside["point"] += bool(((got["lower"] <= 0) & (got["upper"] >= 0)).all())
    assert inside["band"] / 200 > 0.9 - 4 * (0.09 / 200) ** 0.5 - 0.02  # normal bands at 60 problems are a little short
    assert inside["point"] < inside["band"] - 10


def test_pairs_need_both():
    with pytest.raises(ValueError, match="missing"):
        PAIR(pool([[1.0, np.nan], [0.0, 1.0]], other=[[1.0, 2.0], [1.0, 2.0]]))
    with pytest.raises(ValueError, match="one problem"):
        PAIR(pool([[1.0, 0.0]], other=[[1.0, 2.0]]))
