"""Farseer with a floor: the surface of ``farseer`` and an irreducible loss below it.

    L(N, D) = E + G(N) + exp(k(N) - A(N) log D)
    G(N) = G exp(G_slope s(gamma)),   A(N) = A exp(A_slope s(alpha)),   s(p) = ((N / N_ref)**p - 1) / p
    k(N) = log B + A log D_ref + (B_slope + A A_slope log D_ref) s(beta)

N parameters, D training tokens; N_ref = 1e9, D_ref = 1e11. The floor is ours: without it Farseer's loss falls to 0 as N
grows. Over the sizes of one study E and G are hard to tell apart; only the bend of G(N) does it.
"""

from __future__ import annotations

import numpyro.distributions as dist
from jax.typing import ArrayLike

from scalingkit.core import curves
from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.law import Law
from scalingkit.core.param import Param

N_REF, D_REF = 1e9, 1e11

farseer2025 = Source(
    "farseer2025", "Li et al. 2025, Predictable scale part II: Farseer, a refined scaling law in large language models",
    "2506.10972", "https://github.com/Farseer-Scaling-Law/Farseer",
)  # fmt: skip


def curve(
    N: ArrayLike, D: ArrayLike, E: ArrayLike, G: ArrayLike, G_slope: ArrayLike, gamma: ArrayLike, B: ArrayLike,
    B_slope: ArrayLike, beta: ArrayLike, A: ArrayLike, A_slope: ArrayLike, alpha: ArrayLike,
):  # fmt: skip
    return E + curves.farseer(N, D, (N_REF, D_REF), G, G_slope, gamma, B, B_slope, beta, A, A_slope, alpha)


def at_reference(law, values):
    """L at N_ref, D_ref: the three values alone, whatever the slopes and powers."""
    return law(**values, N=N_REF, D=D_REF)


law = Law(
    card=Card(
        "farseer_floor",
        "Farseer's loss surface with an irreducible loss",
        tags={"pretraining", "loss", "compute-optimal"},
        sources=(farseer2025, OURS),
        scope="Ten parameters: needs many sizes over two decades or more. An optimum may be absent, as in farseer.",
    ),
    inputs={"N": "parameters", "D": "training tokens"},
    output="loss",
    curve=curve,
    params={
        "E": Param(dist.LogNormal(0.3, 0.6), "irreducible loss", "nat"),
        "G": Param(dist.LogNormal(-0.7, 0.7), "size term at N_ref", "nat"),
        "G_slope": Param(dist.Normal(-0.2, 0.15), "log-slope of the size term in N at N_ref"),
        "gamma": Param(dist.Normal(0.0, 0.1), "power of N on which the log size term is linear"),
        "B": Param(dist.LogNormal(-2.5, 1.0), "data term at N_ref and D_ref", "nat"),
        "B_slope": Param(dist.Normal(0.2, 0.3), "log-slope of the data term in N at N_ref and D_ref"),
        "beta": Param(dist.Normal(-0.1, 0.1), "power of N on which the log data coefficient is linear"),
        "A": Param(dist.LogNormal(-1.2, 0.3), "data exponent at N_ref"),
        "A_slope": Param(dist.Normal(-0.15, 0.1), "log-slope of the data exponent in N at N_ref"),
        "alpha": Param(dist.Normal(0.15, 0.1), "power of N on which the log data exponent is linear"),
    },
    linear=("E", "G", "B"),
    claims=(
        Claim(OURS, "E + G + B", "loss at the reference", at_reference, 1.74, 1e-9, evidence="derived"),
    ),
    example=dict(
        N=(2e8, 2e10, 6), D=(2e9, 2e11, 6), noise=0.005,
        truth=dict(
            E=1.3, G=0.4, G_slope=-0.25, gamma=0.0, B=0.04, B_slope=0.3, beta=-0.1, A=0.31, A_slope=-0.19, alpha=0.12
        ),
    ),
    decreasing=("D",),
)  # fmt: skip
