"""Saturating: from a plateau at chance level down to a floor, a power law in between.

    y(x) = E + height / (1 + (x / x_half)**alpha)

x any positive input, y the outcome, in units of the table; E + height is what an untrained model scores, and half of
the way down is done at x_half. Far above x_half it is power_floor with A = height x_half**alpha. The curve is ours: it
is the explicit sibling of M4 of Alabdulmohsin et al. 2022, (y - E) / (y0 - y)**a = A x**-alpha, which for a = 1 is
exactly this one and for other a gives x as a function of y only.
"""

from __future__ import annotations

import jax
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


def curve(x: ArrayLike, E: ArrayLike, height: ArrayLike, x_half: ArrayLike, alpha: ArrayLike):
    return E + height * jax.nn.sigmoid(alpha * (jnp.log(x_half) - jnp.log(x)))


def implicit_form(law, values):
    """(y - E) / (y0 - y) * x**alpha at x = 1e8: the constant A of M4 with a = 1, which is x_half**alpha."""
    y = law(**values, x=1e8)
    return (y - values["E"]) / (values["E"] + values["height"] - y) * 1e8 ** values["alpha"]


law = Law(
    card=Card(
        "saturating",
        "from a plateau to a floor in one input",
        tags={"one-input", "learning-curve"},
        sources=(OURS, alabdulmohsin2022),
        scope="One fall, symmetric in log x. Where the runs show no plateau, height and x_half trade off.",
    ),
    inputs={"x": "the input"},
    output="y",
    curve=curve,
    params={
        "E": Param(dist.LogNormal(-0.5, 1.0), "floor"),
        "height": Param(dist.LogNormal(0.0, 1.0), "plateau above the floor"),
        "x_half": Param(dist.LogNormal(-1.0, 3.0), "input at which half the fall is done (prior: over the pivot)"),
        "alpha": Param(dist.LogNormal(-0.9, 0.5), "exponent"),
    },
    scales={"x_half": ("x", 1.0)},
    linear=("E", "height"),
    claims=(
        Claim(OURS, "x_half**alpha", "the constant of M4 with a = 1", implicit_form, 1e3, 1e-5, evidence="derived"),
    ),
    example=dict(x=(1e4, 1e9, 24), noise=0.02, truth=dict(E=0.3, height=2.0, x_half=1e6, alpha=0.5)),
    decreasing=("x",),
)
