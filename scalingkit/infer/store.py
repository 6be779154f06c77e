"""store: posteriors to Zarr or netCDF and back, whole or not at all; never a pickle.

    save(tree, "out/posterior.zarr");  load_tree("out/posterior.zarr")

A result is written under a temporary name beside its place and renamed: a failed or interrupted write leaves what was
there before. Attributes of any plain kind (None, bool, dict, list, NumPy scalars) go through one encoder, because
netCDF knows only text and numbers and Zarr would give other kinds back than it was given.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

MARK = "json:"
FORMATS = {".zarr": "Zarr", ".nc": "netCDF"}


class StoreError(ValueError):
    """A result that cannot be written or read as asked; the message says what to do."""


def save(tree: xr.DataTree | xr.Dataset, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write ``tree`` to ``path`` (.zarr or .nc) and return the path. The tree is not changed.

    Raises StoreError for another suffix, a MultiIndex or an attribute that is not plain; FileExistsError where there is
    something at ``path`` and ``overwrite`` is not given.
    """
    place = Path(path)
    kind = _format(place)
    if place.exists() and not overwrite:
        raise FileExistsError(f"{place} exists already: give overwrite=True to replace it, or another name.")
    plain = encoded(tree)
    place.parent.mkdir(parents=True, exist_ok=True)
    aside = place.with_name(f".{place.stem}-{uuid.uuid4().hex[:8]}{place.suffix}")
    try:
        _write(plain, aside, kind)
        _replace(aside, place)
    finally:
        _remove(aside)
    return place


def load_tree(path: str | os.PathLike[str]) -> xr.DataTree:
    """The DataTree that ``save`` wrote, in memory, with its attributes as they were given."""
    place = Path(path)
    kind = _format(place)
    if not place.exists():
        raise FileNotFoundError(f"there is no {place}.")
    try:
        with xr.open_datatree(place, engine="zarr" if kind == "Zarr" else _engine()) as opened:
            tree = opened.load()
    except (OSError, ValueError, KeyError) as error:
        raise StoreError(f"{place} cannot be read as {kind}: {error}") from error
    return decoded(tree)


def encode(value: Any) -> str | int | float:
    """An attribute as text, int or float: what is none of these becomes JSON behind a mark."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return MARK + json.dumps(value, default=_plain)
    return MARK + json.dumps(value) if isinstance(value, str) and value.startswith(MARK) else value


def decode(value: Any) -> Any:
    """What ``encode`` was given, with NumPy scalars as Python's and tuples as lists."""
    value = value.item() if isinstance(value, np.generic) else value
    return json.loads(value[len(MARK) :]) if isinstance(value, str) and value.startswith(MARK) else value


def encoded(tree: xr.DataTree | xr.Dataset) -> xr.DataTree:
    """A copy of ``tree`` with encoded attributes and text as objects, which both formats take."""
    tree = xr.DataTree(dataset=tree) if isinstance(tree, xr.Dataset) else tree
    return xr.DataTree.from_dict({n.path: _encode_dataset(n.to_dataset(inherit=False), n.path) for n in tree.subtree})


def decoded(tree: xr.DataTree) -> xr.DataTree:
    """A copy of ``tree`` with attributes decoded and text as NumPy's own, whichever kind the format gave."""
    return xr.DataTree.from_dict(
        {n.path: _text(_each_attrs(n.to_dataset(inherit=False), decode)) for n in tree.subtree}
    )


def _text(ds: xr.Dataset) -> xr.Dataset:
    """Variable-width text (of which a file may make labels) as fixed-width text, as it was before it was saved."""
    text = {}
    for k, v in ds.variables.items():
        values = v.values.astype(object) if v.dtype.kind in "OT" else None
        if values is not None and all(isinstance(x, str) for x in values.flat):
            text[k] = (v.dims, values.astype(str), v.attrs)
    out = ds.assign({k: v for k, v in text.items() if k not in ds.coords})
    return out.assign_coords({k: v for k, v in text.items() if k in ds.coords})


def _encode_dataset(ds: xr.Dataset, where: str) -> xr.Dataset:
    for name, index in ds.indexes.items():
        if isinstance(index, pd.MultiIndex):
            raise StoreError(f"{where}: {name!r} is a MultiIndex, which no format keeps: call reset_index({name!r}).")
    try:
        out = _each_attrs(ds, encode)
    except TypeError as error:
        raise StoreError(f"group {where}: an attribute cannot be stored: {error}.") from None
    text = {k: v.astype(object) for k, v in out.variables.items() if v.dtype.kind in "UT"}
    out = out.assign({k: v for k, v in text.items() if k not in out.coords})
    return out.assign_coords({k: v for k, v in text.items() if k in out.coords})


def _each_attrs(ds: xr.Dataset, change: Any) -> xr.Dataset:
    out = ds.copy()
    out.attrs = _attrs(ds.attrs, change)
    for k in out.variables:
        out[k].attrs = _attrs(ds[k].attrs, change)
        # how a file packed its numbers says nothing about how the next is to be written
        out[k].encoding = {}
    return out


def _attrs(attrs: Mapping[Any, Any], change: Any) -> dict[str, Any]:
    return {str(k): change(v) for k, v in attrs.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def _format(place: Path) -> str:
    if place.suffix not in FORMATS:
        raise StoreError(
            f"{place.name!r} ends in {place.suffix or 'no suffix'!r}: name it .zarr (Zarr) or .nc (netCDF)."
        )
    return FORMATS[place.suffix]


def _engine() -> Any:
    """A netCDF engine that knows groups; xarray's default may be scipy's, which does not."""
    from importlib.util import find_spec

    found = next((e for e, module in (("netcdf4", "netCDF4"), ("h5netcdf", "h5py")) if find_spec(module)), None)
    if found is None:
        raise StoreError("netCDF needs the package netCDF4 (or h5netcdf with h5py): install it, or write .zarr.")
    return found


def _write(tree: xr.DataTree, place: Path, kind: str) -> None:
    if kind == "Zarr":
        # format 2: format 3 has as yet no stable specification of text
        tree.to_zarr(place, mode="w", consolidated=True, zarr_format=2)
    else:
        tree.to_netcdf(place, engine=_engine())


def _replace(new: Path, place: Path) -> None:
    """``new`` takes the place of what was there; that is put back where the renaming fails."""
    if new.is_file():
        os.replace(new, place)
        return
    old = place.with_name(f".{place.stem}-{uuid.uuid4().hex[:8]}.old")
    if place.exists():
        os.replace(place, old)
    try:
        os.replace(new, place)
    except BaseException:
        if old.exists():
            os.replace(old, place)
        raise
    _remove(old)


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)
