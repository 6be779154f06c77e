"""Optimiser-induced spectral scaling: FFN width against the rank its activations realise.

    rank ~ exp(intercept) * width**beta        one slope per optimiser, metric and token bucket

A growing power of width is a falling power of ``inverse_width`` = 1 / width, as the one-input laws have it.
"""

from __future__ import annotations

import pandas as pd
import xarray as xr

from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Published, Table
from scalingkit.catalog._tidy import Column, tidy
from scalingkit.core.card import Card, Source

jha2026 = Source("jha2026", "Jha, Reagen 2026, Same architecture, different capacity", "2605.21803")
POINTS = {
    "global": "global_rank_scaling_points.csv", "buckets": "frequency_bucket_rank_scaling_points.csv",
    "dion_sweep": "dion_tail_rank_sweep_points.csv", "tail_350m": "tail_350m_rank_scaling_points.csv",
}  # fmt: skip
BETAS = {
    "main_beta_table.csv": "global", "frequency_bucket_beta_table.csv": "buckets", "dion_tail_rank_sweep_beta_table.csv": "dion_sweep",
    "tail_350m_beta_table.csv": "tail_350m", "matched_loss_terminal_beta_table.csv": "matched_loss",
}  # fmt: skip


def read(files: Files, subtable: str) -> xr.Dataset:
    """Rank against width, the trajectories of one optimiser, the authors' exponents, or the runs' settings."""
    readers = {
        "trajectories": _trajectories,
        "beta": _beta,
        "beta_dynamics": _dynamics,
        "head_counts": _heads,
        "runs": _runs,
    }
    return _points(files, subtable) if subtable in POINTS else readers[subtable](files)


def _points(files: Files, subtable: str) -> xr.Dataset:
    frame = pd.read_csv(files[POINTS[subtable]])
    frame["inverse_width"] = 1 / frame["ffn_hidden_dim"]
    frame["fraction"] = frame["optimizer_display_name"].str.extract(r"\((1/\d+)\)")  # one file has no column for it
    return tidy(
        frame,
        columns={
            "rank": Column("value", "1", "realised rank: median over the last 5 logged steps of a layer, then over layers"),
            "rank_low": Column("err_low", "1", "rank less the spread over layers (can be negative)"),
            "rank_high": Column("err_high", "1", "rank plus the spread over layers"),
            "width": Column("ffn_hidden_dim", "unit", "hidden units of the feed-forward layer"),
            "inverse_width": Column("inverse_width", "1/unit", "1 / width: a growing power of width falls in it"),
            "width_multiplier": Column("width_multiplier", "1", "width over the base width"),
            "n_layers": Column("n_layers_used", "layer", "layers the median is over"),
        },
        labels={
            "family": "optimizer_display_name", "optimizer": "optimizer", "metric": "metric", "bucket": "bucket",
            "size": "model_scale", "rank_fraction": "fraction",
        },
        run=("run_id", "metric", "bucket"),
    )  # fmt: skip


def _trajectories(files: Files) -> xr.Dataset:
    frame = pd.read_csv(files["matched_loss_pr_trajectories.csv"])
    frame["inverse_width"] = 1 / frame["ffn_hidden_dim"]
    frame["trajectory"] = frame["optimizer_variant"] + "/" + frame["bucket"] + "/" + frame["ffn_hidden_dim"].astype(str)
    return tidy(
        frame,
        columns={
            "rank": Column("hard_rank", "1", "hard rank (participation ratio) at this step"),
            "rank_smoothed": Column("hard_rank_smoothed", "1", "the same, smoothed over 3 logged steps"),
            "width": Column("ffn_hidden_dim", "unit", "hidden units of the feed-forward layer"),
            "inverse_width": Column("inverse_width", "1/unit", "1 / width: a growing power of width falls in it"),
            "step": Column("step", "step", "training step"),
        },
        labels={"family": "optimizer_display_name", "bucket": "bucket", "trajectory": "trajectory"},
        run=("trajectory", "step"),
    )


def _beta(files: Files) -> xr.Dataset:
    """All the authors' exponents, with the sub-table each was fitted to."""
    frame = pd.concat([pd.read_csv(files[f]).assign(points=p) for f, p in BETAS.items()], ignore_index=True)
    frame["bucket"] = frame["bucket"].fillna("global")
    return tidy(
        frame,
        columns={
            "beta": Column("beta", "1", "printed slope of log rank on log width"),
            "beta_lower": Column("beta_lower", "1", "lower end of its 95% t interval"),
            "beta_upper": Column("beta_upper", "1", "upper end of its 95% t interval"),
            "beta_se": Column("std_err", "1", "its standard error"),
            "intercept": Column("intercept", "1", "printed intercept of log rank"),
            "r_squared": Column("r_squared", "1", "share of variance explained"),
            "n_widths": Column("n_widths", "width", "widths fitted"),
        },
        labels={"family": "optimizer_display_name", "metric": "metric", "bucket": "bucket", "points": "points", "size": "model_scale"},
        run=("points", "optimizer_display_name", "metric", "bucket"),
        duplicates=False,  # the same fit is printed in several tables
    )  # fmt: skip


def _dynamics(files: Files) -> xr.Dataset:
    return tidy(
        pd.read_csv(files["matched_loss_beta_dynamics.csv"]),
        columns={
            "beta_hard": Column("beta_hard", "1", "slope of log hard rank on log width at this step"),
            "beta_soft": Column("beta_soft", "1", "slope of log soft rank on log width at this step"),
            "step": Column("step", "step", "training step"),
        },
        labels={"family": "optimizer_display_name", "bucket": "bucket"},
        run=("optimizer_variant", "bucket", "step"),
    )


def _heads(files: Files) -> xr.Dataset:
    return tidy(
        pd.read_csv(files["architecture_vs_optimizer_beta_values.csv"]),
        columns={
            "beta": Column("beta", "1", "slope of log rank on log width, three decimals, from the paper's figure"),
            "head_count": Column("head_count", "head", "attention heads of the model"),
        },
        labels={"family": "optimizer_display_name", "metric": "metric", "bucket": "bucket"},
        run=("optimizer_variant", "head_count", "metric", "bucket"),
    )


def _runs(files: Files) -> xr.Dataset:
    return tidy(
        pd.read_csv(files["run_metadata.csv"]),
        columns={
            "width": Column("ffn_hidden_dim", "unit", "hidden units of the feed-forward layer"),
            "n_layers": Column("num_layers", "layer", "layers of the model"),
            "n_gpus": Column("num_gpus", "GPU", "GPUs trained on"),
        },
        labels={"family": "optimizer_display_name", "size": "model_scale", "seed": "seed"},
        run="run_id",
    )


MAIN = "main_beta_table.csv (Fig. 1), scipy.stats.linregress on logs over 8 widths"
PRINTED = {
    ("AdamW", "soft_rank"): 0.660599, ("AdamW", "hard_rank"): 0.288702, ("Dion (1/2)", "soft_rank"): 0.919911,
    ("Dion (1/2)", "hard_rank"): 0.786957, ("Dion (1/16)", "soft_rank"): 0.744386, ("Dion (1/16)", "hard_rank"): 0.500306,
    ("Muon", "soft_rank"): 0.958079, ("Muon", "hard_rank"): 0.820649, ("NorMuon", "soft_rank"): 1.006714,
    ("NorMuon", "hard_rank"): 0.798358,
}  # fmt: skip


def _fit(table: str, family: str, metric: str, beta: float, where: str, **more: str) -> Fit:
    return Fit(
        law="power",
        options={
            "load": {"table": table},
            "where": {"family": family, "metric": metric, **more},
            "rename": {"x": "inverse_width", "y": "rank"},
            "delta": 1e3,  # no residual is that large: plain least squares on the logs
        },
        expected={"alpha": beta},
        tolerance={"alpha": 1e-5},
        where=where,
    )


BUCKETS = "frequency_bucket_beta_table.csv and README headline"

table = Table(
    card=Card(
        "optimizer_spectral_scaling",
        "realised rank of FFN activations against width, by optimiser, metric and token bucket",
        tags={"rank", "width", "optimiser"},
        sources=(jha2026,),
        scope="GPT-2 160M (8 widths) and 350M (4 widths); one seed a run, seeds not recorded; ranks aggregated over layers.",
    ),
    read=read,
    subtables={
        "global": "80 rows: 5 optimisers x 8 widths x 2 metrics, all tokens, 160M",
        "buckets": "240 rows: the same by token-frequency bucket (head, mid, tail)",
        "dion_sweep": "80 rows: AdamW and Dion at four rank fractions, tail tokens",
        "tail_350m": "32 rows: 4 optimisers x 4 widths x 2 metrics, tail tokens, 350M",
        "trajectories": "732 rows: hard rank by step, AdamW for 12k steps, 4 widths, 3 buckets",
        "beta": "76 printed exponents with intervals, from five tables",
        "beta_dynamics": "183 rows: exponent by training step",
        "head_counts": "60 printed exponents at 6 and 12 heads",
        "runs": "40 rows: settings of the 160M runs",
    },
    params_kind="unknown",
    flops_kind="unknown",
    columns={
        "rank": "realised rank (1)", "rank_low": "rank less the spread over layers (1)", "rank_high": "rank plus the spread (1)",
        "rank_smoothed": "hard rank smoothed over 3 logged steps (1)",
        "width": "FFN hidden units (unit)", "inverse_width": "1 / width (1/unit)", "width_multiplier": "width over base width (1)",
        "n_layers": "layers (layer)", "n_gpus": "GPUs (GPU)", "step": "training step (step)", "head_count": "attention heads (head)",
        "beta": "printed slope of log rank on log width (1)", "beta_lower": "lower end, 95% (1)", "beta_upper": "upper end, 95% (1)",
        "beta_se": "standard error of beta (1)", "intercept": "printed intercept of log rank (1)", "r_squared": "variance explained (1)",
        "n_widths": "widths fitted (width)", "beta_hard": "slope for hard rank at a step (1)", "beta_soft": "slope for soft rank (1)",
    },
    traps=(
        "Two metrics share the column value: soft_rank (exp of spectral entropy) and hard_rank (participation ratio). They are a "
        "coord; never fit them together.",
        "rank_low and rank_high are the spread over 12 or 24 layers, not a standard error; 11 lower ends are below zero.",
        "One seed a run and no seed recorded: the intervals printed with beta are those of a line through 8 (or 4) widths.",
        "The 160M tail points of AdamW and Dion stand in two files (buckets, dion_sweep): do not join them.",
        "The base width is 768 at 160M and 1024 at 350M: use width, not width_multiplier.",
        "The trajectories cover AdamW at 12k steps and 4 widths only, although the exponents by step are of 8 widths.",
        "A missing rank fraction means the optimiser has none; it is an empty label, not a gap.",
    ),
    published={
        "beta_hard_adamw": Published(0.29, "README headline; 0.2887 in main_beta_table.csv"),
        "beta_hard_muon": Published(0.80, "README headline, about; 0.8206 (Muon) and 0.7984 (NorMuon) in main_beta_table.csv"),
        "beta_tail_adamw": Published(0.44, "README headline, tail tokens, hard rank"),
        "beta_tail_muon": Published(1.02, "README headline, tail tokens, hard rank"),
    },
    fits=(
        *(_fit("global", o, m, b, MAIN) for (o, m), b in PRINTED.items()),
        _fit("buckets", "AdamW", "hard_rank", 0.438107, BUCKETS, bucket="tail"),
        _fit("tail_350m", "NorMuon", "soft_rank", 0.919328, "tail_350m_beta_table.csv, 4 widths"),
    ),
)  # fmt: skip
