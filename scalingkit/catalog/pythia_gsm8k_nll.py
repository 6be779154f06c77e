"""Negative log likelihood of a reference solution, per problem, against pretraining compute.

nll[problem] = -log p(solution | problem)     nat, summed over the solution's tokens;  C = 6 N D, nominal
"""

from __future__ import annotations

import pandas as pd
import xarray as xr

from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Published, Table
from scalingkit.catalog._tidy import Column, tidy
from scalingkit.core.card import Card, Source
from scalingkit.core.names import FLOP_PER_PARAM_TOKEN
from scalingkit.core.notes import Note

schaeffer2025 = Source(
    "schaeffer2025", "Schaeffer et al. 2025, How do large language monkeys get their power (laws)?", "2502.17578"
)
SCALE = {"M": 1e6, "B": 1e9}
SUSPECT = Note(
    "suspect-values", "error", "nll",
    "The mean is above log 50257 = 10.8 nat, that of a blind guess, and grows with model size: not a next-token likelihood.",
)  # fmt: skip


def read(files: Files, subtable: str) -> xr.Dataset:
    """Per problem and checkpoint, the mean over problems, or the token scores of the second file."""
    if subtable == "lambada_tokens":
        return _tokens(pd.read_parquet(files["pretraining_probability.parquet"]))
    frame = _named(pd.read_parquet(files["gpt4_gsm8k_neg_log_likelihood.parquet"]))
    return _problems(frame) if subtable == "problems" else _mean(frame)


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """N and D from names like Pythia_1.4B_300B."""
    found = frame["Model"].str.extract(r"_(?P<n>[\d.]+)(?P<nu>[MB])_(?P<d>[\d.]+)(?P<du>[MB])$")
    n = found["n"].astype(float) * found["nu"].map(SCALE)
    d = found["d"].astype(float) * found["du"].map(SCALE)
    return frame.assign(N=n, D=d, C=FLOP_PER_PARAM_TOKEN * n * d)


SIZE = {
    "N": Column("N", meaning="nominal parameters, from the model's name"),
    "D": Column("D", meaning="nominal pretraining tokens, from the model's name"),
}
COMPUTE = Column("Scaling Parameter", "FLOP", "pretraining compute as given: 6 N D of the nominal numbers")


def _problems(frame: pd.DataFrame) -> xr.Dataset:
    return tidy(
        frame,
        columns={
            **SIZE,
            "C": COMPUTE,
            "nll": Column(
                "Neg Log Score", "nat", "negative log likelihood of the reference solution, summed over its tokens"
            ),
        },
        labels={"family": "Model", "problem": "Problem Idx"},
        run=("Model", "Problem Idx"),
        params_kind="total",
        flops_kind="6ND",
    )


def _mean(frame: pd.DataFrame) -> xr.Dataset:
    by = ["Model", "N", "D", "Scaling Parameter"]
    mean = (
        frame.groupby(by)["Neg Log Score"].agg(["mean", "sem", "size"]).reset_index().sort_values("Scaling Parameter")
    )
    return tidy(
        mean,
        columns={
            **SIZE,
            "C": COMPUTE,
            "nll": Column("mean", "nat", "mean over problems of the summed negative log likelihood"),
            "nll_se": Column("sem", "nat", "standard error of that mean over problems (shared by all checkpoints)"),
            "n_problems": Column("size", "problem", "problems averaged over"),
        },
        labels={"family": "Model"},
        run="Model",
        params_kind="total",
        flops_kind="6ND",
    )


def _tokens(frame: pd.DataFrame) -> xr.Dataset:
    return tidy(
        _named(frame),
        columns={
            **SIZE,
            "C": Column("C", meaning="training compute, 6 N D of the nominal numbers"),
            "nll": Column("Neg Log Score", "nat", "negative log score of one token, as given"),
            "position": Column("Seq Idx", "token", "position of the token in its passage"),
        },
        labels={"family": "Model", "problem": "Problem Idx", "benchmark": "Benchmark"},
        run=("Model", "Problem Idx", "Seq Idx"),
        params_kind="total",
        flops_kind="6ND",
        extra_notes=[SUSPECT],
    )


def _fit(subtable: str, alpha: float, where: str) -> Fit:
    return Fit(
        law="power",
        options={"load": {"table": subtable}, "rename": {"x": "C", "y": "nll"}, "delta": 1e3},
        expected={"alpha": alpha},
        tolerance={"alpha": 6e-5},
        where=where,
    )


table = Table(
    card=Card(
        "pythia_gsm8k_nll",
        "negative log likelihood of GSM8K solutions under 9 Pythia checkpoints, problem by problem",
        tags={"pretraining", "likelihood", "per-problem"},
        sources=(schaeffer2025,),
        scope="9 checkpoints whose size and tokens grow together: compute is the only input that can be told.",
    ),
    read=read,
    subtables={
        "problems": "11 871 rows: 9 checkpoints x 1319 GSM8K test problems",
        "mean": "9 rows: mean over the 1319 problems",
        "lambada_tokens": "5 244 rows: 6 Cerebras-GPT models x 10 LAMBADA passages, token by token (suspect)",
    },
    params_kind="total",
    flops_kind="6ND",
    columns={
        "N": "nominal parameters (parameter)", "D": "nominal pretraining tokens (token)", "C": "pretraining compute (FLOP)",
        "nll": "negative log likelihood (nat, summed over tokens; of one token in lambada_tokens)",
        "nll_se": "standard error of the mean over problems (nat)", "n_problems": "problems averaged over (problem)",
        "position": "token position in its passage (token)",
    },
    traps=(
        "The file's name says gpt4 (a figure's style); the models are Pythia.",
        "nll is summed over a solution's tokens, not per token, so it is not called loss here: long solutions have large values.",
        "The file's Score column underflows to 0 in 21 rows: only the negative log is used.",
        "Every problem meets every checkpoint: rows of one checkpoint share its luck, rows of one problem its length.",
        "Size and tokens grow together over the 9 checkpoints (14M at 20B to 12B at 300B): N and D cannot be told apart.",
        "lambada_tokens: the mean is 10.8 to 12.3 nat, above a blind guess over 50 257 tokens (10.8), and grows with model size. "
        "These are not likelihoods of the next token. Loaded with an error note and not fitted.",
    ),
    published={
        "nll_smallest": Published(348.71, "our mean over problems at 1.68e18 FLOP (Pythia 14M, 20B tokens); not the paper's"),
        "nll_largest": Published(94.34, "our mean over problems at 2.16e22 FLOP (Pythia 12B, 300B tokens); not the paper's"),
    },
    fits=(
        _fit("mean", 0.14112, "our least-squares line of log mean nll on log C, 9 checkpoints; none is published"),
        _fit("problems", 0.14712, "our least-squares line of log nll on log C, all problems pooled; none is published"),
    ),
)  # fmt: skip
