"""Law: called by name, broadcast by dim, pivoted by its own declaration; and the pieces its curves are made of."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import xarray as xr

from scalingkit.core import curves, zoo

LAW = zoo.get("chinchilla", "laws")
TRUTH = LAW.truth


def test_numbers_in_a_number_out():
    expected = 1.8172 + 482.01 * 1e9**-0.3478 + 2085.43 * 1e11**-0.3658
    assert float(LAW(**TRUTH, N=1e9, D=10**11)) == pytest.approx(expected, rel=1e-14)


def test_arrays_broadcast_as_numpy_does():
    y = LAW(**TRUTH, N=np.geomspace(1e8, 1e10, 3)[:, None], D=np.geomspace(1e9, 1e12, 4))
    assert y.shape == (3, 4)


def test_a_posterior_dataset_and_a_grid_meet_by_name():
    draws = xr.Dataset({k: (("chain", "draw"), np.full((2, 5), v)) for k, v in TRUTH.items()})
    N = xr.DataArray(np.geomspace(1e8, 1e10, 3), dims="size", coords={"size": ["s", "m", "l"]})
    y = LAW(draws, N=N, D=xr.DataArray(np.geomspace(1e9, 1e12, 4), dims="tokens"))
    assert dict(y.sizes) == dict(size=3, tokens=4, chain=2, draw=5) and y.name == "loss"
    assert list(y["size"].values) == ["s", "m", "l"]
    assert float(y[0, 0, 0, 0]) == pytest.approx(float(LAW(**TRUTH, N=1e8, D=1e9)), rel=1e-14)


def test_keywords_win_over_the_data():
    data = xr.Dataset({k: xr.DataArray(v) for k, v in TRUTH.items()})
    low, high = (float(LAW(data, N=1e9, D=1e11, E=e)) for e in (1.0, 2.0))
    assert high - low == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (dict(N=1e9), "needs D"),
        (dict(N=1e9, D=1e11, alfa=0.3), "no 'alfa'.*Did you mean 'alpha'"),
        (dict(N=1e9, D=1e11, qqqq=0.3), "no 'qqqq'; it has N, D, E, A, alpha, B, beta"),
    ],
)
def test_refusals_name_what_is_wrong(values, words):
    with pytest.raises(TypeError, match=words):
        LAW(**(TRUTH | values))


def test_other_priors_leave_the_law_alone():
    new = LAW.with_priors(E=dist.Normal(1.7, 0.1))
    assert new.params["E"].prior.loc == 1.7 and new.params["E"].doc == LAW.params["E"].doc
    assert LAW.params["E"].prior is not new.params["E"].prior and new.params["A"] is LAW.params["A"]
    with pytest.raises(TypeError, match="Did you mean 'beta'"):
        LAW.with_priors(bta=dist.Normal())


def test_a_law_differentiates_and_compiles():
    slope = jax.jit(jax.grad(lambda a: LAW(**(TRUTH | dict(alpha=a)), N=1e9, D=1e11)))(0.3478)
    assert float(slope) == pytest.approx(-482.01 * 1e9**-0.3478 * np.log(1e9), rel=1e-12)


def test_pivots_are_geometric_means_shared_by_inputs_of_one_unit():
    law = zoo.get("data_constrained", "laws")
    data = dict(N=np.array([1e8, 1e10]), D=np.array([1e10, 1e12]), U=np.array([1e9, 1e9]))
    assert law.pivots(data) == pytest.approx(dict(N=1e9, D=1e11, U=1e11))
    assert zoo.get("farseer", "laws").pivots(data) == dict(N=1.0, D=1.0)


def test_pivots_of_an_unpivoted_unit_stay_one():
    law = zoo.get("precision_aware", "laws")
    data = dict(N=np.array([1e8, 1e10]), D=np.array([1e10, 1e12]), P=np.array([4.0, 16.0]))
    assert law.pivots(data)["P"] == 1.0


def test_the_example_design_is_the_grid_it_says():
    design = LAW.example_design()
    assert design["N"].shape == design["D"].shape == (36,)
    assert len(set(zip(design["N"], design["D"], strict=True))) == 36
    assert design["N"].min() == pytest.approx(1e7) and design["D"].max() == pytest.approx(1e12)


def test_a_law_without_values_says_so():
    from dataclasses import replace

    with pytest.raises(ValueError, match="neither published values"):
        replace(LAW, published={}).truth  # noqa: B018


def test_verdicts_use_the_values_of_their_source():
    found = {v.claim.source.key: v.found for v in LAW.verdicts()}
    assert found["besiroglu2024"] == pytest.approx(0.3658 / 0.7136)
    assert found["hoffmann2022"] == pytest.approx(0.28 / 0.62)


@pytest.mark.parametrize("p", [0.3, -0.2, 1e-3, 1e-9, 0.0, -1e-9])
def test_boxcox_meets_its_definition_in_high_precision(p):
    from decimal import Decimal, getcontext

    getcontext().prec = 60
    for u in (-13.0, -0.5, 1e-6, 2.0, 9.2):
        exact = u if p == 0 else float(((Decimal(p) * Decimal(u)).exp() - 1) / Decimal(p))
        assert float(curves.boxcox(u, p)) == pytest.approx(exact, rel=1e-13)


def test_boxcox_has_a_gradient_at_zero_power():
    for p in (0.0, 1e-12, 1e-6, 1e-3):
        slope = float(jax.grad(curves.boxcox, argnums=1)(2.0, p))
        assert slope == pytest.approx(2.0 + p * 8 / 3 + p**2 * 2, rel=1e-6)
    assert float(jax.grad(curves.boxcox)(0.0, 0.3)) == pytest.approx(1.0)


def test_the_naive_boxcox_would_be_caught():
    naive = lambda u, p: (jnp.exp(p * u) - 1) / p  # noqa: E731
    assert float(naive(2.0, 1e-9)) != pytest.approx(2.0, rel=1e-9)
    assert np.isnan(float(naive(2.0, 0.0)))
