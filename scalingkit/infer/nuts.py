"""NUTS: one chain in one compiled function, the table and target_accept as arguments; chains side by side.

A chain goes forward in pieces of equal length, warm-up and draws alike, so there is one program to compile, which is
found again for every table of the same shape, every target_accept, and longer chains. Between pieces Ctrl-C is heard
and progress is told. On a CPU the chains run in threads, one a core; elsewhere they are one vectorised program.
The kernel is NumPyro's.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import NUTS

from scalingkit.infer import geometry
from scalingkit.infer.model import Model
from scalingkit.infer.prepare import Data

PIECE = 250  # draws between two looks at the clock
DEPTH = 10


@dataclass(frozen=True)
class Settings:
    """Length and target of a run."""

    tune: int
    draws: int
    target_accept: float

    @property
    def piece(self) -> int:
        """Longest length, up to PIECE, that divides both warm-up and draws."""
        both = math.gcd(self.tune, self.draws)
        return max(d for d in range(1, min(PIECE, both) + 1) if both % d == 0)


class Chains(NamedTuple):
    """Unconstrained draws (chain, draw, ...) by site, and what the sampler says of each (chain, draw)."""

    z: dict[str, np.ndarray]
    diverging: np.ndarray
    energy: np.ndarray
    n_steps: np.ndarray
    acceptance_rate: np.ndarray
    step_size: np.ndarray


class Potential(NamedTuple):
    """U(z, data) of a model, its compiled slope, and points drawn from the prior."""

    value: Callable[[Any, Data], Any]
    slope: Callable[[Any, Data], tuple[Any, Any]]
    starts: Callable[[int, int], list[dict[str, np.ndarray]]]


def potential(model: Model, data: Data, seed: int = 0) -> Potential:
    """The potential of ``model``; ``starts(n, seed)`` gives points from the prior for this table."""
    return Potential(
        lambda z, d: geometry.potential(model, z, d),
        geometry.slope(model),
        lambda n, s: geometry.starts(model, data, n, s),
    )


@dataclass(frozen=True)
class Plain:
    """A model's posterior over all of its sites, as a target of NUTS. (``Collapsed`` is another.)"""

    model: Model

    @property
    def block(self) -> tuple[str, ...]:
        return self.model.block

    def potential(self, z: Any, data: Data) -> Any:
        return geometry.potential(self.model, z, data)


class Run:
    """Chains under way: each call of ``more`` draws further from where they stand. ``target``: what is sampled (a Model,
    or an object with ``potential(z, data)`` and ``block``)."""

    def __init__(
        self, target: Any, data: Any, starts: list[dict[str, np.ndarray]], settings: Settings, seed: int, device: Any
    ) -> None:
        self.of, self.settings, self.device = _target(target), settings, device
        self.threads = device.platform == "cpu"
        self.data = jax.device_put(data, device)
        self.target = jax.device_put(jnp.asarray(settings.target_accept), device)
        keys = jax.device_put(jax.random.split(jax.random.key(seed), len(starts)), device)
        points = [jax.device_put({k: jnp.asarray(v) for k, v in s.items()}, device) for s in starts]
        begin = _begin(self.of, settings.tune)
        states = [begin(k, p, self.data, self.target) for k, p in zip(keys, points, strict=True)]
        self.states: Any = states if self.threads else jax.tree.map(lambda *a: jnp.stack(a), *states)

    def more(self, draws: int, tell: Callable[[int], None] = lambda done: None, stop: Any = None) -> Chains:
        """``draws`` further draws of every chain. ``tell`` hears how many are done; ``stop(piece)`` may end it early."""
        pieces: list[Chains] = []
        for i in range(math.ceil(draws / self.settings.piece)):
            pieces.append(self._piece())
            tell((i + 1) * self.settings.piece)
            if stop and stop(pieces[-1]):
                break
        return join(pieces)

    def _piece(self) -> Chains:
        step = _advance(self.of, self.settings.tune, self.settings.piece, self.threads)
        if self.threads:
            with ThreadPoolExecutor(min(len(self.states), os.cpu_count() or 1)) as pool:
                work = lambda s: jax.block_until_ready(step(s, self.data, self.target))  # noqa: E731
                ends = list(pool.map(work, self.states))
            self.states = [e[0] for e in ends]
            parts = jax.tree.map(lambda *a: np.stack([np.asarray(v) for v in a]), *(e[1] for e in ends))
        else:
            self.states, parts = jax.block_until_ready(step(self.states, self.data, self.target))
            parts = jax.tree.map(np.asarray, parts)
        return Chains(*parts)


def join(pieces: list[Chains]) -> Chains:
    """Pieces one after the other along draw."""
    return jax.tree.map(lambda *a: np.concatenate(a, axis=1), *pieces)


def sample(
    model: Model, data: Data, starts: list[dict[str, np.ndarray]], settings: Settings, seed: int, device: Any
) -> Chains:
    """One chain from each start: warm-up, then draws."""
    run = Run(model, data, starts, settings, seed, device)
    run.more(settings.tune)
    return run.more(settings.draws)


def natural(model: Model, z: dict[str, np.ndarray], data: Data) -> dict[str, np.ndarray]:
    """Constrained sites and deterministics of unconstrained draws (chain, draw, ...)."""
    shape = next(iter(z.values())).shape[:2]
    flat = {k: v.reshape(shape[0] * shape[1], *v.shape[2:]) for k, v in z.items()}
    out = geometry.sites(model)(flat, data)
    return {k: np.asarray(v).reshape(*shape, *np.shape(v)[1:]) for k, v in out.items()}


@lru_cache(geometry.KEPT)
def chain(model: Model, settings: Settings) -> Any:
    """Compiled (key, start, data) -> (z, diverging, ...) of one whole chain: many small fits in one call each."""

    return jax.jit(_whole(model, settings))


@lru_cache(geometry.KEPT)
def chains_of_tables(model: Model, settings: Settings) -> Any:
    """The same for many tables of one design at once: (keys, starts, outcomes, data), the first three with a dim table."""
    whole = _whole(model, settings)
    return jax.jit(jax.vmap(lambda key, start, y, data: whole(key, start, replace(data, y=y)), in_axes=(0, 0, 0, None)))


def _whole(model: Model, settings: Settings) -> Any:
    def whole(key: Any, start: Any, data: Data) -> Any:
        kernel = _kernel(Plain(model), data, settings.target_accept)
        state = kernel.init(key, settings.tune, start)
        state, _ = jax.lax.scan(lambda s, _: (kernel.sample(s, (), {}), None), state, None, length=settings.tune)
        return jax.lax.scan(lambda s, _: _step(kernel, s), state, None, length=settings.draws)[1]

    return whole


@lru_cache(geometry.KEPT)
def _begin(of: Any, tune: int) -> Any:
    return jax.jit(lambda key, start, data, target: _kernel(of, data, target).init(key, tune, start))


@lru_cache(geometry.KEPT)
def _advance(of: Any, tune: int, length: int, threads: bool) -> Any:
    def advance(state: Any, data: Data, target: Any) -> Any:
        kernel = _kernel(of, data, target)
        # init sets the kernel's adaptation up; its state is not used, and XLA drops the work
        kernel.init(state.rng_key, tune, state.z)
        return jax.lax.scan(lambda s, _: _step(kernel, s), state, None, length=length)

    return jax.jit(advance if threads else jax.vmap(advance, in_axes=(0, None, None)))


def _target(what: Any) -> Any:
    return Plain(what) if isinstance(what, Model) else what


def _kernel(of: Any, data: Any, target: Any) -> NUTS:
    return NUTS(
        potential_fn=lambda z: of.potential(z, data),
        dense_mass=[of.block],
        target_accept_prob=target,
        max_tree_depth=DEPTH,
    )


def _step(kernel: NUTS, state: Any) -> tuple[Any, tuple[Any, ...]]:
    s = kernel.sample(state, (), {})
    return s, (s.z, s.diverging, s.energy, s.num_steps, s.accept_prob, s.adapt_state.step_size)
