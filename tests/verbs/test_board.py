"""Verb ``design board``: the notebook it writes runs, and bad input is refused in one line."""

from __future__ import annotations

import json

import nbformat
import pytest
from typer.testing import CliRunner

from scalingkit.cli import app

TABLE = "N,D,loss\n1e8,2e9,3.6\n3e8,6e9,3.1\n1e9,2e10,2.7\n3e9,6e10,2.45\n1e8,2e10,3.3\n1e9,3e9,2.95\n5e8,5e10,2.75\n"


def call(*words: str):
    return CliRunner().invoke(app, ["design", "board", *words])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(TABLE)
    return path


def test_the_notebook_written_runs_and_shows_the_board(table, tmp_path, monkeypatch):
    done = call(str(table), "--out", str(tmp_path / "b.ipynb"), "--budget", "1e22", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["result"]["runs"] == 7
    book = nbformat.read(tmp_path / "b.ipynb", as_version=4)
    nbformat.validate(book)
    monkeypatch.chdir(tmp_path)  # where JupyterLab would start its kernel
    space: dict = {}
    for cell in book.cells:
        if cell.cell_type == "code":
            exec(cell.source, space)
    assert len(space["board"].locked) == 7 and space["board"].now.budget == 1e22


def test_bad_input_is_one_line_and_exit_2(table, tmp_path):
    out = tmp_path / "b.ipynb"
    out.write_text("mine")
    for words, said in (
        ((str(table), "--out", str(out)), "exists"),
        ((str(table), "--out", str(tmp_path / "b.txt")), "must end in .ipynb"),
        ((str(table), "--out", str(tmp_path / "c.ipynb"), "--law", "chinchila"), "chinchilla"),
        ((str(tmp_path / "none.csv"),), "no file"),
    ):
        done = call(*words)
        assert done.exit_code == 2 and said in done.output
    assert out.read_text() == "mine"
