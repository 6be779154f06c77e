"""Model: law + pooling + likelihood, itself a NumPyro model function.

    theta[p] ~ pooling of p       m = curve(inputs, theta at each run)       y ~ likelihood(m, noise)

``NUTS(model)``, ``handlers.trace(model)`` and ``numpyro.render_model(model, (runs,))`` work as with any function.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import xarray as xr

from scalingkit.core import zoo
from scalingkit.core.law import Law
from scalingkit.core.names import RUN
from scalingkit.infer import pivot, spec
from scalingkit.infer.likelihoods import LIKELIHOODS, Likelihood, LogStudentT
from scalingkit.infer.pooling import POOLINGS, Pooling, Shared
from scalingkit.infer.powers import exponential
from scalingkit.infer.prepare import Data, prepare


@dataclass(frozen=True, eq=False)
class Model:
    """``law`` (or its name), ``pool`` {parameter: pooling}, ``likelihood``.

    ``pool`` names parameters of the law, or of the noise ({"sigma": Partial("corpus")}); all others are shared.
    Called with a runs Dataset it samples: ``A_at_pivot`` (and deterministic ``A``) for each coefficient in
    ``law.scales``, every other parameter by its own name, the noise, and the outcome under the plate ``run``.
    """

    law: Law
    pool: Mapping[str, Pooling] = field(default_factory=dict)
    likelihood: Likelihood = field(default_factory=LogStudentT)

    def __post_init__(self) -> None:
        if isinstance(self.law, str):
            object.__setattr__(self, "law", zoo.get(self.law, "laws"))
        object.__setattr__(self, "pool", MappingProxyType(dict(self.pool)))
        for name, pooling in self.pool.items():
            if name not in self.priors:
                close = difflib.get_close_matches(name, self.priors, 1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise ValueError(f"pool names {name!r}, but the model has {', '.join(self.priors)}.{hint}")
            if not isinstance(pooling, tuple(POOLINGS.values())):
                raise TypeError(f"pool[{name!r}] is {pooling!r}; use one of {', '.join(POOLINGS)}.")
            if RUN in pooling.columns:
                raise ValueError(f"pool[{name!r}] pools over {RUN!r}: that is one value a run, which is noise.")
        if clash := set(self.law.params) & set(self.likelihood.nuisance()):
            raise ValueError(f"law {self.law.name!r} and its likelihood both have {sorted(clash)}.")

    @cached_property
    def priors(self) -> dict[str, dist.Distribution]:
        """Every sampled quantity by the name a user gives it: parameters of the law, then of the noise."""
        return {k: p.prior for k, p in self.law.params.items()} | self.likelihood.nuisance()

    @cached_property
    def pools(self) -> dict[str, Pooling]:
        """Pooling of every quantity in ``priors``."""
        return {k: self.pool.get(k, Shared()) for k in self.priors}

    @property
    def outcome(self) -> str:
        return self.likelihood.outcome(self.law.output)

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Columns of the runs that label groups, in the order in which the pools name them."""
        return tuple(dict.fromkeys(c for p in self.pools.values() for c in p.columns))

    def site(self, name: str) -> str:
        """Sampled site of a quantity: ``A_at_pivot`` for "A"."""
        return pivot.site(self.law, name)

    def dims(self, name: str) -> tuple[str, ...]:
        """Group dims of a quantity as the curve takes it: a raw coefficient also varies as its exponent does."""
        dims = self.pools[name].dims
        e = self.law.scales[name][1] if name in self.law.scales else None
        return dims + tuple(d for d in self.pools[e].dims if d not in dims) if isinstance(e, str) else dims

    @cached_property
    def site_dims(self) -> dict[str, tuple[str, ...]]:
        """Group dims of every variable of the posterior that has any."""
        found: dict[str, tuple[str, ...]] = {}
        for name, pooling in self.pools.items():
            site = self.site(name)
            found |= {name: self.dims(name), site: pooling.dims}
            found |= {f"{site}_effect_{d}": (d,) for d in pooling.dims} | {f"{site}_{d}": (d,) for d in pooling.columns}
        return found

    @property
    def hidden(self) -> frozenset[str]:
        """Auxiliary sites (standard normal offsets) that the posterior does not keep: what they make is kept."""
        return frozenset(z for k, p in self.pools.items() for z in p.hidden(self.site(k)))

    @property
    def block(self) -> tuple[str, ...]:
        """Sites of the law's own parameters: they share a dense block of the mass matrix."""
        return tuple(s for k in self.law.params for s in self.pools[k].block(self.site(k)))

    def __call__(self, runs: xr.Dataset | Data, observed: bool = True) -> None:
        data = runs if isinstance(runs, Data) else prepare(self, runs, observed)
        scope = _Scope(data)
        values = {k: self.pools[k].sample(self.site(k), prior, scope) for k, prior in self.priors.items()}
        for c in self.law.scales:
            numpyro.deterministic(c, self._raw(c, values, data))
        at = {k: self._at_runs(k, v, data) for k, v in values.items()}
        mean = exponential(self.law.curve)(
            *(data.inputs[x] for x in self.law.inputs), *(at[p] for p in self.law.params)
        )
        noise = {k: at[k] for k in self.likelihood.nuisance()}
        with scope.plate(RUN):
            y = self.likelihood.observe(mean, noise, data.columns)
            numpyro.sample(self.outcome, y, obs=data.y if observed else None)

    def _at_runs(self, name: str, value: Any, data: Data) -> Any:
        dims = self.pools[name].dims
        return value[tuple(data.codes[d] for d in dims)] if dims else value

    def _raw(self, c: str, values: Mapping[str, Any], data: Data) -> Any:
        """c = c_at_pivot * x0**e, over the dims of both."""
        x, e = self.law.scales[c]
        log_x0 = data.log_pivots[x]
        if not isinstance(e, str):
            return values[c] * jnp.exp(e * log_x0)
        dims = self.dims(c)
        size = _align(values[c], self.pools[c].dims, dims)
        return size * jnp.exp(_align(values[e], self.pools[e].dims, dims) * log_x0)

    def to_spec(self) -> dict[str, Any]:
        """The model as plain JSON. The law by name, with its priors."""
        priors = {k: spec.encode(p.prior) for k, p in self.law.params.items()}
        pool = {k: spec.encode(p) for k, p in self.pool.items()}
        return {"law": self.law.name, "priors": priors, "pool": pool, "likelihood": spec.encode(self.likelihood)}

    @classmethod
    def from_spec(cls, made: Mapping[str, Any] | str, law: Law | None = None) -> Model:
        """The model that ``to_spec`` wrote. A law that is not in the package must be given."""
        made = json.loads(made) if isinstance(made, str) else made
        try:
            law = law or zoo.get(made["law"], "laws")
        except KeyError as error:
            raise KeyError(f"{error.args[0]} A law of your own must be given again: model=Model(law=...).") from None
        law = law.with_priors(**{k: spec.decode(v, {}) for k, v in made["priors"].items()})
        pool = {k: spec.decode(v, POOLINGS) for k, v in made["pool"].items()}
        return cls(law=law, pool=pool, likelihood=spec.decode(made["likelihood"], LIKELIHOODS))

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return (self.law.curve, json.dumps(self.to_spec(), sort_keys=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class _Scope:
    """The data as the poolings see them; one plate a dim, made once."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.plates: dict[str, Any] = {}

    def plate(self, dim: str) -> Any:
        size = self.data.meta.runs if dim == RUN else self.data.sizes[dim]
        if dim not in self.plates:
            self.plates[dim] = numpyro.plate(dim, size, dim=-1)
        return self.plates[dim]

    def parent(self, inner: str) -> Any:
        return jnp.asarray(self.data.parents[inner])

    def covariate(self, dim: str, name: str) -> Any:
        return self.data.covariates[f"{dim}:{name}"]


def _align(value: Any, dims: tuple[str, ...], want: tuple[str, ...]) -> Any:
    """``value`` over ``dims``, as an array over ``want``: missing dims become length one. Order of ``dims`` is kept."""
    if not dims and not want:
        return value
    order = [dims.index(d) for d in want if d in dims]
    value = jnp.transpose(value, order)
    return value.reshape([value.shape[[d for d in want if d in dims].index(d)] if d in dims else 1 for d in want])


def as_model(what: Model | Law | str, pool: Mapping[str, Pooling] | None, likelihood: Likelihood | None) -> Model:
    """A Model from a model, a law or a law's name. A model already has its pools: giving them again is an error."""
    if isinstance(what, Model):
        if pool is not None or likelihood is not None:
            raise TypeError("pool and likelihood belong to the Model that was given: make it with them.")
        return what
    law = zoo.get(what, "laws") if isinstance(what, str) else what
    return Model(law=law, pool=pool or {}, likelihood=likelihood or LogStudentT())
