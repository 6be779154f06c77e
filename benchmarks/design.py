"""How long a design question takes, warm and cold, and how often suggested runs beat random ones.

    python benchmarks/design.py [--problems 20] [--json FILE]

Times are wall seconds in this process: the first call (compilation included) and the median of five more. The contest
is the one of the test suite: the target's posterior variance at a truth that the suggestion did not see, against the
best of 100 random designs of equal cost.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _table import Table, argument

import scalingkit as sk
from scalingkit.decide.allocate import allocate
from scalingkit.design import grids, prior, region
from scalingkit.design.contraction import laplace
from scalingkit.design.identify import identify
from scalingkit.design.information import condition, inputs, pivot_array, pivoted_at, unconstrained
from scalingkit.design.suggest import suggest
from scalingkit.design.targets import Exponent, Loss, Size
from scalingkit.infer.coordinates import of as coordinates

TRUTH = dict(E=1.82, A=482.0, alpha=0.348, B=2085.0, beta=0.366)
NOISE = 0.01


def timed(what: Callable[[], Any], again: int = 5) -> tuple[float, float]:
    """Seconds of the first call, and the median of ``again`` more."""
    seconds = []
    for _ in range(1 + again):
        start = time.perf_counter()
        what()
        seconds.append(time.perf_counter() - start)
    return seconds[0], float(np.median(seconds[1:]))


def pilot(law: Any, rng: np.random.Generator) -> Any:
    """Ten runs on a ray, with noise."""
    runs = grids.ray(np.geomspace(10 ** rng.uniform(7, 8), 10 ** rng.uniform(9, 9.7), 10), float(rng.uniform(10, 40)))
    mean = np.asarray(law(**TRUTH, N=runs["N"].values, D=runs["D"].values))
    return runs.assign(loss=("run", mean * np.exp(NOISE * rng.standard_normal(mean.size))))


def variance(law: Any, runs: Any, x: np.ndarray, target: Any) -> float:
    """Of the target at the truth, after the runs and those at x."""
    c, x0 = coordinates(law), inputs(law, runs)
    pivots = pivot_array(c, x0)
    u = unconstrained(c, np.array([list(TRUTH.values())]), pivots)
    g = target.gradient(law, u, pivots, "log")[0]
    J = pivoted_at(c, u, np.concatenate([x0, x]) / pivots, "log")[0]
    return float(g @ laplace(J, NOISE, prior.moments(law)[1]) @ g)


def contest(law: Any, problems: int, kept: Table) -> None:
    """Wins and the median ratio of standard deviations."""
    ratios = []
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        runs = pilot(law, rng)
        target = [Size(1e23), Loss(7e9, 1.4e11), Exponent("alpha")][seed % 3]
        budget = float(runs["C"].max() * 10 ** rng.uniform(0, 1.5))
        ours = suggest(law, runs, target=target, budget=budget, noise=NOISE)
        where = region.default(law, inputs(law, runs), budget, None, {})
        designs = region.random_designs(where, law, 4, budget, None, 100, seed=1000 + seed)
        best = min(variance(law, runs, x, target) for x in designs)
        ratios.append(np.sqrt(variance(law, runs, inputs(law, ours), target) / best))
    wins = int(np.sum(np.array(ratios) < 1))
    print(f"suggest against the best of 100 random: {wins} of {problems}; median sd ratio {np.median(ratios):.2f}")
    said = f"lower in {wins} of {problems} problems; 1 is the best of 100 random designs of equal cost"
    kept.add("sd of the target after 4 suggested runs", float(np.median(ratios)), 1.0, unit="relative sd", note=said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=20)
    argument(parser)
    asked = parser.parse_args()
    law = sk.get("chinchilla")
    runs = pilot(law, np.random.default_rng(0))
    theta = {k: v * np.exp(0.03 * np.random.default_rng(1).standard_normal(4000)) for k, v in TRUTH.items()}
    questions = {
        "condition number, 10 runs": lambda: condition(law, TRUTH, runs, block="full"),
        "identify, 10 runs": lambda: identify(law, runs),
        "identify without profiles": lambda: identify(law, runs, profiles=False),
        "allocate, 4,000 draws, 2 budgets": lambda: allocate(theta, budget=[1e23, 1e25], law=law),
        "suggest 4 runs for N*": lambda: suggest(law, runs, target=Size(1e23), budget=1e21),
        "suggest 1 run for a loss": lambda: suggest(law, runs, target=Loss(7e9, 1.4e11), budget=1e21, count=1),
    }
    kept = Table("design", "Questions about designs, wall seconds warm", seed=0)
    print(f"{'question':36s} {'first':>8s} {'warm':>8s}")
    for name, ask in questions.items():
        first, warm = timed(ask)
        print(f"{name:36s} {first:7.2f}s {1e3 * warm:6.0f}ms")
        kept.add(name, warm, unit="s wall", note=f"{first:.2f} s the first time, compilation included")
    contest(law, asked.problems, kept)
    kept.write(asked.json)


if __name__ == "__main__":
    main()
