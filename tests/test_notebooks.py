"""Every notebook keeps the house rules and runs in FAST mode; each rule refuses a notebook built to break it."""

from __future__ import annotations

import ast
import copy
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

LONGEST_CELL = 15
FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
PATHS = sorted(p for p in FOLDER.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def code_cells(book: NotebookNode) -> list[NotebookNode]:
    return [c for c in book.cells if c.cell_type == "code"]


def parsed(cell: NotebookNode) -> ast.Module:
    """The cell's syntax tree; lines for IPython alone (%magic, !command) are left out."""
    return ast.parse("\n".join(line for line in cell.source.splitlines() if not re.match(r"\s*[%!]", line)))


def assigns(cell: NotebookNode, name: str) -> bool:
    targets = [t for node in parsed(cell).body if isinstance(node, ast.Assign) for t in node.targets]
    return any(isinstance(t, ast.Name) and t.id == name for t in targets)


def calls_verify(cell: NotebookNode) -> bool:
    calls = [node.func for node in ast.walk(parsed(cell)) if isinstance(node, ast.Call)]
    return any(ast.unparse(f) == "sk.verify" for f in calls)


def cell_problems(number: int, cell: NotebookNode) -> list[str]:
    """What is wrong with one code cell: too long, defines something, not executed, holds an error."""
    found = []
    lines = [line for line in cell.source.splitlines() if line.strip()]
    if len(lines) > LONGEST_CELL:
        found.append(
            f"code cell {number} has {len(lines)} lines: at most {LONGEST_CELL}; move the work into the package"
        )
    if any(isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for n in ast.walk(parsed(cell))):
        found.append(f"code cell {number} defines a function or class: it belongs in the package")
    if cell.execution_count is None:
        found.append(f"code cell {number} was not executed: run `make notebooks`")
    if any(o.output_type == "error" for o in cell.outputs):
        found.append(f"code cell {number} holds an error")
    return found


def problems(book: NotebookNode) -> list[str]:
    """Every house rule that the notebook breaks, in words; empty when it keeps them all."""
    code = code_cells(book)
    found = [p for number, cell in enumerate(code, 1) for p in cell_problems(number, cell)]
    if not book.cells or book.cells[0].cell_type != "markdown":
        found.append("the first cell must be Markdown: the question and the sources")
    tagged = [c for c in code if "parameters" in c.metadata.get("tags", [])]
    if len(tagged) != 1 or not assigns(tagged[0], "FAST"):
        found.append("exactly one code cell must be tagged `parameters` and set FAST")
    if not code or not calls_verify(code[-1]):
        found.append("the last code cell must call sk.verify(...)")
    return found


def run(book: NotebookNode, folder: Path, fast: bool = True) -> NotebookNode:
    """Execute a copy of the notebook in ``folder`` with FAST set, as papermill does: by a cell after the parameters.

    Raises CellExecutionError where a cell fails.
    """
    book = copy.deepcopy(book)
    after = next(i for i, c in enumerate(book.cells, 1) if "parameters" in c.metadata.get("tags", []))
    book.cells.insert(after, new_code_cell(f"FAST = {fast}", metadata={"tags": ["injected-parameters"]}))
    client = NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}})
    return client.execute()


def needs_data(path: Path) -> bool:
    return any(".load(" in c.source for c in code_cells(nbformat.read(path, as_version=4)))


def named(path: Path) -> str:
    return str(path.relative_to(FOLDER).with_suffix(""))


@pytest.mark.parametrize("path", PATHS, ids=named)
def test_notebook_keeps_the_rules(path: Path) -> None:
    assert problems(nbformat.read(path, as_version=4)) == []


@pytest.mark.notebook
@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=pytest.mark.data) if needs_data(p) else p for p in PATHS], ids=named
)
def test_notebook_runs_in_fast_mode(path: Path, tmp_path: Path) -> None:
    run(nbformat.read(path, as_version=4), tmp_path)


# ------------------------------------------------------------------------------------------------ negative controls


def good_book() -> NotebookNode:
    """A notebook that keeps every rule; its last cell verifies without the package, so that it runs at once."""
    cells = [
        new_markdown_cell("# How much is two and two?"),
        new_code_cell("FAST = False", metadata={"tags": ["parameters"]}),
        new_code_cell("import types\nsk = types.SimpleNamespace(verify=lambda ok: 1 / ok)\nfour = 2 + 2"),
        new_code_cell("sk.verify(four == 4 and FAST)"),
    ]
    for number, cell in enumerate(c for c in cells if c.cell_type == "code"):
        cell.execution_count = number + 1
    return new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})


def test_a_good_notebook_keeps_the_rules() -> None:
    assert problems(good_book()) == []


def spoil_length(book: NotebookNode) -> None:
    book.cells[2].source += "\n" + "\n".join(f"a{i} = {i}" for i in range(LONGEST_CELL))


def spoil_def(book: NotebookNode) -> None:
    book.cells[2].source += "\n%matplotlib inline\ndef helper():\n    return 1\n"


def spoil_class(book: NotebookNode) -> None:
    book.cells[2].source += "\nclass Helper: ...\n"


def spoil_first(book: NotebookNode) -> None:
    del book.cells[0]


def spoil_tag(book: NotebookNode) -> None:
    book.cells[1].metadata.pop("tags")


def spoil_fast(book: NotebookNode) -> None:
    book.cells[1].source = "QUICK = False"


def spoil_verify(book: NotebookNode) -> None:
    book.cells[-1].source = "# sk.verify(four == 4)\nfour"


def spoil_executed(book: NotebookNode) -> None:
    book.cells[2].execution_count = None


def spoil_error(book: NotebookNode) -> None:
    book.cells[2].outputs = [new_output("error", ename="ValueError", evalue="", traceback=[])]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_length, "at most 15"),
        (spoil_def, "defines a function"),
        (spoil_class, "defines a function or class"),
        (spoil_first, "first cell must be Markdown"),
        (spoil_tag, "tagged `parameters`"),
        (spoil_fast, "set FAST"),
        (spoil_verify, "must call sk.verify"),
        (spoil_executed, "was not executed"),
        (spoil_error, "holds an error"),
    ],
)
def test_a_broken_rule_is_named(spoil, said: str) -> None:
    book = good_book()
    spoil(book)
    (problem,) = problems(book)
    assert said in problem


@pytest.mark.notebook
def test_a_run_sets_fast_and_a_failing_verify_fails_it(tmp_path: Path) -> None:
    run(good_book(), tmp_path)
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run(good_book(), tmp_path, fast=False)
