"""Superposition: the printed fit of language-model loss against model width. Constants only, no measured loss.

loss = A / m**alpha + B[family, corpus]        m: model width, alpha and A shared by 4 families x 4 text sets
"""

from __future__ import annotations

import json

import pandas as pd
import xarray as xr

from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Published, Table
from scalingkit.catalog._tidy import Column, tidy
from scalingkit.core.card import Card, Source
from scalingkit.core.notes import Note

liu2025 = Source("liu2025", "Liu, Liu, Gore 2025, Superposition yields robust neural scaling", "2505.10465")
ONLY = Note("constants-only", "warning", "loss", "Only the printed constants are public; no loss was measured here.")
MODELS = {"opt": 8, "Qwen2.5": 7, "gpt2": 4, "pythia": 8}
SLOPES = "toy_strong_superposition_slopes"


def read(files: Files, subtable: str) -> xr.Dataset:
    """The 16 offsets with the shared constants beside them, or the toy model's slopes."""
    printed = json.loads(files["fit.json"].read_text(encoding="utf-8"))
    if subtable == "toy_slopes":
        frame = pd.DataFrame({"frequency": list(printed[SLOPES]), "slope": list(printed[SLOPES].values())})
        columns = {"slope": Column("slope", "1", "slope of log loss on log m under strong superposition")}
        return tidy(frame, columns=columns, labels={"family": "frequency"}, run="frequency", extra_notes=[ONLY])
    frame = pd.read_csv(files["irreducible_loss.csv"])
    frame = frame.assign(
        alpha=printed["alpha"], se=printed["alpha_se"], A=printed["A"], mse=printed["mse"], models=frame["family"].map(MODELS)
    )  # fmt: skip
    return tidy(
        frame,
        columns={
            "irreducible_loss": Column("B_nats", "nat", "fitted offset B of this family and text set"),
            "alpha": Column("alpha", "1", "fitted exponent of width, shared by all 16"),
            "alpha_se": Column("se", "1", "its printed standard error"),
            "A": Column("A", "nat", "fitted coefficient, shared by all 16, with width in units of 1"),
            "mse": Column("mse", "nat^2", "mean squared residual of the fit, over 108 points"),
            "n_models": Column("models", "model", "models of the family in the fit"),
        },
        labels={"family": "family", "corpus": "dataset"},
        run=("family", "dataset"),
        extra_notes=[ONLY],
    )


NOTEBOOK = "LLMs/nonlinearfit-3.ipynb at the pinned commit, printed output"

table = Table(
    card=Card(
        "superposition_llm_fits",
        "printed constants of loss against width: 4 families x 4 text sets",
        tags={"pretraining", "loss", "width", "constants"},
        sources=(liu2025,),
        scope="Constants of one least-squares fit; use them as the truth of a simulation.",
    ),
    read=read,
    subtables={
        "offsets": "16 rows: family x text set, its offset B beside the shared alpha and A",
        "toy_slopes": "3 rows: slopes of the toy model under strong superposition, by feature frequency",
    },
    params_kind="unknown",
    flops_kind="unknown",
    columns={
        "irreducible_loss": "fitted offset B (nat)",
        "alpha": "shared exponent of width (1)",
        "alpha_se": "printed standard error of alpha (1)",
        "A": "shared coefficient (nat)",
        "mse": "mean squared residual over 108 points (nat^2)",
        "n_models": "models of the family (model)",
        "slope": "slope of log loss on log m in the toy model (1)",
    },
    traps=(
        "The measured losses (27 models x 4 text sets) are not in the repository: the table holds fitted constants, no data.",
        "One set of constants stands on every row: alpha, A and mse are repeated, not 16 estimates.",
        "The text sets have no tokens, compute or sizes here; width m is the only input of the law.",
    ),
    published={
        "alpha": Published(0.91, "abstract and Fig. 8: 0.91 +- 0.04"),
        "alpha_printed": Published(0.9098, f"{NOTEBOOK}; standard error 0.036"),
        "A": Published(476.0763, NOTEBOOK),
        "mse": Published(0.0051977, f"{NOTEBOOK}; 108 points, so a residual sd of 0.072 nat"),
    },
    fits=(
        Fit(
            law="power_floor",
            options={"rename": {"x": "width", "y": "loss"}},
            expected={"alpha": 0.9098, "A": 476.0763},
            tolerance={"alpha": 5e-5, "A": 5e-5},
            where=NOTEBOOK,
            reason="the 108 measured losses behind the constants are not public, so there is nothing to fit",
        ),
    ),
)
