"""A derived table is made again, byte for byte, from files laid out as its public originals are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest

from scalingkit import catalog
from scalingkit.catalog import CatalogError, _registry, _store
from scalingkit.catalog.gadre_overtraining import EVALS, rebuild_accuracies, rebuild_losses

SPELLED = {"paloma_falcon_refinedweb": "paloma_falcon-refinedweb", "de_en": "de-en"}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def registered(name: str, file: str) -> _registry.File:
    return _registry.entry(name).file(file)


def model_file(row: dict) -> dict:
    """One original as the source lays it out, from one row of the table."""
    settings = {
        "model": f"training/open_lm_configs/{row['arch']}.json", "tokens": row["tokens"], "warmup": row["warmup_steps"],
        "lr": row["lr"], "wd": row["wd"], "cd": row["lr_cooldown_end"], "global_bs": row["global_bs_field"],
        "params": row["params"], "params_no_embed": row["params_no_embed"], "chinchilla_multiplier": row["chinchilla_multiplier"],
    }  # fmt: skip
    order = ("openlm", "c4_val", *(e for e in EVALS if e not in ("openlm", "c4_val")))
    results = [
        {
            "loss": row[f"loss_{e}"],
            "loss_sequences_lower_95": row[f"loss_{e}_lo95"],
            "loss_sequences_upper_95": row[f"loss_{e}_hi95"],
            "val_data": [f"training/eval_data/val_tok_mult/{SPELLED.get(e, e)}/shard_00000000.tar"],
        }
        for e in order
    ]
    return {
        "name": row["name"],
        "dataset_name": row["train_corpus"],
        "hyperparameters": settings,
        "results": results,
        "uuid": row["uuid"],
    }


def put(folder: Path, files: dict[str, dict]) -> dict[str, Path]:
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return {name: folder / name for name in files}


@pytest.mark.data
def test_losses_of_the_testbed_are_rebuilt_byte_for_byte(mirror, tmp_path):
    file = registered("gadre-overtraining", "models_losses.csv")
    rows = pd.read_csv(mirror / "gadre-overtraining" / file.name).to_dict("records")
    originals = {f"{row['name']}.json": model_file(row) for row in rows}
    assert [o["name"] for o in file.origins] == list(originals)
    assert sha256(rebuild_losses(put(tmp_path, originals))) == file.sha256
    originals["rpj-open_lm_7b-1.0.json"]["results"][0]["loss"] += 1e-9
    assert sha256(rebuild_losses(put(tmp_path, originals))) != file.sha256


@pytest.mark.data
def test_accuracies_of_the_testbed_are_rebuilt_byte_for_byte(mirror, tmp_path):
    file = registered("gadre-overtraining", "models_downstream_acc.csv")
    rows = pd.read_csv(mirror / "gadre-overtraining" / file.name).to_dict("records")
    originals = {
        f"evaluation_{row.pop('name')}_heavy.json": {"eval_metrics": {"icl": {k[4:]: v for k, v in row.items()}}}
        for row in rows
    }
    assert [o["name"] for o in file.origins] == list(originals)
    assert sha256(rebuild_accuracies(put(tmp_path, originals))) == file.sha256


def test_what_the_registry_calls_rebuilt_has_a_function_and_origins():
    for name in catalog.names():
        files = [f for f in _registry.entry(name).files if f.rebuilt]
        assert {f.name for f in files} == set(catalog.table(name).rebuild)
        assert all(f.origins for f in files)


def test_a_rebuilt_file_that_differs_is_refused_and_not_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("SCALINGKIT_DATA", "")
    monkeypatch.setenv("SCALINGKIT_CACHE", str(tmp_path))
    origin = {"url": "unused", "sha256": "0" * 64, "bytes": 1, "name": "a.json"}
    file = _registry.File("t.csv", sha256(b"right"), 5, derived="so", origins=(origin,), rebuilt=True)
    entry = _registry.Entry("toy", "Toy", "MIT", "Nobody", "https://example.org", "0" * 40, (file,))
    (tmp_path / "toy").mkdir()
    monkeypatch.setattr(_store, "_download", lambda entry, file: tmp_path / file.name)
    with pytest.raises(CatalogError, match=r"rebuilt from 1 .* differs"):
        _store.fetch(entry, file, lambda origins: b"wrong")
    assert not (tmp_path / "toy" / "t.csv").exists()
    assert _store.fetch(entry, file, lambda origins: b"right").read_bytes() == b"right"
    with pytest.raises(CatalogError, match="cannot be downloaded"):
        _store.fetch(entry, _registry.File("u.csv", "1" * 64, 1, derived="so", rebuilt=True, origins=(origin,)))
