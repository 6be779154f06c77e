"""portrait: what one looks at in a posterior: densities on their priors, joint draws, and bands with the data.

    density      of each parameter in each group, beside its prior's, on one window; log10 where draws span a factor > 3
    sd_ratio     posterior sd / prior sd on that scale: near 1 the prior speaks, near 0 the runs do
    cloud        joint draws of two parameters, evenly thinned: a ridge is long and thin
    band         of the curve along one input, the others held at a quantile of the group's own runs
    moved        y_i f(slice) / f(own inputs), f the median curve: the runs as they would lie on that slice

``along=FIT`` shows, instead of a slice, each run against what the posterior replicates for it; a tree without a law of
ours has only that. Densities and intervals are of all draws, bands of ``MOST_DRAWS``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import xarray as xr

from scalingkit.core.errors import hint
from scalingkit.core.names import CHAIN, DRAW, GROUP
from scalingkit.infer.likelihoods import DataError
from scalingkit.infer.marginal import marginals
from scalingkit.infer.model import Model
from scalingkit.infer.slices import Seen, replicated, sliced

FIT = "replicated runs"
ALL = "all runs"
MOST_PARAMS, MOST_GROUPS = 4, 6
_SAMPLE = (CHAIN, DRAW)


class PortraitError(DataError):
    """A parameter, group or input that the tree does not have."""


def portrait(
    tree: xr.DataTree, params: Sequence[str] | None = None, groups: Sequence[str] | None = None, *,
    pair: tuple[str | None, str | None] = (None, None), along: str | None = None, level: float = 0.5,
    reach: float = 3.0, prob: float = 0.9, model: Model | None = None,
) -> xr.Dataset:  # fmt: skip
    """Everything that a picture of ``tree`` shows for these parameters and groups.

    params   at most 4 names of the posterior (default: the law's first); groups  at most 6 labels of ``offered``
    pair     two names to see together; what is None is the strongest partner among ``params``
    along    an input of the law (default: its first) or ``FIT``; level: quantile, 0 to 1, at which the others are held;
    reach    how far the slice goes beyond the group's largest value, as a factor; prob: of every interval
    model    needed only where the law is not one of the package's

    value, prior_density (param, point), log and shared (param); density (param, group, point); interval (param, group,
    bound); sd_ratio (param, group); cloud (axis, group, sample), axis named by the pair; x (group, x_point); band and
    outcome, of a new run (group, x_point, bound); held (group, input); run_x, run_y, run_lower, run_upper and run_group,
    the index into group (run). Raises PortraitError.
    """
    if not 0 < prob < 1 or not 0 <= level <= 1 or not reach >= 1:
        raise PortraitError(f"prob lies in (0, 1), level in [0, 1], reach is at least 1; not {prob}, {level}, {reach}.")
    can = offered(tree, model)
    params = _chosen("parameter", params, can["params"], MOST_PARAMS)
    groups = _chosen("group", groups, can["groups"], MOST_GROUPS)
    along = along or can["along"][0]
    if along not in can["along"]:
        raise PortraitError(f"no input {along!r} to go along.{hint(along, can['along'])}")
    tail = (1 - prob) / 2
    quantiles = [tail, 0.5, 1 - tail]
    labels = {d: [can["labels"][g][d] for g in groups] for d in can["dims"]}
    pair = _paired(pair, params, can["params"])
    marginal = marginals(tree, params, groups, labels, quantiles, pair)
    seen = Seen(tree, can["model"], can["outcome"], labels)
    picture = replicated(seen, quantiles) if along == FIT else sliced(seen, along, level, reach, quantiles)
    place = [can["groups"].index(g) for g in groups]
    out = marginal.merge(picture).assign_coords(place=(GROUP, place))
    out.attrs = {
        "along": along,
        "level": level,
        "reach": reach,
        "prob": prob,
        "law": can["law"],
        "outcome": can["outcome"],
    }
    return out


def _paired(pair: tuple[str | None, str | None], params: list[str], have: list[str]) -> tuple[str | None, str | None]:
    for p in filter(None, pair):
        _chosen("parameter", [p], have, 1)
    if len(params) == 1 and not all(pair):  # nothing to go with among the chosen: the next that there is
        first = pair[0] or pair[1] or params[0]
        return first, next((p for p in have if p != first), first)
    return pair


def offered(tree: xr.DataTree, model: Model | None = None) -> dict[str, Any]:
    """What can be chosen: params, groups (label -> its dims' labels in ``labels``), along; and the law, "" for none."""
    if "posterior" not in tree.children:
        raise PortraitError(f"the tree has no posterior; it has {', '.join(tree.children) or 'nothing'}.")
    posterior = tree["posterior"].dataset
    model = model or (Model.from_spec(tree.attrs["model"]) if "model" in tree.attrs else None)
    dims = _group_dims(tree, posterior, model)
    params = [str(k) for k, v in posterior.data_vars.items() if set(v.dims) - {*_SAMPLE} <= set(dims)]
    if not params:
        raise PortraitError("no variable of the posterior is one number, or one number a group.")
    order = list(model.law.params) if model else []
    params = [k for k in order if k in params] + [k for k in params if k not in order]
    labels = {" / ".join(c) or ALL: dict(zip(dims, c, strict=True)) for c in _combinations(tree, posterior, dims)}
    along = [x for x in model.law.inputs if _has(tree, "constant_data", x)] if model else []
    along += [FIT] if "posterior_predictive" in tree.children and "observed_data" in tree.children else []
    return {
        "params": params, "groups": list(labels), "labels": labels, "dims": dims, "along": along or [FIT],
        "law": model.law.name if model else "", "model": model, "outcome": _outcome(tree),
    }  # fmt: skip


def _has(tree: xr.DataTree, node: str, name: str) -> bool:
    return node in tree.children and name in tree[node].dataset.variables


def _outcome(tree: xr.DataTree) -> str:
    return str(next(iter(tree["observed_data"].data_vars), "")) if "observed_data" in tree.children else ""


def _group_dims(tree: xr.DataTree, posterior: xr.Dataset, model: Model | None) -> list[str]:
    """Dims that label groups: the model's columns, or whatever is neither a sample nor an observation."""
    if model:
        return [d for d in model.group_columns if d in posterior.dims]
    seen = set(tree["observed_data"].dims) if "observed_data" in tree.children else set()
    return [str(d) for d in posterior.dims if d not in _SAMPLE and (d not in seen or posterior.sizes[d] <= 32)]


def _combinations(tree: xr.DataTree, posterior: xr.Dataset, dims: list[str]) -> list[tuple[str, ...]]:
    """Labels of the groups that have runs, the largest first; all of them where the runs are not labelled."""
    if all(_has(tree, "constant_data", d) for d in dims) and dims:
        rows = list(zip(*(tree["constant_data"][d].values.astype(str) for d in dims), strict=True))
        counts = {r: rows.count(r) for r in dict.fromkeys(rows)}
        return sorted(counts, key=lambda r: (-counts[r], r))
    return list(itertools.product(*(posterior[d].values.astype(str) for d in dims)))


def _chosen(what: str, wanted: Sequence[str] | None, have: list[str], most: int) -> list[str]:
    names = list(dict.fromkeys(wanted if wanted is not None else have[:most]))
    if unknown := [n for n in names if n not in have]:
        raise PortraitError(f"no {what} {unknown[0]!r}.{hint(unknown[0], have)}")
    if not 1 <= len(names) <= most:
        raise PortraitError(f"choose 1 to {most} {what}s, not {len(names)}; there are {len(have)}.")
    return names
