"""Comparisons: the truth wins, scores are those of exact refits, and what cannot be compared is refused."""

from __future__ import annotations

import arviz_stats
import numpy as np
import pytest
import scipy.optimize
import xarray as xr
from scipy.special import logsumexp

from scalingkit import compare
from scalingkit.core import notes
from scalingkit.infer import compare as module
from scalingkit.infer.heldout import log_density

from .regression import MODEL, line, posterior


def flat(table: xr.Dataset, **options) -> xr.DataTree:
    """The same table under a law that does not see x: a wrong model."""
    blind = posterior(table.assign(x=("run", np.exp(18 + np.random.default_rng(9).uniform(-2, 2, table.sizes["run"])))))
    return blind.assign({"constant_data": xr.DataTree(dataset=table[["x"]])})


@pytest.fixture(scope="module")
def pair():
    return {"blind": flat(line()), "line": posterior(line())}


def test_the_right_law_wins_and_the_verdict_says_by_how_much(pair):
    found = compare(pair)
    assert list(found.model.values) == ["line", "blind"]
    assert float(found.difference[1]) < -2 * float(found.difference_se[1]) < 0
    assert "line predicts unseen runs better than blind" in found.attrs["verdict"]
    assert found.weight.values == pytest.approx([1, 0], abs=0.02)


def test_a_model_against_itself_is_no_difference(pair):
    found = compare({"a": pair["line"], "b": posterior(line(), seed=5)})
    assert "about equally well" in found.attrs["verdict"]
    assert abs(float(found.difference[1])) < 0.5


def test_scores_are_those_of_arviz_and_of_exact_refits(pair):
    found = compare(pair)
    loo = arviz_stats.loo(pair["line"], pointwise=True)
    assert float(found.elpd.sel(model="line")) == pytest.approx(float(loo.elpd), abs=1e-9)
    table = line()
    for i in (0, 17, 59):
        without = posterior(table.isel(run=np.arange(60) != i), draws=4000)
        exact = logsumexp(log_density(without, table.isel(run=[i])).values) - np.log(8000)
        assert float(found.elpd_run.sel(model="line", run=f"r{i}")) == pytest.approx(exact, abs=0.05)


def test_log_density_of_the_fitted_runs_is_the_stored_log_likelihood(pair):
    np.testing.assert_allclose(log_density(pair["line"], line()), pair["line"]["log_likelihood"].y, atol=1e-10)


def test_weights_are_the_best_on_the_simplex():
    rng = np.random.default_rng(0)
    score = rng.normal(size=(3, 80)) + np.array([[0.0], [0.2], [-0.5]])
    w = module.stacking_weights(score)

    def loss(v):
        return -logsumexp(score + np.log(v)[:, None], axis=0).sum()

    simplex = dict(bounds=[(1e-9, 1)] * 3, constraints=dict(type="eq", fun=lambda v: v.sum() - 1))
    best = scipy.optimize.minimize(loss, np.full(3, 1 / 3), method="SLSQP", tol=1e-12, **simplex)
    np.testing.assert_allclose(w, best.x, atol=1e-3)
    assert w.sum() == pytest.approx(1)


def test_a_weight_far_from_the_corner_is_found_where_one_model_is_far_ahead():
    score = np.array([[0.0] * 90 + [-30.0] * 10, [-8.0] * 90 + [0.0] * 10])
    assert module.stacking_weights(score) == pytest.approx([0.9, 0.1], abs=1e-3)


def test_bad_runs_are_named_and_refitted_exactly(monkeypatch, pair):
    table = line(outlier=0.5)
    pair = {"a": posterior(table), "b": posterior(table, narrow=1.05)}
    found = compare(pair)
    named = [n.text for n in notes.of(found) if n.code == "loo-unreliable"]
    assert named and "r3" in named[0]
    asked = []

    def refit(model, part, **options):
        asked.append(tuple(sorted(set(table.run.values) - set(part.run.values))))
        return posterior(part, draws=options["draws"])

    monkeypatch.setattr(module, "fit", refit)
    again = compare(pair, refit=True, runs=table)
    assert ("r3",) in asked
    assert bool(again.refitted.sel(model="a", run="r3"))
    assert not [n for n in notes.of(again) if n.code == "loo-unreliable"]
    assert float(again.elpd_run.sel(model="a", run="r3")) < float(found.elpd_run.sel(model="a", run="r3"))


def test_groups_are_left_out_whole(monkeypatch, pair):
    table = line(shift=0.1)
    pair = {"a": posterior(table), "b": posterior(table, seed=2)}
    seen = []

    def refit(model, part, **options):
        seen.append(set(part.corpus.values))
        return posterior(part, draws=options["draws"])

    monkeypatch.setattr(module, "fit", refit)
    found = compare(pair, by="corpus", runs=table)
    assert seen == [{"b"}, {"a"}, {"b"}, {"a"}]
    assert found.attrs["method"] == "leave one corpus out, exact refits"
    assert float(found.elpd.sel(model="a")) < float(compare(pair).elpd.sel(model="a")) - 20
    with pytest.raises(module.ComparisonError, match="Did you mean 'corpus'"):
        compare(pair, by="corpsu", runs=table)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda t: t.isel(run=slice(0, 50)), "'a' has 60 runs and 'b' 50"),
        (lambda t: t.assign(y=t.y * np.where(t.run == "r7", 1.01, 1.0)), r"different y in 1 run\(s\): r7"),
        (lambda t: t.assign(x=t.x * np.where(t.run == "r7", 1.01, 1.0)), r"different x in 1 run\(s\): r7"),
        (lambda t: t.assign_coords(run=[f"s{i}" for i in range(60)]), "not the same ones"),
    ],
)
def test_different_data_are_refused(other, words):
    with pytest.raises(module.ComparisonError, match=words):
        compare({"a": posterior(line(), draws=20), "b": posterior(other(line()), draws=20)})


def test_one_model_or_refits_without_runs_are_refused(pair):
    with pytest.raises(module.ComparisonError, match="two trees or more"):
        compare({"line": pair["line"]})
    with pytest.raises(module.ComparisonError, match="need the runs"):
        compare(pair, by="corpus")
    with pytest.raises(module.ComparisonError, match="labels differ"):
        compare(pair, refit=True, runs=line(n=20))


def test_the_spec_in_the_tree_is_enough_to_refit(pair):
    assert pair["line"].attrs["law"] == MODEL.law.name
