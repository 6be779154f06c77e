"""Random tables at the reader: no exception but its own, no silent drop, counts that add up, order does not matter.

Every property has a control: a reader that is spoiled on purpose must fail it.
"""

import contextlib
import json
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from scalingkit.core import cells, repeats, runs, tables
from scalingkit.core.errors import RunsError

quick = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))

HEADERS = [
    "N", "D", "C", "loss", "Model Size (B)", "FLOPs (1E21)", " Tokens (T)", "num_params", "params", "tokens", "val_loss",
    "family", "corpus", "seed", "run", "name", "step", "_step", "x", "y", "config.n_params", "summary.eval/loss", "ppl",
    "d_model", "n_layers", "vocab", "diverged", "state", "unique_tokens", "error_rate", "Unnamed: 0", "index", "P", "loss_se",
    "quarantine_row", "chain", "draw", "quarantined", "params (GB)", "loss (bits)", "trajectory", "train_loss",
]  # fmt: skip
WORDS = [
    "", "NaN", "nan", "null", "N/A", "-", "inf", "-inf", "diverged", "oops", "1.4B", "300BT", "7b", "1e21 FLOPs", "2.3 ExaFLOP",
    "1,000,000", "1_000", "2,31", "8x7B", "70", "1e400", "-5", "0", "True", "{", "{'a': 1}", '{"b": 2}', "=1+1", "٣", "１２", "\x00", "\ud7ff", "🙂", '"', "a,b", "a\nb",
]  # fmt: skip
number = st.one_of(
    st.floats(1e3, 1e28), st.floats(1.0, 12.0), st.floats(allow_nan=True, allow_infinity=True), st.integers(-10, 10**30),
    st.sampled_from([1e6, 7e9, 70, 13e9, 1e13, 1e16, 1e28, 10**400, 0, -1, 5e-324]),
)  # fmt: skip
cell = st.one_of(number, st.sampled_from(WORDS), st.none(), st.booleans(), st.text(max_size=6))
header = st.one_of(st.sampled_from(HEADERS), st.text(max_size=8))


@st.composite
def any_table(draw):
    """Header -> cells, of any kind and in any state."""
    names = draw(st.lists(header, min_size=0, max_size=7, unique=True))
    n = draw(st.integers(0, 12))
    pool = [draw(st.lists(cell, min_size=n, max_size=n)) for _ in names]
    table = dict(zip(names, pool, strict=True))
    for k in table:  # some rows twice
        if n > 2 and draw(st.booleans()):
            table[k][n - 1] = table[k][0]
    return table


@st.composite
def likely_table(draw):
    """A table that is mostly sound, so that the paths past the first refusal are walked."""
    n = draw(st.integers(1, 25))
    spread = draw(st.sampled_from([1.0, 4.0]))
    logs = st.floats(-spread, spread)

    def column(middle, good):
        values = [middle * 10 ** draw(logs) for _ in range(n)] if good is None else [draw(good) for _ in range(n)]
        for i in draw(st.lists(st.integers(0, n - 1), max_size=3)):
            values[i] = draw(cell)
        return values

    table = {"N": column(1e9, None), "D": column(1e10, None), "loss": column(0, st.floats(1.5, 12))}
    if draw(st.booleans()):
        table["C"] = [
            6.0 * a * b if isinstance(a, float) and isinstance(b, float) else 1e20
            for a, b in zip(table["N"], table["D"], strict=True)
        ]
    if draw(st.booleans()):
        table["run"] = column(0, st.sampled_from(["a", "b", "c"]))
        table["step"] = column(0, st.sampled_from([1, 2, 3]))
    if draw(st.booleans()):
        table["seed"] = column(0, st.integers(0, 2))
        table["family"] = column(0, st.sampled_from(["gpt", "llama", "模型"]))
    if draw(st.booleans()):
        table["lr"] = column(0, st.floats(1e-5, 1))
    return table


def length(table):
    return len(next(iter(table.values()), []))


def objects(table):
    return pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in table.items()})


def accounted(ds, rows):
    """The property: every input row is either used or set aside, once, and the Dataset is what it should be."""
    runs.validate(ds)
    aside = ds["quarantine_row"].values.tolist()
    assert ds.attrs["rows_in"] == rows
    assert ds.sizes["run"] + len(aside) == rows
    assert len(set(aside)) == len(aside)
    assert all(0 <= i < rows for i in aside)
    assert all(r for r in ds["quarantine_reason"].values.tolist())
    for k in ("N", "D", "C", "U", "loss"):
        if k in ds:
            assert (np.isfinite(ds[k].values) & (ds[k].values > 0)).all()
    json.dumps(runs.summary(ds), allow_nan=False)
    runs.report(ds)


def read_or_refuse(source, rows, **options):
    try:
        ds = runs.read(source, **options)
    except RunsError as e:
        assert len(str(e)) > 10
        return None
    accounted(ds, rows)
    return ds


# no exception but its own; every row accounted for


@quick
@given(any_table())
@example({})
@example({"loss": []})
@example({"N": [10**400], "loss": [2.0]})
@example({"N": [True, 1e8], "loss": [2.0, 2.0]})
def test_any_table_is_read_or_refused(table):
    read_or_refuse(objects(table), length(table))


@quick
@given(likely_table(), st.sampled_from(["last", "all"]), st.booleans(), st.booleans(), st.booleans())
def test_likely_tables_add_up(table, checkpoints, dedupe, diverged, jump):
    read_or_refuse(
        objects(table), length(table), checkpoints=checkpoints, dedupe=dedupe, diverged=diverged, unit_jump=jump
    )


@quick
@given(st.one_of(any_table(), likely_table()))
def test_mappings_and_records(table):
    assume(table)
    read_or_refuse(table, length(table))
    rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    read_or_refuse(rows, length(table))


@settings(quick, max_examples=25)
@given(table=st.one_of(any_table(), likely_table()))
def test_csv_files(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    objects(table).to_csv(path, index=False, errors="replace")
    read_or_refuse(path, length(table))


@settings(quick, max_examples=25)
@given(table=st.one_of(any_table(), likely_table()))
def test_json_lines(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("json") / "t.jsonl"
    rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    path.write_text("\n".join(json.dumps(r) for r in rows))
    read_or_refuse(path, length(table))


@settings(quick, max_examples=25)
@given(table=st.one_of(any_table(), likely_table()))
def test_parquet_and_polars(table, tmp_path_factory):
    import polars as pl

    path = tmp_path_factory.mktemp("parquet") / "t.parquet"
    frame = objects(table)
    typed = frame.apply(lambda c: c.astype(float) if all(type(v) is float for v in c) else c.astype(str))
    assume("" not in typed.columns)
    pl_frame = pl.DataFrame({k: [None if v != v else v for v in typed[k].tolist()] for k in typed}, strict=False)
    try:
        typed.to_parquet(path)
    except (UnicodeEncodeError, ValueError):
        assume(False)
    one, two = read_or_refuse(path, length(table)), read_or_refuse(pl_frame, length(table))
    if one is not None and two is not None:
        assert one.attrs["rows_used"] == two.attrs["rows_used"]
        assert all((one[k].values == two[k].values).all() for k in ("N", "D", "C", "loss") if k in one)


@quick
@given(
    st.binary(max_size=200),
    st.sampled_from([".csv", ".tsv", ".json", ".jsonl", ".parquet", ".csv.gz", ".nc", ".txt", ""]),
)
def test_any_bytes_are_read_or_refused(tmp_path_factory, data, suffix):
    path = tmp_path_factory.mktemp("bytes") / f"t{suffix}"
    path.write_bytes(data)
    with contextlib.suppress(RunsError):
        runs.validate(runs.read(path))


@pytest.mark.slow
@settings(quick, max_examples=2000)
@given(st.one_of(any_table(), likely_table()), st.randoms())
def test_many_tables(table, random):
    read_or_refuse(objects(table), length(table))
    order = list(range(length(table)))
    random.shuffle(order)
    assert content(objects(table).iloc[order].reset_index(drop=True)) == content(objects(table))


def test_control_a_parser_that_drops_a_row_fails_the_property(monkeypatch):
    table = {"N": [1e8, 2e8, 4e8], "D": [1e9] * 3, "loss": [3.0, 2.9, 2.8]}
    accounted(runs.read(objects(table)), 3)
    tidy = tables._tidy
    monkeypatch.setattr(tables, "_tidy", lambda frame: tidy(frame).iloc[:-1])
    with pytest.raises(AssertionError):
        accounted(runs.read(objects(table)), 3)


def test_control_a_cell_read_as_zero_fails_the_property(monkeypatch):
    parse = cells.parse

    def careless(column, role, *rest):
        p = parse(column, role, *rest)
        return p._replace(values=np.nan_to_num(p.values, posinf=1e300), code=np.full(len(p.code), ""))

    monkeypatch.setattr(cells, "parse", careless)
    monkeypatch.setattr("scalingkit.core.schema.POSITIVE", ())
    with pytest.raises(AssertionError):
        accounted(runs.read(objects({"N": [1e8, 2e8], "loss": [3.0, "NaN"]})), 2)


def test_control_another_exception_fails_the_property(monkeypatch):
    monkeypatch.setattr(repeats, "replicates", lambda columns: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        read_or_refuse(objects({"N": [1e8], "loss": [3.0]}), 1)


# the order of rows and of columns does not matter


def content(source, **options):
    """What was read, whatever the order: used values and labels, and what was set aside and why; or the refusal."""
    try:
        ds = runs.read(source, **options)
    except RunsError as e:
        return "refused" if "none of the" in str(e) else sorted(str(e))  # a list of headers may have another order
    names = [k for k in ("N", "D", "C", "loss", "family", "seed", "lr") if k in ds.variables]
    used = Counter(tuple(map(str, row)) for row in zip(*(ds[k].values.tolist() for k in names), strict=True))
    q = runs.quarantine(ds)
    return used, Counter(zip(q.column, q.value, q.code, strict=True)), sorted(ds.variables)


@quick
@given(likely_table(), st.randoms())
def test_the_order_of_rows_does_not_matter(table, random):
    frame = objects(table)
    order = list(range(len(frame)))
    random.shuffle(order)
    assert content(frame.iloc[order].reset_index(drop=True)) == content(frame)


@quick
@given(st.one_of(likely_table(), any_table()), st.randoms())
def test_the_order_of_columns_does_not_matter(table, random):
    assume(length(table) and all(k.strip() for k in table))  # else columns are named by their place
    names = list(table)
    random.shuffle(names)
    assert content(objects({k: table[k] for k in names})) == content(objects(table))


def test_control_a_first_row_rule_fails_the_order_property(monkeypatch):
    frame = objects({"N": [1e8, 2e8, 2e8], "D": [1e9] * 3, "loss": [3.0, 2.9, 2.9]})
    swapped = frame.iloc[[1, 0, 2]].reset_index(drop=True)
    assert content(frame) == content(swapped)
    monkeypatch.setattr(
        repeats, "duplicates", lambda columns, alive: (np.arange(len(alive)) == 1, np.arange(len(alive)) * 0)
    )
    assert content(frame) != content(swapped)


# one table, two units


@quick
@given(st.lists(st.tuples(st.floats(1e6, 1e13), st.floats(1e8, 1e16), st.floats(1.5, 10)), min_size=1, max_size=20))
def test_units_do_not_matter(rows):
    N, D, loss = map(list, zip(*rows, strict=True))
    raw = runs.read({"N": N, "D": D, "loss": loss}, unit_jump=False, dedupe=False)
    billions = {"Model Size (B)": [n / 1e9 for n in N], "Tokens (T)": [d / 1e12 for d in D], "loss": loss}
    in_cells = {"Model Size": [f"{n / 1e6!r}M" for n in N], "tokens": [f"{d / 1e9!r}BT" for d in D], "loss": loss}
    asked = {"size": [n / 1e3 for n in N], "D": [d / 1e9 for d in D], "loss": loss}
    for table, units in ((billions, None), (in_cells, None), (asked, {"N": "k", "D": 1e9})):
        ds = runs.read(table, units=units, unit_jump=False, dedupe=False)
        for k in "NDC":
            np.testing.assert_allclose(ds[k].values, raw[k].values, rtol=1e-12)


def test_control_a_forgotten_factor_fails_the_unit_property(monkeypatch):
    parse = cells.parse
    monkeypatch.setattr(cells, "parse", lambda column, role, factor=1.0, decimal=".": parse(column, role, 1.0, decimal))
    ds = runs.read({"Model Size (B)": [7.0], "loss": [2.0]})
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(ds.N.values, [7e9], rtol=1e-12)


@quick
@given(st.floats(1e-300, 1e300), st.sampled_from(["", "K", "M", "B", "T"]))
def test_a_number_and_its_text_agree(value, suffix):
    factor = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}[suffix]
    p = cells.parse(pd.Series([f"{value!r}{suffix}"]), "N")
    if math.isfinite(value * factor):
        assert p.values[0] == pytest.approx(value * factor, rel=1e-15)
    else:
        assert p.code[0] == "infinite"
