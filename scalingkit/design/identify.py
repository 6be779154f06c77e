"""Identify: what these runs tell about a law, what the prior tells, what stays free, and which run to add.

The report behind the paragraph, for every law (all in float64, in unconstrained coordinates u with coefficients at
the pivot):
    Jacobian of the mean curve, whitened by the noise: spectrum, condition numbers by block, VIF
    contraction 1 - Var_post/Var_prior per parameter and per eigen-direction, the weakest direction named in words
    profile likelihood of every parameter
    off-ray prediction bands; how far the curve is known along N, along D, along both
    leave-one-decade-out: the runs of the dearest decade predicted from the others
    PSIS k-hat of the runs, where a posterior with pointwise log likelihood is given
With a posterior its draws are used; with a law and runs alone, a Laplace approximation at the posterior's mode.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.law import Law
from scalingkit.core.names import PARAM, RUN
from scalingkit.core.notes import Note, dump
from scalingkit.core.precision import require_x64
from scalingkit.design import bands, prior, verdict, words
from scalingkit.design.contraction import DIRECTION, directions, per_parameter
from scalingkit.design.cost import per_run
from scalingkit.design.descent import best_of
from scalingkit.design.evidence import Evidence, labels, of_group, read
from scalingkit.design.grids import DesignError
from scalingkit.design.information import (
    block_params,
    condition_array,
    inputs,
    jacobian_array,
    pivot_array,
    pivoted_at,
    raw,
    vif_array,
)
from scalingkit.design.nextrun import next_runs
from scalingkit.design.profile import Profile, profile
from scalingkit.design.state import State, at_values, curve, data, mode, posterior
from scalingkit.design.thresholds import tpp_threshold
from scalingkit.infer.coordinates import of as coordinates

WITHIN = 0.01  # half-width of the 90% interval of the loss, relative, up to which extrapolation is called safe
FREE = 0.5  # a direction with less contraction than this is free
KAPPA_GOAL = 1000.0


def identify(
    source: Any, runs: xr.Dataset | None = None, *, theta: Mapping[str, float] | None = None, noise: float | None = None,
    law: Law | str | None = None, within: float = WITHIN, profiles: bool = True,
) -> xr.Dataset:  # fmt: skip
    """What the runs can and cannot tell, as one Dataset and, in attrs["verdict"], one paragraph.

    source  a posterior DataTree; or a Model, a Law or its name, with ``runs``
    theta   parameter values at which to judge a design without outcomes (default: the law's own example)
    noise   sd of the (log) outcome; default: the posterior's, else estimated from the runs (0.02 without outcomes)
    within  relative half-width of the loss's 90% interval up to which extrapolation is called safe

    Dims: param, direction (weakest first), step (along a profile), tpp (off the ray), way (of extrapolation), and
    the group's dim for a pooled posterior. ``identified`` is 1 where no direction is free. attrs["notes"] has the
    codes "not-identified" and "prior-dominated". Raises PrecisionError in float32, DesignError.
    """
    require_x64("an identifiability verdict")
    found = read(source, runs, law=law, noise=noise)
    if found.runs is None:
        raise DesignError("identify needs the runs: this source does not carry them, so give runs=...")
    if theta is not None and found.draws is None:
        return _finish([_one(found, at_values(found, theta), within, profiles)], [{}], found)
    combos = labels(found)
    x = inputs(found.law, found.runs)
    pivots = pivot_array(coordinates(found.law), x)
    parts = [
        _one(part, posterior(part, pivots) if part.draws is not None else mode(part, pivots), within, profiles)
        for part in (of_group(found, label) for label in combos)
    ]
    return _finish(parts, combos, found, _pareto(source))


def _one(found: Evidence, state: State, within: float, profiles: bool) -> xr.Dataset:
    """The report of one group."""
    law, c = found.law, coordinates(found.law)
    x = inputs(law, found.runs)  # type: ignore[arg-type]
    names = list(law.params)
    _, sd = prior.moments(law)
    J = pivoted_at(c, state.u[None], x / state.pivots, found.of)[0] * np.sqrt(found.weight)
    each = per_parameter(state.cov, sd)
    along, vectors = directions(state.cov, sd)
    vectors = np.array([_oriented(v) for v in vectors])
    effect = np.abs(J @ (vectors * sd * np.sqrt(np.maximum(1 - along, 0))[:, None]).T).max(0)
    said = [
        words.direction(c, v, sd, state.u, state.pivots, float(np.sqrt(max(1 - a, 0.0))))
        for v, a in zip(vectors, along, strict=True)
    ]
    scale = np.sqrt(np.diagonal(state.cov))
    out = xr.Dataset(
        {
            "contraction": (PARAM, each),
            "status": (PARAM, [words.status(v) for v in each]),
            "centre": (PARAM, state.u, {"meaning": "unconstrained parameter, coefficients at the pivot"}),
            "sd": (PARAM, scale, {"meaning": "posterior sd of the unconstrained parameter, coefficients at the pivot"}),
            "prior_sd": (PARAM, sd),
            "vif": (PARAM, vif_array(J)),
            "correlation": ((PARAM, f"{PARAM}_2"), state.cov / np.outer(scale, scale)),
            "direction_contraction": (DIRECTION, along),
            "vector": ((DIRECTION, PARAM), vectors, {"meaning": "direction in units of the prior sds"}),
            "words": (DIRECTION, said),
            "effect": (DIRECTION, effect, {"meaning": "largest change of a run's (log) outcome for one posterior sd"}),
            "spectrum": (DIRECTION, _spectrum(J, sd, state.noise)),
            "kappa": ("block", _kappas(found, state, x)),
            "noise": ((), state.noise),
            "identified": ((), int(along.min() >= FREE)),
        },
        coords={PARAM: names, f"{PARAM}_2": names, "block": ["scale", "scale+E", "full"]},
    )
    out = _extrapolation(out, found, state, x, within)
    out = _spread(out, found, state, x)
    out = _addition(out, found, state, x, sd)
    out = _decade(out, found, state, x, sd)
    if profiles:
        out = _profiles(out, found, state, x, J, sd)
    return out


def _spectrum(J: np.ndarray, prior_sd: np.ndarray, noise: float) -> np.ndarray:
    """Singular values of J S / noise, smallest first: 1 is where the data know as much as the prior."""
    s = np.linalg.svd(J * prior_sd / noise, compute_uv=False)
    return np.sort(np.pad(s, (0, prior_sd.size - s.size)))


def _kappas(found: Evidence, state: State, x: np.ndarray) -> list[float]:
    """Condition numbers of the Jacobian in the law's own units, by block; NaN where a law has no such block."""
    law = found.law
    theta = raw(coordinates(law), state.u[None], state.pivots)
    J = jacobian_array(law, theta, x, "natural", found.of)[0]
    out = []
    for block in ("scale", "scale+E", "full"):
        try:
            keep = [list(law.params).index(k) for k in block_params(law, block)]  # type: ignore[arg-type]
        except DesignError:
            out.append(np.nan)
            continue
        out.append(float(condition_array(J[:, keep])))
    return out


def _extrapolation(out: xr.Dataset, found: Evidence, state: State, x: np.ndarray, within: float) -> xr.Dataset:
    """Bands off the ray, and how far the curve is known."""
    law = found.law
    anchor = x[np.argmax(np.prod(x, -1))]
    half = 1.645 / (
        1.0 if found.of == "log" else float(np.abs(curve(found, state.u[None], anchor[None], state.pivots)))
    )
    ways = bands.directions(law, anchor)
    far = [bands.reach(half * bands.posterior_sd(law, state.theta, path, found.of), within) for path in ways.values()]
    out = out.assign(reach=("way", far, {"meaning": f"factor beyond the dearest run, loss within {within:.3g}"}))
    out = out.assign_coords(way=list(ways))
    out.attrs["within"] = within
    if not {"N", "D"} <= set(law.inputs):
        return out
    off = bands.off_ray(law, anchor)
    c = coordinates(law)
    J, j = (pivoted_at(c, state.u[None], at / state.pivots, found.of)[0] for at in (x, off))
    out["band_data"] = ("tpp", bands.data_only(J, j, state.noise), {"meaning": "sd from the runs alone, linearised"})
    out["band"] = ("tpp", bands.posterior_sd(law, state.theta, off, found.of), {"meaning": "posterior sd of the curve"})
    n, d = (list(law.inputs).index(k) for k in ("N", "D"))
    return out.assign_coords(tpp=("tpp", off[:, d] / off[:, n], {"units": "token/parameter"}))


def _spread(out: xr.Dataset, found: Evidence, state: State, x: np.ndarray) -> xr.Dataset:
    """sd of log TPP, and what kappa = 1000 asks for at worst (a gap of zero), where the law has the closed form."""
    law = found.law
    if not {"N", "D"} <= set(law.inputs):
        return out
    names = list(law.inputs)
    tau = np.log(x[:, names.index("D")] / x[:, names.index("N")])
    out["sd_log_tpp"] = ((), float(tau.std()))
    exponent = next((e for i, e in law.scales.values() if i == "D"), None)
    if exponent is not None:
        theta = raw(coordinates(law), state.u, state.pivots)
        beta = float(theta[list(law.params).index(exponent)]) if isinstance(exponent, str) else float(exponent)
        out["tpp_threshold"] = ((), tpp_threshold(beta, KAPPA_GOAL), {"meaning": "sd of log TPP for kappa 1000"})
    return out


def _addition(out: xr.Dataset, found: Evidence, state: State, x: np.ndarray, sd: np.ndarray) -> xr.Dataset:
    """The runs to add, one after another, until no direction is free (or for the weakest, where none is)."""
    weight = found.weight / state.noise**2
    added = next_runs(found.law, state.u, state.cov, sd, x, state.pivots, found.of, weight, FREE)
    for i, k in enumerate(found.law.inputs):
        out[f"add_{k}"] = ("add", added.inputs[:, i])
    if {"N", "D"} <= set(found.law.inputs):
        names = list(found.law.inputs)
        spent = per_run(None, x[:, names.index("N")], x[:, names.index("D")])
        out["add_cost"] = ("add", added.cost, {"units": "FLOP"})
        out["add_share"] = ("add", added.cost / spent.max(), {"meaning": "cost over that of the dearest run"})
    out["add_contraction"] = ("add", added.contraction, {"meaning": "of the weakest direction, with the runs so far"})
    return out


def _decade(out: xr.Dataset, found: Evidence, state: State, x: np.ndarray, sd: np.ndarray) -> xr.Dataset:
    """The dearest decade of runs predicted from the others: rms error of the (log) outcome, and how many runs."""
    size = np.prod(x, -1)
    held = size > size.max() / 10
    if found.y is None or (~held).sum() <= sd.size or not held.any():
        return out.assign(decade_error=((), np.nan), decade_runs=((), int(held.sum())))
    c = coordinates(found.law)
    m, _ = prior.moments(found.law)
    xs, y, w = data(found, state.noise, state.pivots, held, state.u)
    u, _ = best_of(c, found.of, state.u[None], xs, y, w, m, 1 / sd)
    f = curve(found, u[None], x[held], state.pivots)[0]
    error = float(np.sqrt(np.mean((y[: held.size][held] - f) ** 2)))
    attrs = {"meaning": "rms (log) error on the dearest decade of runs, fitted without them"}
    return out.assign(decade_error=((), error, attrs), decade_runs=((), int(held.sum())))


def _profiles(
    out: xr.Dataset, found: Evidence, state: State, x: np.ndarray, J: np.ndarray, sd: np.ndarray
) -> xr.Dataset:
    """Profile likelihoods: of the outcomes, or of what the curve itself predicts where there are none."""
    if found.y is None:
        f = curve(found, state.u[None], x, state.pivots)[0]
        fitted = x / state.pivots, f, np.full(len(f), 1 / state.noise**2)
    else:
        fitted = data(found, state.noise, state.pivots, u=state.u)
    made = _profile(found, state, fitted, J, sd)
    return out.assign(
        profile_value=((PARAM, "step"), made.value, {"meaning": "the parameter; coefficients at the pivot"}),
        profile_deviance=((PARAM, "step"), made.deviance),
        profile_interval=((PARAM, "bound"), made.interval, {"meaning": "90%; infinite where the profile stays flat"}),
    ).assign_coords(bound=["lower", "upper"])


def _profile(found: Evidence, state: State, fitted: tuple[Any, Any, Any], J: np.ndarray, sd: np.ndarray) -> Profile:
    length = np.linalg.norm(J, axis=0)
    with np.errstate(divide="ignore"):
        se = state.noise * np.sqrt(vif_array(J)) / length
    x, ty, w = map(np.asarray, fitted)
    return profile(coordinates(found.law), found.of, state.u, x, ty, w, se, sd)


def _oriented(v: np.ndarray) -> np.ndarray:
    """The sign of a direction is free: its largest entry is made positive."""
    return v * np.sign(v[np.argmax(np.abs(v))])


def _pareto(source: Any) -> xr.DataArray | None:
    """PSIS k-hat per run from the tree's pointwise log likelihood; None where there is none."""
    if not isinstance(source, xr.DataTree) or "log_likelihood" not in source.children:
        return None
    import arviz_stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a high k is reported by us, by run
        k = arviz_stats.loo(source, pointwise=True).pareto_k
    return k if isinstance(k, xr.DataArray) and k.dims == (RUN,) else None


def _finish(
    parts: list[xr.Dataset], combos: Sequence[Mapping[str, Any]], found: Evidence, k: xr.DataArray | None = None
) -> xr.Dataset:
    """Groups joined along their dim, the paragraph written, the notes coded."""
    law = found.law
    said = [verdict.paragraph(p, law, _count(found, label)) for p, label in zip(parts, combos, strict=True)]
    notes: list[Note] = []
    for part, label in zip(parts, combos, strict=True):
        notes += _notes(part, " / ".join(map(str, label.values())))
    if combos == [{}]:
        out = parts[0]
        text = said[0]
    else:
        dim = next(iter(combos[0])) if len(combos[0]) == 1 else "group"
        names = [" / ".join(map(str, label.values())) for label in combos]
        out = _joined(parts, dim, names)
        out["verdict"] = (dim, said)
        text = verdict.over_groups(parts, names, said, dim)
    text = " ".join(filter(None, [text, verdict.dependent(found.runs)]))
    if k is not None:
        out["pareto_k"] = k
        text = " ".join([text, *verdict.swaying(k)])
    out.attrs |= {"verdict": text, "law": law.name, "notes": dump(notes), "source": "identify"}
    out.attrs["identified"] = int(all(int(p["identified"]) for p in parts))
    return out


def _joined(parts: Sequence[xr.Dataset], dim: str, names: Sequence[str]) -> xr.Dataset:
    """Along ``dim``; groups may need different numbers of runs to add, so the shorter lists end in NaN."""
    most = max(p.sizes.get("add", 0) for p in parts)
    even = [p.pad(add=(0, most - p.sizes["add"])) if "add" in p.sizes else p for p in parts]
    return xr.concat(even, xr.IndexVariable(dim, list(names)), combine_attrs="override", data_vars="all", coords="minimal",
                     compat="override", join="override")  # fmt: skip


def _count(found: Evidence, label: Mapping[str, Any]) -> int:
    runs = of_group(found, label).runs
    assert runs is not None
    return int(runs.sizes[RUN])


def _notes(part: xr.Dataset, group: str) -> list[Note]:
    suffix = f" ({group})" if group else ""
    notes = []
    if not int(part["identified"]):
        text = f"free: {part['words'].values[0]}; contraction {words.contraction(float(part['direction_contraction'][0]))}."
        notes.append(Note("not-identified", "warning", f"{verdict.free_names(part)}{suffix}", text))
    for name in part[PARAM].values[part["status"].values == "prior"]:
        c = words.contraction(float(part["contraction"].sel({PARAM: name})))
        notes.append(
            Note("prior-dominated", "warning", f"{name}{suffix}", f"{name} is set by the prior (contraction {c}).")
        )
    return notes
