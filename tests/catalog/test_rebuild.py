"""A derived table is made again, byte for byte, from files laid out as its public originals are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest

from scalingkit import catalog
from scalingkit.catalog import CatalogError, _registry, _store
from scalingkit.catalog.datablations_data_constrained import UNLISTED, _run, rebuild_runs
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


SIZES = {
    "7m": 7.098752e6, "14m": 1.41e7, "20m": 19.703712e6, "25m": 35.5e6, "44m": 4.4e7, "83m": 8.27e7, "146m": 1.465e8, "196m": 201.236224e6,
    "220m": 2.205e8, "221m": 2.205e8, "280m": 2.81e8, "421m": 4.212e8, "574m": 573.7e6, "619m": 6.187e8, "1b1": 1.0963e9,
    "1b5": 1.5173e9, "2b2": 2.160013824e9, "2b8": 2.81e9, "3b8": 3.581186048e9, "3b9": 3.89971072e9, "4b2": 4.2465e9, "8b7": 8.67e9,
}  # fmt: skip
AMOUNTS = {
    "100m": 0.1, "200m": 0.2, "400m": 0.4, "800m": 0.8, "1b25": 1.25, "1b5": 1.5, "1b9": 1.9, "2b7": 2.7, "2b8": 2.8, "3b9": 3.9,
    "5b9": 5.9, "7b5": 7.5, "14b": 14, "20b": 20, "174b": 174,
}  # fmt: skip


def notebook(losses: dict[str, float]) -> dict:
    """A notebook laid out as the source's: one cell of dict literals with comments, after one of text."""
    lines = [f'    "{k}": {v:.6E}, # a comment' for k, v in losses.items()] + [
        '    "3b926b400m": 0,',
        '    "8b7178b25bopt": 2.358995E+00,',
    ]
    source = "\n".join(
        ["# data", "NAMES_TO_VAL_LOSSES = {", *lines, "}", f"TOKENS_MAP = {AMOUNTS}", f"PARAMS_MAP = {SIZES}"]
    )
    cells = [
        {"cell_type": "markdown", "source": ["NAMES_TO_VAL_LOSSES = {"]},
        {"cell_type": "code", "source": source.splitlines(True)},
    ]
    return {"cells": cells}


@pytest.mark.data
def test_repeated_data_runs_are_rebuilt_byte_for_byte(mirror, tmp_path):
    file = registered("datablations-data-constrained", "runs.csv")
    rows = pd.read_csv(mirror / "datablations-data-constrained" / file.name)
    losses = dict(zip(rows["name"], rows["val_loss"], strict=True))
    assert [o["name"] for o in file.origins] == ["return_alloc.ipynb"]
    assert sha256(rebuild_runs(put(tmp_path, {"return_alloc.ipynb": notebook(losses)}))) == file.sha256
    losses["2b84b4b"] += 1e-6
    assert sha256(rebuild_runs(put(tmp_path, {"return_alloc.ipynb": notebook(losses)}))) != file.sha256


def test_names_of_repeated_data_runs_are_read_in_the_one_way_that_makes_sense():
    def read(name):
        run = _run(name, 3.0, SIZES, AMOUNTS | UNLISTED)
        return [run[k] for k in ("params", "tokens", "unique_tokens", "tag")]

    assert read("2b84b84b8") == [2.81e9, 4.8e9, 4.8e9, "main"]
    assert read("1b1100m100m") == [1.0963e9, 1e8, 1e8, "main"]
    assert read("2b855b1b25c4seed1") == [2.81e9, 55e9, 1.25e9, "seed1"]
    assert read("4b284b84bc4v2seed4") == [4.2465e9, 84e9, 84e9, "seed4"]
    assert read("146m174b100mdedup") == [1.465e8, 174e9, 1e8, "dedup"]


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
