"""What a runs Dataset is, and the check of it.

dim run          coordinate ``run``: a unique text label per row; labels (family, corpus, seed, ...) along run
variables        float64 along run, with attrs ``units`` and ``meaning``: N, D, U, C, loss > 0, 0 <= error <= 1
dim quarantined  quarantine_row, _label, _column, _value, _code, _reason
attrs            text and numbers only; rows_in == rows_used + rows_quarantined
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import names, notes
from scalingkit.core.errors import RunsError, hint, listed
from scalingkit.core.quarantine import FIELDS

POSITIVE = ("N", "D", "U", "C", "P", "loss", "loss_se")
COUNTS = ("rows_in", "rows_used", "rows_quarantined")
RESERVED = {*names.DIMS, "run", "runs", *(f"quarantine_{f}" for f in FIELDS)}


def variable(
    name: str, values: np.ndarray, unit: str = "", meaning: str = ""
) -> tuple[str, np.ndarray, dict[str, str]]:
    """(dim, values, attrs) of one variable along run."""
    house = names.VARIABLES.get(name)
    return (
        names.RUN,
        np.asarray(values, dtype=np.float64),
        {"units": unit or (house.unit if house else "1"), "meaning": meaning or (house.meaning if house else name)},
    )


def text(values: Any) -> np.ndarray:
    """NumPy text, also when there is none; long text stays an object array rather than fill the memory."""
    values = [str(v) for v in values]
    longest = max(map(len, values), default=1)
    if longest * len(values) > 5e7:
        return np.array(values, dtype=object)
    return np.array(values, dtype=str) if values else np.empty(0, dtype="<U1")


def validate(ds: Any, *needs: str) -> xr.Dataset:
    """The same Dataset if it is a runs Dataset in which every variable in ``needs`` is complete; else RunsError.

    ``needs`` are the inputs and the outcome of a law; each must be there, finite, and positive where it has to be.
    """
    if not isinstance(ds, xr.Dataset):
        raise RunsError(f"a {type(ds).__name__} is not a runs Dataset: scalingkit.runs.read(...) makes one of it.")
    if names.RUN not in ds.dims:
        raise RunsError(
            f"the Dataset has no dim 'run'; it has {listed(ds.dims) or 'none'}. runs.read(...) lays it out."
        )
    _labels(ds)
    along = [str(k) for k, v in ds.data_vars.items() if names.RUN in v.dims]
    for name in along:
        _variable(ds, name)
    for name in needs:
        if name not in ds:
            raise RunsError(f"the runs have no {name!r}.{hint(name, along)}")
        _complete(ds, name)
    _counts(ds)
    _conventions(ds)
    return ds


def is_runs(ds: xr.Dataset) -> bool:
    """Whether it claims to be a runs Dataset; ``validate`` says whether it is one."""
    return names.RUN in ds.dims and all(k in ds.attrs for k in COUNTS)


def _labels(ds: xr.Dataset) -> None:
    if names.RUN not in ds.coords:
        raise RunsError("the runs have no names: the coordinate 'run' is missing.")
    labels = [str(v) for v in ds[names.RUN].values]
    if len(set(labels)) < len(labels):
        twice = sorted({v for v in labels if labels.count(v) > 1}) if len(labels) < 5000 else ["some"]
        raise RunsError(f"run names must be unique; {listed(twice, 3)} is there more than once.")


def _variable(ds: xr.Dataset, name: str) -> None:
    v = ds[name]
    if v.dims != (names.RUN,):
        raise RunsError(f"{name!r} has dims {v.dims}; a variable of a runs Dataset has the dim 'run' only.")
    if v.dtype != np.float64:
        raise RunsError(f"{name!r} is {v.dtype}, not float64 (integers overflow): ds[{name!r}].astype('float64').")
    if name in POSITIVE and (bad := np.flatnonzero((v.values <= 0) | np.isinf(v.values))).size:
        raise RunsError(_at(ds, name, bad, "must be positive and finite"))


def _complete(ds: xr.Dataset, name: str) -> None:
    if ds[name].dtype.kind != "f":
        return
    if (bad := np.flatnonzero(~np.isfinite(ds[name].values))).size:
        raise RunsError(_at(ds, name, bad, "must be a finite number"))


def _at(ds: xr.Dataset, name: str, rows: np.ndarray, what: str) -> str:
    shown = [f"{ds.run.values[i]} ({ds[name].values[i]:g})" for i in rows[:5]]
    return f"{name} {what}; it is not in {len(rows)} run(s): {', '.join(shown)}. Set them aside with runs.read(...)."


def _counts(ds: xr.Dataset) -> None:
    if missing := [k for k in COUNTS if k not in ds.attrs]:
        raise RunsError(f"attrs lack {listed(missing)}: the number of rows read, used and set aside is not known.")
    rows_in, used, aside = (int(ds.attrs[k]) for k in COUNTS)
    if rows_in != used + aside:
        raise RunsError(f"{rows_in} rows in, but {used} used and {aside} set aside: rows are lost.")
    if used != ds.sizes[names.RUN]:
        raise RunsError(
            f"attrs say that {used} rows are used, the Dataset has {ds.sizes[names.RUN]}: choose runs with "
            "runs.select(ds, mask, reason), which keeps the account."
        )
    if missing := [f for f in FIELDS if f"quarantine_{f}" not in ds]:
        raise RunsError(f"the quarantine table lacks {listed(missing)}.")
    if aside != ds["quarantine_row"].size:
        raise RunsError(
            f"attrs say that {aside} rows are set aside, the quarantine table has {ds['quarantine_row'].size}."
        )


def _conventions(ds: xr.Dataset) -> None:
    for key, known in (("params_kind", names.PARAMS_KINDS), ("flops_kind", names.FLOPS_KINDS)):
        kind = ds.attrs.get(key, "unknown")
        if kind not in known:
            raise RunsError(f"attrs[{key!r}] is {kind!r}; it is one of {listed(known)}.{hint(str(kind), known)}")
    if odd := [
        k for k, v in ds.attrs.items() if isinstance(v, bool) or not isinstance(v, str | int | float | np.number)
    ]:
        raise RunsError(f"attrs {listed(odd)} hold neither text nor a number: they could not be saved.")
    try:
        notes.of(ds)
    except (ValueError, TypeError) as e:
        raise RunsError(f"attrs['notes'] cannot be read: {e}") from e


def kind(value: str | None, known: tuple[str, ...], option: str) -> str | None:
    """``value`` if it is a known kind. Raises RunsError with the nearest."""
    if value is None or value in known:
        return value
    raise RunsError(f"{option}={value!r} is not known; it is one of {listed(known)}.{hint(str(value), known)}")


def structure(ds: xr.Dataset, key: str) -> Any:
    """A structure kept as JSON text in attrs; {} where there is none."""
    return json.loads(ds.attrs.get(key, "{}"))
