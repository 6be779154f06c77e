"""studystore: the results of a grid of tasks in one Zarr store, each whole or not there.

    study.zarr/               Zarr format 3: opens with xr.open_zarr at any time, NaN where no result is yet
        zarr.json             what the study is (its spec and the spec's SHA-256) and the shape of a result
        mean (table, model, seed, param), ...   one chunk a task
        record (table, model, seed, byte)       one chunk a task, written last: JSON with the hash of what was written

A task is done when its record says so. A process killed while it writes leaves no record, and its task is run again; a
chunk that was torn or lost later (a full disk, a broken copy) does not have the hash that its record names. Chunks are
written under a temporary name and renamed, and no two tasks share one, so many processes may write at once. Results are
float64, where NaN can say "not yet"; nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
import zarr

from scalingkit.infer.store import StoreError

Label = str | int | float
Index = tuple[int, ...]
BYTES = 4096  # room for a task's record
LONGEST = 600  # characters that are kept of one text in a record
UNREADABLE = (RuntimeError, ValueError, OSError, KeyError)  # what Zarr and its codecs raise for a broken chunk
TODO, DONE, FAILED, TORN = "todo", "done", "failed", "torn"


class StudyError(StoreError):
    """A study that cannot be begun or gone on with as asked; the message says what to do."""


class Record(NamedTuple):
    """What is known of one task: its state, why it failed, seconds, hash of the result, and plain facts about it."""

    state: str = TODO
    reason: str = ""
    seconds: float = float("nan")
    sha256: str = ""
    about: dict[str, Any] = {}


class StudyStore:
    """The store at ``path``. ``axes``: dim -> labels of the grid."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        try:
            self.group = zarr.open_group(self.path, mode="r+")
            said = dict(self.group.attrs)["study"]
        except (FileNotFoundError, KeyError, *UNREADABLE) as error:
            raise StudyError(f"there is no study at {self.path}.") from error
        self.spec: dict[str, Any] = said["spec"]
        self.sha256: str = said["sha256"]
        self.axes: dict[str, list[Label]] = said["axes"]
        self.template: dict[str, Any] | None = said.get("template")

    @property
    def shape(self) -> Index:
        return tuple(len(v) for v in self.axes.values())

    # ------------------------------------------------------------------------------------------------------- writing

    def take_shape(self, result: xr.Dataset, coords: Mapping[str, Sequence[Label]]) -> None:
        """Make the arrays for results like ``result``; dims in ``coords`` get those labels. Once a study."""
        if clash := set(result.dims) & set(self.axes) | {"byte"} & set(result.dims):
            raise StudyError(f"a result has the dim {sorted(map(str, clash))[0]!r}, which is one of the study's own.")
        labels = {str(d): list(coords.get(str(d), _labels(result, str(d)))) for d in result.dims}
        variables: dict[str, Any] = {}
        for k, v in result.data_vars.items():
            if v.dtype.kind not in "fiub":
                raise StudyError(f"result {str(k)!r} is no number: texts about a result belong into its attrs.")
            dims = [str(d) for d in v.dims]
            variables[str(k)] = {"dims": dims, "attrs": {str(a): str(b) for a, b in v.attrs.items()}}
        named = [d for d in labels if d in coords or d in result.coords]
        for d in named:
            _write_labels(self.group, d, labels[d])
        for k, v in variables.items():
            inner = tuple(len(labels[d]) for d in v["dims"])
            _array(self.group, k, self.axes, inner, v["dims"], "float64", np.nan, v["attrs"])
        self.template = {"variables": variables, "labels": labels, "named": named}
        self.group.attrs["study"] = dict(self.group.attrs)["study"] | {"template": self.template}

    def write(self, index: Index, result: xr.Dataset, seconds: float) -> None:
        """Keep a result: its variables, then the record that makes it count. Raises StudyError for another shape."""
        values = self._aligned(result)
        for k, v in values.items():
            self._data(k)[index] = v
        about = {str(k): v for k, v in result.attrs.items()}
        self._record(index, Record(DONE, "", seconds, digest(values), about))

    def fail(self, index: Index, reason: str, seconds: float) -> None:
        self._record(index, Record(FAILED, reason, seconds))

    def forget(self, index: Index) -> None:
        """The task counts as not yet run."""
        self._data("record")[index] = np.zeros(BYTES, np.uint8)

    def _aligned(self, result: xr.Dataset) -> dict[str, np.ndarray]:
        """Values by name, laid out as in the store; labels of the store that a result lacks become NaN."""
        assert self.template is not None
        variables, labels = self.template["variables"], self.template["labels"]
        if set(map(str, result.data_vars)) != set(variables):
            raise StudyError(
                f"the result has {sorted(map(str, result.data_vars))}; the study keeps {sorted(variables)}."
            )
        out = {}
        for k, v in variables.items():
            part = result[k].astype(float).transpose(*v["dims"])
            for d in v["dims"]:
                have = _labels(result, d)
                if extra := [x for x in have if x not in labels[d]]:
                    raise StudyError(f"the result has {d} {extra[0]!r}, for which this study's store has no place.")
                part = part.assign_coords({d: have}).reindex({d: labels[d]})
            out[k] = np.asarray(part.values, order="C")
        return out

    def _record(self, index: Index, record: Record) -> None:
        text = json.dumps(_short(record._asdict())).encode()
        if len(text) > BYTES:
            text = json.dumps(_short(record._replace(about={"cut": "facts too long to keep"})._asdict())).encode()
        padded = np.zeros(BYTES, np.uint8)
        padded[: len(text)] = np.frombuffer(text, np.uint8)
        self._data("record")[index] = padded

    # ------------------------------------------------------------------------------------------------------- reading

    def records(self, check: bool = False) -> dict[Index, Record]:
        """Of every task. ``check``: results are read, and those without the hash of their record are TORN."""
        raw = self._read("record", np.uint8(0))
        out = {i: _decoded(raw[i]) for i in np.ndindex(self.shape)}
        if check and self.template:
            values = {k: self._read(k, np.nan) for k in self.template["variables"]}
            for i, r in out.items():
                if r.state == DONE and (any(v[i] is None for v in values.values()) or r.sha256 != _of(values, i)):
                    out[i] = r._replace(state=TORN, reason="what is stored is not what was written")
        return out

    def record(self, index: Index) -> Record:
        try:
            return _decoded(self._data("record")[index])
        except UNREADABLE:
            return Record(TORN, "its record cannot be read")

    def load(self) -> xr.Dataset:
        """Results with the grid's dims first, and ``state``, ``reason``, ``seconds`` and facts as texts (axes).

        What is torn, failed or not yet run is NaN. attrs: spec (JSON), sha256, done, failed, todo.
        """
        records = self.records(check=True)
        out = xr.Dataset(coords=self.axes)
        good = np.zeros(self.shape, bool)
        for i, r in records.items():
            good[i] = r.state == DONE
        template = self.template or {"variables": {}, "labels": {}, "named": []}
        out = out.assign_coords({d: _numbered(template["labels"][d]) for d in template["named"]})
        for k, v in template["variables"].items():
            cells, inner = self._read(k, np.nan), self._data(k).shape[len(self.axes) :]
            values = np.full((*self.shape, *inner), np.nan)
            for i in zip(*np.nonzero(good), strict=True):
                values[i] = cells[i]
            out[k] = ((*self.axes, *v["dims"]), values, v["attrs"])
        told = sorted({k for r in records.values() for k in r.about if r.state == DONE})
        for k in ("state", "reason", "seconds", *told):
            found = [r.about.get(k, "") if k in told else getattr(r, k) for r in records.values()]
            kind = np.array(found) if k == "seconds" else np.array([str(x) for x in found])
            out[k if k not in out else f"{k}_said"] = (tuple(self.axes), kind.reshape(self.shape))
        states = [r.state for r in records.values()]
        out.attrs = {"spec": json.dumps(self.spec, sort_keys=True), "sha256": self.sha256}
        out.attrs |= {s: states.count(s) for s in (DONE, FAILED, TORN, TODO)}
        return out

    def _data(self, name: str) -> Any:
        return self.group[name]

    def _read(self, name: str, fill: Any) -> np.ndarray:
        """Objects (axes): each task's own values, None where they cannot be read."""
        array, out = self._data(name), np.empty(self.shape, object)
        try:
            whole = array[...]
        except UNREADABLE:
            whole = None
        for i in np.ndindex(self.shape):
            try:
                out[i] = np.asarray(array[i] if whole is None else whole[i])
            except UNREADABLE:
                out[i] = None
        return out


def create(path: str | os.PathLike[str], spec: Mapping[str, Any], axes: Mapping[str, Sequence[Label]]) -> StudyStore:
    """The store for ``spec``: made anew, or gone on with where it is there. Raises StudyError where it is of another."""
    place = Path(path)
    if place.suffix != ".zarr":
        raise StudyError(f"{place.name!r}: a study is kept as Zarr; name it {place.stem or 'study'}.zarr.")
    plain = json.loads(json.dumps({"axes": {k: list(v) for k, v in axes.items()}, **spec}, default=_plain))
    if place.exists():
        return _same(StudyStore(place), plain)
    for dim, labels in axes.items():
        if not labels or len(set(labels)) < len(labels):
            raise StudyError(f"{dim} has {'a label twice' if labels else 'no labels'}: {list(labels)!r}.")
    place.parent.mkdir(parents=True, exist_ok=True)
    aside = place.with_name(f".{place.stem}-{uuid.uuid4().hex[:8]}.zarr")
    try:
        group = zarr.open_group(aside, mode="w-", zarr_format=3)
        group.attrs["study"] = {"format": 1, "spec": plain, "sha256": spec_sha256(plain), "axes": plain["axes"]}
        for d, labels in axes.items():
            _write_labels(group, d, labels)
        _array(group, "record", axes, (BYTES,), ["byte"], "uint8", 0, {"meaning": "JSON, padded with zeros"})
        os.rename(aside, place)
    except OSError:
        if not place.exists():  # else another process made it meanwhile
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return _same(StudyStore(place), plain)


def _same(store: StudyStore, spec: dict[str, Any]) -> StudyStore:
    if store.sha256 != spec_sha256(spec):
        found = differences(store.spec, spec)
        more = f" (and {len(found) - 5} more)" if len(found) > 5 else ""
        raise StudyError(
            f"{store.path} holds another study: {'; '.join(found[:5])}{more}. Give it the settings it was begun with, or "
            "name another store."
        )
    return store


def differences(old: Any, new: Any, at: str = "") -> list[str]:
    """Where two specs part: "models.a.likelihood.df: 4 there, 5 here"."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = list(dict.fromkeys([*old, *new]))
        parts = [(k, old.get(k, "nothing"), new.get(k, "nothing")) for k in keys]
        return [d for k, a, b in parts for d in differences(a, b, f"{at}.{k}" if at else str(k))]
    if old == new:
        return []
    a, b = (s if len(s := json.dumps(v)) < 60 else s[:57] + "..." for v in (old, new))
    if isinstance(old, list) and isinstance(new, list) and len(old) != len(new):
        a, b = f"{len(old)} entries {a}", f"{len(new)} entries {b}"
    return [f"{at}: {a} there, {b} here"]


def spec_sha256(spec: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()


def digest(values: Mapping[str, np.ndarray]) -> str:
    """Hash of float64 arrays by name; one NaN is as good as another."""
    h = hashlib.sha256()
    for k in sorted(values):
        v = np.asarray(values[k], dtype=np.float64)
        h.update(f"{k}{v.shape}".encode())
        h.update(np.where(np.isnan(v), np.nan, v).tobytes())
    return h.hexdigest()


def _of(values: Mapping[str, np.ndarray], index: Index) -> str:
    return digest({k: v[index] for k, v in values.items()})


def _decoded(raw: np.ndarray | None) -> Record:
    if raw is None:
        return Record(TORN, "its record cannot be read")
    text = raw.tobytes().rstrip(b"\0")
    if not text:
        return Record()
    try:
        return Record(**json.loads(text))
    except (ValueError, TypeError):
        return Record(TORN, "its record cannot be read")


def _array(
    group: Any, name: str, axes: Mapping[str, Any], inner: tuple[int, ...], dims: Iterable[str], dtype: str, fill: Any,
    attrs: Mapping[str, str],
) -> None:  # fmt: skip
    outer = tuple(len(v) for v in axes.values())
    chunks = (*(1 for _ in outer), *(max(n, 1) for n in inner))
    options = {"dtype": dtype, "fill_value": fill, "attributes": dict(attrs), "overwrite": True}
    group.create_array(name, shape=outer + inner, chunks=chunks, dimension_names=[*axes, *dims], **options)


def _write_labels(group: Any, dim: str, labels: Sequence[Label]) -> None:
    values = _numbered(labels)
    text = values.dtype.kind in "UO"
    values = values.astype(object) if text else values
    made = group.create_array(
        dim, shape=values.shape, chunks=values.shape, dtype="string" if text else values.dtype, dimension_names=[dim],
        overwrite=True,
    )  # fmt: skip
    made[:] = values


def _numbered(labels: Sequence[Label]) -> np.ndarray:
    """Labels as an array; text where any is text."""
    return np.array([str(x) for x in labels] if any(isinstance(x, str) for x in labels) else list(labels))


def _labels(ds: xr.Dataset, dim: str) -> list[Label]:
    return ds[dim].values.tolist() if dim in ds.coords else list(range(ds.sizes[dim]))


def _short(v: Any) -> Any:
    """Plain JSON, long texts cut."""
    if isinstance(v, Mapping):
        return {str(k): _short(x) for k, x in v.items()}
    v = _plain(v) if isinstance(v, (np.generic, np.ndarray)) else v
    if isinstance(v, float) and not np.isfinite(v):
        return str(v)
    if v is None or isinstance(v, (bool, int, float)):
        return v
    text = str(v)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _plain(v: Any) -> Any:
    if isinstance(v, np.generic):
        return v.item()
    if isinstance(v, np.ndarray):
        return v.tolist()
    raise TypeError(f"{v!r} ({type(v).__name__}) cannot be part of a study's spec: it is not plain JSON.")
