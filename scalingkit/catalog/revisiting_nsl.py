"""Learning curves of Revisiting Neural Scaling Laws: loss or error against examples seen, with a hold-out flag.

loss(x), x = examples seen; training = 1: for fitting, 0: beyond, for judging extrapolation
"""

from __future__ import annotations

import pandas as pd
import xarray as xr

from scalingkit.catalog._options import choose
from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Table
from scalingkit.catalog._tidy import Column, tidy
from scalingkit.core.card import Card, Source

alabdulmohsin2022 = Source(
    "alabdulmohsin2022",
    "Alabdulmohsin et al. 2022, Revisiting neural scaling laws in language and vision",
    "2209.06640",
)
ID = "revisiting-nsl"
FILES = {"vision": "benchmark.vision.csv", "language": "benchmark.lang.csv"}


def read(files: Files, subtable: str, duplicates: str = "quarantine") -> xr.Dataset:
    choose(ID, "duplicates", duplicates, ("quarantine", "keep"))
    frame = pd.read_csv(files[FILES[subtable]])
    frame["trajectory"] = frame["Domain"] + "/" + frame["Task"] + "/" + frame["Model"]
    frame["split"] = frame["Training"].map({1: "train", 0: "test"})
    return tidy(
        frame,
        columns={
            "x": Column("Seen Examples", "example", "examples seen"),
            "y": Column("Loss", "1", "outcome of the curve: error rate, or log-perplexity (scaled for LM)"),
        },
        labels={"domain": "Domain", "task": "Task", "family": "Model", "trajectory": "trajectory", "split": "split"},
        run=("trajectory", "Seen Examples"),
        duplicates=duplicates == "quarantine",
        required=("x", "y"),
    )


def _fit(subtable: str, where: dict, expected: dict[str, float], tolerance: dict[str, float]) -> Fit:
    return Fit(
        law="power_floor",
        options={
            "load": {"table": subtable},
            "where": where | {"split": "train"},
            "rename": {"x": "x", "y": "y"},
            "delta": 1e-3,
        },
        expected=expected,
        tolerance=tolerance,
        where="our own fit of this curve's training points with SciPy (Huber 1e-3 on the log outcome)",
        reason="the paper prints extrapolation errors per curve, which were not re-read; it prints no coefficients of these curves.",
    )


table = Table(
    card=Card(
        "revisiting_nsl",
        "92 learning curves in vision and language, each with its own extrapolation test",
        tags={"learning-curve", "vision", "language", "hold-out"},
        sources=(alabdulmohsin2022,),
        scope="One input, examples seen. 72 vision curves (6 architectures x 12 few-shot tasks), 20 language curves.",
    ),
    read=read,
    subtables={
        "vision": "18883 points of 72 curves: few-shot error rate",
        "language": "1399 rows of 20 curves: translation, language modelling, BIG-Bench",
    },
    options={"duplicates": '"quarantine" (default) or "keep" exact duplicate rows'},
    params_kind="unknown",
    flops_kind="unknown",
    columns={
        "x": "examples seen (example)",
        "y": "error rate (vision, BIG-Bench) or log-perplexity (translation; scaled for LM)",
        "split": "train (fit on these) or test (extrapolate to these)",
        "trajectory": "the curve: domain/task/model",
    },
    traps=(
        "Language: 687 exact duplicate rows, most of them of the 1.68e7-parameter model. They are set aside by default.",
        "The LM losses are scaled: their level is not nats per token.",
        "Points of one curve are checkpoints of one run: autocorrelated.",
        "split is part of the benchmark: fit on train only when you report extrapolation.",
        "The bytes come from a copy in another repository; byte counts, first and last lines agree with the original.",
    ),
    fits=(
        _fit(
            "vision", {"trajectory": "IC/bird_5/MiX/B/16"}, {"E": 0.2032, "alpha": 0.3233}, {"E": 3e-3, "alpha": 3e-3}
        ),
        _fit(
            "language",
            {"trajectory": "NMT/log_perplexity/6 Enc, 6 Dec"},
            {"E": 0.2974, "alpha": 0.4525},
            {"E": 2e-3, "alpha": 3e-3},
        ),
    ),
)
