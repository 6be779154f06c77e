"""Milliseconds from a move to its numbers on the page, in JupyterLab and a real Chromium, for every widget.

    python benchmarks/widgets.py [--moves 30] [--json data/benchmarks/widgets.json] [--shots FOLDER]

The page's own clock times each move, from the message to the kernel to the read-outs drawn. A widget is one entry of
BOARDS: its cell, the selector that says it is there, and how to make the i-th move and give its milliseconds.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "widgets"))

from _table import Table, argument
from lab import Lab, chromium

LIMIT = 300.0  # ms a move

DESIGN_BOARD = """
import numpy as np
import scalingkit as sk
from scalingkit.design import grids
from scalingkit.widgets import DesignBoard

law = sk.get("chinchilla")
runs = grids.spread(np.geomspace(1e8, 3e9, 12))
noise = 0.01 * np.random.default_rng(0).standard_normal(12)
runs["loss"] = ("run", law.curve(runs["N"].values, runs["D"].values, **law.truth) * np.exp(noise))
board = DesignBoard(law, runs, plan={"N": [1e9, 2.5e8, 3e9], "D": [9e10, 1.5e10, 1.1e10]}, budget=1e22)
board
"""


def key_move(page: Any, i: int) -> float:
    """One press of an arrow key on the first planned run."""
    board = page.locator(".sk-board").first
    answers = int(board.get_attribute("data-answers") or 0)
    page.locator('.sk-board .plan[data-id="0"]').first.focus()
    page.keyboard.press("ArrowUp" if i % 2 else "ArrowRight")
    page.wait_for_function(
        "n => Number(document.querySelector('.sk-board').dataset.answers ?? 0) > n", arg=answers, timeout=60_000
    )
    return float(board.get_attribute("data-ms"))


EXPLORER = """
from scalingkit.widgets import IdentifiabilityExplorer
explorer = IdentifiabilityExplorer(gap=0.02, sd_log_tpp=0.1)
explorer
"""
# From the key to the later of the words and the last of Plotly's redraws; over when none has come for a while
WATCH = """box => {
    const plot = box.querySelector('.js-plotly-plot');
    const answers = () => Number(box.querySelector('.sk-words').dataset.answers), before = answers();
    let start = 0, words = 0, drawn = 0;
    const redrawn = () => { drawn = performance.now() };
    plot.on('plotly_afterplot', redrawn);
    document.addEventListener('keydown', () => { start = performance.now() }, { capture: true, once: true });
    const seen = new MutationObserver(() => { if (!words && answers() > before) words = performance.now() });
    seen.observe(box, { subtree: true, childList: true, attributes: true });
    window.skMove = new Promise(done => {
        const timer = setInterval(() => {
            if (!words || !drawn || performance.now() - Math.max(words, drawn) < 500) return;
            clearInterval(timer); seen.disconnect(); plot.removeListener('plotly_afterplot', redrawn);
            done(Math.max(words, drawn) - start);
        }, 50);
    });
}"""


def slider_move(page: Any, i: int) -> float:
    """One press of an arrow key on the slider of the sd of log TPP: all eight pictures move."""
    page.wait_for_selector(".sk-explorer .js-plotly-plot .trace", state="attached", timeout=60_000)
    page.locator('.sk-explorer .widget-slider:has-text("sd of log TPP") .noUi-handle').focus()
    return watched(page, ".sk-explorer", "ArrowRight")


PORTRAIT = """
import numpy as np
import scalingkit as sk
from scalingkit.core import runs as tables
from scalingkit.infer.laplace import laplace
from scalingkit.widgets import PosteriorExplorer

rng = np.random.default_rng(1)
N, D = 10 ** rng.uniform(7, 10, 240), 10 ** rng.uniform(9, 12, 240)
loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.01 * rng.standard_normal(240))
corpus = np.array(["a", "b", "c", "d", "e", "f"])[np.arange(240) % 6]
runs = tables.make(N=N, D=D, loss=loss, corpus=corpus)
model = sk.Model("chinchilla", {"alpha": sk.Partial("corpus"), "E": sk.Separate("corpus")})
explorer = PosteriorExplorer(laplace(model, runs, draws=4000))
explorer
"""


def portrait_move(page: Any, i: int) -> float:
    """One press of an arrow key on the quantile of the slice: six groups of 40 runs, 4000 draws."""
    page.wait_for_selector(".sk-portrait .js-plotly-plot .trace", state="attached", timeout=60_000)
    page.locator('.sk-portrait .widget-slider:has-text("others at") .noUi-handle').focus()
    return watched(page, ".sk-portrait", "ArrowRight" if i % 14 < 7 else "ArrowLeft")


def watched(page: Any, box: str, key: str) -> float:
    """Milliseconds from the key to the last thing redrawn in the box."""
    page.locator(box).first.evaluate(WATCH)
    page.keyboard.press(key)
    return float(page.evaluate("() => window.skMove"))


# name -> (cell, selector, move)
BOARDS: dict[str, tuple[str, str, Callable[[Any, int], float]]] = {
    "DesignBoard: one run moved": (DESIGN_BOARD, ".sk-board .plan", key_move),
    "IdentifiabilityExplorer: one step of a slider": (EXPLORER, ".sk-explorer .sk-words", slider_move),
    "PosteriorExplorer: one step of a slider": (PORTRAIT, ".sk-portrait .sk-words", portrait_move),
}


def measure(lab: Lab, name: str, moves: int, shots: Path | None) -> np.ndarray:
    """Milliseconds of each move but the first, which compiles."""
    cell, selector, move = BOARDS[name]
    page = lab.open([cell], wait=selector)
    move(page, 0)
    times = np.array([move(page, i + 1) for i in range(moves)])
    if shots is not None:
        shots.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(shots / f"{name.partition(':')[0]}-{'dark' if lab.dark else 'light'}.png"))
    page.close()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=30)
    parser.add_argument("--shots", type=Path, help="keep screenshots here")
    parser.add_argument("--dark", action="store_true", help="JupyterLab's dark theme")
    argument(parser)
    options = parser.parse_args()
    table = Table("widgets", "Milliseconds from a move to its numbers on the page")
    if chromium() is None:
        for name in BOARDS:
            table.add(name, None, unit="ms", limit=LIMIT, note="no Chromium on this machine")
        table.write(options.json)
        return
    folder = Path(tempfile.mkdtemp())
    try:
        with Lab(folder, dark=options.dark) as lab:
            for name in BOARDS:
                t = measure(lab, name, options.moves, options.shots)
                low, high = np.percentile(t, [5, 95])
                table.add(
                    name,
                    float(np.median(t)),
                    unit="ms",
                    limit=LIMIT,
                    note=f"median of {t.size}; 5-95%: {low:.0f}-{high:.0f}",
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    table.write(options.json)


if __name__ == "__main__":
    main()
