"""Data-mixture losses: the loss on each of five domains against the share of each in the training mixture.

One row is one mixture seen by one domain: loss_i at shares (r_1, ..., r_5), sum 1. Tokens do not vary.
"""

from __future__ import annotations

import json

import pandas as pd
import xarray as xr

from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Table
from scalingkit.catalog._tidy import Column, tidy
from scalingkit.core.card import Card, Source

ye2024 = Source("ye2024", "Ye et al. 2024, Data mixing laws", "2403.16952")
DOMAINS = 5


def read(files: Files, subtable: str) -> xr.Dataset:
    sizes = json.loads(files["all_models_data.json"].read_text(encoding="utf-8"))
    rows = [
        _row(size, split, mixture, i)
        for size, splits in sizes.items()
        for split, mixtures in splits.items()
        for mixture in mixtures
        for i in range(DOMAINS)
        if subtable in ("all", split)
    ]
    frame = pd.DataFrame(rows)
    shares = {
        f"share_{j + 1}": Column(f"share_{j + 1}", "1", f"share of domain {j + 1} in the mixture")
        for j in range(DOMAINS)
    }
    return tidy(
        frame,
        columns={
            "N": Column("N", meaning="parameters as in the model's name"),
            "loss": Column("loss", meaning="loss per token on the domain"),
            "share": Column("share", "1", "share of the evaluated domain in the mixture"),
        }
        | shares,
        labels={"family": "size", "domain": "domain", "split": "split", "mixture": "mixture"},
        run=("size", "split", "mixture", "domain"),
    )


def _row(size: str, split: str, mixture: dict, i: int) -> dict:
    shares = mixture["proportions"]
    return {
        "size": size, "split": split, "mixture": mixture["ratio"], "domain": str(i + 1), "loss": mixture["loss"][i],
        "share": shares[i], "N": float(size.removesuffix("M")) * 1e6,
    } | {f"share_{j + 1}": share for j, share in enumerate(shares)}  # fmt: skip


table = Table(
    card=Card(
        "domain_mixture",
        "losses on five domains for 26 data mixtures at four model sizes",
        tags={"pretraining", "loss", "mixtures"},
        sources=(ye2024,),
        scope="Shares vary, tokens do not: nothing here tells about D. The paper is attributed by content; the file names none.",
    ),
    read=read,
    subtables={
        "all": "104 mixtures x 5 domains",
        "train": "80 mixtures used for fitting",
        "eval": "24 held-out mixtures",
    },
    params_kind="unknown",
    flops_kind="unknown",
    columns={
        "N": "parameters as in the model's name (parameter)",
        "loss": "loss on the domain (nat per token)",
        "share": "share of that domain in the training mixture (0 to 1)",
        "share_1 ... share_5": "shares of all five domains; they sum to 1",
        "domain, split, mixture": "1 to 5; train or eval; the source's own mixture label",
    },
    traps=(
        "The file lists a 1B model with no rows: only 70M, 160M, 305M and 410M are here.",
        "Five rows share one training run (one mixture, five domains): they are not independent runs.",
        "A share can be 0: its logarithm does not exist, so one-input power laws take rows with share > 0 only.",
        "The source removed the file later: the pinned commit is the one that has it.",
    ),
    fits=(
        Fit(
            law="power",
            options={
                "where": {"family": "70M", "domain": "1"},
                "at_least": {"share": 1e-6},
                "rename": {"x": "share", "y": "loss"},
            },
            expected={"A": 2.5445, "alpha": 0.0542},
            tolerance={"A": 5e-3, "alpha": 1e-3},
            where="our own fit of domain 1 at 70M against its own share with SciPy (Huber 1e-3 on log loss)",
            reason="the published mixing law is exponential in all five shares, which no law here says.",
        ),
    ),
)
