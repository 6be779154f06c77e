"""Leaderboard tables: missing compute, slips of size and tokens, mixed score conventions, and recomputed numbers."""

from __future__ import annotations

import numpy as np
import pytest

from scalingkit import catalog
from scalingkit.catalog import CatalogError
from scalingkit.core import notes

pytestmark = pytest.mark.data

BENCHMARKS = ["MMLU", "ARC-C", "HellaSwag", "Winograd", "TruthfulQA", "GSM8K", "XWinograd", "HumanEval"]


def reasons(ds) -> dict[str, str]:
    """Label -> code of the quarantined rows."""
    return dict(zip(ds["quarantine_label"].values, ds["quarantine_code"].values, strict=True))


def principal_components(ds):
    """Shares of variance and the scores of the components: mean-imputed, centred, unscaled."""
    x = np.stack([ds[b].values for b in BENCHMARKS], axis=1)
    x = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
    u, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    return s**2 / (s**2).sum(), u * s


@pytest.mark.parametrize(
    ("name", "subtable", "rows_in", "rows_used"),
    [
        ("obs-scaling-full", "base", 148, 121), ("obs-scaling-full", "base_sub_10b", 92, 81), ("obs-scaling-full", "emergent", 84, 73),
        ("obs-scaling-full", "leaderboard_v2", 72, 55), ("obs-scaling-full", "post_training", 96, 85),
        ("obs-scaling-full", "instruct", 27, 20), ("obs-scaling-full", "agent", 27, 20),
        ("sloth-leaderboard", "v2", 188, 174), ("sloth-leaderboard", "v1", 197, 183), ("sloth-leaderboard", "floors", 106, 106),
        ("sloth-leaderboard", "agent", 27, 20), ("sloth-leaderboard", "tokens", 42, 34),
        ("statistical-scaling-law", "joined", 286, 283), ("statistical-scaling-law", "v1", 168, 167),
        ("statistical-scaling-law", "v2", 216, 214), ("statistical-scaling-law", "both", 98, 98),
    ],
)  # fmt: skip
def test_rows_add_up(name, subtable, rows_in, rows_used):
    ds = catalog.load(name, subtable)
    assert (ds.attrs["rows_in"], ds.attrs["rows_used"]) == (rows_in, rows_used)
    assert ds.sizes["run"] == rows_used and ds.sizes["quarantined"] == rows_in - rows_used
    if "C" in ds:
        assert np.allclose(ds["C"], 6 * ds["N"] * ds["D"], rtol=1e-12)


def test_observational_slips_are_named():
    found = reasons(catalog.load("obs-scaling-full"))
    assert found["cerebras/btlm-3b-8k-base"] == "slip"  # 627 trillion tokens
    assert found["openlm-research/open_llama_7b_v2"] == "slip"
    assert found["mistralai/Mixtral-8x22B-v0.1"] == "slip"
    assert found["openai-community/gpt2"] == "missing"
    kept = catalog.load("obs-scaling-full", slips="keep")
    assert float(kept["D"].sel(run="cerebras/btlm-3b-8k-base")) == 6.27e14
    assert float(kept["N"].sel(run="openlm-research/open_llama_7b_v2")) == 1.3e10
    assert kept.sizes["run"] == 123  # the mixtures have no tokens: still aside


def test_observational_scores_are_low_dimensional():
    ds = catalog.load("obs-scaling-full", slips="keep", without_compute="keep")
    assert ds.sizes["run"] == 148 and len(set(ds["family"].values)) == 47
    share, component = principal_components(ds)
    assert share[:4] == pytest.approx([0.830, 0.099, 0.039, 0.012], abs=6e-4)
    assert share[:3].sum() == pytest.approx(
        catalog.table("obs-scaling-full").published["pc_share_3_ours"].value, abs=6e-4
    )
    for family, expected in (("OPT", 0.98), ("Llama-2", 1.00), ("OLMo", 0.50)):
        rows = (ds["family"] == family).values & np.isfinite(ds["C"].values)
        r = np.corrcoef(np.log(ds["C"].values[rows]), component[rows, 0])[0, 1]
        assert r**2 == pytest.approx(expected, abs=6e-3)


def test_observational_scores_without_sizes_take_them_from_the_model_list():
    ds = catalog.load("obs-scaling-full", "emergent")
    row = ds.sel(run="meta-llama/Llama-2-7b-hf")
    assert (float(row["N"]), float(row["D"]), str(row["family"].values)) == (7e9, 2e12, "Llama-2")
    assert float(row["ipa_transliterate_2_bleu"]) == pytest.approx(0.2723879164406593)  # printed as 27.2...
    assert float(ds["ipa_transliterate_2_bleu"].max()) < 1


def test_naming_a_score_adds_its_error():
    plain, ds = catalog.load("obs-scaling-full"), catalog.load("obs-scaling-full", score="XWinograd")
    assert "error" not in plain
    assert np.allclose(ds["error"], 1 - ds["XWinograd"])
    assert ds.sizes["run"] == int(np.isfinite(plain["XWinograd"]).sum())
    with pytest.raises(CatalogError, match="Did you mean 'HellaSwag'"):
        catalog.load("obs-scaling-full", score="HelaSwag")


@pytest.mark.parametrize("name", ["obs-scaling-full", "sloth-leaderboard", "statistical-scaling-law"])
def test_error_lines_by_family(name):
    for fit in catalog.table(name).fits:
        ds = catalog.load(name, **fit.options["load"])
        ((coord, value),) = fit.options["where"].items()
        rows = ds.isel(run=(ds[coord] == value).values)
        assert rows.sizes["run"] == 8
        slope = np.polyfit(np.log(rows["C"]), np.log(rows["error"]), 1)[0]
        assert abs(-slope - fit.expected["alpha"]) <= fit.tolerance["alpha"]


def test_sloth_families_mix_recipes():
    ds = catalog.load("sloth-leaderboard", without_compute="keep", slips="keep")
    assert ds.sizes["run"] == 188 and len(set(ds["family"].values)) == 35
    pythia = ds.isel(run=(ds["family"] == "pythia").values)
    assert set(pythia["recipe"].values) == {"pythia", "dolly-v2"}
    assert {float(pythia["D"].sel(run=m)) for m in ("pythia-1b", "pythia-12b")} == {2.5e11, 3e11}
    for score, count in (("IFEval", 113), ("GPQA", 113), ("MMLU", 160), ("GSM8K", 160)):
        assert int(np.isfinite(ds[score]).sum()) == count
    assert set(ds["instruct"].values) == {"True", "False"}


def test_sloth_floors_and_rounding():
    floors = catalog.load("sloth-leaderboard", "floors")["floor"]
    assert float(floors.sel(run="GPQA")) == pytest.approx(0.23115) and float(floors.sel(run="GSM8K")) == 0
    ds = catalog.load("sloth-leaderboard")
    for score in ("IFEval", "BBH", "GPQA", "MUSR", "MMLU-PRO", "MATH Lvl 5"):
        values = ds[score].values[np.isfinite(ds[score].values)]
        assert np.allclose(values, values.round(2), atol=1e-9)
    assert {"v1", "v2"} < set(catalog.table("sloth-leaderboard").subtables)


def test_mixed_score_conventions_are_told_apart():
    ds = catalog.load("statistical-scaling-law", "v2", slips="keep")
    normalised = ds["scale"].values == "normalised"
    assert (normalised.sum(), (ds["scale"].values == "raw").sum()) == (111, 105)
    assert np.array_equal(np.isfinite(ds["gpqa_normalised"].values), normalised)
    assert np.array_equal(np.isnan(ds["gpqa"].values), normalised)
    assert float(ds["gpqa"].mean()) == pytest.approx(0.28, abs=0.01)
    assert float(ds["gpqa_normalised"].mean()) == pytest.approx(0.06, abs=0.005)
    assert np.isfinite(ds["ifeval"]).all()  # chance is 0 there: the same number either way
    assert "mixed-conventions" in {n.code for n in notes.of(ds)}
    as_filed = catalog.load("statistical-scaling-law", "v2", scale="file", slips="keep")
    assert "gpqa_normalised" not in as_filed and np.isfinite(as_filed["gpqa"]).all()
    assert "mixed-conventions" in {n.code for n in notes.of(as_filed)}
    assert not {n.code for n in notes.of(catalog.load("statistical-scaling-law", "v1"))} & {"mixed-conventions"}


def test_joined_leaderboards():
    ds = catalog.load("statistical-scaling-law", slips="keep")
    assert ds.sizes["run"] == 286 == len(set(ds["run"].values)) and len(set(ds["family"].values)) == 170
    assert {"l3-pneuma-8b", "l3-pneuma-8b#2"} <= set(ds["run"].values)  # two evaluations of one model
    both = np.isfinite(ds["arc"]) & np.isfinite(ds["ifeval"])
    assert int(both.sum()) == 98 == catalog.load("statistical-scaling-law", "both").sizes["run"]
    assert reasons(catalog.load("statistical-scaling-law"))["athena-gemma-2-2b-it"] == "slip"


def test_printed_slopes_of_the_latent_skills():
    published = catalog.table("statistical-scaling-law").published
    assert len(published) == 12
    assert published["factor_3_log_s"].value == 0.840 and "0.064" in published["factor_3_log_s"].where
    assert published["factor_3_log_s_log_t"].value == -0.039
