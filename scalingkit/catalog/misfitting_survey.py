"""Runs of (Mis)Fitting: eleven sizes, five peak learning rates, several horizons; trained on FineWeb, evaluated on C4."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from scalingkit.catalog._options import choose
from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Published, Table
from scalingkit.catalog._tidy import Bad, Column, tidy
from scalingkit.core.card import Card, Source

li2025 = Source("li2025", "Li et al. 2025, (Mis)Fitting: a survey of scaling laws", "2502.18969")
ID = "misfitting-survey"
EXACT = {"C": float, "C_no_emb": float, "C_6ND": float, "C_6ND_no_emb": float}  # above 2**63: not integers
KINDS = {"total": ("N", "C"), "non-embedding": ("N_no_emb", "C_no_emb")}
FITS = "analysis_form_misfitting_new_final_C_vs_N.json in the source repository"


def read(files: Files, subtable: str, duplicates: str = "quarantine", params: str = "total") -> xr.Dataset:
    choose(ID, "duplicates", duplicates, ("quarantine", "keep"))
    choose(ID, "params", params, KINDS)
    name = "scaling_results.csv" if subtable == "checkpoints" else "scaling_results_last_ckpt_only.csv"
    frame = pd.read_csv(files[name], dtype=EXACT)
    frame["trajectory"] = _trajectory(frame)
    n, c = KINDS[params]
    bad = []
    if subtable == "best-lr":
        best = frame.groupby(["N", "D"])["loss"].idxmin()
        bad = [
            Bad(
                ~frame.index.isin(best),
                "peak_lr",
                "not-best-lr",
                "another learning rate gives a lower loss at this (N, D)",
            )
        ]
    return tidy(
        frame,
        columns={
            "N": n,
            "D": "D",
            "C": Column(c, meaning="training compute, counted by the source from the architecture"),
            "loss": Column("loss", meaning="loss per token on C4"),
            "lr": Column("peak_lr", "1", "peak learning rate"),
            "elapsed": Column("portion_steps_elapsed", "1", "share of the schedule done"),
            "step": Column("current_steps", "step", "training step"),
        },
        labels={"family": "model", "trajectory": "trajectory"},
        run=("trajectory", "current_steps"),
        bad=bad,
        duplicates=duplicates == "quarantine" and subtable != "best-lr",
        params_kind=params,
        flops_kind="exact",
    )


def _trajectory(frame: pd.DataFrame) -> pd.Series:
    return (
        frame["model"]
        + "/"
        + frame["total_steps"].astype(str)
        + "/"
        + frame["peak_lr"].astype(str)
        + "/"
        + frame["sweep"]
    )


table = Table(
    card=Card(
        "misfitting_survey",
        "261 runs of a survey that refits scaling laws: eleven sizes, five learning rates, many horizons",
        tags={"pretraining", "loss", "learning-rate", "trajectories"},
        sources=(li2025,),
        scope="N 57M-1.18B with embeddings, 1.4-218 tokens per parameter. Exponents are badly determined: a ridge in E, A, alpha.",
    ),
    read=read,
    subtables={
        "final": "261 final checkpoints",
        "best-lr": "the same 261 rows, with all but the best learning rate in each of 81 (N, D) cells set aside",
        "checkpoints": "4852 checkpoints",
    },
    options={
        "duplicates": '"quarantine" (default) or "keep" exact duplicate rows (the published fit keeps them)',
        "params": '"total" (default, with embeddings) or "non-embedding"',
    },
    params_kind="total",
    flops_kind="exact",
    columns={
        "N": "parameters, with embeddings unless params='non-embedding' (parameter)",
        "D": "tokens seen at the checkpoint (token)",
        "C": "compute, counted by the source (FLOP)",
        "loss": "C4 loss (nat per token)",
        "lr": "peak learning rate: a nuisance factor within each (N, D)",
        "trajectory": "the run a checkpoint belongs to",
    },
    traps=(
        "FLOP are printed as integers beyond 2**63, which integer columns cannot hold: they are read as floats.",
        "Learning rate varies within (N, D): the 261 rows are 81 cells. Best learning rate only (sub-table best-lr) moves alpha "
        "from 0.20 to 0.14.",
        "One exact duplicate among the final checkpoints (two among all): set aside by default; the published fit counts it twice.",
        "current_epoch counts checkpoints, not passes over the data: it is not loaded.",
        "Checkpoints of one run are not independent rows.",
    ),
    published={
        "log A": Published(3.9388, FITS),
        "log B": Published(13.0558, FITS),
        "log E": Published(0.59208, FITS),
        "alpha": Published(0.20020, FITS),
        "beta": Published(0.63570, FITS),
        "objective": Published(0.00502165, FITS),
    },
    fits=(
        Fit(
            law="chinchilla",
            options={"load": {"duplicates": "keep"}, "delta": 1e-3},
            expected={"E": 1.8077, "alpha": 0.2002, "beta": 0.6357, "objective": 0.00502165},
            tolerance={"E": 2e-3, "alpha": 5e-4, "beta": 5e-4, "objective": 1e-7},
            where=FITS,
        ),
        Fit(
            law="chinchilla",
            options={"load": {"table": "best-lr"}, "delta": 1e-3},
            expected={"alpha": 0.1382, "beta": 0.6699},
            tolerance={"alpha": 3e-3, "beta": 3e-3},
            where="our own fit of the best learning rate in each cell with SciPy (Huber 1e-3 on log loss)",
            reason="not published: shows that E, A and alpha lie on a ridge.",
        ),
    ),
)
