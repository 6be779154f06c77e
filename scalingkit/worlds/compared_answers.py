"""Compared answers: candidates are right with chance p_g, and a noisy judge prefers the right one with chance p_c.

    good ~ Bernoulli(p_g);   P(right beats wrong) = p_c,  like against like 1/2
    win rate of a right answer against a random one: p_g / 2 + (1 - p_g) p_c;   of a wrong one: p_g (1 - p_c) + (1 - p_g) / 2

With p_c < 1/2 the judge prefers wrong answers, and more matches only make sure of one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpyro.distributions as dist
import xarray as xr

from scalingkit.core.card import OURS, Card, Claim
from scalingkit.core.names import PROBLEM, SAMPLE
from scalingkit.core.param import Param
from scalingkit.core.world import World, generator


def simulate(key: Any, design: xr.Dataset, *, p_g: float, p_c: float) -> xr.Dataset:
    """``good`` (problem, sample), and ``wins``: the outcome of one match of each sample against a fresh opponent."""
    rng = generator(key)
    shape = (design.sizes[PROBLEM], design.sizes[SAMPLE])
    good, other = rng.random(shape) < p_g, rng.random(shape) < p_g
    beats = np.where(good == other, 0.5, np.where(good, p_c, 1 - p_c))
    dims = (PROBLEM, SAMPLE)
    wins = (rng.random(shape) < beats).astype(float)
    return design.assign(good=(dims, good.astype(float)), wins=(dims, wins), good_wins=(dims, wins * good))


def win_rates(p_g: float, p_c: float) -> tuple[float, float]:
    """Mean win rate of a right and of a wrong answer against a random candidate."""
    return p_g / 2 + (1 - p_g) * p_c, p_g * (1 - p_c) + (1 - p_g) / 2


def types(p_g: float, p_c: float) -> xr.Dataset:
    """The same world as a problem for a policy: ``p`` (level), ``win`` (level, versus), ``good`` (level)."""
    return problem([p_g, 1 - p_g], [[0.5, p_c], [1 - p_c, 0.5]], [1, 0])


def problem(p: Any, win: Any, good: Any) -> xr.Dataset:
    """Any number of types: their frequencies, the matrix of win chances (W + W' = 1) and which are right."""
    return xr.Dataset(
        dict(
            p=("level", np.asarray(p, float)), win=(("level", "versus"), np.asarray(win, float)),
            good=("level", np.asarray(good, float)),
        )
    )  # fmt: skip


def _full(d: xr.Dataset, value: float) -> np.ndarray:
    return np.full((d.sizes[PROBLEM], d.sizes[SAMPLE]), value)


world = World(
    card=Card(
        "compared_answers",
        "Right and wrong answers, and a judge of pairs",
        tags={"best-of-n", "comparison"},
        sources=(OURS,),
        scope="Matches are independent: a judge that errs the same way each time is worse than this.",
    ),
    simulate=simulate,
    params={
        "p_g": Param(dist.Uniform(0.0, 1.0), "chance that an answer is right"),
        "p_c": Param(dist.Uniform(0.0, 1.0), "chance that the judge prefers the right one of a pair"),
    },
    exact={
        "good": lambda d, *, p_g, p_c: _full(d, p_g),
        "wins": lambda d, *, p_g, p_c: _full(d, 0.5),
        "good_wins": lambda d, *, p_g, p_c: _full(d, p_g * win_rates(p_g, p_c)[0]),
    },
    claims=(
        Claim(
            OURS, "by hand", "win rate of a right answer, p_g = .4, p_c = .75", lambda w: win_rates(0.4, 0.75)[0], 0.65,
            1e-12, evidence="derived",
        ),
    ),
    example=dict(
        design=xr.Dataset(coords={PROBLEM: np.arange(5), SAMPLE: np.arange(8)}), theta=dict(p_g=0.4, p_c=0.75)
    ),
)  # fmt: skip
