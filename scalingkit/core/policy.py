"""Policy: a procedure that spends compute (best-of-N, knockout, halving, ...)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from scalingkit.core.card import Card, Claim


@dataclass(frozen=True, kw_only=True)
class Policy:
    """``run(key, problem, budget, **options) -> Dataset`` with variables ``spent`` and ``value``; spent <= budget.

    ``exact(problem, budget) -> expected value`` where a closed form exists; ``world`` names the world it is tried on.
    """

    card: Card
    run: Callable[..., xr.Dataset]
    world: str
    exact: Callable[..., Any] | None = None
    claims: tuple[Claim, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.card.name

    def __call__(self, key: Any, problem: xr.Dataset, budget: float, /, **options: Any) -> xr.Dataset:
        return self.run(key, problem, budget, **options)
