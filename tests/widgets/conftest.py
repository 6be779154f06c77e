"""A JupyterLab a test module, in a folder of its own; ``lab`` beside this file is importable."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture(scope="module")
def jupyter(chromium: str, tmp_path_factory: pytest.TempPathFactory):
    """A light JupyterLab with its browser; skips where there is no Chromium."""
    from lab import Lab

    with Lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab
