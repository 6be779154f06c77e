"""Power: a straight line in log-log.

    y(x) = A x**-alpha

x any positive input (tokens, compute, samples, ...), y the outcome, in units of the table. M1 of Alabdulmohsin et al.
2022. Where y rises with x, alpha is negative.
"""

from __future__ import annotations

import numpyro.distributions as dist
from jax.typing import ArrayLike

from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.law import Law
from scalingkit.core.param import Param

alabdulmohsin2022 = Source(
    "alabdulmohsin2022", "Alabdulmohsin, Neyshabur, Zhai 2022, Revisiting neural scaling laws in language and vision",
    "2209.06640",
)  # fmt: skip


def curve(x: ArrayLike, A: ArrayLike, alpha: ArrayLike):
    return A * x**-alpha


def per_decade(law, values):
    """Factor by which y changes over a decade of x."""
    return law(**values, x=1e7) / law(**values, x=1e6)


law = Law(
    card=Card(
        "power",
        "a power of one input",
        tags={"one-input", "learning-curve"},
        sources=(alabdulmohsin2022,),
        scope="No floor and no plateau: extrapolates to 0. Compare with power_floor before believing it.",
    ),
    inputs={"x": "the input"},
    output="y",
    curve=curve,
    params={
        "A": Param(dist.LogNormal(0.0, 2.0), "outcome at x = 1 (prior: at the pivot)"),
        "alpha": Param(dist.Normal(0.2, 0.4), "exponent"),
    },
    scales={"A": ("x", "alpha")},
    linear=("A",),
    claims=(Claim(OURS, "10**-0.25", "change over a decade", per_decade, 0.562341, 1e-6, evidence="derived"),),
    example=dict(x=(1e5, 1e9, 24), noise=0.02, truth=dict(A=30.0, alpha=0.25)),
)
