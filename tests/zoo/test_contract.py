"""The contract: every law, world, estimator and policy, found by discovery, keeps every promise its kind makes.

Each promise is a function ``check(system)`` that raises AssertionError. For each there is a deliberately broken system
that must fail it, so that no promise is kept by a check that cannot see.
"""

from __future__ import annotations

import importlib
import importlib.resources
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import xarray as xr
from numpyro.distributions import biject_to

from scalingkit.core import names, zoo
from scalingkit.core.card import Card, Claim, Source
from scalingkit.core.estimator import Estimator
from scalingkit.core.law import Law
from scalingkit.core.param import Param
from scalingkit.core.policy import Policy
from scalingkit.core.world import World

LAWS, WORLDS, ESTIMATORS, POLICIES = (zoo.names(k) for k in ("laws", "worlds", "estimators", "policies"))

# as far as anybody will ask: what a curve must bear without overflow
EXTREMES = {
    "N": (1e3, 1e13), "D": (1e5, 1e16), "U": (1e5, 1e16), "C": (1e12, 1e28), "P": (1.0, 64.0), "x": (1e-2, 1e28),
}  # fmt: skip


def test_the_folders_are_walked():
    assert len(LAWS) >= 12 and {"chinchilla", "farseer", "broken_power"} <= set(LAWS)
    assert len(WORLDS) >= 2 and len(ESTIMATORS) >= 2
    for kind, found in zip(
        ("laws", "worlds", "estimators", "policies"), (LAWS, WORLDS, ESTIMATORS, POLICIES), strict=True
    ):
        files = {p.stem for p in importlib.resources.files(f"scalingkit.{kind}").iterdir() if p.name.endswith(".py")}
        assert set(found) == {f for f in files if not f.startswith("_")}, kind


# ---------------------------------------------------------------- laws: what is said


def docstring(law: Law) -> str:
    return importlib.import_module(f"scalingkit.laws.{law.name}").__doc__ or ""


def check_name(law: Law) -> None:
    assert zoo.get(law.name, "laws") is law
    assert law.card.summary and law.card.sources and law.card.scope and law.card.tags


def check_formula_first(law: Law, text: str | None = None) -> None:
    """A title line, then an indented block that is the formula and spells every input and parameter."""
    blocks = (docstring(law) if text is None else text).split("\n\n")
    assert re.match(r"[A-Z].*[:.]", blocks[0]) and "\n" not in blocks[0].strip()
    assert all(line.startswith("    ") for line in blocks[1].splitlines()), "the second block is not a formula"
    words = set(re.findall(r"\w+", blocks[1]))
    assert "=" in blocks[1] and {*law.inputs, *law.params} <= words, {*law.inputs, *law.params} - words


def check_units(law: Law) -> None:
    assert {*law.inputs, law.output} <= set(names.VARIABLES), "an input or output that the house has no unit for"
    for k, p in law.params.items():
        assert p.doc.strip() and p.unit.strip(), k
    assert all(meaning.strip() for meaning in law.inputs.values())


def check_published(law: Law) -> None:
    for source, values in law.published.items():
        assert source in law.card.sources, "values of a source that the card does not name"
        for k, v in values.items():
            assert np.isfinite(v) and bool(law.params[k].prior.support(v)), (source.key, k, v)


def check_claims(law: Law) -> None:
    assert law.claims, "no number by which a wrong curve would be noticed"
    assert all(v.agrees for v in law.verdicts()), [str(v) for v in law.verdicts()]


def check_claims_can_fail(law: Law) -> None:
    """Some parameter, moved by 20%, breaks the claim: a claim that holds for any values says nothing."""
    for claim in law.claims:
        values = law.published.get(claim.source, law.truth)
        moved = [values | {k: values[k] * m + (0.1 if values[k] == 0 else 0)} for k in law.params for m in (0.8, 1.25)]
        assert any(not claim.check(law, v).agrees for v in moved), claim.statement


def check_example(law: Law) -> None:
    assert set(law.example) - {"truth"} == {*law.inputs, "noise"}
    assert 0 < law.example["noise"] < 0.2
    for x in law.inputs:
        low, high, count = law.example[x]
        assert 0 < low < high and count >= 3
    assert all(bool(law.params[k].prior.support(v)) for k, v in law.truth.items())
    y = np.asarray(law(**law.truth, **law.example_design()))
    assert np.all(np.isfinite(y) & (y > 0))


def check_priors(law: Law) -> None:
    """Proper (integrates to 1 over its support), finite at its own draws, and with a bijection from the real line."""
    for i, (k, p) in enumerate(law.params.items()):
        draws = p.prior.sample(jax.random.key(i), (500,))
        to = biject_to(p.prior.support)
        assert bool(jnp.all(jnp.isfinite(p.prior.log_prob(draws)))), k
        u = to.inv(draws)
        np.testing.assert_allclose(to(u), draws, rtol=1e-9, err_msg=k)
        grid = jnp.linspace(u.mean() - 12 * u.std(), u.mean() + 12 * u.std(), 20_001)
        log_p = p.prior.log_prob(to(grid)) + to.log_abs_det_jacobian(grid, to(grid))
        assert abs(float(jnp.trapezoid(jnp.exp(log_p), grid)) - 1) < 1e-3, k


# ---------------------------------------------------------------- laws: what the curve does


def prior_draws(law: Law, n: int, seed: int = 0, tail: float = 0.01) -> dict[str, np.ndarray]:
    """Raw parameters, each (n, 1): prior draws cut at their ``tail`` quantiles, coefficients moved off the pivot."""
    pivots, out = law.pivots(law.example_design()), {}
    for i, (k, p) in enumerate(law.params.items()):
        sample = np.asarray(p.prior.sample(jax.random.fold_in(jax.random.key(seed), i), (4000,)))
        out[k] = np.clip(sample[:n], *np.quantile(sample, [tail, 1 - tail]))[:, None]
    for c, (x, e) in law.scales.items():
        out[c] = out[c] * pivots[x] ** (out[e] if isinstance(e, str) else e)
    return out


def random_inputs(law: Law, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Inputs (1, n), log-uniform over the example's ranges."""
    rng = np.random.default_rng(seed)
    return {x: np.exp(rng.uniform(*np.log(law.example[x][:2]), (1, n))) for x in law.inputs}


def corners(law: Law) -> dict[str, np.ndarray]:
    grid = np.meshgrid(*(EXTREMES[x] for x in law.inputs))
    return {x: g.ravel()[None, :] for x, g in zip(law.inputs, grid, strict=True)}


def value_and_gradient(law: Law, inputs: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """Value and derivatives in all inputs' logs and all parameters, stacked, at every combination."""
    order = (*law.inputs, *law.params)
    args = [np.asarray(a, float).ravel() for a in np.broadcast_arrays(*((inputs | params)[k] for k in order))]
    f = jax.jit(jax.vmap(jax.value_and_grad(law.curve, argnums=tuple(range(len(order))))))
    value, grads = f(*map(jnp.asarray, args))
    scaled = [g * a for g, a in zip(grads[: len(law.inputs)], args, strict=False)]
    return np.stack([np.asarray(v) for v in (value, *scaled, *grads[len(law.inputs) :])])


def check_finite(law: Law) -> None:
    """Value and gradient: over the prior on the example's ranges, and at the extremes over its bulk and at the truth."""
    inputs, order = random_inputs(law, 20), ("y", *law.inputs, *law.params)
    truth = {k: np.array([[v]]) for k, v in law.truth.items()}
    for where, x, theta in (
        ("prior", inputs, prior_draws(law, 200)),
        ("extremes, bulk of the prior", corners(law), prior_draws(law, 100, tail=0.1)),
        ("extremes, truth", corners(law), truth),
    ):
        bad = ~np.all(np.isfinite(value_and_gradient(law, x, theta)), axis=1)
        assert not bad.any(), (where, [k for k, b in zip(order, bad, strict=True) if b])


def check_scales(law: Law) -> None:
    """Rescaling an input and every coefficient on it changes nothing, to 1e-10."""
    theta, inputs = prior_draws(law, 50, seed=1, tail=0.05), random_inputs(law, 20, seed=1)
    before = np.asarray(law(**inputs, **theta))
    for x in {x for x, _ in law.scales.values()}:
        for s in (1e-3, 17.0, 1e9):
            new_x = {k: v / s if law.alike.get(k, k) == x else v for k, v in inputs.items()}
            new = {
                c: theta[c] * s ** -(theta[e] if isinstance(e, str) else e)
                for c, (y, e) in law.scales.items()
                if y == x
            }
            np.testing.assert_allclose(law(**new_x, **(theta | new)), before, rtol=1e-10, err_msg=f"{law.name}: {x}")


def check_linear(law: Law) -> None:
    """Jointly affine in the linear parameters: midpoint values are midpoints, and the second derivative is zero."""
    theta, other, inputs = (
        prior_draws(law, 50, seed=2, tail=0.05), prior_draws(law, 50, seed=3, tail=0.05), random_inputs(law, 20, seed=2)
    )  # fmt: skip
    moved = theta | {k: other[k] / np.median(other[k]) * np.median(theta[k]) for k in law.linear}
    middle = {k: (theta[k] + moved[k]) / 2 for k in law.params}
    ends = np.asarray(law(**inputs, **theta)) + np.asarray(law(**inputs, **moved))
    np.testing.assert_allclose(2 * np.asarray(law(**inputs, **middle)), ends, rtol=1e-10)


def check_decreasing(law: Law) -> None:
    theta, inputs = prior_draws(law, 100, seed=4), random_inputs(law, 20, seed=4)
    y = np.asarray(law(**inputs, **theta))
    for x in law.decreasing:
        more = np.asarray(law(**(inputs | {x: inputs[x] * 1.5}), **theta))
        assert np.all(more <= y * (1 + 1e-12)), (x, float(np.max(more / y - 1)))


def check_elementwise(law: Law) -> None:
    """Each outcome depends on its own row only: backwards in, backwards out; alone or in company."""
    theta = {k: v[:, 0] for k, v in prior_draws(law, 12, seed=5).items()}
    inputs = {k: v[0] for k, v in random_inputs(law, 12, seed=5).items()}
    rows = np.asarray(law(**inputs, **theta))
    back = np.asarray(law(**{k: v[::-1] for k, v in (inputs | theta).items()}))
    np.testing.assert_allclose(back[::-1], rows, rtol=1e-12)
    alone = [float(law(**{k: v[i] for k, v in (inputs | theta).items()})) for i in range(12)]
    np.testing.assert_allclose(alone, rows, rtol=1e-12)


def check_broadcast(law: Law) -> None:
    """By dim name: a design (run) and a posterior (chain, draw, family) give every combination, as a loop does."""
    theta = {k: v.reshape(2, 3, 2) for k, v in prior_draws(law, 12, seed=6).items()}
    first, *rest = law.params
    posterior = {first: xr.DataArray(theta[first][..., 0], dims=("chain", "draw"))}
    posterior |= {k: xr.DataArray(theta[k], dims=("chain", "draw", "family")) for k in rest}
    inputs = {k: xr.DataArray(v[0], dims="run") for k, v in random_inputs(law, 4, seed=6).items()}
    y = law(xr.Dataset(posterior), **inputs)
    assert isinstance(y, xr.DataArray) and y.name == law.output and set(y.dims) == {"run", "chain", "draw", "family"}
    for i, c, d, f in np.ndindex(4, 2, 3, 2):
        at = dict(run=i, chain=c, draw=d, family=f)
        values = {k: float(v.isel({n: at[n] for n in v.dims})) for k, v in (inputs | posterior).items()}
        np.testing.assert_allclose(float(y.isel(at)), float(law(**values)), rtol=1e-12)


def check_float64(law: Law) -> None:
    """Double precision from Python integers that do not fit 32 bits, from float32 and from float64."""
    whole = {x: round(law.example[x][1]) for x in law.inputs}
    y = law(**whole, **law.truth)
    assert y.dtype == jnp.float64
    np.testing.assert_allclose(y, law(**{k: float(v) for k, v in whole.items()}, **law.truth), rtol=1e-15)
    step = 1 + 1e-9
    moved = np.asarray(law(**{k: v * step for k, v in whole.items()}, **law.truth))
    slope = value_and_gradient(law, whole, law.truth)[1 : 1 + len(law.inputs), 0].sum()
    np.testing.assert_allclose(moved - np.asarray(y), slope * 1e-9, rtol=1e-4, atol=1e-15)


def check_refusals(law: Law) -> None:
    wrong = f"{next(iter(law.params))}z"
    with pytest.raises(TypeError, match=rf"{law.name}.*no '{wrong}'.*Did you mean"):
        law(**{wrong: 1.0})
    with pytest.raises(TypeError, match=f"{law.name}.* needs"):
        law(**law.truth)
    with pytest.raises(TypeError, match=wrong):
        law.with_priors(**{wrong: dist.Normal()})


LAW_CHECKS = (
    check_name, check_formula_first, check_units, check_published, check_claims, check_claims_can_fail, check_example,
    check_priors, check_finite, check_scales, check_linear, check_decreasing, check_elementwise, check_broadcast,
    check_float64, check_refusals,
)  # fmt: skip


@pytest.mark.parametrize("check", LAW_CHECKS, ids=lambda c: c.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", LAWS)
def test_law(name, check):
    check(zoo.get(name, "laws"))


# ---------------------------------------------------------------- laws: each check sees what it is there to see

GOOD = zoo.get("chinchilla", "laws")


def _curve(body):
    """A law with the names of chinchilla and another curve."""

    def curve(N, D, E, A, alpha, B, beta):
        return body(N, D, E, A, alpha, B, beta)

    return replace(GOOD, curve=curve)


def _prior(name, prior):
    return replace(GOOD, params=GOOD.params | {name: Param(prior, "a prior out of order", "1")})


def _said(**values):
    source = Source("nobody", "Nobody 2020")
    return replace(GOOD, published={source: GOOD.truth | values})


def _empty_claim():
    always = Claim(GOOD.card.sources[0], "nowhere", "one is one", lambda law, values: 1.0, 1.0, 0.1)
    return replace(GOOD, claims=(always,))


BROKEN = {
    "name: not the file's": (check_name, lambda: replace(GOOD, card=replace(GOOD.card, name="kaplan"))),
    "units: an input unknown to the house": (
        check_units,
        lambda: Law(
            card=GOOD.card, inputs={"z": "?"}, output="loss", curve=lambda z, A: A * z,
            params={"A": Param(dist.Normal(), "slope")},
        ),
    ),
    "units: a parameter without words": (
        check_units, lambda: replace(GOOD, params=GOOD.params | {"E": Param(dist.LogNormal(), " ")})
    ),
    "published: outside the support": (check_published, lambda: _said(E=-1.0)),
    "published: a source not on the card": (check_published, lambda: _said()),
    "claims: the curve's exponents swapped": (
        check_claims, lambda: replace(GOOD, published={s: v | dict(alpha=v["beta"], beta=v["alpha"]) for s, v in GOOD.published.items()})
    ),
    "claims: none": (check_claims, lambda: replace(GOOD, claims=())),
    "claims_can_fail: a claim true of anything": (check_claims_can_fail, _empty_claim),
    "example: a range upside down": (check_example, lambda: replace(GOOD, example=GOOD.example | dict(N=(1e9, 1e8, 5)))),
    "example: an input forgotten": (check_example, lambda: replace(GOOD, example={k: v for k, v in GOOD.example.items() if k != "D"})),
    "priors: improper": (check_priors, lambda: _prior("E", _Flat())),
    "finite: overflow at large inputs": (
        check_finite, lambda: _curve(lambda N, D, E, A, alpha, B, beta: E + A * N**-alpha + B * D**-beta + jnp.exp(N / 1e9 - 1e3))
    ),
    "finite: a gradient that is nan where the value is not": (
        check_finite,
        lambda: _curve(lambda N, D, E, A, alpha, B, beta: E + A * N**-alpha + B * D**-beta + 0 * jnp.sqrt(E - E)),
    ),
    "scales: an additive size": (check_scales, lambda: _curve(lambda N, D, E, A, alpha, B, beta: E + A * (N + 1e7) ** -alpha + B * D**-beta)),
    "scales: an exponent off by 1e-6": (
        check_scales, lambda: _curve(lambda N, D, E, A, alpha, B, beta: E + A * N ** -(alpha * (1 + 1e-6)) + B * D**-beta)
    ),
    "linear: an exponent": (check_linear, lambda: replace(GOOD, linear=("E", "A", "B", "alpha"))),
    "linear: a product of two": (
        check_linear, lambda: _curve(lambda N, D, E, A, alpha, B, beta: E + A * N**-alpha + B * D**-beta * (1 + 1e-3 * E))
    ),
    "decreasing: rises at last": (
        check_decreasing, lambda: _curve(lambda N, D, E, A, alpha, B, beta: E + A * N**-alpha + B * D**-beta + N / 1e12)
    ),
    "elementwise: a mean over the rows": (
        check_elementwise, lambda: _curve(lambda N, D, E, A, alpha, B, beta: E + A * N**-alpha + B * jnp.mean(D) ** -beta)
    ),
    "broadcast: by position": (check_broadcast, lambda: _Positional()),
    "float64: a detour through float32": (
        check_float64,
        lambda: _curve(lambda N, D, E, A, alpha, B, beta: E + A * N**-alpha + B * jnp.float32(D).astype(jnp.float64) ** -beta),
    ),
    "refusals: takes anything": (check_refusals, lambda: _Tolerant()),
}  # fmt: skip


class _Flat(dist.Distribution):
    """A 'prior' with density 1 everywhere."""

    support = dist.constraints.real

    def __init__(self):
        super().__init__((), ())

    def sample(self, key, sample_shape=()):
        return jax.random.normal(key, sample_shape)

    def log_prob(self, value):
        return jnp.zeros_like(value)


class _Positional(Law):
    """Broadcasts by position, so a family is taken for a draw."""

    def __init__(self):
        vars(self).update(vars(GOOD))

    def __call__(self, data=None, /, **values):
        found = super().__call__(data, **values)
        return found.isel(draw=slice(None, None, -1)) if isinstance(found, xr.DataArray) else found


class _Tolerant(Law):
    """Ignores names it does not know."""

    def __init__(self):
        vars(self).update(vars(GOOD))

    def __call__(self, data=None, /, **values):
        return 1.0


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_law_is_seen(case):
    check, make = BROKEN[case]
    law = make()
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(law)


def test_every_check_has_a_broken_law():
    assert {c for c, _ in BROKEN.values()} | {check_formula_first} == set(LAW_CHECKS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Chinchilla: a law.\n\nNo formula here.",
        "Chinchilla: a law.\n\n    L(N, D) = E + A / N**alpha\n",
        "    L(N, D) = E + A / N**alpha + B / D**beta\n\nformula before the title",
    ],
)
def test_a_docstring_without_its_formula_is_seen(text):
    with pytest.raises((AssertionError, IndexError)):
        check_formula_first(GOOD, text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(curve=lambda N, D, E, A: E), "curve takes"),
        (dict(scales={"Z": ("N", "alpha")}), "scales"),
        (dict(scales={"A": ("N", "alfa")}), "scales"),
        (dict(linear=("Q",)), "linear"),
        (dict(decreasing=("C",)), "decreasing"),
        (dict(alike={"U": "D"}), "alike"),
        (dict(published={Source("s", "t"): dict(E=1.0)}), "published"),
    ],
)
def test_a_law_that_contradicts_itself_is_refused(change, words):
    with pytest.raises((TypeError, ValueError), match=words):
        replace(GOOD, **change)


# ---------------------------------------------------------------- worlds


def check_world_repeats(world: World) -> None:
    """Same key, same result; another key, another; the design is left as it was."""
    design, theta = world.example["design"], world.example["theta"]
    before = design.copy(deep=True)
    a, b, c = (world.simulate(k, design, **theta) for k in (0, 0, 1))
    assert a.identical(b) and not a.identical(c)
    assert design.identical(before) and set(theta) == set(world.params)


def check_world_exact(world: World, keys: int = 400) -> None:
    """Means over keys meet the closed forms within 4.5 standard errors, at two fixed seeds."""
    design, theta = world.example["design"], world.example["theta"]
    names_ = [q for q in world.exact if q in world.simulate(0, design, **theta)]
    assert names_, "no closed form names a simulated variable"
    for seed in (0, 1):
        runs = [world.simulate(10_000 * seed + k, design, **theta) for k in range(keys)]
        for q in names_:
            y = np.stack([np.asarray(r[q]) for r in runs])
            error = np.maximum(y.std(0, ddof=1) / np.sqrt(keys), 1e-12)
            z = (y.mean(0) - np.asarray(world.exact[q](design, **theta))) / error
            assert np.all(np.abs(z) < 4.5), (q, seed, float(np.abs(z).max()))


def check_world_claims(world: World) -> None:
    assert world.claims and all(c.check(world).agrees for c in world.claims), [
        str(c.check(world)) for c in world.claims
    ]


WORLD_CHECKS = (check_world_repeats, check_world_exact, check_world_claims)


@pytest.mark.parametrize("check", WORLD_CHECKS, ids=lambda c: c.__name__.removeprefix("check_world_"))
@pytest.mark.parametrize("name", WORLDS)
def test_world(name, check):
    world = zoo.get(name, "worlds")
    assert world.name == name and world.card.summary and all(p.doc for p in world.params.values())
    check(world)


def toy_world(shift=0.0, forget_key=False, writes=False, claim=1.0) -> World:
    rng = np.random.default_rng(5)

    def simulate(key, design, *, mu):
        if writes:
            design["x"] = design["x"] + 1
        z = (rng if forget_key else np.random.default_rng(key)).normal(mu, 1.0, design.sizes["run"])
        return design.assign(y=("run", z))

    return World(
        card=Card("toy", "a normal"), simulate=simulate, params={"mu": Param(dist.Normal(), "mean")},
        exact={"y": lambda design, *, mu: np.full(design.sizes["run"], mu + shift)},
        claims=(Claim(Source("s", "t"), "here", "one", lambda world: 1.0, claim, 1e-9),),
        example=dict(design=xr.Dataset({"x": ("run", np.arange(3.0))}), theta=dict(mu=2.0)),
    )  # fmt: skip


@pytest.mark.parametrize("check", WORLD_CHECKS)
def test_the_world_checks_pass_a_good_world(check):
    check(toy_world())


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        (check_world_repeats, dict(forget_key=True)),
        (check_world_repeats, dict(writes=True)),
        (check_world_exact, dict(shift=0.5)),
        (check_world_claims, dict(claim=1.1)),
    ],
)
def test_a_broken_world_is_seen(check, fault):
    with pytest.raises(AssertionError):
        check(toy_world(**fault))


# ---------------------------------------------------------------- estimators


def check_estimator_judged(estimator: Estimator, world: Any, keys: int = 20) -> None:
    """On its world it lands within the tolerance at every key; the wrong use of it never does."""
    for key in range(keys):
        found, truth, room = map(float, estimator.judge(world, key))
        assert 0 < room < abs(truth) and abs(found - truth) <= room, (key, found, truth, room)
        found, truth, room = map(float, estimator.wrong(world, key))
        assert not abs(found - truth) <= room, ("the negative control landed", key, found, truth, room)


def check_estimator_pure(estimator: Estimator, world: Any) -> None:
    """A Dataset comes out, twice the same, and the data are left as they were."""
    data = estimator.example["data"]() if callable(estimator.example["data"]) else estimator.example["data"]
    before = data.copy(deep=True)
    a, b = (estimator(data, **estimator.example.get("options", {})) for _ in range(2))
    assert isinstance(a, xr.Dataset) and a.identical(b) and data.identical(before)


ESTIMATOR_CHECKS = (check_estimator_judged, check_estimator_pure)


@pytest.mark.parametrize("check", ESTIMATOR_CHECKS, ids=lambda c: c.__name__.removeprefix("check_estimator_"))
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimator(name, check):
    estimator = zoo.get(name, "estimators")
    assert estimator.name == name and estimator.card.summary
    assert all(c.check(estimator).agrees for c in estimator.claims), [str(c.check(estimator)) for c in estimator.claims]
    check(estimator, zoo.get(estimator.world, "worlds"))


def toy_estimator(bias=0.0, wrong_bias=5.0, writes=False) -> Estimator:
    def estimate(data):
        if writes:
            data["y"] = data["y"] * 0
        return xr.Dataset({"mean": data["y"].mean() + bias})

    def judge(world, key):
        data = world.simulate(key, world.example["design"], mu=2.0)
        return float(estimate(data)["mean"]), 2.0, 1.99

    return Estimator(
        card=Card("toy_mean", "a mean"), estimate=estimate, world="toy", judge=judge,
        wrong=lambda world, key: (judge(world, key)[0] + wrong_bias, 2.0, 1.99),
        example=dict(data=xr.Dataset({"y": ("run", np.arange(1.0, 4.0))})),
    )  # fmt: skip


@pytest.mark.parametrize("check", ESTIMATOR_CHECKS)
def test_the_estimator_checks_pass_a_good_estimator(check):
    check(toy_estimator(), toy_world())


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        (check_estimator_judged, dict(bias=3.0)),
        (check_estimator_judged, dict(wrong_bias=0.0)),
        (check_estimator_pure, dict(writes=True)),
    ],
)
def test_a_broken_estimator_is_seen(check, fault):
    with pytest.raises(AssertionError):
        check(toy_estimator(**fault), toy_world())


# ---------------------------------------------------------------- policies


def check_policy(policy: Policy, keys: int = 400) -> None:
    """Never spends more than its budget; same key, same result; meets its closed form, where it has one."""
    problem, budget = policy.example["problem"], policy.example["budget"]
    before = problem.copy(deep=True)
    runs = [policy(k, problem, budget) for k in range(keys)]
    assert runs[0].identical(policy(0, problem, budget)) and problem.identical(before)
    assert all(float(r["spent"].max()) <= budget * (1 + 1e-12) for r in runs)
    if policy.exact is not None:
        value = np.array([float(r["value"].mean()) for r in runs])
        error = max(value.std(ddof=1) / np.sqrt(keys), 1e-12)
        assert abs(value.mean() - float(policy.exact(problem, budget))) < 4.5 * error


@pytest.mark.parametrize("name", POLICIES or [pytest.param("", marks=pytest.mark.skip(reason="no policy yet"))])
def test_policy(name):
    policy = zoo.get(name, "policies")
    assert policy.name == name and policy.card.summary and policy.world in WORLDS
    check_policy(policy)


def toy_policy(spends=1.0, mean=0.0, forget_key=False) -> Policy:
    """Draws as many coins as the budget pays for and takes their mean."""
    rng = np.random.default_rng(3)

    def run(key, problem, budget):
        draws = (rng if forget_key else np.random.default_rng(key)).random(int(budget)) < float(problem["p"])
        return xr.Dataset({"spent": spends * int(budget), "value": draws.mean()})

    return Policy(
        card=Card("coins", "mean of coins"), run=run, world="toy", exact=lambda problem, budget: float(problem["p"]) + mean,
        example=dict(problem=xr.Dataset({"p": 0.3}), budget=10.0),
    )  # fmt: skip


def test_the_policy_check_passes_a_good_policy():
    check_policy(toy_policy())


@pytest.mark.parametrize("fault", [dict(spends=1.1), dict(mean=0.1), dict(forget_key=True)])
def test_a_broken_policy_is_seen(fault):
    with pytest.raises(AssertionError):
        check_policy(toy_policy(**fault))


# ---------------------------------------------------------------- the zoo itself


def test_a_near_miss_is_named():
    with pytest.raises(KeyError, match="Did you mean chinchilla"):
        zoo.get("chinchila")
    with pytest.raises(KeyError, match="no law called 'zzz'.*There are.*kaplan"):
        zoo.get("zzz", "laws")


def test_table_lists_every_system():
    table = zoo.table()
    assert set(table[table.kind == "law"].name) == set(LAWS) and set(table.columns) >= {"summary", "tags", "sources"}
    assert set(zoo.table("laws", "one-input").name) < set(LAWS)
    assert SimpleNamespace(**table.iloc[0]).summary
