"""The catalogue's front door: names, refusals with a hint, status, no network at import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scalingkit import catalog
from scalingkit.catalog import CatalogError, _registry
from scalingkit.catalog._table import Fit


def test_hyphens_and_underscores_name_the_same_table():
    assert catalog.table("chinchilla_epoch_svg") is catalog.table("chinchilla-epoch-svg")
    assert catalog.card("gemstones").name == "gemstones"


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("chinchila-epoch-svg", "chinchilla-epoch-svg"), ("gadre", "gadre-overtraining"), ("olmo", "olmo-ladder")],
)
def test_an_unknown_table_is_refused_with_a_hint(wrong, meant):
    with pytest.raises(CatalogError, match=f"Did you mean.*{meant}"):
        catalog.load(wrong)


def test_an_unknown_subtable_option_or_value_is_refused_with_a_hint():
    with pytest.raises(CatalogError, match="no sub-table 'loses'.*Did you mean 'losses'"):
        catalog.load("gadre-overtraining", "loses")
    with pytest.raises(CatalogError, match="no option 'evals'.*Did you mean 'eval'"):
        catalog.load("gadre-overtraining", evals="c4_val")
    with pytest.raises(CatalogError, match="eval='c4' is not known"):
        catalog.load("gadre-overtraining", eval="c4")


def test_status_says_where_each_table_is_to_be_had(monkeypatch, tmp_path):
    monkeypatch.setenv("SCALINGKIT_DATA", "")
    monkeypatch.setenv("SCALINGKIT_CACHE", str(tmp_path))
    where = {row["name"]: row["available"] for row in catalog.status()}
    assert list(where) == catalog.names()
    assert where["chinchilla-epoch-svg"] == "download"
    assert where["gadre-overtraining"] == "download", "rebuilt from its originals"
    assert where["gemstones"] == "partly", "one of its sub-tables has no public address"
    assert where["porian-isoflop"] == "mirror-only"


def test_a_pickle_original_is_refused_in_words(monkeypatch, tmp_path):
    monkeypatch.setenv("SCALINGKIT_DATA", "")
    monkeypatch.setenv("SCALINGKIT_CACHE", str(tmp_path))
    with pytest.raises(CatalogError, match="pickle"):
        catalog.load("porian-isoflop")


def test_a_file_that_is_not_in_the_entry_is_refused():
    with pytest.raises(CatalogError, match="has no file"):
        _registry.entry("gemstones").file("nothing.csv")


def test_a_fit_must_give_room_for_every_expected_number():
    with pytest.raises(ValueError, match="different things"):
        Fit("chinchilla", {}, {"alpha": 0.3}, {}, "nowhere")
    with pytest.raises(ValueError, match="unknown options"):
        Fit("chinchilla", {"tabel": "x"}, {}, {}, "nowhere")


def test_the_import_reads_no_registry_and_opens_no_connection():
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise RuntimeError('network at import')\n"
        "socket.socket.connect = refuse\n"
        "import scalingkit.catalog as c\n"
        "assert 'pooch' not in sys.modules and 'requests' not in sys.modules\n"
        "assert c.names()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
