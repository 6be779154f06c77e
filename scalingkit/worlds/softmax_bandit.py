"""Softmax bandit: a policy over K arms with fixed rewards, trained from m rollouts a step to be good at the best of N.

    pi = softmax(theta),   J_k = sum_a r_(a) (F_a**k - F_(a-1)**k),   F the policy's mass up to arm (a), rewards rising
    theta <- theta + lr sum_i (onehot(y_i) - pi) advantage_i          over a batch of prompts

Everything is known: J_k and its gradient in closed form, so each training-time estimator's mean gradient is
sum_j w_j grad J_(k_j), and its deployment value J_N is read off the policy, not estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpyro.distributions as dist
import xarray as xr
from scipy import special, stats

from scalingkit.core import lstatistics
from scalingkit.core.card import OURS, Card, Claim
from scalingkit.core.names import LEVEL, STEP, TARGET
from scalingkit.core.param import Param
from scalingkit.core.world import World, generator

# objective -> rollouts, N -> (nodes k_j, weights w_j): every one is sum_j w_j J_(k_j)
OBJECTIVES: dict[str, Callable[[int, float], tuple[tuple[int, ...], Any]]] = {
    "mean": lambda m, N: ((1,), (1.0,)),
    "max@m": lambda m, N: ((m,), (1.0,)),
    "tea": lambda m, N: ((m - 1, m), lstatistics.node_weights((m - 1, m), N)),
    "prefix_tea": lambda m, N: (lstatistics.nodes_of(m, 2), lstatistics.node_weights(lstatistics.nodes_of(m, 2), N)),
}


def rewards(arms: int) -> np.ndarray:
    """Rewards of the arms: normal quantiles, rising."""
    return stats.norm.ppf((np.arange(arms) + 0.5) / arms)


def value(pi: np.ndarray, r: np.ndarray, k: float) -> float:
    """J_k = E max of k draws from the policy (rewards rising)."""
    return float(r @ np.diff(np.concatenate([[0.0], np.cumsum(pi).clip(0, 1)]) ** k))


def gradient(pi: np.ndarray, r: np.ndarray, k: float) -> np.ndarray:
    """grad J_k in the logits: pi_a (dJ/dpi_a - sum_b pi_b dJ/dpi_b)."""
    up = k * np.concatenate([[0.0], np.cumsum(pi).clip(0, 1)]) ** (k - 1)
    # dJ/dpi_a = sum_(s >= a) r_s up_s - sum_(s > a) r_s up_(s-1)
    high = np.cumsum((r * up[1:])[::-1])[::-1]
    low = np.concatenate([np.cumsum((r * up[:-1])[::-1])[::-1][1:], [0.0]])
    slope = high - low
    return pi * (slope - pi @ slope)


def draw_gradient(rng: Any, pi: np.ndarray, r: np.ndarray, m: int, N: float, objective: str, prompts: int) -> Any:
    """The objective's gradient from ``prompts`` batches of m rollouts, leave-one-out advantages."""
    nodes, w = OBJECTIVES[objective](m, N)
    arms = rng.choice(r.size, (prompts, m), p=pi)
    statistic = lambda n: sum(  # noqa: E731
        (v * lstatistics.best_of(n, min(k, n)) for k, v in zip(nodes, w, strict=True)), np.zeros(n)
    )
    a = lstatistics.advantages(r[arms], statistic(m), statistic(m - 1))
    return np.bincount(arms.ravel(), a.ravel(), r.size) / prompts - pi * a.sum() / prompts


def simulate(key: Any, design: xr.Dataset, *, m: float, N: float, lr: float, arms: float) -> xr.Dataset:
    """``slope`` (target, level): gradient estimate at the uniform start; ``best`` (target, step): J_N in training.

    The design has the coordinates ``target`` (names of OBJECTIVES) and ``step``; 64 prompts a step.
    """
    rng = generator(key)
    m_, r = int(m), rewards(int(arms))
    steps = np.asarray(design[STEP].values, int)
    slope, best = [], []
    for name in design[TARGET].values.tolist():
        theta, curve = np.zeros(r.size), {}
        for step in range(int(steps.max()) + 1):
            pi = special.softmax(theta)
            if step in steps:
                curve[step] = value(pi, r, N)
            g = draw_gradient(rng, pi, r, m_, N, name, 64)
            if step == 0:
                slope.append(g)
            theta = theta + lr * g
        best.append([curve[s] for s in steps.tolist()])
    return design.assign_coords({LEVEL: np.arange(r.size)}).assign(
        slope=((TARGET, LEVEL), np.array(slope)), best=((TARGET, STEP), np.array(best))
    )


def exact_slope(design: xr.Dataset, *, m: float, N: float, lr: float, arms: float) -> np.ndarray:
    """sum_j w_j grad J_(k_j) at the uniform start, (target, level)."""
    r, pi = rewards(int(arms)), np.full(int(arms), 1 / int(arms))
    found = []
    for name in design[TARGET].values.tolist():
        nodes, w = OBJECTIVES[name](int(m), N)
        found.append(sum(v * gradient(pi, r, k) for k, v in zip(nodes, w, strict=True)))
    return np.array(found)


THETA = dict(m=8.0, N=64.0, lr=0.5, arms=10.0)


def _numeric(world: World) -> float:
    """Largest difference between grad J_64 and a central difference, on a tilted policy of ten arms."""
    r, theta = rewards(10), np.linspace(-1, 1, 10)
    step = np.eye(10) * 1e-5
    moved = [(value(special.softmax(theta + s), r, 64) - value(special.softmax(theta - s), r, 64)) / 2e-5 for s in step]
    return float(np.abs(np.array(moved) - gradient(special.softmax(theta), r, 64)).max())


world = World(
    card=Card(
        "softmax_bandit",
        "Arms with known rewards; a softmax policy trained for the best of N",
        tags={"best-of-n", "training"},
        sources=(OURS,),
        scope="No generalisation between prompts: one policy, one set of arms.",
    ),
    simulate=simulate,
    params={
        "m": Param(dist.Uniform(2.0, 256.0), "rollouts a prompt"),
        "N": Param(dist.LogNormal(4.0, 1.0), "samples at deployment"),
        "lr": Param(dist.LogNormal(-1.0, 1.0), "step size"),
        "arms": Param(dist.Uniform(2.0, 200.0), "number of arms"),
    },
    exact={"slope": exact_slope},
    claims=(Claim(OURS, "central differences", "gradient of J_64", _numeric, 0.0, 1e-8, evidence="derived"),),
    example=dict(design=xr.Dataset(coords={TARGET: list(OBJECTIVES), STEP: [0]}), theta=THETA),
)
