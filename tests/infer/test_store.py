"""Round trips through both formats; a failed write leaves the old result whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from scalingkit.infer import store

FORMATS = [".zarr", ".nc"]
ATTRS = {
    "none": None, "yes": True, "no": np.bool_(False), "dict": {"a": [1, None, "x"], "b": {"c": 2.5}}, "list": [1, 2, "three"],
    "int": np.int64(7), "float": np.float32(0.5), "text": "plain", "marked": 'json:{"not": "ours"}', "array": np.arange(3),
    "empty": {}, "nothing": "", "big": 2**40,
}  # fmt: skip


@pytest.fixture
def tree() -> xr.DataTree:
    rng = np.random.default_rng(0)
    posterior = xr.Dataset(
        {"alpha": (("chain", "draw", "family"), rng.normal(size=(2, 5, 3)), {"units": "1", "fixed": False})},
        coords={"chain": [0, 1], "draw": np.arange(5), "family": ["gpt", "llama-2", "naïve"]},
    )
    stats = xr.Dataset({"diverging": (("chain", "draw"), rng.random((2, 5)) > 0.5)})
    data = xr.Dataset({"loss": ("run", [2.0, np.nan])}, coords={"run": ["a", "b"], "family": ("run", ["gpt", "gpt"])})
    made = xr.DataTree.from_dict({"/posterior": posterior, "/sample_stats": stats, "/constant_data": data})
    made.attrs = dict(ATTRS)
    made["posterior"].attrs = {"nested": {"k": None}}
    return made


def plain(value):
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


@pytest.mark.parametrize("suffix", FORMATS)
def test_round_trip(tree, tmp_path, suffix):
    back = store.load_tree(store.save(tree, tmp_path / f"t{suffix}"))
    assert set(back.children) == set(tree.children)
    for name, node in tree.children.items():
        xr.testing.assert_equal(back[name].to_dataset(), node.to_dataset())
    assert {k: (type(v), v) for k, v in back.attrs.items()} == {k: (type(plain(v)), plain(v)) for k, v in ATTRS.items()}
    assert back["posterior"].attrs == {"nested": {"k": None}}
    assert back["posterior"]["alpha"].attrs == {"units": "1", "fixed": False}
    assert back["sample_stats"]["diverging"].dtype == bool
    assert tree.attrs == ATTRS or tree.attrs["none"] is None  # the argument was not written into


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_second_generation_is_the_same(tree, tmp_path, suffix):
    once = store.load_tree(store.save(tree, tmp_path / f"a{suffix}"))
    other = ".nc" if suffix == ".zarr" else ".zarr"
    twice = store.load_tree(store.save(once, tmp_path / f"b{other}"))
    assert twice.attrs == once.attrs
    xr.testing.assert_identical(twice["posterior"].to_dataset(), once["posterior"].to_dataset())


@pytest.mark.parametrize("suffix", FORMATS)
def test_overwriting_is_asked_for(tree, tmp_path, suffix):
    place = store.save(tree, tmp_path / f"t{suffix}")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        store.save(tree, place)
    smaller = xr.DataTree.from_dict({"/posterior": tree["posterior"].to_dataset().isel(draw=slice(2))})
    store.save(smaller, place, overwrite=True)
    back = store.load_tree(place)
    assert set(back.children) == {"posterior"}
    assert back["posterior"].sizes["draw"] == 2


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("stage", ["_write", "_replace"])
def test_a_failed_write_leaves_the_old_result(tree, tmp_path, suffix, stage, monkeypatch):
    place = store.save(tree, tmp_path / f"t{suffix}")
    real = getattr(store, stage)

    def fails(*args):
        if stage == "_write":
            real(*args)  # everything was written, then the disk was full
        raise OSError("no space left")

    monkeypatch.setattr(store, stage, fails)
    with pytest.raises(OSError, match="no space"):
        store.save(tree.isel(draw=slice(1)), place, overwrite=True)
    assert store.load_tree(place)["posterior"].sizes["draw"] == 5
    assert [p.name for p in tmp_path.iterdir()] == [place.name]  # and no rest is left behind


def test_a_failed_renaming_puts_the_old_directory_back(tree, tmp_path, monkeypatch):
    place = store.save(tree, tmp_path / "t.zarr")
    real, failed = store.os.replace, []

    def new_one_fails(a, b):
        if b == place and not failed:
            failed.append(a)
            raise OSError("moved away")
        real(a, b)

    monkeypatch.setattr(store.os, "replace", new_one_fails)
    with pytest.raises(OSError, match="moved away"):
        store.save(tree.isel(draw=slice(1)), place, overwrite=True)
    assert failed and [p.name for p in tmp_path.iterdir()] == [place.name]
    assert store.load_tree(place)["posterior"].sizes["draw"] == 5


def test_refusals_say_what_to_do(tree, tmp_path):
    with pytest.raises(store.StoreError, match=r"\.zarr \(Zarr\) or \.nc"):
        store.save(tree, tmp_path / "t.pkl")
    with pytest.raises(FileNotFoundError):
        store.load_tree(tmp_path / "none.nc")
    pairs = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["x", "y"])
    indexed = xr.Dataset({"v": ("pair", [1.0, 2.0])}, coords=xr.Coordinates.from_pandas_multiindex(pairs, "pair"))
    with pytest.raises(store.StoreError, match="MultiIndex"):
        store.save(indexed, tmp_path / "t.zarr")
    tree.attrs["model"] = object()
    with pytest.raises(store.StoreError, match="object"):
        store.save(tree, tmp_path / "t.zarr")
    (tmp_path / "bad.nc").write_bytes(b"not a file of this kind")
    with pytest.raises(store.StoreError, match="cannot be read as netCDF"):
        store.load_tree(tmp_path / "bad.nc")
    assert [p.name for p in tmp_path.iterdir()] == ["bad.nc"]


def test_a_dataset_becomes_the_root(tmp_path):
    back = store.load_tree(store.save(xr.Dataset({"a": ("x", [1.0])}, attrs={"k": None}), tmp_path / "t.nc"))
    assert back.attrs == {"k": None}
    assert back["a"].values == [1.0]
