"""Floor 4: what to do, at what risk."""

from scalingkit.core import settle as _settle  # noqa: F401  NumPyro whole, before ArviZ can shadow it
