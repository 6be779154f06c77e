"""Robust: the descent behind point fits. Damped IRLS, then Newton, with delta-continuation; one code for all laws.

    minimise sum_i w_i rho_delta(r_i(u)),   r_i = t(y_i) - t(f_i(u)),   t = log or identity
    rho_delta(r) = r**2 / 2 for |r| <= delta, else delta (|r| - delta / 2);   delta = inf is least squares

The Huber weight min(1, delta/|r|) gives a majorising quadratic: with J = df/du, H_irls = J' W J is positive definite,
so H_newton + lambda H_irls always yields a descent direction for lambda large enough. At delta = 1e-3 the objective is
nearly a sum of absolute values, whose valley bends: Gauss-Newton crawls along it, so the last stage uses the exact
Hessian (autodiff). Shapes: u (p,), x per input (n,), y (n,), w (n,); everything is written for one fit and vmapped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from scalingkit.infer import varpro
from scalingkit.infer.coordinates import Coordinates

RELATIVE = 1e-13  # stop when Newton predicts a smaller relative decrease
EASING = (100.0, 10.0, 3.0)  # Huber's delta is approached from these multiples
EASY = 6  # iterations at each


class Point(NamedTuple):
    """Where a descent ended: u (p,), the objective, its gradient's largest entry in u, whether it stopped by itself."""

    u: jax.Array
    objective: jax.Array
    gradient: jax.Array
    done: jax.Array


class Target(NamedTuple):
    """What is fitted: inputs over their pivots, t(y), weights, Huber's delta (inf: squares). ``log`` is static."""

    x: tuple[jax.Array, ...]
    ty: jax.Array
    w: jax.Array
    delta: jax.Array


def huber(r: jax.Array, delta: jax.Array) -> jax.Array:
    """rho_delta(r)."""
    a = jnp.abs(r)
    bound = jnp.minimum(a, delta)
    return bound * (a - 0.5 * bound)


def outcome(coordinates: Coordinates, log: bool, u: jax.Array, x: tuple[jax.Array, ...]) -> jax.Array:
    """t(f(u))."""
    f = coordinates.curve(u, x)
    return jnp.log(f) if log else f


def objective(coordinates: Coordinates, log: bool, u: jax.Array, t: Target) -> jax.Array:
    """sum w rho(t(y) - t(f(u)))."""
    return jnp.sum(t.w * huber(t.ty - outcome(coordinates, log, u, t.x), t.delta))


def begin(coordinates: Coordinates, log: bool, u: jax.Array, t: Target) -> jax.Array:
    """A start: linear parameters projected out, on relative residuals where t is the logarithm."""
    y = jnp.exp(t.ty) if log else t.ty
    return varpro.project(coordinates, u, t.x, y, t.w / y**2 if log else t.w)


def descend(coordinates: Coordinates, log: bool, u: jax.Array, t: Target, most: jax.Array) -> Point:
    """From u to a minimum, in at most ``most`` Newton steps. A start where the objective is not finite stays there."""

    def ease(u: jax.Array, factor: jax.Array) -> tuple[jax.Array, None]:
        return _stage(coordinates, log, u, t._replace(delta=factor * t.delta), EASY, exact=False).u, None

    u, _ = jax.lax.scan(ease, u, jnp.array(EASING))
    end = _stage(coordinates, log, u, t, most, exact=True)
    g = jax.grad(lambda v: objective(coordinates, log, v, t))(end.u)
    return Point(end.u, end.f, jnp.max(jnp.abs(g)), end.done)


class _State(NamedTuple):
    u: jax.Array
    damping: jax.Array
    f: jax.Array
    done: jax.Array
    count: jax.Array


def _stage(coordinates: Coordinates, log: bool, u: jax.Array, t: Target, most: int | jax.Array, exact: bool) -> _State:
    def again(s: _State) -> jax.Array:
        return ~s.done & (s.count < most)

    def step(s: _State) -> _State:
        g, H, M, _ = local(coordinates, log, s.u, t, exact)
        d = varpro.solve(H + s.damping * M, -g)
        f = objective(coordinates, log, s.u + d, t)
        better, gain = f < s.f, -(g @ d)
        small = (gain >= 0) & (gain <= RELATIVE * s.f) & (s.damping < 1.0)
        damping = jnp.where(better, jnp.maximum(s.damping * 0.2, 1e-12), s.damping * 5.0)
        u, f = jnp.where(better, s.u + d, s.u), jnp.where(better, f, s.f)
        return _State(u, damping, f, small | (damping > 1e9), s.count + 1)

    f = objective(coordinates, log, u, t)
    return jax.lax.while_loop(again, step, _State(u, jnp.asarray(1e-2), f, ~jnp.isfinite(f), jnp.asarray(0)))


def local(
    coordinates: Coordinates, log: bool, u: jax.Array, t: Target, exact: bool
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Gradient (p,), Hessian (exact, or its IRLS majoriser), damping matrix, Jacobian of t(f) (n, p) at u."""
    f, J = _value_and_jacobian(lambda v: outcome(coordinates, log, v, t.x), u)
    r = t.ty - f
    psi = t.w * jnp.clip(r, -t.delta, t.delta)
    weight = t.w * jnp.minimum(1.0, t.delta / jnp.maximum(jnp.abs(r), 1e-300))
    g = -(J.T @ psi)
    M = (J * weight[:, None]).T @ J
    M = M + (1e-12 * jnp.trace(M) + 1e-300) * jnp.eye(len(u))
    if not exact:
        return g, M, jnp.diag(jnp.diag(M)), J
    bend = jax.hessian(lambda v: jnp.sum(psi * outcome(coordinates, log, v, t.x)))(u)
    H = (J * (t.w * (jnp.abs(r) <= t.delta))[:, None]).T @ J - bend
    return g, H, M, J


def _value_and_jacobian(f: Callable[[jax.Array], jax.Array], u: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(lambda v: jax.jvp(f, (u,), (v,)), out_axes=(None, -1))(jnp.eye(len(u)))
