"""Collapse: the coefficients that enter linearly, integrated out of the posterior; the sampler sees what is left.

    p(phi | y)  ~  pi(phi) = exp max_eta J(phi, eta) |H(phi)|^(-1/2)          H = -d2J/deta2 at the maximum
    eta | phi   ~  Normal(eta*(phi), H^-1)                                    drawn back
    w           =  p(phi, eta | y) / (pi(phi) Normal(eta))                    weight of each draw, to the exact posterior

eta of each cell (a group, or the whole table): the floor E and the sum s of the power terms, in the unconstrained
coordinates of their supports, so that positive ones stay positive. phi: everything else, and how s is shared,
c_j = s f_j, f = softmax(share, 0); (log c_1 .. log c_J) -> (share, log s) has Jacobian 1. The curve is linear in (E, s)
and the runs pin them sharply once phi is given, so pi is nearly the exact marginal whatever the likelihood; what it is
not, the weights mend. Ridges that a sampler of all parameters must crawl along are gone from phi.

pi's inner maximum is that of each run's log density expanded to second order about the curve at the mode, which in (E, s)
is a quadratic made of three sums over the runs: one least squares solution, and a Newton step for the priors, which is
differentiated through. The coefficients are drawn back about the maximum of the likelihood itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import biject_to, constraints

from scalingkit.infer.celldata import CellData, lay_out
from scalingkit.infer.model import Model, _Scope
from scalingkit.infer.pooling import Crossed, Nested, Partial, Regressed, Separate, Shared
from scalingkit.infer.powers import exponential
from scalingkit.infer.prepare import Data

STEPS = 1  # Newton steps after least squares
TINY = 1e-9
SHARE = "share"  # the sampled coordinate of how the terms divide their sum
Sites = dict[str, Any]


class Inner(NamedTuple):
    """Maximum of J over eta in each cell: eta (cell, d), J there (cell), H (cell, d, d) as its distinct entries."""

    eta: Any
    top: Any
    H: tuple[Any, ...]


@dataclass(frozen=True)
class Collapsed:
    """What is integrated out of ``model``, and how the rest is sampled; a target of NUTS.

    dim     cells are the groups of this dim; None: the whole table is one cell
    floor   the integrated coefficient of a constant, or None;  terms: the others, at least one of both
    loose   exponents and other pooled quantities that are sampled by group value rather than by standardised effect
    exact   the inner maximum of the likelihood itself, rather than of its second-order expansion about the mode
    """

    model: Model
    dim: str | None
    floor: str | None
    terms: tuple[str, ...]
    loose: tuple[str, ...] = ()
    exact: bool = False

    @property
    def integrated(self) -> tuple[str, ...]:
        return (*((self.floor,) if self.floor else ()), *self.terms)

    @property
    def block(self) -> tuple[str, ...]:
        """Sites that share a dense block of the mass matrix."""
        own = [s for s in self.model.block if s not in self._gone]
        return tuple(own) + ((SHARE,) if len(self.terms) > 1 else ())

    @cached_property
    def _gone(self) -> frozenset[str]:
        return frozenset(effect_site(self.model, k) for k in self.integrated)

    def potential(self, z: Sites, data: CellData) -> Any:
        """U(phi) = -log pi(phi)."""
        around = _Around(self, z, data)
        best = around.inner()
        return -(around.log_prior + jnp.sum(best.top - 0.5 * _log_det(best.H)))

    def own(self, z: Sites, data: CellData) -> Any:
        """The part of U that the cells' runs and the integrated coefficients' priors make."""
        around = _Around(self, z, data)
        best = around.inner()
        return -jnp.sum(best.top - 0.5 * _log_det(best.H))

    def back(self, key: Any, z: Sites, data: CellData) -> tuple[Sites, Any]:
        """(every unconstrained site of the model, log weight): eta drawn given phi."""
        pi = -self.potential(z, data)
        around = _Around(replace(self, exact=True), z, data)
        best = around.inner()
        e = jax.random.normal(key, best.eta.shape)
        eta = best.eta + _solve_upper(best.H, e)
        log_q = jnp.sum(0.5 * _log_det(best.H) - 0.5 * jnp.sum(e**2, -1))
        log_w = around.log_prior + jnp.sum(around.joint(eta)) - log_q - pi
        return around.sites(eta), log_w

    def start(self, full: Mapping[str, Any], data: CellData) -> Sites:
        """phi of a point given in all unconstrained sites of the model."""
        theta = {k: v for k, v in full.items() if k not in self._gone}
        out = {k: np.asarray(v) for k, v in theta.items()}
        scope = _Latents(self.model, data.whole, theta)
        for k in self.loose:
            loc, scale = scope.affine(k)
            out[effect_site(self.model, k)] = np.asarray(loc + scale * theta[effect_site(self.model, k)])
        if len(self.terms) > 1:
            u = [np.asarray(_u(scope, self.model, k, full)).reshape(-1) for k in self.terms]
            share = np.stack([a - u[-1] for a in u[:-1]], -1)
            out[SHARE] = share
        return out


def effect_site(model: Model, name: str) -> str:
    """The unconstrained site that carries a quantity's own value in each group."""
    site, pooling = model.site(name), model.pools[name]
    if isinstance(pooling, Partial) and not pooling.centred or isinstance(pooling, Regressed):
        return f"{site}_z"
    if isinstance(pooling, Nested):
        return f"{site}_z_{pooling.dims_[1]}"
    return site


def own_dim(model: Model, name: str) -> Any:
    """Dim over which a quantity varies freely; None: one value; False: it has no value of its own in each group."""
    pooling = model.pools[name]
    if isinstance(pooling, Shared):
        return None
    if isinstance(pooling, Nested):
        return pooling.dims_[1]
    return False if isinstance(pooling, Crossed) else pooling.dims[0]


def plan(model: Model) -> Collapsed | None:
    """What of ``model`` can be integrated out; None where nothing can.

    The law must name ``linear`` parameters, and the likelihood must be a smooth density of y about the curve.
    """
    law = model.law
    candidates = [k for k in law.linear if own_dim(model, k) is not False]
    if not candidates or model.likelihood.outcome(law.output) != law.output:
        return None
    dims = [own_dim(model, k) for k in candidates]
    dim = max(set(dims), key=lambda d: (dims.count(d), d is not None))
    own = [k for k, d in zip(candidates, dims, strict=True) if d == dim]
    floors = [k for k in own if _floor(model, k)]
    terms = tuple(k for k in own if k not in floors and law.params[k].prior.support is constraints.positive)
    if not terms:
        return None
    return Collapsed(model, dim, floors[0] if len(floors) == 1 else None, terms)


def _floor(model: Model, name: str) -> bool:
    """Whether a linear parameter is just added to the rest of the curve."""
    law = model.law
    point = law.truth | dict.fromkeys(law.linear, 0.0)
    design = law.example_design()
    slope = np.asarray(law(design | point | {name: 1.0})) - np.asarray(law(design | point))
    return bool(np.max(np.abs(slope - 1)) < 1e-9)


def laid_out(how: Collapsed, data: Data, mode: Mapping[str, Any]) -> CellData:
    """The table by cell, with the likelihood's slope and curvature at the mode (all unconstrained sites)."""
    cells, _ = lay_out(data, how.dim)
    scope = _Latents(how.model, data, {k: jnp.asarray(v) for k, v in mode.items()})
    level = {k: jnp.exp(jnp.ravel(_u(scope, how.model, k, mode))) if k in how.terms else None for k in how.integrated}
    if how.floor:
        to = biject_to(how.model.law.params[how.floor].prior.support)
        level[how.floor] = to(jnp.ravel(_u(scope, how.model, how.floor, mode)))
    cells = replace(cells, level=level)
    z = how.start(mode, cells)
    around = _Around(how, {k: jnp.asarray(v) for k, v in z.items()}, cells)
    E = level[how.floor] if how.floor else None
    centre = around.mean(E, sum(level[k] for k in how.terms))
    return replace(cells, centre=np.asarray(centre), level={k: np.asarray(v) for k, v in level.items()})


class _Latents:
    """The model's parameters at one point of unconstrained space, without the runs."""

    def __init__(self, model: Model, data: Data, z: Mapping[str, Any]) -> None:
        self.model, self.data = model, data
        self.z = dict(z)

    def trace(self, **extra: Any) -> tuple[dict[str, Any], Any]:
        """Values of every quantity, and the trace; ``extra`` are constrained values that take precedence."""
        values: dict[str, Any] = {}

        def latents() -> None:
            scope = _Scope(self.data)
            for k, prior in self.model.priors.items():
                values[k] = self.model.pools[k].sample(self.model.site(k), prior, scope)

        first = handlers.trace(handlers.seed(latents, jax.random.key(0))).get_trace()
        theta = {}
        for k, site in first.items():
            if site["type"] == "sample" and k in self.z:
                theta[k] = biject_to(site["fn"].support)(self.z[k])
        trace = handlers.trace(
            handlers.substitute(handlers.seed(latents, jax.random.key(0)), data=theta | extra)
        ).get_trace()
        return values, trace

    def affine(self, name: str) -> tuple[Any, Any]:
        """(loc, scale): the quantity's unconstrained value is loc + scale * effect, given the population."""
        pooling, site = self.model.pools[name], effect_site(self.model, name)
        if isinstance(pooling, Shared | Separate):
            return jnp.zeros(()), jnp.ones(())
        to = biject_to(self.model.priors[name].support)
        shape = (self.data.sizes[own_dim(self.model, name)],)
        at = [to.inv(self.trace(**{site: jnp.full(shape, v)})[0][name]) for v in (0.0, 1.0)]
        return at[0], at[1] - at[0]


def _u(scope: _Latents, model: Model, name: str, z: Mapping[str, Any]) -> Any:
    """Unconstrained value of an integrated coefficient at a point of all sites."""
    loc, scale = scope.affine(name)
    return loc + scale * jnp.asarray(z[effect_site(model, name)])


class _Around:
    """J(phi, eta) about one phi."""

    def __init__(self, how: Collapsed, z: Sites, data: CellData) -> None:
        self.how, self.model, self.data = how, how.model, data
        self.floor = how.floor or ""
        self.cells = data.mask.shape[0]
        self.z = dict(z)
        self._hyper()
        self._shares()
        self._curve()

    # the prior of what is sampled, and what it makes of the integrated coefficients' priors

    def _hyper(self) -> None:
        how, model = self.how, self.model
        given = {k: v for k, v in self.z.items() if k != SHARE}
        loose = [effect_site(model, k) for k in how.loose]
        latents = _Latents(model, self.data.whole, {k: v for k, v in given.items() if k not in loose})
        moved = 0.0
        for k, site in zip(how.loose, loose, strict=True):
            loc, scale = latents.affine(k)
            self.z[site] = (given[site] - loc) / scale
            moved = moved - jnp.sum(jnp.log(scale))
        latents = _Latents(model, self.data.whole, {k: v for k, v in self.z.items() if k != SHARE})
        gone = {k: effect_site(model, k) for k in how.integrated}
        self.values, trace = latents.trace(**self._neutral(gone))
        self.log_prior = moved
        for k, site in trace.items():
            if site["type"] != "sample" or k in gone.values():
                continue
            self.log_prior = self.log_prior + jnp.sum(site["fn"].log_prob(site["value"]))
            to = biject_to(site["fn"].support)
            self.log_prior = self.log_prior + jnp.sum(to.log_abs_det_jacobian(self.z[k], site["value"]))
        self.priors = {k: self._prior_of(k, latents) for k in how.integrated}

    def _neutral(self, gone: Mapping[str, str]) -> dict[str, Any]:
        """Any admissible value for the sites that are not there."""
        out = {}
        for k, site in gone.items():
            shape = () if self.how.dim is None else (self.cells,)
            free = isinstance(self.model.pools[k], Shared | Separate) or getattr(self.model.pools[k], "centred", False)
            out[site] = biject_to(self.model.priors[k].support)(jnp.zeros(shape)) if free else jnp.zeros(shape)
        return out

    def _prior_of(self, k: str, latents: _Latents) -> Any:
        """log density of the unconstrained value u (cell), given the population; and a Gaussian like it, (loc, scale)."""
        prior = self.model.priors[k]
        to = biject_to(prior.support)
        if isinstance(self.model.pools[k], Shared | Separate):

            def own(u: Any) -> Any:
                value = to(u)
                return prior.log_prob(value) + to.log_abs_det_jacobian(u, value)

            return own, _moments(prior)
        loc, scale = latents.affine(k)
        return (lambda u: -0.5 * ((u - loc) / scale) ** 2 - jnp.log(scale)), (loc, scale)

    # the curve as base + E + s h

    def _shares(self) -> None:
        if len(self.how.terms) == 1:
            self.log_share = [jnp.zeros(self.cells)]
            return
        logits = self.z[SHARE]
        full = jnp.concatenate([logits, jnp.zeros((self.cells, 1))], -1)
        log_f = jax.nn.log_softmax(full, -1)
        self.log_share = [log_f[:, j] for j in range(len(self.how.terms))]

    def _at_runs(self, name: str) -> Any:
        value, dims = self.values[name], self.model.pools[name].dims
        if not dims:
            return value
        if dims == (self.how.dim,):
            return value[:, None]
        if all(d in self.data.cell_codes or d == self.how.dim for d in dims):
            own = jnp.arange(self.cells)
            return value[tuple(self.data.cell_codes.get(d, own) for d in dims)][:, None]
        own = jnp.broadcast_to(jnp.arange(self.cells)[:, None], self.data.mask.shape)
        codes = {
            **self.data.codes,
            **{d: jnp.broadcast_to(c[:, None], own.shape) for d, c in self.data.cell_codes.items()},
        }
        return value[tuple(codes.get(d, own) for d in dims)]

    def _curve(self) -> None:
        model, how = self.model, self.how
        law = model.law
        at = {k: self._at_runs(k) for k in model.priors if k not in how.integrated}
        self.noise = {k: at[k] for k in model.likelihood.nuisance()}

        def curve(c: dict[str, Any]) -> Any:
            return exponential(law.curve)(
                *(self.data.inputs[x] for x in law.inputs), *((at | c)[p] for p in law.params)
            )

        zero = {k: jnp.zeros((self.cells, 1)) for k in how.integrated}
        shares = {k: jnp.exp(f)[:, None] for k, f in zip(how.terms, self.log_share, strict=True)}
        self.base, self.h = jax.jvp(curve, (zero,), (zero | shares,))
        self.powers = jnp.stack([jnp.ones_like(self.h), self.h, self.h**2], 1)

    def mean(self, E: Any, s: Any) -> Any:
        m = self.base + s[:, None] * self.h
        return m if E is None else m + E[:, None]

    def density(self, m: Any) -> tuple[Any, Any, Any]:
        """log likelihood of each run and its first two derivatives in m; (cell, run)."""

        def value(m: Any) -> Any:
            return self.model.likelihood.observe(m, self.noise, self.data.columns).log_prob(self.data.y)

        def first(m: Any) -> tuple[Any, Any]:
            return jax.jvp(value, (m,), (jnp.ones_like(m),))

        (v, d), (_, dd) = jax.jvp(first, (m,), (jnp.ones_like(m),))
        return v, d, dd

    def sums(self, *values: Any) -> Any:
        """Sums over runs of each value times 1, h and h**2: (cell, value, 3), in one product."""
        stacked = jnp.stack([v * self.data.mask for v in values], 1)
        return jnp.einsum("gvn,gpn->gvp", stacked, self.powers)

    # eta: u of the floor (if there is one), and log s

    def _split(self, eta: Any) -> tuple[Any, Any]:
        return (eta[:, 0], eta[:, -1]) if self.floor else (None, eta[:, 0])

    def _natural(self, eta: Any) -> tuple[Any, Any, Any, Any]:
        """E, dE/du, d2E/du2 and s."""
        u, t = self._split(eta)
        if u is None:
            return None, None, None, jnp.exp(t)
        to = biject_to(self.model.law.params[self.floor].prior.support)
        one = jnp.ones_like(u)
        (E, dE), (_, ddE) = jax.jvp(lambda x: jax.jvp(to, (x,), (one,)), (u,), (one,))
        return E, dE, ddE, jnp.exp(t)

    def prior(self, eta: Any) -> Any:
        """log prior of the integrated coefficients, (cell)."""
        u, t = self._split(eta)
        total = sum(self.priors[k][0](t + f) for k, f in zip(self.how.terms, self.log_share, strict=True))
        return total if u is None else total + self.priors[self.floor][0](u)

    def joint(self, eta: Any) -> Any:
        """J of each cell, without what depends on phi alone."""
        E, _, _, s = self._natural(eta)
        m = self.mean(E, s)
        v = self.model.likelihood.observe(m, self.noise, self.data.columns).log_prob(self.data.y)
        return jnp.sum(self.data.mask * v, -1) + self.prior(eta)

    def derivatives(self, eta: Any) -> tuple[Any, Any, tuple[Any, ...]]:
        """J, its gradient (cell, d) and H = -Hessian (cell) entries (uu, ut, tt) or (tt,)."""
        E, dE, ddE, s = self._natural(eta)
        value, (g_1, g_h), (k_11, k_1h, k_hh) = self._likelihood(E, s)
        d_prior, dd_prior = self._prior_derivatives(eta)
        top = value + self.prior(eta)
        # dm/dt = d2m/dt2 = s h, dm/du = dE, d2m/du2 = ddE
        g_t = s * g_h
        H_tt = -(s**2) * k_hh - g_t + dd_prior[-1]
        if E is None:
            return top, (g_t + d_prior[-1])[:, None], (H_tt,)
        g_u = dE * g_1
        H_uu = -(dE**2) * k_11 - ddE * g_1 + dd_prior[0]
        H_ut = -dE * s * k_1h
        return top, jnp.stack([g_u + d_prior[0], g_t + d_prior[-1]], -1), _safe((H_uu, H_ut, H_tt))

    def _likelihood(self, E: Any, s: Any) -> tuple[Any, tuple[Any, Any], tuple[Any, Any, Any]]:
        """Log likelihood of each cell, its slopes along 1 and h, and its curvatures: exact, or of the expansion."""
        if self.how.exact:
            S = self.sums(*self.density(self.mean(E, s)))
            return S[:, 0, 0], (S[:, 1, 0], S[:, 1, 1]), (S[:, 2, 0], S[:, 2, 1], S[:, 2, 2])
        S = self.expanded
        k = S[:, 2, 0], S[:, 2, 1], S[:, 2, 2]
        e = 0.0 if E is None else E
        g = S[:, 1, 0] + e * k[0] + s * k[1], S[:, 1, 1] + e * k[1] + s * k[2]
        return S[:, 0, 0] + 0.5 * (e * (S[:, 1, 0] + g[0]) + s * (S[:, 1, 1] + g[1])), g, k

    @cached_property
    def expanded(self) -> Any:
        """Second-order expansion of each run's log density about the curve at the mode, as sums of powers of h."""
        v, d, dd = self.density(self.data.centre)
        dd = jnp.minimum(dd, 0.0)  # a run far out in a heavy tail curves the wrong way
        off = self.base - self.data.centre
        return self.sums(v + off * (d + 0.5 * off * dd), d + off * dd, dd)

    def _prior_derivatives(self, eta: Any) -> tuple[list[Any], list[Any]]:
        """Slopes, and minus curvatures, of the log prior in u and t."""
        u, t = self._split(eta)
        one = jnp.ones(self.cells)

        def of_t(t: Any) -> Any:
            return sum(self.priors[k][0](t + f) for k, f in zip(self.how.terms, self.log_share, strict=True))

        parts = [(of_t, t)] if u is None else [(self.priors[self.floor][0], u), (of_t, t)]
        slopes, curves = [], []
        for f, x in parts:
            (_, slope), (_, curve) = jax.jvp(lambda a, f=f: jax.jvp(f, (a,), (one,)), (x,), (one,))
            slopes.append(slope)
            curves.append(-curve)
        return slopes, curves

    def inner(self) -> Inner:
        """eta*: least squares, and Newton steps of which the last is differentiated through."""
        eta = jax.lax.stop_gradient(self._least_squares())
        for _ in range(STEPS - 1):
            eta = eta + jax.lax.stop_gradient(self._step(eta))
        eta = eta + self._step(eta)
        return Inner(eta, *self.derivatives(eta)[::2])

    def _step(self, eta: Any) -> Any:
        _, g, H = self.derivatives(eta)
        return 2 * jnp.tanh(0.5 * _solve(H, g))  # a step of more than a factor e**2 is not to be trusted

    def _least_squares(self) -> Any:
        """eta of the weighted least squares fit that the expansion is, with the priors as Gaussians."""
        S = self.expanded
        s_mean, s_precision = self._like_prior(self.how.terms)
        level_s = sum(self.data.level[k] for k in self.how.terms)
        c, q = s_precision - S[:, 2, 2], S[:, 1, 1] + s_precision * s_mean
        if not self.floor:
            return jnp.log(_positive(q / c, level_s))[:, None]
        e_mean, e_precision = self._like_prior((self.floor,))
        a, b, p = e_precision - S[:, 2, 0], -S[:, 2, 1], S[:, 1, 0] + e_precision * e_mean
        det = a * c - b**2
        E, s = (c * p - b * q) / det, (a * q - b * p) / det
        support = self.model.law.params[self.floor].prior.support
        if support is constraints.positive:
            E = _positive(E, self.data.level[self.floor])
        return jnp.stack([biject_to(support).inv(E), jnp.log(_positive(s, level_s))], -1)

    def _like_prior(self, names: tuple[str, ...]) -> tuple[Any, Any]:
        """(mean, precision) of a Gaussian like the prior of a coefficient, or of the sum of several."""
        mean, variance = 0.0, 0.0
        for k in names:
            loc, scale = self.priors[k][1]
            to = biject_to(self.model.priors[k].support)
            loc = jnp.broadcast_to(jnp.asarray(loc, float), (self.cells,))
            value, slope = jax.jvp(to, (loc,), (jnp.ones_like(loc),))
            mean, variance = mean + value, variance + (slope * scale) ** 2
        return mean, 1 / (variance + 1e-12)

    def sites(self, eta: Any) -> Sites:
        """Every unconstrained site of the model at (phi, eta)."""
        u, t = self._split(eta)
        own = {k: t + f for k, f in zip(self.how.terms, self.log_share, strict=True)}
        if u is not None:
            own[self.floor] = u
        out = {k: v for k, v in self.z.items() if k != SHARE}
        for k, value in own.items():
            pooling = self.model.pools[k]
            if isinstance(pooling, Shared | Separate) or getattr(pooling, "centred", False):
                z = value
            else:
                loc, scale = self.priors[k][1]
                z = (value - loc) / scale
            out[effect_site(self.model, k)] = z[0] if self.how.dim is None else z
        return out


def _moments(prior: Any) -> tuple[float, float]:
    """Mean and sd of the unconstrained value under a prior, by its quantiles where it has them."""
    to = biject_to(prior.support)
    if hasattr(prior, "base_dist") and prior.support is constraints.positive and hasattr(prior, "loc"):
        return prior.loc, prior.scale
    draws = to.inv(prior.sample(jax.random.key(0), (1000,)))
    return jnp.mean(draws), jnp.std(draws)


def _positive(x: Any, level: Any) -> Any:
    """x where it is well above zero; a small positive number, smoothly, where it is not."""
    small = 0.02 * level
    return small * jax.nn.softplus(x / small) + 1e-6 * level


def _safe(H: tuple[Any, ...]) -> tuple[Any, ...]:
    """H, kept positive definite where runs far out in a heavy tail would make it otherwise."""
    if len(H) == 1:
        return (jnp.maximum(H[0], TINY),)
    a, b, c = H
    a, c = jnp.maximum(a, TINY), jnp.maximum(c, TINY)
    most = (1 - TINY) * jnp.sqrt(a * c)
    return a, jnp.clip(b, -most, most), c


def _solve(H: tuple[Any, ...], g: Any) -> Any:
    """H^-1 g; (cell, d)."""
    if len(H) == 1:
        return g / H[0][:, None]
    det = H[0] * H[2] - H[1] ** 2
    return jnp.stack([H[2] * g[:, 0] - H[1] * g[:, 1], H[0] * g[:, 1] - H[1] * g[:, 0]], -1) / det[:, None]


def _log_det(H: tuple[Any, ...]) -> Any:
    return jnp.log(H[0]) if len(H) == 1 else jnp.log(H[0] * H[2] - H[1] ** 2)


def _solve_upper(H: tuple[Any, ...], e: Any) -> Any:
    """L^-T e with H = L L^T: a draw of Normal(0, H^-1) from a standard one."""
    if len(H) == 1:
        return e / jnp.sqrt(H[0])[:, None]
    a = jnp.sqrt(H[0])
    b = H[1] / a
    c = jnp.sqrt(H[2] - b**2)
    second = e[:, 1] / c
    return jnp.stack([(e[:, 0] - b * second) / a, second], -1)
