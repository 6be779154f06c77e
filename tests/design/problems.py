"""Design problems at random: what was run so far, what is wanted, and what may be spent; with the truth kept aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import zoo
from scalingkit.design import grids
from scalingkit.design.targets import Exponent, Function, Loss, Size


@dataclass(frozen=True)
class Problem:
    runs: xr.Dataset
    truth: dict[str, float]
    target: Any
    budget: float
    count: int
    noise: float


def size_exponent(theta):
    return theta["beta"] / (theta["alpha"] + theta["beta"])


def problem(seed: int) -> Problem:
    """Pilot runs (ray, spread or iso-FLOP) of a random Chinchilla truth, and one of five kinds of target in turn."""
    rng = np.random.default_rng(seed)
    law = zoo.get("chinchilla", "laws")
    alpha, beta = np.exp(rng.normal(np.log(0.35), 0.15, 2))
    truth = dict(
        E=float(rng.uniform(1.5, 2.0)), A=float(rng.uniform(0.3, 0.8) * 5e8**alpha), alpha=float(alpha),
        B=float(rng.uniform(0.3, 0.8) * 1e10**beta), beta=float(beta),
    )  # fmt: skip
    sizes = np.geomspace(10 ** rng.uniform(7, 8), 10 ** rng.uniform(8.7, 9.7), int(rng.integers(6, 16)))
    made = [
        grids.ray(sizes, float(rng.uniform(10, 40))),
        grids.spread(sizes, (float(rng.uniform(3, 10)), 20.0, float(rng.uniform(40, 150)))),
        grids.isoflop([1e18, 1e19], points=max(3, sizes.size // 2), tpp=(4, 100)),
    ][seed % 3]
    noise = float(10 ** rng.uniform(-2.3, -1.7))
    mean = np.asarray(law(**truth, N=made["N"].values, D=made["D"].values))
    runs = made.assign(loss=("run", mean * np.exp(noise * rng.standard_normal(mean.size))))
    far = 10 ** rng.uniform(21, 24)
    target = [
        Size(far), Loss(float(np.sqrt(far / 120)), float(20 * np.sqrt(far / 120))), Exponent("alpha"),
        Function(size_exponent, "size exponent"), Exponent("beta"),
    ][seed % 5]  # fmt: skip
    budget = float(runs["C"].max() * 10 ** rng.uniform(0, 1.5))
    return Problem(runs, truth, target, budget, int(rng.integers(1, 7)), noise)
