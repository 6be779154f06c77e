"""Answers are JSON: no NaN, no infinity, no NumPy; groups named in brackets."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from scalingkit.answers import Answer, named_values, summarise
from scalingkit.core.notes import Note


def test_json_has_no_nan_and_no_numpy():
    result = {"a": np.float64(1.5), "b": float("nan"), "c": np.array([1, 2]), "d": float("inf"), "e": (True, None)}
    found = json.loads(Answer("x", result, warnings=[Note("no-effect", "info", "a", "text")]).to_json())
    assert found["result"] == {"a": 1.5, "b": None, "c": [1, 2], "d": None, "e": [True, None]}
    assert found["warnings"] == [{"code": "no-effect", "severity": "info", "about": "a", "text": "text"}]
    with pytest.raises(ValueError, match="JSON"):
        json.dumps(result["b"], allow_nan=False)


def test_groups_are_named_in_brackets():
    v = xr.DataArray(np.arange(12.0).reshape(1, 2, 2, 3), dims=("chain", "draw", "family", "corpus"),
                     coords={"family": ["f", "g"], "corpus": ["a", "b", "c"]})  # fmt: skip
    found = named_values(v, ("chain", "draw"))
    assert list(found)[:2] == ["[f / a]", "[f / b]"] and found["[g / c]"].tolist() == [5.0, 11.0]
    assert list(named_values(v[0, :, 0, 0], ("draw",))) == [""]


def test_summary_of_known_draws():
    s = summarise(np.linspace(0, 1, 1001))
    assert s["mean"] == pytest.approx(0.5) and (s["lower"], s["upper"]) == pytest.approx((0.05, 0.95))
