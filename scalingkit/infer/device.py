"""Device: one small fit runs on the CPU, where it is faster; the user may choose otherwise. What ran, and why, is said."""

from __future__ import annotations

from typing import Any

import jax

from scalingkit.infer.likelihoods import DataError


def choose(wanted: str = "auto") -> tuple[Any, str]:
    """(device, reason). ``wanted``: auto, cpu, gpu or tpu."""
    if wanted in ("auto", "cpu"):
        reason = "asked for" if wanted == "cpu" else "one small fit: chains of small steps run faster on a CPU"
        return jax.devices("cpu")[0], reason
    try:
        return jax.devices(wanted)[0], "asked for"
    except RuntimeError:
        have = sorted({d.platform for d in jax.devices()})
        raise DataError(
            f"there is no device {wanted!r} here; JAX sees {', '.join(have)}. `scalingkit doctor` says more."
        ) from None
