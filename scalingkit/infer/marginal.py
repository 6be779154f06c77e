"""Marginal: densities of chosen parameters by group, on their priors, and draws that show how two go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.core.names import CHAIN, DRAW, GROUP, PARAM

POINTS, CLOUD = 160, 250
BOUNDS = ["lower", "median", "upper"]
SPAN = 3.0  # draws that span more than this factor are shown as log10


def on_log(draws: np.ndarray) -> bool:
    """Whether log10 shows these draws better: positive, over more than a factor of SPAN."""
    low, high = np.quantile(draws, [0.05, 0.95])
    return bool(draws.min() > 0 and high > SPAN * low)


def window(post: np.ndarray, prior: np.ndarray | None) -> tuple[float, float]:
    """The whole posterior, and of the prior its bulk, but never so much that the posterior becomes a needle."""
    lo, hi = np.quantile(post, [0.001, 0.999])
    if hi <= lo:
        lo, hi = lo - 0.5 * (abs(lo) or 1.0), hi + 0.5 * (abs(hi) or 1.0)
    room = 1.5 * (hi - lo)
    p_lo, p_hi = (lo, hi) if prior is None else np.quantile(prior, [0.02, 0.98])
    return float(min(lo, max(p_lo, lo - room))), float(max(hi, min(p_hi, hi + room)))


def density(x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """ArviZ's estimate on ``grid``, which may be a part of where the draws lie."""
    from arviz_stats.base import array_stats

    width = grid[-1] - grid[0]
    near = x[(x >= grid[0] - width) & (x <= grid[-1] + width)]
    if near.size < 2 or near.max() <= near.min():
        return np.zeros(grid.size)
    at, height, _ = array_stats.kde(near, grid_len=512)
    return np.interp(grid, at, height, left=0.0, right=0.0) * near.size / x.size


def _of_groups(v: xr.DataArray, labels: Mapping[str, list[str]], groups: int) -> np.ndarray:
    """Draws (group, sample) of a variable; one without a group dim is the same in all."""
    v = v.stack(sample=(CHAIN, DRAW), create_index=False)
    given = [d for d in labels if d in v.dims]
    if not given:
        return np.broadcast_to(v.values, (groups, v.sizes["sample"]))
    have = {d: list(v[d].values.astype(str)) for d in given}
    at = {d: xr.DataArray([have[d].index(g) for g in labels[d]], dims=GROUP) for d in given}
    return v.isel(at).transpose(GROUP, "sample").values


def marginals(
    tree: xr.DataTree, params: list[str], groups: list[str], labels: dict[str, list[str]], quantiles: list[float],
    pair: tuple[str | None, str | None] = (None, None),
) -> xr.Dataset:  # fmt: skip
    """Densities, intervals and correlations of ``params``, and joint draws of ``pair``; None: the strongest partner.

    ``labels``: group dim -> label of each group.
    """
    wanted = list(dict.fromkeys([*params, *(p for p in pair if p)]))
    post, prior = tree["posterior"].dataset, tree["prior"].dataset if "prior" in tree.children else xr.Dataset()
    values = {k: _of_groups(post[k], labels, len(groups)) for k in wanted}
    logs = {k: on_log(v) for k, v in values.items()}
    scaled = {k: np.log10(v) if logs[k] else v for k, v in values.items()}
    alike = {k: bool(labels) and not set(labels) & set(post[k].dims) for k in wanted}
    rows = []
    for k in params:
        before = _of_groups(prior[k], labels, len(groups))[0] if k in prior else None
        if before is not None and logs[k]:
            before = np.log10(before[before > 0])
        rows.append(_one(scaled[k], before, alike[k]))
    dims = {"value": (PARAM, "point"), "density": (PARAM, GROUP, "point"), "prior_density": (PARAM, "point"),
            "sd_ratio": (PARAM, GROUP)}  # fmt: skip
    made: dict[str, Any] = {k: (dims[k], np.stack([r[k] for r in rows])) for k in dims}
    made |= {k: (PARAM, np.array([v[p] for p in params])) for k, v in (("log", logs), ("shared", alike))}
    made["interval"] = (
        (PARAM, GROUP, "bound"),
        np.stack([np.quantile(values[k], quantiles, axis=-1).T for k in params]),
    )
    together = _correlations([scaled[k] for k in wanted])
    x, y = _partners(wanted, pair, together, len(params))
    size = values[x].shape[-1]
    thin = np.unique(np.linspace(0, size - 1, min(size, CLOUD)).astype(int))
    made["cloud"] = (("axis", GROUP, "sample"), np.stack([values[k][:, thin] for k in (x, y)]))
    made["cloud_log"] = ("axis", np.array([logs[x], logs[y]]))
    made["cloud_shared"] = alike[x] and alike[y]
    made["cloud_correlation"] = (GROUP, together[:, wanted.index(x), wanted.index(y)])
    return xr.Dataset(made, coords={PARAM: params, GROUP: groups, "bound": BOUNDS, "axis": [x, y]})


def _one(x: np.ndarray, before: np.ndarray | None, alike: bool) -> dict[str, np.ndarray]:
    """One parameter, x (group, sample) on the scale that is drawn; ``before``: prior draws on it."""
    grid = np.linspace(*window(x, before), POINTS)
    each = [density(g, grid) for g in (x[:1] if alike else x)]
    return {
        "value": grid,
        "density": np.stack(each * len(x) if alike else each),
        "prior_density": np.full(POINTS, np.nan) if before is None else density(before, grid),
        "sd_ratio": np.full(len(x), np.nan) if before is None else x.std(-1) / before.std(),
    }


def _correlations(values: list[np.ndarray]) -> np.ndarray:
    """(group, param, param); 0 where a parameter does not move."""
    v = np.stack(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.stack([np.atleast_2d(np.corrcoef(v[:, g])) for g in range(v.shape[1])])
    return np.nan_to_num(found)


def _partners(
    names: list[str], pair: tuple[str | None, str | None], together: np.ndarray, chosen: int
) -> tuple[str, str]:
    """The pair asked for; what is left open is filled with the strongest correlation among the chosen ones."""
    if all(pair):
        return pair[0], pair[1]  # type: ignore[return-value]
    strength = np.abs(together).max(0)
    np.fill_diagonal(strength, -1)
    strength[:, chosen:] = -1  # the partner is one of those that are looked at
    if given := pair[0] or pair[1]:
        other = names[int(np.argmax(strength[names.index(given)]))]
        return (given, other) if pair[0] else (other, given)
    i, j = np.unravel_index(np.argmax(strength), strength.shape)
    return names[min(i, j)], names[max(i, j)]
