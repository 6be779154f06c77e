"""Repeated sampling: shared by the tables of success counts.

    -log(mean over problems of pass@k) ~ a k**-b

One row a model and k; pass@k itself is averaged before the logarithm is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.catalog._tidy import Bad, Column, tidy


def mean_over_problems(frame: pd.DataFrame, model: str, k: str, score: str) -> pd.DataFrame:
    """Columns model, k, pass_at_k, neg_log_pass_at_k, n_problems from one row a (model, problem, k)."""
    mean = frame.groupby([model, k], sort=False)[score].agg(["mean", "size"]).reset_index()
    mean.columns = pd.Index(["model", "k", "pass_at_k", "n_problems"])
    with np.errstate(divide="ignore"):
        # +0.0: a mean of exactly 1 gives 0, not -0
        mean["neg_log_pass_at_k"] = -np.log(mean["pass_at_k"]) + 0.0
    return mean


def pass_at_k(mean: pd.DataFrame, what: str, **kwargs: Any) -> xr.Dataset:
    """The runs Dataset of ``mean_over_problems``: rows where every problem is solved have no logarithm."""
    solved = Bad(
        mean["neg_log_pass_at_k"] <= 0, "pass_at_k", "log-of-zero", f"{what} is 1 here: log of its negative log is -inf"
    )
    return tidy(
        mean,
        columns={
            "k": Column("k", "attempt", "attempts per problem"),
            "pass_at_k": Column("pass_at_k", "1", f"{what}, mean over problems"),
            "neg_log_pass_at_k": Column("neg_log_pass_at_k", "nat", f"negative logarithm of the mean {what}"),
            "n_problems": Column("n_problems", "problem", "problems averaged over"),
        },
        labels={"family": "model"},
        run=("model", "k"),
        bad=[solved],
        **kwargs,
    )


PASS_AT_K = {
    "k": "attempts per problem (attempt)",
    "pass_at_k": "share of problems solved within k attempts, mean over problems (1)",
    "neg_log_pass_at_k": "negative logarithm of that mean (nat)",
    "n_problems": "problems averaged over (problem)",
}
