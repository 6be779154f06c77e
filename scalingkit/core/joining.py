"""Several runs Datasets to one. Tables of different conventions or units are refused, never mixed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core import names, notes, schema
from scalingkit.core import quarantine as aside
from scalingkit.core.errors import RunsError, listed
from scalingkit.core.schema import validate
from scalingkit.core.work import NONE


def concat(
    tables: Sequence[xr.Dataset], *, name: str = "", params_kind: str | None = None, flops_kind: str | None = None
) -> xr.Dataset:
    """One runs Dataset from several, with the label ``table``. Tables of different kinds are refused.

    ``params_kind`` or ``flops_kind`` states that all tables follow one convention, where their attrs do not say so.
    Variables that not all tables have are NaN where they are missing (labels: '(none)'); N, D, C, U and the outcome
    are kept only where all have them, and attrs['left_out'] names the rest.
    """
    if not tables:
        raise RunsError("concat needs at least one runs Dataset.")
    for ds in tables:
        validate(ds)
    kinds = {
        "params_kind": _same_kind(tables, "params_kind", schema.kind(params_kind, names.PARAMS_KINDS, "params_kind")),
        "flops_kind": _same_kind(tables, "flops_kind", schema.kind(flops_kind, names.FLOPS_KINDS, "flops_kind")),
    }
    _same_units(tables)
    titles = _titles(tables)
    strict = [k for k in (*schema.POSITIVE, "error", "x", "y") if any(k in ds for ds in tables)]
    left_out = [k for k in strict if not all(k in ds for ds in tables)]
    labels = [[str(v) for v in ds.run.values] for ds in tables]
    if len({v for part in labels for v in part}) < sum(map(len, labels)):
        labels = [[f"{t}: {v}" for v in part] for t, part in zip(titles, labels, strict=True)]
    columns = dict.fromkeys(
        str(k) for ds in tables for k, v in ds.variables.items() if v.dims == (names.RUN,) and k != "run"
    )
    data: dict[str, Any] = {}
    coords = {"run": (names.RUN, schema.text(v for part in labels for v in part))}
    for k in columns:
        if k not in left_out:
            _stack(k, tables, data, coords)
    sizes = [ds.sizes[names.RUN] for ds in tables]
    coords.setdefault(
        "table", (names.RUN, schema.text(t for t, n in zip(titles, sizes, strict=True) for _ in range(n)))
    )
    entries, start = [], 0
    for ds, title in zip(tables, titles, strict=True):
        entries += [e._replace(row=e.row + start, label=f"{title}: {e.label}") for e in aside.entries_of(ds)]
        start += int(ds.attrs["rows_in"])
    out = xr.Dataset({**data, **aside.variables(entries)}, coords=coords)
    out.attrs = kinds | {
        "source": "; ".join(dict.fromkeys(str(ds.attrs.get("source", "")) for ds in tables)),
        "data_name": name or " + ".join(titles), "sha256": "+".join(str(ds.attrs.get("sha256", "")) for ds in tables),
        "rows_in": start, "rows_used": sum(sizes), "rows_quarantined": len(entries), "left_out": json.dumps(left_out),
        "notes": notes.dump(n for ds in tables for n in notes.of(ds)),
    }  # fmt: skip
    return validate(out)


def _same_kind(tables: Sequence[xr.Dataset], key: str, stated: str | None) -> str:
    kinds = [str(ds.attrs.get(key, "unknown")) for ds in tables]
    known = set(kinds) - {"unknown"}
    clash = len(known) > 1 or (stated and known - {stated})
    if clash or (len(set(kinds)) > 1 and not stated):
        said = ", ".join(
            f"{ds.attrs.get('data_name', i)}: {k}" for i, (ds, k) in enumerate(zip(tables, kinds, strict=True))
        )
        mend = (
            "convert one of them first"
            if clash
            else f"if they do follow one convention, say {key}={next(iter(known))!r}"
        )
        raise RunsError(f"tables of different {key} are not mixed ({said}): {mend}.")
    return stated or kinds[0]


def _same_units(tables: Sequence[xr.Dataset]) -> None:
    for k in dict.fromkeys(k for ds in tables for k in ds.data_vars):
        units = {str(ds[k].attrs["units"]) for ds in tables if k in ds and "units" in ds[k].attrs}
        if len(units) > 1:
            raise RunsError(
                f"{k} has different units in the tables ({listed(sorted(units))}): convert one of them first."
            )


def _titles(tables: Sequence[xr.Dataset]) -> list[str]:
    out: list[str] = []
    for i, ds in enumerate(tables):
        title = str(ds.attrs.get("data_name", f"table {i}"))
        out.append(title if title not in out else f"{title} {i}")
    return out


def _stack(k: str, tables: Sequence[xr.Dataset], data: dict[str, Any], coords: dict[str, Any]) -> None:
    parts = [ds[k].values if k in ds.variables else None for ds in tables]
    numbers = all(p is None or p.dtype == np.float64 for p in parts)
    if numbers:
        filled = [np.full(ds.sizes[names.RUN], np.nan) if p is None else p for p, ds in zip(parts, tables, strict=True)]
        first = next(ds[k] for ds in tables if k in ds.variables)
        data[k] = (names.RUN, np.concatenate(filled), dict(first.attrs))
        return
    texts = [[NONE] * ds.sizes[names.RUN] if p is None else p for p, ds in zip(parts, tables, strict=True)]
    coords[k] = (names.RUN, schema.text(v for part in texts for v in part))
