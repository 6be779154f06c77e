"""findings: what a sampled posterior says about itself, as coded notes.

divergences       the sampler could not follow the posterior; where such draws stand apart from the others
not-mixed         chains disagree, or hold too few independent draws
not-identified    sd(posterior) / sd(prior) along the widest direction of the law's own parameters > 0.7
prior-dominated   the same for one parameter by itself
one-group         a pooled label with one value
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scalingkit.core.notes import Note
from scalingkit.infer import geometry
from scalingkit.infer.model import Model
from scalingkit.infer.nuts import Chains
from scalingkit.infer.pooling import Separate
from scalingkit.infer.prepare import Data

WIDE = 0.7  # of the prior's sd: the runs have taken off less than half of the variance


def notes(
    model: Model, data: Data, chains: Chains, z: dict[str, Any], judged: Any, target: float, draws: int, seed: int
) -> list[Note]:
    """Every finding about one fit. ``chains`` as sampled; ``z`` draws of every unconstrained site of the model;
    ``judged`` has ``good``, ``rhat``, ``ess``, ``rhats`` and ``esses``."""
    found = [*_divergences(model, chains, target), *_mixing(judged, chains, draws)]
    found += _contraction(model, data, z, seed)
    for dim, labels in data.meta.labels.items():
        if len(labels) == 1:
            text = f"there is one {dim} only ({labels[0]!r}): the spread between groups comes from its prior."
            found.append(Note("one-group", "warning", dim, text))
    return found


def _divergences(model: Model, chains: Chains, target: float) -> list[Note]:
    count = int(chains.diverging.sum())
    if not count:
        return []
    apart = funnel(chains)
    names = ", ".join(apart)
    spreads = sorted({k for k in apart if "_sd" in k})
    cure = (
        f"the spread between groups ({', '.join(spreads)}) forms a funnel: give it a tighter prior (sd=HalfNormal(0.1)), or "
        "centre groups that have many runs (Partial(..., centred=True))"
        if spreads
        else "fix or pool one of these parameters, give it a tighter prior, or add runs that tell them apart"
    )
    text = f"{count} draws diverged at target_accept {target:g}; they gather in {names}. Intervals are too short there: {cure}."
    return [Note("divergences", "error", names, text)]


def funnel(chains: Chains) -> list[str]:
    """The three sites in which divergent draws lie furthest from the others, in sds of the unconstrained coordinate."""
    bad = chains.diverging.astype(bool)
    if bad.all() or not bad.any():
        return sorted(chains.z)[:3] if bad.any() else []
    shift = {}
    for k, v in chains.z.items():
        flat = v.reshape(*bad.shape, -1)
        gap = np.abs(flat[bad].mean(0) - flat[~bad].mean(0))
        shift[k] = float(np.max(gap / np.maximum(flat.std((0, 1)), 1e-12)))
    return [k.removesuffix("_z") for k in sorted(shift, key=lambda k: -shift[k])[:3]]


def _mixing(judged: Any, chains: Chains, draws: int) -> list[Note]:
    if judged.good or not judged.rhats:
        return []
    slow = sorted(judged.rhats, key=lambda k: -judged.rhats[k])[:3]
    length = chains.diverging.shape[1]
    text = (
        f"worst R-hat {judged.rhat:.3f}, smallest bulk ESS {judged.ess:.0f} after {length} draws a chain "
        f"({', '.join(slow)}). Means and intervals are not to be used yet: raise draws"
    )
    text += ", and look for two modes or a weakly identified direction." if judged.rhat > 1.05 else "."
    return [Note("not-mixed", "error" if judged.rhat > 1.05 else "warning", ", ".join(slow), text)]


def _contraction(model: Model, data: Data, draws: dict[str, Any], seed: int) -> list[Note]:
    sites = scalars(model)
    if not sites:  # every parameter is fitted separately: nothing is one number (design.identify judges group by group)
        return []
    z, _ = geometry.from_prior(model, data, seed + 2)
    before = np.stack([np.asarray(z[s]) for s in sites], 1)
    after = np.stack([draws[s].ravel() for s in sites], 1)
    ratio = after.std(0) / before.std(0)
    found = []
    for i in np.flatnonzero(ratio > WIDE):
        text = f"its posterior sd is {ratio[i]:.0%} of its prior's: these runs hardly bear on it."
        found.append(Note("prior-dominated", "warning", sites[i], text))
    width, direction = widest(before, after)
    if width > WIDE and not (ratio > WIDE).any():
        top = np.argsort(-np.abs(direction))[:3]
        names = [sites[i] for i in top if abs(direction[i]) > 0.3]
        words = " and ".join(
            f"{sites[i]} {'up' if direction[i] > 0 else 'down'}" for i in top if abs(direction[i]) > 0.3
        )
        text = (
            f"moving {words} together changes these runs' predictions hardly at all: along that direction the posterior is "
            f"{width:.0%} as wide as the prior. Their values come from the prior; add runs that vary the inputs separately."
        )
        found.append(Note("not-identified", "warning", ", ".join(names), text))
    return found


def scalars(model: Model) -> list[str]:
    """Sampled sites of the law's own parameters that are one number: shared ones, and populations."""
    return [
        model.site(k) if not pooling.dims else f"{model.site(k)}_population"
        for k, pooling in model.pools.items()
        if k in model.law.params and not isinstance(pooling, Separate)
    ]


def widest(before: np.ndarray, after: np.ndarray) -> tuple[float, np.ndarray]:
    """(sd ratio, direction in prior sds) along which ``after`` is widest relative to ``before``; both (draw, param)."""
    sd = before.std(0)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov((after / sd).T)))
    return float(np.sqrt(max(values[-1], 0.0))), vectors[:, -1] * np.sign(
        vectors[np.argmax(np.abs(vectors[:, -1])), -1]
    )
