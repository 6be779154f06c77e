"""N, D and C from two of the three, the convention named; C against 6 N D.

C = 6 N D        D = C / (6 N)        N = C / (6 D)        N = count of the architecture
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scalingkit.core.architecture import Decoder
from scalingkit.core.errors import RunsError

FORMULA = {"N": "C / ({k:g} D)", "D": "C / ({k:g} N)", "C": "{k:g} N D"}


def third(values: Mapping[str, np.ndarray], k: float) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """N, D, C completed row by row where exactly one is NaN: (values, {name: mask of the rows completed}).

    With fewer than two of them among ``values`` nothing is completed.
    """
    have = {r: values[r] for r in "NDC" if r in values}
    if len(have) < 2:
        return dict(have), {}
    n = len(next(iter(have.values())))
    full = {r: have.get(r, np.full(n, np.nan)) for r in "NDC"}
    N, D, C = full["N"], full["D"], full["C"]
    with np.errstate(all="ignore"):
        made = {"N": C / (k * D), "D": C / (k * N), "C": k * N * D}
    masks = {r: np.isnan(full[r]) & ~np.isnan(made[r]) for r in "NDC"}
    return {r: np.where(masks[r], made[r], full[r]) for r in "NDC"}, {r: m for r, m in masks.items() if m.any()}


def from_architecture(shape: Mapping[str, np.ndarray], kind: str | None) -> tuple[np.ndarray, str]:
    """N counted from d_model, n_layers (and d_ff, vocab): (N, params_kind). Rows without a shape are NaN.

    Kind "non-embedding" by default; "total" (untied) needs the vocabulary.
    """
    kind = kind or "non-embedding"
    if kind not in ("non-embedding", "total"):
        raise RunsError(f"params_kind={kind!r} cannot be counted from d_model and n_layers: give the column of N.")
    if kind == "total" and "vocab" not in shape:
        raise RunsError("params_kind='total' from an architecture needs a column with the vocabulary, or vocab=50304.")
    used = {
        k: shape[k] for k in ("d_model", "n_layers", "d_ff", *(("vocab",) if kind == "total" else ())) if k in shape
    }
    good = np.all([np.isfinite(v) & (v > 0) for v in used.values()], axis=0)
    out = np.full(len(good), np.nan)
    if good.any():
        decoder = Decoder(**{k: v[good] for k, v in used.items()})
        out[good] = decoder.total() if kind == "total" else decoder.non_embedding()
    return out, kind


def ratio(N: np.ndarray, D: np.ndarray, C: np.ndarray, k: float) -> np.ndarray:
    """C / (6 N D), without overflow: exp of the sum of logs. NaN where one of them is not positive."""
    with np.errstate(all="ignore"):
        return np.exp(np.log(C) - np.log(k) - np.log(N) - np.log(D))
