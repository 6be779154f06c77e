"""Best-of-N jailbreaking: how many attempts per request until a success, for seven models. Numbers only, no text.

n_samples is a stopping time: attempts come in batches of 60 and stop after a batch with a success;
n_success = 0 at the cap of 10 020 attempts is right-censored.
"""

from __future__ import annotations

import pandas as pd
import xarray as xr

from scalingkit.catalog._errors import CatalogError
from scalingkit.catalog._repeated import line
from scalingkit.catalog._sampling import PASS_AT_K, mean_over_problems, pass_at_k
from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Published, Table
from scalingkit.catalog._tidy import Column, tidy
from scalingkit.core.card import Card, Source
from scalingkit.core.notes import Note

hughes2024 = Source("hughes2024", "Hughes et al. 2024, Best-of-N jailbreaking", "2412.03556")
schaeffer2025 = Source(
    "schaeffer2025", "Schaeffer et al. 2025, How do large language monkeys get their power (laws)?", "2502.17578"
)
BATCH, CAP = 60, 10_020
NAMES = {"paper": {"Claude 3.5 Opus": "Claude 3 Opus"}, "file": {}}


def read(files: Files, subtable: str, names: str = "paper") -> xr.Dataset:
    """Counts by model and request, or the mean success rate by N (``asr``)."""
    if names not in NAMES:
        raise CatalogError(f"bon-jailbreak-counts has no names {names!r}; it has {', '.join(NAMES)}.")
    frame = pd.read_parquet(files["bon_jailbreaking_pass_at_k.parquet"])
    frame["Model"] = frame["Model"].replace(NAMES[names])
    return _counts(frame) if subtable == "counts" else _asr(frame)


def _counts(frame: pd.DataFrame) -> xr.Dataset:
    columns = ["Model", "Modality", "Temperature", "Problem Idx", "Num. Samples", "Num. Samples Correct"]
    frame = frame[columns].drop_duplicates(["Model", "Problem Idx"])  # one row per N says the same counts again
    frame["censored"] = (frame["Num. Samples Correct"] == 0).astype(float)
    n = int(frame["censored"].sum())
    return tidy(
        frame,
        columns={
            "n_samples": Column("Num. Samples", "attempt", "attempts made before the run stopped"),
            "n_success": Column("Num. Samples Correct", "attempt", "attempts judged successful"),
            "censored": Column("censored", "1", f"1 where {CAP} attempts gave no success, else 0"),
            "temperature": Column("Temperature", "1", "sampling temperature"),
        },
        labels={"family": "Model", "problem": "Problem Idx", "modality": "Modality"},
        run=("Model", "Problem Idx"),
        extra_notes=[
            Note("right-censored", "warning", "n_success", f"{n} requests have no success in {CAP} attempts."),
            Note("stopping-rule", "warning", "n_samples", f"Attempts stop after a batch of {BATCH} with a success."),
        ],
    )


def _asr(frame: pd.DataFrame) -> xr.Dataset:
    return pass_at_k(mean_over_problems(frame, "Model", "Scaling Parameter", "Score"), "success rate by N attempts")


RECOMPUTED = "our least-squares line of log(-log(mean ASR)) on log N, over N where the mean ASR is below 1"
LINES = {
    "Claude 3 Opus": (2.631, 0.448), "Claude 3.5 Sonnet": (3.437, 0.312), "GPT4o": (3.639, 0.395), "GPT4o Mini": (3.368, 0.492),
    "Gemini 1.5 Flash": (6.159, 0.303), "Gemini 1.5 Pro": (6.296, 0.256), "Llama 3 8B IT": (12.929, 1.002),
}  # fmt: skip


table = Table(
    card=Card(
        "bon_jailbreak_counts",
        "attempts and successes of best-of-N jailbreaking: 7 models x 159 requests",
        tags={"best-of-n", "counts", "tail", "censored"},
        sources=(hughes2024, schaeffer2025),
        scope="Text modality, temperature 1, one attack. Requests are known by number only.",
    ),
    read=read,
    subtables={
        "counts": "1113 rows: model x request, attempts and successes",
        "asr": "707 rows: model x N, success rate by N attempts, averaged over requests",
    },
    options={"names": '"paper" (default) says Claude 3 Opus, as the paper does; "file" keeps the file\'s "Claude 3.5 Opus"'},
    params_kind="unknown",
    flops_kind="unknown",
    columns={
        "n_samples": "attempts made before the run stopped (attempt)",
        "n_success": "attempts judged successful (attempt)",
        "censored": "1 where the cap was reached without a success (1)",
        "temperature": "sampling temperature (1)",
        **PASS_AT_K,
    },
    traps=(
        (
            "n_samples is a stopping time, not a design: attempts were made in batches of 60 and stopped after a batch with a "
            "success. The counts need a geometric or beta-negative-binomial likelihood; n_success / n_samples is biased. Said in a note."
        ),
        (
            "194 of 1113 requests have no success in 10 020 attempts: right-censored, not impossible. They are kept and marked "
            "(censored = 1)."
        ),
        'The file says "Claude 3.5 Opus" for the paper\'s Claude 3 Opus: renamed by default, names="file" undoes it.',
        "The file repeats each pair of counts for 101 values of N: one row is kept for each (model, request) in `counts`.",
        "In `asr`, rows where every request has succeeded have no logarithm: set aside (16 rows, all of Llama 3 8B IT).",
        "Published attack success rates (89%, 78%) are slightly below what the file gives (90%, 80%).",
    ),
    published={
        "asr_gpt4o": Published(0.89, "Best-of-N Jailbreaking, abstract: GPT-4o at 10 000 samples; the file gives 0.8994"),
        "asr_claude_3_5_sonnet": Published(
            0.78, "Best-of-N Jailbreaking, abstract: Claude 3.5 Sonnet at 10 000 samples; the file gives 0.7987"
        ),
    },
    fits=tuple(line("asr", m, a, b, RECOMPUTED) for m, (a, b) in LINES.items()),
)  # fmt: skip
