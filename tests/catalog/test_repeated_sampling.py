"""Tables of success counts and rewards: rows, traps, and numbers checked by hand or by SciPy."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from scalingkit import catalog
from scalingkit.catalog import CatalogError
from scalingkit.core import notes

pytestmark = pytest.mark.data


def line(ds, family, x="k", y="neg_log_pass_at_k"):
    """(a, b) of y = a x**-b, least squares on logs, for one family."""
    rows = ds.isel(run=(ds["family"] == family).values)
    slope, intercept = np.polyfit(np.log(rows[x]), np.log(rows[y]), 1)
    return np.exp(intercept), -slope


@pytest.mark.parametrize("name", ["bon-jailbreak-counts", "llmonkeys-pythia-math"])
def test_lines_of_mean_pass_at_k(name):
    for fit in catalog.table(name).fits:
        ds = catalog.load(name, **fit.options["load"])
        a, b = line(ds, fit.options["where"]["family"])
        assert abs(a - fit.expected["A"]) <= fit.tolerance["A"]
        assert abs(b - fit.expected["alpha"]) <= fit.tolerance["alpha"]


def test_jailbreak_counts_stop_and_are_censored():
    ds = catalog.load("bon-jailbreak-counts")
    assert ds.sizes["run"] == 1113 and len(set(ds["problem"].values)) == 159
    censored = ds["censored"].values == 1
    assert censored.sum() == 194
    assert np.array_equal(censored, ds["n_success"].values == 0)
    assert (ds["n_samples"].values[censored] == 10_020).all()
    assert (ds["n_samples"].values % 60 == 0).all()
    first = ds.isel(run=0)
    assert (str(first["run"].values), float(first["n_samples"]), float(first["n_success"])) == (
        "Claude 3 Opus/0",
        4500,
        1,
    )
    assert {"right-censored", "stopping-rule"} <= {n.code for n in notes.of(ds)}


def test_jailbreak_names():
    assert "Claude 3 Opus" in catalog.load("bon-jailbreak-counts")["family"].values
    as_filed = catalog.load("bon-jailbreak-counts", names="file")["family"].values
    assert "Claude 3.5 Opus" in as_filed and "Claude 3 Opus" not in as_filed
    with pytest.raises(CatalogError, match="paper, file"):
        catalog.load("bon-jailbreak-counts", names="papre")


def test_jailbreak_rates_where_all_succeed_have_no_logarithm():
    ds = catalog.load("bon-jailbreak-counts", "asr")
    assert (ds.attrs["rows_in"], ds.attrs["rows_used"], ds.attrs["rows_quarantined"]) == (707, 691, 16)
    assert set(ds["quarantine_code"].values) == {"log-of-zero"}
    assert all(label.startswith("Llama 3 8B IT/") for label in ds["quarantine_label"].values)
    assert (ds["neg_log_pass_at_k"] > 0).all()
    gpt4o = ds.sel(run="GPT4o/10000")
    assert float(gpt4o["pass_at_k"]) == pytest.approx(143 / 159)  # 16 of 159 requests are censored


def test_pythia_counts():
    ds = catalog.load("llmonkeys-pythia-math")
    assert ds.sizes["run"] == 7 * 128 and (ds["n_samples"] == 10_000).all()
    row = ds.sel(run="Pythia 12B/82")
    assert (float(row["n_correct"]), float(row["N"])) == (122, 1.2e10)
    rate = (ds["n_correct"] / ds["n_samples"]).groupby("family").mean()
    assert float(rate.sel(family="Pythia 70M")) == pytest.approx(0.00065, abs=5e-6)
    assert float(rate.sel(family="Pythia 12B")) == pytest.approx(0.02319, abs=5e-6)
    mean = catalog.load("llmonkeys-pythia-math", "pass_at_k")
    assert float(mean["pass_at_k"].sel(run="Pythia 70M/1")) == pytest.approx(float(rate.sel(family="Pythia 70M")))


def test_checkpoint_counts():
    ds = catalog.load("pythia-ckpt-passk")
    assert ds.sizes["run"] == 19_370 == len(set(ds["run"].values))
    assert dict(zip(*np.unique(ds["benchmark"], return_counts=True), strict=True)) == {"GSM8K": 10_273, "MATH": 9_097}
    assert (float(ds["n_samples"].min()), float(ds["n_samples"].max())) == (128, 3_720_320)
    assert float((ds["n_correct"] == 0).mean()) == pytest.approx(0.67, abs=0.005)
    assert (ds["n_correct"] <= ds["n_samples"]).all()
    assert np.allclose(ds["C"], 6 * ds["N"] * ds["D"])
    gsm, math = (set(ds["problem"].values[ds["benchmark"].values == b]) for b in ("GSM8K", "MATH"))
    assert not gsm & math and len(gsm) + len(math) > 255  # the bare numbers overlap
    assert set(ds["level"].values[ds["benchmark"].values == "GSM8K"]) == {""}
    assert "stopping-rule" in {n.code for n in notes.of(ds)}


def test_checkpoint_rates():
    ds = catalog.load("pythia-ckpt-passk", "checkpoints")
    assert (ds.attrs["rows_in"], ds.attrs["rows_quarantined"]) == (153, 36)
    assert (ds["zero_share"] < 1).all() and np.isfinite(ds["neg_log_rate"]).all()
    for fit in catalog.table("pythia-ckpt-passk").fits:
        rows = ds.isel(run=((ds["benchmark"] == fit.options["where"]["benchmark"]) & (ds["D"] >= 2e11)).values)
        slope = np.polyfit(np.log(rows["C"]), np.log(rows["neg_log_rate"]), 1)[0]
        assert abs(-slope - fit.expected["alpha"]) <= fit.tolerance["alpha"]


def test_nll_per_problem_and_mean():
    ds, mean = catalog.load("pythia-gsm8k-nll"), catalog.load("pythia-gsm8k-nll", "mean")
    assert ds.sizes["run"] == 9 * 1319 and mean.sizes["run"] == 9
    assert np.allclose(ds["C"], 6 * ds["N"] * ds["D"], rtol=1e-12)
    assert "loss" not in ds  # summed over tokens, so not a loss per token
    assert float(mean["nll"][0]) == pytest.approx(348.71, abs=5e-3) and float(mean["C"][0]) == pytest.approx(1.68e18)
    assert float(mean["nll"][-1]) == pytest.approx(94.34, abs=5e-3) and float(mean["C"][-1]) == pytest.approx(2.16e22)
    for rows, alpha in ((mean, 0.14112), (ds, 0.14712)):
        assert np.polyfit(np.log(rows["C"]), np.log(rows["nll"]), 1)[0] == pytest.approx(-alpha, abs=1e-5)


def test_token_scores_are_loaded_with_an_error_note():
    ds = catalog.load("pythia-gsm8k-nll", "lambada_tokens")
    assert ds.sizes["run"] == 5244 and len(set(ds["problem"].values)) == 10
    by_model = ds["nll"].groupby("family").mean()
    assert (by_model > np.log(50_257) - 0.01).all()  # worse than a blind guess: why the note is there
    assert {n.code: n.severity for n in notes.of(ds)} == {"suspect-values": "error"}
    assert not notes.of(catalog.load("pythia-gsm8k-nll"))


def test_o1_repeated_rows_are_set_aside():
    ds = catalog.load("o1-mini-aime-tokens")
    assert (ds.attrs["rows_in"], ds.sizes["run"], ds.sizes["quarantined"]) == (19, 11, 8)
    assert set(ds["quarantine_code"].values) == {"duplicate"}
    assert list(ds["token_limit"].values) == [2.0**k for k in range(4, 15)]
    row = ds.sel(run="just_ask_nicely/1024")
    assert float(row["accuracy"]) == pytest.approx(0.6) and float(row["accuracy_se"]) == pytest.approx(
        (0.24 / 30) ** 0.5
    )
    ratio = (ds["tokens_used"] / ds["token_limit"]).values
    published = catalog.table("o1-mini-aime-tokens").published["used_per_asked"].value
    assert np.median(ratio[:8]) == pytest.approx(published, rel=0.1)
    assert ratio.min() > 5 and ratio.max() < 23  # as the trap says
    off = [a for a in ds["accuracy"].values if abs(a * 30 - round(a * 30)) > 1e-6]
    assert off == [0.675]
    slope = np.polyfit(np.log(ds["tokens_used"]), np.log(ds["error"]), 1)[0]
    assert -slope == pytest.approx(catalog.table("o1-mini-aime-tokens").fits[0].expected["alpha"], abs=5e-4)


@pytest.mark.parametrize(
    ("subtable", "n", "mean", "sd", "top"),
    [("llama_generated", 16_000, -0.3330, 1.4562, 4.142), ("random_tokens", 30_000, -2.5817, 0.3486, 0.721)],
)
def test_reward_samples(subtable, n, mean, sd, top):
    ds = catalog.load("starling-reward-tails", subtable)
    reward = ds["reward"].values
    assert ds["reward"].dims == ("sample",) and reward.dtype == np.float64 and reward.size == n
    found = (reward.mean(), reward.std(ddof=1), reward.max())
    assert found == pytest.approx((mean, sd, top), abs=6e-4)


@pytest.mark.parametrize(
    ("subtable", "u", "xi", "scale", "n"),
    [("llama_generated", 1.7415, -0.1522, 0.5583, 800), ("random_tokens", -1.9666, 0.1164, 0.1761, 1500)],
)
def test_reward_tails(subtable, u, xi, scale, n):
    reward = catalog.load("starling-reward-tails", subtable)["reward"].values
    threshold = np.quantile(reward, 0.95)
    beyond = reward[reward > threshold] - threshold
    assert threshold == pytest.approx(u, abs=1e-4) and beyond.size == n
    shape, _, found = stats.genpareto.fit(beyond, floc=0)
    assert (shape, found) == pytest.approx((xi, scale), abs=5e-4)
    assert catalog.table("starling-reward-tails").published[f"xi_{subtable}"].value == xi


def test_adversarial_rewards_are_not_draws():
    ds = catalog.load("starling-reward-tails", "adversarial")
    reward = ds["reward"].values
    assert reward.size == 40 and (reward.mean(), reward.min(), reward.max()) == pytest.approx(
        (4.814, 2.238, 8.373), abs=5e-4
    )
    assert json.loads(ds.attrs["files"]).keys() == {"acg_optimised_rewards.csv"}
