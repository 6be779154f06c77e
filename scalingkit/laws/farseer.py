"""Farseer: a stretched exponential in size, and a data term whose exponent and coefficient depend on size.

    L(N, D) = G(N) + exp(k(N) - A(N) log D)
    G(N) = G exp(G_slope s(gamma)),   A(N) = A exp(A_slope s(alpha)),   s(p) = ((N / N_ref)**p - 1) / p
    k(N) = log B + A log D_ref + (B_slope + A A_slope log D_ref) s(beta)

N parameters, D training tokens, L bits per character; N_ref = 1e9, D_ref = 1e11. The paper writes G(N), exp k(N) and
A(N) as exp(a N**p + b); for small p only the product a p is determined, so here each is told by its value and log-slope
in N at the reference: G the size term, B the data term, A the data exponent. Form and constants: Li et al. 2025.

There is no irreducible loss: with G_slope < 0 < gamma the loss falls to 0 (``farseer_floor`` adds one). And A(N) falls
to 0, so on an iso-compute curve a huge model with hardly any data can look best: at the printed constants there is no
interior optimum from 1e23 FLOP on.
"""

from __future__ import annotations

import math

import numpy as np
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
    N: ArrayLike, D: ArrayLike, G: ArrayLike, G_slope: ArrayLike, gamma: ArrayLike, B: ArrayLike, B_slope: ArrayLike,
    beta: ArrayLike, A: ArrayLike, A_slope: ArrayLike, alpha: ArrayLike,
):  # fmt: skip
    return curves.farseer(N, D, (N_REF, D_REF), G, G_slope, gamma, B, B_slope, beta, A, A_slope, alpha)


def from_printed(a1, b1, alpha, a2, b2, beta, a3, b3, gamma):
    """Values and log-slopes at the reference, of the paper's constants.

    exp(a3 N**gamma + b3) + exp(a2 N**beta + b2) D**-exp(a1 N**alpha + b1)
    """
    A = math.exp(a1 * N_REF**alpha + b1)
    A_slope = a1 * alpha * N_REF**alpha
    B = math.exp(a2 * N_REF**beta + b2 - A * math.log(D_REF))
    B_slope = a2 * beta * N_REF**beta - A * A_slope * math.log(D_REF)
    G, G_slope = math.exp(a3 * N_REF**gamma + b3), a3 * gamma * N_REF**gamma
    return dict(G=G, G_slope=G_slope, gamma=gamma, B=B, B_slope=B_slope, beta=beta, A=A, A_slope=A_slope, alpha=alpha)


def interior_ratios(law, values, C, sizes=(1e8, 1e11)):
    """D/N at each local minimum of the loss on C = 6 N D strictly inside ``sizes``; empty: no interior optimum."""
    N = np.geomspace(*sizes, 20_001)
    L = np.asarray(law(**values, N=N, D=C / (6 * N)))
    inside = (L[1:-1] < L[:-2]) & (L[1:-1] < L[2:])
    return C / (6 * N[1:-1][inside] ** 2)


def ratio_at(C):
    return lambda law, values: interior_ratios(law, values, C)[0]


def minima_at(C):
    return lambda law, values: interior_ratios(law, values, C).size


_where = "at the printed constants"

law = Law(
    card=Card(
        "farseer",
        "loss surface whose data exponent depends on size",
        tags={"pretraining", "loss", "compute-optimal"},
        sources=(farseer2025,),
        scope="No irreducible loss, and often no interior optimum at large compute. The printed constants are coarse: "
        "half a unit in the last digit of beta moves the data coefficient by a factor of e.",
    ),
    inputs={"N": "parameters", "D": "training tokens"},
    output="loss",
    curve=curve,
    params={
        "G": Param(dist.LogNormal(0.3, 0.6), "size term at N_ref", "nat"),
        "G_slope": Param(dist.Normal(-0.1, 0.1), "log-slope of the size term in N at N_ref"),
        "gamma": Param(dist.Normal(0.15, 0.1), "power of N on which the log size term is linear"),
        "B": Param(dist.LogNormal(-2.5, 1.0), "data term at N_ref and D_ref", "nat"),
        "B_slope": Param(dist.Normal(0.2, 0.3), "log-slope of the data term in N at N_ref and D_ref"),
        "beta": Param(dist.Normal(-0.1, 0.1), "power of N on which the log data coefficient is linear"),
        "A": Param(dist.LogNormal(-1.2, 0.3), "data exponent at N_ref"),
        "A_slope": Param(dist.Normal(-0.15, 0.1), "log-slope of the data exponent in N at N_ref"),
        "alpha": Param(dist.Normal(0.15, 0.1), "power of N on which the log data exponent is linear"),
    },
    linear=("G", "B"),
    published={
        farseer2025: from_printed(
            a1=-0.124, b1=0.424, alpha=0.123, a2=88.01, b2=-6.287, beta=-0.1, a3=-0.021, b3=-0.091, gamma=0.169
        ),
    },
    claims=(
        Claim(OURS, _where, "optimal D/N at 1e19 FLOP", ratio_at(1e19), 17.3, 0.06, evidence="derived"),
        Claim(OURS, _where, "optimal D/N at 1e21 FLOP", ratio_at(1e21), 10.9, 0.06, evidence="derived"),
        Claim(OURS, _where, "interior optima at 1e23 FLOP", minima_at(1e23), 0.0, 0.0, evidence="derived"),
    ),
    example=dict(N=(2e8, 2e10, 6), D=(2e9, 2e11, 6), noise=0.005),
    decreasing=("D",),
)
