"""Learning curves: one input, several seeds, and checkpoints of one run that share their seed's luck.

    y = (E + A (x / X_REF)**-alpha) exp(seed_sd s + noise z - (seed_sd**2 + noise**2) / 2)

x the input (steps, tokens, examples), y the outcome; s ~ Normal(0, 1) once per seed, z once per row; A is the term at
X_REF = 1e7. So E[y] is the bracket exactly, the log residuals have sd sqrt(seed_sd**2 + noise**2), and two rows of one
seed have correlation seed_sd**2 / (seed_sd**2 + noise**2): checkpoints are not independent runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpyro.distributions as dist
import xarray as xr
from numpy.typing import ArrayLike

from scalingkit.core.card import OURS, Card, Claim
from scalingkit.core.names import RUN, SEED, VARIABLES
from scalingkit.core.param import Param
from scalingkit.core.world import World, generator

X_REF = 1e7


def runs(x: ArrayLike, seeds: int, *, checkpoints: bool = True) -> xr.Dataset:
    """Every x with every seed. ``checkpoints``: rows of one seed are one run; else every row is a run of its own seed."""
    x = np.asarray(x, float)
    rows = np.repeat(x, seeds)
    label = np.tile(np.arange(seeds), x.size) if checkpoints else np.arange(rows.size)
    about = {"units": VARIABLES["x"].unit, "meaning": VARIABLES["x"].meaning}
    return xr.Dataset(
        {"x": (RUN, rows, about)},
        coords={RUN: [f"run-{i}" for i in range(rows.size)], SEED: (RUN, [f"seed-{i}" for i in label])},
        attrs={"source": "simulated"},
    )


def mean(design: xr.Dataset, *, E: float, A: float, alpha: float, **_: float) -> np.ndarray:
    """E[y] of each row; shape (run,)."""
    return E + A * (design["x"].values / X_REF) ** -alpha


def total_sd(*, seed_sd: float, noise: float, **_: float) -> float:
    """sd of log y between seeds at one x."""
    return float(np.hypot(seed_sd, noise))


def simulate(key: Any, design: xr.Dataset, **theta: float) -> xr.Dataset:
    """The design with the outcome ``y``."""
    rng = generator(key)
    labels, which = np.unique(design[SEED].values, return_inverse=True)
    luck = theta["seed_sd"] * rng.standard_normal(labels.size)[which]
    z = theta["noise"] * rng.standard_normal(design.sizes[RUN])
    y = mean(design, **theta) * np.exp(luck + z - total_sd(**theta) ** 2 / 2)
    return design.assign(y=(RUN, y, {"units": VARIABLES["y"].unit, "meaning": VARIABLES["y"].meaning}))


def correlation_of_checkpoints(world: World) -> float:
    """Correlation of the log residuals of two checkpoints of a seed, over 40,000 seeds."""
    theta = world.example["theta"]
    data = simulate(11, runs([1e6, 1e8], 40_000), **theta)
    residual = np.log(data["y"].values / mean(data, **theta)).reshape(2, -1)
    return float(np.corrcoef(residual)[0, 1])


_theta = dict(E=0.5, A=1.2, alpha=0.35, seed_sd=0.03, noise=0.02)

world = World(
    card=Card(
        "learning_curves",
        "seeds and checkpoints of a curve in one input",
        tags={"one-input", "learning-curve", "seeds"},
        sources=(OURS,),
        scope="A seed is lucky or not, once for all its checkpoints; luck that comes and goes is not here.",
    ),
    simulate=simulate,
    params={
        "E": Param(dist.LogNormal(-0.5, 0.7), "floor"),
        "A": Param(dist.LogNormal(0.0, 0.7), "term above the floor at X_REF"),
        "alpha": Param(dist.LogNormal(-1.05, 0.3), "exponent"),
        "seed_sd": Param(dist.HalfNormal(0.03), "sd of the log outcome between seeds"),
        "noise": Param(dist.HalfNormal(0.03), "sd of the log outcome of a row, given its seed"),
    },
    exact={"y": mean},
    claims=(
        Claim(
            OURS, "seed_sd**2 / (seed_sd**2 + noise**2)", "correlation of two checkpoints", correlation_of_checkpoints,
            9 / 13, 4 / np.sqrt(40_000), evidence="derived",
        ),
    ),
    example=dict(design=runs(np.geomspace(1e5, 1e9, 5), 4), theta=_theta),
)  # fmt: skip
