"""Device: one small fit runs on the CPU, batches on the GPU where there is one; the user may choose otherwise.

A NUTS step of a few hundred runs is a chain of small operations, each of which costs a GPU a launch: public reports have
single small fits many times slower there. What a GPU pays for is many of them at once: simulated tables, bootstraps,
many chains. What ran, and why, is in every result (attrs ``device`` and ``device_reason``).
"""

from __future__ import annotations

from typing import Any

import jax

from scalingkit.infer.likelihoods import DataError

WANTED = ("auto", "cpu", "gpu", "tpu")


def choose(wanted: str = "auto", fits: int = 1) -> tuple[Any, str]:
    """(device, reason). ``wanted``: auto, cpu, gpu or tpu. ``fits``: how many are made side by side in one program."""
    if wanted not in WANTED:
        raise DataError(f"device {wanted!r} is not known: it is one of {', '.join(WANTED)}.")
    if wanted == "auto" and fits <= 1:
        return _seen("cpu")[0], "one small fit: chains of small steps run faster on a CPU"
    if wanted == "auto":
        gpus = _seen("gpu")
        if gpus:
            return gpus[0], f"a batch of {fits:,} fits: they run side by side on a GPU"
        return _seen("cpu")[0], f"a batch of {fits:,} fits, and JAX sees no GPU here"
    found = _seen(wanted)
    if not found:
        have = sorted({d.platform for d in jax.devices()})
        raise DataError(
            f"there is no device {wanted!r} here; JAX sees {', '.join(have)}. `scalingkit doctor` says more."
        )
    return found[0], "asked for"


def _seen(platform: str) -> list[Any]:
    """Devices of a platform; none where JAX has no such backend."""
    try:
        return list(jax.devices(platform))
    except RuntimeError:
        return []
