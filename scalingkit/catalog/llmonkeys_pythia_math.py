"""Large Language Monkeys: seven Pythia models on 128 MATH problems, 10 000 independent samples each.

n_correct ~ Binomial(10 000, p[model, problem]);   -log(mean pass@k) ~ a k**-b
"""

from __future__ import annotations

import pandas as pd
import xarray as xr

from scalingkit.catalog._repeated import line
from scalingkit.catalog._sampling import PASS_AT_K, mean_over_problems, pass_at_k
from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Table
from scalingkit.catalog._tidy import Column, tidy
from scalingkit.core.card import Card, Source

schaeffer2025 = Source(
    "schaeffer2025", "Schaeffer et al. 2025, How do large language monkeys get their power (laws)?", "2502.17578"
)
brown2024 = Source("brown2024", "Brown et al. 2024, Large language monkeys", "2407.21787")
SIZES = {"70M": 70e6, "160M": 160e6, "410M": 410e6, "1B": 1e9, "2.8B": 2.8e9, "6.9B": 6.9e9, "12B": 12e9}


def read(files: Files, subtable: str) -> xr.Dataset:
    """Counts by model and problem, or mean pass@k by model and k."""
    frame = pd.read_parquet(files["large_language_monkeys_original_pass_at_k.parquet"])
    if subtable == "pass_at_k":
        return pass_at_k(mean_over_problems(frame, "Model", "Scaling Parameter", "Score"), "pass@k")
    return _counts(frame)


def _counts(frame: pd.DataFrame) -> xr.Dataset:
    columns = ["Model", "Benchmark", "Problem Idx", "Num. Samples Total", "Num. Samples Correct"]
    frame = frame[columns].drop_duplicates(["Model", "Problem Idx"])  # the counts do not vary with k
    frame["params"] = frame["Model"].str.removeprefix("Pythia ").map(SIZES)
    return tidy(
        frame,
        columns={
            "N": Column("params", meaning="parameters by the model's name (70M, ..., 12B)"),
            "n_samples": Column("Num. Samples Total", "sample", "independent samples drawn"),
            "n_correct": Column("Num. Samples Correct", "sample", "samples judged correct"),
        },
        labels={"family": "Model", "problem": "Problem Idx", "benchmark": "Benchmark"},
        run=("Model", "Problem Idx"),
        params_kind="total",
    )


RECOMPUTED = "our least-squares line of log(-log(mean pass@k)) on log k over all 101 k"
LINES = {
    "Pythia 70M": (8.026, 0.194), "Pythia 160M": (6.592, 0.280), "Pythia 410M": (5.524, 0.286), "Pythia 1B": (5.452, 0.315),
    "Pythia 2.8B": (4.104, 0.336), "Pythia 6.9B": (4.255, 0.348), "Pythia 12B": (4.113, 0.370),
}  # fmt: skip


table = Table(
    card=Card(
        "llmonkeys_pythia_math",
        "correct samples out of 10 000: 7 Pythia models x 128 MATH problems",
        tags={"best-of-n", "counts", "pass@k"},
        sources=(schaeffer2025, brown2024),
        scope="One model suite, one benchmark. The same 128 problems for every model (crossed).",
    ),
    read=read,
    subtables={
        "counts": "896 rows: model x problem, samples and correct samples",
        "pass_at_k": "707 rows: model x k, unbiased pass@k averaged over problems",
    },
    params_kind="total",
    flops_kind="unknown",
    columns={
        "N": "parameters by the model's name (parameter)",
        "n_samples": "independent samples drawn: 10 000 everywhere (sample)",
        "n_correct": "samples judged correct (sample)",
        **PASS_AT_K,
    },
    traps=(
        "The number of samples is fixed, so the binomial likelihood is exact; a problem with no correct sample is not p = 0.",
        "The file repeats each pair of counts for 101 values of k: one row is kept for each (model, problem) in `counts`.",
        (
            "The file's negative log scores are infinite where pass@k is 0 (28 987 rows): they are not used. pass@k is averaged over "
            "problems first, its logarithm taken after, as the paper does."
        ),
        "Sizes are read from the models' names; they are nominal.",
    ),
    fits=tuple(line("pass_at_k", m, a, b, RECOMPUTED) for m, (a, b) in LINES.items()),
)
