"""Allocation against the Chinchilla law's closed form, and its behaviour where there is no optimum."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import xarray as xr

from scalingkit.core import notes, zoo
from scalingkit.core.card import Card
from scalingkit.core.law import Law
from scalingkit.core.param import Param
from scalingkit.decide.allocate import allocate
from scalingkit.design import grids

TRUTH = dict(E=1.817, A=482.01, alpha=0.3478, B=2085.43, beta=0.3658)
BUDGETS = np.array([1e20, 5.76e23, 1e26])


def closed_form(C, A, alpha, B, beta, flop=6.0, **_):
    G = (alpha * A / (beta * B)) ** (1 / (alpha + beta))
    return G * (C / flop) ** (beta / (alpha + beta))


def draws(n=200, seed=0, groups=None):
    rng = np.random.default_rng(seed)
    sd = dict(E=0.03, A=0.3, alpha=0.05, B=0.3, beta=0.05)
    shape = (2, n // 2) + ((len(groups),) if groups else ())
    dims = ("chain", "draw") + (("corpus",) if groups else ())
    out = xr.Dataset({k: (dims, v * np.exp(sd[k] * rng.standard_normal(shape))) for k, v in TRUTH.items()})
    return out.assign_coords(corpus=groups) if groups else out


def as_tree(posterior, runs):
    constant = runs[["N", "D"]].reset_coords(drop=False) if "corpus" in runs.coords else runs[["N", "D"]]
    tree = xr.DataTree.from_dict({"posterior": posterior.assign(sigma=0.01), "constant_data": constant})
    tree.attrs["law"] = "chinchilla"
    return tree


def test_matches_the_closed_form_at_every_draw():
    theta = draws()
    plan = allocate(theta, budget=BUDGETS, law="chinchilla")
    want = closed_form(plan["budget"], **theta)
    np.testing.assert_allclose(plan["N"], want.transpose(*plan["N"].dims), rtol=1e-8)
    np.testing.assert_allclose(6 * plan["N"] * plan["D"], plan["budget"].broadcast_like(plan["N"]), rtol=1e-12)
    assert plan["N"].dims == ("chain", "draw", "budget") and bool(plan["interior"].all())
    assert float(plan["no_interior"].max()) == 0
    # the negative control: another FLOP convention gives another answer
    other = allocate(theta, budget=BUDGETS, law="chinchilla", flop_per_param_token=5.0)
    assert float(abs(other["N"] / plan["N"] - 1).min()) > 0.05


def test_published_value_and_summary():
    plan = allocate(TRUTH, budget=5.76e23, law="chinchilla")
    assert float(plan["N"].squeeze()) == pytest.approx(closed_form(5.76e23, **TRUTH), rel=1e-9)
    q = allocate(draws(), budget=1e24, law="chinchilla")["N_interval"].squeeze()
    assert float(q.sel(quantile="lower")) < float(q.sel(quantile="median")) < float(q.sel(quantile="upper"))


def test_a_cost_function_of_ones_own():
    plain = allocate(TRUTH, budget=BUDGETS, law="chinchilla")
    same = allocate(TRUTH, budget=BUDGETS, law="chinchilla", cost=lambda N, D: 6 * N * D)
    np.testing.assert_allclose(same["N"], plain["N"], rtol=1e-6)
    inference = lambda N, D: 6 * N * D + 2 * N * 1e13  # noqa: E731  training, then serving 1e13 tokens
    served = allocate(TRUTH, budget=BUDGETS[1:], law="chinchilla", cost=inference)
    assert bool((served["N"] < plain["N"].isel(budget=slice(1, None))).all())
    np.testing.assert_allclose(inference(served["N"], served["D"]).values.ravel(), BUDGETS[1:], rtol=1e-9)
    x = np.linspace(np.log(served["N"].values.ravel()) - 1, np.log(served["N"].values.ravel()) + 1, 4001)
    D = (BUDGETS[1:] - 2 * np.exp(x) * 1e13) / (6 * np.exp(x))
    D = np.where(D > 0, D, np.nan)
    L = TRUTH["E"] + TRUTH["A"] * np.exp(-TRUTH["alpha"] * x) + TRUTH["B"] * D ** -TRUTH["beta"]
    best = x[np.nanargmin(L, 0), np.arange(2)]
    np.testing.assert_allclose(np.log(served["N"].values.ravel()), best, atol=1e-3)


def test_groups_and_extrapolation():
    theta = draws(groups=["c4", "pile"])
    runs = grids.ray(np.geomspace(1e7, 1e9, 8)).assign_coords(corpus=("run", ["c4", "pile"] * 4))
    plan = allocate(as_tree(theta, runs), budget=[1e20, 1e24])
    assert plan["N"].dims == ("chain", "draw", "corpus", "budget")
    np.testing.assert_allclose(
        plan["N"].sel(corpus="pile"), closed_form(plan["budget"], **theta.sel(corpus="pile")), rtol=1e-8
    )
    np.testing.assert_allclose(plan["extrapolation"], plan["budget"] / float(runs["C"].max()))
    found = notes.of(plan)
    assert [n.code for n in found] == ["beyond-runs"] and found[0].about == "budget 1e+24"


def test_region_without_the_optimum_says_so():
    plan = allocate(TRUTH, budget=1e24, law="chinchilla", region=(1e6, 1e8))
    assert bool(plan["N"].isnull().all()) and float(plan["no_interior"].squeeze()) == 1
    assert notes.of(plan)[0].code == "no-interior-optimum" and notes.of(plan)[0].severity == "error"
    assert bool(plan["N_interval"].isnull().all())


def monotone_law():
    return Law(
        card=Card("tokens_only", "a law in which size does not matter"),
        inputs={"N": "parameters", "D": "tokens"},
        output="loss",
        curve=lambda N, D, B, beta: B * D**-beta + 0 * jnp.log(N),
        params={"B": Param(dist.LogNormal(0, 1), "coefficient"), "beta": Param(dist.LogNormal(-1, 0.4), "exponent")},
        published={},
    )


def test_a_law_without_an_optimum_gives_nan_not_an_edge():
    plan = allocate({"B": 2000.0, "beta": 0.3}, budget=1e22, law=monotone_law())
    assert bool(plan["N"].isnull().all()) and float(plan["no_interior"].squeeze()) == 1


@pytest.mark.parametrize("name", ["kaplan", "farseer", "data_constrained", "precision_aware", "overtraining"])
def test_other_laws_by_brute_force(name):
    law = zoo.get(name, "laws")
    at = {k: float(np.sqrt(law.example[k][0] * law.example[k][1])) for k in law.inputs if k not in ("N", "D")}
    plan = allocate(law.truth, budget=1e22, law=law, at=at)
    N = np.geomspace(*(1e22 / 6 / np.array([1e6, 1e-3])) ** 0.5, 200_001)
    L = np.asarray(law(**law.truth, N=N, D=1e22 / (6 * N), **at))
    i = int(np.argmin(L))
    if 0 < i < N.size - 1:
        assert float(plan["N"].squeeze()) == pytest.approx(N[i], rel=1e-3)
        assert float(plan["loss"].squeeze()) <= L[i] * (1 + 1e-12)
    else:
        assert float(plan["no_interior"].squeeze()) == 1


def test_farseer_has_no_optimum_at_large_compute_and_says_so():
    law = zoo.get("farseer", "laws")
    plan = allocate(law.truth, budget=[1e20, 1e24], law=law, region=(1e8, 1e11))
    np.testing.assert_array_equal(plan["no_interior"], [0, 1])
    assert [n.about for n in notes.of(plan)] == ["budget 1e+24"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: allocate(TRUTH, budget=1e21), "which law"),
        (lambda: allocate(TRUTH, budget=-1.0, law="chinchilla"), "budget"),
        (lambda: allocate({"A": 1.0}, budget=1e21, law="chinchilla"), "needs values for E"),
        (lambda: allocate(zoo.get("chinchilla", "laws"), budget=1e21), "needs parameter values"),
        (lambda: allocate(TRUTH, budget=1e21, law="chinchilla", at={"U": 1.0}), "at= names U"),
        (lambda: allocate(TRUTH, budget=1e21, law="chinchilla", region=(1e9, 1e8)), "region"),
        (lambda: allocate(TRUTH, budget=1e21, law="chinchilla", prob=2.0), "prob"),
        (lambda: allocate(xr.DataTree(), budget=1e21), "no posterior"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(grids.DesignError, match=words):
        call()
