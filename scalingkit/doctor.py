"""Doctor: is this installation fit for work? Versions, devices, precision, the data mirror, widgets."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Any

from scalingkit.core.notes import Note

PACKAGES = (
    "scalingkit", "jax", "jaxlib", "numpyro", "arviz", "arviz-base", "arviz-stats", "xarray", "numpy", "scipy", "pandas",
    "zarr", "seaborn", "matplotlib", "plotly", "anywidget", "ipywidgets", "jupyterlab",
)  # fmt: skip
FLOORS = {"arviz": (1,), "jax": (0, 5), "xarray": (2024, 10)}
OLDEST_PYTHON = (3, 12)


def examine() -> tuple[dict[str, Any], list[Note]]:
    """What there is, and a note for each thing that stands in the way."""
    found = versions()
    report = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": found,
        "devices": devices(),
        "precision": precision(),
        "data": mirror(),
        "widgets": widgets(found),
    }
    return report, advice(report)


def versions() -> dict[str, str]:
    """Package -> version; 'missing' where it is not installed."""
    out = {}
    for p in PACKAGES:
        try:
            out[p] = metadata.version(p)
        except metadata.PackageNotFoundError:
            out[p] = "missing"
    return out


def devices() -> dict[str, Any]:
    """JAX's devices, and the cache of compiled code."""
    import jax

    return {
        "default": jax.default_backend(),
        "all": [f"{d.platform}:{d.id} {d.device_kind}" for d in jax.devices()],
        "cpu_cores": os.cpu_count(),
        "compilation_cache": jax.config.jax_compilation_cache_dir
        or "off (set JAX_COMPILATION_CACHE_DIR to keep compiled code)",
    }


def precision() -> str:
    import jax

    return "float64" if jax.config.read("jax_enable_x64") else "float32"


def mirror() -> dict[str, Any]:
    """How many tables are to be had, and from where."""
    from collections import Counter

    from scalingkit import catalog

    counts = Counter(row["available"] for row in catalog.status())
    return {
        "SCALINGKIT_DATA": os.environ.get("SCALINGKIT_DATA", "not set"),
        **{f"tables from {k}": v for k, v in counts.items()},
    }


def widgets(found: dict[str, str]) -> dict[str, Any]:
    """Whether a widget can show here: a kernel with ipywidgets and anywidget, and the server's JupyterLab."""
    missing = [p for p in ("ipywidgets", "anywidget", "plotly", "jupyterlab") if found.get(p) == "missing"]
    in_kernel = "ipykernel" in sys.modules
    return {
        "packages": "complete" if not missing else f"missing: {', '.join(missing)}",
        "kernel": sys.executable if in_kernel else "not a notebook kernel; run this in a notebook to test the kernel",
        "server": os.environ.get("JPY_SESSION_NAME", "none seen") if in_kernel else "none",
        "where_none_shows": "every widget has the same numbers in .result and a static picture",
    }


def advice(report: dict[str, Any]) -> list[Note]:
    """A note per obstacle, each saying what to do."""
    notes = []
    if tuple(map(int, report["python"].split(".")[:2])) < OLDEST_PYTHON:
        notes.append(
            Note("old-version", "error", "python", "Python 3.12 or newer is needed; environment.yml makes one.")
        )
    for package, version in report["packages"].items():
        if version == "missing":
            notes.append(Note("old-version", "error", package, "is not installed; `make setup` installs everything."))
        elif package in FLOORS and _numbers(version) < FLOORS[package]:
            floor = ".".join(map(str, FLOORS[package]))
            notes.append(
                Note(
                    "old-version", "error", package, f"version {version} is older than {floor}; `make setup` mends it."
                )
            )
    if report["precision"] != "float64":
        text = (
            "JAX runs in float32; unset JAX_ENABLE_X64=0 before Python starts. Fits and identifiability refuse to run."
        )
        notes.append(Note("float32", "error", "precision", text))
    if report["data"].get("tables from mirror-only"):
        text = "some tables are derived from files that cannot be downloaded as they are; `scalingkit data show NAME` says how to make them."
        notes.append(Note("data-missing", "info", "data", text))
    return notes


def _numbers(version: str) -> tuple[int, ...]:
    out = []
    for part in version.split("."):
        if not part.isdigit():
            break
        out.append(int(part))
    return tuple(out)
