"""pivot: inputs divided by the geometric mean of the design, so that nothing overflows and coefficients decorrelate.

    x0 = exp(mean(log x))        c_at_pivot = c * x0**-e        curve(x, c) == curve(x / x0, c_at_pivot)

The identity is the law's own declaration (``Law.scales``): only inputs it covers are divided.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scalingkit.core.law import Law


def pivots(law: Law, inputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """log of the geometric mean of each input that the law's ``scales`` cover. Inputs must be positive.

    An input ``alike`` to a covered one (unique tokens to tokens) is divided by the same number.
    """
    covered = {x for x, _ in law.scales.values()}
    of = {x: law.alike.get(x, x) for x in law.inputs}
    return {x: float(np.mean(np.log(inputs[of[x]]))) for x in law.inputs if of[x] in covered}


def site(law: Law, name: str) -> str:
    """Name of the sampled site of a parameter: ``A_at_pivot`` for a coefficient on a power, else the parameter's own."""
    return f"{name}_at_pivot" if name in law.scales else name


def exponent(law: Law, coefficient: str, values: Mapping[str, Any]) -> Any:
    """Value of the exponent of the power on which ``coefficient`` sits."""
    e = law.scales[coefficient][1]
    return values[e] if isinstance(e, str) else e
