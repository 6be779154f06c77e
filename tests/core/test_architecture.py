"""Parameter counts against models whose counts are published."""

import numpy as np
import pytest

from scalingkit.core import complete
from scalingkit.core.architecture import Decoder
from scalingkit.core.errors import RunsError


def test_the_two_sizes_of_one_small_model():
    """d = 512, 6 layers, V = 50304: 19M or 70M (practice: which of the two is N changes a law's exponents)."""
    small = Decoder(d_model=512, n_layers=6, vocab=50304)
    assert small.non_embedding() == 12 * 6 * 512**2 == 18_874_368
    assert small.total() == 18_874_368 + 2 * 50304 * 512 == 70_385_664


@pytest.mark.parametrize(
    ("shape", "non_embedding", "total"),
    [
        # Pythia-70M (Biderman et al. 2023, arXiv:2304.01373, Table 1)
        (dict(d_model=512, n_layers=6, vocab=50304, biases=True, norms="layer"), 18_915_328, 70_426_624),
        # GPT-2 small as released: tied embeddings, learned positions
        (dict(d_model=768, n_layers=12, vocab=50257, biases=True, norms="layer", tied=True, positions=1024), 85_056_000, 124_439_808),
        # Llama 2 7B as released: gated mlp, rms norms, untied
        (dict(d_model=4096, n_layers=32, vocab=32000, d_ff=11008, gated=True, norms="rms"), 6_476_271_616, 6_738_415_616),
        # Llama 3 8B as released: 8 key-value heads of 128
        (dict(d_model=4096, n_layers=32, vocab=128256, d_ff=14336, gated=True, norms="rms", n_heads=32, kv_heads=8), 6_979_588_096, 8_030_261_248),
    ],
)  # fmt: skip
def test_published_counts(shape, non_embedding, total):
    decoder = Decoder(**shape)
    assert decoder.non_embedding() == non_embedding
    assert decoder.total() == total
    assert Decoder(**(shape | {"n_layers": shape["n_layers"] + 1})).total() != total  # the control


def test_flop_per_token():
    d = Decoder(d_model=768, n_layers=12, vocab=50257)
    n = 12 * 12 * 768**2 + 50257 * 768
    assert d.flop_per_token(1024) == 6 * n + 12 * 12 * 768 * 1024
    assert d.flop_per_token(1024, causal=True) == 6 * n + 6 * 12 * 768 * 1024
    assert d.flop_per_token(1e-9) == pytest.approx(6 * n)  # without attention it is 6 N


def test_arrays_and_refusals():
    many = Decoder(d_model=np.array([512, 1024]), n_layers=np.array([6, 24]))
    assert many.non_embedding().tolist() == [12 * 6 * 512**2, 12 * 24 * 1024**2]
    with pytest.raises(ValueError, match="vocab"):
        many.total()
    with pytest.raises(ValueError, match="positive"):
        Decoder(d_model=0, n_layers=1)
    with pytest.raises(ValueError, match="n_heads"):
        Decoder(d_model=8, n_layers=1, kv_heads=2)


def test_big_models_do_not_overflow():
    assert Decoder(d_model=np.int32(100_000), n_layers=np.int32(1000)).non_embedding() == 12 * 1000 * 1e10


def test_n_from_columns_of_a_shape():
    shape = {"d_model": np.array([512.0, np.nan]), "n_layers": np.array([6.0, 6.0]), "vocab": np.array([50304.0] * 2)}
    values, kind = complete.from_architecture(shape, None)
    assert kind == "non-embedding"
    assert values[0] == 18_874_368
    assert np.isnan(values[1])
    assert complete.from_architecture(shape, "total")[0][0] == 70_385_664
    with pytest.raises(RunsError, match="active"):
        complete.from_architecture(shape, "active")
    with pytest.raises(RunsError, match="vocab"):
        complete.from_architecture({"d_model": np.ones(1), "n_layers": np.ones(1)}, "total")


def test_the_third_of_n_d_c():
    N, D = np.array([1e9, 2e9]), np.array([2e10, np.nan])
    full, made = complete.third({"N": N, "D": D}, 6.0)
    assert full["C"][0] == 1.2e20
    assert np.isnan(full["C"][1])
    assert made["C"].tolist() == [True, False]
    full, _ = complete.third({"N": N, "C": np.array([1.2e20, 1.2e20])}, 6.0)
    assert full["D"].tolist() == [2e10, 1e10]
    assert complete.third({"N": N}, 6.0)[1] == {}
    assert complete.ratio(np.array([1e200]), np.array([1e200]), np.array([6e300]), 6.0) == pytest.approx(1e-100)
