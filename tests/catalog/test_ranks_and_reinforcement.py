"""Ranks against width, reinforcement learning against UTD, and tables that hold printed constants only."""

from __future__ import annotations

import numpy as np
import pytest

from scalingkit import catalog
from scalingkit.catalog import CatalogError
from scalingkit.catalog.tsp_complexity_fits import parse
from scalingkit.core import notes

mirrored = pytest.mark.data


def select(ds, fit):
    keep = np.ones(ds.sizes["run"], dtype=bool)
    for coord, value in fit.options.get("where", {}).items():
        keep &= (ds[coord] == value).values
    return ds.isel(run=keep)


def slope(rows, fit) -> float:
    x, y = (rows[fit.options["rename"][k]] for k in "xy")
    return -np.polyfit(np.log(x), np.log(y), 1)[0]


@mirrored
def test_rank_exponents_are_the_printed_ones():
    table = catalog.table("optimizer-spectral-scaling")
    printed = catalog.load("optimizer-spectral-scaling", "beta")
    main = printed.isel(run=(printed["points"] == "global").values)
    assert main.sizes["run"] == 10
    for row in range(10):
        one = main.isel(run=row)
        ds = catalog.load("optimizer-spectral-scaling", "global")
        here = ds.isel(run=((ds["family"] == one["family"]) & (ds["metric"] == one["metric"])).values)
        beta = np.polyfit(np.log(here["width"]), np.log(here["rank"]), 1)[0]
        assert beta == pytest.approx(float(one["beta"]), abs=1e-12)
    for fit in table.fits:
        rows = select(catalog.load("optimizer-spectral-scaling", **fit.options["load"]), fit)
        assert slope(rows, fit) == pytest.approx(fit.expected["alpha"], abs=fit.tolerance["alpha"])


@mirrored
def test_readme_headlines_of_rank_exponents():
    beta = catalog.load("optimizer-spectral-scaling", "beta")["beta"]
    published = catalog.table("optimizer-spectral-scaling").published
    for key, run in (
        ("beta_hard_adamw", "global/AdamW/hard_rank/global"), ("beta_tail_adamw", "buckets/AdamW/hard_rank/tail"),
        ("beta_tail_muon", "buckets/Muon/hard_rank/tail"),
    ):  # fmt: skip
        assert float(beta.sel(run=run)) == pytest.approx(published[key].value, abs=5e-3)


@mirrored
@pytest.mark.parametrize(
    ("subtable", "rows"),
    [("global", 80), ("buckets", 240), ("dion_sweep", 80), ("tail_350m", 32), ("trajectories", 732), ("beta", 76),
     ("beta_dynamics", 183), ("head_counts", 60), ("runs", 40)],
)  # fmt: skip
def test_rank_rows(subtable, rows):
    ds = catalog.load("optimizer-spectral-scaling", subtable)
    assert ds.sizes["run"] == rows == ds.attrs["rows_in"] and len(set(ds["run"].values)) == rows


@mirrored
def test_rank_traps():
    ds = catalog.load("optimizer-spectral-scaling")
    assert set(ds["metric"].values) == {"soft_rank", "hard_rank"}
    assert int((ds["rank_low"] <= 0).sum()) == 11
    assert set(catalog.load("optimizer-spectral-scaling", "runs")["seed"].values) == {"not_recorded"}
    assert set(catalog.load("optimizer-spectral-scaling", "trajectories")["width"].values) == {768, 1536, 3072, 6144}
    fraction = catalog.load("optimizer-spectral-scaling", "tail_350m")
    assert set(fraction["rank_fraction"].values) == {"", "1/16"}
    soft = ds.sel(run="160m_adamw_1x/soft_rank/global")
    assert float(soft["rank"]) == pytest.approx(430.83475823153265) and float(soft["width"]) == 768


@mirrored
def test_steps_to_threshold_are_censored_where_not_reached():
    ds, kept = catalog.load("qscaled-gym"), catalog.load("qscaled-gym", censored="keep")
    assert (ds.attrs["rows_in"], ds.sizes["run"], kept.sizes["run"]) == (1600, 1593, 1600)
    assert set(ds["quarantine_code"].values) == {"right-censored"} and not ds["censored"].any()
    missed = kept.isel(run=(kept["censored"] == 1).values)
    assert missed.sizes["run"] == 7 and (missed["env_steps"] == missed["max_env_step"]).all()
    row = ds.sel(run="gym_baseline_utd2/Ant-v4/0.25/256/0.0001/100")
    assert (float(row["env_steps"]), float(row["n_seeds"])) == (71_001, 8)
    with pytest.raises(CatalogError, match="quarantine, keep"):
        catalog.load("qscaled-gym", censored="drop")


@mirrored
def test_copied_seeds_are_set_aside():
    ds = catalog.load("qscaled-gym", "curves")
    assert (ds.attrs["rows_in"], ds.sizes["run"], ds.sizes["sample"], ds.sizes["quarantined"]) == (1589, 1496, 100, 93)
    assert ds["episode_return"].dims == ("run", "sample") and set(ds["duplicate_of"].values) == {"-1"}
    everything = catalog.load("qscaled-gym", "curves", copies="keep")
    assert everything.sizes["run"] == 1589
    copy = int(np.flatnonzero(everything["duplicate_of"].values != "-1")[0])
    label = str(everything["run"].values[copy])
    original = label.rsplit("/", 1)[0] + "/" + str(everything["duplicate_of"].values[copy])
    assert label in ds["quarantine_label"].values
    same = everything["episode_return"].sel(run=[label, original]).values
    assert np.array_equal(same[0], same[1])
    other = everything["episode_return"].isel(run=[0, 1]).values
    assert not np.array_equal(other[0], other[1])
    steps = ds["env_step"].isel(run=0).values
    assert (np.diff(steps) > 0).all() and steps[0] == pytest.approx(20_500.949)


@mirrored
def test_slopes_of_the_fitted_hyperparameters():
    fits = [f for f in catalog.table("qscaled-gym").fits if f.law == "power"]
    assert len(fits) == 6
    for fit in fits:
        rows = select(catalog.load("qscaled-gym", **fit.options["load"]), fit)
        assert rows.sizes["run"] == 7
        assert slope(rows, fit) == pytest.approx(fit.expected["alpha"], abs=fit.tolerance["alpha"])


@mirrored
def test_printed_pareto_fits():
    ds = catalog.load("qscaled-gym", "pareto")
    ours = ds.isel(run=((ds["kind"] == "data_pareto_fit") & (ds["suite"] == "gym_ours")).values)
    assert ours["a"].values == pytest.approx(
        [0.757, 0.824, 0.783, 0.752, 0.745, 0.691, 0.701, 0.580, 0.756, 0.700], abs=6e-4
    )


@mirrored
def test_superposition_constants():
    ds = catalog.load("superposition-llm-fits")
    assert ds.sizes["run"] == 16 and "loss" not in ds
    assert float(ds["irreducible_loss"].sel(run="pythia/pile")) == 1.5203
    assert set(ds["alpha"].values) == {0.9098} and set(ds["A"].values) == {476.0763}
    assert int(ds["n_models"].groupby("family").first().sum()) == 27
    assert "constants-only" in {n.code for n in notes.of(ds)}
    toy = catalog.load("superposition-llm-fits", "toy_slopes")
    assert float(toy["slope"].sel(run="linear")) == -0.88639


@mirrored
def test_tsp_constants():
    ds = catalog.load("tsp-complexity-fits")
    assert (ds.attrs["rows_in"], ds.sizes["run"], ds.sizes["quarantined"]) == (83, 77, 6)
    assert set(ds["quarantine_code"].values) == {"duplicate"}
    published = catalog.table("tsp-complexity-fits").published
    for key, run in (
        ("compute_exponent_ppo", "figure 1/ppo comp subopt avg"), ("parameter_exponent_sft", "figure 1/sft param subopt avg"),
        ("optimal_size_exponent_ppo", "figure 1/ppo opt model size"), ("node_exponent_sft", "figure 3/subopt sft node"),
    ):  # fmt: skip
        assert float(ds["exponent"].sel(run=run)) == published[key].value
    assert set(ds["form"].values) == {
        "power decay",
        "power saturation",
        "power growth",
        "exponential",
        "subexponential",
    }
    tours = catalog.load("tsp-complexity-fits", "tours")
    assert tours.sizes["run"] == 6 and float(tours["length"].sel(run="drl n40")) == 5.25481


def evaluate(c, x):
    """The printed expression from its constants."""
    if c["form"] == "power growth":
        return ((x - c["shift"]) / c["scale"]) ** c["exponent"]
    if c["form"].startswith("power"):
        return c["asymptote"] + c["sign"] * (c["scale"] / (x - c["shift"])) ** c["exponent"]
    return c["asymptote"] + c["sign"] * c["scale"] / c["base"] ** (x ** (1 / c["root"]))


@pytest.mark.parametrize(
    ("text", "x", "y"),
    [
        ("y = (8.0 / (x))^0.5", 2.0, 2.0),
        ("y = ((x) / 4.0)^2.0", 8.0, 4.0),
        ("y = ((x - -1.0) / 2.0)^2.0", 3.0, 4.0),
        ("y = 5.0 - (2.0 / (x))^3.0", 1.0, -3.0),
        ("y = 5.0 + (2.0 / (x - 1.0))^3.0", 2.0, 13.0),
        ("y = 0.5 - (8.0 / 2.0^(x))", 4.0, 0.0),
        ("y = 0.5 + (8.0 / 2.0^(x^(1/2.0)))", 16.0, 1.0),
        ("y = (1e-08 / (x))^1.0", 1e-9, 10.0),
    ],
)
def test_printed_expressions_mean_what_they_say(text, x, y):
    assert evaluate(parse(text), x) == pytest.approx(y)


def test_an_unknown_expression_is_refused():
    with pytest.raises(CatalogError, match="cannot read"):
        parse("y = sin(x)")


@mirrored
@pytest.mark.parametrize(
    "name",
    ["bon-jailbreak-counts", "llmonkeys-pythia-math", "o1-mini-aime-tokens", "obs-scaling-full", "optimizer-spectral-scaling",
     "pythia-ckpt-passk", "pythia-gsm8k-nll", "qscaled-gym", "sloth-leaderboard", "starling-reward-tails",
     "statistical-scaling-law", "superposition-llm-fits", "tsp-complexity-fits"],
)  # fmt: skip
def test_every_subtable_has_units_and_meanings(name):
    shown = catalog.show(name)
    assert shown["traps"] and shown["licence"] and shown["citation"] and shown["columns"]
    for subtable in shown["subtables"]:
        ds = catalog.load(name, subtable)
        assert (
            ds.attrs["rows_in"]
            == ds.attrs["rows_used"] + ds.attrs["rows_quarantined"]
            == ds.attrs["rows_used"] + ds.sizes["quarantined"]
        )
        for k, v in ds.data_vars.items():
            if "quarantined" not in v.dims:
                assert v.attrs["units"] and v.attrs["meaning"] and v.dtype == np.float64, k
