"""Float64, decided once. Condition numbers here pass 1e8; C**2 overflows float32; 7e10 does not fit int32."""

from __future__ import annotations

import os
import sys


class PrecisionError(RuntimeError):
    """JAX runs in float32, where the answer could not be trusted."""


def prefer_x64() -> None:
    """Ask for float64 before JAX is imported, or switch it on where JAX is already there. JAX_ENABLE_X64=0 is obeyed."""
    if os.environ.setdefault("JAX_ENABLE_X64", "1").lower() in ("0", "false"):
        return
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", True)


def require_x64(what: str) -> None:
    """Refuse to do ``what`` in float32, with a sentence that says how to mend it."""
    import jax

    if not jax.config.read("jax_enable_x64"):
        raise PrecisionError(
            f"{what} needs float64, but JAX runs in float32. Unset JAX_ENABLE_X64=0, or call "
            "jax.config.update('jax_enable_x64', True) before the first array is made."
        )
