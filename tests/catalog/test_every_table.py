"""What every public table must give, whatever it holds: the schema, its own arithmetic, its provenance, the same twice."""

from __future__ import annotations

import functools
import json
import re

import numpy as np
import pytest
import xarray as xr

from scalingkit import catalog
from scalingkit.catalog import _registry, _store
from scalingkit.core import notes
from scalingkit.core.names import DIMS, FLOPS_KINDS, PARAMS_KINDS
from scalingkit.core.runs import validate

NAMES = catalog.names()
SUBTABLES = [(n, s) for n in NAMES for s in catalog.table(n).subtables]
QUARANTINE = ["row", "label", "column", "value", "code", "reason"]
PLAIN = (str, int, float)
PINNED = re.compile(r"/[0-9a-f]{40}/")
ROWS = ("run", "sample")  # rewards are samples; everything else is runs


def test_the_folder_and_the_registry_name_the_same_tables():
    assert sorted(_registry.entries()) == NAMES
    assert len(NAMES) == 27


@pytest.mark.parametrize("name", NAMES)
def test_the_card_is_complete(name):
    t = catalog.table(name)
    shown = catalog.show(name)
    assert t.name == name and t.card.summary and t.card.scope and t.card.sources and t.card.tags
    assert t.subtables and t.columns and t.traps
    assert t.params_kind in PARAMS_KINDS and t.flops_kind in FLOPS_KINDS
    assert all(s.endswith(".") for s in t.traps), "a trap is a sentence"
    for key in ("title", "licence", "citation", "repository", "commit"):
        assert shown[key]
    json.dumps(shown)


@pytest.mark.parametrize("name", NAMES)
def test_the_registry_entry_is_complete(name):
    entry = _registry.entry(name)
    assert entry.repository.startswith("https://") and len(entry.commit) == 40
    for f in entry.files:
        assert len(f.sha256) == 64 and f.bytes > 0
        assert f.url.startswith("https://") != bool(f.derived), f"{f.name}: an address, or how it is made"
        assert not f.url or PINNED.search(f.url), f"{f.name}: the address must name a commit"


@pytest.mark.data
@pytest.mark.parametrize("name", NAMES)
def test_the_mirror_holds_what_the_registry_says(name, mirror):
    for f in _registry.entry(name).files:
        path = mirror / name / f.name
        assert path.stat().st_size == f.bytes
        assert _store.sha256(path) == f.sha256


@functools.cache
def loaded(name: str, subtable: str) -> xr.Dataset:
    """Read once for all tests here; none of them writes into it."""
    return catalog.load(name, subtable)


def rows_of(ds: xr.Dataset) -> str:
    return next(d for d in ROWS if d in ds.dims)


@pytest.mark.data
@pytest.mark.parametrize(("name", "subtable"), SUBTABLES)
def test_schema(name, subtable, mirror):
    ds = loaded(name, subtable)
    assert set(ds.dims) <= set(DIMS)
    labels = ds[rows_of(ds)].values
    assert labels.dtype.kind == "U" and len(set(labels)) == labels.size > 0
    for key, v in ds.data_vars.items():
        if key.startswith("quarantine_"):
            assert v.dims == ("quarantined",)
            continue
        assert v.dtype == np.float64, key
        assert v.attrs["units"] and v.attrs["meaning"], key
    for key, c in ds.coords.items():
        assert key in ds.dims or c.dtype.kind == "U", f"{key} must be text"
    for key in {"N", "D", "U", "C", "loss"} & set(ds.data_vars):
        assert np.isfinite(ds[key]).all() and (ds[key] > 0).all(), f"{key} has values whose log does not exist"
    if set(ds.dims) == {"run", "quarantined"}:
        validate(ds)


@pytest.mark.data
@pytest.mark.parametrize(("name", "subtable"), SUBTABLES)
def test_row_counts_add_up_and_every_quarantined_row_has_a_reason(name, subtable, mirror):
    ds = loaded(name, subtable)
    a = ds.attrs
    assert a["rows_in"] == a["rows_used"] + a["rows_quarantined"]
    assert (a["rows_used"], a["rows_quarantined"]) == (ds.sizes[rows_of(ds)], ds.sizes["quarantined"])
    rows = ds["quarantine_row"].values
    assert len(set(rows)) == rows.size and ((rows >= 0) & (rows < a["rows_in"])).all()
    for part in QUARANTINE:
        assert f"quarantine_{part}" in ds
    assert all(ds["quarantine_code"].values != "") and all(ds["quarantine_reason"].values != "")
    assert not set(ds["quarantine_label"].values) & set(ds[rows_of(ds)].values)
    assert ("rows-quarantined" in {n.code for n in notes.of(ds)}) == bool(rows.size)


@pytest.mark.data
@pytest.mark.parametrize(("name", "subtable"), SUBTABLES)
def test_provenance_is_in_the_attrs(name, subtable, mirror):
    a = loaded(name, subtable).attrs
    assert all(isinstance(v, PLAIN) and not isinstance(v, bool) for v in a.values())
    assert a["data_name"] == name and a["subtable"] == subtable
    used = json.loads(a["files"])
    registered = {f.name: f.sha256 for f in _registry.entry(name).files}
    assert used and used.items() <= registered.items()
    if len(used) == 1:
        assert a["sha256"] == next(iter(used.values()))
    assert len(a["sha256"]) == 64
    assert a["params_kind"] in PARAMS_KINDS and a["flops_kind"] in FLOPS_KINDS
    assert a["licence"] and a["citation"] and a["source"]


@pytest.mark.data
@pytest.mark.parametrize("name", NAMES)
def test_loading_twice_gives_the_same(name, mirror):
    xr.testing.assert_identical(catalog.load(name), catalog.load(name))


@pytest.mark.data
@pytest.mark.parametrize("name", [n for n in NAMES if catalog.table(n).fits])
def test_fits_name_variables_that_the_table_has(name, mirror):
    t = catalog.table(name)
    for fit in t.fits:
        if "constants" in t.card.tags:
            assert fit.reason, "a table of constants has nothing to fit, and must say so"
            continue
        ds = catalog.load(name, **fit.options.get("load", {}))
        for variable in [
            *fit.options.get("rename", {}).values(),
            *fit.options.get("at_most", {}),
            *fit.options.get("at_least", {}),
        ]:
            assert variable in ds.data_vars
        for coordinate, values in fit.options.get("where", {}).items():
            for value in values if isinstance(values, list) else [values]:
                assert value in ds[coordinate].values, f"no row has {coordinate} = {value}"


def test_twenty_tables_declare_a_fit():
    assert sum(bool(catalog.table(n).fits) for n in NAMES) >= 20
