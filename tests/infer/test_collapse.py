"""The collapsed route: the same posterior, whatever is integrated out, and refused where it cannot be had."""

from __future__ import annotations

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from numpyro.distributions import HalfNormal
from numpyro.distributions import Normal as Gaussian
from scipy import integrate

from scalingkit.infer import collapse, collapsed, geometry, mode, nuts
from scalingkit.infer.fit import fit
from scalingkit.infer.likelihoods import LogNormal, LogStudentT, Normal
from scalingkit.infer.model import Model
from scalingkit.infer.pooling import Partial, Separate
from scalingkit.infer.prepare import prepare
from tests.infer.conftest import make_table

HIERARCHY = {k: Partial("corpus", sd=HalfNormal(0.3)) for k in ("alpha", "beta")} | {
    k: Separate("corpus") for k in "EAB"
}
MODELS = {
    "shared": Model("chinchilla", likelihood=LogNormal()),
    "tails": Model("chinchilla", likelihood=LogStudentT()),
    "absolute": Model("chinchilla", likelihood=Normal()),
    "corpora": Model("chinchilla", HIERARCHY, LogNormal()),
    "no floor": Model("power", likelihood=LogNormal()),
}


def table_for(model: Model, n: int, apart: float = 0.0) -> xr.Dataset:
    """Spread runs; ``apart``: how much steeper in D each next corpus is."""
    runs = make_table(n).assign(x=lambda r: r["N"])
    code = np.unique(runs["corpus"], return_inverse=True)[1]
    tilt = 2100 * runs["D"] ** -0.37 * ((runs["D"] / 1e10) ** (-apart * code) - 1)
    runs = runs.assign(loss=runs["loss"] + tilt)
    return runs.assign(y=runs["loss"])


def laid(model: Model, n: int = 61, apart: float = 0.0):
    """(what is integrated, the plain data, the table by cell, the mode) on spread runs; 61: cells of unequal size."""
    data = prepare(model, table_for(model, n, apart))
    top = mode.find(nuts.potential(model, data, 0), data, 0)
    how = collapse.plan(model)
    return how, data, collapse.laid_out(how, data, top.z), top


@pytest.fixture(scope="module", params=MODELS)
def at(request):
    return MODELS[request.param], *laid(MODELS[request.param])


def nudged(z, by: float = 0.02):
    rng = np.random.default_rng(1)
    return {k: jnp.asarray(v) + by * rng.standard_normal(np.shape(v)) for k, v in z.items()}


def both_slopes(how, z, table):
    """(of autodiff, of finite differences), flat."""
    f = jax.jit(lambda q: how.potential(q, table))
    slope = jax.jit(jax.grad(lambda q: how.potential(q, table)))(z)
    ours, numeric = [], []
    for k, v in z.items():
        for i in np.ndindex(v.shape):
            up, down = ({**z, k: v.at[i].add(s * 1e-5)} for s in (1, -1))
            ours.append(float(slope[k][i]))
            numeric.append(float((f(up) - f(down)) / 2e-5))
    return np.array(ours), np.array(numeric)


def test_gradient_is_that_of_finite_differences(at, monkeypatch):
    """Exact once Newton has converged; with the one step that sampling takes, near enough for its leapfrog."""
    _, how, _, table, top = at
    z = nudged(how.start(top.z, table))
    ours, numeric = both_slopes(how, z, table)
    assert np.linalg.norm(ours - numeric) < 1e-3 * np.linalg.norm(numeric)
    monkeypatch.setattr(collapse, "STEPS", 4)
    ours, numeric = both_slopes(how, z, table)
    np.testing.assert_allclose(ours, numeric, rtol=1e-5, atol=1e-4)


def log_q(how, z, table, full):
    """log density of the Gaussian that draws the coefficients back, from its own mean and covariance."""
    around = collapse._Around(collapse.replace(how, exact=True), z, table)
    best = around.inner()
    H = np.asarray(jax.hessian(lambda e: -jnp.sum(around.joint(e)))(best.eta))
    d = best.eta.size
    H = H.reshape(d, d)
    e = np.asarray(full).ravel() - np.asarray(best.eta).ravel()
    return 0.5 * np.linalg.slogdet(H)[1] - 0.5 * e @ H @ e


def test_a_weight_is_the_model_s_density_over_that_of_the_draw(at):
    model, how, data, table, top = at
    phi = nudged(how.start(top.z, table))
    full, log_w = how.back(jax.random.key(3), phi, table)
    assert set(full) == set(top.z)
    plain = geometry.potential(model, full, data)
    # p(phi, eta) = p(all sites) |d sites / d (phi, eta)|: affine in eta given phi, so the Jacobian is that of the scales
    other, other_w = how.back(jax.random.key(4), phi, table)
    gap = float(log_w - other_w)
    expected = float(geometry.potential(model, other, data) - plain) - (
        difference_of_log_q(how, phi, table, full, other)
    )
    assert gap == pytest.approx(expected, abs=2e-3)
    assert abs(gap - expected - 0.05) > 0.04  # a weight that is off by 5% would be seen


def difference_of_log_q(how, phi, table, a, b):
    first, second = (eta_of(how, table, x) for x in (a, b))
    return log_q(how, phi, table, first) - log_q(how, phi, table, second)


def eta_of(how, table, full):
    scope = collapse._Latents(how.model, table.whole, full)
    of = lambda k: jnp.ravel(collapse._u(scope, how.model, k, full))  # noqa: E731
    log_s = jax.scipy.special.logsumexp(jnp.stack([of(k) for k in how.terms]), 0)
    return jnp.stack([*([of(how.floor)] if how.floor else []), log_s], -1)


def test_the_marginal_is_that_of_quadrature():
    model = MODELS["shared"]
    how, data, table, top = laid(model, 24)
    start = {k: jnp.asarray(v) for k, v in how.start(top.z, table).items()}
    site = "alpha"
    plain = jax.jit(jax.vmap(lambda full: geometry.potential(model, full, data)))

    def exact(z) -> float:
        around = collapse._Around(collapse.replace(how, exact=True), z, table)
        best = around.inner()
        (h11, h12, h22) = (float(np.ravel(h)[0]) for h in best.H)
        sd = np.sqrt(np.diag(np.linalg.inv([[h11, h12], [h12, h22]])))
        axes = [float(m) + s * np.linspace(-9, 9, 321) for m, s in zip(best.eta[0], sd, strict=True)]
        E, t = (jnp.asarray(a.ravel()) for a in np.meshgrid(*axes, indexing="ij"))
        sites = jax.vmap(lambda e, s: around.sites(jnp.stack([e, s])[None]))(E, t)
        density = np.exp(-np.asarray(plain(sites)).reshape(321, 321) + float(plain_at(plain, sites)))
        inner = integrate.simpson(density, x=axes[1], axis=1)
        return float(np.log(integrate.simpson(inner, x=axes[0]))) - float(plain_at(plain, sites))

    moved = {**start, site: start[site] + 0.05}
    got = float(how.potential(start, table) - how.potential(moved, table))
    want = exact(moved) - exact(start)
    assert got == pytest.approx(want, abs=5e-3)
    assert abs(want) > 0.05  # the marginal does move


def plain_at(plain, sites):
    return float(np.min(np.asarray(plain(sites))))


def moments(tree: xr.DataTree, names) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    post = tree["posterior"].to_dataset()[list(names)]
    ess = arviz_stats.ess(post, method="bulk")
    flat = lambda d: np.concatenate([np.ravel(d[k]) for k in names])  # noqa: E731
    return flat(post.mean(("chain", "draw"))), flat(post.std(("chain", "draw"))), flat(ess)


def apart(a, b) -> float:
    """Largest distance of two posteriors' means and sds, in their Monte Carlo errors."""
    (ma, sa, na), (mb, sb, nb) = a, b
    error = np.sqrt(1 / na + 1 / nb)
    return float(max(np.abs((ma - mb) / (sb * error)).max(), np.abs((sa / sb - 1) / error).max()))


@pytest.mark.parametrize("name", ["tails", pytest.param("corpora", marks=pytest.mark.slow)])
def test_both_routes_give_one_posterior(name):
    names = ("E", "alpha", "beta", "A_at_pivot", "B_at_pivot", "sigma")
    runs = make_table(120, seed=2)
    both = [fit(MODELS[name], runs, route=r, draws=500, tune=500, seed=5) for r in ("nuts", "collapsed")]
    plain, other = (moments(t, names) for t in both)
    assert apart(other, plain) < 5
    shifted = (other[0] + 0.5 * other[1], *other[1:])
    assert apart(shifted, plain) > 5
    attrs = both[1].attrs
    assert attrs["route"] == "collapsed" and attrs["divergences"] == 0
    assert attrs["integrated"] == "E, A, B"
    assert 0.9 < attrs["efficiency"] <= 1 and attrs["pareto_k"] < collapsed.WORST_K
    again = fit(MODELS[name], runs, route="collapsed", draws=500, tune=500, seed=5)
    xr.testing.assert_equal(again["posterior"].to_dataset(), both[1]["posterior"].to_dataset())


def test_groups_that_their_runs_pin_are_sampled_by_value():
    same, _, table, top = laid(MODELS["corpora"], 120)
    assert collapsed.pinned(same, table, top.z) == ()  # the groups are alike: values would form a funnel
    how, _, table, top = laid(MODELS["corpora"], 120, apart=0.5)
    assert "beta" in collapsed.pinned(how, table, top.z)


def test_draws_are_kept_floor_or_ceil_of_their_share():
    rng = np.random.default_rng(0)
    w = rng.exponential(size=(3, 400)) ** 3
    rows = collapsed.kept(w, rng)
    assert (np.diff(rows, axis=1) >= 0).all()
    counts = np.stack([np.bincount(r, minlength=400) for r in rows])
    share = 400 * w / w.sum(1, keepdims=True)
    assert (np.abs(counts - share) < 1 + 1e-9).all()
    np.testing.assert_array_equal(collapsed.kept(np.ones((1, 7)), rng), [np.arange(7)])


def test_khat_is_the_shape_of_the_tail():
    u = np.random.default_rng(0).uniform(size=20_000)
    assert collapsed.khat(-0.3 * np.log(u)) == pytest.approx(0.3, abs=0.1)
    assert collapsed.khat(-0.9 * np.log(u)) > collapsed.WORST_K
    assert collapsed.khat(np.zeros(50)) == float("-inf")


def test_bad_weights_are_refused():
    how, data, table, top = laid(MODELS["shared"], 24)
    way = collapsed.Way(MODELS["shared"], data, top, 0)
    u = np.random.default_rng(0).uniform(size=(4, 500))
    with pytest.raises(collapsed.RouteError, match=r"heavy tail.*route='nuts'"):
        way._judge(-1.2 * np.log(u))
    assert way._judge(-0.1 * np.log(u)).shape == (4, 500)


def test_a_law_without_a_linear_coefficient_is_refused():
    runs = make_table(24)
    with pytest.raises(collapsed.RouteError, match="no positive linear coefficient"):
        fit("kaplan", runs, route="collapsed", draws=10, tune=10)
    with pytest.raises(ValueError, match="'collapse' is not known"):
        fit("chinchilla", runs, route="collapse", draws=10, tune=10)


def test_gaussian_control_of_the_quadrature():
    """The same Simpson rule on a Gaussian gives its constant: the oracle itself is checked."""
    x = np.linspace(-9, 9, 321)
    total = integrate.simpson(np.exp(np.asarray(Gaussian(0, 1).log_prob(x))), x=x)
    assert total == pytest.approx(1, abs=1e-9)


def test_sampling_by_value_changes_the_density_by_its_jacobian():
    model = MODELS["corpora"]
    how, _, table, top = laid(model, 120, apart=0.5)
    by_value = collapse.replace(how, loose=("alpha", "beta"))
    for by in (0.0, 0.1):  # at the mode, and where the spread between groups is another
        full = {k: v + by for k, v in top.z.items()}
        plain, moved = (
            float(h.potential({k: jnp.asarray(v) for k, v in h.start(full, table).items()}, table))
            for h in (how, by_value)
        )
        scope = collapse._Latents(model, table.whole, {k: jnp.asarray(v) for k, v in full.items()})
        log_scale = sum(3 * float(jnp.log(jnp.mean(scope.affine(k)[1]))) for k in by_value.loose)
        assert moved - plain == pytest.approx(log_scale, abs=1e-8)
        assert abs(log_scale) > 1  # a Jacobian left out would be seen
