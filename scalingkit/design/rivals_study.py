"""Ray against spread on every table that allows it, and on simulated ones: a study that can be stopped and resumed.

    unit    a table, or one corpus or configuration of it: one loss surface
    table   what units of one source share; the cluster of ``rates``

Real units are cut from the catalogue. Simulated: "corpora-K/..." from worlds.corpora at key K (a truth of its own for
each corpus); "own-K": outcomes of the very law that is fitted, at parameters drawn about its truth.
Tables of more than ``MOST`` runs are thinned at random, so that none costs more than its share.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import zoo
from scalingkit.core.law import Law
from scalingkit.core.names import RUN
from scalingkit.design import grids
from scalingkit.design.grids import DesignError
from scalingkit.design.rivals import rivals, win_rate

MOST = 240
LAWS = ("chinchilla", "kaplan", "data_constrained", "precision_aware", "farseer")
SPLIT = {
    "chinchilla-epoch-svg": (None, ("all",)),
    "gadre-overtraining": (None, ("all",)),  # 34 runs a corpus are too few to cut; all three are scored on the same text
    "isoflop-collection": ("experiment", ("marin_202603__comma__llama_2", "marin_202603__dclm__llama_2", "marin_202603__nemotron__llama_2")),
    "porian-isoflop": ("configuration", (
        "owt2/base/long/kaplan", "owt2/base/short/chinchilla", "owt2/base/short/kaplan", "owt2/tuned/short/const",
        "rw/base/long/kaplan", "rw/base/short/chinchilla", "rw/base/short/kaplan", "rw/tuned/short/const",
    )),
    "datablations-data-constrained": (None, ("all",)),
    "gemstones": (None, ("all",)),
    "misfitting-survey": (None, ("all",)),
    "colpret-hitchhiker": (None, ("all",)),
    "olmo-ladder": (None, ("all",)),
}  # fmt: skip
REAL = tuple(f"{t}:{part}" for t, (_, parts) in SPLIT.items() for part in parts)
SIMULATED = tuple(f"corpora-{k}:{c}" for k in range(4) for c in ("one", "two")) + tuple(
    f"own-{k}:all" for k in range(4)
)
FAST_UNITS = ("corpora-0:one", "corpora-1:one")


def unit_rivals(
    unit: str, law: str, pairs: int, starts: int, methods: Sequence[str], arithmetic: Sequence[str], seed: int
) -> xr.Dataset:
    """One point of the study: ``rivals`` on one unit with one law. Raises DesignError where the law does not apply."""
    found = zoo.get(law, "laws")
    runs = unit_runs(unit, found)
    return rivals(runs, found, pairs=pairs, starts=starts, methods=methods, arithmetic=arithmetic, seed=seed)  # type: ignore[arg-type]


def unit_runs(unit: str, law: Law) -> xr.Dataset:
    """The runs of a unit, with the inputs the law takes; thinned to MOST."""
    table, part = unit.split(":", 1)
    if table in SPLIT:
        runs = _real(table, part)
    elif table.startswith("corpora-"):
        runs = _corpora(int(table.removeprefix("corpora-")), part)
    else:
        return _own(law, int(table.removeprefix("own-")))
    missing = [k for k in law.inputs if k not in runs]
    if missing:
        raise DesignError(f"law {law.name!r} takes {', '.join(missing)}, which {table} does not vary.")
    if "U" in runs and "U" not in law.inputs:
        raise DesignError(f"{table} repeats its data, which law {law.name!r} does not know of.")
    good = np.all([np.isfinite(runs[k].values) & (runs[k].values > 0) for k in (*law.inputs, "loss")], axis=0)
    runs = runs.isel({RUN: np.flatnonzero(good)})
    chosen = np.random.default_rng(0).permutation(runs.sizes[RUN])[:MOST]
    return runs.isel({RUN: np.sort(chosen)})


def _real(table: str, part: str) -> xr.Dataset:
    from scalingkit import catalog

    runs = catalog.load(table)
    column = SPLIT[table][0]
    keep = np.ones(runs.sizes[RUN], bool) if column is None else runs[column].values.astype(str) == part
    columns = [k for k in ("N", "D", "U", "loss") if k in runs]
    return runs[columns].isel({RUN: np.flatnonzero(keep)})


def _corpora(key: int, part: str) -> xr.Dataset:
    from scalingkit.worlds import corpora

    sizes, ratios = np.geomspace(3e7, 6e9, 24), np.geomspace(1.5, 250, 8)
    theta = corpora.world.example["theta"] | {"level_sd": 0.2, "exponent_sd": 0.04}
    runs = corpora.simulate(key, corpora.spread(["one", "two"], sizes, ratios), **theta)
    keep = np.flatnonzero(runs["corpus"].values.astype(str) == part)
    return runs[["N", "D", "loss"]].isel({RUN: keep})


def _own(law: Law, key: int) -> xr.Dataset:
    """150 runs of the law itself, noise 1%, parameters within about 10% of its truth (coefficients at the pivot)."""
    rng = np.random.default_rng([17, key])
    tpp = 20 * np.exp(np.r_[0.05 * rng.standard_normal(50), 1.3 * rng.standard_normal(100)])
    N = np.exp(rng.uniform(np.log(3e7), np.log(6e9), 150))
    more = {}
    if "U" in law.inputs:
        more["U"] = tpp * N / rng.choice([1.0, 2.0, 4.0, 8.0, 16.0], 150)
    if "P" in law.inputs:
        more["P"] = rng.choice([3.0, 4.0, 6.0, 8.0, 16.0], 150)
    runs = grids.design(N, tpp * N, **more)
    pivots = law.pivots({k: runs[k].values for k in law.inputs})
    theta = dict(law.truth)
    for k, p in law.params.items():
        if k not in law.scales and p.prior.support.__class__.__name__ != "_Real":
            theta[k] = theta[k] * float(np.exp(0.1 * rng.standard_normal()))
    for c, (x, e) in law.scales.items():
        moved = (theta[e] - law.truth[e]) if isinstance(e, str) else 0.0
        theta[c] = theta[c] * pivots[x] ** moved
    mean = np.asarray(law(**theta, **{k: runs[k].values for k in law.inputs}), float)
    return runs.assign(loss=(RUN, mean * np.exp(0.01 * rng.standard_normal(mean.size)), {"units": "nat"}))


def study(
    store: Any = None, *, fast: bool = False, units: Sequence[str] | None = None, laws: Sequence[str] = LAWS, pairs: int = 20,
    starts: int = 4, methods: Sequence[str] = ("huber", "lsq-log"), arithmetic: Sequence[str] = ("float64", "float32"),
    seed: int = 0, progress: Any = False,
) -> xr.Dataset:  # fmt: skip
    """``unit_rivals`` over units and laws, kept in ``store`` (.zarr) as they finish; ``fast``: two simulated units.

    What does not apply is NaN, with its ``reason``.
    """
    if fast:
        units, laws, pairs, starts = FAST_UNITS, ("chinchilla",), 6, 2
        methods, arithmetic = ("huber",), ("float64", "float32")
    settings = dict(pairs=pairs, starts=starts, methods=list(methods), arithmetic=list(arithmetic), seed=seed)
    units = list(units or (*REAL, *SIMULATED))
    if fast:
        return _at_once(units, list(laws), settings)
    from scalingkit.infer import studies

    if store is None:
        with tempfile.TemporaryDirectory() as folder:
            return studies.run(
                Path(folder) / "rivals.zarr", unit_rivals, {"unit": units, "law": list(laws)}, settings=settings
            ).load()
    return studies.run(store, unit_rivals, {"unit": units, "law": list(laws)}, settings=settings, progress=progress)


def _at_once(units: Sequence[str], laws: Sequence[str], settings: dict[str, Any]) -> xr.Dataset:
    """The same without a store, for units and laws that all apply."""
    rows = [xr.concat([unit_rivals(u, k, **settings) for k in laws], xr.IndexVariable("law", list(laws)), combine_attrs="drop")
            for u in units]  # fmt: skip
    return xr.concat(rows, xr.IndexVariable("unit", list(units)), combine_attrs="drop")


def by_table(found: xr.Dataset) -> xr.Dataset:
    """``wins`` and ``tries`` of every table (table, law, objective, arithmetic, region); and ``real``, 1 or 0."""
    table = [str(u).split(":")[0] for u in found["unit"].values]
    win = found["win"].assign_coords(table=("unit", table)).groupby("table")
    out = xr.Dataset({"wins": win.sum(("unit", "pair")), "tries": win.count(("unit", "pair"))})
    return out.assign_coords(real=("table", [int(t in SPLIT) for t in out["table"].values]))


def rates(found: xr.Dataset) -> xr.Dataset:
    """Share of wins of the spread: ``share``, the mean over tables, and ``rate`` (estimate, lower, upper), 90%.

    Dims kind (real, simulated), law, objective, arithmetic, region; ``tables`` is how many tables say it.
    """
    counts = by_table(found)
    kinds = [k for k in ("real", "simulated") if (counts["real"] == (k == "real")).any()]
    parts = [_rates(counts.isel(table=np.flatnonzero(counts["real"].values == (k == "real")))) for k in kinds]
    return xr.concat(parts, xr.IndexVariable("kind", kinds))


def _rates(counts: xr.Dataset) -> xr.Dataset:
    share = (counts["wins"] / counts["tries"].where(counts["tries"] > 0)).mean("table")
    rate = _intervals(counts)
    return xr.Dataset({"share": share, "rate": rate, "tables": (counts["tries"] > 0).sum("table")})


def _intervals(counts: xr.Dataset) -> xr.DataArray:
    dims = [d for d in counts["wins"].dims if d != "table"]
    k, n = (counts[v].transpose("table", *dims) for v in ("wins", "tries"))
    flat = [
        win_rate(a, b)
        for a, b in zip(k.values.reshape(k.sizes["table"], -1).T, n.values.reshape(n.sizes["table"], -1).T, strict=True)
    ]
    values = np.array(flat).reshape(*(k.sizes[d] for d in dims), 3)
    coords = {d: counts[d].values for d in dims} | {"bound": ["estimate", "lower", "upper"]}
    return xr.DataArray(values, dims=(*dims, "bound"), coords=coords)
