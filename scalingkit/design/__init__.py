"""Floor 3: what these runs can tell, and which to add."""

from scalingkit.core import settle as _settle  # noqa: F401  NumPyro whole, before ArviZ can shadow it
