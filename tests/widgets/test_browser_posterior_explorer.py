"""PosteriorExplorer in JupyterLab, offline, keyboard and mouse: the page's numbers are the plain function's."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytestmark = pytest.mark.browser

SETUP = """
import json
import numpy as np
from scalingkit.core import runs as tables
from scalingkit.infer.laplace import laplace
from scalingkit.infer.model import Model
from scalingkit.infer.pooling import Partial
from scalingkit.infer.portrait import portrait
from scalingkit.widgets import PosteriorExplorer

rng = np.random.default_rng(1)
N, D = 10 ** rng.uniform(7, 10, 60), 10 ** rng.uniform(9, 12, 60)
loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.01 * rng.standard_normal(60))
runs = tables.make(N=N, D=D, loss=loss, corpus=np.array(["c4", "pile", "web"])[np.arange(60) % 3])
tree = laplace(Model("chinchilla", {"alpha": Partial("corpus")}), runs, draws=400)
explorer = PosteriorExplorer(tree, params=["alpha", "beta"])
explorer
"""
# The plain function at what the kernel's controls say: what the page must show
READ = """plain = portrait(tree, **explorer.values())
said = {"groups": list(plain["group"].values), "params": list(plain["param"].values), "along": plain.attrs["along"],
        "level": plain.attrs["level"], "density": plain["density"][0, 0].values.tolist(),
        "middle": plain["band"][0, :, 1].values.tolist() if "band" in plain else [],
        "run_y": plain["run_y"].values[plain["run_group"].values == 0].tolist()}
print("GOT", json.dumps(said))"""
BOX = ".sk-portrait"
WORDS = f"{BOX} .sk-words"
PLOT = f"{BOX} .js-plotly-plot"


@pytest.fixture(scope="module")
def page(jupyter):
    page = jupyter.open([SETUP, "0"], wait=WORDS)
    page.wait_for_selector(f"{PLOT} .trace", state="attached", timeout=60_000)
    yield page
    assert not jupyter.outside, f"the page asked for {jupyter.outside[:3]}"


def told(page, name: str) -> float:
    return float(page.locator(WORDS).get_attribute(f"data-{name}"))


def after(page, act) -> None:
    """Do something, and wait until an answer came and none follows."""
    before = told(page, "answers")
    act()
    page.wait_for_function(
        f"n => Number(document.querySelector('{WORDS}').dataset.answers) > n", arg=before, timeout=60_000
    )
    same = -1.0
    while same != (same := told(page, "answers")):
        page.wait_for_timeout(700)


def plain(page) -> dict:
    """What the plain function gives at the controls, by a cell typed into the notebook."""
    editor = page.locator(".jp-Notebook .jp-CodeCell").last.locator(".cm-content")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(READ)
    count = page.locator(".jp-OutputArea-output:has-text('GOT')").count()
    page.keyboard.press("Shift+Enter")
    out = page.locator(".jp-OutputArea-output:has-text('GOT')")
    page.wait_for_function("n => [...document.querySelectorAll('.jp-OutputArea-output')].filter(e => e.textContent.includes('GOT')).length > n", arg=count, timeout=60_000)  # fmt: skip
    return json.loads(out.last.inner_text().partition("GOT ")[2])


def drawn(page, name: str) -> np.ndarray:
    """y of a trace as Plotly holds it in the page."""
    found = page.evaluate(
        f"name => Array.from(document.querySelector('{PLOT}')._fullData.find(t => t.name === name)?.y ?? [])", name
    )
    return np.array(found, float)


def check(page) -> dict:
    said = plain(page)
    np.testing.assert_allclose(drawn(page, "middle-0"), said["middle"], rtol=1e-9)
    np.testing.assert_allclose(drawn(page, "run-0"), said["run_y"], rtol=1e-9)
    assert told(page, "level") == pytest.approx(said["level"])
    return said


def box(page, label: str):
    return page.locator(f'{BOX} .jupyter-widgets:has(> .widget-label:text-is("{label}")) select')


def test_what_is_drawn_first_is_the_plain_function(page, jupyter):
    said = check(page)
    assert said["groups"] == ["c4", "pile", "web"] and said["params"] == ["alpha", "beta"]
    np.testing.assert_allclose(drawn(page, "density-0-0"), said["density"], rtol=1e-9)
    assert "The runs speak" in page.locator(WORDS).inner_text()
    page.locator(BOX).scroll_into_view_if_needed()
    page.screenshot(path=str(jupyter.folder / "portrait.png"))


def test_the_slider_moves_the_slice_by_keyboard(page):
    before = drawn(page, "middle-0")
    knob = page.locator(f'{BOX} .widget-slider:has(.widget-label:text-is("others at")) .noUi-handle')
    knob.focus()
    after(page, lambda: [page.keyboard.press("ArrowLeft") for _ in range(6)])
    said = check(page)
    assert said["level"] == pytest.approx(0.2)
    assert (drawn(page, "middle-0") > before).all()  # fewer tokens: the whole slice lies higher


def test_groups_and_parameters_chosen_by_mouse(page):
    after(page, lambda: box(page, "groups").select_option(["web"]))
    assert check(page)["groups"] == ["web"] and drawn(page, "middle-1").size == 0
    after(page, lambda: box(page, "parameters").select_option(["alpha", "sigma", "nu"]))
    assert plain(page)["params"] == ["alpha", "nu", "sigma"]
    assert page.locator(f"{PLOT} .x2title").text_content() == "log10 nu"
    assert "The prior speaks for nu" in page.locator(WORDS).inner_text()
    after(page, lambda: box(page, "groups").select_option(["c4", "pile", "web"]))
    assert drawn(page, "middle-1").size > 0


def test_another_axis_and_the_runs_against_replicates(page, jupyter):
    after(page, lambda: box(page, "curve along").select_option("D"))
    assert check(page)["along"] == "D" and "tokens" in page.locator(f"{PLOT} .x4title").text_content()
    after(page, lambda: box(page, "curve along").select_option("replicated runs"))
    said = plain(page)
    np.testing.assert_allclose(drawn(page, "run-0"), said["run_y"], rtol=1e-9)
    assert drawn(page, "middle-0").size == 0 and "lie in their 90% interval" in page.locator(WORDS).inner_text()
    page.screenshot(path=str(jupyter.folder / "replicated.png"))


def test_too_many_parameters_are_refused_in_words(page):
    box(page, "parameters").select_option(["E", "A", "B", "alpha", "beta"])
    page.wait_for_selector(f"{BOX} .sk-error", timeout=60_000)
    assert "choose 1 to 4 parameters, not 5" in page.locator(f"{BOX} .sk-error").inner_text()
    after(page, lambda: box(page, "parameters").select_option(["alpha"]))
    page.wait_for_selector(f"{BOX} .sk-error", state="detached", timeout=60_000)


def test_the_text_takes_the_themes_ink(page):
    ink = "getComputedStyle(document.documentElement).getPropertyValue('--jp-content-font-color1').trim()"
    wanted, got = page.evaluate(
        f"(() => {{ const d = document.createElement('div'); d.style.color = {ink}; document.body.append(d);"
        f"const c = getComputedStyle(d).color; d.remove();"
        f"return [c, getComputedStyle(document.querySelector('{PLOT} .xtick text')).fill] }})()"
    )
    assert wanted == got != "rgb(118, 124, 133)"


def test_the_plots_are_as_wide_as_their_cell_and_stay_so(page):
    fits = f"() => {{ const p = document.querySelector('{PLOT}'); return p._fullLayout.width === p.clientWidth }}"
    page.wait_for_function(fits, timeout=20_000)
    before = page.evaluate(f"document.querySelector('{PLOT}').clientWidth")
    page.keyboard.press("Control+b")  # JupyterLab's sidebar goes
    page.wait_for_function(f"n => document.querySelector('{PLOT}').clientWidth > n", arg=before, timeout=20_000)
    page.wait_for_function(fits, timeout=20_000)
