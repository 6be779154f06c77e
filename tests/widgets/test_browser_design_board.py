"""DesignBoard in JupyterLab, offline, with a real mouse: what the page says is what the plain functions give."""

from __future__ import annotations

import json

import nbformat
import numpy as np
import pytest

import scalingkit as sk
from scalingkit.design import grids
from scalingkit.design.information import condition

pytestmark = pytest.mark.browser

SETUP = """
import numpy as np
import scalingkit as sk
from scalingkit.design import grids
from scalingkit.widgets import DesignBoard

law = sk.get("chinchilla")
runs = grids.ray(np.geomspace(1e8, 3e9, 8))
noise = 0.01 * np.random.default_rng(0).standard_normal(8)
runs["loss"] = ("run", law.curve(runs["N"].values, runs["D"].values, **law.truth) * np.exp(noise))
board = DesignBoard(law, runs, plan={"N": [1e9, 2.5e8], "D": [2e10, 8e9]}, budget=1e22)
board
"""
READ = "import json\nprint('GOT', json.dumps([list(board.runs.N.values), list(board.runs.D.values), board.now.theta]))"


@pytest.fixture(scope="module")
def page(jupyter):
    page = jupyter.open([SETUP, "0"], wait=".sk-board .plan")
    yield page
    assert not jupyter.outside, f"the page asked for {jupyter.outside[:3]}"


def settled(page) -> None:
    page.wait_for_selector('.sk-board[data-busy="0"]', state="attached", timeout=20_000)


def kappas(page) -> dict[str, float]:
    settled(page)
    return {b: float(page.locator(f".kappa-{b}").get_attribute("data-value")) for b in ("scale", "full")}


def drag(page, mark, dx: float, dy: float) -> None:
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx / 2, y + dy / 2, steps=5)
    page.mouse.move(x + dx, y + dy, steps=5)
    page.mouse.up()
    settled(page)


def from_kernel(page) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """The runs as the kernel has them, by a cell typed into the notebook."""
    editor = page.locator(".jp-Notebook .jp-CodeCell").last.locator(".cm-content")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(READ)
    count = page.locator(".jp-OutputArea-output:has-text('GOT')").count()
    page.keyboard.press("Shift+Enter")
    out = page.locator(".jp-OutputArea-output:has-text('GOT')")
    page.wait_for_function("n => [...document.querySelectorAll('.jp-OutputArea-output')].filter(e => e.textContent.includes('GOT')).length > n", arg=count, timeout=60_000)  # fmt: skip
    N, D, theta = json.loads(out.last.inner_text().partition("GOT ")[2])
    return np.array(N), np.array(D), theta


def test_a_dragged_point_changes_the_condition_number_to_the_plain_functions_value(page, jupyter):
    before = kappas(page)
    drag(page, page.locator('.plan[data-id="0"] .dot'), -60, -120)
    after = kappas(page)
    N, D, theta = from_kernel(page)
    law = sk.get("chinchilla")
    assert N.size == 10 and N[8] < 0.95e9 and D[8] > 2.2e10
    for block in ("scale", "full"):
        assert after[block] == pytest.approx(float(condition(law, theta, grids.design(N, D), block=block)), rel=1e-9)
        assert abs(after[block] / before[block] - 1) > 0.01
    assert N[9] == pytest.approx(2.5e8)  # the other point stayed
    page.screenshot(path=str(jupyter.folder / "dragged.png"))


def test_a_trained_run_does_not_move(page):
    before = kappas(page)
    drag(page, page.locator(".sk-board .done").nth(2), 80, -80)
    assert kappas(page) == before and page.locator(".plan").count() == 2


def test_a_point_is_added_removed_and_brought_back(page):
    start = kappas(page)
    page.locator(".sk-board svg").scroll_into_view_if_needed()
    box = page.locator(".sk-board svg").bounding_box()
    page.mouse.dblclick(box["x"] + 0.3 * box["width"], box["y"] + 0.2 * box["height"])
    added = kappas(page)
    assert page.locator(".plan").count() == 3 and added != start
    page.keyboard.press("Delete")
    assert kappas(page) == start and page.locator(".plan").count() == 2
    page.locator(".sk-board .undo").click()
    assert kappas(page) == added and page.locator(".plan").count() == 3
    page.locator(".sk-board .undo").click()
    assert kappas(page) == start and page.locator(".plan").count() == 2


def test_arrow_keys_move_the_chosen_point(page):
    before = kappas(page)
    page.locator('.plan[data-id="1"]').focus()
    page.keyboard.press("Shift+ArrowUp")
    settled(page)
    assert kappas(page) != before
    page.keyboard.press("Shift+ArrowDown")
    assert kappas(page)["scale"] == pytest.approx(before["scale"], rel=1e-9)


def test_suggest_places_a_run_that_narrows_n_star(page, jupyter):
    count = page.locator(".plan").count()
    before = page.locator(".sk-board .nstar").inner_text()
    page.locator(".sk-board .suggest").click()
    page.wait_for_function(f"document.querySelectorAll('.sk-board .plan').length === {count + 1}", timeout=120_000)
    page.wait_for_function(
        "t => document.querySelector('.sk-board .nstar').innerText !== t", arg=before, timeout=60_000
    )
    svg = page.locator(".sk-board svg").bounding_box()
    for i in range(count + 1):  # every run is on the plane, the suggested one too
        dot = page.locator(".plan .dot").nth(i).bounding_box()
        assert svg["x"] < dot["x"] < svg["x"] + svg["width"] and svg["y"] < dot["y"] < svg["y"] + svg["height"]
    page.screenshot(path=str(jupyter.folder / "suggested.png"))


def test_the_static_twin_is_in_an_exported_page(chromium):
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SETUP)])
    NotebookClient(book, timeout=300, kernel_name="python3", store_widget_state=False).execute()
    shown = book.cells[0].outputs[-1]["data"]
    assert "application/vnd.jupyter.widget-view+json" in shown
    picture = "".join(shown["image/png"].split())[:200]
    html, _ = HTMLExporter().from_notebook_node(book)
    assert f"data:image/png;base64,{picture}" in html
    del shown["image/png"]
    html, _ = HTMLExporter().from_notebook_node(book)
    assert picture not in html
