"""Statistical scaling law for skills: leaderboard v1 and v2 scores by family, heavy missingness across the two.

raw = floor + normalised (1 - floor)       two conventions in the v2 file, told apart by their decimals
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.catalog._errors import CatalogError
from scalingkit.catalog._leaderboard import COLUMNS, OPTIONS, leaderboard
from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Published, Table
from scalingkit.catalog._tidy import Column
from scalingkit.core import notes
from scalingkit.core.card import Card, Source

maiapolo2026 = Source(
    "maiapolo2026", "Statistical Scaling Law for LLM Skills, repository README, 2026", url="https://github.com/felipemaiapolo/statistical-scaling-law"
)  # fmt: skip
FILES = {"both": "df_full.csv", "v1": "df_full_v1.csv", "v2": "df_full_v2.csv"}
SIZE = ("size", "tokens", "flops")
KEY = ["model", "family", *SIZE]
V1 = ("arc", "hellaswag", "mmlu", "truthfulqa", "winogrande", "gsm8k")
V2 = ("ifeval", "bbh", "math", "mmlu-pro", "gpqa", "musr")
RESCALED = ("bbh", "mmlu-pro", "gpqa", "musr")  # where chance is not 0, so that normalising moves the score
SCALES = ("apart", "file")
SLIPS = {
    "rwkv-4-1b5-pile": ("size", "1.0 billion parameters, but the name says 1.5"),
    "athena-gemma-2-2b-it": ("size", "9.0 billion parameters, but the name says 2b"),
    "llama-3-6.3b-v0.1": ("size", "8.0 billion parameters, but the name says 6.3b"),
}


def read(
    files: Files,
    subtable: str,
    scale: str = "apart",
    score: str = "",
    without_compute: str = "quarantine",
    slips: str = "quarantine",
) -> xr.Dataset:
    """The outer join of both leaderboards (as the source's notebook makes it), either one, or models that have both."""
    if scale not in SCALES:
        raise CatalogError(f"statistical-scaling-law has no scale {scale!r}; it has {', '.join(SCALES)}.")
    frame = _joined(files) if subtable == "joined" else pd.read_csv(files[FILES[subtable]], index_col=0)
    normalised = _is_normalised(frame)
    frame["scale"] = np.select([normalised, _has_v2(frame)], ["normalised", "raw"], "")
    columns = {c: _score(c) for c in (*V1, *V2) if c in frame}
    if scale == "apart" and "gpqa" in frame:
        for c in RESCALED:
            frame[f"{c}_normalised"] = frame[c].where(normalised)
            frame[c] = frame[c].where(~normalised)
            columns[f"{c}_normalised"] = Column(f"{c}_normalised", "1", f"{c}, rescaled so that chance is 0")
    ds = leaderboard(
        frame,
        "statistical-scaling-law",
        model="model",
        size=SIZE,
        scores=columns,
        labels={"family": "family", "scale": "scale"},
        slips=SLIPS,
        score=score,
        without_compute=without_compute,
        slip_rule=slips,
    )
    if n := int(normalised.sum()):
        notes.add(ds, _mixed(n, int(_has_v2(frame).sum()), scale))
    return ds


def _joined(files: Files) -> pd.DataFrame:
    v1, v2 = (pd.read_csv(files[FILES[k]], index_col=0) for k in ("v1", "v2"))
    return v1.merge(v2, on=KEY, how="outer")


def _has_v2(frame: pd.DataFrame) -> pd.Series:
    return frame["ifeval"].notna() if "ifeval" in frame else pd.Series(False, index=frame.index)


def _is_normalised(frame: pd.DataFrame) -> pd.Series:
    """Raw scores were printed with two decimals, normalised ones in full."""
    scores = frame.reindex(columns=list(V2))
    return ((scores - scores.round(2)).abs() > 1e-9).any(axis=1)


def _score(column: str) -> Column:
    if column in V1:
        return Column(column, "1", "leaderboard v1 score, 0-1")
    return Column(column, "1", "raw leaderboard v2 score, 0-1, two decimals")


def _mixed(n: int, of: int, scale: str) -> notes.Note:
    done = "they stand in *_normalised variables" if scale == "apart" else "they are not told apart (scale='file')"
    return notes.Note(
        "mixed-conventions", "warning", ", ".join(RESCALED), f"{n} of {of} rows hold chance-normalised v2 scores, not raw ones; {done}."
    )  # fmt: skip


PRINTED = "leaderboard_analysis.ipynb at the pinned commit, printed output (joint fit, 4 factors)"
SLOPES = {
    "log_s": (0.432, 0.190, 0.840, 0.656),
    "log_t": (0.774, 0.324, 0.384, 0.445),
    "log_s_log_t": (0.026, 0.154, -0.039, 0.010),
}
HESSIAN = {
    "log_s": (0.051, 0.055, 0.064, 0.107),
    "log_t": (0.086, 0.088, 0.076, 0.154),
    "log_s_log_t": (0.024, 0.034, 0.015, 0.050),
}


def _slopes() -> dict[str, Published]:
    return {
        f"factor_{k + 1}_{term}": Published(v, f"{PRINTED}; standard error {HESSIAN[term][k]}")
        for term, values in SLOPES.items()
        for k, v in enumerate(values)
    }


table = Table(
    card=Card(
        "statistical_scaling_law",
        "leaderboard v1 and v2 scores of 285 models in 170 families, many with only one of the two",
        tags={"leaderboard", "accuracy", "downstream", "missing-data"},
        sources=(maiapolo2026,),
        scope="Observational. Instruction-tuned models are families of their own; most families have one model.",
    ),
    read=read,
    subtables={
        "joined": "286 rows: outer join of v1 and v2 on model, family, size, tokens and FLOP",
        "v1": "168 models (75 families) x 6 scores",
        "v2": "216 rows (146 families) x 6 scores",
        "both": "98 models with all 12 scores",
    },
    options={
        "scale": '"apart" (default) moves chance-normalised v2 scores to <score>_normalised; "file" leaves them in one column',
        **OPTIONS,
    },
    params_kind="unknown",
    flops_kind="6ND",
    columns={
        **COLUMNS,
        "arc, hellaswag, mmlu, truthfulqa, winogrande, gsm8k": "leaderboard v1 scores (1)",
        "ifeval, bbh, math, mmlu-pro, gpqa, musr": "raw leaderboard v2 scores (1)",
        "bbh_normalised, mmlu-pro_normalised, gpqa_normalised, musr_normalised": "v2 scores rescaled so that chance is 0 (1)",
    },
    traps=(
        "The v2 file mixes two conventions: 105 rows have raw scores with two decimals, 111 rows chance-normalised ones in full "
        "(GPQA 0.06 against 0.28 on average). They are told apart by their decimals; the coord `scale` says which, and "
        'normalised bbh, mmlu-pro, gpqa and musr stand in variables of their own. scale="file" undoes it.',
        "l3-pneuma-8b stands twice in v2, with different scores (two evaluations): both are kept, the second as l3-pneuma-8b#2.",
        "rwkv-4-1b5-pile, athena-gemma-2-2b-it and llama-3-6.3b-v0.1 are printed with sizes that contradict their names: set aside; "
        'slips="keep" keeps them.',
        "Missing scores are the rule: of 286 joined rows 98 have both leaderboards.",
        "Factors of the printed fit are identified up to a rotation: compare signs, sizes and ratios. Its two kinds of standard "
        "error differ by 2 to 4 times.",
        "FLOP are 6 N D of the printed numbers, so C and 6 N D agree by construction.",
    ),
    published=_slopes(),
    fits=(
        Fit(
            law="power",
            options={
                "load": {"table": "v1", "score": "hellaswag"},
                "where": {"family": "pythia"},
                "rename": {"x": "C", "y": "error"},
                "delta": 1e3,
            },
            expected={"alpha": 0.18309},
            tolerance={"alpha": 6e-5},
            where="our least-squares line of log(1 - HellaSwag) on log C, 8 models; the source prints slopes of latent factors, "
            "which no law of one input can give",
        ),
    ),
)  # fmt: skip
