"""Hierarchical corpora: several corpora whose loss surfaces share a form and resemble each other in their constants.

    loss = (E_c + a_c (N / N_REF)**-alpha_c + b_c (D / D_REF)**-beta_c) exp(noise z - noise**2 / 2)
    log E_c, log a_c, log b_c = log E, log a, log b + level_sd z - level_sd**2 / 2
    alpha_c, beta_c = alpha, beta + exponent_sd z,          every z ~ Normal(0, 1), each its own

N parameters, D tokens, loss in nats; a and b are the terms at N_REF = 1e9 and D_REF = 2e10; c is the run's corpus. All
the spreads have mean 1 or 0, and E[r**-alpha_c] is a Gaussian's moment, so the mean loss over all that is random is
known exactly, for ray and spread designs alike:

    E[loss] = E + a r**-alpha exp(exponent_sd**2 log(r)**2 / 2) + ...,   r = N / N_REF

Nothing here knows of the laws: a fit that recovers these constants has not been shown its own code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpyro.distributions as dist
import xarray as xr
from numpy.typing import ArrayLike

from scalingkit.core.card import OURS, Card, Claim
from scalingkit.core.names import CORPUS, FLOP_PER_PARAM_TOKEN, RUN, VARIABLES
from scalingkit.core.param import Param
from scalingkit.core.world import World, generator

N_REF, D_REF = 1e9, 2e10


def runs(corpora: Sequence[str], N: ArrayLike, D: ArrayLike) -> xr.Dataset:
    """A design: the pairs (N, D), arrays of one length, trained once on every corpus."""
    n, d = (np.tile(np.asarray(v, float), len(corpora)) for v in (N, D))
    labels = np.repeat(np.asarray(corpora, dtype=str), np.size(N))
    names = [f"{c}-{i}" for c in corpora for i in range(np.size(N))]
    values = {"N": n, "D": d, "C": FLOP_PER_PARAM_TOKEN * n * d}
    return xr.Dataset(
        {k: (RUN, v, {"units": VARIABLES[k].unit, "meaning": VARIABLES[k].meaning}) for k, v in values.items()},
        coords={RUN: names, CORPUS: (RUN, labels)},
        attrs={"source": "simulated", "params_kind": "total", "flops_kind": "6ND"},
    )


def ray(corpora: Sequence[str], sizes: ArrayLike, ratio: float = 20.0) -> xr.Dataset:
    """Every size at one number of tokens per parameter: the design from which the two terms cannot be told apart."""
    sizes = np.asarray(sizes, float)
    return runs(corpora, sizes, ratio * sizes)


def spread(corpora: Sequence[str], sizes: ArrayLike, ratios: ArrayLike = (5.0, 20.0, 80.0)) -> xr.Dataset:
    """Every size at several numbers of tokens per parameter."""
    N, M = (g.ravel() for g in np.meshgrid(np.asarray(sizes, float), np.asarray(ratios, float), indexing="ij"))
    return runs(corpora, N, N * M)


def isoflop(corpora: Sequence[str], budgets: ArrayLike, centres: ArrayLike, factor: float, count: int) -> xr.Dataset:
    """At every budget, ``count`` sizes from centre / factor to centre * factor, log-spaced."""
    u = np.linspace(-np.log(factor), np.log(factor), count)
    C, N0 = np.asarray(budgets, float)[:, None], np.asarray(centres, float)[:, None]
    N = N0 * np.exp(u)
    return runs(corpora, N.ravel(), (C / (FLOP_PER_PARAM_TOKEN * N)).ravel())


def constants(key: Any, design: xr.Dataset, **theta: float) -> xr.Dataset:
    """The true constants of each corpus under ``key``: E, a, alpha, b, beta with dim ``corpus``."""
    return _constants(generator(key), design, **theta)


def simulate(key: Any, design: xr.Dataset, **theta: float) -> xr.Dataset:
    """The design with ``loss``, and ``mean_loss``: the same without the runs' noise."""
    rng = generator(key)
    truth = _constants(rng, design, **theta)
    t = {k: v.values for k, v in truth.sel({CORPUS: design[CORPUS].values}).items()}
    size, data = np.log(design["N"].values / N_REF), np.log(design["D"].values / D_REF)
    mean = t["E"] + t["a"] * np.exp(-t["alpha"] * size) + t["b"] * np.exp(-t["beta"] * data)
    loss = mean * np.exp(theta["noise"] * rng.standard_normal(mean.size) - theta["noise"] ** 2 / 2)
    about = {"units": "nat", "meaning": VARIABLES["loss"].meaning}
    return design.assign(loss=(RUN, loss, about), mean_loss=(RUN, mean, about | {"meaning": "loss without noise"}))


def _constants(
    rng: np.random.Generator, design: xr.Dataset, *, E: float, a: float, alpha: float, b: float, beta: float,
    level_sd: float, exponent_sd: float, **_: float,
) -> xr.Dataset:  # fmt: skip
    labels = np.unique(design[CORPUS].values)
    z = rng.standard_normal((5, labels.size))
    level = np.exp(level_sd * z[:3] - level_sd**2 / 2)
    values = dict(E=E * level[0], a=a * level[1], b=b * level[2])
    values |= dict(alpha=alpha + exponent_sd * z[3], beta=beta + exponent_sd * z[4])
    return xr.Dataset({k: (CORPUS, v) for k, v in values.items()}, coords={CORPUS: labels})


def mean_loss(
    design: xr.Dataset, *, E: float, a: float, alpha: float, b: float, beta: float, exponent_sd: float = 0.0, **_: float
) -> np.ndarray:
    """E[loss] of each run over corpora and noise; shape (run,)."""
    size, data = np.log(design["N"].values / N_REF), np.log(design["D"].values / D_REF)
    return (
        E
        + a * np.exp(-alpha * size + (exponent_sd * size) ** 2 / 2)
        + b * np.exp(-beta * data + (exponent_sd * data) ** 2 / 2)
    )


def optimal_size(compute: ArrayLike, *, a: float, alpha: float, b: float, beta: float, **_: float) -> np.ndarray:
    """N*(C) of the population's surface under C = 6 N D, from alpha a r_N**-alpha = beta b r_D**-beta."""
    A, B = a * N_REF**alpha, b * D_REF**beta
    G = (alpha * A / (beta * B)) ** (1 / (alpha + beta))
    return G * (np.asarray(compute, float) / FLOP_PER_PARAM_TOKEN) ** (beta / (alpha + beta))


def optimal_tokens(compute: ArrayLike, **theta: float) -> np.ndarray:
    """D*(C) = C / (6 N*(C))."""
    return np.asarray(compute, float) / (FLOP_PER_PARAM_TOKEN * optimal_size(compute, **theta))


def _at_compute(function):
    return lambda design, **theta: function(design["C"].values, **theta)


def optimum_by_search(world: World) -> float:
    """N*(1e22) by search over 200,001 sizes, relative to the closed form."""
    theta = world.example["theta"] | {"exponent_sd": 0.0}
    N = np.geomspace(1e8, 1e12, 200_001)
    loss = mean_loss(runs(["one"], N, 1e22 / (FLOP_PER_PARAM_TOKEN * N)), **theta)
    return float(N[np.argmin(loss)] / optimal_size(1e22, **theta))


world = World(
    card=Card(
        "corpora",
        "corpora with related loss surfaces, on ray, spread and iso-FLOP designs",
        tags={"pretraining", "loss", "hierarchical"},
        sources=(OURS,),
        scope="One functional form for all corpora, and log-normal noise of one size: real tables have neither.",
    ),
    simulate=simulate,
    params={
        "E": Param(dist.LogNormal(0.53, 0.3), "irreducible loss, mean over corpora", "nat"),
        "a": Param(dist.LogNormal(-1.0, 0.7), "size term at N_REF, mean over corpora", "nat"),
        "alpha": Param(dist.LogNormal(-1.05, 0.3), "size exponent, mean over corpora"),
        "b": Param(dist.LogNormal(-1.0, 0.7), "data term at D_REF, mean over corpora", "nat"),
        "beta": Param(dist.LogNormal(-1.05, 0.3), "data exponent, mean over corpora"),
        "level_sd": Param(dist.HalfNormal(0.3), "sd between corpora of the logs of E, a and b"),
        "exponent_sd": Param(dist.HalfNormal(0.05), "sd between corpora of alpha and beta"),
        "noise": Param(dist.HalfNormal(0.02), "sd of the log loss of a run"),
    },
    exact={"loss": mean_loss, "N_opt": _at_compute(optimal_size), "D_opt": _at_compute(optimal_tokens)},
    claims=(
        Claim(OURS, "search against closed form", "N* at 1e22 FLOP", optimum_by_search, 1.0, 1e-4, evidence="derived"),
    ),
    example=dict(
        design=spread(["books", "code", "web"], np.geomspace(1e8, 4e9, 4)),
        theta=dict(E=1.8, a=0.35, alpha=0.34, b=0.33, beta=0.28, level_sd=0.1, exponent_sd=0.02, noise=0.01),
    ),
)
