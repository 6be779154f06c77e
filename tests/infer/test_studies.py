"""A study loses nothing and does nothing twice, whatever is killed; what was torn or changed is found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from scalingkit.infer import studies
from scalingkit.infer.studies import load_study, run
from scalingkit.infer.studystore import BYTES, DONE, FAILED, StudyError, StudyStore, differences

from . import study_tasks as tasks

AXES = {"width": ["narrow", "wide"], "seed": [0, 3, 5]}


@pytest.fixture
def store(tmp_path):
    """A finished study of six tasks."""
    run(tmp_path / "s.zarr", tasks.value, AXES)
    return tmp_path / "s.zarr"


def chunk(store: Path, variable: str, width: int, seed: int) -> Path:
    inner = "/".join("0" * (len(json.loads((store / variable / "zarr.json").read_text())["shape"]) - 2))
    return store / variable / "c" / str(width) / str(seed) / inner


def counted(folder: Path, what: str) -> dict[str, int]:
    return {p.stem: sum(x.startswith(what) for x in p.read_text().splitlines()) for p in folder.glob("*-*.log")}


# --------------------------------------------------------------------------------------------------- what is kept


def test_results_have_the_grids_dims_and_the_tasks_own(store):
    found = load_study(store)
    assert dict(found.sizes) == {"width": 2, "seed": 3, "param": 3, "draw": 4}
    for width in AXES["width"]:
        for seed in AXES["seed"]:
            here = found.sel(width=width, seed=seed)
            xr.testing.assert_equal(
                here[["mean", "draws"]].reset_coords(drop=True), tasks.value(width, seed)[["mean", "draws"]]
            )
    assert set(found.state.values.flat) == {"done"} and found.attrs["done"] == 6 and found.attrs["todo"] == 0
    assert np.all(found.steps == 7) and np.all(found.seconds >= 0) and set(found.device.values.flat) == {"cpu:0"}


def test_the_store_is_plain_zarr_3_without_pickles(store):
    with xr.open_zarr(store, consolidated=False) as plain:
        np.testing.assert_array_equal(plain["mean"].values, load_study(store)["mean"].values)
        assert plain["mean"].dims == ("width", "seed", "param") and list(plain.width.values) == ["narrow", "wide"]
    for about in store.rglob("zarr.json"):
        said = json.loads(about.read_text())
        assert said["zarr_format"] == 3
        assert not any("pickle" in c["name"] for c in said.get("codecs", []))
    assert not list(store.rglob("*.partial")) and not list(store.parent.glob(".*"))


def test_nothing_is_done_again(store, monkeypatch):
    monkeypatch.setattr(studies, "outcomes", None)  # any task that is begun fails the test
    assert run(store, tasks.value, AXES).attrs["done"] == 6


def test_an_unfinished_study_is_readable_and_nan(tmp_path):
    told = []

    def stop(done, total):
        told.append((done, total))
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "s.zarr", tasks.value, AXES, progress=stop)
    assert told == [(0, 6), (1, 6), (2, 6), (3, 6), (4, 6)]
    found = load_study(tmp_path / "s.zarr")
    assert (found.state == "done").sum() == 4 and (found.state == "todo").sum() == 2
    np.testing.assert_array_equal(found["mean"].isnull().all("param"), found.state == "todo")
    assert run(tmp_path / "s.zarr", tasks.value, AXES).attrs["done"] == 6


# ---------------------------------------------------------------------------------------------- failures, refusals


def test_failures_keep_their_reason_and_are_tried_again_on_request(tmp_path):
    settings = {"flag": str(tmp_path / "mended")}
    found = run(tmp_path / "s.zarr", tasks.fails_for_three, AXES, settings=settings)
    assert found.attrs["failed"] == 2 and found.attrs["done"] == 4
    reason = found.reason.sel(width="wide", seed=3).item()
    assert reason.startswith("FloatingPointError: the objective is not finite (study_tasks.py:")
    assert np.isnan(found["mean"].sel(seed=3)).all()
    (tmp_path / "mended").touch()
    assert run(tmp_path / "s.zarr", tasks.fails_for_three, AXES, settings=settings).attrs["failed"] == 2
    assert run(tmp_path / "s.zarr", tasks.fails_for_three, AXES, settings=settings, retry=True).attrs["failed"] == 0


def test_a_study_of_failures_only_is_kept_too(tmp_path):
    found = run(
        tmp_path / "s.zarr", tasks.fails_for_three, {"width": ["wide"], "seed": [3]}, settings={"flag": "/none"}
    )
    assert found.attrs["failed"] == 1 and not set(found.data_vars) & {"mean", "draws"}


def grows(width, seed):
    return xr.Dataset({"mean": ("param", np.ones(seed + 1))})


def renames(width, seed):
    return xr.Dataset({"mean" if seed == 0 else "median": ((), 1.0)})


def a_number(width, seed):
    return 1.0


@pytest.mark.parametrize(
    "task, said, kept",
    [(grows, "has no place", 2), (renames, "the study keeps ['mean']", 2), (a_number, "gave a float", 0)],
)
def test_a_result_of_another_shape_is_a_failure(tmp_path, task, said, kept):
    found = run(tmp_path / "s.zarr", task, AXES)
    assert found.attrs["done"] == kept and found.attrs["failed"] == 6 - kept
    assert said in found.reason.sel(width="wide", seed=5).item()


def test_another_study_is_refused_with_what_differs(store):
    with pytest.raises(StudyError, match=r"axes\.seed: 3 entries \[0, 3, 5\] there, 4 entries \[0, 3, 5, 6\] here"):
        run(store, tasks.value, AXES | {"seed": [0, 3, 5, 6]})
    with pytest.raises(StudyError, match="task: .*study_tasks:value. there, .*fails_for_three. here; settings.flag"):
        run(store, tasks.fails_for_three, AXES, settings={"flag": "x"})
    assert load_study(store).attrs["done"] == 6


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda p: run(p / "s.nc", tasks.value, AXES), "name it s.zarr"),
        (lambda p: run(p / "s.zarr", lambda width: None, AXES), "no name by which"),
        (lambda p: run(p / "s.zarr", tasks.value, {"seed": []}), "seed has no labels"),
        (lambda p: run(p / "s.zarr", tasks.value, {"seed": [1, 1]}), "a label twice"),
        (lambda p: run(p / "s.zarr", tasks.value, {"seed": [None]}), "cannot be a label"),
        (lambda p: load_study(p / "none.zarr"), "there is no study"),
    ],
)
def test_bad_requests_are_refused(tmp_path, call, said):
    with pytest.raises(StudyError, match=said):
        call(tmp_path)
    assert not list(tmp_path.iterdir())


def test_differences_name_the_place():
    assert differences({"a": {"b": 1}}, {"a": {"b": 1}}) == []
    assert differences({"a": {"b": 1}}, {"a": {"b": 2}, "c": 3}) == [
        "a.b: 1 there, 2 here",
        'c: "nothing" there, 3 here',
    ]


# ---------------------------------------------------------------------------------------------------- torn writes


def torn_in_half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path):
    path.write_bytes(b"")


def lost(path):
    path.unlink()


def another(path):
    """A whole chunk, but of another task."""
    path.write_bytes((path.parents[1] / "0" / path.relative_to(path.parents[0])).read_bytes())


@pytest.mark.parametrize("harm", [torn_in_half, emptied, lost, another])
@pytest.mark.parametrize("variable", ["draws", "mean"])
def test_a_torn_result_is_found_and_made_again(store, harm, variable):
    path = chunk(store, variable, 1, 2)
    if harm is another:
        path.write_bytes(chunk(store, variable, 1, 1).read_bytes())
    else:
        harm(path)
    found = load_study(store)
    assert found.state.sel(width="wide", seed=5) == "torn" and found.attrs["done"] == 5
    assert np.isnan(found[variable].sel(width="wide", seed=5)).all()
    mended = run(store, tasks.value, AXES)
    assert mended.attrs["done"] == 6 and mended.attrs["torn"] == 0
    np.testing.assert_array_equal(mended["draws"].sel(width="wide", seed=5), tasks.value("wide", 5).draws)


@pytest.mark.parametrize("harm", [torn_in_half, emptied, lost])
def test_a_torn_record_never_counts_as_done(store, harm):
    harm(chunk(store, "record", 0, 1))
    found = load_study(store)
    assert found.state.sel(width="narrow", seed=3) == ("todo" if harm is lost else "torn")
    assert run(store, tasks.value, AXES).attrs["done"] == 6


def test_a_result_without_its_record_is_not_done(store):
    """What a process leaves that was killed between the two writes."""
    kept = StudyStore(store)
    assert kept.record((1, 2)).state == DONE
    kept.forget((1, 2))
    assert load_study(store).attrs["todo"] == 1


def test_long_reasons_and_facts_are_cut_and_still_read(store):
    kept = StudyStore(store)
    kept.fail((0, 0), "x" * 10 * BYTES, 1.0)
    assert kept.record((0, 0)).state == FAILED and kept.record((0, 0)).reason.endswith("...")
    kept.write((0, 1), tasks.value("narrow", 3).assign_attrs({f"k{i}": "y" * 500 for i in range(40)}), 1.0)
    assert kept.record((0, 1)).state == DONE and "cut" in kept.record((0, 1)).about


# -------------------------------------------------------------------------------------------- kill -9, and a cluster


def begun(store: Path, folder: Path, how: str) -> subprocess.Popen:
    """A process of its own that runs the study. It is told by name, so that it and the resuming test do one study."""
    root = Path(tasks.__file__).parents[tasks.__name__.count(".")]
    line = f"from {tasks.__name__} import main; main({str(store)!r}, {str(folder)!r}, {how == 'cluster'})"
    with (folder.parent / "stderr").open("w") as error:
        env = os.environ | {"PYTHONPATH": str(root)}
        return subprocess.Popen([sys.executable, "-W", "error", "-c", line], env=env, stderr=error)


def kept(store: Path) -> set[tuple[int, int]]:
    try:
        return {i for i, r in StudyStore(store).records().items() if r.state == DONE}
    except StudyError:
        return set()


def wait_for(what, seconds=120.0):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "nothing came of it"
        time.sleep(0.3)


@pytest.mark.parametrize("how", ["here", "cluster"])
def test_killed_and_resumed_nothing_is_lost_and_nothing_done_twice(tmp_path, how):
    store, folder = tmp_path / "s.zarr", tmp_path / "told"
    folder.mkdir()
    if how == "here":
        (folder / "killed").touch()  # no worker, none to kill
    parent = begun(store, folder, how)
    wait_for(lambda: len(kept(store)) >= 12 or parent.poll() is not None)
    assert parent.poll() is None, (tmp_path / "stderr").read_text()
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    pids = {int(x.split()[1]) for p in folder.glob("*.log") for x in p.read_text().splitlines()}
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 30)  # workers end with their parent
    before, ended = kept(store), counted(folder, "ended")
    assert 12 <= len(before) < 60, "the kill came too late to show anything"

    tasks.main(str(store), str(folder), cluster=False)  # whoever goes on need not be a cluster again
    found = load_study(store)
    assert found.attrs["done"] == 60 and found.attrs["failed"] == found.attrs["torn"] == found.attrs["todo"] == 0
    for width, seed in np.ndindex(2, 30):
        name = tasks.AXES["width"][width]
        np.testing.assert_array_equal(found["draws"].isel(width=width, seed=seed), tasks.value(name, seed).draws)
    last = counted(folder, "ended")
    labels = {f"{tasks.AXES['width'][w]}-{s}" for w, s in before}
    assert all(last[k] == 1 for k in labels), "what was kept before the kill was done again"
    # what was under way when the kill came may be done again: one task a process
    twice = {k for k, n in last.items() if n > 1}
    assert len(last) == 60 and len(twice) <= (1 if how == "here" else 2) and all(ended.get(k) for k in twice)
    if how == "cluster":  # a worker died of task 7 with 5 and 6 kept: another did 7, and neither 5 nor 6
        assert counted(folder, "began")["narrow-7"] >= 2 and last["narrow-5"] == last["narrow-6"] == 1


def test_workers_that_do_not_see_the_store_are_refused(store, tmp_path):
    work = studies.Work(tmp_path / "elsewhere.zarr", "0" * 64, None)
    with pytest.raises(StudyError, match="put it on a file system that all workers share"):
        work({(0, 0): {}})
    with pytest.raises(StudyError, match="another study"):
        studies.Work(store, "0" * 64, None)({(0, 0): {}})
