"""Floor 1: one file per law."""

from scalingkit.core import settle as _settle  # noqa: F401  NumPyro whole, before ArviZ can shadow it
