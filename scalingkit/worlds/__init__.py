"""Floor 1: one file per simulator, solvable model or toy trainer."""

from scalingkit.core import settle as _settle  # noqa: F401  NumPyro whole, before ArviZ can shadow it
