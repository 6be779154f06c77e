"""Units in headers and cells: what is read, and what is refused rather than guessed."""

import math

import numpy as np
import pandas as pd
import pytest

from scalingkit.core import cells, units

DAY = 86400.0


@pytest.mark.parametrize(
    ("text", "role", "value"),
    [
        ("1.4B", "N", 1.4e9), ("7b", "N", 7e9), ("125m", "N", 125e6), ("70M params", "N", 70e6), ("7 billion", "N", 7e9),
        ("7 billion parameters", "N", 7e9), ("300BT", "D", 300e9), ("1.2T", "D", 1.2e12), ("1TT", "D", 1e12),
        ("1.5e9 tokens", "D", 1.5e9), ("2 trillion tokens", "D", 2e12), ("1e21 FLOPs", "C", 1e21), ("2.3 ExaFLOP", "C", 2.3e18),
        ("84 ZFLOPs", "C", 84e21), ("3 PF-days", "C", 3e15 * DAY), ("3 petaflop/s-days", "C", 3e15 * DAY),
        ("1,000,000", "D", 1e6), ("1_000", "N", 1000), ("1 000 000", "N", 1e6), ("1'000'000", "N", 1e6),
        ("10²¹", "C", 1e21), ("1.5×10^21", "C", 1.5e21), ("10^9", "N", 1e9), ("−3", "y", -3), ("３", "N", 3),
        ("1.", "N", 1), (".5B", "N", 5e8), ("3.1 bits", "loss", 3.1 * math.log(2)), ("2.5 nats", "loss", 2.5),
    ],
)  # fmt: skip
def test_a_cell_is_read(text, role, value):
    cell = units.number(text, role)
    assert cell.code == ""
    assert cell.value * cell.factor == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "role", "code", "word"),
    [
        ("", "N", "blank", ""), ("NaN", "N", "missing", ""), ("nan", "loss", "missing", ""), ("N/A", "D", "missing", ""),
        ("null", "D", "missing", ""), ("-", "D", "missing", ""), ("inf", "loss", "infinite", ""), ("diverged", "loss", "diverged", ""),
        ("1e400", "N", "infinite", "too large"), ("8x7B", "N", "unparsable", "product"), ("~7B", "N", "unparsable", "not a number"),
        ("7B tokens", "N", "unparsable", "unit"), ("7BT", "N", "unparsable", "unit"), ("312 TFLOP/s", "C", "unparsable", "rate"),
        ("7 GB", "N", "unparsable", "unit"), ("2,31", "loss", "unparsable", "decimal"), ("2,310", "loss", "unparsable", "decimal"),
        ("1,00,000", "N", "unparsable", "thousands"), ("1.2.3", "N", "unparsable", "separators"), ("5 hours", "C", "unparsable", "unit"),
    ],
)  # fmt: skip
def test_a_cell_is_refused_with_the_reason(text, role, code, word):
    cell = units.number(text, role)
    assert cell.code == code
    assert word in cell.why


def test_a_decimal_comma_is_read_when_asked_for():
    assert units.number("2,31", "loss", ",").value == 2.31
    assert units.number("1.000.000,5", "D", ",").value == 1000000.5


@pytest.mark.parametrize(
    ("text", "role", "factor"),
    [
        ("B", "N", 1e9), ("1E21", "C", 1e21), ("T", "D", 1e12), ("M", "N", 1e6), ("in billions", "D", 1e9),
        ("billions of tokens", "D", 1e9), ("x 1e9", "N", 1e9), ("×10^9", "N", 1e9), ("1e21 FLOPs", "C", 1e21),
        ("PF-days", "C", 1e15 * DAY), ("tokens", "D", 1.0), ("bits", "loss", math.log(2)),
    ],
)  # fmt: skip
def test_brackets_of_a_header(text, role, factor):
    assert units.bracket(text, role) == pytest.approx(factor, rel=1e-15)


@pytest.mark.parametrize(("text", "role"), [("GB", "N"), ("GPU hours", "C"), ("TFLOP/s", "C"), ("furlongs", "D")])
def test_unknown_brackets_have_no_factor(text, role):
    assert units.bracket(text, role) is None


@pytest.mark.parametrize("unit", ["GB", 0, -1, float("nan"), float("inf"), True, "", None])
def test_a_unit_a_user_gives_must_be_known(unit):
    if unit == "":  # the empty text is the plain unit
        assert units.factor_of(unit, "N").factor == 1.0
        return
    with pytest.raises(ValueError, match="not a unit"):
        units.factor_of(unit, "N")


def test_integers_never_overflow():
    huge = pd.Series([70_000_000_000, 2**62, 10**25], dtype=object)
    assert cells.parse(huge, "D").values.tolist() == [7e10, float(2**62), 1e25]
    assert cells.parse(pd.Series([10**400], dtype=object), "D").code.tolist() == ["infinite"]
    assert cells.parse(pd.Series([9e18] * 2).astype("int64"), "N", 1e9).values.tolist() == [9e27] * 2


def test_a_unit_in_header_and_cell_is_refused():
    p = cells.parse(pd.Series(["1.4B", "7"]), "N", 1e9)
    assert p.code.tolist() == ["unit-twice", ""]
    assert np.isnan(p.values[0])
    assert p.values[1] == 7e9


@pytest.mark.parametrize(
    "cell", [True, pd.Timestamp("2024-01-01"), [1, 2], {"a": 1}, np.datetime64("2024-01-01"), 1 + 2j]
)
def test_what_is_no_number_is_not_made_one(cell):
    out = np.empty(1, dtype=object)
    out[0] = cell
    assert cells.parse(pd.Series(out, dtype=object), "N").code.tolist() == ["unparsable"]
    assert cells.parse(pd.Series([True, False]), "N").code.tolist() == ["unparsable"] * 2


def test_labels_are_the_same_for_1_and_1_0():
    assert cells.labels(pd.Series([1.0, np.nan, 2.0])).tolist() == ["1", "", "2"]
    assert cells.labels(pd.Series([1, "1", None, " a\x00 "], dtype=object)).tolist() == ["1", "1", "", "a?"]
