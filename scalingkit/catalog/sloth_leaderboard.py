"""Sloth: Open LLM Leaderboard v1 and v2 scores by model family, with size and tokens.

score = floor + (1 - floor) sigmoid(Lambda theta + b),  theta = family intercept + B (log N, log D, log N log D)
"""

from __future__ import annotations

import pandas as pd
import xarray as xr

from scalingkit.catalog._leaderboard import COLUMNS, OPTIONS, leaderboard
from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Table
from scalingkit.catalog._tidy import Column, tidy
from scalingkit.core.card import Card, Source

maiapolo2024 = Source("maiapolo2024", "Maia Polo et al. 2024, Sloth: scaling laws for LLM skills", "2412.06540")
SIZE = ("#Params (B)", "Pretraining Data Size (T)", "FLOPs (1E21)")
AGENT_SIZE = ("Model Size (B)", *SIZE[1:])
NOT_SCORES = {"Model", "Family", "Family2", "Instruct", "date", "Model Family", *SIZE, *AGENT_SIZE}
SUBTASKS = ("bbh_", "gpqa_", "math_", "musr_", "hendrycksTest-")
V2 = ("IFEval", "BBH", "MATH Lvl 5", "GPQA", "MUSR", "MMLU-PRO")
FILES = {"v2": "data_v2.csv", "v1": "data_v1.csv"}
SLIPS = {"rwkv-4-1b5-pile": (SIZE[0], "1.0 billion parameters, but the name says 1.5")}


def read(
    files: Files, subtable: str, score: str = "", without_compute: str = "quarantine", slips: str = "quarantine"
) -> xr.Dataset:
    """One release of the scores, the chance-level floors, the agent scores, or tokens looked up by hand."""
    if subtable == "floors":
        return _floors(pd.read_csv(files["lower_bounds.csv"], index_col=0))
    if subtable == "tokens":
        return _tokens(pd.read_csv(files["training_tokens.csv"], skipinitialspace=True))
    agent = subtable == "agent"
    frame = pd.read_csv(files["Agent.csv"]) if agent else pd.read_csv(files[FILES[subtable]], index_col=0)
    labels = {"family": "Model Family"} if agent else {"family": "Family", "instruct": "Instruct", "date": "date"}
    labels |= {"recipe": "Family2"} if "Family2" in frame else {}
    return leaderboard(
        frame.copy(),  # read in pieces: one block again
        "sloth-leaderboard",
        model="Model",
        size=AGENT_SIZE if agent else SIZE,
        scores={c: _score(c) for c in frame.columns if c not in NOT_SCORES},
        labels=labels,
        slips=SLIPS,
        score=score,
        without_compute=without_compute,
        slip_rule=slips,
    )


def _score(column: str) -> Column:
    if column.startswith(("ABench", "ABoard")):
        return Column(column, "point", "AgentBench (ABench) or AgentBoard (ABoard) score, mostly 0-100")
    if column in V2:
        return Column(column, "1", "raw Open LLM Leaderboard v2 score, 0-1, printed with two decimals")
    kind = "subtask score" if column.startswith(SUBTASKS) else "score"
    return Column(column, "1", f"{kind}, 0-1")


def _floors(frame: pd.DataFrame) -> xr.Dataset:
    """One row a benchmark or subtask: the score of a guess."""
    long = frame.iloc[0].rename("floor").rename_axis("score").reset_index()
    columns = {"floor": Column("floor", "1", "chance-level score of this benchmark or subtask")}
    return tidy(long, columns=columns, run="score")


def _tokens(frame: pd.DataFrame) -> xr.Dataset:
    return tidy(
        frame,
        columns={
            "N": Column("Parameters (b)", meaning="parameters, many rounded down to whole billions", factor=1e9),
            "D": Column("Tokens (T)", meaning="pretraining tokens, looked up by hand by the source", factor=1e12),
        },
        labels={"family": "Family"},
        run="Model",
    )


table = Table(
    card=Card(
        "sloth_leaderboard",
        "leaderboard v1 and v2 scores of 188 models in 35 families, with subtasks, floors, size and tokens",
        tags={"leaderboard", "accuracy", "downstream"},
        sources=(maiapolo2024,),
        scope="Base and instruction-tuned models mixed in one family; observational.",
    ),
    read=read,
    subtables={
        "v2": "188 models x 110 scores (35 families), the later release",
        "v1": "197 models x 110 scores (37 families), the earlier release of nearly the same models",
        "floors": "106 chance-level scores",
        "agent": "27 instruction-tuned models x 38 scores",
        "tokens": "42 models: tokens looked up by hand",
    },
    options=OPTIONS,
    params_kind="unknown",
    flops_kind="6ND",
    columns={
        **COLUMNS,
        "ARC, HellaSwag, MMLU, TruthfulQA, Winogrande, GSM8K": "leaderboard v1 scores (1)",
        "IFEval, BBH, MATH Lvl 5, GPQA, MUSR, MMLU-PRO": "raw leaderboard v2 scores, two decimals (1)",
        "bbh_*, gpqa_*, math_*, musr_*, hendrycksTest-*": "subtask scores (1)",
        "floor": "chance-level score (1)",
    },
    traps=(
        'Tokens are unknown for 13 models: set aside by default, kept with without_compute="keep".',
        "v1 and v2 are two releases that share 185 models: never stack them.",
        "A family holds base and instruction-tuned models, and fine-tunes by others (dolly-v2 counts as pythia): the coord `instruct` "
        "tells them apart, and in v2 `recipe` names the finer family.",
        "Tokens of one suite are not of one source: Pythia at 1B has 0.30 trillion, at 12B 0.25 trillion.",
        "Leaderboard v2 scores have two decimals: each is an interval of 0.01. Scores of exactly 0 are rounded, not measured.",
        "Chance is not 0: the floors are in the sub-table `floors` (GPQA 0.23, BBH 0.29, ...). Compare above them.",
        "rwkv-4-1b5-pile is printed with 1.0 billion parameters: set aside (slips=\"keep\" keeps it). In `tokens` many sizes are "
        "rounded down (pythia-2.8b: 2), and bloom-1b1 is 1.0 everywhere.",
        "About half of the scores are missing for a model in either leaderboard: 113 of 188 have v2 scores, 160 v1 scores.",
    ),
    fits=(
        Fit(
            law="power",
            options={
                "load": {"table": "v2", "score": "HellaSwag"},
                "where": {"recipe": "pythia"},
                "rename": {"x": "C", "y": "error"},
                "delta": 1e3,
            },
            expected={"alpha": 0.18309},
            tolerance={"alpha": 6e-5},
            where="our least-squares line of log(1 - HellaSwag) on log C, 8 Pythia models; the paper fits latent skills instead",
        ),
    ),
)  # fmt: skip
