"""Device: one small fit runs on the CPU, batches on the GPU where there is one; the user may choose otherwise.

A NUTS step of a few hundred runs is a chain of small operations, each of which costs a GPU a launch: public reports have
single small fits many times slower there. What a GPU pays for is many of them at once: simulated tables, bootstraps,
many chains. What ran, and why, is in every result (attrs ``device`` and ``device_reason``). From how many on a GPU pays is
not measured here: BATCH is a guess, and ``benchmarks/gpu.py`` measures on yours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax

from scalingkit.infer.likelihoods import DataError

WANTED = ("auto", "cpu", "gpu", "tpu")
BATCH = 64  # so many side by side are a batch


def choose(wanted: str = "auto", count: int = 1, what: str = "fits") -> tuple[Any, str]:
    """(device, reason). ``wanted``: auto, cpu, gpu or tpu. ``count``: how many ``what`` go side by side in one program."""
    if wanted not in WANTED:
        raise DataError(f"device {wanted!r} is not known: it is one of {', '.join(WANTED)}.")
    if wanted == "auto" and count < BATCH:
        return _seen("cpu")[0], "one small fit: chains of small steps run faster on a CPU"
    if wanted == "auto":
        gpus = _seen("gpu")
        if gpus:
            return gpus[0], f"a batch of {count:,} {what}: they run side by side on a GPU"
        return _seen("cpu")[0], f"a batch of {count:,} {what}, and JAX sees no GPU here"
    found = _seen(wanted)
    if not found:
        have = sorted({d.platform for d in jax.devices()})
        raise DataError(
            f"there is no device {wanted!r} here; JAX sees {', '.join(have)}. `scalingkit doctor` says more."
        )
    return found[0], "asked for"


def placed(key: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a function with the keyword ``device``: what it does outside its own programs (looking for the mode,
    naming draws) happens on the chosen device too. ``key``: the keyword that says how many go side by side."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(*args: Any, **given: Any) -> Any:
            chosen, _ = choose(given.get("device", "auto"), int(given.get(key) or 1))
            with jax.default_device(chosen):
                return function(*args, **given)

        return wrapped

    return decorate


def text(device: Any) -> str:
    """ "cpu:0"."""
    return f"{device.platform}:{device.id}"


def _seen(platform: str) -> list[Any]:
    """Devices of a platform; none where JAX has no such backend."""
    try:
        return list(jax.devices(platform))
    except RuntimeError:
        return []
