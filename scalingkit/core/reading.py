"""From any table to a runs Dataset. Each step sets rows aside with a reason; none drops one.

frame -> column roles -> numbers with units -> screens -> N, D, C completed -> repeats -> Dataset
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.core import cells, complete, names, repeats, roles, schema, screen, tables
from scalingkit.core.errors import RunsError, hint, listed
from scalingkit.core.notes import Note, dump
from scalingkit.core.quarantine import Quarantine, said

OUTCOMES = ("loss", "error", "y")
OPEN = ("crashed", "failed", "running", "killed", "pending", "preempted")
NONE = "(none)"
WEAK = ("model", "model name", "experiment", "experiment name")  # several runs may share them


@dataclass
class Options:
    """What the caller asked of ``read``."""

    columns: Mapping[str, str | None]
    units: Mapping[str, object]
    params_kind: str | None
    flops_kind: str | None
    dedupe: bool
    checkpoints: str
    diverged: bool | float
    unit_jump: bool
    group: Mapping[str, str]
    extras: bool | Sequence[str]
    vocab: float | None
    decimal: str
    k: float


@dataclass
class Reading:
    """The table on its way: ``values`` by role (float64, NaN where there is none), ``labels``, the quarantine, notes."""

    table: tables.Table
    options: Options
    columns: dict[str, roles.Column]
    quarantine: Quarantine
    values: dict[str, np.ndarray] = field(default_factory=dict)
    labels: dict[str, np.ndarray] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    said: dict[str, Any] = field(default_factory=dict)

    @property
    def alive(self) -> np.ndarray:
        return self.quarantine.alive

    def raw(self, role: str) -> Any:
        """row -> the cell as it was, of the column that plays ``role`` (of the value, where it was computed)."""
        if role in self.columns:
            column = self.table.frame[self.columns[role].header]
            return lambda i: column.iloc[i]
        return lambda i: f"{self.values[role][i]:.6g}"

    def at(self, role: str) -> str:
        return self.columns[role].header if role in self.columns else role

    def note(self, code: str, severity: Literal["info", "warning", "error"], about: str, text: str) -> None:
        self.notes.append(Note(code, severity, about, text))


def read(
    source: Any,
    *,
    columns: Mapping[str, str | None] | None = None,
    units: Mapping[str, object] | None = None,
    params_kind: str | None = None,
    flops_kind: str | None = None,
    dedupe: bool = True,
    checkpoints: Literal["last", "all"] = "last",
    diverged: bool | float = True,
    unit_jump: bool = True,
    group: str | Sequence[str] | Mapping[str, str] | None = None,
    extras: bool | Sequence[str] = True,
    vocab: float | None = None,
    name: str | None = None,
    decimal: Literal[".", ","] = ".",
    encoding: str = "utf-8-sig",
    flop_per_param_token: float = names.FLOP_PER_PARAM_TOKEN,
) -> xr.Dataset:
    """A table of training runs as a runs Dataset (dim run): rows_in == rows_used + rows_quarantined.

    source       path (CSV, TSV, JSON, JSON lines, Parquet, netCDF, a Weights & Biases export; also .gz), pandas or
                 polars frame, xarray Dataset, mapping of arrays, list of records
    columns      role -> header, where names do not tell ({"N": "Model Size"}; None: use no column). Any other role
                 ({"score": "MMLU"}) becomes a variable that must be finite. The precedence is in core/roles.py.
    units        role or header -> what one is worth: 1e9, "B", "T", "1e21", "PF-days", "bits", "perplexity"
    params_kind  "non-embedding", "total", "active", "unknown": which parameters N counts; chooses among columns
    flops_kind   "6ND", "exact", "reported", "unknown": how C was counted
    dedupe       set aside rows that equal an earlier one in every column
    checkpoints  "last": only the last checkpoint of a run is used; "all": all, with the coordinate ``trajectory``
    diverged     True: the rule of screen.diverged; a number: the loss above which a run diverged; False: no rule
    unit_jump    set aside rows that stand more than 5000-fold off from their column, or off 6ND by 1000-fold
    group        more columns that are labels: "optimizer", ["optimizer", "lr"] or {"optimizer": "config.opt"}
    extras       keep the other columns: True, False, or a list of headers; they are not screened
    vocab        size of the vocabulary, where no column has it (diverged rule, total parameters)
    decimal      "," where 2,31 means 2.31
    Raises RunsError, and nothing else, for a table or a request that cannot be read without guessing.
    """
    if checkpoints not in ("last", "all"):
        raise RunsError(f"checkpoints={checkpoints!r} is neither 'last' nor 'all'.")
    if decimal not in (".", ","):
        raise RunsError(f"decimal={decimal!r} is neither '.' nor ','.")
    options = Options(
        dict(columns or {}), dict(units or {}), schema.kind(params_kind, names.PARAMS_KINDS, "params_kind"),
        schema.kind(flops_kind, names.FLOPS_KINDS, "flops_kind"), dedupe, checkpoints, diverged, unit_jump,
        _groups(group), extras, vocab, decimal, float(flop_per_param_token),
    )  # fmt: skip
    table = tables.load(source, encoding)
    table.name = name or table.name
    r = _start(table, options)
    for step in (
        _malformed,
        _numbers,
        _shape,
        _screens,
        _third,
        _divergence,
        _jumps,
        _ratio,
        _duplicates,
        _checkpoints,
    ):
        step(r)
    _some_left(r)
    return _dataset(r)


def _groups(group: str | Sequence[str] | Mapping[str, str] | None) -> dict[str, str]:
    if isinstance(group, Mapping):
        return dict(group)
    return {g: g for g in ([group] if isinstance(group, str) else group or [])}


def _start(table: tables.Table, options: Options) -> Reading:
    headers = list(table.frame.columns)
    if not len(table.frame):
        raise RunsError(f"{table.name}: the table has no rows (columns: {listed(headers) or 'none'}).")
    if text := tables.chart_export(headers):
        raise RunsError(f"{table.name}: {text}")
    for label, header in options.group.items():
        if header not in headers:
            raise RunsError(f"group: the table has no column {header!r} (for {label}).{hint(header, headers)}")
    columns = roles.resolve(
        headers, options.columns, options.units, options.params_kind, options.flops_kind,
        lambda header, role: cells.could_be_numbers(table.frame[header], role),
    )  # fmt: skip
    reserved = ("chain", "draw", "quarantined", *(r for r in schema.RESERVED if r.startswith("quarantine_")))
    if bad := sorted(set(reserved) & {*options.columns, *options.group}):
        raise RunsError(f"{listed(bad)} is a name the house keeps for itself: call the column something else.")
    _agree(columns, "N", options.params_kind, "params_kind")
    _agree(columns, "C", options.flops_kind, "flops_kind")
    _something(table, columns)
    labels = {k: cells.labels(table.frame[columns[k].header]) for k in (*roles.LABELS, "run") if k in columns}
    labels |= {k: cells.labels(table.frame[h]) for k, h in options.group.items()}
    n = len(table.frame)
    own = labels.pop("run", np.full(n, "", dtype=object))
    shown = [v or f"row {i}" for i, v in enumerate(own)]
    r = Reading(table, options, columns, Quarantine(shown), labels=labels)
    r.said["own"] = own
    return r


def _agree(columns: Mapping[str, roles.Column], role: str, asked: str | None, option: str) -> None:
    column = columns.get(role)
    if column and column.kind and asked and asked != column.kind:
        raise RunsError(
            f"{option}={asked!r}, but the header {column.header!r} of {role} says {column.kind}. Give the column that "
            f"is {asked} (columns={{{role!r}: ...}}), or leave {option} out."
        )


def _something(table: tables.Table, columns: Mapping[str, roles.Column]) -> None:
    known = [c for c in columns if c not in (*roles.LABELS, *roles.HELPERS)]
    shape = {"d_model", "n_layers"} <= set(columns)
    if not known and not shape:
        raise RunsError(
            f"{table.name}: no column is known as N, D, C or loss among {listed(table.frame.columns)}. "
            f"Name them: columns={{'N': ..., 'D': ..., 'loss': ...}}, or {{'x': ..., 'y': ...}} for a curve."
        )


def _malformed(r: Reading) -> None:
    broken = r.table.broken
    r.quarantine.put(sorted(broken), "", "malformed", lambda i: broken[i][0], lambda i: broken[i][1])


def _checked(r: Reading) -> list[str]:
    """Roles whose cells must be numbers, in a fixed order."""
    first = (*roles.INPUTS, "P", *OUTCOMES, "loss_se", "x")
    own = sorted(k for k in r.columns if k not in (*first, *roles.LABELS, *roles.HELPERS))
    return [k for k in first if k in r.columns] + own


def _numbers(r: Reading) -> None:
    """Cells to float64. A cell that is there but no number condemns its row; an absent one does where it is needed."""
    absent: dict[str, np.ndarray] = {}
    parsed: dict[str, cells.Parsed] = {}
    for role in _checked(r):
        column = r.columns[role]
        parsed[role] = p = cells.parse(r.table.frame[column.header], role, column.factor, r.options.decimal)
        values = p.values
        if column.perplexity:
            with np.errstate(all="ignore"):
                values = np.where(values > 0, np.log(np.where(values > 0, values, 1.0)), values)
            r.note("perplexity-logged", "info", "loss", f"loss = ln({column.header}).")
        r.values[role] = values
        absent[role] = (p.code == "blank") | (p.code == "missing")
    for role, p in parsed.items():
        for code in ("unit-twice", "unparsable", "infinite", "diverged"):
            r.quarantine.put(
                p.code == code, r.at(role), code, r.raw(role), lambda i, p=p, c=code: p.why.get(i, _why(c))
            )
    counts = [x for x in "NDC" if x in parsed]
    spare = len(counts) == 3  # one of the three may be absent: it follows from the other two
    several = sum(absent[x].astype(int) for x in counts) if spare else 0
    for role, p in parsed.items():
        gone = absent[role] & (several > 1) if spare and role in counts else absent[role]
        for code in ("blank", "missing"):
            r.quarantine.put(
                gone & (p.code == code), r.at(role), code, r.raw(role), lambda i, x=role, c=code: f"{x}: {_why(c)}"
            )
    for name, header in ((k, c.header) for k, c in r.columns.items() if k in ("step", *roles.ARCHITECTURE)):
        r.values[name] = cells.parse(r.table.frame[header], name, 1.0, r.options.decimal).values


def _why(code: str) -> str:
    from scalingkit.core.quarantine import CODES

    return CODES[code]


def _shape(r: Reading) -> None:
    """N from the architecture, where the table has no N and not both D and C."""
    if r.options.vocab is not None:
        r.values.setdefault("vocab", np.full(len(r.alive), float(r.options.vocab)))
    if "N" in r.columns or "N" in r.options.columns or not {"d_model", "n_layers"} <= set(r.values):
        return
    if {"x", "y"} & set(r.columns):
        return
    shape = {k: r.values[k] for k in ("d_model", "n_layers", "d_ff", "vocab") if k in r.values}
    r.values["N"], r.said["params_kind"] = complete.from_architecture(shape, r.options.params_kind)
    r.said["N_from"] = "counted from " + ", ".join(
        r.at(k) for k in shape if k != "vocab" or r.said["params_kind"] == "total"
    )
    like = [h for h in r.table.frame.columns if "param" in roles.header(h).words]
    also = f" The table has {listed(map(repr, like))}: columns={{'N': ...}} uses it." if like else ""
    text = f"N is {r.said['N_from']} (a plain decoder: 4 d^2 for attention, 2 d f for the mlp).{also}"
    r.note("size-counted", "warning" if like else "info", "N", text)
    gone = np.isnan(r.values["N"])
    first = r.at("d_model")
    r.quarantine.put(
        gone, first, "missing", r.raw("d_model"), lambda i: "N cannot be counted: width or depth is no positive number"
    )


def _screens(r: Reading) -> None:
    for role in _checked(r) + (["N"] if "N_from" in r.said else []):
        values, code = r.values[role], "non-positive"
        with np.errstate(invalid="ignore"):
            if role == "error":
                bad, code = (values < 0) | (values > 1), "out-of-range"
            elif role in schema.POSITIVE:
                bad = values <= 0
            else:
                continue
        r.quarantine.put(bad, r.at(role), code, r.raw(role), lambda i, x=role, c=code: f"{x}: {_why(c)}")


def _third(r: Reading) -> None:
    """N, D, C from two of the three, and the conventions by their names."""
    before = {x for x in "NDC" if x in r.values}
    full, made = complete.third(r.values, r.options.k) if len(before) > 1 else ({}, {})
    off = {x for x, header in r.options.columns.items() if header is None and x in "NDC"}
    for x, values in full.items():
        if x in before or x not in off:
            r.values[x] = values
    made = {x: m & r.alive for x, m in made.items() if x in r.values}
    for x, mask in made.items():
        with np.errstate(invalid="ignore"):
            bad = mask & ~(np.isfinite(r.values[x]) & (r.values[x] > 0))
        formula = complete.FORMULA[x].format(k=r.options.k)
        r.quarantine.put(bad, x, "infinite", r.raw(x), lambda i, x=x, f=formula: f"{x} = {f} is not a finite number")
        if x in before and mask.any():
            rows = [r.quarantine.labels[i] for i in np.flatnonzero(mask)]
            r.note("compute-completed", "warning", x, f"{x} = {formula} in {len(rows)} row(s): {listed(rows, 5)}.")
    completed = {
        x: {"formula": complete.FORMULA[x].format(k=r.options.k), "rows": int(m.sum())} for x, m in made.items()
    }
    if "N_from" in r.said:
        completed["N"] = {"formula": r.said["N_from"], "rows": int(r.alive.sum())}
    r.said["completed"] = completed
    _kinds(r, before)


def _kinds(r: Reading, before: set[str]) -> None:
    n_kind = r.columns["N"].kind if "N" in r.columns else ""
    r.said["params_kind"] = r.options.params_kind or r.said.get("params_kind") or n_kind or "unknown"
    c_kind = r.columns["C"].kind if "C" in r.columns else ""
    if r.options.flops_kind or c_kind:
        r.said["flops_kind"] = r.options.flops_kind or c_kind
    elif "C" not in r.values:
        r.said["flops_kind"] = "unknown"
    elif not {"N", "D", "C"} <= before:
        r.said["flops_kind"] = "6ND" if {"N", "D"} <= set(r.values) else "reported"
    else:
        ratio = complete.ratio(r.values["N"], r.values["D"], r.values["C"], r.options.k)[r.alive]
        with np.errstate(invalid="ignore"):
            exact = np.abs(ratio - 1)[np.isfinite(ratio)] < 1e-3
        r.said["flops_kind"] = "6ND" if exact.size and exact.all() else "reported"


def _divergence(r: Reading) -> None:
    if "diverged" in r.columns:
        flags = cells.labels(r.table.frame[r.columns["diverged"].header])
        bad = np.isin(np.char.lower(flags.astype(str)), ("true", "1", "yes", "diverged"))
        r.quarantine.put(
            bad, r.at("diverged"), "diverged", r.raw("diverged"), lambda i: "the table marks the run as diverged"
        )
    if "loss" not in r.values or r.options.diverged is False:
        return
    if r.options.diverged is True and _loss_unit(r, "loss"):
        return  # chance is known in nats per token only
    loss = np.where(r.alive, r.values["loss"], np.nan)
    bad, rule = screen.diverged(loss[r.alive], _vocab(r), r.options.diverged)
    rows = np.flatnonzero(r.alive)[bad]
    r.said["diverged_rule"] = rule
    r.quarantine.put(rows, r.at("loss"), "diverged", r.raw("loss"), lambda i: f"loss {r.values['loss'][i]:.4g}: {rule}")


def _vocab(r: Reading) -> np.ndarray | None:
    vocab = r.values.get("vocab")
    if vocab is None or not (np.isfinite(vocab[r.alive]) & (vocab[r.alive] > 1)).all():
        return None
    return vocab[r.alive]


def _jumps(r: Reading) -> None:
    for role in [k for k in roles.INPUTS if k in r.values]:
        if role != "C" or not {"N", "D"} <= set(r.values):  # else C is held against 6 N D
            _jump(r, role)
        left = r.values[role][r.alive]
        floor = screen.PLAUSIBLE[role]
        if len(left) and left.max() < floor:
            r.note(
                "unit-suspect", "warning", role,
                f"all of {r.at(role)!r} is below {floor:g} (largest {left.max():.4g}). In thousands, billions, a logarithm? "
                f"Say so: units={{{role!r}: 'B'}}, or convert the column.",
            )  # fmt: skip


def _jump(r: Reading, role: str) -> None:
    rows = np.flatnonzero(r.alive)
    jump = screen.jumps(r.values[role][rows], role)
    far = jump.far if r.options.unit_jump else np.zeros_like(jump.far)
    r.quarantine.put(
        rows[far], r.at(role), "unit-jump", r.raw(role), lambda i: screen.question(r.values[role][i], jump, role)
    )
    for i in rows[(jump.near | jump.far) & ~far][:20]:
        r.note("unit-suspect", "warning", r.quarantine.labels[i], screen.question(r.values[role][i], jump, role))


def _ratio(r: Reading) -> None:
    """C against 6 N D where all three were read: more than 1000-fold off the table's own median is a unit; 2 is a note."""
    if not {"N", "D", "C"} <= set(r.columns) | ({"N"} if "N_from" in r.said else set()) or "C" not in r.values:
        return
    ratio = complete.ratio(r.values["N"], r.values["D"], r.values["C"], r.options.k)
    rows = np.flatnonzero(r.alive & np.isfinite(ratio))
    if not len(rows):
        return
    if r.options.unit_jump and len(rows) > 2:
        off = np.abs(np.log10(ratio[rows]) - np.median(np.log10(ratio[rows]))) > 3
        middle = float(np.median(ratio[rows]))
        r.quarantine.put(
            rows[off], r.at("C"), "inconsistent", r.raw("C"),
            lambda i: f"C / ({r.options.k:g} N D) = {ratio[i]:.3g}, in the rest about {middle:.3g}: is a unit of N, D or C wrong?",
        )  # fmt: skip
        rows = rows[~off]
    wide = rows[(ratio[rows] < 0.5) | (ratio[rows] > 2)]
    r.said["ratio"] = [float(ratio[rows].min()), float(ratio[rows].max())] if len(rows) else []
    if len(wide):
        shown = sorted(f"{r.quarantine.labels[i]} ({ratio[i]:.3g})" for i in wide)
        r.note(
            "compute-mismatch", "warning", "C",
            f"C / ({r.options.k:g} N D) is outside 0.5-2 in {len(wide)} row(s): {listed(shown, 10)}. "
            "Do N (embeddings, active experts) and C follow the convention you think?",
        )  # fmt: skip


def _duplicates(r: Reading) -> None:
    if not r.options.dedupe:
        return
    by_header = {c.header: role for role, c in r.columns.items() if role in r.values}
    compared = []
    for header in r.table.frame.columns:
        column = r.table.frame[header]
        if _is_row_number(header, column):
            continue
        compared.append(r.values[by_header[header]] if header in by_header else _comparable(column))
    mask, first = repeats.duplicates(compared, r.alive)
    r.quarantine.put(mask, "", "duplicate", lambda i: "", lambda i: f"equal to row {first[i]} in every column")


def _is_row_number(header: str, column: pd.Series) -> bool:
    """A column that only counts the rows does not make two rows different."""
    if not re.fullmatch(r"unnamed: ?\d+|index|", header.strip(), re.I):
        return False
    numbers = pd.to_numeric(column, errors="coerce")
    return bool(numbers.notna().all() and numbers.is_unique)


def _comparable(column: pd.Series) -> np.ndarray:
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb":
        return column.to_numpy()
    return cells.labels(column)


def _checkpoints(r: Reading) -> None:
    step = r.values.get("step", r.values.get("D"))
    own = [cells.labels(r.table.frame[h]) for h in _run_headers(r)]
    identity = [r.labels["trajectory"]] if "trajectory" in r.labels else own
    if step is None or not identity:
        if "step" in r.values and r.alive.sum() > 1:
            _maybe_checkpoints(r)
        return
    same = [v for k, v in r.labels.items() if k != "trajectory"] + ([r.values["N"]] if "N" in r.values else [])
    found = repeats.checkpoints(identity, same, step, r.alive)
    if not (found.key != "").any():
        return
    by = r.at("step" if "step" in r.values else "D")
    runs_n = len(set(found.key[found.key != ""]))
    if r.options.checkpoints == "last":
        n = r.quarantine.put(
            found.earlier, by, "checkpoint", lambda i: f"{step[i]:.10g}",
            lambda i: f"an earlier checkpoint of run {found.key[i]!r}; row {found.last[i]} is its last",
        )  # fmt: skip
        r.note("checkpoints-dropped", "info", by, f"{n} earlier checkpoints of {runs_n} run(s) are set aside.")
    else:
        alone = np.where(identity[0] != "", identity[0], r.quarantine.labels)
        r.labels["trajectory"] = np.where(found.key != "", found.key, alone)
        text = f"{int((found.key != '').sum())} rows are checkpoints of {runs_n} run(s) (coordinate trajectory): not independent."
        r.note("checkpoints-kept", "warning", "trajectory", text)
    if (tied := found.tied & r.alive).any():
        names_ = listed(sorted({str(k) for k in found.key[tied]}), 5)
        r.note("checkpoints-unclear", "warning", by, f"several rows are the last checkpoint of {names_}; all are kept.")


def _run_headers(r: Reading) -> list[str]:
    """Columns that identify a run; a model's name does not, nor does a plain count (run 0, 1, 2) without a step."""
    if "run" not in r.columns:
        return []
    column = r.columns["run"]
    headers = [h for h in (column.header, *column.others) if roles.header(h).tail not in WEAK]
    if "step" in r.values:
        return headers
    return [h for h in headers if not all(re.fullmatch(r"\d{0,3}", v) for v in cells.labels(r.table.frame[h]))]


def _maybe_checkpoints(r: Reading) -> None:
    same = list(r.labels.values()) + ([r.values["N"]] if "N" in r.values else [])
    if not same:
        return
    rows = np.flatnonzero(r.alive & np.isfinite(r.values["step"]))
    ids = repeats.group_ids([v[rows] for v in same]) if len(rows) else np.empty(0)
    if len(rows) and pd.Series(r.values["step"][rows]).groupby(ids).nunique().max() > 1:
        r.note(
            "checkpoints-unclear", "warning", r.at("step"),
            "rows of equal size differ in their step: checkpoints of one run are not independent rows. "
            "Name the runs: columns={'run': ...}.",
        )  # fmt: skip


def _some_left(r: Reading) -> None:
    if r.alive.any():
        return
    q = sorted(r.quarantine.entries)
    first = "; ".join(f"row {e.row}, column {e.column!r}, {e.value!r}: {e.reason}" for e in q[:3])
    raise RunsError(f"{r.table.name}: none of the {len(q)} rows can be used: {said(r.quarantine.counts())}. {first}.")


def _dataset(r: Reading) -> xr.Dataset:
    keep = r.alive
    _last_notes(r)
    checked = [k for k in dict.fromkeys(("N", "D", "U", "C", *_checked(r))) if k in r.values]
    data = {k: schema.variable(k, r.values[k][keep], _loss_unit(r, k)) for k in checked}
    if "step" in r.values and np.isfinite(r.values["step"][keep]).all():
        data["step"] = schema.variable("step", r.values["step"][keep], "step", "training step of the checkpoint")
    coords = {k: (names.RUN, schema.text(v if v else NONE for v in values[keep])) for k, values in r.labels.items()}
    coords["run"] = (names.RUN, schema.text(_run_labels(r)[keep]))
    for name, values, header in _extras(r, {*data, *coords, *schema.RESERVED, *names.VARIABLES}):
        if values.dtype == np.float64:
            data[name] = schema.variable(name, values[keep], "1", f"column {header!r}, as read")
        else:
            coords[name] = (names.RUN, schema.text(values[keep]))
    ds = xr.Dataset({**data, **r.quarantine.variables()}, coords=coords)
    ds.attrs = _attrs(r, ds)
    return ds


def _loss_unit(r: Reading, role: str) -> str:
    column = r.columns.get(role)
    if role in ("loss", "loss_se") and column and column.factor == 1.0 and not column.perplexity:
        unit = column.unit.strip()
        return "" if unit.casefold().rstrip("s") in ("", "nat", "nats/token", "nats per token", "nat/token") else unit
    return ""


def _last_notes(r: Reading) -> None:
    n, aside = len(r.alive), int((~r.alive).sum())
    if aside:
        counts = ", ".join(f"{c} {k}" for k, c in r.quarantine.counts().items())
        r.note("rows-quarantined", "warning", "runs", f"{aside} of {n} rows set aside: {counts}.")
    if not {*OUTCOMES} & set(r.values) and not [
        k for k in r.columns if k not in names.VARIABLES and k in r.values and k not in roles.HELPERS
    ]:
        r.note("no-outcome", "warning", "loss", "no column is known as the loss; name one: columns={'loss': ...}.")
    for k, values in r.labels.items():
        if (none := values[r.alive] == "").any():
            r.note("label-missing", "warning", k, f"{int(none.sum())} row(s) have no {k}; they are called {NONE!r}.")
    for header in r.table.frame.columns:
        if roles.header(header).tail in ("state", "status"):
            states = np.char.lower(cells.labels(r.table.frame[header]).astype(str))
            rows = [r.quarantine.labels[i] for i in np.flatnonzero(np.isin(states, OPEN) & r.alive)]
            if rows:
                r.note("unfinished-runs", "warning", header, f"{len(rows)} run(s) did not finish: {listed(rows, 5)}.")


def _run_labels(r: Reading) -> np.ndarray:
    step = r.values.get("step")
    seed = r.labels.get("seed")
    suffix = []
    for i in range(len(r.alive)):
        parts = [f"seed {seed[i]}"] if seed is not None and seed[i] else []
        parts += [f"step {step[i]:.10g}"] if step is not None and np.isfinite(step[i]) else []
        suffix.append(", ".join(parts))
    out = np.array(r.quarantine.labels, dtype=object)
    rows = np.flatnonzero(r.alive)
    out[rows] = repeats.unique_labels([r.quarantine.labels[i] for i in rows], [suffix[i] for i in rows])
    return out


def _extras(r: Reading, taken: set[str]) -> list[tuple[str, np.ndarray, str]]:
    """The other columns: numbers where every cell that is there is one, else text; named so that files can hold them."""
    headers = list(r.table.frame.columns)
    if isinstance(r.options.extras, bool):
        wanted = headers if r.options.extras else []
    else:
        wanted = list(r.options.extras)
        for header in wanted:
            if header not in headers:
                raise RunsError(f"extras: the table has no column {header!r}.{hint(header, headers)}")
    used = {
        c.header
        for k, c in r.columns.items()
        if k not in roles.HELPERS or k == "run" or (k == "step" and "step" in taken)
    }
    used |= set(r.options.group.values())
    out = []
    for header in wanted:
        if header in used or _is_row_number(header, r.table.frame[header]):
            continue
        name = re.sub(r"[/\x00-\x1f]+", ".", header).strip().strip(".") or "column"
        while name in taken:
            name += "_column"
        taken.add(name)
        out.append((name, _plain(r.table.frame[header], r.options.decimal), header))
    return out


def _plain(column: pd.Series, decimal: str) -> np.ndarray:
    parsed = cells.parse(column, "", 1.0, decimal) if cells.starts_with_number(column) else None
    if parsed is not None and not np.isin(parsed.code, ("unparsable", "diverged")).any():
        return parsed.values
    return cells.labels(column)


def _attrs(r: Reading, ds: xr.Dataset) -> dict[str, str | int | float]:
    design = {k: ds[k].values for k in ("N", "D", "x") if k in ds} or {k: ds[k].values for k in ("C",) if k in ds}
    design |= {k: ds[k].values for k in r.labels if k not in ("seed", "trajectory")}
    attrs: dict[str, str | int | float] = {
        "source": r.table.source, "data_name": r.table.name, "sha256": r.table.sha256,
        "params_kind": r.said["params_kind"], "flops_kind": r.said["flops_kind"],
        "rows_in": len(r.alive), "rows_used": int(r.alive.sum()), "rows_quarantined": int((~r.alive).sum()),
        "columns": json.dumps({k: c.said() for k, c in r.columns.items()}),
        "completed": json.dumps(r.said["completed"]), "replicates": json.dumps(repeats.replicates(design)),
        "flop_per_param_token": r.options.k, "notes": dump(r.notes),
    }  # fmt: skip
    if r.said.get("ratio"):
        attrs["compute_ratio"] = json.dumps(r.said["ratio"])
    if "diverged_rule" in r.said:
        attrs["diverged_rule"] = r.said["diverged_rule"]
    return attrs
