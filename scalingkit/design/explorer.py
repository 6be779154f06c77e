"""Explorer: what n runs of equal N D tell about a law as its exponents part and tokens per parameter (TPP) spread.

    u = log N, tau = log(D/N);  runs at 20 TPP on sizes from 5e7 to 5e9, moved along N D = const to sd(tau) = sd_log_tpp
    gap          alpha - beta (Chinchilla), (alpha_N - alpha_D)/alpha_D (Kaplan); mean exponent and both terms at
                 N = 1e9, D = 2e10 stay what was published, so that nothing but the gap changes
    eigenvalues  of J'J, columns of length 1, natural coordinates; kappa their ratio, by block (see ``information``)
    closed form  kappa = coth(v/4), v = Var_w(log(g/f)), w ~ f**2, of the scale block (see ``thresholds``)
    Cov          noise**2 (J'J)^-1 of the logarithms under noise of the log outcome, from the runs alone, no prior:
                 standard errors, ellipses and the band of the prediction are linearised, the profile is not

"ray": the same runs before they are spread. On it the scale block's kappa grows as gap**-2, the full one as gap**-6.
The profile is of data that lie on the curve: what to expect without the luck of one noise. At most 64 runs; another
number of runs compiles nothing. Raises DesignError, PrecisionError.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtri

from scalingkit.core import zoo
from scalingkit.core.errors import hint
from scalingkit.core.law import Law
from scalingkit.core.names import PARAM, RUN
from scalingkit.core.precision import require_x64
from scalingkit.design import bands, grids, prior, thresholds, words
from scalingkit.design.contraction import directions, laplace
from scalingkit.design.descent import VALUES, walk
from scalingkit.design.grids import DesignError
from scalingkit.design.information import (
    Block,
    block_params,
    condition_array,
    curve_and_jacobian,
    jacobian_array,
    pivot_array,
    unconstrained,
)
from scalingkit.design.profile import _crossings
from scalingkit.infer.coordinates import of as coordinates

DESIGNS = ("ray", "planned")
LAWS = ("chinchilla", "kaplan")
MOST, LEAST = 64, 3  # runs
WIDEST = 2.0  # sd of log TPP up to which the threshold is looked for
CENTRE = (1e9, 2e10)  # N and D at which both terms stay when the gap moves
SIZES = (5e7, 5e9)
TPP = np.geomspace(1, 1000, 31)
_SCAN = np.linspace(0, WIDEST, 61)
_ANGLES = 4 * 24  # with a point at every quarter turn, where the far sides of a long ellipse are
_FARTHEST = 1e4  # half-axes of an ellipse, in its unit, beyond which it is drawn no longer
_ROUNDING = 1e-26  # a variance of log(g/f) below this is that of rounding
_FLOOR = 1e-11  # singular values below this share of the largest are drawn as this


def explored(
    law: str = "chinchilla", gap: float | None = None, sd_log_tpp: float = 0.0, noise: float = 0.01, runs: int = 12,
    budget: float = 1e23, kappa_goal: float = 1000.0, *, levels: Any = (-1.0, 0.0, 1.0), prob: float = 0.9,
) -> xr.Dataset:  # fmt: skip
    """What ``runs`` runs spread by ``sd_log_tpp`` tell, beside the ray they come from.

    ``gap``: default the published one; ``noise``: sd of the log outcome; ``budget``: 6 N D of the predictions;
    ``kappa_goal``: of the scale block, for the threshold; ``levels``: of log TPP, taken in turn.

    Returns N, D (design, run); theta (param); kappa, eigenvalue (design, block[, rank]); v and kappa_formula (design);
    kappa_scan (block, sd), sd_needed, sd_formula; se of the logs (design, param); ellipse (design, pair, axis, angle);
    profile (step) of the size exponent with its interval; loss and band (tpp); contraction of the weakest direction,
    named in attrs["weakest"].
    """
    require_x64("the explorer")
    chosen = _law(law)
    _checked(sd_log_tpp=sd_log_tpp, noise=noise, runs=runs, budget=budget, kappa_goal=kappa_goal)
    theta = theta_at(chosen, gap)
    at = np.array([[theta[k] for k in chosen.params]])
    ray = grids.ray(np.geomspace(*SIZES, int(runs)))
    wide = thresholds.widened(ray, 1.0, levels)
    path = np.log(np.stack([wide[k].values / ray[k].values for k in ("N", "D")], -1))  # moved by sd 1
    start = np.stack([ray["N"].values, ray["D"].values], -1)
    x = {"ray": start, "planned": start * np.exp(sd_log_tpp * path)}
    wanted = np.stack([np.sqrt(budget / 6 / TPP), np.sqrt(budget / 6 * TPP)], -1)
    J = {k: _padded(chosen, at, v, "log", "log") for k, v in x.items()}
    parts = [
        _conditions(chosen, at, x),
        _threshold(chosen, theta, at, start, path, kappa_goal),
        _errors(chosen, theta, J, noise, prob),
        _bands(chosen, at, J, wanted, noise),
        _profile(chosen, at, x["planned"], J["planned"], noise, prob),
        _weakest(chosen, at, x["planned"], noise),
    ]
    both = np.stack([x[k] for k in DESIGNS])
    out = xr.merge(parts, combine_attrs="no_conflicts").assign(
        N=(("design", RUN), both[..., 0], ray["N"].attrs), D=(("design", RUN), both[..., 1], ray["D"].attrs),
        theta=(PARAM, at[0]),
    ).assign_coords({RUN: ray[RUN].values})  # fmt: skip
    said = dict(law=law, gap=gap_of(chosen, theta), sd_log_tpp=sd_log_tpp, noise=noise, runs=int(runs), budget=budget)
    return out.assign_attrs(**said, kappa_goal=kappa_goal, prob=prob)


def gap_of(law: Law, theta: Any) -> float:
    """The exponent gap of parameter values."""
    a, b = _slopes(law, theta)
    return a - b


def theta_at(law: Law, gap: float | None = None) -> dict[str, float]:
    """The published values with the exponents moved ``gap`` apart; what both terms are at CENTRE stays.

    >>> round(theta_at(zoo.get("chinchilla", "laws"), 0.1)["alpha"], 6)
    0.4068
    """
    theta, (N, D) = dict(law.truth), CENTRE
    if gap is None:
        return theta
    if not np.isfinite(gap):
        raise DesignError(f"gap = {gap} is not a number.")
    if law.name == "kaplan":  # the term (Nc/N)**(1 + gap) within the outer power
        power = 1 + gap
        if power <= 0:
            raise DesignError(f"gap = {gap:g} leaves no positive exponent of size: it must exceed -1.")
        term = (theta["Nc"] / N) ** (theta["alpha_N"] / theta["alpha_D"])
        return theta | dict(alpha_N=float(power * theta["alpha_D"]), Nc=float(N * term ** (1 / power)))
    middle = (theta["alpha"] + theta["beta"]) / 2
    alpha, beta = middle + gap / 2, middle - gap / 2
    if min(alpha, beta) <= 0:
        raise DesignError(f"gap = {gap:g} leaves no positive exponent: it must lie within {2 * middle:.3g} of 0.")
    A, B = theta["A"] * N ** (alpha - theta["alpha"]), theta["B"] * D ** (beta - theta["beta"])
    return theta | dict(alpha=float(alpha), beta=float(beta), A=float(A), B=float(B))


def pairs(law: Law) -> tuple[tuple[str, str], tuple[str, str]]:
    """(size exponent, data exponent) and (size coefficient, data coefficient)."""
    exponents = ("alpha_N", "alpha_D") if law.name == "kaplan" else ("alpha", "beta")
    a, b = law.scales
    return exponents, (a, b)


def blocks(law: Law) -> tuple[Block, ...]:
    """Blocks that differ: without a linear floor "scale+E" is "scale"."""
    return ("scale", "scale+E", "full") if set(law.linear) - set(law.scales) else ("scale", "full")


def _conditions(law: Law, at: np.ndarray, x: dict[str, np.ndarray]) -> xr.Dataset:
    """Eigenvalues (design, block, rank) and kappa, with v and coth(v/4) beside it."""
    use, p = blocks(law), at.shape[1]
    value = np.full((len(x), len(use), p), np.nan)
    kappa, v = np.empty((len(x), len(use))), np.empty(len(x))
    for i, one in enumerate(x.values()):
        J = _padded(law, at, one, "natural", "output")
        for j, block in enumerate(use):
            columns = J[:, _columns(law, block)]
            kappa[i, j] = condition_array(columns)
            s = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), compute_uv=False) ** 2
            value[i, j, : s.size] = s
        v[i] = _weighted_spread(J[:, _columns(law, "scale")])
    said = {"meaning": "of J'J, columns of length 1, natural coordinates"}
    return xr.Dataset(
        {
            "kappa": (("design", "block"), kappa, said),
            "eigenvalue": (("design", "block", "rank"), value, said),
            "v": ("design", v, {"meaning": "Var_w(log(g/f)), w ~ f**2"}),
            "kappa_formula": ("design", thresholds.kappa(v), {"meaning": "coth(v/4), of the scale block"}),
        },
        coords={"design": list(x), "block": list(use), "rank": np.arange(p)},
    )


def _weighted_spread(J: np.ndarray) -> float:
    """``thresholds.weighted_spread`` of columns already there, which compiles nothing for another number of runs."""
    w = J[:, 0] ** 2 / np.sum(J[:, 0] ** 2)
    z = np.log(np.abs(J[:, 1] / J[:, 0]))
    v = float(np.sum(w * (z - np.sum(w * z)) ** 2))
    return v if v > _ROUNDING else 0.0


def _threshold(law: Law, theta: Any, at: np.ndarray, x: np.ndarray, path: np.ndarray, goal: float) -> xr.Dataset:
    """kappa along sd(log TPP) and the least one at which the scale block meets the goal, computed and in closed form."""
    scan = _along(law, at, x, path, _SCAN)
    met = np.flatnonzero(scan[0] <= goal)
    needed = np.inf
    if met.size:
        needed = 0.0
        if met[0] > 0:  # once more between the neighbours, then a straight line between logarithms
            fine = np.linspace(_SCAN[met[0] - 1], _SCAN[met[0]], _SCAN.size)
            fall = np.log(_along(law, at, x, path, fine)[0])
            i = int(np.argmax(fall <= np.log(goal)))
            share = (fall[i - 1] - np.log(goal)) / (fall[i - 1] - fall[i])
            needed = float(fine[i - 1] + share * (fine[i] - fine[i - 1]))
    a, b = _slopes(law, theta)
    u, tau = np.log(x[:, 0]), path[:, 1] - path[:, 0]
    # along N D = const both terms move: z = gap u - (a + b)/2 tau, a form of tpp_threshold's with the mean exponent
    closed = thresholds.tpp_threshold(
        (a + b) / 2, goal, alpha=(a + b) / 2 + a - b, sd_size=float(u.std()), corr=float(np.corrcoef(u, tau)[0, 1])
    )
    nat = {"units": "nat"}
    return xr.Dataset(
        {
            "kappa_scan": (("block", "sd"), scan),
            "sd_needed": ((), needed, nat | {"meaning": f"least sd of log TPP for kappa <= {goal:g}, scale block"}),
            "sd_formula": ((), closed, nat | {"meaning": "the same from coth(v/4), log N and log TPP taken as normal"}),
        },
        coords={"sd": ("sd", _SCAN, nat | {"meaning": "sd of log TPP"}), "block": list(blocks(law))},
    )


def _along(law: Law, at: np.ndarray, x: np.ndarray, path: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """kappa (block, sd) of the runs moved by every sd at once."""
    moved = _filled(x)[None] * np.exp(sd[:, None, None] * _filled(path)[None])
    J = jacobian_array(law, at, moved.reshape(-1, 2), "natural", "output")
    J = J.reshape(sd.size, MOST, -1)[:, : len(x)]
    return np.stack([condition_array(J[..., _columns(law, b)]) for b in blocks(law)])


def _errors(law: Law, theta: Any, J: dict[str, np.ndarray], noise: float, prob: float) -> xr.Dataset:
    """Standard errors of the logarithms, and ellipses of two pairs, everything else unknown too."""
    names = list(law.params)
    se = [bands.data_only(v, np.eye(len(names)), noise) for v in J.values()]
    exponents, coefficients = pairs(law)
    values = np.array([theta[k] for k in names])
    shapes = np.empty((len(J), 2, 2, _ANGLES + 1))
    for i, v in enumerate(J.values()):
        for j, (pair, unit) in enumerate(((exponents, values), (coefficients, np.full(len(names), 1 / np.log(10))))):
            k = [names.index(n) for n in pair]
            centre = values[k] if j == 0 else np.log10(values[k])
            shapes[i, j] = centre[:, None] + _ellipse(v, noise, k, unit[k], prob)
    said = {"meaning": f"{prob:.0%} region, linearised; exponents, and log10 of coefficients"}
    return xr.Dataset(
        {
            "se": (("design", PARAM), np.stack(se), {"meaning": "standard error of the logarithm, runs alone"}),
            "ellipse": (("design", "pair", "axis", "angle"), shapes, said),
        },
        coords={
            "design": list(J), PARAM: names, "pair": ["exponents", "coefficients"], "axis": ["size", "data"],
            "angle": np.linspace(0, 2 * np.pi, _ANGLES + 1),
        },
    )  # fmt: skip


def _ellipse(J: np.ndarray, noise: float, k: list[int], unit: np.ndarray, prob: float) -> np.ndarray:
    """(2, angle) about 0: {d: d' C^-1 d = chi-square quantile of 2}, from a factor of C, never from C itself."""
    length = np.linalg.norm(J, axis=0)
    _, s, Vt = np.linalg.svd(J / length, full_matrices=False)
    factor = noise * unit[:, None] * (Vt / np.maximum(s, _FLOOR * s[0])[:, None])[:, k].T / length[k][:, None]
    U, axes, _ = np.linalg.svd(factor, full_matrices=False)
    half = np.minimum(axes * np.sqrt(-2 * np.log1p(-prob)), _FARTHEST)
    t = np.linspace(0, 2 * np.pi, _ANGLES + 1)
    return U @ (half[:, None] * np.stack([np.cos(t), np.sin(t)]))


def _bands(law: Law, at: np.ndarray, J: dict[str, np.ndarray], wanted: np.ndarray, noise: float) -> xr.Dataset:
    """The curve and the standard error of its logarithm at one budget, by TPP."""
    j = jacobian_array(law, at, wanted, "log", "log")[0]
    loss = np.asarray(law.curve(wanted[:, 0], wanted[:, 1], *at[0]))
    return xr.Dataset(
        {
            "loss": ("tpp", loss, {"units": "nat"}),
            "band": (("design", "tpp"), np.stack([bands.data_only(v, j, noise) for v in J.values()]),
                     {"meaning": "standard error of the log loss at the budget, runs alone, linearised"}),
        },
        coords={"design": list(J), "tpp": TPP},
    )  # fmt: skip


def _profile(law: Law, at: np.ndarray, x: np.ndarray, J: np.ndarray, noise: float, prob: float) -> xr.Dataset:
    """Deviance along the size exponent, the others refitted, for runs on the curve; beside it the quadratic form."""
    c = coordinates(law)
    name = pairs(law)[0][0]
    i = c.names.index(name)
    pivots = pivot_array(c, x)
    u = unconstrained(c, at, pivots)[0]
    y = curve_and_jacobian(c, u[None], x / pivots, "log")[0][0]
    se = float(bands.data_only(J, np.eye(u.size), noise)[i])
    reach = min(4 * se, np.log(2.0))
    out = reach * np.arange(1, VALUES + 1) / VALUES
    values = u[i] + np.stack([-out, out])
    sides = walk(c, "log", np.tile(u, (2, 1)), np.full(2, i), values, x / pivots, y, np.full(len(x), noise**-2.0))
    deviance = np.r_[sides[0, ::-1], 0.0, sides[1]]
    step = np.r_[-out[::-1], 0.0, out]
    value = at[0, i] * np.exp(step)
    low, high = _crossings(value, deviance, _level(prob))
    return xr.Dataset(
        {
            "profile_value": ("step", value, {"meaning": name}),
            "profile_deviance": ("step", deviance),
            "profile_quadratic": ("step", (step / se) ** 2, {"meaning": "what the linearisation says"}),
            "profile_interval": ("end", [low, high], {"meaning": f"{prob:.0%}; infinite where it does not end"}),
        },
        coords={"end": ["low", "high"]},
    )


def _weakest(law: Law, at: np.ndarray, x: np.ndarray, noise: float) -> xr.Dataset:
    """The direction that the runs narrow least from the law's prior, and what it does to the parameters."""
    c = coordinates(law)
    _, sd = prior.moments(law)
    pivots = pivot_array(c, x)
    u = unconstrained(c, at, pivots)
    J = curve_and_jacobian(c, u, x / pivots, "log")[1][0]
    along, vectors = directions(laplace(J, noise, sd), sd)
    step = float(np.sqrt(max(1 - along[0], 0)))  # one posterior sd
    said = words.direction(c, vectors[0], sd, u[0], pivots, step)
    return xr.Dataset({"contraction": ((), float(along[0]))}, attrs={"weakest": said})


def _padded(law: Law, at: np.ndarray, x: np.ndarray, coords: Any, of: Any) -> np.ndarray:
    """J (n, p), computed on MOST rows whatever n."""
    return jacobian_array(law, at, _filled(x), coords, of)[0, : len(x)]


def _filled(x: np.ndarray) -> np.ndarray:
    return np.pad(x, ((0, MOST - len(x)), (0, 0)), mode="edge")


def _columns(law: Law, block: Block) -> list[int]:
    return [list(law.params).index(k) for k in block_params(law, block)]


def _slopes(law: Law, theta: Any) -> tuple[float, float]:
    """Exponents of the two columns against N and D: what ``thresholds.spread`` calls alpha and beta."""
    if law.name == "kaplan":
        return float(theta["alpha_N"] / theta["alpha_D"]), 1.0
    return float(theta["alpha"]), float(theta["beta"])


def _level(prob: float) -> float:
    return float(ndtri((1 + prob) / 2) ** 2)


def _law(name: str) -> Law:
    if name not in LAWS:
        raise DesignError(f"the explorer has no law {name!r}; it has {', '.join(LAWS)}.{hint(name, LAWS)}")
    return zoo.get(name, "laws")


def _checked(sd_log_tpp: float, noise: float, runs: int, budget: float, kappa_goal: float) -> None:
    """Refuse what no design has."""
    if int(runs) != runs or not LEAST <= runs <= MOST:
        raise DesignError(f"runs = {runs}: give a whole number from {LEAST} to {MOST}.")
    if not 0 <= sd_log_tpp <= WIDEST:
        raise DesignError(f"sd_log_tpp = {sd_log_tpp:g} must lie between 0 (a ray) and {WIDEST:g}.")
    for name, value in (("noise", noise), ("budget", budget)):
        if not (np.isfinite(value) and value > 0):
            raise DesignError(f"{name} = {value:g} must be a positive number.")
    if not kappa_goal > 1:
        raise DesignError(f"kappa_goal = {kappa_goal:g} must exceed 1: no condition number is smaller.")
