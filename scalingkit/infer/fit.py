"""Fit: a checked posterior. Warm-up raises target_accept until nothing diverges, chains are lengthened until they
agree, and where that fails the notes say which parameters are to blame and what to change.

    fit("chinchilla", runs, pool={"alpha": Partial("corpus")}) -> DataTree
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import arviz_stats
import numpy as np
import xarray as xr

from scalingkit.core.notes import Note, dump
from scalingkit.core.precision import require_x64
from scalingkit.infer import device as devices
from scalingkit.infer import mode, nuts, provenance, tree
from scalingkit.infer.likelihoods import DataError
from scalingkit.infer.model import Model, as_model
from scalingkit.infer.prepare import Data, prepare

TARGETS = (0.9, 0.97, 0.99, 0.997)
RHAT, ESS = 1.01, 400.0
LONGEST = 4  # chains grow to this multiple of the draws asked for, at most


def fit(
    model: Any, runs: xr.Dataset, *, pool: Mapping[str, Any] | None = None, likelihood: Any = None, seed: int = 0,
    chains: int = 4, draws: int = 1000, tune: int = 1000, target_accept: float | None = None, device: str = "auto",
    progress: bool | Callable[[str], Any] = False,
) -> xr.DataTree:  # fmt: skip
    """Posterior of ``model`` (a Model, a Law or a law's name) given ``runs``, as an ArviZ DataTree.

    target_accept  None: raised by itself (0.9, 0.97, 0.99, 0.997) until no draw diverges; a number is kept
    draws, tune    per chain; chains are lengthened (up to fourfold) until R-hat < 1.01 and bulk ESS > 400
    progress       True for a line a stage on standard error, or a function that takes the line

    Groups: posterior, prior, posterior_predictive, prior_predictive, log_likelihood (pointwise), sample_stats,
    observed_data, constant_data. Root attrs: law, model (JSON), data_name, data_sha256, seed, route, sampler, device,
    precision, versions, divergences, rhat_max, ess_bulk_min, target_accept, seconds, pivots, notes.
    Raises DataError for runs that the model cannot take, PrecisionError in float32.
    """
    require_x64("a fit")
    model = as_model(model, pool, likelihood)
    _lengths(chains, draws, tune)
    say = _speaker(progress)
    start = time.perf_counter()
    chosen, reason = devices.choose(device)
    data = prepare(model, runs)
    say(f"{data.meta.runs} runs; finding the mode")
    pot = nuts.potential(model, data, seed)
    top = mode.find(pot, data, seed)
    begin = mode.jittered(top, chains, seed)
    targets = TARGETS if target_accept is None else (float(target_accept),)
    run = _sample(model, data, begin, targets, draws, tune, seed, chosen, say)
    say("predicting")
    values = nuts.natural(model, run.chains.z, data)
    groups = tree.assemble(model, data, runs, values, seed)
    groups["sample_stats"] = tree.sample_stats(run.chains)
    judged = diagnose(groups["posterior"])
    notes = _notes(model, data, run, judged, values)
    out = xr.DataTree.from_dict({f"/{k}": v for k, v in groups.items()})
    out.attrs = provenance.attrs(model, data, runs, seed, chosen, reason) | {
        "route": "nuts", "sampler": "NumPyro NUTS, coefficients at the pivot, dense mass", "chains": chains,
        "divergences": int(run.chains.diverging.sum()), "rhat_max": judged.rhat, "ess_bulk_min": judged.ess,
        "target_accept": run.target, "seconds": round(time.perf_counter() - start, 3), "notes": dump(notes),
    }  # fmt: skip
    return out


class Judged:
    """Worst R-hat and bulk ESS over all parameters, and where."""

    def __init__(self, rhat: dict[str, float], ess: dict[str, float]) -> None:
        self.rhats, self.esses = rhat, ess
        self.rhat = max(rhat.values()) if rhat else float("nan")
        self.ess = min(ess.values()) if ess else float("nan")
        self.good = bool(self.rhat < RHAT and self.ess > ESS)


def diagnose(posterior: xr.Dataset) -> Judged:
    """R-hat and bulk ESS of every variable, by its worst entry. A variable that never moves counts as infinite R-hat."""
    if posterior.sizes["draw"] < 4:
        return Judged({}, {})
    rhat, ess = arviz_stats.rhat(posterior), arviz_stats.ess(posterior, method="bulk")
    worst = {str(k): float(np.max(np.nan_to_num(v.values, nan=np.inf))) for k, v in rhat.data_vars.items()}
    least = {str(k): float(np.min(np.nan_to_num(v.values, nan=0.0))) for k, v in ess.data_vars.items()}
    return Judged(worst, least)


class _Run:
    def __init__(self, chains: nuts.Chains, target: float, draws: int) -> None:
        self.chains, self.target, self.draws = chains, target, draws


def _sample(
    model: Model, data: Data, begin: Any, targets: tuple[float, ...], draws: int, tune: int, seed: int, chosen: Any, say: Any,
) -> _Run:  # fmt: skip
    """Raise the target until nothing diverges, then lengthen until the chains agree; the best run is kept."""
    best: _Run | None = None
    for i, target in enumerate(targets):
        say(f"sampling, target_accept {target:g}")
        run = _Run(nuts.sample(model, data, begin, nuts.Settings(tune, draws, target), seed + i, chosen), target, draws)
        if best is None or run.chains.diverging.sum() <= best.chains.diverging.sum():
            best = run
        if not run.chains.diverging.any():
            break
    assert best is not None
    return _lengthen(model, data, begin, best, draws, tune, seed, chosen, say)


def _lengthen(
    model: Model, data: Data, begin: Any, run: _Run, draws: int, tune: int, seed: int, chosen: Any, say: Any
) -> _Run:
    """Double warm-up and draws while R-hat or ESS ask for it, if there are enough draws to judge."""
    factor = 2
    while factor <= LONGEST and draws >= 500:
        values = nuts.natural(model, run.chains.z, data)
        shown = {k: v for k, v in values.items() if k not in model.hidden}
        if diagnose(tree.dataset(model, shown, data)).good:
            break
        say(f"lengthening the chains to {factor * draws} draws")
        longer = nuts.sample(
            model,
            data,
            begin,
            nuts.Settings(factor * tune, factor * draws, run.target),
            seed + 10 + factor,
            chosen,
        )
        if longer.diverging.mean() > run.chains.diverging.mean():
            break
        run = _Run(longer, run.target, factor * draws)
        factor *= 2
    return run


def _notes(model: Model, data: Data, run: _Run, judged: Judged, values: Mapping[str, np.ndarray]) -> list[Note]:
    notes = []
    count = int(run.chains.diverging.sum())
    if count:
        names = _funnel(model, run.chains, values)
        text = (
            f"{count} draws diverged at target_accept {run.target:g}; they gather in {', '.join(names)}. The posterior is "
            "not to be trusted there: tighten the prior of the spread between groups, pool fewer parameters, or add runs."
        )
        notes.append(Note("divergences", "error", ", ".join(names), text))
    if not judged.good and judged.rhats:
        slow = sorted(judged.esses, key=lambda k: judged.esses[k])[:3]
        text = f"worst R-hat {judged.rhat:.3f}, smallest bulk ESS {judged.ess:.0f} after {run.draws} draws a chain; slowest: {', '.join(slow)}."
        notes.append(Note("not-mixed", "error", ", ".join(slow), text))
    for dim, labels in data.meta.labels.items():
        if len(labels) == 1:
            text = f"there is one {dim} only ({labels[0]!r}): the spread between groups comes from its prior."
            notes.append(Note("one-group", "warning", dim, text))
    return notes


def _funnel(model: Model, chains: nuts.Chains, values: Mapping[str, np.ndarray]) -> list[str]:
    """Parameters whose divergent draws lie furthest from the others, in sds of the unconstrained coordinate."""
    bad = chains.diverging.astype(bool)
    shift = {}
    for k, v in chains.z.items():
        flat = v.reshape(*bad.shape, -1)
        gap = np.abs(flat[bad].mean(0) - flat[~bad].mean(0)) if (~bad).any() else np.zeros(flat.shape[-1])
        shift[k] = float(np.max(gap / np.maximum(flat.std((0, 1)), 1e-12)))
    return sorted(shift, key=lambda k: -shift[k])[:3]


def _lengths(chains: int, draws: int, tune: int) -> None:
    for name, value, least in (("chains", chains, 1), ("draws", draws, 1), ("tune", tune, 10)):
        if int(value) != value or value < least:
            raise DataError(f"{name} = {value!r} must be a whole number of at least {least}.")


def _speaker(progress: Any) -> Callable[[str], Any]:
    if callable(progress):
        return progress
    if progress:
        import sys

        return lambda text: print(text, file=sys.stderr, flush=True)
    return lambda text: None
