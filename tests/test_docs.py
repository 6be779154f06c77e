"""The documentation builds offline without a warning, and its generated pages say what the package says."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

FETCHED = re.compile(
    r"""<(?:script|img|iframe)[^>]+src=["'](?:https?:)?//|<link[^>]+href=["'](?:https?:)?//|@import\s+(?:url\()?["']?https?:"""
)


def build(source: Path, into: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(source), str(into)]
    return subprocess.run(command, capture_output=True, text=True)


def fetches(folder: Path) -> list[str]:
    """Pages that would load a script, style, font or picture from elsewhere."""
    return [str(p) for p in folder.rglob("*.html") if FETCHED.search(p.read_text(encoding="utf-8"))]


@pytest.fixture(scope="session")
def pages(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("pages", root / "docs" / "pages.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_documentation_builds_without_a_warning_and_loads_nothing_from_elsewhere(
    root: Path, tmp_path: Path
) -> None:
    done = build(root / "docs", tmp_path)
    assert done.returncode == 0, done.stderr
    for page in ("index", "tasks", "limits", "conventions", "generated/api", "generated/codes", "generated/catalogue"):
        assert (tmp_path / f"{page}.html").is_file()
    assert (tmp_path / "generated" / "laws" / "chinchilla.html").is_file()
    assert fetches(tmp_path) == []


def test_a_warning_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text("extensions = ['myst_nb']\n")
    (tmp_path / "index.md").write_text("# Page\n\n[nowhere](missing.md)\n")
    done = build(tmp_path, tmp_path / "out")
    assert done.returncode != 0
    assert "missing.md" in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        '<script src="https://cdn.example/x.js">',
        "<link rel='stylesheet' href='//fonts.example/a.css'>",
        "@import url(https://x)",
    ],
)
def test_a_planted_fetch_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "page.html").write_text(f"<html><style></style>{line}</html>")
    assert fetches(tmp_path)
    (tmp_path / "page.html").write_text('<a href="https://example.org">a link is no fetch</a>')
    assert not fetches(tmp_path)


def test_a_law_page_shows_priors_published_values_and_computed_claims(pages: ModuleType) -> None:
    from scalingkit.core.zoo import get

    law = get("chinchilla")
    page = pages.law_page(law)
    assert "L(N, D) = E + A / N**alpha + B / D**beta" in page
    assert "`N**-alpha`" in page
    assert "482.01" in page
    assert "agrees" in page
    assert "DIFFERS" not in page


def test_a_claim_that_does_not_come_out_is_shown_as_such(pages: ModuleType) -> None:
    from scalingkit.core.zoo import get

    law = get("chinchilla")
    wrong = dataclasses.replace(law, claims=tuple(dataclasses.replace(c, value=c.value + 1) for c in law.claims))
    assert "DIFFERS" in pages.law_page(wrong)


def test_the_page_of_benchmarks_shows_what_was_kept_and_a_missed_goal(pages: ModuleType, tmp_path: Path) -> None:
    row = {"what": "fits", "ours": 2.0, "peer": 30.0, "ratio": 15.0, "unit": "s", "better": "less", "goal": 10}
    about = {"script": "x", "title": "Fits", "seed": 0, "processor": "CPU", "cores": 2, "versions": {"jax": "1"}}
    rows = [row | {"limit": None, "met": True, "note": ""}, row | {"goal": 50, "limit": 1, "met": False, "note": "n"}]
    (tmp_path / "x.json").write_text(json.dumps(about | {"rows": rows}))
    lines = [x for x in pages.benchmarks_page(tmp_path).splitlines() if x.startswith("| fits")]
    assert "15x" in lines[0] and "yes" in lines[0] and "MISSED" not in lines[0]
    assert "MISSED" in lines[1] and "at least 50 times, at most 1" in lines[1]


def test_every_code_and_public_name_has_its_place(pages: ModuleType) -> None:
    import scalingkit
    from scalingkit.core.notes import CODES

    codes, api = pages.codes_page(), pages.api_page()
    assert all(f"`{code}`" in codes for code in CODES)
    assert all(f"scalingkit.{m}{'.' + a if a else ''}" in api for m, a in scalingkit._PUBLIC.values())


# ----------------------------------------------------------------------------------- what the pages tell people to type


def written(root: Path) -> str:
    """All code of the pages written by hand: fenced blocks and inline spans."""
    texts = [
        p.read_text() for p in (root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md")))
    ]
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", "\n\n".join(texts), re.DOTALL))


def unknown_names(code: str) -> set[str]:
    import scalingkit

    return set(re.findall(r"\bsk\.(\w+)", code)) - set(scalingkit.__all__)


def unknown_verbs(code: str) -> set[str]:
    """``scalingkit VERB`` (and ``data list``, ``runs check``) that the command line does not have."""
    import typer

    from scalingkit.cli import app

    found = set()
    for verb, sub in re.findall(r"(?:^|[`/])scalingkit ([a-z]+)(?: ([a-z]+)\b)?", code, re.MULTILINE):
        command = typer.main.get_command(app)
        for word in filter(None, (verb, sub)):
            if not hasattr(command, "commands"):
                break
            if word not in command.commands:
                found.add(word)
                break
            command = command.commands[word]
    return found


def test_every_name_and_verb_in_the_pages_exists(root: Path) -> None:
    code = written(root)
    assert "sk.fit" in code
    assert "scalingkit fit" in code
    assert unknown_names(code) == set()
    assert unknown_verbs(code) == set()


def test_a_name_or_verb_that_does_not_exist_is_found() -> None:
    assert unknown_names("`sk.fit(x)` and `sk.fitt(x)`") == {"fitt"}
    assert unknown_verbs("`scalingkit brew coffee` and `scalingkit data brew`, `scalingkit doctor`") == {"brew"}


# ----------------------------------------------------------------------------------------------- the README's example


def example(root: Path) -> tuple[str, str]:
    """The README's code and the output it shows."""
    part = (root / "README.md").read_text().partition("<!-- example -->")[2].partition("<!-- end example -->")[0]
    (code,), (shown,) = (re.findall(rf"```{kind}\n(.*?)```", part, re.DOTALL) for kind in ("python", "text"))
    return code, shown


def agrees(printed: str, shown: str, within: float = 0.1) -> bool:
    """The same words, and numbers that differ by no more than Monte Carlo error."""
    number = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
    if re.sub(number, "#", printed).split() != re.sub(number, "#", shown).split():
        return False
    pairs = zip(re.findall(number, printed), re.findall(number, shown), strict=True)
    return all(abs(float(a) - float(b)) <= within * abs(float(b)) for a, b in pairs)


def test_the_readme_example_is_ten_lines(root: Path) -> None:
    code, _ = example(root)
    compile(code, "README.md", "exec")
    assert len([line for line in code.splitlines() if line.strip()]) <= 11


def test_output_that_differs_is_found() -> None:
    assert agrees("alpha 0.34 to 0.36", "alpha  0.35 to 0.36")
    assert not agrees("alpha 0.34 to 0.36", "alpha 0.44 to 0.36")
    assert not agrees("beta 0.34", "alpha 0.34")


@pytest.mark.slow
@pytest.mark.data
def test_the_readme_example_prints_what_it_shows(root: Path) -> None:
    code, shown = example(root)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert agrees(done.stdout, shown), done.stdout
