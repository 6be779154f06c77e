"""Tables of pretraining runs: rows, units, what each trap does, and a value checked by hand against the file."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from scalingkit import catalog

pytestmark = pytest.mark.data


def codes(ds) -> dict[str, int]:
    return dict(collections.Counter(ds["quarantine_code"].values.tolist()))


def row(ds, label: str):
    return ds.sel(run=label)


@pytest.fixture(autouse=True)
def _mirror(mirror):
    """Every test here reads the mirror."""


# name, sub-table, options -> rows used, quarantine by code
ROWS = [
    ("chinchilla-epoch-svg", None, {"rule": "all"}, 245, {}),
    ("chinchilla-epoch-svg", None, {}, 240, {"rule-besiroglu": 5}),
    ("gadre-overtraining", "losses", {}, 104, {}),
    ("gadre-overtraining", "downstream", {}, 104, {}),
    ("gadre-overtraining", "tasks", {}, 51, {}),
    ("colpret-hitchhiker", "opt", {}, 142, {}),
    ("colpret-hitchhiker", "datablations", {}, 9261, {}),
    ("colpret-hitchhiker", "olmo", {}, 1708, {}),
    ("colpret-hitchhiker", "convnets", {}, 21, {"copied": 5}),
    ("colpret-hitchhiker", "convnets", {"copies": "keep"}, 26, {}),
    ("datablations-data-constrained", "main", {}, 227, {"copied": 2}),
    ("datablations-data-constrained", "main", {"copies": "keep"}, 229, {}),
    ("datablations-data-constrained", "main", {"copies": "keep", "rule": "power-law"}, 109, {"rule-power-law": 120}),
    ("datablations-data-constrained", "seeds", {}, 64, {}),
    ("datablations-data-constrained", "dedup", {}, 12, {}),
    ("domain-mixture", "train", {}, 400, {}),
    ("domain-mixture", "eval", {}, 120, {}),
    ("gemstones", "hot-100b", {}, 770, {}),
    ("gemstones", "hot", {}, 220, {}),
    ("gemstones", "hot-477", {}, 1100, {}),
    ("gemstones", "cool-end", {}, 199, {}),
    ("gemstones", "lr-ablation", {}, 200, {}),
    ("gemstones", "published-fits", {}, 42, {}),
    ("isoflop-collection", "marin", {}, 239, {"too_few_points": 18, "spline_outlier": 1}),
    ("isoflop-collection", "marin", {"outliers": "keep"}, 258, {}),
    ("isoflop-collection", "marin-raw-nemotron", {}, 96, {}),
    ("misfitting-survey", "final", {}, 260, {"duplicate": 1}),
    ("misfitting-survey", "final", {"duplicates": "keep"}, 261, {}),
    ("misfitting-survey", "best-lr", {}, 81, {"not-best-lr": 180}),
    ("misfitting-survey", "checkpoints", {}, 4850, {"duplicate": 2}),
    ("porian-isoflop", "standard", {}, 940, {}),
    ("porian-isoflop", "kaplan", {}, 324, {}),
    ("porian-isoflop", "attention", {}, 481, {}),
    ("porian-isoflop", "optimal", {}, 173, {"missing": 4}),
    ("revisiting-nsl", "vision", {}, 18883, {}),
    ("revisiting-nsl", "language", {}, 712, {"duplicate": 687}),
    ("revisiting-nsl", "language", {"duplicates": "keep"}, 1399, {}),
    ("routed-lm", "final", {}, 223, {}),
    ("step-law", "dense", {}, 1730, {"diverged": 181}),
    ("step-law", "dense", {"diverged": "keep"}, 1911, {}),
    ("step-law", "dense-best", {}, 17, {"diverged": 181, "not-best": 1713}),
    ("step-law", "moe-best", {}, 16, {"not-best": 692}),
    ("step-law", "bootstrap", {}, 1000, {}),
    ("olmo-ladder", "final", {}, 32, {"overlap": 7, "not-final": 2}),
    ("olmo-ladder", "final", {"overlaps": "keep"}, 41, {}),
    ("openclip-scaling", "zeroshot", {}, 1216, {"average": 96}),
    ("openclip-scaling", "zeroshot", {"averages": "keep"}, 1312, {}),
]


@pytest.mark.parametrize(("name", "subtable", "options", "used", "aside"), ROWS)
def test_rows_and_what_is_set_aside(name, subtable, options, used, aside):
    ds = catalog.load(name, subtable, **options)
    assert ds.sizes["run"] == used
    assert codes(ds) == aside


def test_chinchilla_tokens_follow_from_compute_and_the_rule_names_the_first_five_rows():
    ds = catalog.load("chinchilla-epoch-svg", rule="besiroglu")
    np.testing.assert_allclose(ds["C"], 6 * ds["N"] * ds["D"], rtol=1e-12)
    assert ds["quarantine_row"].values.tolist() == [0, 1, 2, 3, 4]
    everything = catalog.load("chinchilla-epoch-svg", rule="all")
    first = everything.isel(run=0)
    assert float(first["N"]) == pytest.approx(6795600349.29, rel=1e-12)
    assert float(first["loss"]) == pytest.approx(5.005581996, rel=1e-9)
    assert float(first["D"]) == pytest.approx(9.993852799709755e18 / 6 / 6795600349.289497)
    assert everything["D"].attrs["units"] == "token" and everything["loss"].attrs["units"] == "nat"


def test_gadre_evaluation_error_and_choice_of_set_and_of_parameters():
    ds = catalog.load("gadre-overtraining")
    first = row(ds, "c4_original-d=1024_l=24_h=8-0.25")
    assert float(first["N"]) == 411616256 and float(first["D"]) == 2058081280
    assert float(first["loss_se"]) == pytest.approx((3.53053282244497 - 3.525283367304321) / 3.92)
    assert float(first["tokens_per_param"]) == 5
    corpora, counts = np.unique(ds["corpus"], return_counts=True)
    assert dict(zip(corpora.tolist(), counts.tolist(), strict=True)) == {"c4": 34, "rpj": 35, "rw": 35}
    other = row(catalog.load("gadre-overtraining", eval="openlm", params="non-embedding"), str(first["run"].values))
    assert float(other["loss"]) == pytest.approx(4.257023584842682)
    assert float(other["N"]) == 359973888 and float(other["C"]) == pytest.approx(6 * 359973888 * 2058081280)
    assert catalog.load("gadre-overtraining", params="non-embedding").attrs["params_kind"] == "non-embedding"
    assert not [v for v in ds.data_vars if "bs" in v], "the batch-size field is not to be modelled"


def test_gadre_downstream_error_is_one_minus_the_mean_of_46_accuracies():
    ds = catalog.load("gadre-overtraining", "downstream")
    tasks = [v for v in ds.data_vars if v.startswith("acc_")]
    assert len(tasks) == 46
    np.testing.assert_allclose(ds["error"], 1 - ds[tasks].to_array().mean("variable"), rtol=1e-12)


def test_opt_logarithms_and_perplexity_are_converted():
    ds = catalog.load("colpret-hitchhiker", "opt")
    first = row(ds, "125m/2000")
    assert float(first["D"]) == pytest.approx(1e9) and float(first["C"]) == pytest.approx(7.5e17)
    assert float(first["loss"]) == pytest.approx(np.log(67.52265444245277))
    np.testing.assert_allclose(ds["C"], 6 * ds["N"] * ds["D"], rtol=1e-9)


def test_olmo_tokens_are_steps_times_batch_and_the_evaluation_set_is_named():
    ds = catalog.load("colpret-hitchhiker", "olmo")
    assert float(row(ds, "OLMo-1B/738000")["D"]) == pytest.approx(3095e9, rel=1e-3), "the run's own name says 3095B"
    assert float(row(ds, "OLMo-7B/556000")["D"]) == pytest.approx(2460e9, rel=1e-3), "the run's own name says 2460B"
    sizes = {e: set(ds["family"].values[ds["eval"].values == e]) for e in set(ds["eval"].values)}
    assert sizes == {"c4_en-validation": {"7B"}, "v3-small-c4_en-validation": {"1B"}}
    assert float(row(ds, "OLMo-7B-Twin-2T/1000")["loss"]) == pytest.approx(np.log(90.23265075683594))


def test_datablations_curves_ignore_the_misscaled_flops():
    ds = catalog.load("colpret-hitchhiker", "datablations")
    assert len(np.unique(ds["trajectory"])) == 48
    first = row(ds, "2.8B/c4/44 epochs/104857600")
    assert float(first["C"]) == pytest.approx(6 * 2.8e9 * 104857600), "the file says 4.9e23"
    assert (ds["U"] <= ds["D"]).all()


def test_repeated_data_columns_are_not_swapped_and_the_shared_loss_is_set_aside():
    ds = catalog.load("datablations-data-constrained", "all")
    assert (ds["U"] <= ds["D"]).all()
    np.testing.assert_allclose(ds["epochs"], ds["D"] / ds["U"], rtol=1e-12)
    assert sorted(ds["quarantine_label"].values.tolist()) == ["83m32b100m/main", "83m60b100m/main"]
    seeds = catalog.load("datablations-data-constrained", "seeds")
    assert set(seeds["seed"].values) == {"1", "2", "3", "4"}
    assert float(row(ds, "2b84b4b/main")["loss"]) == 3.265024


def test_mixture_shares_sum_to_one_and_each_domain_has_its_own_share():
    ds = catalog.load("domain-mixture")
    shares = ds[[f"share_{i}" for i in range(1, 6)]].to_array()
    np.testing.assert_allclose(shares.sum("variable"), 1, atol=1e-9)
    third = ds.isel(run=2)
    assert str(third["domain"].values) == "3" and float(third["share"]) == 0.0625
    assert float(third["loss"]) == pytest.approx(3.2075157752403847)
    assert set(ds["family"].values) == {"70M", "160M", "305M", "410M"}


def test_gemstones_is_a_full_grid_of_22_runs():
    ds = catalog.load("gemstones")
    assert len(np.unique(ds["trajectory"])) == len(np.unique(ds["family"])) == 22
    assert abs(np.corrcoef(np.log(ds["N"]), np.log(ds["D"]))[0, 1]) < 1e-8
    first = row(ds, "PyGemma-1024x28_pretrain/2385")
    assert float(first["N"]) == 543482880 and float(first["loss"]) == 3.1010556221
    assert float(first["width"]) == 1024 and float(first["depth"]) == 28
    fits = catalog.load("gemstones", "published-fits")
    chosen = row(fits, "0.0001/approach_3_parameters_grid_search_0_hot_100b+")
    assert float(chosen["alpha"]) == 0.2575546364 and float(chosen["log_E"]) == pytest.approx(0.6655, abs=1e-4)


def test_isoflop_subtables_partition_the_file_and_never_pool_two_readings():
    parts = ["marin", "chinchilla-epoch", "chinchilla-scalefit", "llama-3", "llama-3-raw", "misfitting"]
    tables = {p: catalog.load("isoflop-collection", p) for p in parts}
    assert sum(t.attrs["rows_in"] for t in tables.values()) == 947
    assert {len(np.unique(t["experiment"])) for p, t in tables.items() if p != "marin"} == {1}
    assert sorted(np.unique(tables["marin"]["corpus"])) == ["comma", "dclm", "nemotron"]
    kept = [tables[p].sizes["run"] for p in parts]
    assert kept == [239, 85, 89, 115, 116, 106]


def test_llama_readings_are_one_data_set_on_two_scales():
    raw, exp = (catalog.load("isoflop-collection", s, outliers="keep") for s in ("llama-3-raw", "llama-3"))
    np.testing.assert_allclose(np.exp(raw["loss"].values), exp["loss"].values, rtol=1e-9)


def test_marin_raw_compute_is_in_flop_and_validation_runs_are_told_apart():
    ds = catalog.load("isoflop-collection", "marin-raw-nemotron")
    held = ds.isel(run=ds["role"].values == "validation")
    assert held.sizes["run"] == 8
    best = held.isel(run=int(held["C"].values.argmax()))
    assert float(best["C"]) == pytest.approx(1e21, rel=1e-4)
    assert float(best["N"]) == 3383110656 and float(best["loss"]) == pytest.approx(2.7655, abs=1e-4)


def test_misfitting_reads_flop_beyond_64_bit_integers():
    ds = catalog.load("misfitting-survey")
    assert float(ds["C"].max()) > 2**63
    np.testing.assert_allclose(ds["C"], 6 * ds["N"] * ds["D"], rtol=1e-6)
    assert len(np.unique(ds["family"])) == 11


def test_misfitting_keeps_the_best_learning_rate_of_each_cell():
    best, final = catalog.load("misfitting-survey", "best-lr"), catalog.load("misfitting-survey")
    lowest = final[["N", "D", "loss"]].to_dataframe().groupby(["N", "D"])["loss"].min()
    found = best[["N", "D", "loss"]].to_dataframe().set_index(["N", "D"])["loss"]
    np.testing.assert_allclose(found.sort_index(), lowest.sort_index())


def test_porian_compute_is_six_n_d_and_trajectories_follow_the_schedule():
    ds = catalog.load("porian-isoflop")
    np.testing.assert_allclose(ds["C"], 6 * ds["N"] * ds["D"], rtol=1e-12)
    own = ds["decay"].values == "chinchilla"
    assert len(set(ds["trajectory"].values[own])) == own.sum(), "one run a point under the Chinchilla schedule"
    assert len(set(ds["trajectory"].values[~own])) < (~own).sum() / 5, "one run's curve gives many budgets otherwise"
    assert set(ds["split"].values) == {"val"}
    fits = catalog.load("porian-isoflop", "published-fits")
    tuned = row(fits, "rw/tuned/short/const/standard/val/weighted")
    assert float(tuned["N_exponent"]) == pytest.approx(0.497, abs=5e-4)


def test_revisiting_has_92_curves_each_with_both_splits():
    ds = {s: catalog.load("revisiting-nsl", s) for s in ("vision", "language")}
    assert {s: len(np.unique(d["trajectory"])) for s, d in ds.items()} == {"vision": 72, "language": 20}
    for d in ds.values():
        pairs = set(zip(d["trajectory"].values.tolist(), d["split"].values.tolist(), strict=True))
        assert len(pairs) == 2 * len(np.unique(d["trajectory"]))


def test_routed_final_is_one_row_a_setting_at_one_training_length():
    ds = catalog.load("routed-lm")
    assert len(set(ds["trajectory"].values)) == 223
    assert ds["step"].values.min() >= 248000
    dense = ds.isel(run=ds["family"].values == "Dense")
    assert dense.sizes["run"] == 13 and (dense["experts"] == 1).all()
    np.testing.assert_allclose(dense["N"], dense["N_total"])
    curves = catalog.load("routed-lm", "curves")
    assert codes(curves)["missing"] == 8 and (curves["C"] > 0).all()


def test_step_law_gap_between_diverged_and_trained_runs():
    everything = catalog.load("step-law", diverged="keep")
    loss = everything["loss"].values
    assert loss[loss < 4].max() < 3.2 and loss[loss > 4].min() > 4.1, "the threshold stands in a gap"
    cells = np.unique(everything["cell"], return_counts=True)[1]
    assert cells.size == 17 and cells.min() == 47
    moe = catalog.load("step-law", "moe")
    assert moe.attrs["params_kind"] == "active" and (moe["N"] < moe["N_total"]).all()
    first = everything.isel(run=0)
    assert float(first["batch"]) == 736 * 2048


def test_step_law_bootstrap_medians_are_the_published_law():
    ds = catalog.load("step-law", "bootstrap")
    published = catalog.table("step-law").published
    assert float(ds["lr_N_exponent"].median()) == pytest.approx(published["lr* exponent of N"].value, abs=2e-3)
    assert float(ds["lr_D_exponent"].median()) == pytest.approx(published["lr* exponent of D"].value, abs=2e-3)
    assert float(ds["batch_coefficient"].median()) == pytest.approx(published["batch* coefficient"].value, abs=0.01)


def test_olmo_targets_and_reruns():
    ds = catalog.load("olmo-ladder")
    roles, counts = np.unique(ds["role"], return_counts=True)
    assert dict(zip(roles.tolist(), counts.tolist(), strict=True)) == {"ladder": 30, "target-13B": 1, "target-7B": 1}
    big = row(ds, "peteish13_eval_final")
    assert float(big["D"]) == 596057 * 8388608 and float(big["loss"]) == pytest.approx(2.4376, abs=1e-4)
    gaps = [
        abs(float(row(ds, f"{s}-1xC")["loss"] - row(ds, f"{s}-1xC-rerun")["loss"]))
        for s in ("190M", "370M", "760M", "1B", "3B")
    ]
    assert min(gaps) > 4e-4 and max(gaps) < 1.2e-3


def test_olmo_checkpoints_appear_once():
    ds = catalog.load("olmo-ladder", "trajectories")
    pairs = list(zip(ds["trajectory"].values.tolist(), ds["step"].values.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)


def test_openclip_scores_and_averages():
    ds = catalog.load("openclip-scaling")
    assert len({(m, a) for m, a in zip(ds["model"].values, ds["family"].values, strict=True)}) == 32
    assert not {"vtab", "vtab+", "imagenet_robustness"} & set(ds["problem"].values)
    retrieval = ds.isel(run=ds["task"].values == "zeroshot_retrieval")
    np.testing.assert_allclose(retrieval["error"], 1 - retrieval["recall"])
    h14 = ds.isel(run=(ds["family"].values == "ViT-H-14") & (ds["problem"].values == "imagenet1k"))
    assert float(h14["error"].item()) == pytest.approx(0.22, abs=5e-3), "77.96% top-1 is well known"
    assert float(h14["macs"].item()) == pytest.approx(6631508868008.96e9)
