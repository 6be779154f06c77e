"""Param: one parameter of a law: its prior, unit and meaning. The prior's support is the only bound there is."""

from __future__ import annotations

from dataclasses import dataclass

from scalingkit.core.settle import dist


@dataclass(frozen=True)
class Param:
    """``prior`` over the parameter; ``doc`` in words; ``unit``.

    For a coefficient named in ``Law.scales`` the prior is that of the *term at the design's pivot* (the geometric
    mean of the input), so "half a nat, give or take a factor of e" can be said without knowing the exponent.
    """

    prior: dist.Distribution
    doc: str
    unit: str = "1"

    def __post_init__(self) -> None:
        if self.prior.event_shape or self.prior.batch_shape:
            raise ValueError(f"the prior of {self.doc!r} has shape {self.prior.shape()}; a Param is one number.")
