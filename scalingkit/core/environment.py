"""Environments for search: states that can be opened, rewards that can be drawn, and nothing else to see.

    env.open() -> state;   env.draw(state, n) -> n rewards;   env.spent, at most env.budget

A search gets an environment, never the problem behind it: what it has not drawn it cannot know. Each reward costs one;
opening a state is free (its rollouts pay for it).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import xarray as xr

from scalingkit.core.names import SAMPLE
from scalingkit.core.world import generator

STATE = "state"


class Environment(Protocol):
    """What a search may do."""

    budget: int
    spent: int

    def open(self) -> int | None:
        """A new state, or None where there are no more."""

    def draw(self, state: int, n: int) -> np.ndarray:
        """n rewards of a state. Raises OverspentError where the budget does not pay for them."""


class OverspentError(RuntimeError):
    """More was drawn than the budget pays for, or than a table holds."""


class Gaussian:
    """States theta_s ~ Normal(mu, tau), reward ~ Normal(theta_s, sigma_s), log sigma_s ~ Normal(log sigma, omega)."""

    def __init__(self, key: Any, problem: xr.Dataset, budget: float) -> None:
        self._rng, self.budget, self.spent = generator(key), int(budget), 0
        self._of = {k: float(problem[k]) for k in ("mu", "tau", "sigma", "omega")}
        self._states: list[tuple[float, float]] = []

    def open(self) -> int | None:
        t = self._of
        theta = t["mu"] + t["tau"] * self._rng.standard_normal()
        self._states.append((theta, t["sigma"] * np.exp(t["omega"] * self._rng.standard_normal())))
        return len(self._states) - 1

    def draw(self, state: int, n: int) -> np.ndarray:
        _pay(self, n)
        theta, sigma = self._states[state]
        return theta + sigma * self._rng.standard_normal(n)


class Replay:
    """A table of rewards (state, sample) drawn from without replacement, states in random order; nan where missing."""

    def __init__(self, key: Any, problem: xr.Dataset, budget: float) -> None:
        self._rng, self.budget, self.spent = generator(key), int(budget), 0
        table = np.asarray(problem["score"].transpose(STATE, SAMPLE).values, float)
        self._left = [self._rng.permutation(table[i][np.isfinite(table[i])]) for i in self._rng.permutation(len(table))]
        self._opened = 0

    def open(self) -> int | None:
        if self._opened == len(self._left):
            return None
        self._opened += 1
        return self._opened - 1

    def draw(self, state: int, n: int) -> np.ndarray:
        if n > self._left[state].size:
            raise OverspentError(f"state {state} has {self._left[state].size} rewards left; {n} were asked for.")
        _pay(self, n)
        out, self._left[state] = self._left[state][:n], self._left[state][n:]
        return out


def environment(key: Any, problem: xr.Dataset, budget: float) -> Gaussian | Replay:
    """A Replay for a problem that holds rewards (``score``), else a Gaussian two-stage environment."""
    return Replay(key, problem, budget) if "score" in problem else Gaussian(key, problem, budget)


def _pay(env: Gaussian | Replay, n: int) -> None:
    if env.spent + n > env.budget:
        raise OverspentError(f"{env.spent} of {env.budget} are spent; {n} more cannot be paid.")
    env.spent += n
