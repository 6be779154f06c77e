"""Every dimension, variable and unit, spelled once.

A runs Dataset has the dim ``run``; a posterior has ``chain`` and ``draw`` and the group dims of its model. Code
elsewhere imports these names; a new name is added here, with its unit and meaning, and nowhere else.
"""

from __future__ import annotations

from typing import NamedTuple

# dims
RUN, CHAIN, DRAW = "run", "chain", "draw"
FAMILY, CORPUS, SEED, TRAJECTORY = "family", "corpus", "seed", "trajectory"
SIZE, TOKENS, COMPUTE, BUDGET = "size", "tokens", "compute", "budget"
PROBLEM, SAMPLE, TARGET, LEVEL, PARAM, GROUP = "problem", "sample", "target", "level", "param", "group"
QUARANTINED = "quarantined"
STEP = "step"  # of a training run

DIMS = (
    RUN, CHAIN, DRAW, FAMILY, CORPUS, SEED, TRAJECTORY, SIZE, TOKENS, COMPUTE, BUDGET,
    PROBLEM, SAMPLE, TARGET, LEVEL, PARAM, GROUP, QUARANTINED, STEP,
)  # fmt: skip


class Variable(NamedTuple):
    """One variable of a runs Dataset: its unit and its meaning in words."""

    unit: str
    meaning: str


VARIABLES: dict[str, Variable] = {
    "N": Variable("parameter", "model size; which parameters are counted is said by attrs['params_kind']"),
    "D": Variable("token", "training tokens seen, repeats counted"),
    "U": Variable("token", "unique training tokens"),
    "C": Variable("FLOP", "training compute; how it is counted is said by attrs['flops_kind']"),
    "P": Variable("bit", "training precision of the weights"),
    "loss": Variable("nat", "held-out loss per token"),
    "loss_se": Variable("nat", "known standard error of the loss"),
    "error": Variable("1", "error rate, between 0 and 1"),
    "x": Variable("1", "the one input of a one-input law"),
    "y": Variable("1", "the outcome of a one-input law"),
}

# conventions a runs Dataset names in its attrs
PARAMS_KINDS = ("non-embedding", "total", "active", "unknown")
FLOPS_KINDS = ("6ND", "exact", "reported", "unknown")
FLOP_PER_PARAM_TOKEN = 6.0


def unit(name: str) -> str:
    """Unit of the variable ``name``; "1" where the house has no unit for it."""
    return VARIABLES[name].unit if name in VARIABLES else "1"
