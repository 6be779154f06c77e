"""Estimator: Dataset -> Dataset, with the world that judges it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from scalingkit.core.card import Card, Claim


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """``estimate(data, **options) -> Dataset``; never writes into ``data``.

    ``world`` is the name of the world that judges it; ``judge(world, key) -> (estimate, truth, tolerance)`` runs one
    trial on it, and ``wrong(world, key)`` a trial that must miss (the negative control).
    """

    card: Card
    estimate: Callable[..., xr.Dataset]
    world: str
    judge: Callable[..., tuple[float, float, float]]
    wrong: Callable[..., tuple[float, float, float]]
    claims: tuple[Claim, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.card.name

    def __call__(self, data: xr.Dataset, /, **options: Any) -> xr.Dataset:
        return self.estimate(data, **options)
