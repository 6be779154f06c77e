"""Broken power: two power laws joined smoothly, above a floor.

    y(x) = E + A x**-alpha (1 + (x / x_break)**(1 / width))**-(delta width)

x any positive input, y the outcome, in units of the table. The log-slope of y - E is -alpha well before x_break and
-(alpha + delta) well after it; width says over how many e-folds it turns. With delta < -alpha the curve rises again.
Form: Caballero et al. 2022 (a, b, c0, c1, d1, f1 = E, A, alpha, delta, x_break, width) with one break. Computed in logs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.typing import ArrayLike

from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.law import Law
from scalingkit.core.param import Param

caballero2022 = Source("caballero2022", "Caballero et al. 2022, Broken neural scaling laws", "2210.14891")


def curve(
    x: ArrayLike, E: ArrayLike, A: ArrayLike, alpha: ArrayLike, x_break: ArrayLike, delta: ArrayLike, width: ArrayLike
):
    turn = delta * width * jax.nn.softplus((jnp.log(x) - jnp.log(x_break)) / width)
    return E + jnp.exp(jnp.log(A) - alpha * jnp.log(x) - turn)


def slope_near(x):
    """Log-slope of y - E at ``x``."""

    def quantity(law, values):
        y = law(**(values | {"E": 0.0}), x=jnp.array([x, 10 * x]))
        return jnp.log10(y[1] / y[0])

    return quantity


law = Law(
    card=Card(
        "broken_power",
        "two powers of one input joined at a break",
        tags={"one-input", "learning-curve"},
        sources=(caballero2022,),
        scope="A break outside the runs is not determined by them. One break only.",
    ),
    inputs={"x": "the input"},
    output="y",
    curve=curve,
    params={
        "E": Param(dist.LogNormal(-0.5, 1.0), "floor"),
        "A": Param(dist.LogNormal(-0.7, 1.2), "coefficient (prior: of the term at the pivot)"),
        "alpha": Param(dist.Normal(0.25, 0.3), "exponent before the break"),
        "x_break": Param(dist.LogNormal(0.0, 2.5), "input at the break (prior: over the pivot)"),
        "delta": Param(dist.Normal(0.0, 0.4), "what the break adds to the exponent"),
        "width": Param(dist.LogNormal(-0.7, 0.7), "e-folds of x over which the slope turns"),
    },
    scales={"A": ("x", "alpha"), "x_break": ("x", 1.0)},
    linear=("E", "A"),
    claims=(
        Claim(OURS, "-alpha", "log-slope far below the break", slope_near(1e-3), -0.15, 1e-6, evidence="derived"),
        Claim(OURS, "-(alpha + delta)", "log-slope far above it", slope_near(1e18), -0.5, 1e-6, evidence="derived"),
    ),
    example=dict(
        x=(1e5, 1e9, 24), noise=0.02, truth=dict(E=0.2, A=10.0, alpha=0.15, x_break=1e7, delta=0.35, width=0.5)
    ),
)
