"""compiled: programs compiled once are kept on disk, so that the first fit of a new process need not compile again.

Compiling takes most of a first fit (59 s against 15 s on two busy cores). JAX's persistent cache is used as the user has
set it up; where nothing is set up, it lies in the user's cache folder, apart for each JAX and kind of processor.
SCALINGKIT_COMPILED=off switches that off, and JAX_ENABLE_COMPILATION_CACHE=0 every such cache.
"""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from pathlib import Path

import jax
import pooch
from jax.experimental.compilation_cache import compilation_cache

SECONDS = 0.2  # what compiles faster is not worth a file


@cache
def keep() -> Path | None:
    """Turn the cache on, once a process. The folder; None where it is off, set up by the user, or cannot be written."""
    if jax.config.jax_compilation_cache_dir or not jax.config.jax_enable_compilation_cache:
        return None
    if os.environ.get("SCALINGKIT_COMPILED", "").lower() in ("off", "0", "false"):
        return None
    place = Path(pooch.os_cache("scalingkit")) / "compiled" / _machine()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(place, os.W_OK):
        return None
    jax.config.update("jax_compilation_cache_dir", str(place))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SECONDS)
    # whether there is a cache was decided by the first compilation, which may have been earlier
    compilation_cache.reset_cache()
    return place


def _machine() -> str:
    """JAX's version and the processor's features: compiled code must not travel to another processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        features = platform.processor()
    return f"jax-{jax.__version__}-{platform.machine()}-{hashlib.sha256(features.encode()).hexdigest()[:12]}"
