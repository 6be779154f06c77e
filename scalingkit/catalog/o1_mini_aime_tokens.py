"""o1-mini on AIME 2024: share of 30 questions answered rightly, against tokens asked for and tokens used.

accuracy_se = sqrt(p (1 - p) / 30)
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Published, Table
from scalingkit.catalog._tidy import Bad, Column, tidy
from scalingkit.core.card import Card, Source

zhang2024 = Source(
    "zhang2024", "Zhang, Chen 2024, Test-time compute scaling laws", url="https://github.com/hughbzhang/o1_inference_scaling_laws"
)  # fmt: skip
METHODS = ("just_ask_nicely", "majority_vote")
QUESTIONS = 30
RUN = ["token_limit", "accuracy", "avg_tokens_used"]


def read(files: Files, subtable: str) -> xr.Dataset:
    """Both result files joined; the second repeats the first's rows, which are set aside."""
    parts = [pd.read_json(files[f"results_log_{m}.json"]).assign(method=m) for m in METHODS]
    frame = pd.concat(parts, ignore_index=True)
    p = frame["accuracy"]
    frame["error"], frame["se"] = 1 - p, np.sqrt(p * (1 - p) / QUESTIONS)
    again = Bad(frame.duplicated(RUN), "token_limit", "duplicate", "the same run as a row of just_ask_nicely")
    return tidy(
        frame,
        columns={
            "accuracy": Column("accuracy", "1", f"share of the {QUESTIONS} AIME 2024 questions answered rightly"),
            "error": Column("error", "1", "1 - accuracy"),
            "accuracy_se": Column("se", "1", f"binomial standard error for {QUESTIONS} questions"),
            "token_limit": Column("token_limit", "token", "tokens asked for per answer, or budget of the vote"),
            "tokens_used": Column("avg_tokens_used", "token", "mean tokens used per question"),
        },
        labels={"method": "method"},
        run=("method", "token_limit"),
        bad=[again],
        duplicates=False,
    )


table = Table(
    card=Card(
        "o1_mini_aime_tokens",
        "accuracy of o1-mini on 30 AIME questions against tokens used",
        tags={"test-time-compute", "accuracy"},
        sources=(zhang2024,),
        scope="One model, 30 questions: the binomial standard error is 0.09 near accuracy 0.5.",
    ),
    read=read,
    subtables={"runs": "19 rows: 11 distinct runs, token limits 16 to 16384"},
    params_kind="unknown",
    flops_kind="unknown",
    columns={
        "accuracy": "share of the 30 questions answered rightly (1)",
        "error": "1 - accuracy (1)",
        "accuracy_se": "binomial standard error (1)",
        "token_limit": "tokens asked for per answer, or budget (token)",
        "tokens_used": "mean tokens used per question (token)",
    },
    traps=(
        "The first 8 rows of majority_vote are the runs of just_ask_nicely: set aside as duplicates (11 runs remain).",
        "token_limit is what was asked for, not what was used: the model used 5 to 23 times as many. Fit against tokens_used.",
        "30 questions: neighbouring points differ by less than their standard error, and accuracy does not rise at every step.",
        (
            "The accuracy at 8192 is 0.675, no multiple of 1/30, although 30 questions are asked: it is an average over "
            "something not documented. Kept as printed."
        ),
    ),
    published={
        "used_per_asked": Published(8.0, "README: about 8 times what is asked, for 2^4 to 2^11 requested tokens"),
        "plateau": Published(0.7, "README: accuracy stops near 70% beyond 2^17 total tokens"),
    },
    fits=(
        Fit(
            law="power",
            options={"rename": {"x": "tokens_used", "y": "error"}, "delta": 1e3},
            expected={"alpha": 0.1676},
            tolerance={"alpha": 5e-4},
            where="our least-squares line of log(1 - accuracy) on log tokens used, 11 runs; the source fits no law",
        ),
    ),
)
