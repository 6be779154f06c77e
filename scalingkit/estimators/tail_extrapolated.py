"""TEA: E max of N rewards from m << N rollouts of a prompt, by extrapolating the best few along the harmonic numbers.

    TEA:        T = X_(m) + (H_N - H_m) m (J_m - J_(m-1)),   m (J_m - J_(m-1)) = X_(m) - X_(m-1)
    Prefix-TEA: T = sum_j w_j J_(k_j),  q + 1 nodes k_j <= m, weights that cancel q orders of bias in h(k) = H_k

J_k is the unbiased estimate of E max of k from the same m rollouts. Exact in the mean for exponential tails; elsewhere
the bias falls with m and with the order, and the scatter grows by up to the Lebesgue constant sum |w_j|. The advantages
are those of leave-one-out: use them in place of the reward's in a policy gradient. The abstract of the source names the
two estimators; these formulas are derived in this project.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import lstatistics, order
from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.estimator import Estimator
from scalingkit.core.names import PROBLEM, SAMPLE

TEA2026 = Source("tea2026", "Tail-extrapolated best-of-N policy optimisation (abstract)", "2605.10716")


def coefficients(
    m: int, N: float, *, order: int = 1, basis: Any = "harmonic", nodes: Sequence[int] | None = None
) -> np.ndarray:
    """c of T = sum_i c_i X_(i): order 0 the maximum, 1 TEA (nodes m-1, m), 2 and more Prefix-TEA (m / 2**q ... m)."""
    if order == 1 and nodes is None:
        return lstatistics.tea(m, N, basis)
    return lstatistics.prefix_tea(m, N, order, basis, nodes)


def value(rewards: Any, N: float, **options: Any) -> Any:
    """T of rewards (..., rollout), NumPy or JAX; options as of ``coefficients``."""
    return lstatistics.value(rewards, coefficients(rewards.shape[-1], N, **options))


def advantages(rewards: Any, N: float, **options: Any) -> Any:
    """T(X) - T'(X without i) of rewards (..., rollout), NumPy or JAX; options as of ``coefficients``.

    sum_i grad log pi(y_i) advantage_i is an unbiased estimate of grad E T: T' does not look at rollout i. For TEA and
    the maximum T' extrapolates the others by the same factor, so that only the best few carry an advantage; for
    Prefix-TEA it is T of m - 1 rollouts. Nodes, where given, must be <= rollouts - 1. ``order=0`` is max@m.
    """
    m = rewards.shape[-1]
    c = coefficients(m, N, **options)
    few = options.get("nodes") is None and (options.get("order", 1) < 2 or m >= N)
    return lstatistics.advantages(rewards, c, c[1:] if few else coefficients(m - 1, N, **options))


def estimate(
    data: xr.Dataset, *, N: float, by: str = "score", order: int = 1, basis: Any = "harmonic",
    nodes: Sequence[int] | None = None,
) -> xr.Dataset:  # fmt: skip
    """T per problem with its jackknife standard error, and on average over problems.

    data  variable ``by`` with dims (problem, sample), all there

    ``value``, ``se`` (problem); ``mean``, ``mean_se`` over problems; ``lebesgue``, ``order``. Raises ValueError for
    missing samples or too few of them.
    """
    x = np.asarray(data[by].transpose(PROBLEM, SAMPLE).values, float)
    if bad := np.argwhere(~np.isfinite(x)).tolist():
        raise ValueError(f"{by}: problem {bad[0][0]}, sample {bad[0][1]} is missing; TEA needs every rollout.")
    n, m = x.shape
    options: dict[str, Any] = dict(order=order, basis=basis, nodes=nodes)
    each = value(x, N, **options)
    without = each[:, None] - lstatistics.advantages(
        x, coefficients(m, N, **options), coefficients(m - 1, N, **options)
    )
    se = np.sqrt((m - 1) / m * ((without - without.mean(1, keepdims=True)) ** 2).sum(1))
    chosen = nodes or ((m - 1, m) if order == 1 else lstatistics.nodes_of(m, order))
    spread = each.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    labels = {PROBLEM: data[PROBLEM].values} if PROBLEM in data.coords else {}
    return xr.Dataset(
        dict(
            value=(PROBLEM, each), se=(PROBLEM, se), mean=each.mean(), mean_se=spread,
            lebesgue=lstatistics.lebesgue(chosen, N, basis), order=len(chosen) - 1,
        ),
        coords=labels, attrs=dict(N=float(N), rollouts=m),
    )  # fmt: skip


# ---------------------------------------------------------------- judged on the world "reward_tails"

THETA = dict(mu=1.0, tau=0.5, s=0.8, omega=0.3, xi=0.0)


def _rollouts(world: Any, key: Any) -> xr.Dataset:
    return world.simulate(key, xr.Dataset(coords={PROBLEM: np.arange(4000), SAMPLE: np.arange(8)}), **THETA)


def judge(world: Any, key: Any) -> tuple[float, float, float]:
    """E max of 256 from 8 rollouts with exponential tails, within 4.5 standard errors."""
    found = estimate(_rollouts(world, key), N=256)
    return float(found["mean"]), float(world.exact["best"](None, N=256, **THETA)), 4.5 * float(found["mean_se"])


def wrong(world: Any, key: Any) -> tuple[float, float, float]:
    """The best of the 8 taken for the best of 256."""
    found = estimate(_rollouts(world, key), N=256, order=0)
    return float(found["mean"]), float(world.exact["best"](None, N=256, **THETA)), 4.5 * float(found["mean_se"])


def normal_bias(order_: int, m: int = 64) -> float:
    """Exact bias of order q on standard normal rewards at N = 16 m."""
    nodes = lstatistics.nodes_of(m, order_)
    w = lstatistics.node_weights(nodes, 16 * m)
    return float(w @ order.normal_score(np.array(nodes, float)) - order.normal_score(16.0 * m))


estimator = Estimator(
    card=Card(
        "tail_extrapolated",
        "E max of N from m << N rollouts (TEA, Prefix-TEA), and the advantages to train on",
        tags={"best-of-n", "reward", "training"},
        sources=(TEA2026, OURS),
        scope="Assumes a regular upper tail; on bounded or discrete rewards the extrapolation has no ground.",
    ),
    estimate=estimate,
    world="reward_tails",
    judge=judge,
    wrong=wrong,
    claims=(
        Claim(OURS, "exact e_k", "bias, order 1, nodes 32 and 64", lambda e: normal_bias(1), 0.201, 6e-4, "derived"),
        Claim(OURS, "exact e_k", "bias, order 2", lambda e: normal_bias(2), -0.136, 6e-4, "derived"),
        Claim(OURS, "exact e_k", "bias, order 3", lambda e: normal_bias(3), 0.170, 6e-4, "derived"),
    ),
    example=dict(
        data=xr.Dataset({"score": ((PROBLEM, SAMPLE), np.array([[4.0, 1.0, 2.0], [0.0, 0.5, 0.25]]))}),
        options=dict(N=32),
    ),
)
