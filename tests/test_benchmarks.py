"""The rows of benchmarks: ratios point one way, goals are judged, what was not measured is not called a success."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def table(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("_table", root / "benchmarks" / "_table.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_ratio_says_how_many_times_better_ours_is(table: ModuleType) -> None:
    made = table.Table("x", "X", 0)
    assert made.add("seconds", 2.0, 100.0, unit="s", goal=25)["ratio"] == 50
    assert made.add("draws", 100.0, 2.0, unit="1/s", better="more", goal=25)["ratio"] == 50
    assert [r["met"] for r in made.rows] == [True, True]


def test_a_goal_that_is_missed_is_missed_and_what_was_not_measured_is_neither(table: ModuleType) -> None:
    made = table.Table("x", "X", 0)
    assert made.add("slow", 2.0, 10.0, unit="s", goal=25)["met"] is False
    assert made.add("over", 3.0, unit="s", limit=2.0)["met"] is False
    assert made.add("few", 3.0, unit="draws", better="more", limit=4)["met"] is False
    assert made.add("one of two", 3.0, 300.0, unit="s", goal=25, limit=2.0)["met"] is False
    assert made.add("not run", None, unit="s", limit=2.0)["met"] is None
    assert made.add("no peer", 3.0, unit="s", goal=25)["met"] is None
    with pytest.raises(ValueError, match="no result"):
        made.add("nan", float("nan"), unit="s")


def test_rows_are_kept_as_json(table: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = table.Table("x", "X", 3)
    made.add("seconds", 2.0, 100.0, unit="s", goal=25, note="same minimum")
    made.write(tmp_path / "new" / "x.json")
    kept = json.loads((tmp_path / "new" / "x.json").read_text())
    assert kept["rows"] == made.rows and kept["seed"] == 3 and kept["versions"]["numpy"]
    assert "50x" in capsys.readouterr().out
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["x.json"]


def test_every_kept_file_is_of_a_script_and_has_the_columns(root: Path) -> None:
    files = sorted((root / "data" / "benchmarks").glob("*.json"))
    assert files
    for path in files:
        kept = json.loads(path.read_text())
        assert (root / "benchmarks" / f"{kept['script']}.py").is_file()
        for row in kept["rows"]:
            assert set(row) == {"what", "ours", "peer", "ratio", "unit", "better", "goal", "limit", "met", "note"}
