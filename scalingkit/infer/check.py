"""Check: does the fitted model look like the runs? Replicated statistics, PIT, tails, trends and influence.

    p(T) = P(T(y_rep) >= T(y))                    posterior predictive p value of a statistic T of the residuals
    PIT_i = P(y_rep_i <= y_i | y_-i)              leave-one-out, Pareto-smoothed weights; uniform for a good model

Residuals r are log y - log median(y_rep) where all is positive, else y - median(y_rep). A small or large p says that
the model does not produce runs like these in that respect. As the data are used twice, p values of statistics crowd
about 1/2: they are cautious. Sources: Gelman, Meng and Stern 1996; Vehtari et al. 2024; Sailynoja et al. 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import xarray as xr
from scipy import stats

from scalingkit.core.names import FLOP_PER_PARAM_TOKEN, RUN
from scalingkit.core.notes import Note, dump
from scalingkit.infer.influence import BAD_K, TreeError, by_draw, influence, leave_one_out, outcome, ranked
from scalingkit.infer.model import Model
from scalingkit.infer.uniformity import SIMULATIONS, uniformity

ALARM = 0.01  # a p value below this, after allowing for the number of questions asked, is said aloud
LEAST = 5  # runs a group must have to be tested by itself
LISTED = 10


def check(tree: xr.DataTree, *, model: Model | None = None, seed: int = 0) -> xr.Dataset:
    """Dataset of checks of a fitted tree; ``attrs["verdict"]`` says in plain words what was found.

    statistic   observed, replicated mean and sd, ``p_value`` (upper tail), ``p_two_sided``
    run         ``pit`` (leave-one-out), ``residual``, ``scaled_residual`` (in predictive sds), and all of ``influence``
    group       ``pit_p_value`` of uniformity and ``pit_says``; "all" first, then every label of every group column
    z           ``pit_ecdf`` with simultaneous 95% bounds ``pit_lower``, ``pit_upper`` (all runs)
    trend       ``slope_p_value`` and ``bend_p_value`` of residuals against log N, log D, log C, log D/N
    model       needed only where the law is not one of the package's

    Raises TreeError for a tree without predictive draws or pointwise log likelihood.
    """
    y = _observed(tree)
    replicated = _replicated(tree)
    r, r_rep = _residuals(y, replicated)
    weights, _ = leave_one_out(tree)
    pit = _pit(y, replicated, weights, np.random.default_rng(seed))
    groups = _groups(tree)
    found = influence(tree, model)
    spread = np.maximum(r_rep.std(0), 1e-300)
    out = xr.merge([
        found,
        _statistics(r, r_rep, spread, groups),
        _uniform(pit, groups),
        _trends(tree, r, r_rep),
    ])  # fmt: skip
    out["pit"], out["residual"], out["scaled_residual"] = (RUN, pit), (RUN, r), (RUN, r / spread)
    notes = _judge(out, len(r_rep), "StudentT" in str(tree.attrs.get("model", "")))
    out.attrs = {k: tree.attrs[k] for k in ("law", "data_name", "data_sha256") if k in tree.attrs}
    out.attrs |= {"verdict": _verdict(out, notes), "passes": int(not notes), "notes": dump(notes)}
    return out


def _observed(tree: xr.DataTree) -> np.ndarray:
    return tree["observed_data"][outcome(tree)].values.astype(float)


def _replicated(tree: xr.DataTree) -> np.ndarray:
    """(draw, run)."""
    name = outcome(tree)
    if "posterior_predictive" not in tree.children or name not in tree["posterior_predictive"].data_vars:
        raise TreeError(f"the tree has no posterior_predictive[{name!r}]: use a tree made by scalingkit.fit.")
    return by_draw(tree["posterior_predictive"][name])


def _residuals(y: np.ndarray, replicated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the data (run) and of the replications (draw, run), about the predictive median."""
    if (y > 0).all() and (replicated > 0).all():
        y, replicated = np.log(y), np.log(replicated)
    centre = np.median(replicated, 0)
    return y - centre, replicated - centre


def _pit(y: np.ndarray, replicated: np.ndarray, w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """sum w [y_rep < y] + U sum w [y_rep = y]: ties (counts, rounded outcomes) are split at random.

    Never 0 or 1: half a draw is left on either side, because S draws cannot tell smaller probabilities.
    """
    below, same = (w * (replicated < y)).sum(0), (w * (replicated == y)).sum(0)
    edge = 0.5 / len(w)
    return np.clip(below + rng.random(len(y)) * same, edge, 1 - edge)


def _groups(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """ "corpus=c4" -> rows, for every text column with 2 or more labels of at least LEAST runs."""
    data = tree["constant_data"].to_dataset() if "constant_data" in tree.children else xr.Dataset()
    found = {}
    for name, column in data.coords.items():
        if name == RUN or column.dims != (RUN,):
            continue
        labels = column.values.astype(str)
        kept = [v for v in np.unique(labels) if np.sum(labels == v) >= LEAST]
        if len(np.unique(labels)) > 1:
            found |= {f"{name}={v}": labels == v for v in kept}
    return found


def _statistics(r: np.ndarray, r_rep: np.ndarray, spread: np.ndarray, groups: dict[str, np.ndarray]) -> xr.Dataset:
    asked: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "mean": lambda a: a.mean(-1),
        "sd": lambda a: a.std(-1),
        "skew": lambda a: stats.skew(a, axis=-1),
        "min": lambda a: (a / spread).min(-1),
        "max": lambda a: (a / spread).max(-1),
        "central half": lambda a: np.subtract(*np.quantile(a, [0.75, 0.25], axis=-1)),
    }
    asked |= {f"mean of {k}": lambda a, rows=rows: a[..., rows].mean(-1) for k, rows in groups.items()}
    seen = np.array([float(f(r)) for f in asked.values()])
    drawn = np.stack([f(r_rep) for f in asked.values()])
    upper, two = _p(seen, drawn)
    return xr.Dataset(
        {
            "observed": ("statistic", seen), "replicated_mean": ("statistic", drawn.mean(1)),
            "replicated_sd": ("statistic", drawn.std(1)), "p_value": ("statistic", upper),
            "p_two_sided": ("statistic", two),
        },
        coords={"statistic": list(asked)},
    )  # fmt: skip


def _p(seen: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Upper-tail and two-sided p values; never 0, because a finite number of draws cannot show that."""
    s = drawn.shape[1]
    above, below = ((c.sum(1) + 1) / (s + 1) for c in (drawn >= seen[:, None], drawn <= seen[:, None]))
    return above, np.minimum(1.0, 2 * np.minimum(above, below))


def _uniform(pit: np.ndarray, groups: dict[str, np.ndarray]) -> xr.Dataset:
    whole = uniformity(pit)
    tested = {"all": whole} | {k: uniformity(pit[rows]) for k, rows in groups.items()}
    return xr.Dataset(
        {
            "pit_p_value": ("group", [t.p_value for t in tested.values()]),
            "pit_says": ("group", [t.direction for t in tested.values()]),
            "pit_ecdf": ("z", whole.ecdf), "pit_lower": ("z", whole.lower), "pit_upper": ("z", whole.upper),
        },
        coords={"group": list(tested), "z": whole.z},
    )  # fmt: skip


def _trends(tree: xr.DataTree, r: np.ndarray, r_rep: np.ndarray) -> xr.Dataset:
    """Correlation of the residuals with each axis, and with its square once the line is taken out."""
    axes = _axes(tree)
    table: dict[str, list[float]] = {k: [] for k in ("slope", "slope_p_value", "bend", "bend_p_value")}
    for x in axes.values():
        line = (x - x.mean()) / x.std()
        square = line**2 - np.polyval(np.polyfit(line, line**2, 1), line)
        for name, basis in (("slope", line), ("bend", square)):
            norm = np.linalg.norm(basis)
            seen, drawn = _correlation(r, basis, norm), _correlation(r_rep, basis, norm)
            table[name].append(float(seen))
            table[f"{name}_p_value"].append(float(_p(np.array([seen]), drawn[None])[1][0]))
    return xr.Dataset({k: ("trend", np.array(v, float)) for k, v in table.items()}, coords={"trend": list(axes)})


def _correlation(r: np.ndarray, basis: np.ndarray, norm: float) -> np.ndarray:
    c = r - r.mean(-1, keepdims=True)
    return (c @ basis) / np.maximum(np.linalg.norm(c, axis=-1) * norm, 1e-300)


def _axes(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """log N, log D, log C (6ND where it is not given), log D/N, and the log of any other positive input, if they vary."""
    data = tree["constant_data"].to_dataset() if "constant_data" in tree.children else xr.Dataset()
    have = {str(k): v.values.astype(float) for k, v in data.data_vars.items() if v.dims == (RUN,)}
    have = {k: v for k, v in have.items() if (v > 0).all()}
    if {"N", "D"} <= set(have):
        have.setdefault("C", FLOP_PER_PARAM_TOKEN * have["N"] * have["D"])
        have["D/N"] = have["D"] / have["N"]
    logs = {f"log {k}": np.log(v) for k, v in have.items()}
    # three different values at least: a square cannot be told from a line on two
    return {k: v for k, v in logs.items() if len(np.unique(v.round(9))) > 2}


def _judge(out: xr.Dataset, draws: int, robust: bool) -> list[Note]:
    """What the checks object to. Within each family, ALARM is divided by the number of questions (Bonferroni), but a
    statistic beyond every one of 700 draws or more is always said: no smaller p value can be seen."""
    notes = []
    for name in _alarming(out, "statistic", "p_two_sided", draws):
        row = out.sel(statistic=name)
        text = (
            f"{name} of the residuals is {float(row.observed):.3g}, where the model gives {float(row.replicated_mean):.3g} "
            f"+- {float(row.replicated_sd):.2g} (p = {float(row.p_two_sided):.2g})."
        )
        notes.append(Note("check-statistic", "warning", name, text))
    for name in _alarming(out, "group", "pit_p_value", SIMULATIONS):
        row = out.sel(group=name)
        text = f"predictions are not calibrated (PIT p = {float(row.pit_p_value):.2g}): {row.pit_says.item()}."
        notes.append(Note("check-pit", "warning", name, text))
    for kind, words in (("slope", "rise or fall with"), ("bend", "bend away along")):
        for name in _alarming(out, "trend", f"{kind}_p_value", draws, 2):
            p = float(out[f"{kind}_p_value"].sel(trend=name))
            notes.append(Note("check-trend", "warning", name, f"residuals {words} {name} (p = {p:.2g})."))
    return notes + _influence_notes(out, robust)


def _influence_notes(out: xr.Dataset, robust: bool) -> list[Note]:
    named = ranked(out)
    if not named:
        return []
    lead = out.sel({RUN: named[0]})
    text = (
        f"{len(named)} run(s) weigh on the answer more than a run should. The first moves {lead.most_moved.item()} most "
        f"(left out: {float(lead.largest_shift):.2g} sd; if it counted in full: {float(lead.largest_pull):.2g} sd)."
    )
    if float(out.k_jointly) > BAD_K or (out.pareto_k > BAD_K).any():
        text += f" Importance weights are unreliable for them (k-hat up to {float(max(out.pareto_k.max(), out.k_jointly)):.2g}), "
        text += "and outliers can hide one another: fit again without these runs, "
        text += "and compare." if robust else "or with LogStudentT, and compare."
    return [Note("influential-runs", "warning", _few(named), text)]


def _alarming(out: xr.Dataset, dim: str, p: str, draws: int, kinds: int = 1) -> list[str]:
    if not out.sizes.get(dim):
        return []
    smallest = 2 / (draws + 1)
    limit = max(ALARM / kinds / out.sizes[dim], smallest if smallest <= 0.003 else 0.0) * (1 + 1e-9)
    order = np.argsort(out[p].values, kind="stable")
    return [str(out[dim].values[i]) for i in order if out[p].values[i] <= limit]


def _verdict(out: xr.Dataset, notes: Iterable[Note]) -> str:
    """A paragraph for a person."""
    notes = list(notes)
    pit = float(out.pit_p_value.sel(group="all"))
    if not notes:
        return (
            f"The model reproduces these {out.sizes[RUN]} runs: no replicated statistic, trend or group stands out, "
            f"predictions are calibrated (PIT p = {pit:.2g}) and no single run decides the answer."
        )
    calibrated = f"Predictions are calibrated overall (PIT p = {pit:.2g}). "
    head = "" if any(n.code == "check-pit" and n.about == "all" for n in notes) else calibrated
    return head + " ".join(f"{n.about}: {n.text}" for n in notes)


def _few(names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
