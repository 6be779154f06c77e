"""Precision-aware: training weights in few bits takes parameters away.

    L(N, D, P) = E + A / (N (1 - exp(-P / gamma)))**alpha + B / D**beta

N parameters, D training tokens, P bits per weight in training, L nats per token. At one fixed P this is Chinchilla with
a larger A. Form: Kumar et al. 2024, with one factor (1 - exp(-P / gamma)) each for weights, activations and the
key-value cache; here only the weights' precision varies. Where all three share one P, read gamma as that of the product.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.typing import ArrayLike

from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.law import Law
from scalingkit.core.param import Param

kumar2024 = Source("kumar2024", "Kumar et al. 2024, Scaling laws for precision", "2411.04330")


def curve(
    N: ArrayLike, D: ArrayLike, P: ArrayLike, E: ArrayLike, A: ArrayLike, alpha: ArrayLike, B: ArrayLike,
    beta: ArrayLike, gamma: ArrayLike,
):  # fmt: skip
    left = -jnp.expm1(-P / gamma)
    return E + A * (N * left) ** -alpha + B * D**-beta


def size_lost(law, values):
    """Share of the size term that P = 4 bits add to it, against P = 16: a change of A, whatever N and D are."""
    at = dict(values, E=0.0, B=0.0)
    return law(**at, N=1e9, D=1e11, P=4.0) / law(**at, N=1e9, D=1e11, P=16.0) - 1


law = Law(
    card=Card(
        "precision_aware",
        "loss against parameters, tokens and bits per weight in training",
        tags={"pretraining", "loss", "precision"},
        sources=(kumar2024,),
        scope="Quantised training only: quantising after training is another effect. The paper's constants are not "
        "repeated here, because they were not checked against it; the example's values are ours.",
    ),
    inputs={"N": "parameters", "D": "training tokens", "P": "bits per weight in training"},
    output="loss",
    curve=curve,
    params={
        "E": Param(dist.LogNormal(0.53, 0.5), "irreducible loss", "nat"),
        "A": Param(dist.LogNormal(-0.7, 1.0), "size coefficient", "nat"),
        "alpha": Param(dist.LogNormal(-1.05, 0.4), "size exponent"),
        "B": Param(dist.LogNormal(-0.7, 1.0), "data coefficient", "nat"),
        "beta": Param(dist.LogNormal(-1.05, 0.4), "data exponent"),
        "gamma": Param(dist.LogNormal(0.9, 0.6), "bits over which the effective size falls away", "bit"),
    },
    scales={"A": ("N", "alpha"), "B": ("D", "beta")},
    linear=("E", "A", "B"),
    claims=(
        Claim(
            OURS, "(0.79810 / 0.99834)**-0.35 - 1 at gamma 2.5", "4 bits raise the size term by this share", size_lost,
            0.08150, 1e-5, evidence="derived",
        ),
    ),
    example=dict(
        N=(1e7, 1e10, 5), D=(1e9, 1e12, 5), P=(3.0, 16.0, 4), noise=0.01,
        truth=dict(E=1.8, A=480.0, alpha=0.35, B=2000.0, beta=0.37, gamma=2.5),
    ),
    decreasing=("N", "D", "P"),
)  # fmt: skip
