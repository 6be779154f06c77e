"""IdentifiabilityExplorer in JupyterLab, offline, keyboard and mouse: the page's numbers are the plain function's."""

from __future__ import annotations

import json

import numpy as np
import pytest

from scalingkit.design.explorer import explored

pytestmark = pytest.mark.browser

SETUP = """
from scalingkit.widgets import IdentifiabilityExplorer

explorer = IdentifiabilityExplorer(gap=0.02)
explorer
"""
READ = "import json\nprint('GOT', json.dumps(explorer.values()))"
WORDS = ".sk-explorer .sk-words"
PLOT = ".sk-explorer .js-plotly-plot"
INPUTS = {"gap": "gap", "sd-log-tpp": "sd_log_tpp", "noise": "noise", "runs": "runs", "budget": "budget"}


@pytest.fixture(scope="module")
def page(jupyter):
    page = jupyter.open([SETUP, "0"], wait=WORDS)
    page.wait_for_selector(f"{PLOT} .trace", state="attached", timeout=60_000)
    yield page
    assert not jupyter.outside, f"the page asked for {jupyter.outside[:3]}"


def told(page, name: str) -> float:
    return float(page.locator(WORDS).get_attribute(f"data-{name}"))


def handle(page, label: str):
    """The knob of the slider of this name."""
    return page.locator(f'.sk-explorer .widget-slider:has(.widget-label:text-is("{label}")) .noUi-handle')


def until(page, name: str, test: str) -> None:
    """Wait until an input that the page's numbers are for fulfils ``test`` (JavaScript in v), and no answer follows."""
    page.wait_for_function(
        f"() => {{ const v = Number(document.querySelector('{WORDS}').getAttribute('data-{name}')); return {test} }}",
        timeout=60_000,
    )
    same = -1.0
    while same != (same := told(page, "answers")):
        page.wait_for_timeout(700)


def press(page, label: str, name: str, key: str, times: int) -> None:
    before = told(page, name)
    handle(page, label).focus()
    for _ in range(times):
        page.keyboard.press(key)
        page.wait_for_timeout(60)
    until(page, name, f"v !== {before!r}")


def from_kernel(page) -> dict:
    """The controls as the kernel has them, by a cell typed into the notebook."""
    editor = page.locator(".jp-Notebook .jp-CodeCell").last.locator(".cm-content")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(READ)
    count = page.locator(".jp-OutputArea-output:has-text('GOT')").count()
    page.keyboard.press("Shift+Enter")
    out = page.locator(".jp-OutputArea-output:has-text('GOT')")
    page.wait_for_function("n => [...document.querySelectorAll('.jp-OutputArea-output')].filter(e => e.textContent.includes('GOT')).length > n", arg=count, timeout=60_000)  # fmt: skip
    return json.loads(out.last.inner_text().partition("GOT ")[2])


def drawn(page, name: str) -> tuple[np.ndarray, np.ndarray]:
    """x and y of a trace as Plotly holds them in the page."""
    plain = f"""name => {{
        const t = document.querySelector('{PLOT}')._fullData.find(t => t.name === name);
        return [Array.from(t.x), Array.from(t.y)];
    }}"""
    x, y = page.evaluate(plain, name)
    return np.array(x, float), np.array(y, float)


def check(page, law: str = "chinchilla"):
    """The page's numbers against ``explored`` at what the kernel's controls say; gives both."""
    values = from_kernel(page)
    assert values["law"] == law
    for shown, name in INPUTS.items():
        assert told(page, shown) == pytest.approx(values[name], rel=1e-9), "the page lags behind its controls"
    read = explored(**values)
    for block in read["block"].values:
        plain = float(read["kappa"].sel(design="planned", block=block))
        assert told(page, f"kappa-{str(block).replace('+', '-').lower()}") == pytest.approx(plain, rel=1e-6)
    assert told(page, "sd-needed") == pytest.approx(float(read["sd_needed"]), rel=1e-6)
    for pair in ("exponents", "coefficients"):
        shape = read["ellipse"].sel(design="planned", pair=pair).values
        for got, wanted in zip(drawn(page, f"{pair}-planned"), shape, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(drawn(page, "runs-planned")[1], read["D"].sel(design="planned"), rtol=1e-9)
    np.testing.assert_allclose(drawn(page, "profile")[1], read["profile_deviance"], rtol=1e-3, atol=1e-4)
    return values, read


def test_spreading_tokens_per_parameter_by_keyboard_cures_the_page_too(page, jupyter):
    before, wide = {b: told(page, f"kappa-{b}") for b in ("scale", "full")}, np.ptp(drawn(page, "exponents-planned")[0])
    assert "is not enough" in page.locator(WORDS).inner_text()
    press(page, "sd of log TPP", "sd-log-tpp", "ArrowRight", 20)
    values, _ = check(page)
    assert values["sd_log_tpp"] == pytest.approx(0.4)
    for block, kappa in before.items():
        assert told(page, f"kappa-{block}") < kappa / 10
    assert np.ptp(drawn(page, "exponents-planned")[0]) < wide / 10
    text = page.locator(WORDS).inner_text()
    assert "is enough" in text and "is not enough" not in text
    page.locator(".sk-explorer").scroll_into_view_if_needed()
    page.screenshot(path=str(jupyter.folder / "spread.png"))


def test_the_gap_dragged_by_mouse(page):
    before = told(page, "kappa-scale")
    knob = handle(page, "exponent gap")
    knob.scroll_into_view_if_needed()
    box = knob.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y, steps=6)
    page.mouse.up()
    until(page, "gap", "v > 0.05")
    values, _ = check(page)
    assert values["gap"] > 0.05 and told(page, "kappa-scale") != before


def test_noise_runs_and_budget_move_what_they_should(page):
    narrow, loss = np.ptp(drawn(page, "exponents-planned")[0]), drawn(page, "loss")[1]
    press(page, "noise (sd of log)", "noise", "ArrowLeft", 6)
    assert np.ptp(drawn(page, "exponents-planned")[0]) < 0.8 * narrow
    np.testing.assert_allclose(drawn(page, "loss")[1], loss)
    press(page, "runs", "runs", "ArrowRight", 5)
    assert drawn(page, "runs-planned")[0].size == 17
    press(page, "budget (FLOP)", "budget", "ArrowRight", 4)
    values, _ = check(page)
    assert values["runs"] == 17 and values["noise"] < 0.01 and values["budget"] == pytest.approx(1e24)
    assert (drawn(page, "loss")[1] < loss).all()


def test_another_law_in_the_page(page, jupyter):
    page.locator('.sk-explorer .widget-dropdown:has(.widget-label:text-is("law")) select').select_option("kaplan")
    page.wait_for_function(f"document.querySelector('{WORDS}').innerText.includes('Nc, Dc')", timeout=60_000)
    until(page, "answers", "v > 0")
    check(page, "kaplan")
    assert page.locator(f"{PLOT} .x5title").text_content() == "alpha_N"
    page.screenshot(path=str(jupyter.folder / "kaplan.png"))
    page.locator('.sk-explorer .widget-dropdown:has(.widget-label:text-is("law")) select').select_option("chinchilla")
    page.wait_for_function(f"document.querySelector('{WORDS}').innerText.includes('(A, B, E)')", timeout=60_000)
    page.wait_for_function(f"document.querySelector('{PLOT} .x5title').textContent === 'alpha'", timeout=60_000)


def test_the_text_takes_the_themes_ink(page):
    ink = "getComputedStyle(document.documentElement).getPropertyValue('--jp-content-font-color1').trim()"
    fill = f"getComputedStyle(document.querySelector('{PLOT} .xtick text')).fill"
    same = (
        f"(() => {{ const d = document.createElement('div'); d.style.color = {ink}; document.body.append(d);"
        f"const c = getComputedStyle(d).color; d.remove(); return [c, {fill}] }})()"
    )
    wanted, got = page.evaluate(same)
    assert wanted == got != "rgb(118, 124, 133)"
