"""spec: a model as plain JSON, and back. What is stored with a posterior so that it can be rebuilt; never a pickle.

encode(Partial("corpus")) -> {"kind": "Partial", "dim": "corpus", "sd": {"dist": "HalfNormal", "scale": 0.3}, ...}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import numpyro.distributions as dist


class SpecError(ValueError):
    """A part of the model cannot be written as JSON, or read back from it."""


_TRUNCATED = ("LeftTruncatedDistribution", "RightTruncatedDistribution", "TwoSidedTruncatedDistribution")


def encode(thing: Any) -> Any:
    """JSON for a dataclass of the house, a NumPyro distribution, a mapping, sequence or scalar."""
    if isinstance(thing, dist.Distribution):
        return _distribution(thing)
    if is_dataclass(thing) and not isinstance(thing, type):
        return {"kind": type(thing).__name__, **{f.name: encode(getattr(thing, f.name)) for f in fields(thing)}}
    if isinstance(thing, Mapping):
        return {str(k): encode(v) for k, v in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [encode(v) for v in thing]
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    raise SpecError(f"{type(thing).__name__} {thing!r} cannot be written into a model's spec.")


def decode(spec: Any, kinds: Mapping[str, type]) -> Any:
    """What ``encode`` wrote, made of the classes in ``kinds`` and NumPyro's distributions."""
    if isinstance(spec, list):
        return tuple(decode(v, kinds) for v in spec)
    if not isinstance(spec, dict):
        return spec
    rest = {k: decode(v, kinds) for k, v in spec.items() if k not in ("kind", "dist")}
    if "dist" in spec:
        return _rebuild(spec["dist"], rest)
    if "kind" not in spec:
        return rest
    if spec["kind"] not in kinds:
        raise SpecError(f"spec names the kind {spec['kind']!r}, but there are only {', '.join(sorted(kinds))}.")
    args = rest.pop("dims_", None)
    made = kinds[spec["kind"]]
    return made(*args, **rest) if args is not None else made(**rest)


def _distribution(d: dist.Distribution) -> dict[str, Any]:
    kind = type(d).__name__
    if kind in _TRUNCATED:
        bounds = {k: float(np.asarray(getattr(d, k))) for k in ("low", "high") if hasattr(d, k)}
        return {"dist": "TruncatedDistribution", "base_dist": _distribution(d.base_dist), **bounds}
    if not hasattr(dist, kind) or not d.arg_constraints:
        raise SpecError(
            f"the prior {kind} cannot be written into a spec: use one of numpyro.distributions with scalars."
        )
    return {"dist": kind, **{k: float(np.asarray(getattr(d, k))) for k in d.arg_constraints}}


def _rebuild(kind: str, args: Mapping[str, Any]) -> dist.Distribution:
    made = getattr(dist, kind, None)
    if made is None:
        raise SpecError(f"NumPyro has no distribution {kind!r}.")
    return made(**args)
