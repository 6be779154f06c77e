"""L-statistics for training: identities, the printed bias table, gradients, ties, JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from scalingkit.core import lstatistics, order, zoo
from scalingkit.estimators import tail_extrapolated as tea

# standard normal rewards, N = 16 m: bias of order 0, TEA, orders 1, 2, 3 of halving nodes
TABLE = {
    16: (-1.061, 0.260, 0.356, -0.398, 0.885),
    64: (-0.905, 0.148, 0.201, -0.136, 0.170),
    256: (-0.799, 0.099, 0.132, -0.062, 0.051),
}


def bias(nodes, N):
    return float(
        lstatistics.node_weights(nodes, N) @ order.normal_score(np.array(nodes, float)) - order.normal_score(N)
    )


@pytest.mark.parametrize("m", TABLE)
def test_the_bias_table(m):
    nodes = ((m,), (m - 1, m), *(lstatistics.nodes_of(m, q) for q in (1, 2, 3)))
    assert [bias(n, 16.0 * m) for n in nodes] == pytest.approx(TABLE[m], abs=1.2e-3)


def test_the_bias_table_by_simulation():
    x = np.random.default_rng(0).standard_normal((40_000, 16))
    for q, want in zip((0, 2, 3), (TABLE[16][0], *TABLE[16][3:]), strict=True):
        t = tea.value(x, 256, order=q) - order.normal_score(256)
        assert abs(t.mean() - want) < 4.5 * t.std() / 200 + 1e-3


def test_weights_cancel_to_the_last_digit():
    for m in (16, 100):
        for q in (1, 2, 3):
            nodes, N = lstatistics.nodes_of(m, q), 16.0 * m
            w, gap = lstatistics.node_weights(nodes, N), order.harmonic(np.array(nodes)) - order.harmonic(N)
            assert w.sum() == pytest.approx(1, abs=1e-12)
            for power in range(1, q + 1):
                assert w @ gap**power == pytest.approx(0, abs=1e-12)
            assert np.abs(w @ gap ** (q + 1)) > 1e-3  # the next order stays


def test_scatter_is_exposed():
    assert 45 < lstatistics.lebesgue(lstatistics.nodes_of(64, 2), 1024) < 55
    assert 205 < lstatistics.lebesgue(lstatistics.nodes_of(256, 3), 4096) < 265


def test_the_confluent_identity():
    """H_N = H_m + ... times the gap of the two best is the extrapolation through J_(m-1) and J_m."""
    x = np.sort(np.random.default_rng(1).normal(size=(5, 9)), -1)
    direct = x[:, -1] + (order.harmonic(200) - order.harmonic(9)) * (x[:, -1] - x[:, -2])
    np.testing.assert_allclose(tea.value(x, 200), direct, rtol=1e-12)


def test_exponential_tails_are_exact():
    x = np.random.default_rng(2).exponential(size=(60_000, 8))
    t = tea.value(x, 256)
    assert abs(t.mean() - order.harmonic(256)) < 4.5 * t.std() / len(t) ** 0.5
    plain = x.max(1)
    assert abs(plain.mean() - order.harmonic(256)) > 50 * plain.std() / len(t) ** 0.5


@given(st.lists(st.integers(-3, 3), min_size=4, max_size=9), st.floats(0.1, 10), st.floats(-5, 5))
@settings(max_examples=50, deadline=None)
def test_affine_maps_and_permutations(rewards, a, b):
    x = np.array(rewards, float)
    for q in (0, 1, 2):
        t = tea.value(x, 64, order=q)
        assert tea.value(a * x + b, 64, order=q) == pytest.approx(a * t + b, abs=1e-9 * (1 + abs(a * t)))
        assert tea.value(x[::-1], 64, order=q) == pytest.approx(t, abs=1e-12 * 300)


def test_at_n_equal_m_it_is_the_maximum():
    x = np.random.default_rng(3).normal(size=(4, 8))
    for q in (0, 1, 2):
        np.testing.assert_allclose(tea.value(x, 8, order=q), x.max(1), rtol=1e-12)


def test_advantages_are_leave_one_out_with_ties():
    x = np.random.default_rng(4).integers(0, 3, (20, 7)).astype(float)
    for q in (0, 1, 2):
        got = lstatistics.advantages(x, tea.coefficients(7, 64, order=q), tea.coefficients(6, 64, order=q))
        for row, a in zip(x, got, strict=True):
            want = [tea.value(row, 64, order=q) - tea.value(np.delete(row, i), 64, order=q) for i in range(7)]
            assert a == pytest.approx(want, abs=1e-11)
    same = np.array([[2.0, 2.0, 1.0]])
    assert tea.advantages(same, 3, order=0)[0, :2].tolist() == [0.0, 0.0]


def test_only_the_order_statistics_used_count():
    a = tea.advantages(np.arange(10.0)[None], 100)[0]
    assert np.all(np.abs(a[:8]) < 1e-12) and np.all(np.abs(a[8:]) > 0.1)
    plain = lstatistics.advantages(np.arange(10.0)[None], tea.coefficients(10, 100), tea.coefficients(9, 100))[0]
    assert np.all(plain[:8] == plain[0]) and plain[0] != 0  # leave-one-out proper gives the rest one constant


def test_the_gradient_identity_on_a_normal_policy():
    """d/dmu E T = sum w = 1 and d/dsigma E T = E T, with less scatter than without the baseline."""
    z = np.random.default_rng(5).standard_normal((200_000, 8))
    a, t = tea.advantages(z, 256), tea.value(z, 256)
    up = [(a * z).sum(1), (a * (z**2 - 1)).sum(1)]
    for g, truth in zip(up, (1.0, t.mean()), strict=True):
        assert abs(g.mean() - truth) < 4.5 * g.std() / len(g) ** 0.5
    plain = (t[:, None] * (z**2 - 1)).sum(1)
    assert up[1].std() == pytest.approx(13.1, abs=0.4) and plain.std() == pytest.approx(19.2, abs=0.5)


def test_jax_and_numpy_agree_inside_a_jit():
    x = np.random.default_rng(6).normal(size=(5, 12))
    got = jax.jit(lambda r: tea.advantages(r, 128, order=2))(jnp.asarray(x))
    np.testing.assert_allclose(got, tea.advantages(x, 128, order=2), atol=1e-10)
    np.testing.assert_allclose(tea.value(jnp.asarray(x), 128), tea.value(x, 128), rtol=1e-12)


def test_a_known_shape_makes_one_order_exact():
    """The basis of normal scores is exact for normal rewards, where the harmonic one is not."""
    nodes = (32, 64)
    w = lstatistics.node_weights(nodes, 1024, "normal")
    assert w @ order.normal_score(np.array(nodes, float)) == pytest.approx(order.normal_score(1024), abs=1e-12)
    assert abs(bias(nodes, 1024)) > 0.1


def test_refusals():
    with pytest.raises(ValueError, match="different nodes"):
        lstatistics.nodes_of(3, 2)
    with pytest.raises(ValueError, match="at least two rollouts"):
        tea.advantages(np.zeros((2, 1)), 4, order=0)
    with pytest.raises(ValueError, match="basis 'log'"):
        lstatistics.node_weights((1, 2), 4, "log")
    with pytest.raises(ValueError, match="must be different"):
        lstatistics.node_weights((2, 2), 4)
    assert zoo.get("tail_extrapolated") is tea.estimator


@pytest.mark.parametrize("N", [2, 16, 256])
def test_the_exact_advantage_is_the_gradient_of_the_best_of_n(N):
    """Normal policy: E[z A] = 1 and E[(z^2 - 1) A] = e_N."""
    z, step = np.linspace(-9, 9, 721, retstep=True)  # the trapezoid rule is exact here to the last digits but few
    a = order.advantage(stats.norm(), z, N) * stats.norm.pdf(z) * step
    assert np.sum(a * z) == pytest.approx(1.0, rel=1e-10)
    assert np.sum(a * (z**2 - 1)) == pytest.approx(order.normal_score(N), rel=1e-10)
