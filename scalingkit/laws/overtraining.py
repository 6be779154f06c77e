"""Over-training: one exponent for compute, whatever the ratio of tokens to parameters.

    L(N, D) = E + (a M**eta + b M**-eta) C**-eta,   C = 6 N D,  M = D / N,  eta = alpha / 2

N parameters, D training tokens, C training compute in FLOP, M tokens per parameter, L nats per token. Curves of
constant M are parallel in log-log above E. It is Chinchilla with tied exponents: the two terms are
a 6**-eta N**-alpha and b 6**-eta D**-alpha. Form: Gadre et al. 2024, who write eta; alpha = 2 eta is the exponent of
size and data. Computed from N and D, because C**eta and M**eta nearly cancel.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.typing import ArrayLike

from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.law import Law
from scalingkit.core.names import FLOP_PER_PARAM_TOKEN
from scalingkit.core.param import Param

gadre2024 = Source(
    "gadre2024", "Gadre et al. 2024, Language models scale reliably with over-training and on downstream tasks",
    "2403.08540",
)  # fmt: skip


def curve(N: ArrayLike, D: ArrayLike, E: ArrayLike, a: ArrayLike, b: ArrayLike, alpha: ArrayLike):
    return E + FLOP_PER_PARAM_TOKEN ** (-alpha / 2) * (a * N**-alpha + b * D**-alpha)


def slope_in_compute(law, values):
    """Log-slope of L - E in C at M = 320: -eta, at any M."""
    C, M = jnp.array([1e20, 1e22]), 320.0
    above = law(**values, N=(C / (6 * M)) ** 0.5, D=(C * M / 6) ** 0.5) - values["E"]
    return jnp.log(above[1] / above[0]) / jnp.log(C[1] / C[0])


law = Law(
    card=Card(
        "overtraining",
        "loss against compute and tokens per parameter, one exponent",
        tags={"pretraining", "loss", "over-training"},
        sources=(gadre2024,),
        scope="Ties the exponents of size and data; where they differ, the best ratio M drifts with compute and this law "
        "cannot say so. The paper's coefficients are not repeated here; the example's values are ours.",
    ),
    inputs={"N": "parameters", "D": "training tokens"},
    output="loss",
    curve=curve,
    params={
        "E": Param(dist.LogNormal(0.53, 0.5), "irreducible loss", "nat"),
        "a": Param(dist.LogNormal(-0.45, 1.0), "coefficient of M**eta: the size term", "nat"),
        "b": Param(dist.LogNormal(-0.45, 1.0), "coefficient of M**-eta: the data term", "nat"),
        "alpha": Param(dist.LogNormal(-1.3, 0.4), "common exponent of size and data, 2 eta"),
    },
    scales={"a": ("N", "alpha"), "b": ("D", "alpha")},
    linear=("E", "a", "b"),
    claims=(
        Claim(
            OURS, "from the formula", "the log-slope in compute is -alpha/2 at every M", slope_in_compute, -0.125, 1e-9,
            evidence="derived",
        ),
    ),
    example=dict(
        N=(1e7, 1e10, 6), D=(1e8, 1e12, 6), noise=0.01, truth=dict(E=1.65, a=115.0, b=330.0, alpha=0.25)
    ),
    decreasing=("N", "D"),
)  # fmt: skip
