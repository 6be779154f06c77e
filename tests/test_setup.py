"""The set-up holds together: the environment files agree, the README's commands exist, the tree names no machine.

Every rule here has a planted case that it must refuse.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

# conda-forge's name -> PyPI's, where the two differ by more than case
CONDA_NAMES = {"playwright-python": "playwright"}
# in the conda environment only: what a virtual environment has anyway
CONDA_ONLY = {"python", "pip"}


def declared(pyproject: str, *extras: str) -> dict[str, SpecifierSet]:
    """Package -> range, from the text of pyproject.toml: the dependencies and the named extras."""
    project = tomllib.loads(pyproject)["project"]
    lines = project["dependencies"] + [line for e in extras for line in project["optional-dependencies"][e]]
    return {canonicalize_name(r.name): r.specifier for r in map(Requirement, lines)}


def conda(environment: str) -> dict[str, SpecifierSet]:
    """Package -> range, from the text of environment.yml, under PyPI's names."""
    lines = yaml.safe_load(environment)["dependencies"]
    named = (line.partition(" ")[::2] for line in lines)
    return {canonicalize_name(CONDA_NAMES.get(n, n)): SpecifierSet(r) for n, r in named if n not in CONDA_ONLY}


def differences(pyproject: str, environment: str) -> list[str]:
    """What the two files do not agree on, one line a package."""
    pip, mamba = declared(pyproject, "dev", "docs"), conda(environment)
    return [
        f"{name}: pyproject.toml says {pip.get(name, 'nothing')}, environment.yml says {mamba.get(name, 'nothing')}"
        for name in sorted(pip.keys() | mamba.keys())
        if pip.get(name) != mamba.get(name)
    ]


def pins(lock: str) -> dict[str, set[Version]]:
    """Package -> its pinned versions (one for each Python), from the text of requirements.lock."""
    found: dict[str, set[Version]] = {}
    for line in filter(None, lock.splitlines()):
        requirement = Requirement(line)
        (exact,) = requirement.specifier
        assert exact.operator == "==", line
        found.setdefault(canonicalize_name(requirement.name), set()).add(Version(exact.version))
    return found


def tracked(root: Path) -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout: no list of tracked files")
    return [path for name in done.stdout.split("\0") if name and (path := root / name).is_file()]


def fresh_python(code: str, **env: str) -> str:
    """What ``code`` prints in a new interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---------------------------------------------------------------------------------------------- environment files


def test_environment_yml_lists_what_pyproject_lists(root: Path) -> None:
    assert differences((root / "pyproject.toml").read_text(), (root / "environment.yml").read_text()) == []


@pytest.mark.parametrize(
    ("old", "new", "about"),
    [
        ("  - zarr >=3.0.8\n", "", "zarr"),
        ("  - zarr >=3.0.8", "  - zarr >=2", "zarr"),
        ("  # docs", "  - torch >=2\n  # docs", "torch"),
    ],
)
def test_a_planted_difference_is_found(root: Path, old: str, new: str, about: str) -> None:
    environment = (root / "environment.yml").read_text()
    assert old in environment
    (line,) = differences((root / "pyproject.toml").read_text(), environment.replace(old, new))
    assert line.startswith(about + ":")


def test_the_lock_pins_everything_within_its_range(root: Path) -> None:
    pinned = pins((root / "requirements.lock").read_text())
    for name, allowed in declared((root / "pyproject.toml").read_text(), "dev", "docs").items():
        assert name in pinned, f"{name} is not pinned: run `make lock`"
        assert all(v in allowed for v in pinned[name]), f"{name} {pinned[name]} is outside {allowed}: run `make lock`"


HOST = re.compile(r"://|^\s*-|@|\bfile:|\.(org|com|net|io)\b", re.MULTILINE)


def test_the_lock_names_no_host_and_no_option(root: Path) -> None:
    assert not HOST.findall((root / "requirements.lock").read_text())


@pytest.mark.parametrize(
    "line", ["--index-url mirror", "zarr @ file:///wheels/zarr.whl", "# from https://example.org", "-e ."]
)
def test_a_planted_host_is_found(line: str) -> None:
    assert HOST.search(f"numpy==2.2\n{line}\n")


def test_the_extras_a_user_asks_for_exist(root: Path) -> None:
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) == {"gpu", "distributed", "dev", "docs"}
    assert any(Requirement(r).name == "jax" and Requirement(r).extras for r in extras["gpu"])
    assert {Requirement(r).name for r in extras["distributed"]} == {"dask", "distributed", "dask-jobqueue"}


# ------------------------------------------------------------------------------------------------- make, README, CI


def targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))


def commands(readme: str) -> set[str]:
    """Every ``make TARGET`` that a page names."""
    return set(re.findall(r"\bmake ([a-z][a-z-]+)\b(?! sure| a | the )", "\n".join(fenced(readme))))


def fenced(page: str) -> list[str]:
    """The code of a Markdown page: fenced blocks and inline spans."""
    return re.findall(r"```.*?```|`[^`\n]+`", page, re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_command_of_a_page_exists(root: Path, page: str) -> None:
    named = commands((root / page).read_text())
    assert named, "the page names no make command: the test sees nothing"
    assert named <= targets((root / "Makefile").read_text())


def test_a_command_that_does_not_exist_is_found(root: Path) -> None:
    assert commands("say `make coffee`\n```\nmake tea\n```\n") - targets((root / "Makefile").read_text()) == {
        "coffee",
        "tea",
    }


def test_readme_names_the_two_commands_of_a_newcomer(root: Path) -> None:
    assert {"tour", "test"} <= commands((root / "README.md").read_text())


def shown_in_contributing(root: Path, which: int) -> dict[str, Any]:
    """What the Python block of that number makes when it is run."""
    shown = re.findall(r"```python\n(.*?)```", (root / "CONTRIBUTING.md").read_text(), re.DOTALL)
    scope: dict[str, Any] = {}
    exec(compile(shown[which], "CONTRIBUTING.md", "exec"), scope)
    return scope


def test_the_law_that_contributing_shows_is_a_law(root: Path) -> None:
    law = shown_in_contributing(root, 0)["law"]
    assert law.truth == {"E": 1.7, "A": 10.0, "alpha": 0.3}
    for claim in law.claims:
        assert claim.check(law, law.truth).agrees
        assert not claim.check(law, law.truth | {"alpha": 0.6}).agrees


def test_the_paper_that_contributing_shows_is_a_paper(root: Path) -> None:
    paper = shown_in_contributing(root, 1)["paper"]
    found = paper.rerun(True)
    slope, trained = paper.claims
    assert slope.quantity(found).item() == pytest.approx(slope.value, abs=slope.within)
    assert trained.quantity is None and trained.why


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """The checkout's set-up files alone, in a folder of their own."""
    for name in ("README.md", "Makefile", "pyproject.toml", "requirements.lock", ".ci/run", "tools/setup.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((root / name).read_text())
    return tmp_path


def ci(clone: Path, make: str) -> subprocess.CompletedProcess[str]:
    """Run .ci/run with a stand-in for make (and for chromium, so that nothing is installed)."""
    for name, body in (("make", make), ("chromium", "exit 0")):
        script(clone / "bin" / name, body)
    env = os.environ | {"PATH": f"{clone / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(["bash", ".ci/run"], cwd=clone, env=env, capture_output=True, text=True)


def script(path: Path, body: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_ci_runs_the_command_that_the_readme_names(clone: Path) -> None:
    done = ci(clone, 'echo "ran: make $*"; echo "== 3 passed, 1 skipped in 2.00s =="')
    assert done.returncode == 0, done.stderr
    assert "ran: make test\n" in done.stdout
    assert done.stdout.rstrip().endswith("== 3 passed, 1 skipped in 2.00s ==")


@pytest.mark.parametrize("make", ["echo '== 1 failed, 3 passed in 2s =='; exit 2", "echo nothing ran", "exit 1"])
def test_ci_fails_when_the_tests_fail_or_do_not_run(clone: Path, make: str) -> None:
    assert ci(clone, make).returncode != 0


def test_ci_refuses_a_readme_without_the_command(clone: Path) -> None:
    (clone / "README.md").write_text("# no markers\n")
    done = ci(clone, "echo '3 passed'")
    assert done.returncode == 2
    assert "test-command markers" in done.stderr


def test_a_python_too_old_is_told_where_to_get_a_new_one(clone: Path) -> None:
    for name in ("python3", "python3.12", "python3.13", "python3.14", "python"):
        script(clone / "bin" / name, 'case "$1" in --version) echo "Python 3.9.2";; *) exit 1;; esac')
    env = {"PATH": f"{clone / 'bin'}:/usr/bin:/bin"}
    done = subprocess.run(["make", "tour"], cwd=clone, env=env, capture_output=True, text=True)
    assert done.returncode == 2
    assert "Python 3.12 or newer" in done.stderr
    assert "environment.yml" in done.stderr
    assert "3.9.2" in done.stderr
    assert not (clone / ".venv").exists()


def test_python_version_file_is_one_that_pyproject_allows(root: Path) -> None:
    allowed = SpecifierSet(tomllib.loads((root / "pyproject.toml").read_text())["project"]["requires-python"])
    assert (root / ".python-version").read_text().strip() in allowed
    assert "3.11" not in allowed


# --------------------------------------------------------------------------------------------------------- the tree

MACHINE = re.compile(
    "|".join(rf"/{top}/" for top in ("work", "root", "tmp", r"home/\w+", r"Users/\w+"))
    + r"|py" + r"pi\.org|pythonhosted|registry\.npm" + r"js|deb\.deb" + "ian"
)  # fmt: skip
PICKLE = re.compile(
    r"^\s*(import|from)\s+(pickle|cloudpickle|dill|joblib|shelve)\b|\bpickle\.\w+\(|allow_pickle\s*=\s*True"
    r"|\b(read|to)_pickle\(|torch\.(load|save)\(",
    re.MULTILINE,
)
SELF = Path("tests/test_setup.py")


def findings(root: Path, pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    """``path: match`` for every hit of ``pattern`` in the text files among ``paths``; this file spells the patterns."""
    found = []
    for path in paths:
        if path.relative_to(root) == SELF:
            continue
        text = path.read_bytes().decode("utf-8", errors="ignore")
        found += [f"{path.relative_to(root)}: {m.group(0).strip()}" for m in pattern.finditer(text)]
    return found


def test_no_tracked_file_names_a_machine_or_a_registry(root: Path) -> None:
    assert findings(root, MACHINE, tracked(root)) == []


@pytest.mark.parametrize(
    "text", ["see /work" + "/main", "open('/tmp" + "/x')", "/home" + "/ada/runs", "files.python" + "hosted"]
)
def test_a_planted_machine_path_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "page.md").write_text(text)
    assert findings(tmp_path, MACHINE, [tmp_path / "page.md"])


def test_nothing_reads_or_writes_a_pickle(root: Path) -> None:
    code = [p for p in tracked(root) if p.suffix in (".py", ".ipynb")]
    assert len(code) > 20
    assert findings(root, PICKLE, code) == []


@pytest.mark.parametrize(
    "line", ["import pickle", "    from joblib import load", "np.load(f, allow_pickle=True)", "pd.read_pickle(f)"]
)
def test_a_planted_pickle_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.py").write_text(f"x = 1\n{line}\n")
    assert findings(tmp_path, PICKLE, [tmp_path / "bad.py"])
    (tmp_path / "good.py").write_text('"""Zarr first; never a pickle, written or read."""\n')
    assert not findings(tmp_path, PICKLE, [tmp_path / "good.py"])


# ------------------------------------------------------------------------------------------------------ the package

HEAVY = ("jax", "numpyro", "arviz", "arviz_base", "xarray", "pandas", "numpy", "matplotlib", "plotly", "scipy")
LOADED = f"import sys; print(*sorted(set({HEAVY}) & set(sys.modules)))"


def test_import_is_lazy() -> None:
    assert fresh_python(f"import scalingkit; dir(scalingkit); {LOADED}") == ""


def test_the_check_of_laziness_sees_an_eager_import() -> None:
    assert "jax" in fresh_python(f"import scalingkit; scalingkit.Law; {LOADED}").split()


def test_import_asks_for_float64() -> None:
    code = "import scalingkit, jax; print(jax.numpy.zeros(1).dtype)"
    assert fresh_python(f"import os; del os.environ['JAX_ENABLE_X64']; {code}") == "float64"
    assert fresh_python(code, JAX_ENABLE_X64="0") == "float32"


def test_the_tests_themselves_run_in_float64_and_refuse_silent_broadcasting() -> None:
    import jax.numpy as jnp

    assert jnp.zeros(1).dtype == "float64"
    with pytest.raises(ValueError, match="rank"):
        jnp.ones(3) + jnp.ones((2, 3))


def public_names() -> list[str]:
    import scalingkit

    return [n for n in scalingkit.__all__ if n != "__version__"]


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_resolves_and_says_what_it_is(name: str) -> None:
    import scalingkit

    assert (getattr(scalingkit, name).__doc__ or "").strip(), f"scalingkit.{name} has no docstring"


def test_an_unknown_name_is_refused_by_name() -> None:
    import scalingkit

    with pytest.raises(AttributeError, match="fitt"):
        scalingkit.fitt  # noqa: B018


def test_version_is_spelled_alike(root: Path) -> None:
    import scalingkit

    assert tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"] == scalingkit.__version__
