"""Checks must pass on a model that is right, and name what is wrong on one that is not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from scalingkit import LogStudentT, check, fit, runs
from scalingkit.core import notes
from scalingkit.infer.check import _pit
from scalingkit.infer.influence import TreeError, influence, ranked
from scalingkit.infer.uniformity import uniformity

from .regression import line, posterior


def codes(found):
    return {(n.code, n.about) for n in notes.of(found)}


def test_a_right_model_passes():
    found = check(posterior(line()))
    assert found.attrs["passes"] == 1, found.attrs["verdict"]
    assert "reproduces these 60 runs" in found.attrs["verdict"]
    assert set(found.pit.dims) == {"run"} and float(found.pit_p_value.sel(group="all")) > 0.01
    assert list(found.group.values) == ["all", "corpus=a", "corpus=b"]


def test_false_alarms_are_rare():
    passes = [check(posterior(line(seed=s), draws=400)).attrs["passes"] for s in range(1, 11)]
    assert sum(passes) >= 9


def test_a_law_that_bends_away_is_told_where():
    found = check(posterior(line(bend=0.02)))
    assert ("check-trend", "log x") in codes(found)
    assert float(found.bend_p_value.sel(trend="log x")) < 0.005 < float(found.slope_p_value.sel(trend="log x"))


def test_a_corpus_apart_is_named():
    found = check(posterior(line(shift=0.05)))
    assert ("check-pit", "corpus=b") in codes(found)
    assert found.pit_says.sel(group="corpus=b").item() == "values too high"


@pytest.mark.parametrize(("narrow", "words"), [(0.5, "spread too narrow"), (2.0, "spread too wide")])
def test_noise_of_the_wrong_size_shows_in_the_pit(narrow, words):
    found = check(posterior(line(n=200), narrow=narrow))
    assert ("check-pit", "all") in codes(found)
    assert words in found.attrs["verdict"]


def test_an_outlier_is_named_first_and_seen_in_the_tail():
    found = check(posterior(line(outlier=0.4)))
    assert ranked(found)[0] == "r3"
    assert ("check-statistic", "max") in codes(found)
    assert "r3" in found.attrs["verdict"]


def test_shift_is_that_of_an_exact_refit_without_the_run():
    table = line(n=30, outlier=0.05)
    tree = posterior(table, draws=4000)
    found = influence(tree)
    without = posterior(table.isel(run=np.arange(30) != 3), draws=4000)
    alpha, other = (t.posterior["alpha"].values for t in (tree, without))
    exact = (np.log(other).mean() - np.log(alpha).mean()) / np.log(alpha).std()
    assert abs(exact) > 0.5, "the run must matter for this to be a test"
    assert float(found["shift"].sel(run="r3", param="alpha")) == pytest.approx(exact, abs=0.06)


def exact_pit(table, held_out: bool) -> np.ndarray:
    """PIT of each run under the closed-form predictive, Student-t, of the other runs (or of all of them)."""
    z, log_y = np.log(table["x"].values), np.log(table["y"].values)
    X, out = np.stack([np.ones_like(z), z - z.mean()], 1), []
    for i in range(len(z)):
        keep = np.arange(len(z)) != i if held_out else np.full(len(z), True)
        G = np.linalg.inv(X[keep].T @ X[keep])
        b = G @ X[keep].T @ log_y[keep]
        free = keep.sum() - 2
        scale = np.sqrt(((log_y[keep] - X[keep] @ b) ** 2).sum() / free * (1 + X[i] @ G @ X[i]))
        out.append(stats.t.cdf((log_y[i] - X[i] @ b) / scale, free))
    return np.array(out)


def test_pit_is_that_of_the_others_and_not_of_the_run_itself():
    table = line(n=16, seed=2)
    found = check(posterior(table, draws=4000))
    ends = np.argsort(-np.abs(exact_pit(table, True) - exact_pit(table, False)))[:4]
    got, others, itself = (np.asarray(v)[ends] for v in (found.pit, exact_pit(table, True), exact_pit(table, False)))
    assert np.abs(others - itself).min() > 0.015
    assert np.abs(got - others).max() < 0.5 * np.abs(others - itself).min()
    assert (np.abs(found.pit.values - exact_pit(table, True)) < 0.03).all()


def test_pull_is_the_influence_function_of_least_squares():
    table = line(n=40, outlier=0.3)
    tree = posterior(table, draws=4000)
    z = np.log(table.x.values) - np.log(table.x.values).mean()
    r = tree.observed_data.y.values
    r = (
        np.log(r)
        - np.median(np.log(tree.posterior["A_at_pivot"].values))
        + np.median(tree.posterior["alpha"].values) * z
    )
    scale = 1.4826 * np.median(np.abs(r))
    sd = np.median(tree.posterior["sigma"].values)
    # alpha moves by -z r / (z'z); in posterior sds that is -z r / (sd sqrt(z'z)); pull scales the posterior's own
    # covariance (sd**2) by the robust scale
    expected = -z * r * sd / scale**2 / np.sqrt(z @ z)
    np.testing.assert_allclose(influence(tree)["pull"].sel(param="alpha"), expected, atol=0.15 * np.abs(expected).max())


def test_ties_are_split_at_random_and_pit_stays_inside():
    y, w = np.array([1.0, 1.0, 5.0]), np.full((4, 3), 0.25)
    replicated = np.array([[0.0, 1, 2], [1, 1, 2], [1, 1, 3], [2, 1, 3]])
    pit = _pit(y, replicated, w, np.random.default_rng(0))
    assert 0.25 < pit[0] < 0.75 and 0 < pit[1] < 1 and pit[2] == 0.875


def test_a_tree_without_draws_of_outcomes_is_refused():
    tree = posterior(line(n=12), draws=10)
    del tree["posterior_predictive"]
    with pytest.raises(TreeError, match="no posterior_predictive"):
        check(tree)
    del tree["log_likelihood"]
    with pytest.raises(TreeError, match="no group 'log_likelihood'"):
        check(tree)


def test_the_envelope_holds_uniform_numbers_95_times_in_100_and_not_others():
    rng = np.random.default_rng(1)
    p = np.array([uniformity(u).p_value for u in rng.random((400, 50))])
    assert 0.02 <= np.mean(p < 0.05) <= 0.085
    outside = [bool(np.any((t.ecdf < t.lower) | (t.ecdf > t.upper))) for t in map(uniformity, rng.random((400, 50)))]
    assert np.mean(outside) <= 0.085
    assert uniformity(rng.beta(2, 2, 200)).p_value < 0.01
    assert uniformity(rng.random(200) ** 1.5).direction == "values too low"
    with pytest.raises(ValueError, match="between 0 and 1"):
        uniformity(np.array([0.2, 1.2]))


@pytest.mark.slow
@pytest.mark.data
def test_the_five_rows_that_publications_drop_are_the_most_influential(mirror):
    """Besiroglu et al. 2024 drop the 5 highest losses of 245; they move beta from .45 to .37."""
    raw = pd.read_csv(mirror / "chinchilla-epoch-svg" / "svg_extracted_data.csv")
    N = raw["Model Size"].to_numpy()
    labels = [f"row {i}" for i in raw.index]
    table = runs.make(N=N, D=raw["Training FLOP"].to_numpy() / (6 * N), loss=raw["loss"].to_numpy(), run=labels)
    dropped = {labels[i] for i in np.argsort(-raw["loss"].to_numpy())[:5]}
    found = check(fit("chinchilla", table, likelihood=LogStudentT(), chains=2, draws=500, tune=500, seed=1))
    assert set(ranked(found)[:5]) == dropped
    assert all(row in found.attrs["verdict"] for row in dropped)
    assert found.most_moved.sel(run=ranked(found)[0]).item() == "beta"
