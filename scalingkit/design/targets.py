"""Targets: the number a design is to make known, and how it moves with the parameters.

    Loss(N, D)       log f at a size and tokens                       d log f / du, automatic
    Size(budget)     log N* at a budget                               d log N* / du, differences of the exact optimum
    Exponent(name)   the parameter itself, on its unconstrained axis  a unit vector
    Function(f)      any function of the parameters                   d f / du, automatic

The variance of a target at one draw is g' Cov g: relative variance for the first two, since they are logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scalingkit.core.errors import hint
from scalingkit.core.law import Law
from scalingkit.design.cost import Cost
from scalingkit.design.grids import DesignError
from scalingkit.design.information import Outcome, pivoted_at, raw
from scalingkit.design.optimum import optimum, other_inputs
from scalingkit.infer.coordinates import Coordinates
from scalingkit.infer.coordinates import of as coordinates

_STEP = 1e-4  # of the differences in u; the optimum is exact to rounding, so the error is about 1e-8


@dataclass(frozen=True)
class Loss:
    """The (log) outcome at ``N`` parameters and ``D`` tokens; further inputs of the law in ``at``."""

    N: float
    D: float
    at: Mapping[str, float] = field(default_factory=dict)

    def gradient(self, law: Law, u: np.ndarray, pivots: np.ndarray, of: Outcome) -> np.ndarray:
        rest = other_inputs(law, self.at)
        x = np.array([[{"N": self.N, "D": self.D, **rest}[k] for k in law.inputs]])
        return pivoted_at(coordinates(law), u, x / pivots, of)[:, 0]

    def __str__(self) -> str:
        return f"loss at N = {self.N:.3g}, D = {self.D:.3g}"


@dataclass(frozen=True)
class Size:
    """log N* at ``budget`` under a cost model; NaN gradients at draws without an interior optimum."""

    budget: float
    cost: Cost | None = None
    at: Mapping[str, float] = field(default_factory=dict)

    def gradient(self, law: Law, u: np.ndarray, pivots: np.ndarray, of: Outcome) -> np.ndarray:
        s, p = u.shape
        moved = u[:, None, None] + _STEP * np.stack([np.eye(p), -np.eye(p)])[None]
        theta = raw(coordinates(law), moved.reshape(-1, p), pivots)
        log_n = np.log(optimum(law, theta, np.array([self.budget]), self.cost, self.at).N).reshape(s, 2, p)
        return (log_n[:, 0] - log_n[:, 1]) / (2 * _STEP)

    def __str__(self) -> str:
        return f"N* at budget {self.budget:.3g}"


@dataclass(frozen=True)
class Exponent:
    """One parameter by name, on its unconstrained axis (the log of a positive one; a coefficient at the pivot)."""

    name: str

    def gradient(self, law: Law, u: np.ndarray, pivots: np.ndarray, of: Outcome) -> np.ndarray:
        if self.name not in law.params:
            raise DesignError(f"law {law.name!r} has no parameter {self.name!r}.{hint(self.name, law.params)}")
        return np.tile(np.eye(len(law.params))[list(law.params).index(self.name)], (len(u), 1))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Function:
    """``f(theta) -> number`` of the raw parameters by name, in JAX operations."""

    f: Callable[[Mapping[str, Any]], Any]
    name: str = "function of the parameters"

    def gradient(self, law: Law, u: np.ndarray, pivots: np.ndarray, of: Outcome) -> np.ndarray:
        return np.asarray(_function(coordinates(law), self.f)(jnp.asarray(u), jnp.asarray(pivots)))

    def __str__(self) -> str:
        return self.name


Target = Loss | Size | Exponent | Function


def target(said: Any) -> Target:
    """A target from itself, a parameter's name, or a function of the parameters."""
    if isinstance(said, (Loss, Size, Exponent, Function)):
        return said
    if isinstance(said, str):
        return Exponent(said)
    if callable(said):
        return Function(said, getattr(said, "__name__", "function of the parameters"))
    raise DesignError(f"target {said!r} is none: give Loss(N, D), Size(budget), a parameter's name or a function.")


@lru_cache(maxsize=64)
def _function(c: Coordinates, f: Callable[..., Any]) -> Any:
    def value(u: jax.Array, pivots: jax.Array) -> jax.Array:
        return f(c.raw(u, dict(zip(c.law.inputs, pivots, strict=True))))

    return jax.jit(jax.vmap(jax.grad(value), (0, None)))
