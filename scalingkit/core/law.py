"""Law: an elementwise curve with parameters. Called, it broadcasts by dimension name."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from scalingkit.core.card import Card, Claim, Source, Verdict
from scalingkit.core.param import Param
from scalingkit.core.settle import dist


@dataclass(frozen=True, kw_only=True)
class Law:
    """``output = curve(*inputs, *params)``, elementwise.

    card       name, summary, sources, scope
    inputs     input name -> meaning, in the order the curve takes them
    output     name of the outcome ("loss")
    curve      elementwise function in JAX operations, taking inputs then params, by these names
    params     parameter name -> Param, in the order the curve takes them
    scales     coefficient -> (input, exponent): the coefficient c sits on the power input**-exponent, so that
               curve(x, c) == curve(x / s, c * s**-exponent) for every s > 0, when all coefficients on that input are
               rescaled at once; the exponent is a parameter's name or a number. Every use of the input must be covered
    alike      input -> the input whose unit it shares and with which it is rescaled: {"U": "D"}, unique and seen tokens
    linear     parameters that enter linearly, given all the others
    published  Source -> parameter values as printed
    claims     numbers computed from published values: each quantity takes (law, values)
    example    a design and noise on which the law is tested: input -> (low, high, count); noise: log-scale sd;
               truth: parameter values (default: the first published values)
    decreasing inputs in which the curve falls for every admissible parameter
    """

    card: Card
    inputs: Mapping[str, str]
    output: str
    curve: Callable[..., Any]
    params: Mapping[str, Param]
    scales: Mapping[str, tuple[str, str | float]] = field(default_factory=dict)
    alike: Mapping[str, str] = field(default_factory=dict)
    linear: tuple[str, ...] = ()
    published: Mapping[Source, Mapping[str, float]] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)
    decreasing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        want, got = (*self.inputs, *self.params), tuple(inspect.signature(self.curve).parameters)
        if got != want:
            raise TypeError(f"law {self.name!r}: its curve takes {got}, but inputs and params are {want}.")
        for c, (x, e) in self.scales.items():
            if c not in self.params or x not in self.inputs or (isinstance(e, str) and e not in self.params):
                raise ValueError(f"law {self.name!r}: scales[{c!r}] = {(x, e)!r} names what the law does not have.")
        if unknown := set(self.linear) - set(self.params):
            raise ValueError(f"law {self.name!r}: linear names {sorted(unknown)}, which are not parameters.")
        if unknown := {*self.decreasing, *self.alike, *self.alike.values()} - set(self.inputs):
            raise ValueError(f"law {self.name!r}: decreasing or alike names {sorted(unknown)}, which are not inputs.")
        for source, values in self.published.items():
            if set(values) != set(self.params):
                raise ValueError(f"law {self.name!r}: published {source.key} gives {sorted(values)}.")

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def truth(self) -> dict[str, float]:
        """Parameter values of the example: ``example['truth']``, else the first published values."""
        values = self.example.get("truth") or next(iter(self.published.values()), None)
        if values is None:
            raise ValueError(f"law {self.name!r} has neither published values nor example['truth'].")
        return {k: float(values[k]) for k in self.params}

    def example_design(self) -> dict[str, np.ndarray]:
        """Inputs of the example: every combination of the levels, log-spaced between low and high; each (runs,)."""
        levels = [np.geomspace(*self.example[x]) for x in self.inputs]
        return {x: g.ravel() for x, g in zip(self.inputs, np.meshgrid(*levels, indexing="ij"), strict=True)}

    def pivots(self, data: Mapping[str, Any]) -> dict[str, float]:
        """Geometric mean of each input that ``scales`` names (of the input it is alike to); 1 for the others."""
        pivoted = {x for x, _ in self.scales.values()}
        of = {x: self.alike.get(x, x) for x in self.inputs}
        return {x: float(np.exp(np.mean(np.log(np.asarray(data[of[x]]))))) if of[x] in pivoted else 1.0 for x in of}

    def verdicts(self) -> list[Verdict]:
        """Every claim, checked at the values its source published, or at the example's where it published none."""
        return [c.check(self, self.published.get(c.source, self.truth)) for c in self.claims]

    def with_priors(self, **priors: dist.Distribution) -> Law:
        """The same law under other priors, by parameter name."""
        for k in priors:
            self._known(k)
        new = {k: replace(p, prior=priors[k]) if k in priors else p for k, p in self.params.items()}
        return replace(self, params=new)

    def __call__(self, data: Any = None, /, **values: Any) -> Any:
        """The curve at inputs and parameters given by name, from a Dataset or posterior ``data`` and/or keywords.

        DataArrays broadcast by dimension name: a grid (size, tokens) and a posterior (chain, draw, family) give
        (size, tokens, chain, draw, family). Plain numbers and arrays broadcast as NumPy does.
        Raises TypeError naming what is missing or unknown.
        """
        for k in values:
            self._known(k, (*self.inputs, *self.params))
        names = (*self.inputs, *self.params)
        if data is not None:
            values = {k: data[k] for k in names if k in data} | values
        if missing := [k for k in names if k not in values]:
            raise TypeError(f"law {self.name!r} needs {', '.join(missing)}: give them by name.")
        args = [values[k] for k in names]
        if not any(isinstance(a, xr.DataArray) for a in args):
            return self.curve(*_same_rank(args))
        out = xr.apply_ufunc(lambda *a: np.asarray(self.curve(*_same_rank(a))), *args)
        return out.rename(self.output)

    def _known(self, name: str, names: tuple[str, ...] = ()) -> None:
        names = names or tuple(self.params)
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"law {self.name!r} has no {name!r}; it has {', '.join(names)}.{hint}")


def _same_rank(args: Sequence[Any]) -> list[Any]:
    """Float64 before JAX sees it (7e10 does not fit int32); leading dims of 1, since JAX may refuse rank promotion."""
    arrays = [a if isinstance(a, jax.Array) else np.asarray(a, dtype=np.float64) for a in args]
    rank = max(a.ndim for a in arrays)
    return [
        jnp.asarray(a) if a.ndim in (0, rank) else jnp.asarray(a).reshape((1,) * (rank - a.ndim) + a.shape)
        for a in arrays
    ]
