"""NumPyro works whatever was imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest

FACTOR = "import numpyro; print(hasattr(numpyro.distributions, 'distribution'))"
ORDERS = {
    "arviz first": "import arviz; import scalingkit.infer",
    "arviz, then a submodule": "import arviz; from numpyro.distributions import HalfNormal; import scalingkit.infer",
    "a submodule first": "from numpyro.distributions import HalfNormal; import scalingkit.infer",
}


def said(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("order", ORDERS)
def test_numpyro_is_whole(order):
    assert said(f"{ORDERS[order]}; {FACTOR}") == "True"


def test_without_us_the_bad_order_loses_a_submodule():
    """What is mended is really broken; when this fails, ArviZ or NumPyro mended it and the module may go."""
    assert said(f"import arviz; from numpyro.distributions import HalfNormal; {FACTOR}") == "False"
