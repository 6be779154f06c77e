"""Data-constrained: repeated tokens, and parameters beyond what the unique tokens call for, are worth less and less.

    L(N, D, U) = E + A / N_eff**alpha + B / D_eff**beta
    D_eff = U + U R_D (1 - exp(-(D / U - 1) / R_D))
    N_eff = V + V R_N (1 - exp(-(N / V - 1) / R_N)),   V = min(N, (alpha A / (beta B))**(1/alpha) U**(beta/alpha))

N parameters, D training tokens seen, U unique tokens among them (U >= D: no repetition), V the size that is optimal
for U tokens, L nats per token. R_D and R_N say after how many repeats most of the worth is used up: D_eff never
exceeds U (1 + R_D). Form and values: Muennighoff et al. 2023.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.typing import ArrayLike

from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.law import Law
from scalingkit.core.param import Param

muennighoff2023 = Source(
    "muennighoff2023", "Muennighoff et al. 2023, Scaling data-constrained language models", "2305.16264",
    "https://github.com/huggingface/datablations",
)  # fmt: skip


def worth(total, unique, R):
    """Effective amount of ``total`` units of which the first ``unique`` count in full."""
    first = jnp.minimum(unique, total)
    return first * (1.0 - R * jnp.expm1(-(total / first - 1.0) / R))


def curve(
    N: ArrayLike, D: ArrayLike, U: ArrayLike, E: ArrayLike, A: ArrayLike, alpha: ArrayLike, B: ArrayLike,
    beta: ArrayLike, R_D: ArrayLike, R_N: ArrayLike,
):  # fmt: skip
    unique = jnp.minimum(U, D)
    log_size = (jnp.log(alpha * A) - jnp.log(beta * B) + beta * jnp.log(unique)) / alpha
    # the size that is optimal for the unique tokens; beyond N it plays no part, so its log is cut there
    size = jnp.exp(jnp.minimum(log_size, jnp.log(N)))
    return E + A * worth(N, size, R_N) ** -alpha + B * worth(D, unique, R_D) ** -beta


def loss_with(U):
    """L of 1e9 parameters trained on 1e11 tokens of which U are unique."""
    return lambda law, values: law(**values, N=1e9, D=1e11, U=U)


law = Law(
    card=Card(
        "data_constrained",
        "loss against parameters, tokens and unique tokens",
        tags={"pretraining", "loss", "repeated-data"},
        sources=(muennighoff2023,),
        scope="Repetition never hurts in this form, while very many passes do hurt in the runs (overfitting). The printed "
        "constants lie some 8-10% below the published final losses: refit them.",
    ),
    inputs={"N": "parameters", "D": "training tokens seen", "U": "unique training tokens"},
    output="loss",
    curve=curve,
    params={
        "E": Param(dist.LogNormal(0.53, 0.5), "irreducible loss", "nat"),
        "A": Param(dist.LogNormal(-0.7, 1.0), "size coefficient", "nat"),
        "alpha": Param(dist.LogNormal(-1.05, 0.4), "size exponent"),
        "B": Param(dist.LogNormal(-0.7, 1.0), "data coefficient", "nat"),
        "beta": Param(dist.LogNormal(-1.05, 0.4), "data exponent"),
        "R_D": Param(dist.LogNormal(2.3, 1.0), "repeats after which repeated tokens have lost most of their worth"),
        "R_N": Param(dist.LogNormal(1.6, 1.0), "the same for parameters beyond the size that suits the unique tokens"),
    },
    scales={"A": ("N", "alpha"), "B": ("D", "beta")},
    alike={"U": "D"},
    linear=("E",),
    published={
        # printed as logarithms: log A 6.255414, log B 7.3049974, log E 0.6254804
        muennighoff2023: dict(
            E=1.8691437, A=520.82495, alpha=0.3526596, B=1487.7161, beta=0.3526596, R_D=15.387756, R_N=5.309743
        ),
    },
    claims=(
        Claim(
            OURS, "at the constants in the README of the source", "L with 1e10 unique tokens of 1e11", loss_with(1e10),
            2.43769, 5e-6, evidence="derived",
        ),
        Claim(
            OURS, "at the constants in the README of the source", "L with 1e11 unique tokens", loss_with(1e11),
            2.41454, 5e-6, evidence="derived",
        ),
    ),
    example=dict(N=(1e7, 1e10, 5), D=(1e9, 1e12, 5), U=(1e9, 1e11, 3), noise=0.01),
    decreasing=("N", "D", "U"),
)  # fmt: skip
