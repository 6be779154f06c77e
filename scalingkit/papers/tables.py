"""Every public table that declares a law: load it, fit the law, compare with the printed numbers.

    |found - expected| <= tolerance     for each expected parameter, "objective" and derived name

outcome   reproduced      printed values were found again
          differs         they were not, or what we had found ourselves was not found again; ``why`` says what
          fitted          the law fits; nobody printed values for it (ours were found again)
          not available   the table is not to be had, or the measured points behind it are not public
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr

from scalingkit import catalog
from scalingkit.catalog._table import Fit
from scalingkit.core import names as house
from scalingkit.core import notes, zoo
from scalingkit.core.errors import RunsError, hint
from scalingkit.core.law import Law
from scalingkit.infer.pointfit import pointfit

OUTCOMES = ("reproduced", "fitted", "differs", "not available")
DERIVED: dict[str, Callable[[Mapping[str, float]], float]] = {
    "a": lambda p: p["beta"] / (p["alpha"] + p["beta"]),  # N* ~ C**a of the Chinchilla form
    "b": lambda p: p["alpha"] / (p["alpha"] + p["beta"]),  # D* ~ C**b
}


@dataclass(frozen=True)
class Outcome:
    """What came of one law on one table. ``found`` has the expected names; ``rows`` is how many rows were fitted."""

    table: str
    law: str
    outcome: str
    why: str
    where: str = ""
    rows: int = 0
    expected: Mapping[str, float] = field(default_factory=dict)
    found: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.table} ({self.law or 'no law'}): {self.outcome}{f': {self.why}' if self.why else ''}"


def verify_tables(names: Iterable[str] | None = None, *, starts: int = 16, seed: int = 0) -> list[Outcome]:
    """Outcomes of all declared fits of the tables ``names`` (default: every table of the catalogue), in order.

    A table without a declared fit gives one outcome that says so. Raises CatalogError for an unknown name.
    """
    wanted = catalog.names() if names is None else [names] if isinstance(names, str) else list(names)
    tables = [catalog.table(n) for n in wanted]
    return [o for t in tables for o in (_each(t, starts, seed) or [_no_law(t)])]


def summary(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """How many tables load and fit a law, and how many fits came out each way."""
    outcomes = list(outcomes)
    counts = {word: sum(o.outcome == word for o in outcomes) for word in OUTCOMES}
    return {"tables": len({o.table for o in outcomes if o.rows})} | counts


def _each(table: Any, starts: int, seed: int) -> list[Outcome]:
    return [verify_fit(table.name, f, starts=starts, seed=seed) for f in table.fits]


def _no_law(table: Any) -> Outcome:
    return Outcome(table.name, "", "not available", "no law of the package describes this table, so none is declared")


def verify_fit(name: str, fit: Fit, *, starts: int = 16, seed: int = 0) -> Outcome:
    """One law on one table. What cannot be loaded or fitted becomes an outcome, not an exception."""
    blank = Outcome(name, fit.law, "not available", "", fit.where, expected=dict(fit.expected))
    law = restricted(zoo.get(fit.law, "laws"), fit.options.get("fixed", {}), fit.options.get("ties", {}))
    try:
        runs = select(name, fit.options)
        found = pointfit(law, runs, delta=fit.options.get("delta", 1e-3), starts=starts, seed=seed)
    except catalog.CatalogError as e:
        return replace(blank, why=str(e))
    except RunsError as e:
        return replace(blank, outcome="not available" if fit.reason else "differs", why=fit.reason or str(e))
    values = {k: _value(k, found, fit) for k in fit.expected}
    said = tuple(str(n) for n in notes.of(found))
    outcome, why = _judge(fit, values)
    if not found.attrs["converged"]:
        why = f"the fit did not converge{f'; {why}' if why else ''}"
    rows = runs.sizes[house.RUN]
    return replace(blank, outcome=outcome, why=why, rows=rows, found=values, warnings=said)


def _judge(fit: Fit, found: Mapping[str, float]) -> tuple[str, str]:
    """Outcome and why. NaN never agrees."""
    off = [k for k, v in found.items() if not abs(v - fit.expected[k]) <= fit.tolerance[k]]
    if off:
        told = ", ".join(f"{k} {found[k]:.6g} (expected {fit.expected[k]:.6g} +- {fit.tolerance[k]:.2g})" for k in off)
        return "differs", f"{told}{f'; {fit.reason}' if fit.reason else ''}"
    return "reproduced" if fit.printed else "fitted", fit.reason


def _value(key: str, found: xr.Dataset, fit: Fit) -> float:
    """A parameter, the objective, a held or tied parameter, or a derived number, by name."""
    if key in found:
        return float(found[key])
    if key in fit.options.get("fixed", {}):
        return float(fit.options["fixed"][key])
    if key in (ties := fit.options.get("ties", {})):
        return float(found[ties[key]])
    if key in DERIVED:
        return float(DERIVED[key](_Values(found, fit)))
    raise ValueError(f"fit of {fit.law}: expected {key!r} is no parameter, no derived name.{hint(key, DERIVED)}")


class _Values(dict[str, float]):
    """Parameters by name, held and tied ones among them."""

    def __init__(self, found: xr.Dataset, fit: Fit) -> None:
        super().__init__()
        self.found, self.fit = found, fit

    def __missing__(self, key: str) -> float:
        return _value(key, self.found, self.fit)


def select(name: str, options: Mapping[str, Any]) -> xr.Dataset:
    """The rows and columns of a declared fit: loaded, filtered by label and by bound, renamed to the law's names.

    Raises CatalogError (not to be had), RunsError (no such column, or no row left).
    """
    runs = catalog.load(name, **options.get("load", {}))
    keep = np.ones(runs.sizes.get(house.RUN, 0), dtype=bool)
    for label, wanted in options.get("where", {}).items():
        keep &= np.isin(_column(name, runs, label), [str(w) for w in ([wanted] if isinstance(wanted, str) else wanted)])
    for variable, bound in options.get("at_most", {}).items():
        keep &= _column(name, runs, variable) <= bound
    for variable, bound in options.get("at_least", {}).items():
        keep &= _column(name, runs, variable) >= bound
    columns = {k: runs[v].copy() for k, v in options.get("rename", {}).items() if _column(name, runs, v) is not None}
    if not keep.any():
        raise RunsError(f"table {name!r}: no row is left by {dict(options)}.")
    return runs.drop_vars([k for k in columns if k in runs]).assign(columns).isel({house.RUN: keep})


def _column(name: str, runs: xr.Dataset, variable: str) -> np.ndarray:
    if variable not in runs.variables:
        raise RunsError(f"table {name!r} has no column {variable!r}.{hint(variable, [str(v) for v in runs.variables])}")
    return np.asarray(runs[variable])


def restricted(law: Law, fixed: Mapping[str, float], ties: Mapping[str, str]) -> Law:
    """``law`` with parameters held at numbers or equal to others; the rest keep their names, priors and order.

    A coefficient held or tied cannot be rescaled: it loses its entry in ``scales``. Raises ValueError for a name the
    law does not have.
    """
    if not fixed and not ties:
        return law
    for k in (*fixed, *ties, *ties.values()):
        if k not in law.params:
            raise ValueError(f"law {law.name!r} has no parameter {k!r}.{hint(k, law.params)}")
    gone, n = {*fixed, *ties}, len(law.inputs)
    free = [k for k in law.params if k not in gone]

    def curve(*args: Any) -> Any:
        given = dict(zip(free, args[n:], strict=True))
        values = [given[k] if k in given else given[ties[k]] if k in ties else fixed[k] for k in law.params]
        return law.curve(*args[:n], *values)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    curve.__signature__ = inspect.Signature([inspect.Parameter(k, kind) for k in (*law.inputs, *free)])  # type: ignore[attr-defined]
    return replace(
        law,
        curve=curve,
        params={k: law.params[k] for k in free},
        scales=_scales(law, fixed, ties, set(free)),
        # a held term is an offset, and a shared coefficient stands in two terms: then nothing is projected out
        linear=() if set(law.linear) & {*fixed, *ties, *ties.values()} else law.linear,
        published={},
        claims=(),
        example={},
    )


def _scales(law: Law, fixed: Mapping[str, float], ties: Mapping[str, str], free: set[str]) -> dict[str, Any]:
    """What can still be rescaled: an input whose coefficients are all free, and not shared with another input."""
    out, broken = {}, set()
    for c, (x, e) in law.scales.items():
        if c not in free or c in ties.values():
            broken.add(x)
        e = ties.get(e, fixed.get(e, e)) if isinstance(e, str) else e
        out[c] = (x, e)
    return {c: (x, e) for c, (x, e) in out.items() if x not in broken}


def as_dict(outcome: Outcome) -> dict[str, Any]:
    """Plain values, NaN as None: for --json."""
    plain = asdict(outcome)
    plain["found"] = {k: v if math.isfinite(v) else None for k, v in outcome.found.items()}
    return plain
