"""NUTS: warm-up and draws of one chain inside one compiled function, data as arguments; chains side by side in threads.

The kernel is NumPyro's. Compiled once for each (model, shapes, settings) and found again for later fits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import NUTS
from numpyro.infer.util import initialize_model

from scalingkit.infer.model import Model
from scalingkit.infer.prepare import Data


class Chains(NamedTuple):
    """Unconstrained draws (chain, draw, ...) by site, and what the sampler says of each."""

    z: dict[str, np.ndarray]
    diverging: np.ndarray
    energy: np.ndarray
    n_steps: np.ndarray
    acceptance_rate: np.ndarray
    step_size: np.ndarray


@dataclass(frozen=True)
class Settings:
    """Length and target of a run. Hashable: it keys the compiled functions."""

    tune: int
    draws: int
    target_accept: float
    max_tree_depth: int = 10


class Potential(NamedTuple):
    """-log density in unconstrained space, how to come back, and a first point."""

    value: Callable[[Any, Data], Any]
    natural: Callable[[Any, Data], dict[str, Any]]
    start: dict[str, np.ndarray]


def potential(model: Model, data: Data, seed: int) -> Potential:
    """The potential of ``model`` as a function of (z, data)."""
    info = initialize_model(jax.random.key(seed), model, model_args=(data,), dynamic_args=True, validate_grad=False)
    return Potential(
        lambda z, d: info.potential_fn(d)(z),
        lambda z, d: info.postprocess_fn(d)(z),
        {k: np.asarray(v) for k, v in info.param_info.z.items()},
    )


def sample(
    model: Model, data: Data, starts: list[dict[str, np.ndarray]], settings: Settings, seed: int, device: Any
) -> Chains:
    """One chain from each start."""
    run = _chain(model, settings)
    keys = jax.random.split(jax.random.key(seed), len(starts))
    with jax.default_device(device):
        data = jax.device_put(data, device)
        points = [jax.device_put({k: jnp.asarray(v) for k, v in s.items()}, device) for s in starts]
        compiled = run.lower(keys[0], points[0], data).compile()
        work = min(len(starts), os.cpu_count() or 1) if device.platform == "cpu" else 1
        with ThreadPoolExecutor(work) as pool:
            ends = list(pool.map(lambda a: jax.block_until_ready(compiled(*a, data)), zip(keys, points, strict=True)))
    z = {k: np.stack([np.asarray(e[0][k]) for e in ends]) for k in ends[0][0]}
    return Chains(z, *(np.stack([np.asarray(e[i]) for e in ends]) for i in range(1, 6)))


@lru_cache(maxsize=64)
def _chain(model: Model, settings: Settings) -> Any:
    kernel = NUTS(
        model, dense_mass=[(*model.block, *(model.site(k) for k in model.likelihood.nuisance() if not model.pools[k].dims))], target_accept_prob=settings.target_accept, max_tree_depth=settings.max_tree_depth,
    )  # fmt: skip

    def run(seed: Any, start: Any, data: Data) -> Any:
        state = kernel.init(seed, settings.tune, start, (data,), {})
        state, _ = jax.lax.scan(lambda s, _: (kernel.sample(s, (data,), {}), None), state, None, length=settings.tune)

        def step(s: Any, _: Any) -> Any:
            s = kernel.sample(s, (data,), {})
            return s, (s.z, s.diverging, s.energy, s.num_steps, s.accept_prob, s.adapt_state.step_size)

        return jax.lax.scan(step, state, None, length=settings.draws)[1]

    return jax.jit(run)


@lru_cache(maxsize=64)
def _natural(model: Model) -> Any:
    def back(z: Any, data: Data) -> Any:
        info = initialize_model(jax.random.key(0), model, model_args=(data,), dynamic_args=True, validate_grad=False)
        return jax.lax.map(info.postprocess_fn(data), z, batch_size=256)

    return jax.jit(back)


def natural(model: Model, z: dict[str, np.ndarray], data: Data) -> dict[str, np.ndarray]:
    """Constrained sites and deterministics of unconstrained draws (chain, draw, ...)."""
    shape = next(iter(z.values())).shape[:2]
    flat = {k: v.reshape(shape[0] * shape[1], *v.shape[2:]) for k, v in z.items()}
    out = _natural(model)(flat, data)
    return {k: np.asarray(v).reshape(*shape, *np.shape(v)[1:]) for k, v in out.items() if k != model.outcome}
