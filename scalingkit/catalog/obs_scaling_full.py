"""Observational scaling: benchmark scores of public models, with size, tokens and compute.

score ~ sigmoid-like in log C within a family; scores of all benchmarks are nearly two-dimensional
"""

from __future__ import annotations

import pandas as pd
import xarray as xr

from scalingkit.catalog._leaderboard import COLUMNS, OPTIONS, leaderboard
from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Published, Table
from scalingkit.catalog._tidy import Column
from scalingkit.core.card import Card, Source

ruan2024 = Source("ruan2024", "Ruan, Maddison, Hashimoto 2024, Observational scaling laws", "2405.10938")
FILES = {
    "base": "base_llm_benchmark_eval.csv", "base_sub_10b": "base_llm_benchmark_eval_sub_10b.csv",
    "emergent": "base_llm_emergent_capability_eval.csv", "leaderboard_v2": "base_llm_leaderboard_v2_eval.csv",
    "post_training": "base_llm_post_training_eval.csv", "instruct": "instruct_llm_benchmark_eval.csv",
    "agent": "instruct_llm_agent_eval.csv",
}  # fmt: skip
SIZED = ("base", "base_sub_10b", "instruct")
SIZE = ("Model Size (B)", "Pretraining Data Size (T)", "FLOPs (1E21)")
DESCRIBED = ["Model", "Model Family", *SIZE]
PERCENT = ("ipa_transliterate_2_bleu",)
_MOE = "size of a mixture of experts: active in one row, total in another, neither in a third"
SLIPS = {
    "cerebras/btlm-3b-8k-base": (SIZE[1], "627 trillion tokens: the corpus has 627 billion (a factor of 1000)"),
    "openlm-research/open_llama_7b_v2": (SIZE[0], "13.0 billion parameters, but the name says 7b"),
    "mistralai/Mixtral-8x7B-v0.1": (SIZE[0], _MOE),
    "mistralai/Mixtral-8x22B-v0.1": (SIZE[0], _MOE),
    "Qwen/Qwen2-57B-A14B": (SIZE[0], _MOE),
}


def read(
    files: Files, subtable: str, score: str = "", without_compute: str = "quarantine", slips: str = "quarantine"
) -> xr.Dataset:
    """One file of scores; size, tokens and compute come from the model list where the file has none."""
    frame = pd.read_csv(files[FILES[subtable]])
    scores = {c: _score(subtable, c) for c in frame.columns if c not in DESCRIBED}
    if subtable not in SIZED:
        known = pd.read_csv(files[FILES["instruct" if subtable == "agent" else "base"]])[DESCRIBED]
        frame = frame.merge(known, on="Model", how="left", validate="1:1")
    return leaderboard(
        frame,
        "obs-scaling-full",
        model="Model",
        size=SIZE,
        scores=scores,
        labels={"family": "Model Family"},
        slips=SLIPS,
        score=score,
        without_compute=without_compute,
        slip_rule=slips,
    )


def _score(subtable: str, column: str) -> Column:
    if column in PERCENT:
        return Column(column, "1", "BLEU, printed in 0-100, here in 0-1", 0.01)
    if subtable == "agent":
        return Column(column, "point", "AgentBench (ABench) or AgentBoard (ABoard) score, mostly 0-100")
    if subtable == "post_training":
        return Column(column, "1", "accuracy, or accuracy normalised so that chance is 0 (then from -1)")
    if column in ("Arena-Elo", "MTBench"):
        return Column(column, "1", "score rescaled by the source to 0-1")
    return Column(column, "1", "accuracy or pass@1, 0-1")


def _fit(family: str, alpha: float) -> Fit:
    return Fit(
        law="power",
        options={
            "load": {"table": "base", "score": "HellaSwag"},
            "where": {"family": family},
            "rename": {"x": "C", "y": "error"},
            "delta": 1e3,
        },
        expected={"alpha": alpha},
        tolerance={"alpha": 6e-5},
        where="our least-squares line of log(1 - HellaSwag) on log C, 8 models; the paper prints no such exponent",
    )


OURS = "our principal components of the 148 x 8 scores (mean-imputed, centred, unscaled); not printed for this release"

table = Table(
    card=Card(
        "obs_scaling_full",
        "benchmark scores of 148 base models in 47 families, with size, tokens and compute",
        tags={"leaderboard", "accuracy", "downstream"},
        sources=(ruan2024,),
        scope="Models differ in data, recipe and evaluation. Observational: families are the only control.",
    ),
    read=read,
    subtables={
        "base": "148 base models x 8 benchmarks",
        "base_sub_10b": "92 of them, up to 10B parameters (a subset, evaluated again)",
        "emergent": "84 base models x 8 BIG-Bench tasks",
        "leaderboard_v2": "72 base models x 6 Open LLM Leaderboard v2 scores",
        "post_training": "96 base models x 234 GSM8K and BBH prompting variants",
        "instruct": "27 instruction-tuned models x 9 benchmarks",
        "agent": "27 instruction-tuned models x 29 agent scores",
    },
    options=OPTIONS,
    params_kind="unknown",
    flops_kind="6ND",
    columns={
        **COLUMNS,
        "MMLU, ARC-C, HellaSwag, Winograd, TruthfulQA, GSM8K, XWinograd, HumanEval": "accuracy or pass@1 (1)",
        "other scores": "named as in the file, each with its unit",
    },
    traps=(
        "Tokens are unknown for 25 of the 148 models (Qwen2, Mistral, GPT-2, RWKV, ...): set aside by default, kept with "
        'without_compute="keep". Closed models of the instruct files have no size at all.',
        "BTLM-3B is printed with 627 trillion tokens for 627 billion, a factor of 1000 in D and C: set aside.",
        "open_llama_7b_v2 is printed with 13.0 billion parameters: set aside.",
        "Mixtures of experts are printed with active, total or other sizes (Mixtral-8x7B 45, 8x22B 39, Qwen2-57B-A14B 24): set "
        'aside. slips="keep" keeps these five rows.',
        "FLOP are 6 N D of the printed numbers, so C and 6 N D agree by construction, slips included.",
        "base_sub_10b repeats models of base: never stack the two.",
        "One BIG-Bench score is BLEU in 0-100: divided by 100. Agent scores are mostly 0-100 and stay as printed.",
        "post_training mixes accuracies with chance-normalised ones (from -1): the column's name says which.",
        "Scores are missing for some models (XWinograd 16, HumanEval 21): NaN, and set aside when named by score=...",
    ),
    published={
        "pc_share_3": Published(0.97, "section 3, Fig. 2: a few principal components explain about 97% of the variance"),
        "pc_share_1": Published(0.80, "section 3, Fig. 2: the first explains about 80%"),
        "pc_share_1_ours": Published(0.830, OURS),
        "pc_share_3_ours": Published(0.968, OURS),
    },
    fits=(_fit("Pythia", 0.18314), _fit("OPT", 0.18305)),
)  # fmt: skip
