"""Many fits: the same numbers as single fits, with names; truth beside estimate; failures do not stop the rest."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from scalingkit import LogNormal, Model, Partial, get, pointfit
from scalingkit.infer.fit import fit
from scalingkit.infer.manyfits import Fits, Simulated, study
from scalingkit.infer.studies import Work
from scalingkit.infer.studystore import StudyError

WORLD = get("corpora", "worlds")
TRUTH = dict(E=1.8, A=480.0, alpha=0.35, B=2100.0, beta=0.37, sigma=0.01)


def simulated(table):
    return Simulated(Model(law="chinchilla", likelihood=LogNormal()), table(30), TRUTH)


def test_point_fits_of_a_grid_are_those_of_single_calls_and_stand_beside_the_truth(tmp_path, table):
    tables = {"own": table(30), "made": simulated(table)}
    found = study(tmp_path / "s.zarr", tables=tables, models=["chinchilla", "kaplan"], seeds=[3, 4], method="lsq-log")
    assert found["estimate"].dims == ("table", "model", "seed", "param") and found.attrs["failed"] == 0
    alone = pointfit("chinchilla", table(30), method="lsq-log", seed=3)
    here = found.sel(table="own", model="chinchilla", seed=3)
    for k in ("E", "A", "alpha", "B", "beta"):
        np.testing.assert_allclose(here.estimate.sel(param=k), alone[k], rtol=1e-9)
        np.testing.assert_allclose(here.sd.sel(param=k), alone[f"{k}_se"], rtol=1e-6)
    assert here.truth.isnull().all()
    made = found.sel(table="made", model="chinchilla")
    assert dict(zip(made.param.values, made.truth.values[0], strict=True)).items() >= {"E": 1.8, "beta": 0.37}.items()
    assert np.all(np.abs((made.estimate - made.truth) / made.sd).sel(param=["E", "alpha", "beta"]) < 5)
    # another table at every seed; the Dataset's is the same
    assert made.estimate.sel(param="alpha").values[0] != made.estimate.sel(param="alpha").values[1]
    assert found.sel(table="own", model="kaplan").estimate.notnull().any()


def test_a_table_that_cannot_be_fitted_does_not_stop_the_others(tmp_path, table):
    tables = {"short": table(30).drop_vars("D"), "own": table(30)}
    found = study(tmp_path / "s.zarr", tables=tables, models=["chinchilla"], method="lsq-log")
    assert found.state.values.ravel().tolist() == ["failed", "done"]
    assert "needs the column 'D'" in found.reason.sel(table="short").item()


def test_posteriors_of_a_grid_keep_group_names(tmp_path, table):
    runs = table(18)
    runs = runs.assign(x=runs["N"], y=runs["N"] ** -0.1)
    pooled = Model(law="power", pool={"alpha": Partial("corpus")}, likelihood=LogNormal())
    short = dict(chains=1, draws=20, tune=40, target_accept=0.8)
    found = study(tmp_path / "s.zarr", tables={"own": runs}, models={"pooled": pooled}, seeds=[5], **short)
    tree = fit(pooled, runs, seed=5, **short)
    here = found.squeeze(drop=True)
    alpha = tree["posterior"]["alpha"].sel(corpus="pile")
    np.testing.assert_allclose(here.estimate.sel(param="alpha[pile]"), alpha.mean(), rtol=1e-10)
    np.testing.assert_allclose(here.upper.sel(param="alpha[pile]"), np.quantile(alpha, 0.95), rtol=1e-10)
    assert here.estimate.notnull().all() and here.divergences == tree.attrs["divergences"]
    assert here.device == tree.attrs["device"] and "truth" not in here


def test_a_design_that_changed_by_one_number_is_another_study(tmp_path, table):
    given = dict(models=["chinchilla"], seeds=[0], method="lsq-log")
    study(tmp_path / "s.zarr", tables={"own": table(30)}, **given)
    other = table(30)
    other["loss"][7] += 1e-9
    with pytest.raises(StudyError, match=r"tables\.own"):
        study(tmp_path / "s.zarr", tables={"own": other}, **given)
    with pytest.raises(StudyError, match=r"settings\.starts: \"nothing\" there, 8 here"):
        study(tmp_path / "s.zarr", tables={"own": table(30)}, starts=8, **given)


def test_a_world_gives_a_table_for_each_seed_and_its_truth():
    made = Simulated("corpora", WORLD.example["design"], WORLD.example["theta"]).tables([1, 2])
    assert not np.array_equal(made[1][0].loss, made[2][0].loss) and made[1][1]["alpha"] == 0.34
    xr.testing.assert_identical(made[1][0], WORLD.simulate(1, WORLD.example["design"], **WORLD.example["theta"]))


def test_the_task_goes_over_dasks_wire(tmp_path, table):
    from distributed.protocol import deserialize, serialize

    models = {"pooled": Model(law="chinchilla", pool={"alpha": Partial("corpus")})}
    world = Simulated(WORLD, WORLD.example["design"], WORLD.example["theta"])
    task = Fits({"own": table(24), "made": simulated(table), "world": world}, models, (0,), "nuts", {})
    back = deserialize(*serialize(Work(tmp_path, "0", task)))
    assert back.task == task and hash(back.task) == hash(task)


def test_bad_requests_are_refused(tmp_path, table):
    with pytest.raises(StudyError, match="method 'mcmc' is not one of nuts, huber"):
        study(tmp_path / "s.zarr", tables={"a": table()}, models=["chinchilla"], method="mcmc")
    with pytest.raises(StudyError, match="table 'a' is a dict"):
        study(tmp_path / "s.zarr", tables={"a": {}}, models=["chinchilla"])
    with pytest.raises(StudyError, match="two models of the law 'chinchilla'"):
        study(tmp_path / "s.zarr", tables={"a": table()}, models=["chinchilla", "chinchilla"])
