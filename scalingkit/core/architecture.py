"""Parameters and FLOP of a decoder-only transformer from its shape, exactly.

    attention  2 d (h + k) e    with h heads of width e = d/h and k key-value heads; 4 d^2 in the plain case
    mlp        2 d f            (3 d f where gated); f = 4 d by default, so a layer has 12 d^2
    N (non-embedding) = layers (attention + mlp) [+ biases + norms]
    N (total)         = N (non-embedding) + V d (tied) or 2 V d (untied) [+ learned positions P d]
    FLOP per token    = 6 (layers (attention + mlp) + V d) + 12 layers h e T    (half the second term where causal)

d = 512, 6 layers, V = 50304: 18.9 million without the embeddings, 70.4 million with both. Which of the two is N is the
larger part of the difference between published laws (Kaplan et al. 2020, arXiv:2001.08361, Table 1; Porian et al. 2024,
arXiv:2406.19146; Hoffmann et al. 2022, arXiv:2203.15556, appendix F for FLOP).
Arguments may be numbers or arrays of equal shape; results are float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Array = Any


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """The shape: ``d_model``, ``n_layers``; ``vocab`` (needed for the total and for FLOP), ``d_ff`` (4 d), ``n_heads``,
    ``kv_heads`` (n_heads), ``head_dim`` (d / heads), ``gated`` mlp, ``tied`` embeddings, ``biases``, ``norms``
    ("none", "rms": d each, "layer": 2 d each; two a layer and a last one), ``positions`` learned.
    """

    d_model: Array
    n_layers: Array
    vocab: Array | None = None
    d_ff: Array | None = None
    n_heads: Array | None = None
    kv_heads: Array | None = None
    head_dim: Array | None = None
    gated: bool = False
    tied: bool = False
    biases: bool = False
    norms: Literal["none", "rms", "layer"] = "none"
    positions: Array = 0

    def __post_init__(self) -> None:
        for name in ("d_model", "n_layers", "vocab", "d_ff", "n_heads", "kv_heads", "head_dim"):
            value = getattr(self, name)
            if value is not None and not np.all(np.asarray(value, dtype=np.float64) > 0):
                raise ValueError(f"{name} must be positive; got {value!r}.")
        if self.kv_heads is not None and self.n_heads is None:
            raise ValueError("kv_heads needs n_heads.")
        if self.head_dim is not None and self.n_heads is None:
            raise ValueError("head_dim needs n_heads.")

    def _widths(self) -> tuple[Array, Array, Array, Array]:
        """d, the width of all heads, the width of all key-value heads, f; float64."""
        d = np.asarray(self.d_model, dtype=np.float64)
        heads = None if self.n_heads is None else np.asarray(self.n_heads, dtype=np.float64)
        e = d if heads is None else d / heads if self.head_dim is None else np.asarray(self.head_dim, dtype=np.float64)
        inner = d if heads is None else heads * e
        kv = inner if self.kv_heads is None else np.asarray(self.kv_heads, dtype=np.float64) * e
        return d, inner, kv, 4 * d if self.d_ff is None else np.asarray(self.d_ff, dtype=np.float64)

    def matrices(self) -> Array:
        """Weights of the layers' matrices: layers (2 d (inner + kv) + 2 or 3 d f)."""
        d, inner, kv, f = self._widths()
        return np.asarray(self.n_layers, dtype=np.float64) * (2 * d * (inner + kv) + (3 if self.gated else 2) * d * f)

    def non_embedding(self) -> Array:
        """Parameters without token and position embeddings and without the unembedding."""
        d, inner, kv, f = self._widths()
        layers = np.asarray(self.n_layers, dtype=np.float64)
        bias = layers * (inner + 2 * kv + d + (2 if self.gated else 1) * f + d) if self.biases else 0.0
        norm = {"none": 0, "rms": 1, "layer": 2}[self.norms] * d * (2 * layers + 1)
        return self.matrices() + bias + norm

    def total(self) -> Array:
        """All parameters. ValueError without ``vocab``."""
        d = np.asarray(self.d_model, dtype=np.float64)
        return self.non_embedding() + (1 if self.tied else 2) * self._vocab() * d + np.asarray(self.positions) * d

    def flop_per_token(self, context: Array, causal: bool = False) -> Array:
        """Training FLOP per token, forward and backward, with the unembedding and with attention over ``context``."""
        d, inner, _, _ = self._widths()
        attention = 12 * np.asarray(self.n_layers, dtype=np.float64) * inner * np.asarray(context, dtype=np.float64)
        return 6 * (self.matrices() + self._vocab() * d) + attention * (0.5 if causal else 1.0)

    def _vocab(self) -> Array:
        if self.vocab is None:
            raise ValueError("the total and the FLOP count need vocab (the size of the vocabulary).")
        return np.asarray(self.vocab, dtype=np.float64)
