"""Floor 2: the only folder that samples."""

from scalingkit.core import settle as _settle  # noqa: F401  NumPyro whole, before ArviZ can shadow it
