"""Condition numbers against the closed forms and reference numbers they are known by."""

import jax
import numpy as np
import pytest

from scalingkit.core import zoo
from scalingkit.core.precision import PrecisionError
from scalingkit.design import grids, thresholds
from scalingkit.design.information import condition, fisher, jacobian, vif

GAPS = np.array([0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.0025])
SIZES = np.geomspace(1e8, 1e10, 12)


@pytest.fixture(scope="module")
def law():
    return zoo.get("chinchilla", "laws")


def theta(alpha, beta, E=1.82, A=482.0, B=2085.0):
    return dict(E=E, A=A, alpha=alpha, B=B, beta=beta)


def test_jacobian_is_the_hand_written_one(law):
    t, runs = theta(0.348, 0.366), grids.spread(SIZES)
    N, D = runs["N"].values, runs["D"].values
    by_hand = np.c_[np.ones(N.size), N**-0.348, -482 * np.log(N) * N**-0.348, D**-0.366, -2085 * np.log(D) * D**-0.366]
    J = jacobian(law, t, runs)
    assert J.dims == ("run", "param") and list(J["param"].values) == ["E", "A", "alpha", "B", "beta"]
    np.testing.assert_allclose(J, by_hand, rtol=1e-12)
    log = jacobian(law, t, runs, coords="log", of="log")
    L = law(**t, N=N, D=D)
    np.testing.assert_allclose(log, by_hand * np.array(list(t.values())) / np.asarray(L)[:, None], rtol=1e-11)


def test_pivoted_columns_are_logs_at_the_geometric_mean(law):
    t, runs = theta(0.348, 0.366), grids.ray(SIZES)
    J = jacobian(law, t, runs, coords="pivoted")
    N, D = runs["N"].values, runs["D"].values
    N0 = np.exp(np.log(N).mean())
    np.testing.assert_allclose(J.sel(param="A"), 482 * N**-0.348, rtol=1e-12)
    np.testing.assert_allclose(J.sel(param="alpha"), -0.348 * np.log(N / N0) * 482 * N**-0.348, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(J.sel(param="B"), 2085 * D**-0.366, rtol=1e-12)


def test_kappa_is_coth_of_a_quarter_of_v_on_a_gaussian_design(law):
    v = thresholds.spread(0.34, 0.28, 1.3, 0.6)
    assert thresholds.kappa(v) == pytest.approx(116.59, abs=0.01)
    for seed in (0, 1):
        design = grids.gaussian(2**15, 1.3, 0.6, seed=seed)
        found = float(condition(law, theta(0.34, 0.28), design, block="scale"))
        assert found == pytest.approx(116.59, rel=0.01)
    correlated = grids.gaussian(2**15, 1.3, 0.6, corr=0.5)
    v = thresholds.spread(0.34, 0.28, 1.3, 0.6, cov=0.5 * 1.3 * 0.6)
    assert float(condition(law, theta(0.34, 0.28), correlated)) == pytest.approx(thresholds.kappa(v), rel=0.01)
    # the negative control: the formula without the spread of TPP is off by far more than the tolerance
    assert abs(thresholds.kappa(thresholds.spread(0.34, 0.28, 1.3, 0.0)) / found - 1) > 1


@pytest.mark.parametrize(
    ("block", "reference", "limit"),
    [
        ("scale", [-2.16, -2.09, None, None, -2.01, -2.00], -2),
        ("scale+E", None, -2),
        ("full", [-3.4, -4.7, -5.5, -5.9, -5.95, -5.98], -6),
    ],
)
def test_local_slopes_in_the_gap_on_a_ray(law, block, reference, limit):
    kappas = [float(condition(law, theta(0.34, 0.34 - g), grids.ray(SIZES), block=block)) for g in GAPS]
    slopes = thresholds.local_slopes(GAPS, kappas)
    assert abs(slopes[-1] - limit) < 0.05
    assert np.all(np.diff(np.abs(slopes - limit)) < 0), "the slopes approach their limit monotonically"
    if reference:
        for s, r in zip(slopes, reference, strict=True):
            assert r is None or s == pytest.approx(r, abs=0.06)
    other = -6 if limit == -2 else -2
    assert abs(slopes[-1] - other) > 3, "-2 is never asserted of the full matrix, nor -6 of the scale block"


def test_scale_block_slopes_at_the_reference_gaps(law):
    gaps = np.array([0.2, 0.1, 0.05, 0.025, 0.01, 0.005, 0.0025])
    kappas = [float(condition(law, theta(0.34, 0.34 - g), grids.ray(SIZES))) for g in gaps]
    np.testing.assert_allclose(
        thresholds.local_slopes(gaps, kappas), [-2.16, -2.09, -2.04, -2.02, -2.01, -2.00], atol=0.0065
    )


@pytest.mark.parametrize("gap", [0.0, 0.01])
def test_full_matrix_goes_as_one_over_the_variance_of_log_tpp(law, gap):
    sds = np.array([1.0, 0.5, 0.2, 0.1, 0.05])
    levels = np.sqrt(1.5) * np.array([-1, 0, 1])
    kappas = [
        float(condition(law, theta(0.34, 0.34 - gap), grids.ladder(SIZES, np.exp(levels * s)), block="full"))
        for s in sds
    ]
    np.testing.assert_allclose(thresholds.local_slopes(sds, kappas), [-1.5, -1.9, -1.97, -1.99], atol=0.03)


def test_exact_ray_with_equal_exponents_is_singular(law):
    ray = grids.ray(SIZES)
    for block in ("scale", "scale+E", "full"):
        assert np.isinf(condition(law, theta(0.34, 0.34), ray, block=block))
        assert np.isfinite(condition(law, theta(0.34, 0.34), grids.spread(SIZES), block=block))


def test_changing_coordinates_changes_kappa_but_not_the_rank(law):
    t, runs = theta(0.348, 0.366), grids.spread(SIZES)
    kappas, ranks = [], []
    for coords in ("natural", "log", "pivoted"):
        kappas.append(float(condition(law, t, runs, block="full", coords=coords)))
        J = jacobian(law, t, runs, coords=coords).values
        ranks.append(np.linalg.matrix_rank(J / np.linalg.norm(J, axis=0)))
    assert ranks == [5, 5, 5]
    assert kappas[0] / kappas[2] > 3 and kappas[0] == pytest.approx(kappas[1], rel=1e-9)


def test_fewer_runs_than_parameters_is_infinite(law):
    assert np.isinf(condition(law, theta(0.34, 0.3), grids.spread(SIZES[:4]), block="full"))


def test_fisher_and_vif_agree_with_the_inverse(law):
    t, runs = theta(0.348, 0.366), grids.ladder(SIZES)
    J = jacobian(law, t, runs, of="log").values
    Z = J / np.linalg.norm(J, axis=0)
    np.testing.assert_allclose(vif(law, t, runs), np.diag(np.linalg.inv(Z.T @ Z)), rtol=1e-5)
    F = fisher(law, t, runs, 0.01, coords="natural")
    np.testing.assert_allclose(F, J.T @ J / 1e-4, rtol=1e-9)


def test_a_posterior_gives_one_number_per_draw(law):
    import xarray as xr

    draws = xr.Dataset({k: (("chain", "draw"), np.full((2, 3), v)) for k, v in theta(0.348, 0.366).items()})
    kappa = condition(law, draws, grids.spread(SIZES))
    assert kappa.dims == ("chain", "draw")
    np.testing.assert_allclose(kappa, float(condition(law, theta(0.348, 0.366), grids.spread(SIZES))))


def test_float32_is_refused(law):
    with jax.enable_x64(False), pytest.raises(PrecisionError, match="float64"):
        jacobian(law, theta(0.34, 0.3), grids.ray(SIZES))


def test_bad_requests_say_what_and_where(law):
    t, runs = theta(0.34, 0.3), grids.ray(SIZES)
    with pytest.raises(grids.DesignError, match="needs values for E, B"):
        jacobian(law, {"A": 1.0, "alpha": 1.0, "beta": 1.0}, runs)
    with pytest.raises(grids.DesignError, match="'scale\\+E'"):
        condition(law, t, runs, block="scaleE")
    with pytest.raises(grids.DesignError, match="inputs D"):
        condition(law, t, runs.drop_vars("D"))
    runs = runs.copy(deep=True)
    runs["D"][3] = np.nan
    with pytest.raises(grids.DesignError, match="'ray-03': D = nan"):
        condition(law, t, runs)
