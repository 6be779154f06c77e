"""predict: the law's curve, or a new outcome, at a design, for every posterior draw.

    mean      m = curve(design, theta)             the curve itself
    outcome   y ~ likelihood(m, noise)             one new run at each point of the design

Dims are chain and draw, those of the design, and the group dims on which the design does not say which group it means.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from scalingkit.core.errors import hint
from scalingkit.core.names import CHAIN, DRAW, RUN
from scalingkit.core.notes import Note, dump
from scalingkit.infer.likelihoods import Censored, DataError
from scalingkit.infer.model import Model
from scalingkit.infer.newgroups import NewGroups

Kind = Literal["mean", "outcome"]
LARGEST = 200_000_000  # numbers in one answer: 1.6 GB
BLOCK = 5_000_000  # numbers worked on at a time


def predict(
    tree: xr.DataTree, design: Any, *, kind: Kind = "mean", model: Model | None = None,
    groups: Literal["known", "new"] = "known", seed: int = 0,
) -> xr.Dataset:  # fmt: skip
    """Draws of the curve (``kind="mean"``) or of new outcomes (``"outcome"``) at ``design``.

    design  Dataset, or mapping name -> number, array (then along ``run``) or DataArray, with the law's inputs. A label
            per point in a group column ("corpus") picks that group's parameters; without it the dim stays.
    model   needed only where the law is not one of the package's
    groups  "new": labels that were not in the data are drawn from their population; "known": they are an error

    Variables: the law's output (mean) or the observed site (outcome). A result that would exceed 1.6 GB uses evenly
    spaced draws, and a note says so. Raises DataError for missing inputs, NaN and unknown groups.
    """
    if kind not in ("mean", "outcome") or groups not in ("known", "new"):
        raise ValueError(f"kind is 'mean' or 'outcome', groups 'known' or 'new'; not {kind!r}, {groups!r}.")
    model = model or Model.from_spec(tree.attrs["model"])
    design = as_design(design)
    inputs = {x: _input(design, x) for x in model.law.inputs}
    posterior = tree["posterior"].to_dataset()
    posterior, notes = _thin(posterior, _points(model, posterior, design, inputs))
    centres = json.loads(tree.attrs.get("centres", "{}"))
    pivots = {x: float(tree.attrs[f"pivot_{x}"]) for x, _ in model.law.scales.values()}
    theta = parameters(model, posterior, design, pivots, centres, groups, seed)
    out = _blocks(lambda t: model.law(inputs | {p: t[p] for p in model.law.params}), theta)
    name = model.law.output
    if kind == "outcome":
        out = _outcomes(model, design, theta, out, centres, seed)
        name = model.outcome
    first = [d for d in (CHAIN, DRAW) if d in out.dims]
    result = out.transpose(*first, ...).rename(name).to_dataset()
    result = result.assign_coords({k: v for k, v in design.coords.items() if set(v.dims) <= set(result.dims)})
    result.attrs = {"law": model.law.name, "kind": kind, "seed": seed, "notes": dump(notes)}
    return result


def as_design(design: Any) -> xr.Dataset:
    """A Dataset from what a user may give; text becomes coordinates."""
    if isinstance(design, xr.Dataset):
        return design
    if not isinstance(design, Mapping) and hasattr(design, "to_dict"):
        design = {k: np.asarray(design[k]) for k in design}
    made = {k: v if isinstance(v, xr.DataArray) else _array(np.asarray(v)) for k, v in dict(design).items()}
    text = {k for k, v in made.items() if v.dtype.kind in "OUST"}
    return xr.Dataset({k: v for k, v in made.items() if k not in text}).assign_coords({k: made[k] for k in text})


def parameters(
    model: Model, posterior: xr.Dataset, design: xr.Dataset, pivots: Mapping[str, float],
    centres: Mapping[str, float] | None = None, groups: str = "known", seed: int = 0,
) -> dict[str, xr.DataArray]:  # fmt: skip
    """Every parameter of the law and of the noise at each point of the design, in raw units."""
    given = [d for d in model.group_columns if d in design.variables]
    fresh = {d: _new_labels(posterior, design, d, groups) for d in given}
    values = {k: posterior[model.site(k)] for k in model.priors}
    if any(fresh.values()):
        new = NewGroups(posterior, design, fresh, centres or {}, seed)
        values = {k: model.pools[k].extend(model.site(k), p, posterior, new) for k, p in model.priors.items()}
    for c, (x, e) in model.law.scales.items():
        values[c] = values[c] * np.exp((values[e] if isinstance(e, str) else e) * math.log(pivots[x]))
    return {k: _at(v, design, given) for k, v in values.items()}


def _at(value: xr.DataArray, design: xr.Dataset, given: list[str]) -> xr.DataArray:
    """``value`` of the group that each point of the design names."""
    picked = {d: design[d].astype(str) for d in given if d in value.dims}
    if not picked:
        return value
    position = {d: (labels.dims, _positions(value[d].values, labels.values)) for d, labels in picked.items()}
    return value.isel({d: xr.DataArray(at, dims=dims) for d, (dims, at) in position.items()}).drop_vars(list(picked))


def _positions(have: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    index = {str(v): i for i, v in enumerate(have)}
    return np.vectorize(index.__getitem__, otypes=[int])(wanted.astype(str))


def _new_labels(posterior: xr.Dataset, design: xr.Dataset, dim: str, groups: str) -> list[str]:
    have = [str(v) for v in posterior[dim].values] if dim in posterior.coords else []
    fresh = [str(v) for v in dict.fromkeys(design[dim].values.ravel().astype(str)) if v not in have]
    if fresh and groups == "known":
        raise DataError(
            f"{dim} {fresh[0]!r} was not among the runs that were fitted.{hint(fresh[0], have)} "
            'Give groups="new" to draw it from the population.'
        )
    return fresh


def _outcomes(
    model: Model, design: xr.Dataset, theta: Mapping[str, xr.DataArray], mean: xr.DataArray, centres: Any, seed: int
) -> xr.DataArray:
    columns = model.likelihood.columns(lambda name: _column(model, design, name), centres)
    columns = {k: v if isinstance(v, xr.DataArray) else xr.DataArray(v) for k, v in columns.items()}
    noise = {k: theta[k] for k in model.likelihood.nuisance()}
    key = jax.random.key(seed)
    block = 0

    def draw(t: Mapping[str, xr.DataArray]) -> xr.DataArray:
        nonlocal block
        block += 1
        m, *rest = xr.broadcast(t[""], *(t[k] for k in noise), *columns.values())
        values = [jnp.asarray(v.values) for v in rest]
        by_name = dict(zip([*noise, *columns], values, strict=True))
        y = model.likelihood.observe(jnp.asarray(m.values), by_name, by_name).sample(jax.random.fold_in(key, block))
        return m.copy(data=np.asarray(y, dtype=float))

    return _blocks(draw, {"": mean, **noise})


def _blocks(f: Any, theta: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """f over blocks of draws, so that what it makes on the way stays small."""
    draws = max(v.sizes.get(DRAW, 1) for v in theta.values())
    first = f({k: v.isel({DRAW: slice(0, 1)}) if DRAW in v.dims else v for k, v in theta.items()})
    step = max(1, BLOCK // max(1, first.size))
    if draws == 1:
        return first
    cut = [slice(i, i + step) for i in range(0, draws, step)]
    parts = [f({k: v.isel({DRAW: s}) if DRAW in v.dims else v for k, v in theta.items()}) for s in cut]
    return parts[0] if len(parts) == 1 else xr.concat(parts, dim=DRAW, coords="minimal", compat="override")


def _thin(posterior: xr.Dataset, points: int) -> tuple[xr.Dataset, list[Note]]:
    draws = posterior.sizes.get(DRAW, 1)
    each = points * posterior.sizes.get(CHAIN, 1)
    if each * draws <= LARGEST:
        return posterior, []
    keep = max(1, LARGEST // each)
    at = np.unique(np.linspace(0, draws - 1, keep).astype(int))
    text = f"{points} points for all {draws} draws would not fit in memory: {at.size} evenly spaced draws a chain were used."
    return posterior.isel({DRAW: at}), [Note("draws-thinned", "info", "draws", text)]


def _points(model: Model, posterior: xr.Dataset, design: xr.Dataset, inputs: Mapping[str, xr.DataArray]) -> int:
    """Numbers a draw: the design's points, times the groups that it leaves open."""
    given = [d for d in model.group_columns if d in design.variables]
    sizes = {d: n for v in (*inputs.values(), *(design[d] for d in given)) for d, n in v.sizes.items()}
    still_open = {d for k in model.priors for d in model.dims(k) if d not in given}
    return math.prod(({d: posterior.sizes[d] for d in still_open} | sizes).values())


def _column(model: Model, design: xr.Dataset, name: str | None) -> xr.DataArray:
    """A column that the likelihood needs. Whether a new run will be censored is not asked."""
    if name not in design.variables and isinstance(model.likelihood, Censored) and name == model.likelihood.column:
        return xr.DataArray(0.0)
    return _input(design, str(name), "a new outcome needs it")


def _input(design: xr.Dataset, name: str, why: str = "the law takes it") -> xr.DataArray:
    if name not in design.variables:
        raise DataError(f"the design has no {name!r}, and {why}.{hint(name, map(str, design.variables))}")
    values = design[name].astype(np.float64)
    if not np.isfinite(values.values).all():
        raise DataError(f"{name!r} is not finite at {int((~np.isfinite(values.values)).sum())} points of the design.")
    return values


def _array(values: np.ndarray) -> xr.DataArray:
    if values.ndim > 1:
        raise DataError(f"an array of shape {values.shape} has no dims by name: give a DataArray or a Dataset.")
    return xr.DataArray(values, dims=(RUN,) if values.ndim else ())
