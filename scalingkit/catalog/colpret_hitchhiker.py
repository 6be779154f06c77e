"""Training trajectories collected for a guide to scaling-law estimation: OPT, datablations, OLMo, ConvNets.

OPT:            loss = ln(perplexity), D = 10**num_token, C = 10**flops
OLMo:           D = step x tokens per step
datablations:   C = 6 N D; the file's own flops column is mis-scaled
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from scalingkit.catalog._options import choose
from scalingkit.catalog._store import Files
from scalingkit.catalog._table import Fit, Table
from scalingkit.catalog._tidy import Bad, Column, tidy
from scalingkit.core.card import Card, Source
from scalingkit.core.names import FLOP_PER_PARAM_TOKEN

choshen2024 = Source("choshen2024", "Choshen et al. 2024, A hitchhiker's guide to scaling law estimation", "2410.11840")
ID = "colpret-hitchhiker"
TOKENS_PER_STEP = {"OLMo-1B": 2048 * 2048, "OLMo-7B": 2160 * 2048, "OLMo-7B-Twin-2T": 2160 * 2048}
SCALE = {"m": 1e6, "b": 1e9}


def size(label: str) -> float:
    """'1.3b' -> 1.3e9."""
    return float(label[:-1]) * SCALE[label[-1].lower()]


def read(files: Files, subtable: str, copies: str = "quarantine") -> xr.Dataset:
    choose(ID, "copies", copies, ("quarantine", "keep"))
    if subtable == "opt":
        return _opt(pd.read_csv(files["opt_trajectories.csv"]))
    if subtable == "datablations":
        return _datablations(pd.read_csv(files["datablations_training_curves.csv"]))
    if subtable == "olmo":
        return _olmo(pd.read_csv(files["olmo.csv"]))
    return _convnets(pd.read_csv(files["convnets_match_2310.16764.csv"], encoding="utf-8-sig"), copies)


def _opt(frame: pd.DataFrame) -> xr.Dataset:
    frame["N"] = frame["model_size"].map(size)
    frame["D"], frame["C"], frame["loss"] = 10 ** frame["num_token"], 10 ** frame["flops"], np.log(frame["ppl"])
    return tidy(
        frame,
        columns={
            "N": Column("N", meaning="parameters as in the model's name"),
            "D": "D",
            "C": "C",
            "loss": Column("loss", meaning="validation loss per token, ln(perplexity)"),
            "step": Column("steps", "step", "training step"),
        },
        labels={"family": "model_name", "trajectory": "model_size"},
        run=("model_size", "steps"),
        flops_kind="6ND",
    )


def _datablations(frame: pd.DataFrame) -> xr.Dataset:
    frame["N"] = frame["num_params"].map(size)
    frame["C"] = FLOP_PER_PARAM_TOKEN * frame["N"] * frame["token_num"]
    frame["U"] = np.minimum(frame["tokens_per_epoch"], frame["token_num"])
    frame["trajectory"] = [
        f"{n}/{d}/{e} epochs" for n, d, e in zip(frame["num_params"], frame["data"], frame["epochs"], strict=True)
    ]
    return tidy(
        frame,
        columns={
            "N": Column("N", meaning="parameters as in the model's name"),
            "D": "token_num",
            "U": Column("U", meaning="unique tokens seen so far: min(tokens of one pass, D)"),
            "C": "C",
            "loss": Column("loss", meaning="training loss per token at this point of the curve"),
            "epochs": Column("epochs", "1", "passes planned over the data"),
        },
        labels={"corpus": "data", "family": "num_params", "trajectory": "trajectory"},
        run=("trajectory", "token_num"),
        flops_kind="6ND",
    )


def _olmo(frame: pd.DataFrame) -> xr.Dataset:
    frame["model_name"] = frame["model_name"].str.strip()
    frame["N"] = frame["num_params"].map(size)
    frame["D"] = frame["Step"] * frame["model_name"].map(TOKENS_PER_STEP)
    frame["C"] = FLOP_PER_PARAM_TOKEN * frame["N"] * frame["D"]
    small = frame["v3-small-c4_en-validation/CrossEntropyLoss"]
    frame["loss"] = np.log(frame["c4_en-validation/Perplexity"]).fillna(small)
    frame["eval"] = np.where(
        frame["c4_en-validation/Perplexity"].notna(), "c4_en-validation", "v3-small-c4_en-validation"
    )
    losses = [c for c in frame if c.endswith("/CrossEntropyLoss")]
    named = {"loss_" + c.removesuffix("/CrossEntropyLoss").replace("-", "_"): c for c in losses}
    columns: dict[str, Column | str] = {
        "N": Column("N", meaning="parameters as in the model's name"),
        "D": Column("D", meaning="training tokens, step x tokens per step"),
        "C": "C",
        "loss": Column("loss", meaning="validation loss per token on C4, the set named in the coordinate eval"),
        "step": Column("Step", "step", "training step"),
    }
    for k, header in named.items():
        columns[k] = Column(header, "nat", f"loss per token on {header.split('/')[0]}; missing where not evaluated")
    return tidy(
        frame,
        columns=columns,
        labels={"family": "num_params", "trajectory": "model_name", "eval": "eval"},
        run=("model_name", "Step"),
        flops_kind="6ND",
    )


def _convnets(frame: pd.DataFrame, copies: str) -> xr.Dataset:
    frame["y01"] = frame["y"] / 100
    copied = frame.duplicated(["x", "y"])
    return tidy(
        frame,
        columns={
            "x": Column("x", "TPU-v4 core-hour", "pre-training compute, read off a figure"),
            "error": Column("y01", meaning="ImageNet top-1 error, read off a figure"),
        },
        labels={"family": "model"},
        run=("model", "x"),
        bad=[Bad(copied, "model", "copied", "same point as an earlier row under another model's name")]
        if copies == "quarantine"
        else [],
        required=("x", "error"),
    )


table = Table(
    card=Card(
        "colpret_hitchhiker",
        "training trajectories of OPT, datablations, OLMo and ConvNets, as collected for a guide to scaling-law estimation",
        tags={"pretraining", "loss", "trajectories"},
        sources=(choshen2024,),
        scope="A subset: the collection's larger files (Pythia, Amber) are not in it. Within a run, the learning-rate "
        "schedule is confounded with D.",
    ),
    read=read,
    subtables={
        "opt": "142 checkpoints of six OPT models, 125M-175B",
        "datablations": "9261 points of 48 training curves: 2.8B, 4.2B, 8.7B on C4 or OSCAR, 1 to 44 epochs",
        "olmo": "1708 checkpoints of OLMo 1B, 7B and 7B-Twin-2T",
        "convnets": "26 NFNet points read off a figure: ImageNet error against compute",
    },
    options={"copies": 'convnets: "quarantine" (default) or "keep" points that repeat another model\'s'},
    params_kind="unknown",
    flops_kind="6ND",
    columns={
        "N": "parameters as in the model's name (parameter)",
        "D": "tokens seen at the checkpoint (token)",
        "U": "datablations: unique tokens seen (token)",
        "C": "training compute (FLOP)",
        "loss": "loss (nat per token)",
        "x, error": "convnets: compute (TPU-v4 core-hour) and top-1 error (0 to 1)",
        "trajectory": "the run a checkpoint belongs to",
    },
    traps=(
        "Rows of one trajectory are checkpoints of one run: not independent, and mid-schedule.",
        "OPT: num_token and flops are logarithms to base 10, and the outcome is a perplexity: all three are converted.",
        "datablations: the flops column is mis-scaled and ignored; C = 6 N D instead.",
        "datablations: token counts are in steps of 2**20 x 100, and the loss is that of training, noisy.",
        "OLMo: the 1B model was evaluated on other versions of the validation sets than the 7B models. ``loss`` is C4 in both, "
        "the coordinate eval names the version: do not compare across it.",
        "OLMo: the revision names the file gives for the 1B model follow the 7B's tokens per step (88B at step 20000; its own "
        "is 84B). D is step x tokens per step: 4 194 304 for the 1B, 4 423 680 for the 7Bs.",
        "OLMo: the 1B model's name ends in a blank in the file; it is stripped.",
        "convnets: the five points named F7_wide are the five F7 points again. They are set aside.",
    ),
    fits=(
        Fit(
            law="kaplan",
            options={"load": {"table": "opt"}, "delta": 1e-3},
            expected={"alpha_N": 0.0769, "alpha_D": 0.1166},
            tolerance={"alpha_N": 1e-3, "alpha_D": 1e-3},
            where="our own fit of the 142 OPT checkpoints (Huber 1e-3 on log loss)",
            reason="no fit of this collection is published. Checkpoints along a schedule do not bend to a floor: under the "
            "chinchilla law E runs to 0, so the law without a floor is fitted.",
        ),
        Fit(
            law="power_floor",
            options={
                "load": {"table": "convnets"},
                "where": {"family": "F3"},
                "rename": {"x": "x", "y": "error"},
                "delta": 1e-3,
            },
            expected={"E": 0.1028, "alpha": 0.5744},
            tolerance={"E": 1e-3, "alpha": 5e-3},
            where="our own fit of the five F3 points with SciPy (Huber 1e-3 on log error)",
        ),
    ),
)
