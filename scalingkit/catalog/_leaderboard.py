"""Benchmark scores of public models, with size, tokens and compute: shared by the leaderboard tables.

error = 1 - score        the falling outcome of a one-input law, for the score a caller names
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
import xarray as xr

from scalingkit.catalog._errors import CatalogError
from scalingkit.catalog._tidy import Bad, Column, tidy

COMPUTE, SLIPS = ("quarantine", "keep"), ("quarantine", "keep")
OPTIONS = {
    "score": "name of a score: adds error = 1 - score and sets rows without that score aside; default: none",
    "without_compute": '"quarantine" (default) sets models with unknown tokens aside; "keep" keeps them with D and C missing',
    "slips": '"quarantine" (default) sets rows whose size or tokens contradict the model\'s name aside; "keep" keeps them',
}
COLUMNS = {
    "N": "parameters as printed (parameter)",
    "D": "pretraining tokens as printed (token)",
    "C": "training compute as printed, 6 N D (FLOP)",
    "error": "1 - score, for the score named by the option (1)",
}


def slip_rules(frame: pd.DataFrame, model: str, slips: Mapping[str, tuple[str, str]]) -> list[Bad]:
    """A rule for each model of ``slips``: name -> (column, what is wrong)."""
    return [Bad(frame[model] == m, column, "slip", reason) for m, (column, reason) in slips.items()]


def leaderboard(
    frame: pd.DataFrame,
    table: str,
    *,
    model: str,
    size: tuple[str, str, str],
    scores: Mapping[str, Column],
    labels: Mapping[str, str],
    slips: Mapping[str, tuple[str, str]],
    score: str = "",
    without_compute: str = "quarantine",
    slip_rule: str = "quarantine",
    bad: Iterable[Bad] = (),
) -> xr.Dataset:
    """A runs Dataset, one row a model. ``size`` names the columns of 1e9 parameters, 1e12 tokens and 1e21 FLOP."""
    _choice(table, "without_compute", without_compute, COMPUTE)
    _choice(table, "slips", slip_rule, SLIPS)
    n, d, c = size
    columns = {
        "N": Column(n, meaning="parameters as printed", factor=1e9),
        "D": Column(d, meaning="pretraining tokens as printed", factor=1e12),
        "C": Column(c, meaning="training compute as printed: 6 N D", factor=1e21),
        **scores,
    }
    rules = [*bad, *(slip_rules(frame, model, slips) if slip_rule == "quarantine" else [])]
    if score:
        _choice(table, "score", score, scores)
        source = scores[score].source
        frame = frame.assign(**{"1 - score": 1 - frame[source] * scores[score].factor})
        columns["error"] = Column("1 - score", "1", f"1 - {score}")
        rules.append(Bad(frame[source].isna(), source, "missing", f"no {score} score"))
        rules.append(Bad(frame["1 - score"] <= 0, source, "non-positive", f"1 - {score} is not positive"))
    return tidy(
        frame,
        columns=columns,
        labels=labels,
        run=model,
        bad=rules,
        required=("N", "D", "C") if without_compute == "quarantine" else (),
        params_kind="unknown",
        flops_kind="6ND",
    )


def _choice(table: str, option: str, value: str, have: Iterable[str]) -> None:
    if value not in have:
        import difflib

        close = difflib.get_close_matches(value, list(have), 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise CatalogError(f"{table} has no {option} {value!r}; it has {', '.join(have)}.{hint}")
