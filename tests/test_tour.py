"""The tour on the shipped table: it says that it is simulated, keeps what it made, and its truth is in the intervals."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scalingkit import catalog, tour
from scalingkit.core import notes
from scalingkit.worlds import corpora

ROOT = Path(__file__).resolve().parent.parent


def shipped_maker():
    spec = importlib.util.spec_from_file_location("simulated_table", ROOT / "tools" / "simulated_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_shipped_table_is_made_again_from_its_seed(monkeypatch):
    maker = shipped_maker()
    kept = pd.read_csv(ROOT / "data" / "simulated_corpora.csv")
    pd.testing.assert_frame_equal(maker.table(), kept)
    monkeypatch.setattr(maker, "SEED", maker.SEED + 1)
    assert not np.allclose(maker.table()["loss"], kept["loss"])


def test_without_a_public_table_the_shipped_one_says_that_it_is_simulated(monkeypatch):
    def nothing(name, **options):
        raise catalog.CatalogError("no network")

    monkeypatch.setattr(catalog, "load", nothing)
    runs = tour.table()
    assert "SIMULATED" in runs.attrs["data_name"]
    told = [n for n in notes.of(runs) if n.code == "simulated-data"]
    assert len(told) == 1 and "no network" in told[0].text


@pytest.mark.data
def test_with_one_the_public_table_is_used():
    runs = tour.table()
    assert runs.attrs["data_name"] == tour.TABLE and not [n for n in notes.of(runs) if n.code == "simulated-data"]


@pytest.mark.slow
def test_tour_on_the_shipped_table(tmp_path):
    answer = tour.tour(tmp_path, simulated=True, say=lambda text: None)
    assert answer.diagnostics["divergences"] == 0 and answer.diagnostics["rhat_max"] < 1.01
    assert answer.result["sections"]["How far to trust it"].startswith("SIMULATED DATA")
    html = (tmp_path / "report.html").read_text()
    assert "SIMULATED DATA" in html and (tmp_path / "posterior.zarr").is_dir()
    maker = shipped_maker()
    design = corpora.spread(maker.LABELS, np.geomspace(2e7, 5e9, 7), (5.0, 20.0))
    import jax

    truth = corpora.constants(jax.random.key(maker.SEED), design, **corpora.world.example["theta"])
    inside = [
        answer.result["parameters"][f"{k}[{c}]"]["lower"]
        < float(truth[k].sel(corpus=c))
        < answer.result["parameters"][f"{k}[{c}]"]["upper"]
        for k in ("E", "alpha", "beta")
        for c in maker.LABELS
    ]
    assert sum(inside) >= 6
