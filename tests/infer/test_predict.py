"""Predictions equal the loop; groups by label; new groups from the population; noise as the likelihood has it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st
import xarray as xr

from scalingkit.core import notes
from scalingkit.infer import predict as module
from scalingkit.infer.likelihoods import BetaBinomial, Censored, DataError, LogNormal, LogStudentT, Normal, Rounded
from scalingkit.infer.model import Model
from scalingkit.infer.pooling import Crossed, Nested, Partial, Regressed, Separate
from scalingkit.infer.predict import predict

POOLS = {
    "shared": {},
    "partial": {"alpha": Partial("corpus"), "A": Partial("family")},
    "crossed": {"E": Crossed("family", "corpus"), "beta": Partial("corpus")},
    "nested": {"B": Nested("family", "model")},
    "separate": {"E": Separate("corpus"), "sigma": Partial("corpus")},
    "regressed": {"E": Regressed("corpus", on=["width"])},
}


def by_hand(p: xr.Dataset, N: float, D: float, **labels: str) -> float:
    """The law at one draw: scalars only."""
    at = {k: p[k].sel({d: labels[d] for d in p[k].dims}).item() for k in ("E", "A", "alpha", "B", "beta")}
    return at["E"] + at["A"] * N ** -at["alpha"] + at["B"] * D ** -at["beta"]


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_mean_equals_the_loop(pool, table, dressed):
    runs = table()
    tree = dressed(Model(law="chinchilla", pool=pool), runs)
    found = predict(tree, runs.drop_vars("loss"))["loss"]
    assert found.dims == ("chain", "draw", "run")
    for c in range(2):
        for d in range(3):
            p = tree["posterior"].to_dataset().isel(chain=c, draw=d)
            for i in (0, 7, 23):
                r = runs.isel(run=i)
                labels = {k: r[k].item() for k in ("corpus", "family", "model")}
                want = by_hand(p, r["N"].item(), r["D"].item(), **labels)
                np.testing.assert_allclose(found.isel(chain=c, draw=d, run=i), want, rtol=1e-12)


def test_dims_of_open_groups_and_grids(table, dressed):
    tree = dressed(Model(law="chinchilla", pool=POOLS["crossed"]), table())
    grid = xr.Dataset(coords={"size": [1e8, 1e9], "tokens": [1e10, 1e11, 1e12]})
    found = predict(tree, {"N": grid["size"], "D": grid["tokens"]})["loss"]
    assert set(found.dims) == {"chain", "draw", "size", "tokens", "family", "corpus"}
    assert found.dims[:2] == ("chain", "draw")
    one = predict(tree, {"N": 1e8, "D": 1e11, "family": "gpt", "corpus": "web"})["loss"]
    assert one.dims == ("chain", "draw")
    np.testing.assert_allclose(found.sel(size=1e8, tokens=1e11, family="gpt", corpus="web"), one, rtol=1e-13)
    each = predict(tree, {"N": [1e8, 1e8], "D": [1e11, 1e11], "family": ["gpt", "llama"], "corpus": ["web", "c4"]})
    np.testing.assert_allclose(each["loss"].isel(run=0), one, rtol=1e-13)
    assert not np.allclose(each["loss"].isel(run=1), one)


def test_unknown_group_is_an_error_with_a_hint_and_new_is_drawn(table, dressed):
    tree = dressed(Model(law="chinchilla", pool={"alpha": Partial("corpus")}), table())
    with pytest.raises(DataError, match="Did you mean 'pile'"):
        predict(tree, {"N": 1e9, "D": 1e11, "corpus": "plie"})
    both = {"N": [1e9, 1e9, 1e9], "D": [1e11] * 3, "corpus": ["pile", "new", "new"]}
    found = predict(tree, both, groups="new")["loss"]
    known = predict(tree, {"N": 1e9, "D": 1e11, "corpus": "pile"})["loss"]
    np.testing.assert_allclose(found.isel(run=0), known, rtol=1e-13)
    np.testing.assert_array_equal(found.isel(run=1), found.isel(run=2))  # one group is one draw
    assert not np.allclose(found.isel(run=0), found.isel(run=1))
    again = predict(tree, both, groups="new")["loss"]
    np.testing.assert_array_equal(found, again)
    other = predict(tree, both, groups="new", seed=1)["loss"]
    assert not np.allclose(found.isel(run=1), other.isel(run=1))


def new_alpha(
    dressed, pool, name: str, runs: xr.Dataset, draws: int = 4000, **label: str
) -> tuple[np.ndarray, xr.Dataset]:
    """(log alpha of a new group, posterior), read back from the curve at known E, B and A."""
    tree = dressed(Model(law="chinchilla", pool=pool), runs, chains=1, draws=draws)
    p = tree["posterior"].to_dataset()
    x0 = tree.attrs["pivot_N"]
    theta = module.parameters(
        Model(law="chinchilla", pool=pool), p, xr.Dataset(coords=label),
        {"N": x0, "D": tree.attrs["pivot_D"]}, {"corpus:width:mean": 0.0, "corpus:width:sd": 1.0}, "new", 3,
    )  # fmt: skip
    return np.log(theta[name].values.ravel()), p


def test_new_groups_have_the_spread_of_the_population(table, dressed):
    got, p = new_alpha(dressed, {"alpha": Partial("corpus")}, "alpha", table(), corpus="new")
    z = (got - np.log(p["alpha_population"].values.ravel())) / p["alpha_sd"].values.ravel()
    assert st.kstest(z, "norm").pvalue > 0.001
    assert st.kstest(z * 1.2, "norm").pvalue < 0.001  # a spread 20% too wide is seen


def test_new_member_of_a_known_family_is_drawn_about_it(table, dressed):
    got, p = new_alpha(dressed, {"alpha": Nested("family", "model")}, "alpha", table(), family="gpt", model="gpt-z")
    z = (got - np.log(p["alpha_family"].sel(family="gpt").values.ravel())) / p["alpha_sd_model"].values.ravel()
    assert st.kstest(z, "norm").pvalue > 0.001
    away = (got - np.log(p["alpha_family"].sel(family="llama").values.ravel())) / p["alpha_sd_model"].values.ravel()
    assert st.kstest(away, "norm").pvalue < 0.001


def test_new_member_of_a_new_family(table, dressed):
    got, p = new_alpha(dressed, {"alpha": Nested("family", "model")}, "alpha", table(), family="qwen", model="qwen-z")
    sd = np.hypot(p["alpha_sd_model"], p["alpha_sd_family"]).values.ravel()
    z = (got - np.log(p["alpha_population"].values.ravel())) / sd
    assert st.kstest(z, "norm").pvalue > 0.001


def test_new_corpus_of_a_known_family_keeps_the_family_effect(table, dressed):
    got, p = new_alpha(dressed, {"alpha": Crossed("family", "corpus")}, "alpha", table(), family="gpt", corpus="new")
    centre = np.log(p["alpha_population"]) + p["alpha_effect_family"].sel(family="gpt")
    z = (got - centre.values.ravel()) / p["alpha_sd_corpus"].values.ravel()
    assert st.kstest(z, "norm").pvalue > 0.001


def test_regressed_needs_the_covariate_of_a_new_group(table, dressed):
    tree = dressed(Model(law="chinchilla", pool=POOLS["regressed"]), table())
    design = {"N": 1e9, "D": 1e11, "corpus": "new"}
    with pytest.raises(DataError, match="'width'"):
        predict(tree, design, groups="new")
    assert predict(tree, design | {"width": 8.0}, groups="new")["loss"].dims == ("chain", "draw")


def test_separate_groups_have_no_population(table, dressed):
    tree = dressed(Model(law="chinchilla", pool={"E": Separate("corpus")}), table())
    with pytest.raises(ValueError, match="no population"):
        predict(tree, {"N": 1e9, "D": 1e11, "corpus": "new"}, groups="new")


LIKELIHOODS = [LogNormal(), LogStudentT(), LogNormal(sigma_on="log_N"), Normal(), Normal(se="loss_se")]


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=str)
def test_outcomes_scatter_as_the_likelihood_says(likelihood, table, dressed):
    runs = table()
    tree = dressed(Model(law="chinchilla", likelihood=likelihood), runs, chains=1, draws=4000)
    p = tree["posterior"].to_dataset().isel(chain=0)
    point = {"N": 1e9, "D": 1e11, "loss_se": 0.03}
    y = predict(tree, point, kind="outcome")["loss"].isel(chain=0).values
    m = predict(tree, point)["loss"].isel(chain=0).values
    sigma = p["sigma"].values
    if likelihood == LogNormal(sigma_on="log_N"):
        sigma = sigma * np.exp(p["sigma_slope"].values * (np.log(1e9) - np.log(runs["N"].values).mean()))
    if isinstance(likelihood, Normal):
        z = (y - m) / (np.hypot(sigma, 0.03) if likelihood.se else sigma)
    else:
        z = np.log(y / m) / sigma
    u = st.t.cdf(z, p["nu"].values) if isinstance(likelihood, LogStudentT) else st.norm.cdf(z)
    assert st.kstest(u, "uniform").pvalue > 0.001
    wrong = st.norm.cdf(z * 1.25)
    assert st.kstest(wrong, "uniform").pvalue < 0.001


def test_rounded_outcomes_lie_on_the_grid_and_censored_ones_need_no_flag(table, dressed):
    runs = table()
    tree = dressed(Model(law="chinchilla", likelihood=Rounded(step=0.01)), runs.assign(loss=runs["loss"].round(2)))
    y = predict(tree, {"N": 1e9, "D": 1e11}, kind="outcome")["loss"].values
    np.testing.assert_allclose(y / 0.01, np.round(y / 0.01), atol=1e-6)
    tree = dressed(Model(law="chinchilla", likelihood=Censored()), runs)
    assert np.isfinite(predict(tree, {"N": 1e9, "D": 1e11}, kind="outcome")["loss"]).all()


def test_counts_need_the_trials(dressed):
    model = Model(law="power_floor", likelihood=BetaBinomial())
    x = model.law.inputs
    n = 20
    runs = xr.Dataset(
        {k: ("run", np.geomspace(1e2, 1e6, n)) for k in x}
        | {"k": ("run", np.full(n, 3.0)), "n": ("run", np.full(n, 10.0))}
    )
    tree = dressed(model, runs)
    design = dict.fromkeys(x, 10000.0)
    with pytest.raises(DataError, match="'n'"):
        predict(tree, design, kind="outcome")
    y = predict(tree, design | {"n": 50}, kind="outcome")["k"]
    assert ((y >= 0) & (y <= 50) & (y == y.round())).all()


def test_blocks_and_thinning(monkeypatch, table, dressed):
    tree = dressed(Model(law="chinchilla"), table(), chains=2, draws=40)
    design = {"N": np.geomspace(1e8, 1e10, 10), "D": np.full(10, 1e11)}
    whole = predict(tree, design)
    monkeypatch.setattr(module, "BLOCK", 60)
    xr.testing.assert_identical(predict(tree, design), whole)
    assert notes.of(whole) == []
    monkeypatch.setattr(module, "LARGEST", 200)
    thinned = predict(tree, design)
    assert thinned.sizes["draw"] == 10
    assert [n.code for n in notes.of(thinned)] == ["draws-thinned"]
    np.testing.assert_array_equal(thinned["loss"], whole["loss"].sel(draw=thinned["draw"]))


def test_refusals(table, dressed):
    tree = dressed(Model(law="chinchilla"), table())
    with pytest.raises(DataError, match="no 'D'"):
        predict(tree, {"N": 1e9})
    with pytest.raises(DataError, match="not finite"):
        predict(tree, {"N": [1e9, np.nan], "D": [1e11, 1e11]})
    with pytest.raises(ValueError, match="'mean' or 'outcome'"):
        predict(tree, {"N": 1e9, "D": 1e11}, kind="median")
