"""Posteriors of real tables: clean sampling, published values inside, calibrated, shrinkage seen, a ray not identified.

Slow: each fit is the full one that a user gets.
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from scalingkit import catalog
from scalingkit.core import notes
from scalingkit.core import runs as tables
from scalingkit.design.identify import identify
from scalingkit.infer.check import check
from scalingkit.infer.fit import fit
from scalingkit.infer.model import Model
from scalingkit.infer.pooling import Partial, Separate

pytestmark = [pytest.mark.slow, pytest.mark.data]
PUBLISHED = {"E": 1.817, "A": 482.01, "alpha": 0.3478, "B": 2085.43, "beta": 0.3658}  # Besiroglu et al. 2024
PARAMS = ("E", "A", "alpha", "B", "beta")


def clean(tree: xr.DataTree) -> bool:
    return tree.attrs["divergences"] == 0 and tree.attrs["rhat_max"] < 1.01 and tree.attrs["ess_bulk_min"] > 400


def inside(tree: xr.DataTree, values: dict[str, float]) -> dict[str, bool]:
    q = tree["posterior"].to_dataset()[list(values)].quantile([0.05, 0.95], ("chain", "draw"))
    return {k: bool(q[k][0] < v < q[k][1]) for k, v in values.items()}


@pytest.fixture(scope="module")
def chinchilla() -> xr.DataTree:
    return fit("chinchilla", catalog.load("chinchilla-epoch-svg"), seed=0)


@pytest.fixture(scope="module")
def gadre() -> xr.DataTree:
    return fit(
        Model(law="chinchilla", pool={k: Partial("corpus") for k in PARAMS}), catalog.load("gadre-overtraining"), seed=0
    )


def test_chinchilla_is_clean_and_holds_the_published_values(chinchilla):
    assert clean(chinchilla)
    assert all(inside(chinchilla, PUBLISHED).values()), inside(chinchilla, PUBLISHED)
    assert not all(inside(chinchilla, PUBLISHED | {"beta": 0.28}).values())  # Hoffmann's rounded value is not in


def test_hierarchical_fit_is_clean_and_calibrated_overall_and_by_corpus(gadre):
    assert clean(gadre)
    found = check(gadre)
    p = found["pit_p_value"].to_series()
    assert p["all"] > 0.01 and (p[[g for g in p.index if g.startswith("corpus=")]] > 0.01).all(), p
    narrow = gadre.copy()
    rep = narrow["posterior_predictive"]["loss"]
    middle = rep.median(("chain", "draw"))
    narrow["posterior_predictive"] = xr.DataTree((middle + (rep - middle) / 4).to_dataset(name="loss"))
    assert check(narrow)["pit_p_value"].sel(group="all") < 0.01


def test_pooling_shrinks_the_corpora_towards_each_other(gadre):
    runs = catalog.load("gadre-overtraining")
    alone = fit(Model(law="chinchilla", pool={k: Separate("corpus") for k in PARAMS}), runs, seed=0)
    for k in ("alpha", "beta"):
        apart, pooled = (float(t["posterior"][k].mean(("chain", "draw")).std()) for t in (alone, gadre))
        assert pooled < 0.7 * apart
        sd_apart, sd_pooled = (float(t["posterior"][k].std(("chain", "draw")).mean()) for t in (alone, gadre))
        assert sd_pooled < sd_apart


def test_a_ray_is_not_identified_and_says_so():
    runs = catalog.load("gadre-overtraining")
    ratio = (runs["D"] / runs["N"]).values
    ray = tables.select(runs, np.abs(np.log(ratio / 20)) < 0.15, "not on the ray of 20 tokens per parameter")
    tree = fit(Model(law="chinchilla"), ray, seed=0)
    codes = {n.code for n in [*notes.of(tree), *notes.of(identify(tree, ray))]}
    assert "not-identified" in codes
    assert "not identified" in identify(tree, ray).attrs["verdict"].lower()


def test_the_whole_table_is_identified(gadre):
    assert "not-identified" not in {n.code for n in [*notes.of(gadre), *notes.of(identify(gadre))]}
