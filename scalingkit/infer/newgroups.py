"""newgroups: parameters of groups that were not in the data, drawn from the population, one draw a posterior draw.

p[new] = T(T^-1(population) + sd * z)        z ~ Normal(0, 1) for each chain, draw and new label
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.names import CHAIN, DRAW
from scalingkit.infer.likelihoods import DataError


class NewGroups:
    """Labels per dim that a design has and the posterior has not; what the poolings' ``extend`` needs of them."""

    def __init__(
        self, posterior: xr.Dataset, design: xr.Dataset, labels: Mapping[str, list[str]], centres: Any, seed: int
    ) -> None:
        self.posterior, self.design, self.labels, self.centres = posterior, design, labels, centres
        self.rng = np.random.default_rng([seed, 7])

    def count(self, dim: str) -> int:
        return len(self.labels.get(dim, []))

    def words(self, dim: str) -> str:
        return ", ".join(map(repr, self.labels[dim]))

    def over(self, value: xr.DataArray, dim: str) -> xr.DataArray:
        """A value of the population at each new label of ``dim``."""
        return value.expand_dims({dim: self.labels.get(dim, [])}, axis=-1)

    def effect(self, sd: xr.DataArray, dim: str, name: str) -> xr.DataArray:
        """sd * z at each new label of ``dim``."""
        wide = self.over(sd, dim)
        return wide * self.rng.standard_normal(wide.shape)

    def join(self, known: xr.DataArray, fresh: xr.DataArray, dim: str) -> xr.DataArray:
        """Known groups, then the new ones."""
        if not self.count(dim):
            return known
        return xr.concat([known, fresh.transpose(*known.dims)], dim=dim, coords="minimal", compat="override")

    def parents(self, inner: str, outer: str) -> xr.DataArray:
        """Outer label of each new inner label, as the design pairs them."""
        a, b = (v.values.ravel().astype(str) for v in xr.broadcast(self.design[inner], self.design[outer]))
        of: dict[str, str] = {}
        for i, o in zip(a, b, strict=True):
            if of.setdefault(i, o) != o:
                raise DataError(f"the design has {inner} {i!r} in both {outer} {of[i]!r} and {outer} {o!r}.")
        fresh = self.labels.get(inner, [])
        return xr.DataArray([of[i] for i in fresh], dims=inner, coords={inner: fresh})

    def covariate(self, dim: str, name: str) -> xr.DataArray:
        """Covariate of each new label, standardised as in the fit."""
        fresh = self.labels.get(dim, [])
        if not fresh:
            return xr.DataArray(np.zeros(0), dims=dim, coords={dim: []})
        if name not in self.design:
            raise DataError(
                f"{dim} {fresh[0]!r} is new, and groups are regressed on {name!r}: the design must give it."
            )
        a, b = xr.broadcast(self.design[dim].astype(str), self.design[name])
        of = dict(zip(a.values.ravel(), b.values.ravel().astype(float), strict=True))
        mean, sd = self.centres[f"{dim}:{name}:mean"], self.centres[f"{dim}:{name}:sd"]
        return xr.DataArray([(of[g] - mean) / sd for g in fresh], dims=dim, coords={dim: fresh})


def draw_dims(posterior: xr.Dataset) -> tuple[str, ...]:
    """chain and draw, where the posterior has them."""
    return tuple(d for d in (CHAIN, DRAW) if d in posterior.dims)
