"""The steps between a table and its runs Dataset. Each sets rows aside with a reason; none drops one.

malformed, numbers, shape, screens, third, divergence, jumps, ratio, duplicates, checkpoints: in this order
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from scalingkit.core import cells, complete, repeats, roles, schema, screen
from scalingkit.core.errors import listed
from scalingkit.core.quarantine import CODES
from scalingkit.core.work import Reading, checked

WEAK = ("model", "model name", "experiment", "experiment name")  # several runs may share them


def malformed(r: Reading) -> None:
    broken = r.table.broken
    r.quarantine.put(sorted(broken), "", "malformed", lambda i: broken[i][0], lambda i: broken[i][1])


def numbers(r: Reading) -> None:
    """Cells to float64. A cell that is there but no number condemns its row; an absent one does where it is needed."""
    absent: dict[str, np.ndarray] = {}
    parsed: dict[str, cells.Parsed] = {}
    for role in checked(r):
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
                p.code == code, r.at(role), code, r.raw(role), lambda i, p=p, c=code: p.why.get(i, CODES[c])
            )
    counts = [x for x in "NDC" if x in parsed]
    spare = len(counts) == 3  # one of the three may be absent: it follows from the other two
    several = sum(absent[x].astype(int) for x in counts) if spare else 0
    for role, p in parsed.items():
        gone = absent[role] & (several > 1) if spare and role in counts else absent[role]
        for code in ("blank", "missing"):
            r.quarantine.put(
                gone & (p.code == code), r.at(role), code, r.raw(role), lambda i, x=role, c=code: f"{x}: {CODES[c]}"
            )
    for name, header in ((k, c.header) for k, c in r.columns.items() if k in ("step", *roles.ARCHITECTURE)):
        r.values[name] = cells.parse(r.table.frame[header], name, 1.0, r.options.decimal).values


def shape(r: Reading) -> None:
    """N from the architecture, where the table has no N and not both D and C."""
    if r.options.vocab is not None:
        r.values.setdefault("vocab", np.full(len(r.alive), float(r.options.vocab)))
    if "N" in r.columns or "N" in r.options.columns or not {"d_model", "n_layers"} <= set(r.values):
        return
    if {"x", "y"} & set(r.columns):
        return
    shape: dict[str, np.ndarray] = {k: r.values[k] for k in ("d_model", "n_layers", "d_ff", "vocab") if k in r.values}
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


def screens(r: Reading) -> None:
    for role in checked(r) + (["N"] if "N_from" in r.said else []):
        values, code = r.values[role], "non-positive"
        with np.errstate(invalid="ignore"):
            if role == "error":
                bad, code = (values < 0) | (values > 1), "out-of-range"
            elif role in schema.POSITIVE:
                bad = values <= 0
            else:
                continue
        r.quarantine.put(bad, r.at(role), code, r.raw(role), lambda i, x=role, c=code: f"{x}: {CODES[c]}")


def third(r: Reading) -> None:
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
    r.said["completed"] = {x: (complete.FORMULA[x].format(k=r.options.k), m) for x, m in made.items()}
    if "N_from" in r.said:
        r.said["completed"]["N"] = (r.said["N_from"], np.ones(len(r.alive), dtype=bool))
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


def divergence(r: Reading) -> None:
    if "diverged" in r.columns:
        flags = cells.labels(r.table.frame[r.columns["diverged"].header])
        bad = np.isin(np.char.lower(flags.astype(str)), ("true", "1", "yes", "diverged"))
        r.quarantine.put(
            bad, r.at("diverged"), "diverged", r.raw("diverged"), lambda i: "the table marks the run as diverged"
        )
    if "loss" not in r.values or r.options.diverged is False:
        return
    if r.options.diverged is True and loss_unit(r, "loss"):
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


def jumps(r: Reading) -> None:
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
    jump = screen.jumps(r.values[role][rows], role, r.values["loss"][rows] if "loss" in r.values else None)
    far = jump.far if r.options.unit_jump else np.zeros_like(jump.far)
    r.quarantine.put(
        rows[far], r.at(role), "unit-jump", r.raw(role), lambda i: screen.question(r.values[role][i], jump, role)
    )
    doubtful = {int(i): jump for i in rows[(jump.near | jump.far) & ~far][:20]}
    left = np.flatnonzero(r.alive)
    if "loss" in r.values:
        doubtful = {int(left[i]): j for i, j in screen.lone(r.values[role][left], r.values["loss"][left])} | doubtful
    for i, against in sorted(doubtful.items()):
        r.note("unit-suspect", "warning", r.quarantine.labels[i], screen.question(r.values[role][i], against, role))


def ratio(r: Reading) -> None:
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


def duplicates(r: Reading) -> None:
    if not r.options.dedupe:
        return
    by_header = {c.header: role for role, c in r.columns.items() if role in r.values}
    compared = []
    for header in r.table.frame.columns:
        column = r.table.frame[header]
        if is_row_number(header, column):
            continue
        compared.append(r.values[by_header[header]] if header in by_header else _comparable(column))
    mask, first = repeats.duplicates(compared, r.alive)
    r.quarantine.put(mask, "", "duplicate", lambda i: "", lambda i: f"equal to row {first[i]} in every column")


def is_row_number(header: str, column: pd.Series) -> bool:
    """A column that only counts the rows does not make two rows different."""
    if not re.fullmatch(r"unnamed: ?\d+|index|", header.strip(), re.I):
        return False
    numbers = cells.parse(column, "").values
    return bool(np.isfinite(numbers).all() and len(np.unique(numbers)) == len(numbers))


def _comparable(column: pd.Series) -> np.ndarray:
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb":
        return column.to_numpy()
    return cells.labels(column)


def checkpoints(r: Reading) -> None:
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


def loss_unit(r: Reading, role: str) -> str:
    """The unit of the loss where it is not nats per token; else ''."""
    column = r.columns.get(role)
    if role in ("loss", "loss_se") and column and column.factor == 1.0 and not column.perplexity:
        unit = column.unit.strip()
        return "" if unit.casefold().rstrip("s") in ("", "nat", "nats/token", "nats per token", "nat/token") else unit
    return ""


ORDER = (malformed, numbers, shape, screens, third, divergence, jumps, ratio, duplicates, checkpoints)
