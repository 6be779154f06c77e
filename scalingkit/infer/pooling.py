"""Pooling: how one parameter of the law differs between groups.

    Shared                u = T^-1(p)                                      p ~ prior
    Separate(dim)         p[g] ~ prior, each by itself
    Partial(dim)          p[g] = T(u + sd * z[g])                          u = T^-1(population), population ~ prior
    Nested(outer, inner)  p[i] = T(u + sd_outer * z[outer of i] + sd_inner * z[i])
    Crossed(a, b, ...)    p[i, j] = T(u + sd_a * z_a[i] + sd_b * z_b[j])
    Regressed(dim, on)    p[g] = T(u + sum_k slope_k * x_k[g] + sd * z[g]) x standardised over the groups

T maps the real line onto the support of the prior (exp for a positive parameter, so sd is then a relative spread).
Groups are non-centred; ``Partial(centred=True)`` samples p[g] itself, better where each group's runs pin it down.
Names in the posterior: ``p`` (dims of the groups), ``p_population``, ``p_sd`` or ``p_sd_<dim>``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.distributions import biject_to

type Value = jax.Array


class Scope(Protocol):
    """What a pooling sees of the data: plates by dim, which outer group an inner one belongs to, covariates of groups."""

    def plate(self, dim: str) -> Any: ...
    def parent(self, inner: str) -> Value: ...
    def covariate(self, dim: str, name: str) -> Value: ...


def spread() -> dist.Distribution:
    """Default prior of the sd between groups, in the unconstrained space: exp(0.3) is 35% for a positive parameter."""
    return dist.HalfNormal(0.3)


@dataclass(frozen=True)
class Shared:
    """One value for all runs."""

    dims: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[str, ...]] = ()

    def sample(self, name: str, prior: dist.Distribution, scope: Scope) -> Value:
        return numpyro.sample(name, prior)

    def block(self, name: str) -> tuple[str, ...]:
        return (name,)

    def hidden(self, name: str) -> tuple[str, ...]:
        return ()

    def extend(self, name: str, prior: Any, values: Mapping[str, Any], new: Draw) -> Any:
        return values[name]


class _OneDim:
    """Groups along one dim, labelled by the column of that name."""

    dim: str

    @property
    def dims(self) -> tuple[str, ...]:
        return (self.dim,)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.dim,)


@dataclass(frozen=True)
class Separate(_OneDim):
    """Every group its own value, under the same prior: nothing is learnt from one group about another."""

    dim: str

    def sample(self, name: str, prior: dist.Distribution, scope: Scope) -> Value:
        with scope.plate(self.dim):
            return numpyro.sample(name, prior)

    def block(self, name: str) -> tuple[str, ...]:
        return (name,)

    def hidden(self, name: str) -> tuple[str, ...]:
        return ()

    def extend(self, name: str, prior: Any, values: Mapping[str, Any], new: Draw) -> Any:
        if new.count(self.dim):
            raise ValueError(
                f"{name!r} was fitted separately for each {self.dim}, so there is no population from which "
                f"{new.words(self.dim)} could be drawn. Pool it with Partial({self.dim!r}) to predict new groups."
            )
        return values[name]


@dataclass(frozen=True)
class Partial(_OneDim):
    """Groups of a population: p[g] = T(T^-1(population) + sd * z[g])."""

    dim: str
    sd: dist.Distribution = field(default_factory=spread)
    centred: bool = False

    def sample(self, name: str, prior: dist.Distribution, scope: Scope) -> Value:
        u, to = _population(name, prior)
        sd = numpyro.sample(f"{name}_sd", self.sd)
        if self.centred:
            with scope.plate(self.dim):
                return numpyro.sample(name, dist.TransformedDistribution(dist.Normal(u, sd), to))
        return numpyro.deterministic(name, to(u + sd * _standard(f"{name}_z", self.dim, scope)))

    def block(self, name: str) -> tuple[str, ...]:
        return (f"{name}_population", name if self.centred else f"{name}_z")

    def hidden(self, name: str) -> tuple[str, ...]:
        return () if self.centred else (f"{name}_z",)

    def extend(self, name: str, prior: Any, values: Mapping[str, Any], new: Draw) -> Any:
        to = biject_to(prior.support)
        u = new.over(_inv(to, values[f"{name}_population"]), self.dim) + new.effect(
            values[f"{name}_sd"], self.dim, name
        )
        return new.join(values[name], _to(to, u), self.dim)


@dataclass(frozen=True, init=False)
class Nested:
    """Groups within groups, from the outermost in: Nested("family", "model"). Inner labels belong to one outer group."""

    dims_: tuple[str, str]
    sd: dist.Distribution

    def __init__(self, *dims: str, sd: dist.Distribution | None = None) -> None:
        if len(dims) != 2 or dims[0] == dims[1]:
            raise ValueError(f"Nested takes two different group columns, outer then inner; it was given {dims}.")
        object.__setattr__(self, "dims_", tuple(dims))
        object.__setattr__(self, "sd", spread() if sd is None else sd)

    @property
    def dims(self) -> tuple[str, ...]:
        return (self.dims_[1],)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.dims_

    @property
    def parents(self) -> dict[str, str]:
        return {self.dims_[1]: self.dims_[0]}

    def sample(self, name: str, prior: dist.Distribution, scope: Scope) -> Value:
        outer, inner = self.dims_
        u, to = _population(name, prior)
        u_outer = u + numpyro.sample(f"{name}_sd_{outer}", self.sd) * _standard(f"{name}_z_{outer}", outer, scope)
        numpyro.deterministic(f"{name}_{outer}", to(u_outer))
        within = numpyro.sample(f"{name}_sd_{inner}", self.sd) * _standard(f"{name}_z_{inner}", inner, scope)
        return numpyro.deterministic(name, to(u_outer[scope.parent(inner)] + within))

    def block(self, name: str) -> tuple[str, ...]:
        return (f"{name}_population", *self.hidden(name))

    def hidden(self, name: str) -> tuple[str, ...]:
        return tuple(f"{name}_z_{d}" for d in self.dims_)

    def extend(self, name: str, prior: Any, values: Mapping[str, Any], new: Draw) -> Any:
        outer, inner = self.dims_
        if not new.count(inner):
            return values[name]
        to = biject_to(prior.support)
        u = new.over(_inv(to, values[f"{name}_population"]), outer)
        fresh = _to(to, u + new.effect(values[f"{name}_sd_{outer}"], outer, name))
        at_outer = new.join(values[f"{name}_{outer}"], fresh, outer) if new.count(outer) else values[f"{name}_{outer}"]
        of_new = at_outer.sel({outer: new.parents(inner, outer)}).drop_vars(outer)
        u = _inv(to, of_new) + new.effect(values[f"{name}_sd_{inner}"], inner, name)
        return new.join(values[name], _to(to, u), inner)


@dataclass(frozen=True, init=False)
class Crossed:
    """Additive effects of several groupings, on every combination: Crossed("family", "corpus")."""

    dims_: tuple[str, ...]
    sd: dist.Distribution

    def __init__(self, *dims: str, sd: dist.Distribution | None = None) -> None:
        if len(dims) < 2 or len(set(dims)) < len(dims):
            raise ValueError(f"Crossed takes two or more different group columns; it was given {dims}.")
        object.__setattr__(self, "dims_", tuple(dims))
        object.__setattr__(self, "sd", spread() if sd is None else sd)

    @property
    def dims(self) -> tuple[str, ...]:
        return self.dims_

    @property
    def columns(self) -> tuple[str, ...]:
        return self.dims_

    def sample(self, name: str, prior: dist.Distribution, scope: Scope) -> Value:
        u, to = _population(name, prior)
        for i, d in enumerate(self.dims_):
            effect = numpyro.sample(f"{name}_sd_{d}", self.sd) * _standard(f"{name}_z_{d}", d, scope)
            effect = numpyro.deterministic(f"{name}_effect_{d}", effect)
            u = u + effect.reshape([-1 if j == i else 1 for j in range(len(self.dims_))])
        return numpyro.deterministic(name, to(u))

    def block(self, name: str) -> tuple[str, ...]:
        return (f"{name}_population", *self.hidden(name))

    def hidden(self, name: str) -> tuple[str, ...]:
        return tuple(f"{name}_z_{d}" for d in self.dims_)

    def extend(self, name: str, prior: Any, values: Mapping[str, Any], new: Draw) -> Any:
        to = biject_to(prior.support)
        u = _inv(to, values[f"{name}_population"])
        for d in self.dims_:
            effect = values[f"{name}_effect_{d}"]
            if new.count(d):
                effect = new.join(effect, new.effect(values[f"{name}_sd_{d}"], d, name), d)
            u = u + effect
        return _to(to, u)


@dataclass(frozen=True)
class Regressed(_OneDim):
    """Groups regressed on covariates that are constant within a group; what these leave over is pooled as in Partial."""

    dim: str
    on: tuple[str, ...] = ()
    sd: dist.Distribution = field(default_factory=spread)
    slope: dist.Distribution = field(default_factory=lambda: dist.Normal(0.0, 0.5))

    def __post_init__(self) -> None:
        object.__setattr__(self, "on", (self.on,) if isinstance(self.on, str) else tuple(self.on))
        if not self.on:
            raise ValueError(f"Regressed({self.dim!r}) needs on=[...]: the columns on which the groups are regressed.")

    def sample(self, name: str, prior: dist.Distribution, scope: Scope) -> Value:
        u, to = _population(name, prior)
        sd = numpyro.sample(f"{name}_sd", self.sd)
        for k in self.on:
            u = u + numpyro.sample(f"{name}_slope_{k}", self.slope) * scope.covariate(self.dim, k)
        return numpyro.deterministic(name, to(u + sd * _standard(f"{name}_z", self.dim, scope)))

    def block(self, name: str) -> tuple[str, ...]:
        return (f"{name}_population", *(f"{name}_slope_{k}" for k in self.on), f"{name}_z")

    def hidden(self, name: str) -> tuple[str, ...]:
        return (f"{name}_z",)

    def extend(self, name: str, prior: Any, values: Mapping[str, Any], new: Draw) -> Any:
        to = biject_to(prior.support)
        u = new.over(_inv(to, values[f"{name}_population"]), self.dim) + new.effect(
            values[f"{name}_sd"], self.dim, name
        )
        for k in self.on:
            u = u + values[f"{name}_slope_{k}"] * new.covariate(self.dim, k)
        return new.join(values[name], _to(to, u), self.dim)


Pooling = Shared | Separate | Partial | Nested | Crossed | Regressed
POOLINGS: dict[str, type] = {c.__name__: c for c in (Shared, Separate, Partial, Nested, Crossed, Regressed)}


class Draw(Protocol):
    """New groups for ``extend``: see predict.py. All values are DataArrays named by dim."""

    def count(self, dim: str) -> int: ...
    def words(self, dim: str) -> str: ...
    def over(self, value: Any, dim: str) -> Any: ...
    def effect(self, sd: Any, dim: str, name: str) -> Any: ...
    def join(self, known: Any, fresh: Any, dim: str) -> Any: ...
    def parents(self, inner: str, outer: str) -> Any: ...
    def covariate(self, dim: str, name: str) -> Any: ...


def covariates(pools: Sequence[Pooling]) -> set[tuple[str, str]]:
    """(dim, column) of every covariate on which some parameter is regressed."""
    return {(p.dim, k) for p in pools if isinstance(p, Regressed) for k in p.on}


def _population(name: str, prior: dist.Distribution) -> tuple[Value, Any]:
    to = biject_to(prior.support)
    return to.inv(numpyro.sample(f"{name}_population", prior)), to


def _standard(site: str, dim: str, scope: Scope) -> Value:
    with scope.plate(dim):
        return numpyro.sample(site, dist.Normal(0.0, 1.0))


def _to(transform: Any, value: Any) -> Any:
    return value.copy(data=jnp.asarray(transform(jnp.asarray(value.values))).__array__())


def _inv(transform: Any, value: Any) -> Any:
    return value.copy(data=transform.inv(jnp.asarray(value.values)).__array__())
