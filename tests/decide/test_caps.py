"""Caps: no false certificates, no dropped prompts, refusals with reasons."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from scalingkit.core import order
from scalingkit.decide.caps import certify
from scalingkit.decide.exposures import CapError, exposures

DIMS = ("problem", "sample")


def pools(rng, n, K=32, p_bad=0.3, good=(0.5, 1.0), bad=(0.0, 1.6)):
    z = rng.random((n, K)) < p_bad
    s = np.where(z, bad[0], good[0]) + np.where(z, bad[1], good[1]) * rng.standard_normal((n, K))
    return xr.Dataset({"score": (DIMS, s), "harm": (DIMS, z.astype(float))})


def truth(N, p_bad=0.3, good=(0.5, 1.0), bad=(0.0, 1.6)):
    return order.accuracy(p_bad, stats.norm(*bad), stats.norm(*good), N)


def test_the_rank_law_by_enumeration_with_ties():
    rng = np.random.default_rng(0)
    s, z = rng.integers(0, 4, 16).astype(float), rng.random(16)
    got = exposures(xr.Dataset({"score": (DIMS, s[None]), "harm": (DIMS, z[None])}), attempted=1, N=[1, 2, 3])
    for n, found in zip((1, 2, 3), got["exposure"].values[0], strict=True):
        picks = [np.mean(z[list(p)][s[list(p)] == s[list(p)].max()]) for p in combinations(range(16), n)]
        assert found == pytest.approx(np.mean(picks), abs=1e-12)


def test_the_example_of_the_specification():
    assert truth(np.array([1, 2, 4, 8, 16, 32])) == pytest.approx([0.300, 0.256, 0.273, 0.322, 0.394, 0.483], abs=2e-3)
    caps = [
        int(certify(pools(np.random.default_rng(k), 3000), attempted=3000, limit=0.315, delta=0.1)["cap"])
        for k in range(20)
    ]
    assert set(caps) == {4}
    small = [certify(pools(np.random.default_rng(k), 300), attempted=300, limit=0.33, delta=0.1) for k in range(50)]
    assert {int(c["cap"]) for c in small} == {0} and small[0].attrs["verdict"] == "REFUSED"
    assert "exceeds 0.33" in json.loads(small[0].attrs["reasons"])[0]


# twenty harm curves b(u), among them those made to be at the limit at one N
CURVES = {
    **{f"flat {b}": (lambda u, b=b: np.full_like(u, b)) for b in (0.01, 0.05, 0.1, 0.3)},
    **{f"rise {k}": (lambda u, k=k: u**k) for k in (1, 4, 20, 60)},
    **{f"fall {k}": (lambda u, k=k: (1 - u) ** k) for k in (1, 4, 20)},
    **{f"step {t}": (lambda u, t=t: (u > t).astype(float)) for t in (0.9, 0.97, 0.99, 0.995)},
    **{f"bump {m}": (lambda u, m=m: np.exp(-((u - m) ** 2) / 0.002)) for m in (0.5, 0.9, 0.98)},
    **{f"wave {k}": (lambda u, k=k: 0.5 + 0.4 * np.sin(k * u)) for k in (5, 40)},
}


@pytest.mark.parametrize("name", CURVES)
def test_no_false_certificates(name):
    """The limit is put at the exposure of each N itself: any certificate of that N is false. 60 tables a curve."""
    b, K, delta = CURVES[name], 32, 0.1
    grid = [1, 2, 4, 8, 16, 32]
    real = np.array([order.exposure(lambda p: b(1 - p), n) for n in grid])
    rng = np.random.default_rng(len(name))
    false = 0
    for repeat in range(60):
        limit = float(np.clip(real[repeat % 6] - 1e-9, 1e-6, 1 - 1e-6))
        u = rng.random((200, K))
        z = (rng.random((200, K)) < b(u)).astype(float)
        got = certify(xr.Dataset({"score": (DIMS, u), "harm": (DIMS, z)}), attempted=200, limit=limit, delta=delta)
        false += bool((got["certified"].values & (real > limit)).any())
    assert false <= stats.binom.isf(1e-4, 60, delta)


def test_the_mean_alone_would_certify_falsely():
    """The control: without the bound, half of the tables at the limit pass."""
    false = 0
    for k in range(60):
        x = exposures(pools(np.random.default_rng(k), 200), attempted=200, N=[16])["exposure"].mean()
        false += float(x) <= truth(16)
    assert false > stats.binom.isf(1e-4, 60, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bernstein", "clopper-pearson"])
def test_no_false_certificates_in_a_thousand_tables(method):
    grid = [1, 2, 4, 8, 16, 32]
    for name, b in CURVES.items():
        real = np.array([order.exposure(lambda p, b=b: b(1 - p), n) for n in grid])
        rng = np.random.default_rng(len(name))
        false = 0
        for repeat in range(1000):
            limit = float(np.clip(real[repeat % 6] - 1e-9, 1e-6, 1 - 1e-6))
            u = rng.random((150, 32))
            z = (rng.random((150, 32)) < b(u)).astype(float)
            data = xr.Dataset({"score": (DIMS, u), "harm": (DIMS, z)})
            got = certify(data, attempted=150, limit=limit, delta=0.1, method=method, seed=repeat)
            false += bool((got["certified"].values & (real > limit)).any())
        assert false <= stats.binom.isf(1e-4, 1000, 0.1), name


def test_failed_prompts_cannot_be_dropped():
    data = pools(np.random.default_rng(1), 1000, p_bad=0.02)
    whole = certify(data, attempted=1000, limit=0.15)
    failed = certify(data, attempted=1200, limit=0.15)
    assert int(whole["cap"]) > 0 and int(failed["cap"]) == 0 and failed.attrs["failed"] == 200
    assert float(failed["exposure"][0]) == pytest.approx((float(whole["exposure"][0]) * 1000 + 200) / 1200)
    with pytest.raises(TypeError):
        certify(data, limit=0.15)
    with pytest.raises(CapError, match="all attempted must be counted"):
        certify(data, attempted=900, limit=0.15)
    with pytest.raises(CapError, match="not among the attempted"):
        certify(data, attempted=[f"p{i}" for i in range(1000)], limit=0.15)
    lost = data.assign(score=data["score"].where(data["problem"] >= 100))
    assert certify(lost, attempted=1000, limit=0.15).attrs["failed"] == 100


def test_more_prompts_a_larger_delta_and_a_looser_limit_never_lower_the_cap():
    data = pools(np.random.default_rng(2), 4000)
    cap = lambda d, n, limit=0.31, delta=0.05: int(certify(d, attempted=n, limit=limit, delta=delta)["cap"])  # noqa: E731
    limits = [cap(data, 4000, limit=h) for h in (0.27, 0.3, 0.32, 0.4, 0.6)]
    assert limits == sorted(limits) and limits[0] < limits[-1]
    deltas = [cap(data, 4000, limit=0.3, delta=d) for d in (1e-9, 1e-3, 0.05, 0.5)]
    assert deltas == sorted(deltas)
    twice = xr.concat([data.isel(problem=slice(0, 500))] * 8, "problem")
    assert cap(data.isel(problem=slice(0, 500)), 500, 0.33) <= cap(twice, 4000, 0.33)


def test_gates_refuse_with_their_reasons():
    data = pools(np.random.default_rng(3), 300, p_bad=0.001)
    why = lambda **o: " ".join(json.loads(certify(data, attempted=300, limit=0.2, **o).attrs["reasons"]))  # noqa: E731
    assert int(certify(data, attempted=300, limit=0.2)["cap"]) == 32 and why() == ""
    assert "drift" in why(drift=True) and "at least 5000" in why(n_min=5000)
    assert "nothing is extrapolated" in why(N=[1, 32, 64])
    assert int(certify(data, attempted=300, limit=0.2, N=[1, 32, 64])["cap"]) == 32
    tied = data.assign(score=data["score"] * 0)
    assert "differ in only 0%" in json.loads(certify(tied, attempted=300, limit=0.2).attrs["reasons"])[0]
    thin = data.isel(sample=slice(0, 8))
    assert "at least 16" in " ".join(json.loads(certify(thin, attempted=300, limit=0.2).attrs["reasons"]))


def test_penalties_only_ever_lower_the_cap():
    data = pools(np.random.default_rng(4), 2000, p_bad=0.02, bad=(0.0, 1.0))
    plain = certify(data, attempted=2000, limit=0.1)
    noisy = certify(data, attempted=2000, limit=0.1, verifier=dict(sigma=0.1, m=4))
    gap = certify(data, attempted=2000, limit=0.1, mismatch=0.05)
    assert np.all(noisy["upper"] >= plain["upper"]) and int(noisy["cap"]) < int(plain["cap"])
    np.testing.assert_allclose(gap["upper"] - plain["upper"], 0.05)
    with pytest.raises(CapError, match="says nothing of N = 2"):
        certify(data, attempted=2000, limit=0.1, mismatch={1: 0.0})
    with pytest.raises(CapError, match="verifier needs"):
        certify(data, attempted=2000, limit=0.1, verifier=dict(sigma=1.0))


def test_harm_that_is_no_share_is_refused():
    data = pools(np.random.default_rng(5), 20)
    with pytest.raises(CapError, match="problem 0, sample 0"):
        certify(data.assign(harm=data["harm"] + 2), attempted=20, limit=0.1)
    with pytest.raises(CapError, match="between 0 and 1"):
        certify(data, attempted=20, limit=1.5)
