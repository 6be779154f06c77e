"""Run tables end to end: the required table, conventions, repeats, refusals, and every row accounted for."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from scalingkit.core import notes, runs, screen
from scalingkit.core.errors import RunsError


def ladder(n=8, **more):
    """A clean ladder: N 70M to 9B, D = 20 N, a loss that falls."""
    N = 7e7 * 2.0 ** np.arange(n)
    return {"N": N, "D": 20 * N, "loss": 1.7 + 400 * N**-0.34, **more}


def codes(ds):
    return {e.row: e.code for e in runs.quarantine(ds).itertuples()}


def adds_up(ds, rows):
    runs.validate(ds)
    assert ds.attrs["rows_in"] == rows == ds.attrs["rows_used"] + ds.attrs["rows_quarantined"]
    assert ds.sizes["run"] == ds.attrs["rows_used"]
    assert len(set(ds.quarantine_row.values.tolist())) == ds.attrs["rows_quarantined"]


# the table that every peer gets wrong


def dirty():
    t = {k: list(v) for k, v in ladder().items()}
    t["N"][2] = 0.28  # in billions
    t["loss"][3] = "NaN"
    t["D"][5] = t["D"][5] * 1e4 * 1e2  # a unit off
    for k in t:
        t[k].append(t[k][1])  # a duplicate, in row 8
    return t


def test_one_row_in_billions_a_nan_a_duplicate_and_a_unit_jump_are_all_named():
    ds = runs.read(dirty())
    adds_up(ds, 9)
    assert codes(ds) == {2: "unit-jump", 3: "missing", 5: "unit-jump", 8: "duplicate"}
    table = runs.quarantine(ds).set_index("row")
    assert "0.28 billion" in table.reason[2]
    assert "2.8e+08" in table.reason[2]
    assert (table.column[2], table.value[2]) == ("N", "0.28")
    assert (table.column[3], table.value[3]) == ("loss", "NaN")
    assert "row 1" in table.reason[8]
    assert sorted(ds.N.values) == pytest.approx(sorted(ladder()["N"][[0, 1, 4, 6, 7]]))  # none silently used
    text = runs.report(ds)
    assert all(f"row {i}" in text for i in (2, 3, 5, 8))
    assert "9 rows in, 5 used, 4 set aside" in text
    assert [n.code for n in notes.of(ds)] == ["rows-quarantined"]


def test_control_without_its_rules_the_bad_rows_are_used():
    """What the rules above hold back: the test would fail if they did nothing."""
    ds = runs.read(dirty(), unit_jump=False, dedupe=False)
    assert codes(ds) == {3: "missing"}
    assert float(ds.N.min()) == 0.28
    assert {n.about for n in notes.of(ds) if n.code == "unit-suspect"} == {"row 2", "row 5"}  # and even then it is said


@pytest.mark.parametrize(
    ("factor", "far"), [(1e4, True), (1e-4, True), (1e6, True), (1e9, True), (1e-9, True), (30, False), (1, False)]
)
@pytest.mark.parametrize("column", ["N", "D"])
def test_a_jump_of_one_row(column, factor, far):
    t = ladder(5)
    t[column][2] *= factor
    assert codes(runs.read(t)) == ({2: "unit-jump"} if far else {})


@pytest.mark.parametrize("factor", [1e4, 1e-4])
@pytest.mark.parametrize("column", ["N", "D"])
@pytest.mark.parametrize("row", range(8))
def test_a_jump_of_ten_thousand_is_found_wherever_it_is(row, column, factor):
    t = ladder(8)
    t[column][row] *= factor
    ds = runs.read(t)
    if (row, factor) in ((0, 1e4), (7, 1e-4)):  # the least moved to the top of a ladder of 128-fold, or the reverse
        assert codes(ds) == {}
        assert f"row {row}" in [n.about for n in notes.of(ds) if n.code == "unit-suspect"]  # in doubt, and named
    else:
        assert codes(ds) == {row: "unit-jump"}


def test_a_far_target_is_told_from_a_jump_by_its_loss():
    t = {"N": [1e6, 2e6, 4e6, 7e9], "D": [1e9] * 4, "loss": [4.0, 3.9, 3.8, 2.0]}
    assert codes(runs.read(t)) == {}
    assert [n.code for n in notes.of(runs.read(t))] == ["unit-suspect"]  # noted all the same
    assert codes(runs.read(t | {"loss": [4.0, 3.9, 3.8, 3.95]})) == {3: "unit-jump"}


def test_billions_among_raw_counts_are_asked_about():
    ds = runs.read({"N": [7e9, 13e9, 70], "D": [1e12, 1e12, 1.4e12], "loss": [2.0, 1.9, 1.8]})
    assert codes(ds) == {2: "unit-jump"}
    assert "70 billion" in runs.quarantine(ds).reason[0]
    most = runs.read({"N": [7, 13, 70e9], "D": [1e12] * 3, "loss": [2.0, 1.9, 1.8]})
    assert codes(most) == {0: "unit-jump", 1: "unit-jump"}  # implausible values are not the majority that counts
    whole = runs.read({"N": [7, 13, 70], "D": [1e12] * 3, "loss": [2.0, 1.9, 1.8]})
    assert [n.about for n in notes.of(whole)] == ["N"]
    assert runs.read(
        {"N": [7, 13, 70], "D": [1, 1, 1.4], "loss": [2.0, 1.9, 1.8]}, units={"N": "B", "D": "T"}
    ).N.values.tolist() == [7e9, 13e9, 70e9]


def test_a_wide_honest_table_is_left_alone():
    N = np.geomspace(1e4, 1e12, 60)
    assert codes(runs.read({"N": N, "D": 20 * N[::-1], "loss": np.linspace(4, 2, 60)})) == {}
    assert (
        codes(runs.read({"N": [1e6, 2e6, 4e6, 7e9], "D": [1e9] * 4, "loss": [4.0, 3.9, 3.8, 2.0]})) == {}
    )  # a far target
    few = runs.read({"N": [1e6, 7e12], "D": [1e9] * 2, "loss": [4.0, 2.0]})
    assert codes(few) == {}  # two rows have no rest to be held against


# cells


def test_missing_blank_infinite_diverged_each_have_their_reason():
    loss = [2.3, "NaN", float("inf"), 11.2, "", None, "-", "oops", -1.0, 0.0, "diverged", 2.1]
    ds = runs.read({"N": 1e8 + np.arange(12), "D": np.full(12, 1e10), "loss": loss})
    adds_up(ds, 12)
    assert codes(ds) == {
        1: "missing", 2: "infinite", 3: "diverged", 4: "blank", 5: "missing", 6: "missing", 7: "unparsable",
        8: "non-positive", 9: "non-positive", 10: "diverged",
    }  # fmt: skip
    assert all(runs.quarantine(ds).reason.str.len() > 5)


def test_a_table_without_a_usable_row_is_an_error_that_lists_the_reasons():
    with pytest.raises(RunsError, match=r"none of the 3 rows.*2 missing.*1 infinite"):
        runs.read({"N": [1e8, 2e8, 3e8], "D": [1e9] * 3, "loss": ["NaN", None, "inf"]})


def test_diverged_rule_is_conservative_and_has_a_switch():
    t = ladder(6)
    t["loss"][[1, 3]] = [10.5, 12.0]
    assert codes(runs.read(t)) == {3: "diverged"}
    assert codes(runs.read(t, diverged=False)) == {}
    assert codes(runs.read(t, diverged=10.0)) == {1: "diverged", 3: "diverged"}
    assert codes(runs.read(t, vocab=32000)) == {1: "diverged", 3: "diverged"}  # ln 32000 = 10.37
    assert codes(runs.read(t | {"vocab_size": [32000] * 5 + [5]})) == {
        1: "diverged",
        3: "diverged",
        5: "diverged",
    }  # ln 5 = 1.6
    assert codes(runs.read({"N": t["N"], "D": t["D"], "loss (bits per byte)": t["loss"]})) == {}  # no chance is known
    assert screen.diverged(np.array([50.0, 60.0]), None, True)[0].tolist() == [False, False]  # another unit altogether
    flagged = runs.read(ladder(3, diverged=[False, True, False]))
    assert codes(flagged) == {1: "diverged"}


def test_units_from_header_and_cell():
    ds = runs.read(
        {
            "Model Size (B)": [7, 13, 70],
            " Tokens (T)": ["2", "2", "1.4"],
            "FLOPs (1E21)": [84, 156, 588],
            "loss": [2.0, 1.9, 1.8],
        }
    )
    assert ds.N.values.tolist() == [7e9, 13e9, 70e9]
    assert ds.D.values.tolist() == [2e12, 2e12, 1.4e12]
    assert ds.C.values == pytest.approx([8.4e22, 1.56e23, 5.88e23], rel=1e-15)
    assert ds.attrs["flops_kind"] == "6ND"  # measured: C is 6ND in every row
    said = json.loads(ds.attrs["columns"])["C"]
    assert (said["column"], said["factor"]) == ("FLOPs (1E21)", 1e21)
    twice = runs.read({"Model Size (B)": ["1.4B", "7", "13"], "D": [1e12] * 3, "loss": [2.2, 2.0, 1.9]})
    assert codes(twice) == {0: "unit-twice"}


def test_perplexity_and_bits():
    ds = runs.read({"N": [1e8, 1e9], "ppl": [np.exp(3.0), np.exp(2.0)]})
    assert ds.loss.values == pytest.approx([3.0, 2.0])
    assert [n.code for n in notes.of(ds)] == ["perplexity-logged"]
    assert runs.read({"N": [1e8, 1e9], "loss (bits)": [4.0, 3.0]}).loss.values == pytest.approx(
        np.log(2) * np.array([4, 3])
    )
    assert runs.read({"N": [1e8, 1e9], "loss (bits per byte)": [1.0, 0.9]}).loss.attrs["units"] == "bits per byte"


# conventions


def test_the_third_is_completed_and_the_convention_named():
    t = ladder(3)
    ds = runs.read(t)
    assert ds.C.values == pytest.approx(6 * t["N"] * t["D"])
    assert (ds.attrs["flops_kind"], ds.attrs["params_kind"]) == ("6ND", "unknown")
    back = runs.read({"N": t["N"], "C": 6 * t["N"] * t["D"], "loss": t["loss"]}, params_kind="total")
    assert back.D.values == pytest.approx(t["D"])
    assert json.loads(back.attrs["completed"])["D"]["formula"] == "C / (6 N)"
    assert runs.read({"D": t["D"], "C": 6 * t["N"] * t["D"], "loss": t["loss"]}).N.values == pytest.approx(t["N"])
    assert "C" not in runs.read({"N": t["N"], "loss": t["loss"]})
    assert runs.read(t, flop_per_param_token=8).C.values == pytest.approx(8 * t["N"] * t["D"])


def test_one_of_three_may_be_absent_in_a_row_but_not_wrong():
    t = ladder(4)
    C = 6 * t["N"] * t["D"]
    ds = runs.read(t | {"C": [C[0], None, "much", C[3]], "N": [t["N"][0], t["N"][1], t["N"][2], None]})
    assert codes(ds) == {2: "unparsable"}
    assert ds.C.values[1] == pytest.approx(C[1])
    assert ds.N.values[2] == pytest.approx(t["N"][3])
    assert {n.about for n in notes.of(ds) if n.code == "compute-completed"} == {"N", "C"}
    two = runs.read(t | {"C": [C[0], None, C[2], C[3]], "N": [t["N"][0], None, *t["N"][2:]]})
    assert codes(two) == {1: "missing"}


def test_compute_far_from_6nd_is_warned_about_by_name_and_a_unit_error_set_aside():
    t = ladder(6, run=[f"r{i}" for i in range(6)])
    C = 6 * t["N"] * t["D"] * np.array([1, 1.1, 3, 0.3, 1, 1e5])
    ds = runs.read(t | {"C": C})
    assert codes(ds) == {5: "inconsistent"}
    (note,) = [n for n in notes.of(ds) if n.code == "compute-mismatch"]
    assert "r2 (3)" in note.text
    assert "r3 (0.3)" in note.text
    assert "r1" not in note.text
    assert ds.attrs["flops_kind"] == "reported"
    clean = runs.read(t | {"C": 6.5 * t["N"] * t["D"]})
    assert not [n for n in notes.of(clean) if n.code == "compute-mismatch"]


def test_kinds_are_chosen_named_and_never_contradicted():
    t = ladder(3)
    both = {"params": t["N"], "params_no_embed": t["N"] / 2, "tokens": t["D"], "loss": t["loss"]}
    with pytest.raises(RunsError, match="params_kind="):
        runs.read(both)
    assert runs.read(both, params_kind="non-embedding").N.values == pytest.approx(t["N"] / 2)
    only = {"params_no_embed": t["N"], "tokens": t["D"], "loss": t["loss"]}
    assert runs.read(only, columns={"N": "params_no_embed"}).attrs["params_kind"] == "non-embedding"
    with pytest.raises(RunsError, match="says non-embedding"):
        runs.read(only, columns={"N": "params_no_embed"}, params_kind="total")
    with pytest.raises(RunsError, match="Did you mean 'total'"):
        runs.read(only, params_kind="totall")


def test_n_from_an_architecture():
    t = {
        "d_model": [512, 1024],
        "n_layers": [6, 24],
        "vocab_size": [50304] * 2,
        "tokens": [1e10, 2e10],
        "loss": [3.2, 2.9],
    }
    ds = runs.read(t)
    assert ds.N.values[0] == 18_874_368
    assert ds.attrs["params_kind"] == "non-embedding"
    assert runs.read(t, params_kind="total").N.values[0] == 70_385_664
    assert [n.code for n in notes.of(ds)] == ["size-counted"]
    bad = runs.read(t | {"d_model": [512, "wide"]})
    assert codes(bad) == {1: "missing"}


# repeats


def test_seeds_are_replicates_and_equal_rows_are_duplicates():
    ds = runs.read({"N": [1e8] * 3, "D": [1e10] * 3, "loss": [3.0, 3.0, 3.1], "seed": [0, 0, 1]})
    assert codes(ds) == {1: "duplicate"}
    assert ds.seed.values.tolist() == ["0", "1"]
    assert json.loads(ds.attrs["replicates"]) == {"design_points": 1, "replicated": 1, "rows_in_replicated": 2}
    assert codes(runs.read({"N": [1e8] * 3, "D": [1e10] * 3, "loss": [3.0] * 3, "seed": [0, 1, 2]})) == {}  # not equal
    kept = runs.read({"N": [1e8] * 2, "D": [1e10] * 2, "loss": [3.0] * 2}, dedupe=False)
    assert codes(kept) == {}


def test_a_row_number_does_not_make_rows_different():
    t = {"Unnamed: 0": [0, 1], "N": [1e8] * 2, "D": [1e10] * 2, "loss": [3.0] * 2}
    assert codes(runs.read(t)) == {1: "duplicate"}
    assert codes(runs.read({"lr": [0.1, 0.2], "N": [1e8] * 2, "D": [1e10] * 2, "loss": [3.0] * 2})) == {}


def trajectories():
    rows = [
        dict(run=r, N=n, step=s, D=s * 1e6, loss=3 - s / 1000)
        for r, n in (("a", 1e8), ("b", 2e8))
        for s in (100, 300, 200)
    ]
    return [*rows, dict(run="c", N=3e8, step=50, D=5e7, loss=3.3)]


def test_checkpoints_of_one_run():
    ds = runs.read(trajectories())
    assert codes(ds) == dict.fromkeys((0, 2, 3, 5), "checkpoint")
    assert ds.step.values.tolist() == [300, 300, 50]
    assert [n.code for n in notes.of(ds)] == ["checkpoints-dropped", "rows-quarantined"]
    kept = runs.read(trajectories(), checkpoints="all")
    assert codes(kept) == {}
    assert kept.trajectory.values.tolist() == ["a"] * 3 + ["b"] * 3 + ["c"]
    assert [n.severity for n in notes.of(kept) if n.code == "checkpoints-kept"] == ["warning"]
    assert kept.run.values[0] == "a [step 100]"


def test_checkpoints_are_told_from_runs():
    names = {"run": ["a", "a"], "N": [1e8, 2e8], "D": [1e9, 2e9], "loss": [3.1, 3.0]}
    assert codes(runs.read(names)) == {}  # one name, two sizes: two runs
    seeds = [dict(run="a", N=1e8, D=1e9, step=10, seed=s, loss=3 + s / 10) for s in (0, 1)]
    assert codes(runs.read(seeds)) == {}
    counts = {"run": [0, 0, 1, 1], "N": [1e8] * 4, "D": [1e9, 2e9] * 2, "loss": [3.1, 3.0, 3.2, 2.9]}
    assert codes(runs.read(counts)) == {}  # a plain number is a repeat, not the name of a trajectory
    model = {"model": ["gpt"] * 2, "N": [1e8] * 2, "D": [1e9, 2e9], "step": [1, 2], "loss": [3.1, 3.0]}
    ds = runs.read(model)
    assert codes(ds) == {}
    assert [n.code for n in notes.of(ds)] == ["checkpoints-unclear"]
    given = runs.read(model, columns={"trajectory": "model"})
    assert codes(given) == {0: "checkpoint"}


# sources

ROWS = [
    {"name": "a", "N": 1e8, "D": 2e9, "loss": 3.1, "family": "x"}, {"name": "b", "N": 2e8, "D": 4e9, "loss": 2.9, "family": "y"},
    {"name": "c", "N": 4e8, "D": 8e9, "loss": 2.7, "family": "x"},
]  # fmt: skip


def write_csv(path, sep=","):
    pd.DataFrame(ROWS).to_csv(path, index=False, sep=sep)
    return path


def sources(tmp):
    frame = pd.DataFrame(ROWS)
    frame.to_parquet(tmp / "t.parquet")
    (tmp / "t.jsonl").write_text("\n".join(json.dumps(r) for r in ROWS))
    (tmp / "t.json").write_text(json.dumps(ROWS))
    (tmp / "columns.json").write_text(frame.to_json())
    (tmp / "lists.json").write_text(json.dumps(frame.to_dict("list")))
    (tmp / "split.json").write_text(frame.to_json(orient="split"))
    (tmp / "wrapped.json").write_text(json.dumps({"runs": ROWS, "version": 1}))
    (tmp / "named.json").write_text(json.dumps({r["name"]: {k: v for k, v in r.items() if k != "name"} for r in ROWS}))
    with gzip.open(tmp / "t.csv.gz", "wt") as f:
        f.write(frame.to_csv(index=False))
    (tmp / "bom.csv").write_bytes(b"\xef\xbb\xbf" + frame.to_csv(index=False).encode())
    (tmp / "wide.csv").write_bytes(frame.to_csv(index=False).encode("utf-16"))
    return [
        write_csv(tmp / "t.csv"), write_csv(tmp / "t.tsv", "\t"), write_csv(tmp / "semi.csv", ";"), tmp / "t.parquet",
        tmp / "t.jsonl", tmp / "t.json", tmp / "columns.json", tmp / "lists.json", tmp / "split.json", tmp / "wrapped.json",
        tmp / "named.json", tmp / "t.csv.gz", tmp / "bom.csv", tmp / "wide.csv", str(tmp / "t.csv"), frame, frame.set_index("name"),
        frame.convert_dtypes(), frame.to_dict("list"), ROWS, xr.Dataset.from_dataframe(frame.set_index("name")),
    ]  # fmt: skip


def test_every_source_gives_the_same_runs(tmp_path):
    for source in sources(tmp_path):
        ds = runs.read(source)
        adds_up(ds, 3)
        assert ds.run.values.tolist() == ["a", "b", "c"], source
        assert ds.N.values.tolist() == [1e8, 2e8, 4e8], source
        assert ds.loss.values.tolist() == [3.1, 2.9, 2.7], source
        assert ds.family.values.tolist() == ["x", "y", "x"], source
        assert len(ds.attrs["sha256"]) == 64


def test_polars():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(ROWS)
    assert runs.read(frame).N.values.tolist() == [1e8, 2e8, 4e8]
    assert runs.read(frame.lazy()).N.values.tolist() == [1e8, 2e8, 4e8]
    assert runs.read(frame.with_columns(pl.lit(None, pl.Float64).alias("D")), columns={"D": None}).sizes["run"] == 3


def test_weights_and_biases_exports(tmp_path):
    api = [
        {"name": f"run-{i}", "id": f"x{i}", "state": "finished" if i else "crashed",
         "config": {"n_params": {"value": 1e8 * (i + 1), "desc": None}, "seed": {"value": i, "desc": None}, "opt": {"lr": 0.1}},
         "summary": {"eval/loss": 3.0 - i / 10, "tokens": "2B", "_step": 1000, "_runtime": 5.5}}
        for i in range(3)
    ]  # fmt: skip
    (tmp_path / "runs.json").write_text(json.dumps(api))
    ds = runs.read(tmp_path / "runs.json")
    assert ds.N.values.tolist() == [1e8, 2e8, 3e8]
    assert ds.D.values.tolist() == [2e9] * 3
    assert ds.loss.values == pytest.approx([3.0, 2.9, 2.8])
    assert ds.seed.values.tolist() == ["0", "1", "2"]
    assert ds["config.opt.lr"].values.tolist() == [0.1] * 3
    assert "unfinished-runs" in [n.code for n in notes.of(ds)]
    # the export script of the documentation: dicts as text in a CSV
    frame = pd.DataFrame([{"summary": str(r["summary"]), "config": str(r["config"]), "name": r["name"]} for r in api])
    frame.to_csv(tmp_path / "runs.csv")
    assert runs.read(tmp_path / "runs.csv").loss.values == pytest.approx([3.0, 2.9, 2.8])
    (tmp_path / "chart.csv").write_text(
        "Step,run-1 - eval/loss,run-1 - eval/loss__MIN,run-1 - eval/loss__MAX\n1,3,3,3\n"
    )
    with pytest.raises(RunsError, match="chart export"):
        runs.read(tmp_path / "chart.csv")


def test_cells_that_are_lists_or_sometimes_objects(tmp_path):
    frame = pd.DataFrame(
        {
            "N": [1e8, 2e8],
            "loss": [3.0, 2.9],
            "lr": [[0.1, 0.2], [0.3]],
            "config": [{"a": 1}, {"a": 2}],
            "config.a": [5, 6],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.parquet"):
        ds = runs.read(source)
        adds_up(ds, 2)
        assert ds["config.a"].values.tolist() == [5, 6]
        assert ds["config.a.1"].values.tolist() == [1, 2]  # beside it, not over it
    mixed = runs.read([{"N": 1e8, "loss": 3.0}, {"N": 2e8, "loss": "{'a': 1}"}])
    assert codes(mixed) == {1: "unparsable"}


def test_ragged_rows_and_broken_lines_keep_their_place(tmp_path):
    (tmp_path / "ragged.csv").write_text("N,D,loss\n1e8,1e9,3.0\n1e8,1e9,3.0,9\n2e8,1e9\n4e8,1e9,2.8\n")
    ds = runs.read(tmp_path / "ragged.csv")
    adds_up(ds, 4)
    assert codes(ds) == {1: "malformed", 2: "blank"}
    (tmp_path / "broken.jsonl").write_text('{"N": 1e8, "loss": 3}\n{"N": 2e8, "lo\n[1]\n\n{"N": 3e8, "loss": 2.9}\n')
    ds = runs.read(tmp_path / "broken.jsonl")
    adds_up(ds, 4)
    assert codes(ds) == {1: "malformed", 2: "malformed"}


def test_two_columns_of_one_name_are_ambiguous_not_merged(tmp_path):
    (tmp_path / "t.csv").write_text("N,D,val_loss,val_loss\n1e8,1e9,3.0,3.1\n")
    ds = runs.read(tmp_path / "t.csv")
    assert ds.loss.values.tolist() == [3.0]
    assert ds["val_loss.1"].values.tolist() == [3.1]


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("empty.csv", b"", "empty"), ("header.csv", b"N,D,loss\n", "no rows"), ("bad.json", b"{", "not JSON"), ("number.json", b"3", "not a table"),
        ("t.pkl", b"\x80\x04.", "pickle"), ("t.npy", b"x", "pickle"), ("t.xlsx", b"PK", "CSV"), ("t.parquet", b"PAR1nothing", "could not be read"),
        ("t.csv.gz", b"\x1f\x8b\x00", "gzip"), ("latin.csv", b"N,loss\n1,\xe9\n", "encoding"), ("list.json", b"[1, 2]", "not an object"),
        ("words.csv", b"a,b\nx,y\n", "no column is known"),
    ],
)  # fmt: skip
def test_files_that_are_no_tables(tmp_path, name, content, match):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RunsError, match=match):
        runs.read(tmp_path / name)


def test_a_missing_file_gets_a_suggestion(tmp_path):
    write_csv(tmp_path / "runs.csv")
    with pytest.raises(RunsError, match=r"Did you mean 'runs.csv'"):
        runs.read(tmp_path / "run.csv")
    with pytest.raises(RunsError, match="folder"):
        runs.read(tmp_path)


@pytest.mark.parametrize(
    "source",
    [None, 3, np.zeros((2, 2)), [1, 2], pd.Series([1.0]), {"N": [[1, 2], [3, 4]]}, {"N": [1, 2], "D": [1]}, {}, []],
)
def test_things_that_are_no_tables(source):
    with pytest.raises(RunsError):
        runs.read(source)


@pytest.mark.parametrize(
    "option",
    [
        dict(checkpoints="first"),
        dict(decimal="x"),
        dict(group="nope"),
        dict(extras=["nope"]),
        dict(columns={"chain": "N"}),
        dict(units={"N": "GB"}),
    ],
)
def test_bad_options_are_refused(option):
    with pytest.raises(RunsError):
        runs.read(ladder(3), **option)


# labels, extras, names


def test_labels_extras_and_names():
    t = ladder(
        3, optimizer=["adam", None, "muon"], lr=[0.1, 0.2, None], **{"eval/acc": [0.1, 0.2, 0.3]}, run=["a", "a", ""]
    )
    ds = runs.read(t, group={"opt": "optimizer"})
    assert ds.opt.values.tolist() == ["adam", "(none)", "muon"]
    assert np.isnan(ds.lr.values[2])
    assert ds["eval.acc"].values.tolist() == [0.1, 0.2, 0.3]
    assert ds.run.values.tolist() == ["a", "a #2", "row 2"]
    assert [n.about for n in notes.of(ds) if n.code == "label-missing"] == ["opt"]
    none = runs.read(t, extras=False)
    assert "lr" not in none
    assert list(runs.read(t, extras=["lr"]).data_vars)[:5] == ["N", "D", "C", "loss", "lr"]


def test_reserved_names_are_moved_out_of_the_way():
    ds = runs.read(ladder(2, chain=[1, 2], quarantine_row=[1.0, 2.0], draw=["a", "b"]))
    assert ds["chain_column"].values.tolist() == [1.0, 2.0]
    assert ds["quarantine_row_column"].values.tolist() == [1.0, 2.0]
    adds_up(ds, 2)


def test_a_curve_of_one_input():
    ds = runs.read({"step": [1, 2, "x"], "acc": [0.1, 0.2, 0.3], "N": [1, 2, 3]}, columns={"x": "step", "y": "acc"})
    assert ds.x.values.tolist() == [1.0, 2.0]
    assert not {"C", "D"} & set(ds)
    assert codes(ds) == {2: "unparsable"}
    assert runs.read({"x": [0.0, 1.0], "y": [-1.0, 2.0]}).y.values.tolist() == [-1.0, 2.0]


def test_an_own_outcome():
    ds = runs.read({"N": [1e8, 2e8], "MMLU": [0.3, None]}, columns={"score": "MMLU"})
    assert ds.score.values.tolist() == [0.3]
    assert [n.code for n in notes.of(ds)] == ["rows-quarantined"]
    assert codes(runs.read({"N": [1e8] * 3, "error_rate": [0.5, 1.5, 0.4], "D": [1e9, 1e9, 2e9]})) == {
        1: "out-of-range"
    }
    assert "no-outcome" in [n.code for n in notes.of(runs.read({"N": [1e8], "D": [1e9]}))]


def test_decimal_comma_files(tmp_path):
    (tmp_path / "t.csv").write_text("N;D;loss\n1000000;2000000;2,31\n2000000;2000000;2,21\n")
    with pytest.raises(RunsError, match="decimal=','"):
        runs.read(tmp_path / "t.csv")
    assert runs.read(tmp_path / "t.csv", decimal=",").loss.values.tolist() == [2.31, 2.21]


# make, select, concat, validate, write, check


def test_make():
    ds = runs.make(N=[1e8, 2e8], D=1e10, loss=[3.0, 2.9], family=["a", "b"], sparsity=[0.1, 0.2], optimizer=["x", "y"])
    adds_up(ds, 2)
    assert ds.D.values.tolist() == [1e10] * 2
    assert ds.optimizer.values.tolist() == ["x", "y"]
    assert ds.sparsity.dtype == np.float64
    assert runs.make(N=[1e3, 1e9, 1e15, 1.0], D=[1.0] * 4, loss=[50.0, 1, 1, 1]).sizes["run"] == 4  # nothing is judged
    assert runs.make(x=[1.0, 1.0], y=[2.0, 2.0]).sizes["run"] == 2
    with pytest.raises(RunsError, match=r"loss\[1\]"):
        runs.make(N=[1e8, 2e8], loss=[3.0, np.nan])
    with pytest.raises(RunsError, match="by name"):
        runs.make()


def test_select_keeps_the_account():
    ds = runs.read(dirty())
    fewer = runs.select(ds, ds.loss < 2.3, "loss of 2.3 nat or more")
    adds_up(fewer, 9)
    assert "selected" in codes(fewer).values()
    assert set(codes(ds)) <= set(codes(fewer))
    assert fewer.attrs["rows_used"] < ds.attrs["rows_used"]
    assert fewer.N.values.tolist() == ds.N.values[ds.loss.values < 2.3].tolist()
    adds_up(ds, 9)  # the argument is left alone
    with pytest.raises(RunsError, match="no run is left"):
        runs.select(ds, ds.loss < 0, "nothing")
    with pytest.raises(RunsError, match="mask"):
        runs.select(ds, [True], "short")
    with pytest.raises(RunsError, match=r"runs.select"):
        runs.validate(ds.isel(run=[0]))  # the account is lost: said


def test_concat():
    a, b = runs.read(dirty(), name="a"), runs.read(ladder(3, lr=[1.0, 2, 3], family=["f"] * 3), name="b")
    ds = runs.concat([a, b])
    adds_up(ds, 12)
    assert ds.table.values.tolist() == ["a"] * 5 + ["b"] * 3
    assert np.isnan(ds.lr.values[:5]).all()
    assert ds.family.values.tolist() == ["(none)"] * 5 + ["f"] * 3
    assert sorted(codes(ds)) == [2, 3, 5, 8]
    assert sorted(codes(runs.concat([b, a]))) == [5, 6, 8, 11]
    only = runs.concat([a, runs.read({"N": [1e8], "D": [1e9]})], flops_kind="6ND")
    assert "loss" not in only
    assert json.loads(only.attrs["left_out"]) == ["loss"]


def test_concat_refuses_to_mix():
    t = ladder(3)
    kinds = [runs.read(t, params_kind=k, name=k) for k in ("total", "non-embedding", "unknown")]
    with pytest.raises(RunsError, match=r"params_kind.*total.*non-embedding"):
        runs.concat(kinds[:2])
    with pytest.raises(RunsError, match="params_kind='total'"):
        runs.concat([kinds[0], kinds[2]])
    assert runs.concat([kinds[0], kinds[2]], params_kind="total").attrs["params_kind"] == "total"
    with pytest.raises(RunsError, match="not mixed"):
        runs.concat(kinds[:2], params_kind="total")  # a kind that is known is not overruled
    flops = [runs.read(t), runs.read(t, flops_kind="exact")]
    with pytest.raises(RunsError, match="flops_kind"):
        runs.concat(flops)
    with pytest.raises(RunsError, match="units"):
        runs.concat([runs.read(t), runs.read({"N": t["N"], "D": t["D"], "loss (bpb)": t["loss"]})])
    with pytest.raises(RunsError):
        runs.concat([])


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda ds: ds.rename(run="row"), "no dim 'run'"), (lambda ds: ds.drop_vars("run"), "no names"),
        (lambda ds: ds.assign_coords(run=["a"] * 3), "unique"), (lambda ds: ds.assign(N=ds.N.astype("int64")), "int64"),
        (lambda ds: ds.assign(loss=-ds.loss), "positive"), (lambda ds: ds.assign_attrs(rows_in=4), "lost"),
        (lambda ds: ds.assign_attrs(params_kind="all"), "params_kind"), (lambda ds: ds.assign_attrs(notes="x"), "notes"),
        (lambda ds: ds.assign_attrs(a=True), "neither text"), (lambda ds: ds.assign_attrs(a={}), "neither text"),
        (lambda ds: ds.drop_vars("quarantine_code"), "quarantine"), (lambda ds: ds.assign(N=ds.N * xr.DataArray([1.0], dims="k")), "dims"),
        (lambda ds: ds.N, "not a runs Dataset"), (lambda ds: ds.assign_attrs(rows_in=5, rows_quarantined=2), "quarantine table"),
    ],
)  # fmt: skip
def test_validate_names_what_is_wrong(spoil, match):
    ds = runs.read(ladder(3))
    runs.validate(ds, "N", "D", "loss")
    with pytest.raises(RunsError, match=match):
        runs.validate(spoil(ds))


def test_validate_needs():
    ds = runs.read(ladder(3, lr=[0.1, None, 0.2]))
    with pytest.raises(RunsError, match="lr must be a finite number"):
        runs.validate(ds, "lr")
    with pytest.raises(RunsError, match="no 'losss'. Did you mean 'loss'"):
        runs.validate(ds, "losss")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".nc"])
def test_write_and_read_again(tmp_path, suffix):
    ds = runs.read(dirty() | {"family": list("xyxyxyxyy")})
    path = runs.write(ds, tmp_path / f"t{suffix}")
    again = runs.read(path)
    xr.testing.assert_equal(again[["N", "D", "C", "loss"]], ds[["N", "D", "C", "loss"]])
    assert again.family.values.tolist() == ds.family.values.tolist()
    with pytest.raises(RunsError, match="overwrite"):
        runs.write(ds, path)
    runs.write(ds, path, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]  # nothing half-written is left


def test_netcdf_keeps_everything(tmp_path):
    for ds in (runs.read(dirty()), runs.read(ladder(3))):  # with a quarantine and without
        path = runs.write(ds, tmp_path / "t.nc", overwrite=True)
        again = runs.validate(xr.load_dataset(path))
        assert runs.quarantine(again).equals(runs.quarantine(ds))
        assert {k: again.attrs[k] for k in ds.attrs} == ds.attrs
        xr.testing.assert_identical(runs.read(path), again)  # comes back as it is


def test_a_runs_dataset_comes_back_as_it_is_or_says_what_it_lost():
    ds = runs.read(dirty())
    assert runs.read(ds).identical(ds)
    less = runs.read(ds, extras=False)
    adds_up(less, 5)
    assert "4 row(s) were set aside before" in notes.of(less)[0].text


def test_write_fails_whole(tmp_path, monkeypatch):
    ds = runs.read(ladder(3))
    path = runs.write(ds, tmp_path / "t.csv")
    before = path.read_bytes()
    monkeypatch.setattr(pd.DataFrame, "to_csv", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        runs.write(ds, path, overwrite=True)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]
    with pytest.raises(RunsError, match=r"\.csv or \.parquet"):
        runs.write(ds, tmp_path / "t.pkl")


def test_check_is_plain_json():
    out = runs.check(dirty())
    assert json.loads(json.dumps(out, allow_nan=False)) == out
    assert (out["rows_in"], out["rows_used"], out["rows_quarantined"]) == (9, 5, 4)
    assert {e["code"] for e in out["quarantine"]} == {"unit-jump", "missing", "duplicate"}
    assert out["completed"] == {"C": {"formula": "6 N D", "rows": 5}}
    assert out["ranges"]["N"][0] == 7e7
    assert out["conventions"]["flops_kind"] == "6ND"
    assert runs.check(runs.read(dirty())) == out  # a runs Dataset is told as it is


def test_attrs_can_be_saved():
    assert all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in runs.read(dirty()).attrs.values())


def test_the_source_is_never_written_into():
    frame = pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in dirty().items()})
    copy = frame.copy(deep=True)
    runs.read(frame)
    pd.testing.assert_frame_equal(frame, copy)
