"""Replicate: many simulated tables of one design, each fitted: what calibration and recovery are judged on.

    theta_j ~ prior (or a fixed truth),   y_j ~ p(y | theta_j, design),   draws_j ~ p(theta | y_j)      j = 1 .. n

The sampler is compiled once, with the data as arguments; on a GPU many tables go through it at once. Chains start at the truth, which is allowed because they are
judged on what they do after warm-up, and spares a search for the mode.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpyro import handlers
from numpyro.infer import log_likelihood
from numpyro.infer.util import unconstrain_fn

from scalingkit.core.names import RUN
from scalingkit.core.precision import require_x64
from scalingkit.infer import compiled, nuts, provenance, studies
from scalingkit.infer import device as devices
from scalingkit.infer.likelihoods import DataError
from scalingkit.infer.model import Model, as_model
from scalingkit.infer.prepare import Data, prepare

BLOCK = 1024  # tables in one vectorised program
Draws = Mapping[str, np.ndarray]
Sampler = Callable[[Model, Data, Draws, int], Draws]
LOG_LIKELIHOOD = "log likelihood"  # a quantity that depends on the data: a sampler that ignores them fails on it


def replicate(
    model: Any, design: xr.Dataset, n: int = 200, *, seed: int = 0, fitted: Any = None,
    truth: Mapping[str, float] | None = None, sampler: Sampler | None = None, draws: int = 400, tune: int = 400,
    device: str = "auto", store: str | Path | None = None, client: Any = None,
    progress: Callable[[int, int], Any] | None = None,
) -> xr.Dataset:  # fmt: skip
    """``n`` tables simulated from ``model`` at ``design``, each fitted by ``fitted`` (default: the same model).

    truth     values of the parameters by name, raw coefficients included ("A"); what is not named comes from the prior
    sampler   function (model, data, start, seed) -> {site: draws}; default one NUTS chain
    device    "auto" (the GPU, if there is one, for 64 tables or more), "cpu", "gpu" or "tpu"
    store     a .zarr where every table's result is kept as it is done; called again, what is there is not done again
    client    a ``distributed.Client`` whose workers do the fits (with ``store``)
    progress  called with (done, n)

    Dataset: ``truth`` (simulation, param), ``draws`` (simulation, param, draw), ``diverging`` (simulation). Group
    parameters appear as "alpha[c4]". Interrupted, it holds what was finished (with ``store``: the interrupt is passed on
    and the store holds it). Fits that failed are left out and counted in attrs["failed"]. Raises DataError for a bad design.
    """
    require_x64("calibration")
    model = as_model(model, None, None)
    fitted = model if fitted is None else as_model(fitted, None, None)
    if n < 1:
        raise ValueError(f"n = {n}: at least one table must be simulated.")
    if client is not None and store is None:
        raise ValueError("client needs store=: the workers keep their results there.")
    task = Replicates(model, fitted, design, n, seed, dict(truth or {}), sampler or Nuts(tune, draws), device)
    if store is None:
        out = _collected(task, progress)
    else:
        ready(task)  # a design that no fit can take is refused before anything is begun
        kept = studies.run(store, task, {"simulation": range(n)}, client=client, progress=progress or False)
        if kept.attrs["done"] == 0:
            raise ValueError(f"every fit failed; the first: {kept.reason.values[0]}")
        out = kept[["truth", "draws", "diverging"]].isel(simulation=kept.state.values == "done").drop_vars("simulation")
        out.attrs = {"failed": kept.attrs["failed"], "device": kept.device.values[kept.state.values == "done"][0]}
        out.attrs |= {"device_reason": kept.device_reason.values[kept.state.values == "done"][0]}
    out.attrs |= {"law": model.law.name, "simulations": out.sizes["simulation"], "seed": seed}
    out.attrs["fixed_truth"] = int(bool(truth))
    return out


def _collected(task: Replicates, progress: Callable[[int, int], Any] | None) -> xr.Dataset:
    """All tables in this process, in memory; those finished, where it is interrupted."""
    done: list[xr.Dataset] = []
    try:
        for result in task.many([{"simulation": j} for j in range(task.n)]):
            done.append(result)
            if progress:
                progress(len(done), task.n)
    except KeyboardInterrupt:
        if not done:
            raise
    out = xr.Dataset(
        {k: (("simulation", *done[0][k].dims), np.stack([d[k].values for d in done])) for k in done[0].data_vars},
        coords={"param": done[0]["param"].values},
    )
    out.attrs = dict(done[0].attrs)
    return out


@dataclass(frozen=True, eq=False)
class Replicates:
    """The task: fit table number ``simulation``. Simulated once a process, compiled once."""

    model: Model
    fitted: Model
    design: xr.Dataset
    n: int
    seed: int
    truth: dict[str, float]
    sampler: Any
    device: str = "auto"
    batch = 16  # tables that a worker is given together

    def spec(self) -> dict[str, Any]:
        models = {"model": self.model.to_spec(), "fitted": self.fitted.to_spec()}
        how = self.sampler.spec() if hasattr(self.sampler, "spec") else studies.named(self.sampler)
        said = {
            "design": provenance.dataset_sha256(self.design),
            "seed": self.seed,
            "truth": self.truth,
            "sampler": how,
        }
        return {"task": "replicates", **models, **said}

    def __call__(self, *, simulation: int) -> xr.Dataset:
        return next(iter(self.many([{"simulation": simulation}])))

    def many(self, points: Sequence[Mapping[str, int]]) -> Iterator[xr.Dataset]:
        """Results in order: side by side in threads on a CPU, in one vectorised program elsewhere."""
        numbers = [int(p["simulation"]) for p in points]
        chosen, why = devices.choose(self.device, self.n, "fits")
        got = ready(self)
        if chosen.platform != "cpu" and hasattr(self.sampler, "batched"):
            results = _vectorised(self, got, numbers, chosen)
        else:
            results = _side_by_side(partial(_one, self, got, chosen), numbers)
        for truth, draws, bad in results:
            out = xr.Dataset({"truth": ("param", truth), "draws": (("param", "draw"), draws), "diverging": ((), bad)})
            out.attrs = {"device": devices.text(chosen), "device_reason": why}
            yield out.assign_coords(param=got.labels)


class Ready(NamedTuple):
    """What all tables share: the arrays of one of them, every simulated site (simulation, ...), what is judged."""

    table: Data
    made: dict[str, np.ndarray]
    names: list[str]
    labels: list[str]


@lru_cache(maxsize=4)
def ready(task: Replicates) -> Ready:
    compiled.keep()
    keys = jax.random.split(jax.random.key(task.seed), task.n)
    made = simulate(task.model, task.design, keys, task.truth)
    table = prepare(task.fitted, task.design.assign({task.fitted.outcome: (RUN, made[task.model.outcome][0])}))
    return Ready(table, made, _judged(task.fitted, made), _labels(task.fitted, table, made))


class Nuts:
    """One NUTS chain, ``tune`` and ``draws`` long."""

    def __init__(self, tune: int, draws: int, target_accept: float = 0.9) -> None:
        self.settings = nuts.Settings(tune, draws, target_accept)

    def spec(self) -> dict[str, Any]:
        s = self.settings
        return {"sampler": "nuts", "tune": s.tune, "draws": s.draws, "target_accept": s.target_accept}

    def __call__(self, model: Model, data: Data, start: Draws, seed: int) -> dict[str, np.ndarray]:
        z = _unconstrain(model)(dict(start), data)
        end = nuts.chain(model, self.settings)(jax.random.key(seed), z, data)
        values = nuts.natural(model, {k: np.asarray(v)[None] for k, v in end[0].items()}, data)
        return {k: v[0] for k, v in values.items()} | {"diverging": np.asarray(end[1])}

    def batched(
        self, model: Model, data: Data, ys: np.ndarray, starts: Draws, seeds: np.ndarray, device: Any
    ) -> dict[str, np.ndarray]:
        """The same for many tables in one program: outcomes ``ys`` (table, run), starts and draws with a first dim table."""
        z = jax.vmap(_unconstrain(model), in_axes=(0, None))(dict(starts), data)
        keys = jax.vmap(jax.random.key)(seeds)
        keys, z, ys, data = jax.device_put((keys, z, ys, data), device)
        end = nuts.chains_of_tables(model, self.settings)(keys, z, ys, data)
        values = nuts.natural(model, {k: np.asarray(v) for k, v in end[0].items()}, data)
        return values | {"diverging": np.asarray(end[1])}


def _side_by_side(one: Callable[[int], Any], numbers: list[int]) -> Iterator[Any]:
    """Results in order. The first runs alone: it compiles, and the others find what it made."""
    yield one(numbers[0])
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        yield from pool.map(one, numbers[1:])
    finally:  # interrupted: what has not begun is not begun
        pool.shutdown(cancel_futures=True)


def _one(task: Replicates, got: Ready, device: Any, j: int) -> tuple[np.ndarray, np.ndarray, np.float64]:
    """Truth (param,), draws (param, draw) and share of divergent draws of table ``j``."""
    data = replace(got.table, y=np.asarray(got.made[task.model.outcome][j]))
    with jax.default_device(device):  # each thread has its own
        start = _start(task, got, data, j)
        return _judge(task, got, data, j, dict(task.sampler(task.fitted, data, start, task.seed + 1 + j)))


def _vectorised(task: Replicates, got: Ready, numbers: list[int], device: Any) -> Iterator[Any]:
    """The same for blocks of tables in one program each."""
    for first in range(0, len(numbers), BLOCK):
        block = numbers[first : first + BLOCK]
        ys = np.stack([np.asarray(got.made[task.model.outcome][j]) for j in block])
        tables = [replace(got.table, y=y) for y in ys]
        starts = [_start(task, got, d, j) for d, j in zip(tables, block, strict=True)]
        stacked = {k: np.stack([np.asarray(s[k]) for s in starts]) for k in starts[0]}
        seeds = np.array([task.seed + 1 + j for j in block])
        found = task.sampler.batched(task.fitted, got.table, ys, stacked, seeds, device)
        for i, j in enumerate(block):
            yield _judge(task, got, tables[i], j, {k: v[i] for k, v in found.items()})


def _start(task: Replicates, got: Ready, data: Data, j: int) -> Draws:
    """Table ``j``'s truth; of sites that the truth does not have, a prior draw."""
    fresh = _prior(task.fitted)(jax.random.key(task.seed + 1 + j), data)
    here = {k: v[j] for k, v in got.made.items()}
    return {k: here[k] if k in here and np.shape(here[k]) == np.shape(v) else np.asarray(v) for k, v in fresh.items()}


def _judge(task: Replicates, got: Ready, data: Data, j: int, found: dict[str, np.ndarray]) -> Any:
    here = {k: v[j] for k, v in got.made.items()}
    bad = np.float64(np.mean(found.pop("diverging", 0.0)))
    size = len(next(iter(found.values())))
    truth = [np.ravel(here[k]) for k in got.names]
    draws = [np.reshape(found[k], (size, -1)).T for k in got.names]
    if LOG_LIKELIHOOD in got.labels:
        sites = _sites(task.fitted, data)
        both = {k: np.concatenate([here[k][None], found[k]]) for k in sites}
        total = np.asarray(_log_likelihood(task.fitted)(both, data))
        truth.append(total[:1])
        draws.append(total[None, 1:])
    return np.concatenate(truth), np.concatenate(draws), bad


def simulate(model: Model, design: xr.Dataset, keys: Any, truth: Mapping[str, float]) -> dict[str, np.ndarray]:
    """Every site and the outcome (key, ...): a truth from the prior, or as given, and a table for each key."""
    data = prepare(model, design, observed=False)
    made = _simulator(model)(keys, _at_pivot(model, data, truth), data)
    return {k: np.asarray(v) for k, v in made.items()}


@lru_cache(maxsize=32)
def _simulator(model: Model) -> Callable[..., dict[str, jax.Array]]:
    """keys, values held fixed by site, data -> every site and the outcome (key, ...)."""

    def draw(key: jax.Array, fixed: dict[str, jax.Array], data: Data) -> dict[str, jax.Array]:
        held = handlers.substitute(model, data=fixed)
        trace = handlers.trace(handlers.seed(held, key)).get_trace(data, observed=False)
        if unknown := set(fixed) - {k for k, s in trace.items() if s["type"] == "sample"}:
            raise DataError(f"truth names {', '.join(sorted(unknown))}, which the model does not sample.")
        return {k: s["value"] for k, s in trace.items() if s["type"] in ("sample", "deterministic")}

    return jax.jit(jax.vmap(draw, in_axes=(0, None, None)))


def _at_pivot(model: Model, data: Data, truth: Mapping[str, float]) -> dict[str, jax.Array]:
    """Values by site: raw coefficients are brought to the pivot."""
    out = {}
    for k, v in truth.items():
        if k in model.law.scales:
            x, e = model.law.scales[k]
            if isinstance(e, str) and e not in truth:
                raise DataError(f"truth gives {k!r} without its exponent {e!r}: give both.")
            v = v * float(np.exp(-(truth[e] if isinstance(e, str) else e) * data.log_pivots[x]))
        out[model.site(k)] = jnp.asarray(float(v))
    return out


def _judged(model: Model, made: Draws) -> list[str]:
    """Quantities that both models have: the law's parameters in raw units, groups, spreads, noise."""
    skip = {model.outcome, *model.hidden, *(model.site(c) for c in model.law.scales)}
    have = [k for k in made if k not in skip]
    first = [k for k in model.law.params if k in have]
    known = {*model.law.params, *model.likelihood.nuisance()}
    group = [k for k in have if any(k.startswith((f"{p}_", f"{model.site(p)}_")) for p in known)]
    return list(dict.fromkeys([*first, *(k for k in have if k in known), *sorted(group)]))


def _labels(model: Model, table: Data, made: Draws) -> list[str]:
    """ "beta", "alpha[c4]", ..., and the log likelihood where both models have the same sites."""
    out = []
    for k in _judged(model, made):
        groups = [table.meta.labels[d] for d in model.site_dims.get(k, ())]
        out += [f"{k}[{', '.join(g)}]" for g in product(*groups)] if groups else [k]
    return [*out, LOG_LIKELIHOOD] if _sites(model, table) <= set(made) else out


def _sites(model: Model, data: Data) -> set[str]:
    """Names of the sampled sites."""
    return set(jax.eval_shape(_prior(model), jax.random.key(0), data))


@lru_cache(maxsize=32)
def _prior(model: Model) -> Callable[..., dict[str, jax.Array]]:
    """key, data -> one prior draw of the sampled sites."""

    def draw(key: jax.Array, data: Data) -> dict[str, jax.Array]:
        trace = handlers.trace(handlers.seed(model, key)).get_trace(data)
        return {k: s["value"] for k, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}

    return jax.jit(draw)


@lru_cache(maxsize=32)
def _unconstrain(model: Model) -> Callable[..., dict[str, jax.Array]]:
    return jax.jit(lambda values, data: unconstrain_fn(model, (data,), {}, values))


@lru_cache(maxsize=32)
def _log_likelihood(model: Model) -> Callable[..., jax.Array]:
    """sites (draw, ...), data -> log likelihood (draw,)."""

    def total(values: dict[str, jax.Array], data: Data) -> jax.Array:
        return log_likelihood(model, values, data, batch_ndims=1, parallel=True)[model.outcome].sum(-1)

    return jax.jit(total)
