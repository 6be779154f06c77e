"""pass@k from counts: exact rationals, all k, and no word beyond n."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from scalingkit.core import zoo
from scalingkit.estimators import pass_at_k

PASS = zoo.get("pass_at_k")


@given(st.integers(1, 60), st.data())
def test_exact_rationals(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    exact = float(1 - Fraction(comb(n - c, k), comb(n, k)))
    assert pass_at_k.table(c, n, k)[0] == pytest.approx(exact, abs=1e-14)


def test_large_counts_do_not_overflow():
    """n = 10,000, where binomials leave float64."""
    c, n, ks = 3, 10_000, [1, 100, 5000, 9998, 10_000]
    exact = [float(1 - Fraction(comb(n - c, k), comb(n, k))) for k in ks]
    assert pass_at_k.table(c, n, ks) == pytest.approx(exact, rel=1e-11)


def test_counts_and_samples_say_the_same_and_missing_samples_are_no_failures():
    hits = np.array([[1.0, 0, 0, np.nan], [0, 0, 0, 0], [1, 1, 1, 1]])
    a = PASS(xr.Dataset({"correct": (("problem", "sample"), hits)}))
    b = PASS(xr.Dataset({"successes": ("problem", [1, 0, 4]), "samples": ("problem", [3, 4, 4])}))
    np.testing.assert_allclose(a["value"], b["value"])
    assert np.isnan(a["value"][0, 3]) and a["problems"].values.tolist() == [3, 3, 3, 2]
    assert float(a["value"][0, 0]) == pytest.approx(1 / 3)


def test_other_dims_stay():
    data = xr.Dataset(
        {"successes": (("family", "problem"), [[1, 2], [0, 3]]), "samples": ("problem", [4, 5])},
        coords={"family": ["a", "b"]},
    )
    got = PASS(data, k=[1, 5])
    assert got["value"].dims == ("family", "problem", "budget") and got["mean"].dims == ("family", "budget")
    assert float(got["mean"].sel(family="a", budget=1)) == pytest.approx((1 / 4 + 2 / 5) / 2)


@pytest.mark.parametrize(("c", "n"), [(3, 2), (-1, 2), (0, 0), (1.5, 4)])
def test_counts_that_are_none_are_refused(c, n):
    with pytest.raises(ValueError, match="successes of"):
        PASS(xr.Dataset({"successes": ("problem", [c]), "samples": ("problem", [n])}))


def test_nothing_to_count():
    with pytest.raises(ValueError, match="needs counts"):
        PASS(xr.Dataset({"score": ("problem", [1.0])}))
