"""Power with a floor: a power law that ends at an irreducible part.

    y(x) = E + A x**-alpha

x any positive input, y the outcome, in units of the table. M2 of Alabdulmohsin et al. 2022.
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


def curve(x: ArrayLike, E: ArrayLike, A: ArrayLike, alpha: ArrayLike):
    return E + A * x**-alpha


def exponent_from_three(law, values):
    """Aitken: three outcomes at x, 10 x, 100 x give the exponent, with no knowledge of E and A."""
    y = law(**values, x=jnp.array([1e6, 1e7, 1e8]))
    return jnp.log10((y[0] - y[1]) / (y[1] - y[2]))


law = Law(
    card=Card(
        "power_floor",
        "a power of one input above a floor",
        tags={"one-input", "learning-curve"},
        sources=(alabdulmohsin2022,),
        scope="Where the runs do not bend, the floor is set by the prior.",
    ),
    inputs={"x": "the input"},
    output="y",
    curve=curve,
    params={
        "E": Param(dist.LogNormal(-0.5, 1.0), "floor"),
        "A": Param(dist.LogNormal(-0.7, 1.2), "coefficient (prior: of the term at the pivot)"),
        "alpha": Param(dist.LogNormal(-1.05, 0.5), "exponent"),
    },
    scales={"A": ("x", "alpha")},
    linear=("E", "A"),
    claims=(
        Claim(
            OURS, "Aitken's delta", "exponent from three outcomes", exponent_from_three, 0.35, 1e-8, evidence="derived"
        ),
    ),
    example=dict(x=(1e5, 1e9, 24), noise=0.02, truth=dict(E=0.5, A=80.0, alpha=0.35)),
    decreasing=("x",),
)
