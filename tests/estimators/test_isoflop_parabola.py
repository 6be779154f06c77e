"""The iso-FLOP parabola: right where it can be, biased as derived, and its flags say what they should."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from scalingkit.core import zoo

PARABOLA = zoo.get("isoflop_parabola")
WORLD = zoo.get("corpora")


def table(C, u, loss):
    """Runs at sizes 1e9 exp(u) for every budget."""
    u, C, y = (np.asarray(v, float).ravel() for v in np.broadcast_arrays(u, C, loss))
    return xr.Dataset(
        {"N": ("run", 1e9 * np.exp(u)), "C": ("run", C), "loss": ("run", y)},
        coords={"run": [f"r{i}" for i in range(u.size)]},
    )


U = np.linspace(-1.0, 1.5, 6)


def test_an_exact_parabola_is_found_exactly():
    found = PARABOLA(table(1e21, U, 2.0 + 0.3 * (U - 0.4) ** 2)).squeeze()
    assert float(found["N_opt"]) == pytest.approx(1e9 * np.exp(0.4), rel=1e-10)
    assert float(found["loss_opt"]) == pytest.approx(2.0) and float(found["curvature"]) == pytest.approx(0.6)
    assert bool(found["convex"]) and bool(found["bracketed"]) and bool(found["used"]) and not bool(found["flat"])


@pytest.mark.parametrize("lean", [3.0, -3.0])
def test_a_vertex_beyond_the_sizes_is_not_bracketed(lean):
    found = PARABOLA(table(1e21, U, 2.0 + 0.3 * (U - lean) ** 2)).squeeze()
    assert bool(found["convex"]) and not bool(found["bracketed"]) and not bool(found["used"])


def test_a_hill_is_not_convex():
    found = PARABOLA(table(1e21, U, 2.0 - 0.3 * U**2)).squeeze()
    assert not bool(found["convex"]) and not bool(found["used"])


def test_a_flat_bottom_has_an_unbounded_interval():
    noise = 0.05 * np.array([1, -1, 0.5, -1, 1, -0.5])
    found = PARABOLA(table(1e21, U, 2.0 + 0.01 * U**2 + noise)).squeeze()
    assert bool(found["flat"]) and not bool(found["used"]) and np.isinf(float(found["N_upper"]))
    sharp = PARABOLA(table(1e21, U, 2.0 + 1.0 * U**2 + noise)).squeeze()
    assert not bool(sharp["flat"]) and float(sharp["N_lower"]) < float(sharp["N_opt"]) < float(sharp["N_upper"])


def test_three_sizes_give_a_vertex_but_no_interval():
    u = np.array([-1.0, 0.0, 1.0])
    found = PARABOLA(table(1e21, u, 2.0 + 0.3 * (u - 0.2) ** 2)).squeeze()
    assert float(found["N_opt"]) == pytest.approx(1e9 * np.exp(0.2)) and np.isnan(float(found["N_upper"]))
    assert bool(found["used"])


def test_the_interval_covers_the_vertex_as_often_as_it_says():
    rng = np.random.default_rng(0)
    mean = 2.0 + 0.3 * (U - 0.4) ** 2
    tables = [table(1e21, U, mean + 0.02 * rng.standard_normal(U.size)) for _ in range(200)]
    found = [PARABOLA(t, prob=0.8).squeeze() for t in tables]
    inside = np.mean([float(f["N_lower"]) <= 1e9 * np.exp(0.4) <= float(f["N_upper"]) for f in found])
    assert abs(inside - 0.8) < 4 * np.sqrt(0.16 / 200)


def test_the_exponent_uses_only_the_good_budgets():
    C = np.array([1e19, 1e20, 1e21, 1e22])[:, None]
    vertex = 0.5 * np.log(C / 1e20) * 0.2
    loss = 2.0 + 0.3 * (U - vertex) ** 2
    assert float(PARABOLA(table(C, U, loss))["exponent"]) == pytest.approx(0.1, abs=1e-9)
    loss[3] = 2.0 - 0.3 * U**2
    found = PARABOLA(table(C, U, loss))
    assert found["used"].values.tolist() == [True, True, True, False]
    assert float(found["exponent"]) == pytest.approx(0.1, abs=1e-9) and float(found["exponent_se"]) < 1e-9


def test_budgets_that_differ_by_rounding_are_one():
    C = 1e21 * (1 + 0.01 * np.array([0, 1, -1, 0.5, -0.5, 0]))
    found = PARABOLA(table(C, U, 2.0 + 0.3 * U**2))
    assert found.sizes["budget"] == 1
    with pytest.raises(ValueError, match="three different sizes"):
        PARABOLA(table(C, U, 2.0 + 0.3 * U**2), tolerance=1e-4)


def test_equal_centring_gives_the_exponent_and_drift_does_not():
    for key in (0, 1, 2):
        right, truth, room = PARABOLA.judge(WORLD, key)
        off, _, _ = PARABOLA.wrong(WORLD, key)
        assert abs(right - truth) < room < abs(off - truth)


def test_no_flag_sees_the_drift():
    """The bias of a drifting grid must be known about, because every budget looks good."""
    from scalingkit.estimators import isoflop_parabola as module

    best = WORLD.exact["N_opt"](xr.Dataset({"C": ("run", module.BUDGETS)}), **module.THETA)
    data = WORLD.simulate(0, module.design(best * np.geomspace(1 / 5, 5, best.size)), **module.THETA)
    assert bool(PARABOLA(data)["used"].all())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.drop_vars("C"), "needs C"),
        (lambda d: d.assign(N=d["N"] * -1), "run 'r0': N = "),
        (lambda d: d.assign(loss=d["loss"] * np.nan), "run 'r0': loss = nan"),
        (lambda d: d.assign_coords(corpus=("run", ["a", "b"] * 3)), r"several corpora \(a, b\)"),
        (lambda d: d.isel(run=slice(2)), "three different sizes"),
    ],
)
def test_refusals_say_what_and_where(change, words):
    with pytest.raises(ValueError, match=words):
        PARABOLA(change(table(1e21, U, 2.0 + 0.3 * U**2)))
