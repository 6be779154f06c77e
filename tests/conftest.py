"""What every test stands on: float64, strict shapes, the public tables where they are to be had, a browser where there is one.

Set before JAX is imported, so that no test can run in float32 or lean on silent rank promotion.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

os.environ["JAX_ENABLE_X64"] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")

import jax
import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
NO_MIRROR = (
    "the public run tables are not here: set SCALINGKIT_DATA to a folder that holds them, "
    "or put that folder at ../shared/data beside the checkout (`scalingkit data fetch NAME` gets single tables)"
)
NO_CHROMIUM = "no Chromium on this machine: install it (Debian: apt-get install chromium) to run the browser tests"

settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def find_mirror() -> Path | None:
    """The folder of public tables: SCALINGKIT_DATA where set, else ../shared/data beside the checkout, else None."""
    named = os.environ.get("SCALINGKIT_DATA")
    if named and not Path(named).is_dir():
        raise pytest.UsageError(f"SCALINGKIT_DATA={named} is not a folder: mend it or unset it.")
    path = Path(named) if named else ROOT.parent / "shared" / "data"
    return path if path.is_dir() else None


def find_chromium() -> str | None:
    """Path of a Chromium or Chrome that Playwright can drive, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


def pytest_configure(config: pytest.Config) -> None:
    jax.config.update("jax_numpy_rank_promotion", "raise")
    if not jax.config.read("jax_enable_x64"):
        raise pytest.UsageError("JAX was imported in float32 before the tests could ask for float64.")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("data") and find_mirror() is None:
        pytest.skip(NO_MIRROR)
    if item.get_closest_marker("browser") and find_chromium() is None:
        pytest.skip(NO_CHROMIUM)


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Folder of the public run tables; skips where there is none."""
    path = find_mirror()
    if path is None:
        pytest.skip(NO_MIRROR)
    return path


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser; skips where there is none."""
    path = find_chromium()
    if path is None:
        pytest.skip(NO_CHROMIUM)
    return path


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
