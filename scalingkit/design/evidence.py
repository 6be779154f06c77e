"""Evidence: what a question about design or decision starts from, read out of whatever the user has.

    a posterior DataTree   law, draws (chain, draw, groups), the runs behind it, the noise
    a Model or a Law       with runs (and, where there are no outcomes yet, parameter values)
    a Dataset or mapping   of parameter values, with the law named

Nothing here computes; it finds things and says clearly what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import zoo
from scalingkit.core.law import Law
from scalingkit.core.names import CHAIN, DRAW, RUN
from scalingkit.design.grids import DesignError
from scalingkit.design.information import Outcome, inputs
from scalingkit.infer.model import Model
from scalingkit.infer.spec import encode

ADDITIVE = ("Normal", "BetaBinomial")  # likelihoods whose noise is on the outcome's own scale


@dataclass(frozen=True)
class Evidence:
    """``draws``: raw parameters by name, dims (chain, draw, groups...); None where there is no posterior.

    ``noise``: sd of the (log) outcome, None where it has to be estimated; ``nu``: Student-t degrees of freedom, inf
    for a Gaussian; ``of``: the scale of the noise; ``sigma``: the noise by group, where it was pooled; ``groups``: dims
    of the draws besides chain and draw.
    """

    law: Law
    runs: xr.Dataset | None
    draws: xr.Dataset | None = None
    noise: float | None = None
    nu: float = np.inf
    of: Outcome = "log"
    sigma: xr.DataArray | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        if self.draws is None:
            return ()
        return tuple(
            dict.fromkeys(str(d) for k in self.law.params for d in self.draws[k].dims if d not in (CHAIN, DRAW))
        )

    @property
    def weight(self) -> float:
        """Fisher information of one run in units of 1/noise**2: 1 for a Gaussian, (nu+1)/(nu+3) for Student-t."""
        return 1.0 if np.isinf(self.nu) else (self.nu + 1) / (self.nu + 3)

    @property
    def y(self) -> np.ndarray | None:
        """The outcome of the runs, or None where they have none."""
        if self.runs is None or self.law.output not in self.runs:
            return None
        y = np.asarray(self.runs[self.law.output].values, float)
        return y if np.all(np.isfinite(y)) else None


def read(
    source: Any, runs: xr.Dataset | None = None, *, law: Law | str | None = None, noise: float | None = None
) -> Evidence:
    """Evidence from a DataTree, a Model, a Law or its name, or parameter values; ``runs`` override the tree's own."""
    if isinstance(source, xr.DataTree):
        found = _tree(source, law)
        return replace(found, runs=found.runs if runs is None else runs, noise=noise or found.noise)
    if isinstance(source, str):
        source = zoo.get(source, "laws")
    if isinstance(source, Model):
        inner = source.likelihood
        while hasattr(inner, "base"):
            inner = inner.base
        return Evidence(source.law, _table(runs), noise=noise, of=_scale(type(inner).__name__))
    if isinstance(source, Law):
        return Evidence(source, _table(runs), noise=noise)
    if isinstance(source, (Mapping, xr.Dataset)):
        if law is None:
            raise DesignError("parameter values alone do not say which law they belong to: give law=...")
        named = zoo.get(law, "laws") if isinstance(law, str) else law
        return Evidence(named, _table(runs), draws=_values(named, source), noise=noise)
    raise DesignError(
        f"cannot read {type(source).__name__}: give a posterior DataTree (from fit), a Model, a Law or its name, or "
        "parameter values with law=..."
    )


def labels(found: Evidence) -> list[dict[str, Any]]:
    """Every combination of group labels that the runs have: [{}] without groups. Labels without runs are left out."""
    if not found.groups or found.draws is None:
        return [{}]
    if found.runs is not None and all(g in found.runs.coords for g in found.groups):
        rows = zip(*(found.runs[g].values for g in found.groups), strict=True)
        combos = sorted(set(map(tuple, (map(str, r) for r in rows))))
        known = [set(map(str, found.draws[g].values)) for g in found.groups]
        combos = [c for c in combos if all(v in k for v, k in zip(c, known, strict=True))]
    else:
        index = np.ndindex(*(found.draws.sizes[g] for g in found.groups))
        combos = [tuple(found.draws[g].values[i] for g, i in zip(found.groups, ix, strict=True)) for ix in index]
    return [dict(zip(found.groups, c, strict=True)) for c in combos]


def of_group(found: Evidence, label: Mapping[str, Any]) -> Evidence:
    """The evidence of one group: its draws and its runs."""
    if not label or found.draws is None:
        return found
    at = {k: v for k, v in label.items() if k in found.draws.coords}
    runs = found.runs
    if runs is not None:
        keep = np.ones(runs.sizes[RUN], bool)
        for k, v in label.items():
            if k in runs.coords:
                keep &= runs[k].values.astype(str) == str(v)
        runs = runs.isel({RUN: np.flatnonzero(keep)})
    noise = found.noise
    if found.sigma is not None and found.sigma.dims:
        noise = float(found.sigma.sel({k: v for k, v in label.items() if k in found.sigma.dims}).mean())
    return replace(found, draws=found.draws.sel(at, drop=True), runs=runs, noise=noise)


def flat(found: Evidence, most: int | None = None) -> np.ndarray:
    """Draws (S, p) of an ungrouped evidence in the law's order; every k-th where there are more than ``most``."""
    assert found.draws is not None
    names = list(found.law.params)
    arrays = xr.broadcast(*(found.draws[k] for k in names))
    out = np.stack([np.asarray(a.values, float).ravel() for a in arrays], -1)
    return out if most is None or len(out) <= most else out[:: -(-len(out) // most)]


def _tree(tree: xr.DataTree, law: Law | str | None) -> Evidence:
    if "posterior" not in tree.children:
        raise DesignError(f"the DataTree has no posterior; its groups are {', '.join(tree.children) or 'none'}.")
    posterior = tree["posterior"].to_dataset()
    found = _law(tree, law)
    if missing := [k for k in found.params if k not in posterior]:
        raise DesignError(f"the posterior has no {', '.join(missing)}, which law {found.name!r} takes.")
    sigma = (
        posterior["sigma"].mean([d for d in (CHAIN, DRAW) if d in posterior["sigma"].dims])
        if "sigma" in posterior
        else None
    )
    noise = None if sigma is None else float(sigma.mean())
    nu = float(posterior["nu"].median()) if "nu" in posterior else np.inf
    draws = posterior[list(found.params)]
    return Evidence(found, _runs(tree, found), draws, noise, nu, _scale(_likelihood(tree)), sigma)


def _law(tree: xr.DataTree, law: Law | str | None) -> Law:
    """The law as the model had it, its priors included; ``law`` overrides."""
    if isinstance(law, Law):
        return law
    spec = json.loads(tree.attrs.get("model", "{}"))
    if law is None and "priors" in spec:
        return _law_of(tree.attrs["model"])
    name = law or tree.attrs.get("law")
    if not name:
        raise DesignError("the DataTree does not say which law it was fitted with (attrs['law']): give law=...")
    return zoo.get(str(name), "laws")


@lru_cache(maxsize=64)
def _law_of(spec: str) -> Law:
    """The law of a model's spec; the package's own object where the priors are its own (compiled functions are reused)."""
    made = Model.from_spec(spec).law
    own = zoo.get(made.name, "laws")
    same = all(encode(own.params[k].prior) == encode(p.prior) for k, p in made.params.items())
    return own if same else made


def _likelihood(tree: xr.DataTree) -> str:
    """Kind of the likelihood, of the innermost one where it is Rounded or Censored."""
    kind = json.loads(tree.attrs.get("model", "{}")).get("likelihood", {})
    while "base" in kind:
        kind = kind["base"]
    return str(kind.get("kind", ""))


def _scale(likelihood: str) -> Outcome:
    return "output" if likelihood in ADDITIVE else "log"


def _runs(tree: xr.DataTree, law: Law) -> xr.Dataset | None:
    """The runs behind a tree: inputs and groups from constant_data, outcomes from observed_data."""
    if "constant_data" not in tree.children:
        return None
    constant = tree["constant_data"].to_dataset()
    if any(k not in constant for k in law.inputs):
        return None
    groups = [k for k in constant.data_vars if constant[k].dims == (RUN,) and constant[k].dtype.kind in "OUT"]
    runs = constant[[k for k in constant.data_vars if constant[k].dims == (RUN,)]].set_coords(groups)
    if "observed_data" in tree.children and law.output in tree["observed_data"]:
        runs = runs.assign({law.output: tree["observed_data"][law.output]})
    return runs


def _values(law: Law, source: Mapping[str, Any] | xr.Dataset) -> xr.Dataset:
    if missing := [k for k in law.params if k not in source]:
        raise DesignError(f"law {law.name!r} needs values for {', '.join(missing)}.")
    if isinstance(source, xr.Dataset):
        return source[list(law.params)]
    # plain numbers or (draws,) arrays
    arrays = np.broadcast_arrays(*(np.atleast_1d(np.asarray(source[k], float)) for k in law.params))
    return xr.Dataset({k: ((CHAIN, DRAW), a.reshape(1, -1)) for k, a in zip(law.params, arrays, strict=True)})


def _table(runs: Any) -> xr.Dataset | None:
    if runs is None or isinstance(runs, xr.Dataset):
        return runs
    from scalingkit.design.grids import design

    columns = {str(k): np.asarray(runs[k], float) for k in runs if k in ("N", "D", "U", "P", "loss")}
    return design(columns.pop("N"), columns.pop("D"), **columns)


def design_inputs(found: Evidence) -> np.ndarray:
    """Inputs (n, K) of the runs. Raises DesignError where there are no runs."""
    if found.runs is None:
        raise DesignError("no runs: the posterior does not carry them, so give runs=...")
    return inputs(found.law, found.runs)
