"""World: a simulator or solvable model that knows its own truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.card import Card, Claim
from scalingkit.core.param import Param


@dataclass(frozen=True, kw_only=True)
class World:
    """``simulate(key, design, **theta) -> Dataset``; ``exact = {quantity: function(design, **theta)}``.

    Same key, same result. ``exact`` holds closed forms that the simulation must meet in expectation: the contract
    test compares the mean of ``simulate`` over keys with ``exact[q]`` for every q that names a simulated variable.
    ``example`` is dict(design=Dataset, theta=dict) on which it is tested.
    """

    card: Card
    simulate: Callable[..., xr.Dataset]
    params: Mapping[str, Param]
    exact: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.card.name


def generator(key: Any) -> np.random.Generator:
    """Random numbers for a key: an int, a sequence of ints, or a JAX key. Same key, same numbers, on every machine."""
    if hasattr(key, "dtype"):
        import jax

        raw = jax.random.key_data(key) if jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key) else key
        key = np.asarray(raw).ravel().tolist()
    return np.random.default_rng(key)
