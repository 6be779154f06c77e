"""Tasks for studies under test: cheap, deterministic, and each says in a file of its own when it began and ended."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import xarray as xr

from scalingkit.infer import studies

AXES = {"width": ["narrow", "wide"], "seed": list(range(30))}
DEADLY = ("narrow", 7)  # kills its worker, the first time


def told(folder: str, width: str, seed: int, what: str) -> None:
    """One line in the file of the task: O_APPEND, so that lines of several processes stay whole."""
    with (Path(folder) / f"{width}-{seed}.log").open("a") as f:
        f.write(f"{what} {os.getpid()}\n")


def value(width: str, seed: int) -> xr.Dataset:
    draws = np.random.default_rng([len(width), seed]).standard_normal((3, 4))
    out = xr.Dataset({"mean": ("param", draws.mean(1)), "draws": (("param", "draw"), draws), "steps": ((), 7)})
    return out.assign_coords(param=["E", "alpha", "beta"]).assign_attrs(device="cpu:0")


def fit(width: str, seed: int, folder: str, wait: float = 0.0, deadly: bool = False) -> xr.Dataset:
    told(folder, width, seed, "began")
    if deadly and (width, seed) == DEADLY and not (Path(folder) / "killed").exists():
        (Path(folder) / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(wait)
    out = value(width, seed)
    told(folder, width, seed, "ended")
    return out


def fails_for_three(width: str, seed: int, flag: str = "") -> xr.Dataset:
    if seed == 3 and not Path(flag).exists():
        raise FloatingPointError("the objective is not finite")
    return value(width, seed)


def main(store: str, folder: str, cluster: bool) -> None:
    settings = {"folder": folder, "wait": 0.05, "deadly": True}
    if not cluster:
        studies.run(store, fit, AXES, settings=settings)
        return
    from distributed import Client, LocalCluster

    options = dict(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50)
    with LocalCluster(**options) as made, Client(made) as client:
        studies.run(store, fit, AXES, settings=settings, client=client, batch=4)
