"""L-statistics for training on the best of N: sums of sorted rewards, and what each rollout adds to them.

    T(X) = sum_i c_i X_(i)                                  X_(1) <= ... <= X_(m), m rollouts of one prompt
    advantage of rollout i = T(X) - T(X without i)          grad E T = sum_i E[grad log pi(y_i) advantage_i]
    J_k  : c = P(best of k is the i-th of m)                unbiased for E max of k, k <= m
    TEA  : X_(m) + (h(N) - h(m)) (X_(m) - X_(m-1)) / (h(m) - h(m-1))
    Prefix-TEA: sum_j w_j J_(k_j),  sum_j w_j = 1,  sum_j w_j (h(k_j) - h(N))**l = 0 for l = 1..q

h(k) = H_k is exact for exponential tails, h(k) = e_k for normal rewards. The identity of the gradient holds for every
symmetric statistic, because T without i does not depend on y_i. Which formula the source paper prints is not known
here: these are derived in this project. Works on NumPy and JAX arrays (..., rollout), in a trainer's own program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scalingkit.core import order

BASES: dict[str, Callable[[Any], Any]] = {"harmonic": order.harmonic, "normal": order.normal_score}


def nodes_of(m: int, q: int) -> tuple[int, ...]:
    """Default nodes of order q: m / 2**q, ..., m / 2, m; for q = 0 the largest alone."""
    found = tuple(sorted({max(1, m >> j) for j in range(q + 1)}))
    if len(found) != q + 1:
        raise ValueError(f"{m} rollouts hold no {q + 1} different nodes; take a lower order or more rollouts.")
    return found


def node_weights(nodes: Sequence[int], N: float, basis: str | Callable[[Any], Any] = "harmonic") -> np.ndarray:
    """Lagrange weights at h(N): sum 1, and exact for J a polynomial in h of degree len(nodes) - 1."""
    h = _basis(basis)
    x, at = np.asarray(h(np.asarray(nodes, float)), float), float(h(float(N)))
    if len(set(nodes)) != len(nodes) or (np.diff(np.sort(x)) == 0).any():
        raise ValueError(f"nodes {tuple(nodes)} must be different.")
    return np.array([np.prod([(at - x[k]) / (x[j] - x[k]) for k in range(len(x)) if k != j]) for j in range(len(x))])


def lebesgue(nodes: Sequence[int], N: float, basis: str | Callable[[Any], Any] = "harmonic") -> float:
    """sum_j |w_j|: by how much scatter in the J_k can be blown up. About 50 for three halving nodes and N = 16 m."""
    return float(np.abs(node_weights(nodes, N, basis)).sum())


def best_of(m: int, k: int) -> np.ndarray:
    """c of J_k, the U-statistic of E max of k."""
    if not 1 <= k <= m:
        raise ValueError(f"k = {k} must lie between 1 and the {m} rollouts.")
    return order.rank_weights(m, k)[0]


def prefix_tea(
    m: int, N: float, q: int = 1, basis: str | Callable[[Any], Any] = "harmonic", nodes: Sequence[int] | None = None
) -> np.ndarray:
    """c of Prefix-TEA of order q (default nodes m / 2**q ... m). q = 0 is the maximum of m. N <= m gives J_N itself."""
    if nodes is None and m >= N:
        return best_of(m, int(N))
    chosen = nodes_of(m, q) if nodes is None else tuple(nodes)
    return sum((w * best_of(m, k) for w, k in zip(node_weights(chosen, N, basis), chosen, strict=True)), np.zeros(m))


def tea(m: int, N: float, basis: str | Callable[[Any], Any] = "harmonic") -> np.ndarray:
    """c of TEA, the two confluent nodes m - 1 and m. N = m is the maximum."""
    if m < 2:
        raise ValueError("TEA needs two rollouts: it extrapolates by the gap between the two best.")
    return prefix_tea(m, N, nodes=(m - 1, m), basis=basis)


def mean(m: int) -> np.ndarray:
    """c of the mean reward, the usual objective."""
    return np.full(m, 1 / m)


def value(rewards: Any, c: np.ndarray) -> Any:
    """T(X) along the last axis."""
    xp = _namespace(rewards)
    return xp.sort(rewards, axis=-1) @ xp.asarray(c)


def advantages(rewards: Any, c: np.ndarray, without: np.ndarray) -> Any:
    """T(X) - T'(X without i) for every rollout i along the last axis.

    c        of T, for m rollouts
    without  of T', for m - 1; any will do as a baseline, since it does not look at rollout i. T' = T of m - 1 rollouts
             is the plain leave-one-out

    One sort and two cumulative sums: O(m log m) a prompt. Equal rewards get equal advantages. Raises ValueError for
    fewer than two rollouts.
    """
    m = rewards.shape[-1]
    if m < 2:
        raise ValueError("leave-one-out needs at least two rollouts a prompt.")
    xp = _namespace(rewards)
    rank = xp.argsort(rewards, axis=-1)
    x = xp.take_along_axis(rewards, rank, -1)
    zero = xp.zeros_like(x[..., :1])
    c, without = xp.asarray(c), xp.broadcast_to(xp.asarray(without), (*x.shape[:-1], m - 1))
    # without rank r the lower ones keep their place and the higher ones move down by one
    below = xp.concatenate([zero, xp.cumsum(x[..., :-1] * without, -1)], -1)
    high = x[..., 1:] * without
    above = xp.concatenate([xp.cumsum(high[..., ::-1], -1)[..., ::-1], zero], -1)
    sorted_advantage = (x @ c)[..., None] - (below + above)
    return xp.take_along_axis(sorted_advantage, xp.argsort(rank, axis=-1), -1)


def _basis(basis: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    if callable(basis):
        return basis
    if basis not in BASES:
        raise ValueError(f"basis {basis!r} is not one of {', '.join(BASES)}, nor a function h(k).")
    return BASES[basis]


def _namespace(array: Any) -> Any:
    """NumPy, or jax.numpy for JAX arrays and tracers; JAX is not loaded for NumPy's."""
    if type(array).__module__.startswith("jax"):
        import jax.numpy as jnp

        return jnp
    return np
