"""Reward-model scores of sampled text and of random tokens: how heavy is the right tail?

reward   logit of Starling-RM-7B-alpha, dimensionless; numbers only, no text
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Published, Table
from scalingkit.catalog._tidy import Column, tidy
from scalingkit.core.card import Card, Source
from scalingkit.core.names import RUN, SAMPLE

kwa2024 = Source("kwa2024", "Kwa, Thomas, Garriga-Alonso 2024, Catastrophic Goodhart", "2407.14503")
ARRAYS = {"llama_generated": "llama_starling_reward_values.npy", "random_tokens": "random_starling_reward_values.npy"}


def read(files: Files, subtable: str) -> xr.Dataset:
    """One exchangeable sample of rewards along dim ``sample`` (``adversarial``: 40 optimised runs along ``run``)."""
    if subtable == "adversarial":
        frame = pd.read_csv(files["acg_optimised_rewards.csv"]).assign(origin=subtable)
        return _tidy(frame, run="run")
    # float32 or float64 as stored; never a pickle
    values = np.load(files[ARRAYS[subtable]], allow_pickle=False)
    frame = pd.DataFrame({"reward": values.astype(np.float64), "origin": subtable})
    return _tidy(frame).rename({RUN: SAMPLE})


def _tidy(frame: pd.DataFrame, run: str = "") -> xr.Dataset:
    return tidy(
        frame,
        columns={"reward": Column("reward", "1", "reward-model score (logit, dimensionless)")},
        labels={"family": "origin"},
        run=run or (),
        duplicates=False,  # equal float32 scores are chance, not copies
    )


SECTION = "Catastrophic Goodhart, experimental results"
OURS = "our maximum-likelihood generalised Pareto fit to exceedances over the 95% quantile"

table = Table(
    card=Card(
        "starling_reward_tails",
        "46 000 reward-model scores: sampled text, random tokens, and 40 adversarial optima",
        tags={"best-of-n", "reward", "tail"},
        sources=(kwa2024,),
        scope="One reward model. No prompt identifiers and no correctness labels.",
    ),
    read=read,
    subtables={
        "llama_generated": "16 000 rewards of sequences sampled from Llama-2-7B-chat (dim sample)",
        "random_tokens": "30 000 rewards of uniformly random token sequences of length 1024 (dim sample)",
        "adversarial": "40 rewards reached by adversarial token optimisation (dim run)",
    },
    params_kind="unknown",
    flops_kind="unknown",
    columns={"reward": "reward-model score (1)"},
    traps=(
        "Rewards can be negative or zero: laws of a positive outcome do not apply. The question here is the tail, not a law in x.",
        (
            "The random-token scores are stored in float32: 96 values repeat by rounding, 2 in the other file. They are kept: equal "
            "scores are chance, not copies, and no lattice is left to speak of."
        ),
        "llama_generated pools sequences without prompt identifiers (at most 133 tokens, five random seed tokens): one sample.",
        "The adversarial optima are not draws: their smallest value (2.24) is in the sampled tail and most exceed its maximum (4.14).",
    ),
    published={
        "hill_random_tokens": Published(0.20, f"{SECTION}: Hill estimator at high thresholds, about"),
        "xi_llama_generated": Published(
            -0.1522, f"{OURS} (800 exceedances over 1.7415), scale 0.5583; not the paper's"
        ),
        "xi_random_tokens": Published(0.1164, f"{OURS} (1500 exceedances over -1.9666), scale 0.1761; not the paper's"),
    },
)
