"""Any table to one pandas frame with a row per input row: CSV, TSV, JSON, JSON lines, Parquet, W&B exports, frames.

Text stays text (nothing is converted on the way in), nested values become columns ("config.n_layers"), and rows that
the file itself breaks (too many fields, a line that is not JSON) keep their place: they are listed in ``broken``.
A pickle is never opened.
"""

from __future__ import annotations

import ast
import csv
import gzip
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.core.errors import RunsError, hint, listed

PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".npy", ".npz")
NETCDF = (".nc", ".h5", ".hdf5")
READ = ".csv, .tsv, .txt, .json, .jsonl, .ndjson, .parquet, .nc (the first six also as .gz)"


@dataclass
class Table:
    """``frame``; ``broken`` = {row: (text, why)}; where it came from and the sha256 of its bytes."""

    frame: pd.DataFrame
    name: str = "table"
    source: str = ""
    sha256: str = ""
    broken: dict[int, tuple[str, str]] = field(default_factory=dict)


def load(source: Any, encoding: str = "utf-8-sig") -> Table:
    """Read ``source`` (path, frame, Dataset, mapping of arrays, list of records). Raises RunsError."""
    if isinstance(source, str | Path):
        return _path(Path(source).expanduser(), encoding)
    frame, name = _memory(source)
    return Table(_tidy(frame), name, name, _hash(frame))


def dataset_of(source: Any) -> Any:
    """A netCDF file as its Dataset; anything else as it is."""
    if (
        isinstance(source, str | Path)
        and (path := Path(source).expanduser()).suffix.lower() in NETCDF
        and path.is_file()
    ):
        try:
            ds = xr.load_dataset(path)
        except Exception as e:
            raise RunsError(f"{path.name}: could not be read as netCDF: {e}") from e
        ds.attrs.setdefault("data_name", path.stem)
        return ds
    return source


def _memory(source: Any) -> tuple[pd.DataFrame, str]:
    if isinstance(source, pd.Series | np.ndarray) or source is None:
        raise RunsError(
            f"a {type(source).__name__} is not a table: give named columns, as in {{'N': ..., 'loss': ...}}."
        )
    if isinstance(source, pd.DataFrame):
        return source, "pandas"
    if isinstance(source, xr.DataArray):
        source = source.to_dataset(name=source.name or "y")
    if isinstance(source, xr.Dataset):
        return _dataset(source), str(source.attrs.get("data_name", "xarray"))
    if isinstance(source, Mapping):
        return _mapping(source), "mapping"
    if hasattr(source, "collect") and not hasattr(source, "to_pandas"):
        source = source.collect()  # a lazy polars frame
    if hasattr(source, "to_pandas"):
        try:
            return source.to_pandas(), type(source).__module__.split(".")[0]
        except Exception as e:
            raise RunsError(f"the {type(source).__name__} could not be turned into a pandas frame: {e}") from e
    if isinstance(source, Sequence) and all(isinstance(r, Mapping) for r in source):
        return _records(source), "records"
    raise RunsError(
        f"a {type(source).__name__} is not a table. Give a path ({READ}), a pandas or polars frame, an xarray "
        "Dataset, a mapping of arrays or a list of records."
    )


def _dataset(ds: xr.Dataset) -> pd.DataFrame:
    """One row per cell of the Dataset's grid; a runs Dataset gives its runs, without its quarantine."""
    if "run" in ds.dims and "quarantined" in ds.dims:
        ds = ds.drop_dims("quarantined")
    if not ds.data_vars and not ds.coords:
        raise RunsError("the Dataset is empty: it has neither variables nor coordinates.")
    try:
        return ds.to_dataframe().reset_index() if ds.dims else pd.DataFrame({k: [v.item()] for k, v in ds.items()})
    except ValueError as e:
        raise RunsError(f"the Dataset could not be laid out as a table: {e}") from e


def _mapping(source: Mapping[Any, Any]) -> pd.DataFrame:
    arrays = {
        k: v if isinstance(v, pd.api.extensions.ExtensionArray) else np.asarray(_listed(v)) for k, v in source.items()
    }
    if wide := [k for k, v in arrays.items() if np.ndim(v) > 1]:
        raise RunsError(f"column {wide[0]!r} has {np.ndim(arrays[wide[0]])} dimensions: a column has one value a run.")
    lengths = {k: len(v) for k, v in arrays.items() if np.ndim(v)}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{k!r} has {n}" for k, n in lengths.items())
        raise RunsError(f"the columns differ in length: {said}.")
    n = next(iter(lengths.values()), 1 if arrays else 0)
    return pd.DataFrame({k: v if np.ndim(v) else [v.item()] * n for k, v in arrays.items()}, index=range(n))


def _listed(values: Any) -> Any:
    """Mixed lists stay objects: NumPy would turn [1.0, "NaN"] into text."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        return values
    out = np.empty(len(values), dtype=object)
    out[:] = values
    kinds = {type(v) for v in values}
    return (
        np.asarray(values) if kinds <= {int, float} and all(abs(v) < 2**63 for v in values if type(v) is int) else out
    )


def _path(path: Path, encoding: str) -> Table:
    if not path.is_file():
        near = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        what = "is a folder" if path.is_dir() else "does not exist"
        raise RunsError(
            f"{path}: {what}. {'' if path.is_dir() else hint(path.name, sorted(near)[:50]).strip()}".strip()
        )
    suffixes = [s.lower() for s in path.suffixes]
    kind = next((s for s in reversed(suffixes) if s not in (".gz", ".gzip")), "")
    if kind in PICKLES:
        raise RunsError(f"{path.name}: a {kind} file can hold a pickle, which runs code when opened. Export it to CSV.")
    raw = path.read_bytes()
    data = raw
    if raw[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(raw)
        except (OSError, EOFError) as e:
            raise RunsError(f"{path.name}: not a whole gzip file ({e}). Fetch it again.") from e
    name = path.name[: len(path.name) - sum(map(len, suffixes))] or path.name
    broken: dict[int, tuple[str, str]] = {}
    try:
        frame = _parse(data, kind, path, encoding, broken)
    except RunsError:
        raise
    except Exception as e:
        raise RunsError(f"{path.name}: could not be read as a {kind or 'CSV'} table: {e}") from e
    return Table(_tidy(frame), name, str(path), hashlib.sha256(raw).hexdigest(), broken)


def _parse(data: bytes, kind: str, path: Path, encoding: str, broken: dict[int, tuple[str, str]]) -> pd.DataFrame:
    if kind in (".parquet", ".pq") or data[:4] == b"PAR1":
        return pd.read_parquet(io.BytesIO(data))
    if kind in (".xls", ".xlsx", ".feather", ".arrow", *NETCDF):
        raise RunsError(f"{path.name}: {kind} is not read here. Save the sheet as CSV or Parquet. Read are {READ}.")
    text = _decode(data, encoding, path)
    if not text.strip():
        raise RunsError(f"{path.name}: the file is empty.")
    if kind in (".jsonl", ".ndjson"):
        return _lines(text, broken)
    if kind == ".json" or text.lstrip()[:2] in ("[{", '{"'):
        return _json(text, broken)
    return _csv(text, kind, broken)


def _decode(data: bytes, encoding: str, path: Path) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError) as e:
        raise RunsError(f"{path.name}: not {encoding} text ({e}). Say encoding='latin-1' or what it is.") from e


def _csv(text: str, kind: str, broken: dict[int, tuple[str, str]]) -> pd.DataFrame:
    """All cells as text. The fast parser first; where rows are ragged, a slow one that keeps every row."""
    first = next(line for line in text.splitlines() if line.strip())
    counts = {d: re.sub(r'"[^"]*"', "", first).count(d) for d in ",;\t|"}
    delimiter = "\t" if kind in (".tsv", ".tab") else max(counts, key=lambda d: counts[d])
    options: dict[str, Any] = dict(sep=delimiter, header=None, dtype=str, keep_default_na=False, na_filter=False)
    try:
        cells = pd.read_csv(io.StringIO(text), **options, skip_blank_lines=delimiter in first)
        names, body = cells.iloc[0].tolist(), cells.iloc[1:].reset_index(drop=True)
    except pd.errors.ParserError:
        names, body = _ragged(text, delimiter, broken)
    body.columns = pd.Index(_unique(names))
    return body


def _ragged(text: str, delimiter: str, broken: dict[int, tuple[str, str]]) -> tuple[list[str], pd.DataFrame]:
    csv.field_size_limit(10**9)
    rows = [r for r in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if r]
    names, body = rows[0], rows[1:]
    for i, row in enumerate(body):
        if len(row) > len(names):
            broken[i] = (delimiter.join(row)[:80], f"the row has {len(row)} fields, the header has {len(names)}")
    filled = [(r + [""] * len(names))[: len(names)] for r in body]
    return names, pd.DataFrame(filled, columns=range(len(names)), dtype=str)


def _unique(names: Sequence[Any]) -> list[str]:
    """A second 'loss' is 'loss.1', as pandas names it; a name that is empty is 'Unnamed: 3'."""
    out: list[str] = []
    taken = {str(n) for n in names}
    for i, name in enumerate(names):
        name, k = str(name) if str(name).strip() else f"Unnamed: {i}", 0
        base = name
        while name in out or (k and name in taken):
            k += 1
            name = f"{base}.{k}"
        out.append(name)
    return out


def _lines(text: str, broken: dict[int, tuple[str, str]]) -> pd.DataFrame:
    records: list[Mapping[str, Any]] = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            why = "" if isinstance(record, dict) else "the line is not a JSON object"
        except ValueError as e:
            record, why = {}, f"the line is not JSON ({e})"
        if why:
            broken[len(records)] = (line.strip()[:80], why)
        records.append({} if why else record)
    return _records(records)


def _json(text: str, broken: dict[int, tuple[str, str]]) -> pd.DataFrame:
    try:
        found = json.loads(text)
    except ValueError as e:
        if text.lstrip().startswith("{") and "\n" in text.strip():
            return _lines(text, broken)
        raise RunsError(f"not JSON: {e}") from e
    return _from_json(found)


def _from_json(found: Any) -> pd.DataFrame:
    """Records, columns, {"columns", "data"}, {"runs": records}, {run: record}."""
    if isinstance(found, list):
        if odd := [i for i, r in enumerate(found) if not isinstance(r, dict)]:
            raise RunsError(f"the JSON list holds something that is not an object at position {odd[0]}.")
        return _records(found)
    if not isinstance(found, dict):
        raise RunsError(f"the JSON holds a {type(found).__name__}, not a table.")
    if isinstance(found.get("columns"), list) and isinstance(found.get("data"), list):
        return pd.DataFrame(found["data"], columns=_unique(found["columns"]), dtype=object)
    lists = [k for k, v in found.items() if isinstance(v, list) and v and all(isinstance(r, dict) for r in v)]
    if len(lists) == 1:
        return _records(found[lists[0]])
    values = list(found.values())
    if values and all(isinstance(v, list) for v in values):
        return _mapping(found)
    if values and all(isinstance(v, dict) for v in values):
        keys = list(dict.fromkeys(k for v in values for k in v))
        if all(k.isdigit() for k in keys):  # {"N": {"0": ..}}: pandas' own layout, by columns
            return pd.DataFrame({c: pd.Series([v.get(k) for k in keys], dtype=object) for c, v in found.items()})
        return _records([{"run": k} | v for k, v in found.items()])
    return _records([found])


def _records(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Records to columns, nested objects flattened; what a record lacks is None."""
    if any(isinstance(v, Mapping) for r in records for v in r.values()):
        records = [_flat(r) for r in records]
    keys = dict.fromkeys(k for r in records for k in r)
    columns = {k: _column([r.get(k) for r in records]) for k in keys}
    return pd.DataFrame(columns, index=range(len(records)))


def _column(values: list[Any]) -> pd.Series:
    if all(type(v) is float for v in values):
        return pd.Series(np.array(values, dtype=np.float64))
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return pd.Series(out, dtype=object)


def _flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and set(value) == {"value", "desc"}:
            value = value["value"]  # W&B writes {"lr": {"value": 0.1, "desc": null}}
        out |= _flat(value, f"{name}.") if isinstance(value, Mapping) and value else {name: value}
    return out


def _tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """Text headers, unique; a meaningful index becomes a column; nested cells become columns; rows 0..n-1."""
    frame = frame.copy(deep=False)
    index = frame.index
    kept = any(n is not None for n in index.names) or not pd.api.types.is_integer_dtype(index.dtype)
    if isinstance(index, pd.MultiIndex):
        names = [str(n) if n is not None else f"index {i}" for i, n in enumerate(index.names)]
        labels = {n: index.get_level_values(i) for i, n in enumerate(names)}
    else:
        labels = {str(index.name) if index.name is not None else "run": index} if kept else {}
    if isinstance(frame.columns, pd.MultiIndex):
        names = [".".join(str(p) for p in c if str(p)) for c in frame.columns]
    else:
        names = [str(c) for c in frame.columns]
    frame.columns = pd.Index(_unique(names))
    frame.index = pd.RangeIndex(len(frame))
    for name, values in labels.items():
        if name not in frame.columns:
            frame[name] = pd.Series(np.asarray(values.astype(object)), index=frame.index, dtype=object)
    return _unnest(frame)


def _unnest(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns whose cells all are objects, or text that spells one, become columns of their own: config -> config.lr."""
    for name in list(frame.columns):
        column = frame[name]
        if column.dtype != object and not pd.api.types.is_string_dtype(column.dtype):
            continue
        known: dict[Any, Mapping[str, Any] | None] = {}
        cells: list[Mapping[str, Any]] = []
        for cell in column.to_numpy(dtype=object):
            key = cell if isinstance(cell, str) else id(cell)
            if key not in known:
                known[key] = {} if _absent(cell) else _object(cell)
            found = known[key]
            if found is None:  # one cell that is no object, and the column is left as it is
                break
            cells.append(found)
        if len(cells) < len(column) or not any(cells):
            continue
        parts = _records(cells)
        frame = pd.concat([frame.drop(columns=name), parts], axis=1)
        frame.columns = pd.Index(_unique([*frame.columns[: -parts.shape[1]], *(f"{name}.{c}" for c in parts.columns)]))
    return frame


def _absent(cell: Any) -> bool:
    return (
        cell is None
        or cell is pd.NA
        or (isinstance(cell, float) and cell != cell)
        or (isinstance(cell, str) and not cell)
    )


def _object(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, str) or not value.strip().startswith("{"):
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(value)
            return found if isinstance(found, dict) else None
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def _hash(frame: pd.DataFrame) -> str:
    """sha256 of the table's content (headers and cells as text), whatever kind of frame holds it."""
    digest = hashlib.sha256("\x1f".join(map(str, frame.columns)).encode(errors="surrogatepass"))
    for i in range(frame.shape[1]):
        column = frame.iloc[:, i]
        cells = (
            column.to_numpy().tobytes() if column.dtype.kind in "fiub" and isinstance(column.dtype, np.dtype) else None
        )
        digest.update(cells if cells is not None else "\x1f".join(map(str, column)).encode(errors="surrogatepass"))
    return digest.hexdigest()


def chart_export(headers: Sequence[str]) -> str:
    """The sentence for a W&B chart export ("run - eval/loss", one column per run); '' where it is not one."""
    wide = [h for h in headers if re.search(r" - .+__(MIN|MAX)$", h)]
    if not wide:
        return ""
    return (
        f"This is a chart export of Weights & Biases: one column per run ({listed(wide, 2)}). Export the runs table "
        "(with config and summary), or lay it out with one row per run and step."
    )
