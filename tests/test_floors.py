"""The floors hold: the contracts of pyproject.toml run here, and each refuses a package built to break it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# every folder that the contracts name
FLOORS = (
    *("core", "laws", "worlds", "estimators", "policies", "catalog", "infer", "design", "decide", "papers"),
    *("plots", "widgets", "cli"),
)


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """import-linter on the package in ``folder``, by the contracts in its pyproject.toml."""
    code = (
        "import sys; from importlinter.cli import lint_imports_command as c; sys.exit(c(['--no-cache', '--no-logo']))"
    )
    env = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True)


@pytest.fixture
def toy(tmp_path: Path, root: Path) -> Path:
    """A package of empty floors under this project's own contracts."""
    (tmp_path / "pyproject.toml").write_text((root / "pyproject.toml").read_text().replace("scalingkit", "toykit"))
    for floor in ["", *FLOORS]:
        (tmp_path / "toykit" / floor).mkdir(parents=True, exist_ok=True)
        (tmp_path / "toykit" / floor / "__init__.py").touch()
    return tmp_path


def test_the_package_keeps_its_contracts(root: Path) -> None:
    done = lint(root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


def test_a_package_of_empty_floors_keeps_them(toy: Path) -> None:
    done = lint(toy)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("floor", "line"),
    [
        ("core", "from toykit.infer import thing"),
        ("laws", "import toykit.design"),
        ("laws", "def late():\n    from toykit.worlds import thing\n"),
        ("catalog", "from toykit.estimators import thing"),
        ("decide", "import toykit.papers"),
        ("papers", "import toykit.plots"),
        ("infer", "import matplotlib.pyplot"),
        ("core", "def late():\n    import seaborn\n"),
        ("design", "from plotly.graph_objects import FigureWidget"),
        ("papers", "import ipywidgets"),
        ("catalog", "import anywidget"),
    ],
)
def test_an_import_that_goes_up_or_aside_is_refused(toy: Path, floor: str, line: str) -> None:
    (toy / "toykit" / floor / "bad.py").write_text(line + "\n")
    done = lint(toy)
    assert done.returncode != 0, done.stdout
    assert f"toykit.{floor}.bad" in done.stdout


def test_a_folder_on_no_floor_is_refused(toy: Path) -> None:
    (toy / "toykit" / "attic.py").touch()
    done = lint(toy)
    assert done.returncode != 0
    assert "attic" in done.stdout
