"""Point fits that say how they were reached: Huber or least squares, many starts, bootstraps, flags.

    theta = argmin sum_i rho_delta(log y_i - log f(x_i; theta))        method="huber", delta = 1e-3
            argmin sum_i (log y_i - log f)**2 / 2                      method="lsq-log"
            argmin sum_i (y_i - f)**2 / 2                              method="lsq"

The minimiser does not depend on whether the objective is a sum or a mean; where an optimiser stops does, when its
tolerance is absolute. Here steps stop on the relative decrease that Newton predicts, so it never matters.
Objective and data: Hoffmann et al. 2022 (arXiv:2203.15556); what a loose tolerance does to the answer: Besiroglu et
al. 2024 (arXiv:2404.10102).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.special import ndtri
from scipy.stats import qmc

from scalingkit.core import zoo
from scalingkit.core.errors import RunsError, hint, listed
from scalingkit.core.law import Law
from scalingkit.core.notes import Note, dump
from scalingkit.core.precision import require_x64
from scalingkit.infer import bootstrap as resampling
from scalingkit.infer import compiled, robust, varpro
from scalingkit.infer import device as devices
from scalingkit.infer.coordinates import Coordinates, of

METHODS = {
    "huber": "Huber(delta={delta:g}) of log residuals",
    "lsq-log": "squares/2 of log residuals",
    "lsq": "squares/2 of residuals",
}
REDUCTIONS = ("sum", "mean")
AGREE = 1e-6  # two minima are the same when their objectives agree to this
FEW, MANY = 10, 300  # Newton steps in the first round, and for those that need more
FLAT = 1e3  # condition number of the Jacobian from which a ridge is reported
PILOT = 64  # refits that are also made from a distant start; all are, where one of these finds a better minimum
EXACT = 1e-10  # residuals below this are rounding: the law passes through every run
NEGLIGIBLE = 1e-6  # a parameter that moves no prediction by this much has left the law


class Table(NamedTuple):
    """What a point fit needs of the runs: inputs at float64, outcome, labels, integer group per row."""

    inputs: dict[str, np.ndarray]
    y: np.ndarray
    labels: np.ndarray
    groups: np.ndarray


@devices.placed("bootstrap")
def pointfit(
    law: Law | str,
    runs: Any,
    *,
    method: str = "huber",
    delta: float = 1e-3,
    reduction: str = "sum",
    starts: int = 64,
    bootstrap: int = 0,
    resample: str | None = None,
    by: str | None = None,
    level: float = 0.9,
    seed: int = 0,
    device: str = "auto",
) -> xr.Dataset:
    """The law's parameters that minimise a named objective, with the evidence that this is the minimum.

    runs       a runs Dataset, or any table with columns by the law's names
    method     "huber", "lsq-log" or "lsq"; ``delta`` is Huber's threshold on log residuals
    reduction  "sum" or "mean": how ``objective`` is stated (the minimiser is the same)
    starts     quasi-random starts over the parameters that do not enter linearly; the others are projected out
    bootstrap  number of refits; ``resample`` "rows" (default), "groups" or "wild"; ``by`` names the group column of
               the last two (giving ``by`` alone means "groups")
    device     "auto" (the CPU; the GPU, if there is one, for 64 refits or more), "cpu", "gpu" or "tpu"

    Returns a Dataset with each parameter (raw units) and ``<name>_se`` (asymptotic, sandwich), ``objective``,
    ``gradient_norm`` (largest entry, in log parameters at the pivot), ``agreement`` (share of the starts that reached
    this minimum), ``condition_number``, ``objective_start`` (start), ``fitted`` and ``residual`` (run); with bootstrap
    also ``<name>_bootstrap`` (bootstrap), ``<name>_interval`` (bound) and ``objective_bootstrap``.
    attrs: ``objective`` in words, ``converged`` (1 or 0), pivots, seed, data, device, notes.
    Raises RunsError for missing columns, unusable rows, too few rows; ValueError for an unknown option.
    """
    require_x64("pointfit")
    compiled.keep()
    law = zoo.get(law, "laws") if isinstance(law, str) else law
    resample = _options(method, reduction, delta, starts, bootstrap, resample, by)
    log = method != "lsq"
    table = _table(law, runs, log, by)
    problem = _Problem(of(law), log, float(delta) if method == "huber" else float("inf"), table)
    ends = problem.search(starts, seed)
    out = _summary(problem, ends, reduction)
    chosen, reason = devices.choose(device, bootstrap, "bootstraps")
    out.attrs |= _provenance(law, runs, method, delta, reduction, starts, seed, problem)
    out.attrs |= {"device": devices.text(chosen), "device_reason": reason}
    if bootstrap:
        _add_bootstrap(out, problem, ends, bootstrap, resample, level, seed, reduction, by)
    return out


class _Problem:
    """One law on one table: padded arrays on the device, and descents from many points at once."""

    def __init__(self, coordinates: Coordinates, log: bool, delta: float, table: Table) -> None:
        self.coordinates, self.log, self.delta, self.table = coordinates, log, delta, table
        self.pivots = coordinates.pivots(table.inputs)
        self.n = len(table.y)
        self.size = _bucket(self.n)
        x = tuple(jnp.asarray(self.pad(table.inputs[k] / self.pivots[k])) for k in coordinates.law.inputs)
        ty = self.pad(np.log(table.y) if log else table.y)
        self.target = robust.Target(x, ty, self.pad(np.ones(self.n), zero=True), jnp.asarray(delta))
        self.compiled = _compile(coordinates, log)

    def pad(self, a: np.ndarray, zero: bool = False) -> np.ndarray:
        """Rows up to the bucket's size: repeats of the first row, at weight zero. So few shapes are ever compiled."""
        fill = np.repeat(a[..., :1], self.size - self.n, axis=-1)
        return np.concatenate([a, np.zeros_like(fill) if zero else fill], axis=-1)

    def descend(self, u: np.ndarray, ty: Any = None, w: Any = None, project: bool = False) -> robust.Point:
        """Minima from the points u (count, p), each with its own ``ty`` and ``w`` (count, n) where given.

        ``project``: u are distant starts, so linear parameters are projected out and delta is approached from above.
        Most descents end within FEW steps; the stragglers are gathered and go on, so that no block waits for one.
        """
        end = self._blocks(u, ty, w, project, robust.EASY if project else 0, FEW)
        late = np.flatnonzero(~end.done)
        if late.size:
            late_ty, late_w = (None if a is None else a[late] for a in (ty, w))
            rest = self._blocks(end.u[late], late_ty, late_w, False, 0, MANY)
            for whole, part in zip(end, rest, strict=True):
                whole[late] = part
        return end

    def _blocks(self, u: np.ndarray, ty: Any, w: Any, project: bool, easy: int, most: int) -> robust.Point:
        block = _block(self.size)
        x, delta = self.target.x, self.target.delta
        ty, w = (
            np.broadcast_to(b if a is None else a, (len(u), self.size))
            for a, b in ((ty, self.target.ty), (w, self.target.w))
        )
        found = []
        for i in range(0, len(u), block):
            some = np.minimum(np.arange(i, i + block), len(u) - 1)
            end = self.compiled.descend(u[some], x, ty[some], w[some], delta, project, easy, most)
            found.append([np.array(a)[: len(u) - i] for a in end])
        return robust.Point(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def search(self, starts: int, seed: int) -> robust.Point:
        """Minima from quasi-random starts, best first. Raises RunsError where the objective is finite from no start."""
        free = [i for i, k in enumerate(self.coordinates.names) if k not in varpro.projected(self.coordinates)]
        mean, sd = self.coordinates.prior
        u = np.tile(mean, (starts if free else 1, 1))
        if free and starts > 1:
            points = qmc.Halton(len(free), rng=np.random.default_rng(seed)).random(starts - 1)
            u[1:, free] += 1.5 * sd[free] * ndtri(np.clip(points, 1e-6, 1 - 1e-6))
        end = self.descend(u, project=True)
        value = np.where(np.isfinite(end.objective), end.objective, np.inf)
        if not np.isfinite(value).any():
            raise RunsError(
                f"law {self.coordinates.law.name!r}: the objective is not finite from any of {len(u)} starts. Are the "
                "inputs in the law's units, and does its outcome have the sign of the data?"
            )
        order = np.argsort(value, kind="stable")
        return robust.Point(*(a[order] for a in end._replace(objective=value)))

    def raw(self, u: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters in raw units at points u (..., p)."""
        flat = self.compiled.raw(u.reshape(-1, u.shape[-1]), self.pivots)
        return {k: np.asarray(v).reshape(u.shape[:-1]) for k, v in flat.items()}

    def near(self, u: np.ndarray) -> Near:
        """What the summary needs at one point, without the padding."""
        f, H, J, G = self.compiled.near(u, self.target, self.pivots)
        f, J = np.asarray(f)[: self.n], np.asarray(J)[: self.n]
        return Near(f, self.target.ty[: self.n] - f, np.asarray(H), J, {k: np.asarray(g) for k, g in G.items()})


class Near(NamedTuple):
    """t(f) and residual (n,), Hessian of the objective (p, p), Jacobian of t(f) (n, p), d raw / d u by name (p,)."""

    f: np.ndarray
    r: np.ndarray
    H: np.ndarray
    J: np.ndarray
    G: dict[str, np.ndarray]


class _Compiled(NamedTuple):
    descend: Callable[..., robust.Point]
    raw: Callable[..., dict[str, Any]]
    near: Callable[..., tuple[Any, ...]]


@lru_cache(maxsize=128)
def _compile(coordinates: Coordinates, log: bool) -> _Compiled:
    """Jitted functions of one law; data are arguments, so every table of one shape uses the same ones."""

    def one(u, x, ty, w, delta, project, easy, most):
        target = robust.Target(x, ty, w, delta)
        u = jnp.where(project, robust.begin(coordinates, log, u, target), u)
        return robust.descend(coordinates, log, u, target, easy, most)

    def near(u, target, pivots):
        _, H, _, J = robust.local(coordinates, log, u, target, exact=True)
        G = jax.jacfwd(lambda v: coordinates.raw(v, pivots))(u)
        return robust.outcome(coordinates, log, u, target.x), H, J, G

    many = jax.vmap(one, in_axes=(0, None, 0, 0, None, None, None, None))
    return _Compiled(jax.jit(many), jax.jit(jax.vmap(coordinates.raw, in_axes=(0, None))), jax.jit(near))


def _bucket(n: int) -> int:
    """Smallest of 16, 20, 24, 28, 32, 40, ... (quarters of an octave) that holds n."""
    step = max(4, 2 ** (int(np.ceil(np.log2(max(n, 16)))) - 3))
    return -(-max(n, 16) // step) * step


def _block(n: int) -> int:
    """How many descents go side by side: enough to vectorise, few enough to stay in cache (CPU) or memory (GPU)."""
    most, widest = (2**16, 64) if _platform() == "cpu" else (2**24, 4096)
    return int(np.clip(2 ** int(np.log2(max(most / n, 1))), 1, widest))


def _platform() -> str:
    """Where a program that is called now would run."""
    chosen = jax.config.jax_default_device
    return chosen.platform if hasattr(chosen, "platform") else jax.default_backend()


def _summary(problem: _Problem, ends: robust.Point, reduction: str) -> xr.Dataset:
    here = problem.near(ends.u[0])
    same = ends.objective <= ends.objective[0] * (1 + AGREE) + 1e-24
    per = problem.n if reduction == "mean" else 1
    condition, ridges = _ridges(problem.coordinates.names, here.J)
    notes = [*_notes(problem, ends, same, here), *ridges]
    params = problem.coordinates.law.params
    out = xr.Dataset(coords={"run": problem.table.labels})
    for k, v in problem.raw(ends.u[0]).items():
        out[k] = ((), float(v), {"units": params[k].unit, "meaning": params[k].doc})
    for k, v in _standard_errors(here, problem.delta).items():
        out[f"{k}_se"] = ((), v, {"meaning": "asymptotic standard error (sandwich)"})
    out["objective"] = ((), ends.objective[0] / per)
    out["gradient_norm"] = ((), ends.gradient[0] / per, {"meaning": "largest entry, in log parameters at the pivot"})
    out["agreement"] = ((), float(same.mean()), {"meaning": "share of the starts that reached this minimum"})
    said = "of the Jacobian of t(f), columns at unit length; parameters without effect left out"
    out["condition_number"] = ((), condition, {"meaning": said})
    out["objective_start"] = ("start", ends.objective / per)
    out["fitted"] = ("run", np.exp(here.f) if problem.log else here.f)
    out["residual"] = ("run", here.r, {"meaning": "log outcome - log fitted" if problem.log else "outcome - fitted"})
    out.attrs["notes"] = dump(notes)
    out.attrs["converged"] = int(not any(n.code == "not-converged" for n in notes))
    return out


def _standard_errors(here: Near, delta: float) -> dict[str, float]:
    """sqrt diag of G H^-1 (J' psi**2 J) H^-1 G' * n / (n - p), G = d raw / d u: valid where the spread varies by row.

    NaN where H is not positive definite to working precision (a ridge, or too few rows). Source: Huber 1967.
    """
    n, p = here.J.shape
    if n <= p or np.linalg.eigvalsh(here.H)[0] <= 1e-12 * np.trace(here.H):
        return dict.fromkeys(here.G, float("nan"))
    psi = np.clip(here.r, -delta, delta)
    half = np.linalg.solve(here.H, (here.J * psi[:, None]).T)
    return {k: float(np.sqrt(n / (n - p)) * np.linalg.norm(g @ half)) for k, g in here.G.items()}


def _notes(problem: _Problem, ends: robust.Point, same: np.ndarray, here: Near) -> list[Note]:
    law, names = problem.coordinates.law, np.array(problem.coordinates.names)
    notes = []
    pull = np.abs(np.clip(here.r, -problem.delta, problem.delta)) @ np.abs(here.J)
    exact = np.abs(here.r).max() < EXACT
    if ends.gradient[0] > 1e-5 * pull.max() and not exact:
        text = f"the largest entry of the gradient is still {ends.gradient[0]:.2g} where the descent stopped."
        notes.append(Note("not-converged", "error", law.name, text))
    if len(same) > 1 and same.sum() < max(2, 0.05 * len(same)):
        text = f"{same.sum()} of {len(same)} starts reached the best minimum."
        notes.append(Note("starts-disagree", "warning", law.name, text))
    still = np.abs(here.J).max(0) < NEGLIGIBLE
    notes += [Note("no-effect", "warning", str(k), f"{k} changes no prediction for these runs.") for k in names[still]]
    return notes


def _ridges(names: tuple[str, ...], J: np.ndarray) -> tuple[float, list[Note]]:
    """Condition number of the Jacobian with columns at unit length, and a note for every direction that is flat.

    At unit length: a column made short by a small coefficient is weakly known, not a ridge. Well-spread designs stay
    below about 50; D = kN is at 1e4 and above.
    """
    length = np.linalg.norm(J, axis=0)
    names, unit = np.array(names)[length > 0], J[:, length > 0] / length[length > 0]
    singular, directions = np.linalg.svd(unit, full_matrices=False)[1:]
    notes = []
    for s, v in zip(singular, directions, strict=True):
        kappa, along = singular[0] / max(s, 1e-300), names[np.abs(v) > 0.1 * np.abs(v).max()]
        if kappa > FLAT:
            text = (
                f"{listed(along)} can change together with almost no change in the fit (condition number {kappa:.2g})."
            )
            notes.append(Note("ridge", "warning", ", ".join(along), text))
    return float(singular[0] / max(singular[-1], 1e-300)), notes


def _add_bootstrap(out, problem, ends, count, resample, level, seed, reduction, by) -> None:
    """Bootstrap values, their quantiles and how the refits went, added to the summary."""
    rng = np.random.default_rng(seed)
    best = ends.u[0]
    ty = w = None
    if resample == "wild":
        here = problem.near(best)
        ty = problem.pad(here.f + resampling.signs(rng, count, problem.table.groups) * here.r)
    else:
        w = problem.pad(resampling.weights(rng, count, problem.table.groups), zero=True)
    end, agreement = _refit(problem, best, count, ty, w)
    over = f"{resample} of {by}" if by else resample
    tails = [(1 - level) / 2, (1 + level) / 2]
    said = {"meaning": f"bootstrap ({over}), {count} refits"}
    for k, v in problem.raw(end.u).items():
        out[f"{k}_bootstrap"] = ("bootstrap", v, said)
        out[f"{k}_interval"] = (
            "bound",
            np.quantile(v, tails),
            {"meaning": f"bootstrap ({over}) quantiles, {level:.0%}"},
        )
    out["objective_bootstrap"] = ("bootstrap", end.objective / (problem.n if reduction == "mean" else 1))
    out["agreement_bootstrap"] = ((), agreement, {"meaning": "share of refits whose minimum no distant start beat"})
    out.coords["bound"] = ["lower", "upper"]
    out.attrs |= {"resample": over, "bootstrap": count, "level": level}


def _refit(problem: _Problem, best: np.ndarray, count: int, ty: Any, w: Any) -> tuple[robust.Point, float]:
    """Refits from the full data's minimum, against refits from the prior's centre: the better of the two is kept."""
    near = problem.descend(np.tile(best, (count, 1)), ty, w)
    tried, beaten = 0, np.zeros(count, bool)
    for last in sorted({min(PILOT, count), count}):
        part = slice(tried, last)
        part_ty, part_w = (None if a is None else a[part] for a in (ty, w))
        centre = np.tile(problem.coordinates.prior[0], (last - tried, 1))
        far = problem.descend(centre, part_ty, part_w, project=True)
        beaten[part] = far.objective < near.objective[part] * (1 - AGREE)
        for whole, other in zip(near, far, strict=True):
            whole[part][beaten[part]] = other[beaten[part]]
        tried = last
        if not beaten.any():
            break
    return near, 1 - float(beaten[:tried].mean())


def _provenance(law, runs, method, delta, reduction, starts, seed, problem: _Problem) -> dict[str, Any]:
    attrs = getattr(runs, "attrs", {})
    return {
        "law": law.name,
        "method": method,
        "objective": f"{reduction} of {METHODS[method].format(delta=delta)}",
        "reduction": reduction,
        "starts": starts,
        "seed": seed,
        "projected": json.dumps(varpro.projected(problem.coordinates)),
        "rows_used": problem.n,
        "data_name": str(attrs.get("data_name", "")),
        "data_sha256": str(attrs.get("sha256", "")),
    } | {f"pivot_{k}": v for k, v in problem.pivots.items()}


def _options(method, reduction, delta, starts, bootstrap, resample, by) -> str:
    if method not in METHODS:
        raise ValueError(f"method {method!r} is not known.{hint(str(method), METHODS)}")
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction {reduction!r} is not known: it is 'sum' or 'mean'.")
    if not delta > 0:
        raise ValueError(f"delta must be positive, not {delta!r}.")
    if starts < 1 or bootstrap < 0:
        raise ValueError(f"starts must be at least 1 and bootstrap at least 0, not {starts} and {bootstrap}.")
    resample = resample or ("groups" if by else "rows")
    if resample not in resampling.RESAMPLES:
        raise ValueError(f"resample {resample!r} is not known: it is one of {listed(resampling.RESAMPLES)}.")
    if resample == "groups" and not by:
        raise ValueError("resample='groups' needs by=: the column whose labels are drawn.")
    if resample == "rows" and by:
        raise ValueError(f"by={by!r} has no effect on resample='rows'; use 'groups' or 'wild', or leave by out.")
    return resample


def _table(law: Law, runs: Any, log: bool, by: str | None) -> Table:
    """Columns of the runs as float64, every row checked. Raises RunsError."""
    have = [str(k) for k in (runs.variables if isinstance(runs, xr.Dataset) else runs)]
    for k in (*law.inputs, law.output, *([by] if by else [])):
        if k not in have:
            raise RunsError(f"law {law.name!r} needs the column {k!r}, which the runs do not have.{hint(k, have)}")
    values = {k: np.asarray(runs[k]) for k in (*law.inputs, law.output)}
    n = len(values[law.output])
    labels = np.asarray(runs["run"]).astype(str) if "run" in have else np.arange(n).astype(str)
    for k, v in values.items():
        values[k] = _usable(k, v, labels, positive=k != law.output or log)
    if n < len(law.params):
        raise RunsError(f"{n} rows cannot determine the {len(law.params)} parameters of law {law.name!r}.")
    groups = np.unique(np.asarray(runs[by]).astype(str), return_inverse=True)[1] if by else np.arange(n)
    if by and groups.max() == 0:
        raise RunsError(f"column {by!r} has one label only, so groups cannot be drawn from it.")
    y = values.pop(law.output)
    return Table(values, y, labels, groups)


def _usable(name: str, values: np.ndarray, labels: np.ndarray, positive: bool) -> np.ndarray:
    try:
        v = values.astype(np.float64)
    except (TypeError, ValueError):
        raise RunsError(f"column {name!r} is not numeric: it holds {values.ravel()[0]!r}.") from None
    if v.ndim != 1:
        raise RunsError(f"column {name!r} has {v.ndim} dimensions; a point fit takes one value a run.")
    bad = ~np.isfinite(v) | ((v <= 0) if positive else False)
    if bad.any():
        what = "positive and finite" if positive else "finite"
        raise RunsError(
            f"column {name!r} must be {what}, but is not in {int(bad.sum())} row(s): {listed(labels[bad])}. "
            "Pass the table through scalingkit.runs first: it quarantines such rows with a reason."
        )
    return v


def parameters(fitted: xr.Dataset) -> Mapping[str, float]:
    """Parameter values of a point fit, by name."""
    return {k: float(fitted[k]) for k in zoo.get(fitted.attrs["law"], "laws").params}
