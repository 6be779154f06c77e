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
EASING = (100.0, 10.0, 3.0, 1.0)  # Huber's delta is approached from these multiples
EASY = 6  # iterations at each but the last, from a distant start


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


def descend(coordinates: Coordinates, log: bool, u: jax.Array, t: Target, easy: jax.Array, most: jax.Array) -> Point:
    """From u to a minimum: ``easy`` IRLS steps at each larger delta (0: u is near already), ``most`` Newton steps.

    A start where the objective is not finite stays there.
    """

    last = jnp.arange(len(EASING)) == len(EASING) - 1

    def stage(u: jax.Array, plan: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, _State]:
        factor, final = plan
        eased = t._replace(delta=factor * t.delta)
        end = _stage(coordinates, log, u, eased, jnp.where(final, most, easy), final)
        return end.u, end

    _, ends = jax.lax.scan(stage, u, (jnp.array(EASING), last))
    end = jax.tree.map(lambda a: a[-1], ends)
    g = jax.grad(lambda v: objective(coordinates, log, v, t))(end.u)
    return Point(end.u, end.f, jnp.max(jnp.abs(g)), end.done)


class _State(NamedTuple):
    u: jax.Array
    damping: jax.Array
    f: jax.Array
    done: jax.Array
    count: jax.Array


def _stage(coordinates: Coordinates, log: bool, u: jax.Array, t: Target, most: jax.Array, exact: jax.Array) -> _State:
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
    coordinates: Coordinates, log: bool, u: jax.Array, t: Target, exact: bool | jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Gradient (p,), Hessian (exact, or its IRLS majoriser), damping matrix, Jacobian of t(f) (n, p) at u."""
    f, J, K = _derivatives(lambda v: outcome(coordinates, log, v, t.x), u)
    r = t.ty - f
    psi = t.w * jnp.clip(r, -t.delta, t.delta)
    weight = t.w * jnp.minimum(1.0, t.delta / jnp.maximum(jnp.abs(r), 1e-300))
    M = (J * weight[:, None]).T @ J
    M = M + (1e-12 * jnp.trace(M) + 1e-300) * jnp.eye(len(u))
    H = (J * (t.w * (jnp.abs(r) <= t.delta))[:, None]).T @ J - jnp.einsum("nij,n->ij", K, psi)
    return -(J.T @ psi), jnp.where(exact, H, M), jnp.where(exact, M, jnp.diag(jnp.diag(M))), J


def _derivatives(f: Callable[[jax.Array], jax.Array], u: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """f (n,), Jacobian (n, p) and second derivatives (n, p, p).

    Forward over forward, before any sum over rows: each term of a law holds few parameters, so most of it vanishes,
    and XLA shares the exponentials. Contracting first, or forward over reverse, takes two to three times as long.
    """
    basis = jnp.eye(len(u))

    def first(v: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.vmap(lambda e: jax.jvp(f, (v,), (e,)), out_axes=(None, -1))(basis)

    axes = ((None, None), (-1, -1))
    (value, J), (_, K) = jax.vmap(lambda e: jax.jvp(first, (u,), (e,)), out_axes=axes)(basis)
    return value, J, K
