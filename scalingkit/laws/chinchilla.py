"""Chinchilla: an irreducible part, a power law in size and a power law in data.

    L(N, D) = E + A / N**alpha + B / D**beta

N parameters, D training tokens, L nats per token. Form and first fit: Hoffmann et al. 2022; the values refitted from
the same figure: Besiroglu et al. 2024.
"""

from __future__ import annotations

import numpyro.distributions as dist
from jax.typing import ArrayLike

from scalingkit.core.card import Card, Claim, Source
from scalingkit.core.law import Law
from scalingkit.core.param import Param

hoffmann2022 = Source(
    "hoffmann2022", "Hoffmann et al. 2022, Training compute-optimal large language models", "2203.15556"
)
besiroglu2024 = Source(
    "besiroglu2024", "Besiroglu et al. 2024, Chinchilla scaling: a replication attempt", "2404.10102"
)


def curve(N: ArrayLike, D: ArrayLike, E: ArrayLike, A: ArrayLike, alpha: ArrayLike, B: ArrayLike, beta: ArrayLike):
    return E + A * N**-alpha + B * D**-beta


def size_exponent(law, values):
    """a of N* ~ C**a under C = 6 N D: beta / (alpha + beta)."""
    return values["beta"] / (values["alpha"] + values["beta"])


law = Law(
    card=Card(
        "chinchilla",
        "loss against parameters and tokens",
        tags={"pretraining", "loss", "compute-optimal"},
        sources=(hoffmann2022, besiroglu2024),
        scope="One data pass, one recipe. Says nothing about repeated data, precision or learning-rate mistakes.",
    ),
    inputs={"N": "parameters", "D": "training tokens"},
    output="loss",
    curve=curve,
    params={
        "E": Param(dist.LogNormal(0.53, 0.5), "irreducible loss", "nat"),
        "A": Param(dist.LogNormal(-0.7, 1.0), "size coefficient", "nat"),
        "alpha": Param(dist.LogNormal(-1.05, 0.4), "size exponent"),
        "B": Param(dist.LogNormal(-0.7, 1.0), "data coefficient", "nat"),
        "beta": Param(dist.LogNormal(-1.05, 0.4), "data exponent"),
    },
    scales={"A": ("N", "alpha"), "B": ("D", "beta")},
    linear=("E", "A", "B"),
    published={
        besiroglu2024: dict(E=1.8172, A=482.01, alpha=0.3478, B=2085.43, beta=0.3658),
        hoffmann2022: dict(E=1.69, A=406.4, alpha=0.34, B=410.7, beta=0.28),
    },
    claims=(
        Claim(
            besiroglu2024, "data_analysis.ipynb, a", "N* ~ C**a with a = beta/(alpha+beta)", size_exponent, 0.513, 0.002
        ),
        Claim(hoffmann2022, "Table 2, approach 3: a = 0.46", "N* ~ C**a", size_exponent, 0.46, 0.01),
    ),
    example=dict(N=(1e7, 1e10, 6), D=(1e9, 1e12, 6), noise=0.01),
    decreasing=("N", "D"),
)
