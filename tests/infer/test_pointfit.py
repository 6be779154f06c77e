"""Point fits: published optima, tight scipy, and the flags that must go up."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.optimize

from scalingkit import get, pointfit
from scalingkit.core import notes
from scalingkit.core.errors import RunsError
from scalingkit.core.zoo import names
from scalingkit.infer import pointfit as module
from scalingkit.infer.bootstrap import WEBB, signs, weights
from scalingkit.infer.powers import exponential
from scalingkit.infer.sensitivity import sensitivity
from scalingkit.infer.varpro import nonnegative_least_squares

TRUTH = dict(E=1.8, A=480.0, alpha=0.35, B=2100.0, beta=0.37)


def simulate(n=60, noise=0.01, design="spread", seed=0):
    rng = np.random.default_rng(seed)
    N = np.exp(rng.uniform(np.log(4e7), np.log(1.6e10), n))
    D = {"spread": N * np.exp(rng.uniform(0, np.log(1000), n)), "ray": 20 * N, "one D": np.full(n, 4.4e9)}[design]
    mean = np.asarray(get("chinchilla")(N=N, D=D, **TRUTH))
    corpus = np.repeat(["a", "b", "c", "d"], n // 4)
    return pd.DataFrame(dict(N=N, D=D, loss=mean * np.exp(noise * rng.normal(size=n)), corpus=corpus))


def huber_sum(u, N, D, y, w, delta):
    """The objective and its gradient, written by hand in NumPy: u = log E, log A, alpha, log B, beta."""
    terms = np.stack([np.full_like(N, u[0]), u[1] - u[2] * np.log(N), u[3] - u[4] * np.log(D)])
    share = np.exp(terms - terms.max(0))
    f = terms.max(0) + np.log(share.sum(0))
    share = share / share.sum(0)
    r = np.log(y) - f
    a = np.abs(r)
    psi = -w * np.clip(r, -delta, delta)
    value = np.sum(w * np.where(a <= delta, r**2 / 2, delta * (a - delta / 2)))
    slope = [share[0], share[1], -share[1] * np.log(N), share[2], -share[2] * np.log(D)]
    return value, np.array([psi @ s for s in slope])


def tight(table, w, delta, start):
    args = (table.N.values, table.D.values, table.loss.values, w, delta)
    u = np.array([np.log(start["E"]), np.log(start["A"]), start["alpha"], np.log(start["B"]), start["beta"]])
    for how in (
        dict(method="BFGS", options=dict(gtol=1e-11, maxiter=3000)),
        dict(method="L-BFGS-B", options=dict(ftol=1e-15, gtol=1e-13, maxiter=5000, maxfun=20000)),
    ):
        u = scipy.optimize.minimize(huber_sum, u, args=args, jac=True, **how).x
    return huber_sum(u, *args)[0]


@pytest.fixture(scope="module")
def fitted():
    return pointfit("chinchilla", simulate(), bootstrap=64, seed=3)


def test_noise_free_runs_give_the_truth_back():
    out = pointfit("chinchilla", simulate(noise=0.0, n=12))
    for k, v in TRUTH.items():
        assert float(out[k]) == pytest.approx(v, rel=1e-6)
    assert out.attrs["converged"] == 1


def test_same_minimum_as_tight_scipy_and_the_objective_is_named(fitted):
    table = simulate()
    reference = min(tight(table, np.ones(60), 1e-3, TRUTH), tight(table, np.ones(60), 1e-3, module.parameters(fitted)))
    assert float(fitted.objective) <= reference * (1 + 1e-9)
    assert fitted.attrs["objective"] == "sum of Huber(delta=0.001) of log residuals"
    assert float(fitted.gradient_norm) < 1e-8


def test_every_bootstrap_is_at_the_best_minimum_and_a_loose_fit_is_not(fitted):
    table = simulate()
    w = weights(np.random.default_rng(3), 64, np.arange(60))
    reference = np.array([tight(table, w[i], 1e-3, module.parameters(fitted)) for i in range(12)])
    assert np.all(fitted.objective_bootstrap.values[:12] <= reference * (1 + 1e-6))
    u = [np.log(1.8), np.log(480), 0.35, np.log(2100), 0.37]
    args = (table.N.values, table.D.values, table.loss.values, w[0], 1e-3)
    loose = scipy.optimize.minimize(huber_sum, u, args=args, jac=True, method="L-BFGS-B").fun
    assert loose > reference[0] * (1 + 1e-6), "the negative control: default tolerances stop early"


def test_intervals_are_quantiles_of_the_bootstraps(fitted):
    lo, hi = np.quantile(fitted.alpha_bootstrap, [0.05, 0.95])
    assert fitted.alpha_interval.values == pytest.approx([lo, hi])
    assert "bootstrap (rows)" in fitted.alpha_interval.attrs["meaning"]


def test_sum_and_mean_have_one_minimiser():
    table = simulate(n=12)
    a, b = (pointfit("chinchilla", table, reduction=r) for r in ("sum", "mean"))
    assert float(a.beta) == float(b.beta)
    assert float(a.objective) == pytest.approx(12 * float(b.objective))


def test_objective_moves_the_answer_and_says_so():
    table = simulate(seed=5)
    table.loc[:2, "loss"] *= 1.3
    out = {m: pointfit("chinchilla", table, method=m) for m in ("huber", "lsq-log", "lsq")}
    assert len({o.attrs["objective"] for o in out.values()}) == 3
    assert abs(float(out["huber"].E) - 1.8) < abs(float(out["lsq"].E) - 1.8)


def test_least_squares_agree_with_scipy():
    table = simulate(seed=7)
    out = pointfit("chinchilla", table, method="lsq")

    def residual(u):
        f = np.exp(u[0]) + np.exp(u[1] - u[2] * np.log(table.N)) + np.exp(u[3] - u[4] * np.log(table.D))
        return table.loss - f

    start = [np.log(1.8), np.log(480), 0.35, np.log(2100), 0.37]
    best = scipy.optimize.least_squares(residual, start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert float(out.objective) == pytest.approx(best.cost, rel=1e-9)


@pytest.mark.parametrize(
    ("design", "among"), [("ray", {"alpha", "beta", "A", "B", "E"}), ("one D", {"E", "B", "beta"})]
)
def test_flat_designs_are_called_ridges(design, among):
    flags = [n for n in notes.of(pointfit("chinchilla", simulate(design=design, noise=0.003))) if n.code == "ridge"]
    assert flags
    assert set(flags[-1].about.split(", ")) <= among


def test_spread_designs_are_not_called_ridges(fitted):
    assert not [n for n in notes.of(fitted) if n.code == "ridge"]


def test_parameter_of_an_input_that_never_varies_is_named():
    found = notes.of(pointfit("chinchilla", simulate(design="one D")))
    assert ("no-effect", "beta") in {(n.code, n.about) for n in found}


def test_a_stop_before_the_minimum_is_never_called_converged(monkeypatch):
    monkeypatch.setattr(module, "FEW", 1)
    monkeypatch.setattr(module, "MANY", 0)
    out = pointfit("chinchilla", simulate(seed=9))
    assert out.attrs["converged"] == 0
    assert "not-converged" in {n.code for n in notes.of(out)}


def test_group_and_wild_bootstraps():
    table = simulate()
    by_group = pointfit("chinchilla", table, bootstrap=16, by="corpus")
    wild = pointfit("chinchilla", table, bootstrap=16, by="corpus", resample="wild")
    assert by_group.attrs["resample"] == "groups of corpus"
    assert "wild of corpus" in wild.beta_interval.attrs["meaning"]
    assert float(wild.beta_bootstrap.std()) > 0


def test_resampling_draws_whole_groups_and_keeps_totals():
    rng = np.random.default_rng(0)
    groups = np.array([0, 0, 1, 1, 1, 2])
    w = weights(rng, 500, groups)
    assert np.all(w[:, 0] == w[:, 1]) and np.all(w[:, [0, 2, 5]].sum(1) == 3)
    s = signs(rng, 20_000, groups)
    assert np.all(s[:, 2] == s[:, 4])
    assert np.isin(s, WEBB).all()
    assert s[:, 0].mean() == pytest.approx(0, abs=0.03) and (s[:, 0] ** 2).mean() == pytest.approx(1, abs=0.03)


def test_nonnegative_least_squares_is_that_of_scipy():
    rng = np.random.default_rng(1)
    for _ in range(20):
        X, y = rng.normal(size=(15, 3)), rng.normal(size=15)
        ours = nonnegative_least_squares(X, y, np.ones(15), (True,) * 3)
        np.testing.assert_allclose(ours, scipy.optimize.nnls(X, y)[0], atol=1e-9)


def test_a_free_sign_is_kept():
    X, y = np.array([[1.0], [1.0]]), np.array([-2.0, -4.0])
    assert float(nonnegative_least_squares(X, y, np.ones(2), (False,))[0]) == pytest.approx(-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.rename(columns={"loss": "Loss"}), "needs the column 'loss'.*Did you mean 'Loss'"),
        (lambda t: t.assign(N=np.where(t.index == 3, np.nan, t.N)), r"'N' must be positive and finite.*1 row\(s\): 3"),
        (lambda t: t.assign(loss=-t.loss), "'loss' must be positive"),
        (lambda t: t.assign(D="many"), "'D' is not numeric"),
        (lambda t: t[:4], "4 rows cannot determine the 5 parameters"),
    ],
)
def test_bad_tables_are_refused(change, words):
    with pytest.raises(RunsError, match=words):
        pointfit("chinchilla", change(simulate()))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(method="hubber"), "Did you mean 'huber'"),
        (dict(reduction="median"), "'sum' or 'mean'"),
        (dict(delta=0), "delta must be positive"),
        (dict(resample="groups"), "needs by="),
        (dict(resample="rows", by="corpus"), "no effect"),
        (dict(starts=0), "at least 1"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        pointfit("chinchilla", simulate(), **options)


@pytest.mark.data
def test_published_optimum_of_the_chinchilla_reconstruction(mirror):
    """Besiroglu et al. 2024, data_analysis.ipynb cell 18: 240 points, Huber delta 1e-3, objective 0.0010182740."""
    raw = pd.read_csv(mirror / "chinchilla-epoch-svg" / "svg_extracted_data.csv")
    raw = raw.sort_values("loss", kind="stable")[:-5]
    N = raw["Model Size"].to_numpy()
    out = pointfit("chinchilla", dict(N=N, D=raw["Training FLOP"].to_numpy() / (6 * N), loss=raw["loss"].to_numpy()))
    assert float(out.objective) == pytest.approx(1.018274e-3, rel=1e-6)
    assert {k: float(out[k]) for k in ("E", "alpha", "beta")} == pytest.approx(
        dict(E=1.8172, alpha=0.3473, beta=0.3672), abs=5e-4
    )
    assert (float(out.A), float(out.B)) == pytest.approx((477.8, 2143), rel=1e-3)
    assert float(out.agreement) > 0.8 and not notes.of(out)


@pytest.mark.data
def test_published_objectives_are_sums(mirror):
    """Gemstones hot_100b+ (delta 1e-4): 0.00069233. (Mis)Fitting, all 261 runs (delta 1e-3): 0.00502165."""
    hot = pd.read_json(mirror / "gemstones" / "wandb_df_for_fitting_hot_100b+.jsonl", lines=True)
    hot = dict(N=hot.params_active_precise, D=hot.tokens, loss=hot.final_loss)
    assert float(pointfit("chinchilla", hot, delta=1e-4).objective) == pytest.approx(0.00069233, rel=1e-5)
    last = pd.read_csv(mirror / "misfitting-survey" / "scaling_results_last_ckpt_only.csv")
    assert float(pointfit("chinchilla", last).objective) == pytest.approx(0.00502165, rel=1e-5)


def test_powers_written_as_exponentials_are_the_same_curve():
    def f(x, a):
        smooth = jax.nn.softplus(a) + jax.nn.logsumexp(jnp.stack([x, x]), axis=0)
        return x**-a + jnp.where(x > 1, x**2, smooth) + jax.vmap(lambda z: z**a)(x)

    x, a = jnp.array([0.5, 1.0, 7.0]), 0.3
    np.testing.assert_allclose(exponential(f)(x, a), f(x, a), rtol=1e-14)
    ours, theirs = (jax.hessian(lambda v, g=g: g(x, v).sum())(a) for g in (exponential(f), f))
    assert float(ours) == pytest.approx(float(theirs), rel=1e-12)
    assert "pow" not in str(jax.make_jaxpr(exponential(lambda x: x**a))(x)).replace("integer_pow", "")


def test_sensitivity_shows_each_objective_side_by_side():
    table = simulate(seed=5)
    out = sensitivity("chinchilla", table, at=dict(N=1e11, D=2e12))
    assert list(out.choice.values[:2]) == ["huber 0.0001", "huber 0.001"] and {"lsq-log", "lsq"} <= set(
        out.choice.values
    )
    i = pointfit("chinchilla", table)
    assert float(out.alpha.sel(choice="huber 0.001")) == pytest.approx(float(i.alpha), rel=1e-9)
    assert out.predicted.dims == ("choice",) and np.ptp(out.predicted.values) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", names("laws"))
def test_every_law_is_recovered_from_its_own_example(name):
    law = get(name)
    axes = [np.geomspace(*law.example[k]) for k in law.inputs]
    grid = dict(zip(law.inputs, (a.ravel() for a in np.meshgrid(*axes, indexing="ij")), strict=True))
    out = pointfit(law, grid | {law.output: np.asarray(law(**grid, **law.truth))})
    assert out.attrs["converged"] == 1
    for k, v in law.truth.items():
        assert float(out[k]) == pytest.approx(v, rel=1e-6, abs=1e-9), k
