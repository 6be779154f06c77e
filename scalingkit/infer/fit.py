"""Fit: a checked posterior. Warm-up raises target_accept until nothing diverges, chains are lengthened until they
agree, and where that fails the notes say which parameters are to blame and what to change.

    fit("chinchilla", runs, pool={"alpha": Partial("corpus")}) -> DataTree
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import arviz_stats
import numpy as np
import xarray as xr

from scalingkit.core.law import Law
from scalingkit.core.notes import dump
from scalingkit.core.precision import require_x64
from scalingkit.infer import compiled, findings, mode, nuts, provenance, tree
from scalingkit.infer import device as devices
from scalingkit.infer.likelihoods import Likelihood
from scalingkit.infer.model import Model, as_model
from scalingkit.infer.pooling import Pooling
from scalingkit.infer.prepare import Data, prepare

TARGETS = (0.9, 0.95, 0.99, 0.995)
RHAT, ESS = 1.01, 400.0
JUDGED = 500  # draws a chain from which R-hat and ESS are judged
LONGEST = 4  # chains grow to this multiple of the draws asked for, at most


@devices.placed("chains")
def fit(
    model: Model | Law | str, runs: xr.Dataset, *, pool: Mapping[str, Pooling] | None = None,
    likelihood: Likelihood | None = None, seed: int = 0, chains: int = 4, draws: int = 1000, tune: int = 1000,
    target_accept: float | None = None, device: str = "auto", progress: bool | Callable[[str], Any] = False,
) -> xr.DataTree:  # fmt: skip
    """Posterior of ``model`` (a Model, a Law or a law's name) given ``runs``, as an ArviZ DataTree.

    target_accept  None: raised by itself (0.9, 0.95, 0.99, 0.995) until no draw diverges; a number is kept
    draws, tune    per chain; chains of 500 draws or more go on (up to fourfold) until R-hat < 1.01 and bulk ESS > 400
    device         "auto" (the CPU; the GPU, if there is one, for 64 chains or more), "cpu", "gpu" or "tpu"
    progress       True for lines on standard error once it takes over 2 s, or a function that takes the line

    Groups: posterior, prior, posterior_predictive, prior_predictive, log_likelihood (pointwise), sample_stats,
    observed_data, constant_data. Root attrs: law, model (JSON), data_name, data_sha256, seed, route, sampler, device,
    precision, versions, divergences, rhat_max, ess_bulk_min, target_accept, seconds, pivot_<input>, notes.
    The same seed gives the same draws. Raises DataError for runs that the model cannot take, PrecisionError in float32.
    """
    require_x64("a fit")
    compiled.keep()
    model = as_model(model, pool, likelihood)
    _lengths(chains, draws, tune, target_accept)
    say = Speaker(progress)
    chosen, reason = devices.choose(device, chains, "chains")
    data = prepare(model, runs)
    say(f"{data.meta.runs} runs; looking for the mode")
    top = mode.find(nuts.potential(model, data, seed), data, seed)
    begin = mode.jittered(top, chains, seed)
    targets = TARGETS if target_accept is None else (float(target_accept),)
    got = _sample(model, data, begin, targets, draws, tune, seed, chosen, say)
    say("predicting")
    values = nuts.natural(model, got.chains.z, data)
    groups = tree.assemble(model, data, runs, values, seed)
    groups["sample_stats"] = tree.sample_stats(got.chains)
    judged = diagnose(groups["posterior"])
    notes = findings.notes(model, data, got.chains, judged, got.target, draws, seed)
    out = xr.DataTree.from_dict({f"/{k}": v for k, v in groups.items()})
    out.attrs = provenance.attrs(model, data, runs, seed, chosen, reason) | {
        "route": "nuts", "sampler": "NumPyro NUTS, coefficients at the pivot, dense mass", "chains": chains,
        "divergences": int(got.chains.diverging.sum()), "rhat_max": judged.rhat, "ess_bulk_min": judged.ess,
        "target_accept": got.target, "seconds": round(say.seconds, 3), "notes": dump(notes),
    }  # fmt: skip
    return out


class Sampled(NamedTuple):
    """The chains that were kept and their target_accept."""

    chains: nuts.Chains
    target: float


def _sample(
    model: Model, data: Data, begin: Any, targets: tuple[float, ...], draws: int, tune: int, seed: int, chosen: Any, say: Any,
) -> Sampled:  # fmt: skip
    """Raise the target until nothing diverges, then go on until the chains agree.

    A run that diverges is given up at once where a higher target is left to try; of runs at the last target all are kept.
    """
    for i, target in enumerate(targets):
        last = i + 1 == len(targets)
        run = nuts.Run(model, data, begin, nuts.Settings(tune, draws, target), seed + i, chosen)
        run.more(tune, lambda done, t=target: say(f"target_accept {t:g}: warm-up {done} of {tune}"))
        got = run.more(
            draws,
            lambda done, t=target: say(f"target_accept {t:g}: draw {done} of {draws}"),
            stop=None if last else lambda piece: piece.diverging.any(),
        )
        if not got.diverging.any():
            break
    return Sampled(_lengthen(model, data, run, got, draws, say), target)


def _lengthen(model: Model, data: Data, run: nuts.Run, got: nuts.Chains, draws: int, say: Any) -> nuts.Chains:
    """Double the draws while R-hat or ESS ask for it, if there are enough of them to judge."""
    while draws >= JUDGED and got.diverging.shape[1] < LONGEST * draws and not got.diverging.any():
        values = nuts.natural(model, got.z, data)
        if diagnose(tree.dataset(model, {k: v for k, v in values.items() if k not in model.hidden}, data)).good:
            break
        so_far = got.diverging.shape[1]
        say(f"R-hat or ESS ask for more: {2 * so_far} draws a chain")
        got = nuts.join([got, run.more(so_far)])
    return got


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
    with np.errstate(invalid="ignore", divide="ignore"):  # of a variable that never moves: 0/0, judged below
        rhat, ess = arviz_stats.rhat(posterior), arviz_stats.ess(posterior, method="bulk")
    worst = {str(k): float(np.max(np.nan_to_num(v.values, nan=np.inf))) for k, v in rhat.data_vars.items()}
    least = {str(k): float(np.min(np.nan_to_num(v.values, nan=0.0))) for k, v in ess.data_vars.items()}
    return Judged(worst, least)


def _lengths(chains: int, draws: int, tune: int, target: float | None) -> None:
    for name, value, least in (("chains", chains, 1), ("draws", draws, 1), ("tune", tune, 10)):
        if int(value) != value or value < least:
            raise ValueError(f"{name} = {value!r} must be a whole number of at least {least}.")
    if target is not None and not 0 < target < 1:
        raise ValueError(f"target_accept = {target!r} must lie between 0 and 1; None raises it by itself.")


class Speaker:
    """Progress: nothing for the first two seconds, then a line at most twice a second; to a function, every line."""

    def __init__(self, progress: bool | Callable[[str], Any]) -> None:
        self.start, self.progress, self.said = time.perf_counter(), progress, 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def __call__(self, text: str) -> None:
        if callable(self.progress):
            self.progress(text)
        elif self.progress and self.seconds > 2 and self.seconds - self.said > 0.5:
            self.said = self.seconds
            print(f"[{self.seconds:5.1f} s] {text}", file=sys.stderr, flush=True)
