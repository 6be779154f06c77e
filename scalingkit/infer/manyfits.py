"""Many fits: every table by every model at every seed, as one study.

    found = study("out/s.zarr", tables={"ray": Simulated("corpora", ray, theta)}, models=["chinchilla"], seeds=range(20))
    found.estimate - found.truth          (table, model, seed, param): recovery

A table is a Dataset of runs, the same at every seed, or a simulator, which makes another at each. A parameter that one
model has and another has not is NaN for the latter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr
from numpyro import handlers

from scalingkit.core import zoo
from scalingkit.core.law import Law
from scalingkit.core.names import CHAIN, DRAW, PARAM, RUN, SEED
from scalingkit.infer import pointfit as points
from scalingkit.infer import studies
from scalingkit.infer.fit import fit
from scalingkit.infer.likelihoods import DataError
from scalingkit.infer.model import Model, as_model
from scalingkit.infer.prepare import Data, prepare
from scalingkit.infer.provenance import dataset_sha256
from scalingkit.infer.replicate import simulate
from scalingkit.infer.spec import encode
from scalingkit.infer.studystore import Label, StudyError

METHODS = ("nuts", *points.METHODS)
LEVEL = 0.9


def study(
    store: str | Path, *, tables: Mapping[str, Any], models: Mapping[str, Any] | Sequence[Any], seeds: Iterable[int] = (0,),
    method: str = "nuts", client: Any = None, retry: bool = False, progress: studies.Progress = False, **settings: Any,
) -> xr.Dataset:  # fmt: skip
    """Fit every model to every table at every seed; what is kept at ``store`` already is not done again.

    tables    name -> runs Dataset, or ``Simulated``
    models    Models, laws or names of laws; a mapping gives them names of your own
    method    "nuts" (``fit``) or a point fit: "huber", "lsq-log", "lsq"; ``settings`` go to ``fit`` or ``pointfit``
    client, retry, progress   as in ``studies.run``

    Variables (table, model, seed, param): ``estimate`` (posterior mean, or the point), ``sd`` (or standard error),
    ``lower`` and ``upper`` (central 90%; of a point fit the bootstrap's, else estimate -+ 1.64 sd), and ``truth`` where
    tables are simulated. By (table, model, seed): rhat, ess, divergences, or objective, gradient_norm, agreement;
    ``state``, ``reason``, ``seconds``, ``device``.
    """
    task = Fits(dict(tables), _models(models), tuple(int(s) for s in seeds), method, dict(settings))
    axes: dict[str, Sequence[Label]] = {"table": list(task.tables), "model": list(task.models), SEED: list(task.seeds)}
    return studies.run(store, task, axes, client=client, retry=retry, progress=progress)


@dataclass(frozen=True)
class Simulated:
    """A table made at each seed. ``by``: a world or its name, with the world's ``theta``; or a Model, a law or its name,
    where ``theta`` holds raw values and what it does not name is drawn from the prior at each seed."""

    by: Any
    design: xr.Dataset
    theta: Mapping[str, float] = field(default_factory=dict)

    def spec(self) -> dict[str, Any]:
        by = {"world": self._by.name} if _is_world(self._by) else {"model": self._by.to_spec()}
        return {**by, "design": dataset_sha256(self.design), "theta": dict(self.theta)}

    @property
    def _by(self) -> Any:
        by = zoo.get(self.by) if isinstance(self.by, str) else self.by
        return by if _is_world(by) else as_model(by, None, None)

    def tables(self, seeds: Sequence[int]) -> dict[int, tuple[xr.Dataset, dict[str, float]]]:
        """seed -> (runs, true value by label)."""
        by = self._by
        if _is_world(by):
            truth = {k: float(v) for k, v in self.theta.items()}
            return {s: (by.simulate(s, self.design, **self.theta), truth) for s in seeds}
        keys = jax.vmap(jax.random.key)(np.asarray(seeds))
        made = simulate(by, self.design, keys, self.theta)
        data = prepare(by, self.design, observed=False)
        named = {k: v for k, v in made.items() if k not in by.hidden and k != by.outcome}
        return {
            s: (
                self.design.assign({by.outcome: (RUN, made[by.outcome][i])}),
                {n: float(x) for k, v in named.items() for n, x in _entries(by, data, k, v[i])},
            )
            for i, s in enumerate(seeds)
        }


@dataclass(frozen=True, eq=False)
class Fits:
    """The task: one fit of one model to one table at one seed."""

    tables: dict[str, Any]
    models: dict[str, Model]
    seeds: tuple[int, ...]
    method: str
    settings: dict[str, Any]

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise StudyError(f"method {self.method!r} is not one of {', '.join(METHODS)}.")
        for name, t in self.tables.items():
            if not isinstance(t, (xr.Dataset, Simulated)):
                raise StudyError(f"table {name!r} is a {type(t).__name__}: give a runs Dataset or Simulated(...).")

    def spec(self) -> dict[str, Any]:
        tables = {k: t.spec() if isinstance(t, Simulated) else dataset_sha256(t) for k, t in self.tables.items()}
        models = {k: m.to_spec() for k, m in self.models.items()}
        return {
            "task": "fits",
            "method": self.method,
            "settings": encode(self.settings),
            "tables": tables,
            "models": models,
        }

    def coords(self) -> dict[str, list[str]]:
        """Every parameter of every model on every table, in the order in which they come."""
        found: dict[str, None] = {}
        for name, model in product(self.tables, self.models.values()):
            try:
                found |= dict.fromkeys(self._labels(model, _tables(self)[name][self.seeds[0]][0]))
            except (DataError, points.RunsError):
                continue  # this fit will fail, and say why
        return {PARAM: list(found)}

    def __call__(self, *, table: str, model: str, seed: int) -> xr.Dataset:
        runs, truth = _tables(self)[table][seed]
        chosen = self.models[model]
        if self.method == "nuts":
            out = of_posterior(fit(chosen, runs, seed=seed, **self.settings))
        else:
            out = of_point(
                points.pointfit(chosen.law, runs, method=self.method, seed=seed, **self.settings), chosen.law
            )
        if any(isinstance(t, Simulated) for t in self.tables.values()):
            out["truth"] = (PARAM, [truth.get(k, np.nan) for k in out[PARAM].values])
        return out

    def _labels(self, model: Model, runs: xr.Dataset) -> Iterator[str]:
        if self.method != "nuts":
            yield from model.law.params
            return
        data = prepare(model, runs)
        trace = handlers.trace(handlers.seed(model, jax.random.key(0))).get_trace(data)
        sites = {k: s["value"] for k, s in trace.items() if s["type"] in ("sample", "deterministic")}
        for k in [*model.law.params, *sorted(set(sites) - set(model.law.params))]:
            if k not in model.hidden and k != model.outcome:
                yield from (n for n, _ in _entries(model, data, k, sites[k]))

    @property
    def _key(self) -> str:
        return json.dumps([self.spec(), self.seeds], sort_keys=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fits) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=4)
def _tables(task: Fits) -> dict[str, dict[int, tuple[xr.Dataset, dict[str, float]]]]:
    """name -> seed -> (runs, truth): simulated once a process."""
    return {
        k: t.tables(task.seeds) if isinstance(t, Simulated) else {s: (t, {}) for s in task.seeds}
        for k, t in task.tables.items()
    }


def of_posterior(tree: xr.DataTree) -> xr.Dataset:
    """Summary of a fit by param, and how the sampler went."""
    draws = {n: v for k, a in tree["posterior"].data_vars.items() for n, v in _named(str(k), a, (CHAIN, DRAW))}
    values = np.stack([np.ravel(v) for v in draws.values()])
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    out = _summary(list(draws), values.mean(1), values.std(1, ddof=1), low, high)
    for name, key in (("rhat", "rhat_max"), ("ess", "ess_bulk_min"), ("divergences", "divergences")):
        out[name] = float(tree.attrs[key])
    out.attrs = {k: tree.attrs[k] for k in ("route", "device", "device_reason", "versions") if k in tree.attrs}
    return out


def of_point(found: xr.Dataset, law: Law) -> xr.Dataset:
    """Summary of a point fit by param, and how the descent went."""
    names = list(law.params)
    value = np.array([float(found[k]) for k in names])
    sd = np.array([float(found[f"{k}_se"]) for k in names])
    if f"{names[0]}_interval" in found:
        low, high = np.stack([found[f"{k}_interval"].values for k in names], axis=1)
    else:
        low, high = value - 1.6448536 * sd, value + 1.6448536 * sd
    out = _summary(names, value, sd, low, high)
    for k in ("objective", "gradient_norm", "agreement", "condition_number"):
        out[k] = float(found[k])
    out.attrs = {k: found.attrs[k] for k in ("objective", "converged", "device", "device_reason") if k in found.attrs}
    return out


def _summary(names: list[str], estimate: Any, sd: Any, lower: Any, upper: Any) -> xr.Dataset:
    parts = {"estimate": estimate, "sd": sd, "lower": lower, "upper": upper}
    return xr.Dataset({k: (PARAM, v) for k, v in parts.items()}, coords={PARAM: names})


def _named(name: str, a: xr.DataArray, keep: tuple[str, ...]) -> Iterator[tuple[str, np.ndarray]]:
    """ "alpha", or "alpha[c4]" for every group."""
    dims = [d for d in a.dims if d not in keep]
    for labels in product(*(a[d].values for d in dims)):
        at = f"[{', '.join(map(str, labels))}]" if dims else ""
        yield name + at, a.sel(dict(zip(dims, labels, strict=True))).values


def _entries(model: Model, data: Data, name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The same of a site's value (groups...)."""
    groups = [data.meta.labels[d] for d in model.site_dims.get(name, ())]
    for labels, x in zip(product(*groups), np.ravel(value), strict=True):
        yield (f"{name}[{', '.join(labels)}]" if groups else name), x


def _models(models: Mapping[str, Any] | Sequence[Any]) -> dict[str, Model]:
    if isinstance(models, (str, Law, Model)):
        models = [models]
    if isinstance(models, Mapping):
        return {str(k): as_model(m, None, None) for k, m in models.items()}
    made = [as_model(m, None, None) for m in models]
    names = [m.law.name for m in made]
    if twice := [n for n in names if names.count(n) > 1]:
        raise StudyError(f"two models of the law {twice[0]!r}: name them, as models={{'pooled': ..., 'shared': ...}}.")
    return dict(zip(names, made, strict=True))


def _is_world(thing: Any) -> bool:
    return hasattr(thing, "simulate")
