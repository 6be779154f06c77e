"""Kaplan: size and data bound the loss together, through one outer power; no irreducible part.

    L(N, D) = [(Nc / N)**(alpha_N / alpha_D) + Dc / D]**alpha_D

N non-embedding parameters, D training tokens, L nats per token. With unlimited data L = (Nc / N)**alpha_N, with an
unlimited model L = (Dc / D)**alpha_D. Form and values: Kaplan et al. 2020, equation 1.5 and Table 2. Computed in logs.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.typing import ArrayLike

from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.law import Law
from scalingkit.core.param import Param

kaplan2020 = Source("kaplan2020", "Kaplan et al. 2020, Scaling laws for neural language models", "2001.08361")


def curve(N: ArrayLike, D: ArrayLike, Nc: ArrayLike, alpha_N: ArrayLike, Dc: ArrayLike, alpha_D: ArrayLike):
    size, data = jnp.log(Nc) - jnp.log(N), jnp.log(Dc) - jnp.log(D)
    return jnp.exp(alpha_D * jnp.logaddexp(alpha_N / alpha_D * size, data))


def data_for_size(law, values):
    """Exponent r of D ~ N**r that keeps the two parts in proportion."""
    return values["alpha_N"] / values["alpha_D"]


def loss_with_unlimited_data(law, values):
    """L at 1e9 parameters as D grows without limit."""
    return law(**values, N=1e9, D=1e30)


law = Law(
    card=Card(
        "kaplan",
        "loss against parameters and tokens, jointly bounded",
        tags={"pretraining", "loss", "compute-optimal"},
        sources=(kaplan2020,),
        scope="Has no floor, so it must fail at scale; fitted on WebText2 with a fixed schedule.",
    ),
    inputs={"N": "non-embedding parameters", "D": "training tokens"},
    output="loss",
    curve=curve,
    params={
        "Nc": Param(dist.LogNormal(12.0, 3.0), "size at which a model with unlimited data has a loss of 1", "parameter"),
        "alpha_N": Param(dist.LogNormal(-2.5, 0.35), "size exponent"),
        "Dc": Param(dist.LogNormal(6.5, 2.5), "data at which an unlimited model has a loss of 1", "token"),
        "alpha_D": Param(dist.LogNormal(-2.3, 0.35), "data exponent"),
    },
    scales={"Nc": ("N", 1.0), "Dc": ("D", 1.0)},
    published={kaplan2020: dict(Nc=6.4e13, alpha_N=0.076, Dc=1.8e13, alpha_D=0.103)},
    claims=(
        Claim(kaplan2020, "equation 4.4", "data must grow as N**0.74", data_for_size, 0.74, 0.005),
        Claim(
            OURS, "L(N, D) as D grows", "(Nc/N)**alpha_N at N = 1e9", loss_with_unlimited_data,
            6.4e4**0.076, 1e-6, evidence="derived",
        ),
    ),
    example=dict(N=(1e7, 1e10, 6), D=(1e9, 1e12, 6), noise=0.01),
    decreasing=("N", "D"),
)  # fmt: skip
