"""IsoFLOP points of eight experiments: Chinchilla (read twice), Llama 3 (two scales), Marin on three corpora, (Mis)Fitting.

Every sub-table holds data that may be pooled; two readings of one figure are two sub-tables, never one.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.catalog._options import choose
from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Published, Table
from scalingkit.catalog._tidy import Bad, Column, tidy
from scalingkit.core.card import Card, Source

openathena2026 = Source("openathena2026", "Open-Athena 2026, Problems with Chinchilla approach 2")
llama3 = Source("llama3", "Llama Team 2024, The Llama 3 herd of models", "2407.21783")
hoffmann2022 = Source(
    "hoffmann2022", "Hoffmann et al. 2022, Training compute-optimal large language models", "2203.15556"
)
ID = "isoflop-collection"
EXPERIMENTS = {
    "marin": ("marin_202603__comma__llama_2", "marin_202603__dclm__llama_2", "marin_202603__nemotron__llama_2"),
    "chinchilla-epoch": ("epochai_chinchilla__massivetext__chinchilla",),
    "chinchilla-scalefit": ("ml_scalefit__massivetext__chinchilla",),
    "llama-3": ("llama_3__exp_loss",),
    "llama-3-raw": ("llama_3__raw_loss",),
    "misfitting": ("misfitting__fineweb_c4__transformer",),
}
RAW = {f"marin-raw-{k}": f"marin-isoflop-{k}.csv" for k in ("comma", "dclm", "nemotron")}
PALOMA = "macro-averaged loss over the Paloma sets"
MEANING = {
    "marin": PALOMA,
    "llama-3": "exponential of the digitised value",
    "llama-3-raw": "digitised value, as printed on the axis",
}
GFLOP = 1e9


def read(files: Files, subtable: str, outliers: str = "quarantine") -> xr.Dataset:
    choose(ID, "outliers", outliers, ("quarantine", "keep"))
    if subtable in RAW:
        return _raw(pd.read_csv(files[RAW[subtable]]), subtable.removeprefix("marin-raw-"))
    frame = pd.read_csv(files["isoflops.csv"])
    frame = frame[frame["experiment"].isin(EXPERIMENTS[subtable])].reset_index(drop=True)
    reasons = sorted(set(frame.loc[frame["outlier"], "reason"]))
    bad = [
        Bad(frame["outlier"] & (frame["reason"] == r), "reason", r, f"the source's curation: {r.replace('_', ' ')}")
        for r in reasons
    ]
    return tidy(
        frame,
        columns={
            "N": "params",
            "D": "tokens",
            "C": Column("budget", meaning="nominal compute budget of the slice"),
            "loss": Column("loss", meaning=MEANING.get(subtable, "loss per token")),
        },
        labels={"corpus": "dataset", "family": "model", "budget": "budget", "experiment": "experiment"},
        run=("dataset", "budget", "params"),
        bad=bad if outliers == "quarantine" else [],
        duplicates=False,
        flops_kind="reported",
    )


def _raw(frame: pd.DataFrame, corpus: str) -> xr.Dataset:
    frame["corpus"] = corpus
    frame["role"] = np.where(frame["Name"].str.contains("validation-optimal"), "validation", "isoflop")
    frame["lr"] = frame["learning_rate" if "learning_rate" in frame else "optimizer.learning_rate"]
    return tidy(
        frame,
        columns={
            "N": "parameter_count",
            "D": "throughput/total_tokens",
            "C": Column("throughput/total_gflops", factor=GFLOP, meaning="training compute as logged (GFLOP x 1e9)"),
            "loss": Column("eval/paloma/macro_loss", meaning=PALOMA),
            "batch": Column("trainer.train_batch_size", "sequence", "sequences in a batch"),
            "steps": Column("trainer.num_train_steps", "step", "training steps"),
            "lr": Column("lr", "1", "learning rate; missing for nemotron"),
            "width": Column("model.hidden_dim", "1", "width"),
            "depth": Column("model.num_layers", "1", "layers"),
        },
        labels={"corpus": "corpus", "role": "role"},
        run="Name",
        flops_kind="reported",
    )


def _fit(subtable: str, E: float, alpha: float, beta: float, corpus: str = "", reason: str = "") -> Fit:
    options: dict = {"load": {"table": subtable}, "delta": 1e-3}
    if corpus:
        options["where"] = {"corpus": corpus}
    return Fit(
        law="chinchilla",
        options=options,
        expected={"E": E, "alpha": alpha, "beta": beta},
        tolerance={"E": 3e-3, "alpha": 2e-3, "beta": 2e-3},
        where="our own fit of the rows kept by the source's curation with SciPy (Huber 1e-3 on log loss)",
        reason=reason or "no parametric fit of these rows is published.",
    )


table = Table(
    card=Card(
        "isoflop_collection",
        "IsoFLOP points of Chinchilla, Llama 3, Marin on three corpora, and (Mis)Fitting, curated in one format",
        tags={"pretraining", "loss", "isoflop", "hierarchical", "digitised"},
        sources=(openathena2026, hoffmann2022, llama3),
        scope="marin is the balanced one: one recipe, three corpora. Chinchilla and Llama 3 are digitised from figures.",
    ),
    read=read,
    subtables={
        "marin": "258 points: comma, dclm, nemotron; 1.8e18-3e20 FLOP",
        "chinchilla-epoch": "123 points of Chinchilla, the reading of Besiroglu et al.",
        "chinchilla-scalefit": "124 points of Chinchilla, the reading of ml-scalefit",
        "llama-3": "133 points of Llama 3, exponentiated",
        "llama-3-raw": "133 points of Llama 3, on the axis's scale",
        "misfitting": "176 points of (Mis)Fitting",
        "marin-raw-comma": "92 runs as exported, with 7 validation runs",
        "marin-raw-dclm": "85 runs as exported",
        "marin-raw-nemotron": "96 runs as exported, with 8 validation runs up to 1e21 FLOP",
    },
    options={"outliers": '"quarantine" (default) or "keep" the rows that the source marks as outliers'},
    params_kind="unknown",
    flops_kind="reported",
    columns={
        "N": "parameters (parameter)",
        "D": "training tokens (token)",
        "C": "nominal budget; in the raw exports, logged compute (FLOP)",
        "loss": "nat per token; Paloma macro loss for Marin; see llama-3 and llama-3-raw",
        "budget": "the iso-FLOP slice, as text",
    },
    traps=(
        "The two Llama 3 experiments are one data set on two scales, and the two Chinchilla ones two readings of one figure. "
        "They are separate sub-tables, so that they cannot be pooled as if independent.",
        "The source marks rows as outliers with a reason (off centre, near-duplicate size, weak curvature, too few points, ...). They "
        "are set aside with that reason by default.",
        "misfitting here and the table misfitting-survey are the same runs under other curation: alpha 0.67 here, 0.20 there.",
        "C is the nominal budget of a slice, not 6 N D of the row.",
        "Marin's loss is a macro average over the Paloma sets, not a training-set loss: do not compare levels across sub-tables.",
        "The validation runs of the raw exports (role = validation) were chosen as predicted optima: hold-outs, not slice points.",
    ),
    published={
        "chinchilla-scalefit E": Published(1.825, "results/experiments/exp0/reproductions.txt, Huber, C < 1e21, 217 points"),
        "chinchilla-scalefit alpha": Published(0.3239, "results/experiments/exp0/reproductions.txt, Huber, C < 1e21, 217 points"),
        "chinchilla-scalefit beta": Published(0.4058, "results/experiments/exp0/reproductions.txt, Huber, C < 1e21, 217 points"),
    },
    fits=(
        _fit("marin", 2.6837, 0.7103, 0.3490, "comma"),
        _fit("marin", 2.5673, 0.6825, 0.3972, "dclm"),
        _fit("marin", 2.4996, 0.6622, 0.3963, "nemotron"),
        _fit("chinchilla-epoch", 1.8323, 0.3435, 0.4009),
        _fit("llama-3", 1.8378, 0.3320, 0.3725),
        _fit(
            "misfitting", 2.6909, 0.6686, 0.6921,
            reason="the survey's own fit uses all its runs (see misfitting-survey); this curation keeps 106 of 176.",
        ),
    ),
)  # fmt: skip
