"""Information: how much a set of runs can tell about each parameter, from the law's Jacobian alone.

    J[i, k] = d f(x_i; theta) / d theta_k         f: the outcome, or its logarithm (``of="log"``)
    F       = J' W J / s**2                       Fisher information under noise of sd s
    kappa   = (s_max / s_min)**2 of J with its columns scaled to length 1: the condition number of J'J
    VIF_k   = [(J'J)^-1]_kk of the same J: 1 / (1 - R**2) of column k on the others

Coordinates: "natural" (the law's own), "log" (log of every parameter), "pivoted" (logs, coefficients taken at the
geometric mean of the inputs: the sampler's coordinates). Blocks: "scale" (the coefficients named in ``law.scales``),
"scale+E" (with the linear floor), "full". **They are different numbers**: on a ray D = k N the scale block grows as
gap**-2 and the full matrix as gap**-6.

Derivatives are automatic and in float64; float32 is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from scalingkit.core.errors import hint
from scalingkit.core.law import Law
from scalingkit.core.names import PARAM, RUN
from scalingkit.core.precision import require_x64
from scalingkit.design.grids import DesignError
from scalingkit.infer.coordinates import Coordinates
from scalingkit.infer.coordinates import of as coordinates

Coords = Literal["natural", "log", "pivoted"]
Outcome = Literal["output", "log"]
Block = Literal["scale", "scale+E", "full"]
_ROUNDING = float(np.finfo(float).eps)  # a singular value below n * this * the largest is rounding, not information


def jacobian(
    law: Law, theta: Any, runs: xr.Dataset, *, coords: Coords = "natural", of: Outcome = "output", block: Block = "full"
) -> xr.DataArray:
    """J with dims (..., run, param); ``theta`` is a mapping of numbers, or a Dataset whose dims (...) are kept.

    Raises PrecisionError in float32, DesignError where an input is missing or not positive.
    """
    require_x64("a Jacobian for identifiability")
    values, dims, labels = parameters(law, theta)
    J = jacobian_array(law, values.reshape(-1, values.shape[-1]), inputs(law, runs), coords, of)
    J = J.reshape(*values.shape[:-1], *J.shape[1:])
    names = list(law.params)
    out = xr.DataArray(J, dims=(*dims, RUN, PARAM), coords={**labels, RUN: runs[RUN].values, PARAM: names})
    return out.sel({PARAM: list(block_params(law, block))})


def condition(
    law: Law, theta: Any, runs: xr.Dataset, *, block: Block = "scale", coords: Coords = "natural",
    of: Outcome = "output",
) -> xr.DataArray:  # fmt: skip
    """kappa of J'J with unit columns, per (...): 1 is perfect, inf says that a combination is not determined at all."""
    J = jacobian(law, theta, runs, coords=coords, of=of, block=block)
    return J.isel({RUN: 0, PARAM: 0}, drop=True).copy(data=condition_array(J.values)).rename("kappa")


def fisher(
    law: Law, theta: Any, runs: xr.Dataset, noise: float, *, coords: Coords = "pivoted", of: Outcome = "log"
) -> xr.DataArray:
    """F = J'J / noise**2 with dims (..., param, param_2); ``noise``: sd of the (log) outcome."""
    J = jacobian(law, theta, runs, coords=coords, of=of) / noise
    return xr.dot(J, J.rename({PARAM: f"{PARAM}_2"}), dim=RUN).rename("fisher")


def vif(law: Law, theta: Any, runs: xr.Dataset, *, coords: Coords = "natural", of: Outcome = "log") -> xr.DataArray:
    """Variance inflation of each parameter by the others, dims (..., param); the interval is sqrt(VIF) wider."""
    J = jacobian(law, theta, runs, coords=coords, of=of)
    return J.isel({RUN: 0}, drop=True).copy(data=vif_array(J.values)).rename("vif")


def condition_array(J: np.ndarray) -> np.ndarray:
    """kappa of J'J from the singular values of J (..., n, k): squaring J first would lose half the digits."""
    if J.shape[-2] < J.shape[-1]:
        return np.full(J.shape[:-2], np.inf)
    s = np.linalg.svd(_unit(J), compute_uv=False)
    lost = s[..., -1] <= _ROUNDING * max(J.shape[-2:]) * s[..., 0]
    with np.errstate(divide="ignore"):
        return np.where(lost, np.inf, (s[..., 0] / s[..., -1]) ** 2)


def vif_array(J: np.ndarray) -> np.ndarray:
    """diag((J'J)^-1) for unit columns, from the SVD of J (..., n, k)."""
    if J.shape[-2] < J.shape[-1]:
        return np.full((*J.shape[:-2], J.shape[-1]), np.inf)
    _, s, Vt = np.linalg.svd(_unit(J), full_matrices=False)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.nan_to_num(np.sum((Vt / s[..., None]) ** 2, axis=-2), nan=np.inf, posinf=np.inf)


def block_params(law: Law, block: Block) -> tuple[str, ...]:
    """Names of the parameters of a block, in the law's order."""
    blocks = {"scale": set(law.scales), "scale+E": set(law.scales) | set(law.linear), "full": set(law.params)}
    if block not in blocks:
        raise DesignError(f"no block {block!r}.{hint(block, blocks)}")
    if not blocks[block]:
        raise DesignError(f"law {law.name!r} declares no scale coefficients, so it has no block {block!r}: use 'full'.")
    return tuple(k for k in law.params if k in blocks[block])


def inputs(law: Law, runs: xr.Dataset) -> np.ndarray:
    """The law's inputs, shape (n, K). Raises DesignError naming what is missing or not positive, and in which run."""
    missing = [k for k in law.inputs if k not in runs]
    if missing:
        have = ", ".join(map(str, runs.data_vars))
        raise DesignError(f"law {law.name!r} needs the inputs {', '.join(missing)}; the runs have {have}.")
    x = np.stack([np.asarray(runs[k].values, float) for k in law.inputs], -1)
    if bad := np.argwhere(~(np.isfinite(x) & (x > 0))).tolist():
        i, k = bad[0]
        raise DesignError(
            f"run {str(runs[RUN].values[i])!r}: {list(law.inputs)[k]} = {x[i, k]:g} is not a positive number."
        )
    return x


def parameters(law: Law, theta: Any) -> tuple[np.ndarray, tuple[str, ...], dict[str, Any]]:
    """Values (..., p), the names of the dims (...) and their labels, of a mapping or Dataset of parameters."""
    if missing := [k for k in law.params if k not in theta]:
        raise DesignError(f"law {law.name!r} needs values for {', '.join(missing)}.")
    arrays = [v if isinstance(v := theta[k], xr.DataArray) else xr.DataArray(np.asarray(v, float)) for k in law.params]
    arrays = xr.broadcast(*arrays)
    first = arrays[0]
    labels = {d: first[d].values for d in first.dims if d in first.coords}
    return np.stack([np.asarray(a.values, float) for a in arrays], -1), tuple(map(str, first.dims)), labels


def jacobian_array(law: Law, theta: np.ndarray, x: np.ndarray, coords: Coords, of: Outcome) -> np.ndarray:
    """J (S, n, p) at raw parameters (S, p) and inputs (n, K)."""
    c = coordinates(law)
    if coords == "pivoted":
        pivots = pivot_array(c, x)
        return pivoted_at(c, unconstrained(c, theta, pivots), x / pivots, of)
    if coords not in ("natural", "log"):
        raise DesignError(f"no coordinates {coords!r}.{hint(str(coords), ('natural', 'log', 'pivoted'))}")
    J = np.asarray(_natural(c, of)(jnp.asarray(theta), jnp.asarray(x)))
    return J * theta[:, None, :] if coords == "log" else J


def pivoted_at(c: Coordinates, u: np.ndarray, x: np.ndarray, of: Outcome) -> np.ndarray:
    """J (S, n, p) at unconstrained parameters u (S, p) and inputs x (n, K) already divided by their pivots."""
    return curve_and_jacobian(c, u, x, of)[1]


def curve_and_jacobian(c: Coordinates, u: np.ndarray, x: np.ndarray, of: Outcome) -> tuple[np.ndarray, np.ndarray]:
    """f (S, n) and J (S, n, p) at u (S, p) and inputs x (n, K) over their pivots; both on the scale ``of``.

    Padded to powers of two, so that one compiled function serves problems of many sizes.
    """
    many, n = len(u), len(x)
    u = np.pad(u, ((0, power_of_two(many, 16) - many), (0, 0)), mode="edge")
    x = np.pad(x, ((0, power_of_two(n, 64) - n), (0, 0)), mode="edge")
    f, J = _pivoted(c, of)(jnp.asarray(u), jnp.asarray(x))
    return np.asarray(f)[:many, :n], np.asarray(J)[:many, :n]


def power_of_two(n: int, least: int) -> int:
    """The next power of two, from ``least`` on."""
    return max(least, 1 << max(n - 1, 0).bit_length())


def pivot_array(c: Coordinates, x: np.ndarray) -> np.ndarray:
    """Geometric mean of each pivoted input, 1 for the others, shape (K,)."""
    pivots = c.pivots({k: x[:, i] for i, k in enumerate(c.law.inputs)})
    return np.array([pivots[k] for k in c.law.inputs])


def unconstrained(c: Coordinates, theta: np.ndarray, pivots: np.ndarray) -> np.ndarray:
    """u (..., p) of raw parameters (..., p): the inverse of ``Coordinates.raw``, over any number of draws."""
    at, names, x = dict(zip(c.law.inputs, pivots, strict=True)), c.names, {}
    for i, k in enumerate(names):
        x[k] = theta[..., i]
    for k, (name, e) in c.law.scales.items():
        x[k] = theta[..., names.index(k)] * at[name] ** -(theta[..., names.index(e)] if isinstance(e, str) else e)
    return np.stack([np.asarray(c.to[k].inv(jnp.asarray(x[k]))) for k in names], -1)


def raw(c: Coordinates, u: np.ndarray, pivots: np.ndarray) -> np.ndarray:
    """Raw parameters (..., p) at points u (..., p): ``Coordinates.raw`` over any number of draws, without tracing."""
    at, names = dict(zip(c.law.inputs, pivots, strict=True)), c.names
    theta = {k: np.asarray(c.to[k](u[..., i])) for i, k in enumerate(names)}
    made = dict(theta)
    for k, (x, e) in c.law.scales.items():
        made[k] = theta[k] * at[x] ** (theta[e] if isinstance(e, str) else e)
    return np.stack([made[k] for k in names], -1)


def _unit(J: np.ndarray) -> np.ndarray:
    # A column of zeros (a parameter without effect on these runs) stays zero: kappa is then inf, as it should be.
    length = np.linalg.norm(J, axis=-2, keepdims=True)
    return J / np.where(length > 0, length, 1.0)


def outcome(of: Outcome, y: Any) -> Any:
    """y or log y, in JAX."""
    if of not in ("output", "log"):
        raise DesignError(f"no outcome {of!r}.{hint(str(of), ('output', 'log'))}")
    return jnp.log(y) if of == "log" else y


@lru_cache(maxsize=256)
def _pivoted(c: Coordinates, of: Outcome) -> Any:
    def f(u: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = outcome(of, c.curve(u, tuple(x)))
        return y, y

    def both(u: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        J, y = jax.jacfwd(f, has_aux=True)(u, x)
        return y, J

    return jax.jit(jax.vmap(jax.vmap(both, (None, 0)), (0, None)))


@lru_cache(maxsize=256)
def _natural(c: Coordinates, of: Outcome) -> Any:
    def f(theta: jax.Array, x: jax.Array) -> jax.Array:
        return outcome(of, c.law.curve(*x, *theta))

    return jax.jit(jax.vmap(jax.vmap(jax.jacfwd(f), (None, 0)), (0, None)))


def as_mapping(law: Law, values: np.ndarray) -> Mapping[str, float]:
    """(p,) -> name: value."""
    return {k: float(v) for k, v in zip(law.params, values, strict=True)}
