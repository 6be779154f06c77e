"""Targets and costs said in text: the forms there are, and nothing else."""

import numpy as np
import pytest

from scalingkit.core import zoo
from scalingkit.design import spoken
from scalingkit.design.cost import CostError, per_run
from scalingkit.design.grids import DesignError
from scalingkit.design.targets import Exponent, Loss, Size

LAW = zoo.get("chinchilla", "laws")


def test_targets_in_their_three_forms():
    assert spoken.target("loss@7B,1.4e11", LAW) == Loss(7e9, 1.4e11)
    assert spoken.target("nstar@1e24", LAW) == Size(1e24)
    assert spoken.target("alpha", LAW) == Exponent("alpha")


@pytest.mark.parametrize("text", ["alpa", "loss@7e9", "nstar@-1", "loss@a,b", "size@1e9", ""])
def test_other_targets_are_refused_with_the_forms(text):
    with pytest.raises(DesignError, match="loss@N,D"):
        spoken.target(text, LAW)


def test_costs_as_number_expression_and_function(tmp_path):
    N, D = np.array([1e8, 1e9]), np.array([2e9, 3e10])
    place = tmp_path / "mine.py"
    place.write_text("def price(N, D):\n    return 8 * N * D + 1e15\n")
    assert spoken.cost(None) is None and spoken.cost("8") == 8.0
    np.testing.assert_allclose(per_run(spoken.cost("6*N*D + 1e18"), N, D), 6 * N * D + 1e18)
    np.testing.assert_allclose(per_run(spoken.cost("6*N*D*maximum(1, sqrt(N/5e8))"), N, D),
                               6 * N * D * np.maximum(1, np.sqrt(N / 5e8)))  # fmt: skip
    np.testing.assert_allclose(per_run(spoken.cost(f"{place}:price"), N, D), 8 * N * D + 1e15)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("foo*N", "foo is not allowed"),
        ("__import__('os')", "is not allowed"),
        ("N.real*D", "Attribute"),
        ("N*'a'", "not allowed"),
        ("6*N*", "no expression"),
        ("N", "does not grow"),
        ("nowhere.py:f", "no file"),
        ("math:nothing", "no function"),
    ],
)
def test_other_costs_are_refused(text, says):
    with pytest.raises(CostError, match=says):
        spoken.cost(text)
