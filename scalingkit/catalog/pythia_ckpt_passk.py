"""Repeated sampling on Pythia checkpoints: correct samples by problem on GSM8K and MATH.

C = 6 N D from the nominal size and tokens in a checkpoint's name
likelihood p**n_correct (1 - p)**(n_samples - n_correct): unaffected by a stopping rule that looks at the past only
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Table
from scalingkit.catalog._tidy import Bad, Column, tidy
from scalingkit.core.card import Card, Source
from scalingkit.core.names import FLOP_PER_PARAM_TOKEN
from scalingkit.core.notes import Note

schaeffer2025 = Source(
    "schaeffer2025", "Schaeffer et al. 2025, How do large language monkeys get their power (laws)?", "2502.17578"
)
STOPPED = Note(
    "stopping-rule", "warning", "n_samples", "128 to 3 720 320 samples a cell, by a rule that is not documented."
)
SIZE = {
    "N": Column("params", meaning="nominal parameters, from the checkpoint's name"),
    "D": Column("pretrain_tokens", meaning="nominal pretraining tokens of the checkpoint, from its name"),
    "C": Column("C", meaning="training compute, 6 N D of the nominal numbers"),
}


def read(files: Files, subtable: str) -> xr.Dataset:
    """Counts by checkpoint and problem, or the mean success rate by checkpoint."""
    frame = pd.read_csv(files["counts.csv"])
    frame["C"] = FLOP_PER_PARAM_TOKEN * frame["params"].astype(float) * frame["pretrain_tokens"].astype(float)
    return _counts(frame) if subtable == "counts" else _checkpoints(frame)


def _counts(frame: pd.DataFrame) -> xr.Dataset:
    frame["problem"] = frame["benchmark"] + "/" + frame["problem_idx"].astype(str)  # the two number alike
    return tidy(
        frame,
        columns={
            **SIZE,
            "n_samples": Column("n_samples", "sample", "samples drawn for this checkpoint and problem"),
            "n_correct": Column("n_correct", "sample", "samples judged correct"),
            "inference_flop": Column("inference_flop_k1", "FLOP", "compute of one attempt, as the source gives it"),
        },
        labels={"family": "model", "problem": "problem", "benchmark": "benchmark", "level": "level"},
        run=("model", "problem"),
        params_kind="total",
        flops_kind="6ND",
        extra_notes=[STOPPED],
    )


def _checkpoints(frame: pd.DataFrame) -> xr.Dataset:
    frame["rate"], frame["zero"] = frame["n_correct"] / frame["n_samples"], frame["n_correct"] == 0
    by = ["benchmark", "model", "params", "pretrain_tokens", "C"]
    mean = (
        frame.groupby(by, sort=False)
        .agg(rate=("rate", "mean"), zero=("zero", "mean"), n=("rate", "size"))
        .reset_index()
    )
    with np.errstate(divide="ignore"):
        mean["neg_log_rate"] = -np.log(mean["rate"])
    return tidy(
        mean,
        columns={
            **SIZE,
            "rate": Column("rate", "1", "n_correct / n_samples, mean over problems"),
            "neg_log_rate": Column("neg_log_rate", "nat", "negative logarithm of that mean"),
            "zero_share": Column("zero", "1", "share of problems without a correct sample"),
            "n_problems": Column("n", "problem", "problems averaged over"),
        },
        labels={"family": "model", "benchmark": "benchmark"},
        run=("benchmark", "model"),
        bad=[
            Bad(mean["rate"] == 0, "rate", "log-of-zero", "no correct sample on any problem: the rate has no logarithm")
        ],
        params_kind="total",
        flops_kind="6ND",
        extra_notes=[STOPPED],
    )


def _fit(benchmark: str, alpha: float) -> Fit:
    return Fit(
        law="power",
        options={
            "load": {"table": "checkpoints"},
            "where": {"benchmark": benchmark},
            "at_least": {"D": 2e11},
            "rename": {"x": "C", "y": "neg_log_rate"},
            "delta": 1e3,
        },
        expected={"alpha": alpha},
        tolerance={"alpha": 5e-4},
        where="our least-squares line of log(-log(mean rate)) on log C over checkpoints of 200B and 300B tokens; none is published",
    )


table = Table(
    card=Card(
        "pythia_ckpt_passk",
        "correct samples of Pythia checkpoints on GSM8K and MATH: size x tokens x problem",
        tags={"best-of-n", "counts", "checkpoints", "pass@k"},
        sources=(schaeffer2025,),
        scope="One model suite. Sizes x checkpoints x problems are crossed; MATH has difficulty levels.",
    ),
    read=read,
    subtables={
        "counts": "19 370 rows: checkpoint x problem (GSM8K 10 273, MATH 9 097)",
        "checkpoints": "153 rows: mean success rate by benchmark and checkpoint",
    },
    params_kind="total",
    flops_kind="6ND",
    columns={
        "N": "nominal parameters (parameter)", "D": "nominal pretraining tokens (token)", "C": "6 N D of these (FLOP)",
        "n_samples": "samples drawn (sample)", "n_correct": "samples judged correct (sample)",
        "inference_flop": "compute of one attempt as given (FLOP)", "rate": "mean success rate (1)",
        "neg_log_rate": "its negative logarithm (nat)", "zero_share": "share of problems never solved (1)",
        "n_problems": "problems averaged over (problem)",
    },
    traps=(
        "n_samples is not constant (128 to 3 720 320): easy cells were stopped early and hard ones continued, by a rule that is not "
        "documented. Use the likelihood of the counts; the mean rates in `checkpoints` can be biased. Said in a note.",
        "67% of the rows have no correct sample: a bound on p, not p = 0. They are kept.",
        "Checkpoints of 2M and 64M tokens almost never succeed (98% zeros); `checkpoints` sets those without any success aside.",
        "Problem numbers of GSM8K and MATH overlap: `problem` carries the benchmark's name.",
        "GSM8K has no level: an empty label, not a gap.",
        "Checkpoints of one size are not independent runs: they are one training trajectory.",
        "Sizes and tokens are the nominal ones of the checkpoints' names; C = 6 N D is computed here, the source has none.",
    ),
    fits=(_fit("GSM8K", 0.12171), _fit("MATH", 0.16045)),
)  # fmt: skip
