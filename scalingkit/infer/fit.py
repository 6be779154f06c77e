"""Fit: a checked posterior. Warm-up raises target_accept until nothing diverges, chains are lengthened until they
agree, and where that fails the notes say which parameters are to blame and what to change.

    fit("chinchilla", runs, pool={"alpha": Partial("corpus")}) -> DataTree
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import arviz_stats
import numpy as np
import xarray as xr

from scalingkit.core.law import Law
from scalingkit.core.notes import dump
from scalingkit.core.precision import require_x64
from scalingkit.infer import collapsed, compiled, findings, mode, nuts, provenance, tree
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
    target_accept: float | None = None, route: Literal["nuts", "collapsed"] = "nuts", device: str = "auto",
    progress: bool | Callable[[str], Any] = False,
) -> xr.DataTree:  # fmt: skip
    """Posterior of ``model`` (a Model, a Law or a law's name) given ``runs``, as an ArviZ DataTree.

    target_accept  None: raised by itself (0.9, 0.95, 0.99, 0.995) until no draw diverges; a number is kept
    draws, tune    per chain; chains of 500 draws or more go on (up to fourfold) until R-hat < 1.01 and bulk ESS > 400
    route          "nuts" samples every parameter; "collapsed" integrates the linear coefficients out, draws them back and
                   weights the draws to the same posterior: for ridges, as of D = k N runs, where NUTS crawls
    device         "auto" (the CPU; the GPU, if there is one, for 64 chains or more), "cpu", "gpu" or "tpu"
    progress       True for lines on standard error once it takes over 2 s, or a function that takes the line

    Groups: posterior, prior, posterior_predictive, prior_predictive, log_likelihood (pointwise), sample_stats,
    observed_data, constant_data. Root attrs: law, model (JSON), data_name, data_sha256, seed, route, sampler, device,
    precision, versions, divergences, rhat_max, ess_bulk_min, target_accept, seconds, pivot_<input>, notes; of the
    collapsed route also integrated, efficiency (of the weights) and pareto_k.
    The same seed gives the same draws. Raises DataError for runs that the model cannot take, PrecisionError in float32,
    RouteError where the collapsed route does not apply or its weights cannot be trusted.
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
    way = _way(route, model, data, top, seed)
    got = _sample(way, begin, targets, draws, tune, seed, chosen, say)
    say("predicting")
    values, stats = got.values, way.attrs()
    groups = tree.assemble(model, data, runs, values, seed)
    groups["sample_stats"] = tree.sample_stats(got.chains)
    judged = diagnose(groups["posterior"])
    notes = findings.notes(model, data, got.chains, got.z, judged, got.target, draws, seed)
    out = xr.DataTree.from_dict({f"/{k}": v for k, v in groups.items()})
    out.attrs = provenance.attrs(model, data, runs, seed, chosen, reason) | {
        "route": route, "sampler": way.sampler, "chains": chains, **stats,
        "divergences": int(got.chains.diverging.sum()), "rhat_max": judged.rhat, "ess_bulk_min": judged.ess,
        "target_accept": got.target, "seconds": round(say.seconds, 3), "notes": dump(notes),
    }  # fmt: skip
    return out


class Direct:
    """Every parameter is sampled."""

    sampler = "NumPyro NUTS, coefficients at the pivot, dense mass"

    def __init__(self, model: Model, data: Data) -> None:
        self.model, self.data = model, data
        self.target, self.table = model, data

    def starts(self, points: list[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
        return points

    def sites(self, chains: nuts.Chains) -> dict[str, np.ndarray]:
        """Every unconstrained site by (chain, draw)."""
        return chains.z

    def attrs(self) -> dict[str, Any]:
        return {}


def _way(route: str, model: Model, data: Data, top: mode.Mode, seed: int) -> Any:
    if route == "nuts":
        return Direct(model, data)
    if route == "collapsed":
        return collapsed.Way(model, data, top, seed)
    raise ValueError(f"route = {route!r} is not known: it is 'nuts' or 'collapsed'.")


class Sampled(NamedTuple):
    """The chains that were kept, their target_accept, and draws of every site, unconstrained and constrained."""

    chains: nuts.Chains
    target: float
    z: dict[str, np.ndarray]
    values: dict[str, np.ndarray]


def _sample(
    way: Any, begin: Any, targets: tuple[float, ...], draws: int, tune: int, seed: int, chosen: Any, say: Any,
) -> Sampled:  # fmt: skip
    """Raise the target until nothing diverges, then go on until the chains agree.

    A run that diverges is given up at once where a higher target is left to try; of runs at the last target all are kept.
    """
    begin = way.starts(begin)
    for i, target in enumerate(targets):
        last = i + 1 == len(targets)
        run = nuts.Run(way.target, way.table, begin, nuts.Settings(tune, draws, target), seed + i, chosen)
        run.more(tune, lambda done, t=target: say(f"target_accept {t:g}: warm-up {done} of {tune}"))
        got = run.more(
            draws,
            lambda done, t=target: say(f"target_accept {t:g}: draw {done} of {draws}"),
            stop=None if last else lambda piece: piece.diverging.any(),
        )
        if not got.diverging.any():
            break
    return _lengthen(way, run, got, draws, target, say)


def _lengthen(way: Any, run: nuts.Run, got: nuts.Chains, draws: int, target: float, say: Any) -> Sampled:
    """Double the draws while R-hat or ESS ask for it, if there are enough of them to judge."""
    model = way.model
    z, values = _drawn(way, got)
    while draws >= JUDGED and got.diverging.shape[1] < LONGEST * draws and not got.diverging.any():
        if diagnose(tree.dataset(model, {k: v for k, v in values.items() if k not in model.hidden}, way.data)).good:
            break
        so_far = got.diverging.shape[1]
        say(f"R-hat or ESS ask for more: {2 * so_far} draws a chain")
        got = nuts.join([got, run.more(so_far)])
        z, values = _drawn(way, got)
    return Sampled(got, target, z, values)


def _drawn(way: Any, got: nuts.Chains) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    z = way.sites(got)
    return z, nuts.natural(way.model, z, way.data)


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
