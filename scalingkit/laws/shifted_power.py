"""Shifted power: flat while x is well below the shift, a power law above it, then a floor.

    y(x) = E + A (x + shift)**-alpha

x any positive input, y the outcome, in units of the table. M3 of Alabdulmohsin et al. 2022.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.typing import ArrayLike

from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.law import Law
from scalingkit.core.param import Param

alabdulmohsin2022 = Source(
    "alabdulmohsin2022", "Alabdulmohsin, Neyshabur, Zhai 2022, Revisiting neural scaling laws in language and vision",
    "2209.06640",
)  # fmt: skip


def curve(x: ArrayLike, E: ArrayLike, A: ArrayLike, shift: ArrayLike, alpha: ArrayLike):
    return E + A * (x + shift) ** -alpha


def halved_exponent(law, values):
    """Log-slope of y - E at x = shift, where it is half the exponent."""
    h = 1e-5
    y = law(**values, x=values["shift"] * jnp.exp(jnp.array([-h, h]))) - values["E"]
    return -jnp.log(y[1] / y[0]) / (2 * h)


law = Law(
    card=Card(
        "shifted_power",
        "a power of one input with a late start and a floor",
        tags={"one-input", "learning-curve"},
        sources=(alabdulmohsin2022,),
        scope="Shift and exponent trade off unless the runs reach well below and well above the shift.",
    ),
    inputs={"x": "the input"},
    output="y",
    curve=curve,
    params={
        "E": Param(dist.LogNormal(-0.5, 1.0), "floor"),
        "A": Param(dist.LogNormal(-0.7, 1.2), "coefficient (prior: of the term at the pivot)"),
        "shift": Param(dist.LogNormal(-2.0, 1.5), "input below which the curve is flat (prior: over the pivot)"),
        "alpha": Param(dist.LogNormal(-1.05, 0.5), "exponent"),
    },
    scales={"A": ("x", "alpha"), "shift": ("x", 1.0)},
    linear=("E", "A"),
    claims=(
        Claim(OURS, "alpha / 2", "log-slope of y - E at x = shift", halved_exponent, 0.175, 1e-6, evidence="derived"),
    ),
    example=dict(x=(1e5, 1e9, 24), noise=0.02, truth=dict(E=0.5, A=80.0, shift=1e6, alpha=0.35)),
    decreasing=("x",),
)
