"""An installed copy has what the package reads at run time, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def installed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked in a folder of its own as an installer would."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.mark.parametrize("name", ["registry.toml", "simulated_corpora.csv"])
def test_what_the_package_reads_is_in_the_wheel(root: Path, installed: Path, name: str) -> None:
    assert (installed / "scalingkit" / "data" / name).read_bytes() == (root / "data" / name).read_bytes()


def test_the_widgets_views_are_in_the_wheel(root: Path, installed: Path) -> None:
    views = [p.relative_to(root) for p in (root / "scalingkit" / "widgets").glob("*.js")]
    assert views and all((installed / v).read_bytes() == (root / v).read_bytes() for v in views)


def test_every_module_is_in_the_wheel_and_no_test_is(root: Path, installed: Path) -> None:
    modules = {p.relative_to(root) for p in (root / "scalingkit").rglob("*.py")}
    shipped = {p.relative_to(installed) for p in installed.rglob("*.py")}
    assert modules == shipped


def test_the_installed_copy_finds_its_laws_tables_and_simulated_runs(installed: Path) -> None:
    code = (
        "import scalingkit, scalingkit.catalog as c; from scalingkit.core import zoo; "
        "print(scalingkit.__file__, zoo.get('chinchilla').name, c.show('chinchilla-epoch-svg')['name']); "
        "from scalingkit import tour; print(tour.table(simulated=True).sizes['run'])"
    )
    # -S: no site-packages path entry of the editable checkout; the libraries come by PYTHONPATH
    libraries = [p for p in sys.path if p.endswith("site-packages")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(installed), *libraries])}
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=installed, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file, law, table, rows = done.stdout.split()
    assert Path(file).is_relative_to(installed)
    assert (law, table) == ("chinchilla", "chinchilla-epoch-svg")
    assert int(rows) > 20
