"""Studies: a grid of tasks, each done once and kept as it finishes, in this process or on a Dask cluster.

    study("out/laws.zarr", tables={"wide": runs}, models=["chinchilla", "kaplan"], seeds=range(20), method="huber")
    run("out/own.zarr", my_task, {"width": [64, 128], "seed": range(10)}, client=Client(cluster))

A task is a function of its point of the grid and gives a Dataset of numbers. Called again with the same store, a study
goes on with what is missing, whatever ended it (Ctrl-C, a killed worker, kill -9 of everything); with other settings it
is refused. A task that raises is kept with its reason and tried again on request (``retry``). Workers write into the
store themselves, so it must lie where all of them see it. What is kept is Zarr, never a pickle; Dask's messages between
processes are its own and live as long as the cluster.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from scalingkit.infer.studystore import DONE, FAILED, TODO, Index, Label, StudyError, StudyStore, create

Point = dict[str, Label]
Progress = bool | Callable[[int, int], Any]


def run(
    store: str | Path, task: Callable[..., xr.Dataset], axes: Mapping[str, Sequence[Label]], *,
    settings: Mapping[str, Any] | None = None, client: Any = None, retry: bool = False, progress: Progress = False,
    batch: int | None = None,
) -> xr.Dataset:  # fmt: skip
    """Do ``task(**point, **settings)`` at every point of the grid ``axes`` that ``store`` lacks, and give all results.

    task      a function with a name (no lambda), giving a Dataset of numbers; its attrs are kept as facts about the task
    client    a ``distributed.Client``; None does the tasks here, one after the other
    retry     try the failed ones again
    progress  True for a bar, or a function that is called with (finished, of all)
    batch     tasks that go to a worker together (default: the task's own ``batch``, else 1)

    The result has the dims of ``axes`` first, NaN where a task failed, and ``state``, ``reason`` and ``seconds`` of each.
    A task may be an object with ``spec()`` (what it does, as JSON), ``coords()`` (labels that results are brought to) and
    ``many(points)`` (an iterator over results, for tasks that are cheaper together). Raises StudyError where the store
    holds another study, or where workers do not see it.
    """
    task = task if hasattr(task, "spec") else Function(task, dict(settings or {}))
    grid = {str(k): [_label(x) for x in v] for k, v in axes.items()}
    kept = create(store, task.spec(), grid)
    records = kept.records(check=True)
    again = {i for i, r in records.items() if r.state not in (DONE, FAILED) or (retry and r.state == FAILED)}
    for i in again:
        if records[i].state != TODO:
            kept.forget(i)
    points = {i: _point(grid, i) for i in sorted(again)}
    work = Work(kept.path, kept.sha256, task)
    with _bar(progress) as tell:
        finished = len(records) - len(points)
        tell(finished, len(records))
        for _ in _all(work, kept, points, client, batch or int(getattr(task, "batch", 1))):
            finished += 1
            tell(finished, len(records))
    return load_study(store)


def load_study(store: str | Path) -> xr.Dataset:
    """What a study has so far: results along the grid's dims, and ``state``, ``reason``, ``seconds`` of each task.

    ``state`` is done, failed, todo, or torn: what is stored is not what was written, and the task will be run again.
    attrs: spec (JSON), sha256, and how many tasks are in each state.
    """
    return StudyStore(store).load()


@dataclass(frozen=True)
class Function:
    """A plain function as a task."""

    function: Callable[..., xr.Dataset]
    settings: dict[str, Any]

    def spec(self) -> dict[str, Any]:
        return {"task": named(self.function), "settings": self.settings}

    def __call__(self, **point: Label) -> xr.Dataset:
        return self.function(**point, **self.settings)


def named(function: Callable[..., Any]) -> str:
    """``module:name``, by which a study knows its task again. Raises StudyError for what has no name of its own."""
    name = getattr(function, "__qualname__", "")
    if not name or "<" in name:
        raise StudyError(
            f"{function!r} has no name by which a study can know it again: define it with def in a module."
        )
    return f"{function.__module__}:{name}"


# ------------------------------------------------------------------------------------------------------------- work


@dataclass(frozen=True)
class Work:
    """What a worker needs to do tasks: where the store is, which study it must hold, and the task."""

    path: Path
    sha256: str
    task: Any

    def __call__(self, points: Mapping[Index, Point]) -> list[Index]:
        """Do the tasks that are not yet kept; the indices that are kept now."""
        return list(self.each(points))

    def each(self, points: Mapping[Index, Point]) -> Iterator[Index]:
        """Index of every task, as soon as its result or its failure is kept."""
        store = self.store()
        todo = {i: p for i, p in points.items() if store.record(i).state not in (DONE, FAILED)}
        yield from (i for i in points if i not in todo)
        for i, (result, seconds) in zip(todo, outcomes(self.task, list(todo.values())), strict=True):
            keep(store, i, result, seconds)
            yield i

    def first(self, point: Point) -> tuple[Any, float]:
        """Result or reason of one task, not kept: from it the store takes its shape."""
        self.store()
        return next(outcomes(self.task, [point]))

    def store(self) -> StudyStore:
        try:
            store = StudyStore(self.path)
        except StudyError:
            raise StudyError(
                f"a worker does not see the store {self.path}: put it on a file system that all workers share."
            ) from None
        if store.sha256 != self.sha256:
            raise StudyError(f"{self.path} on a worker holds another study: the workers see another file system.")
        return store


def outcomes(task: Any, points: list[Point]) -> Iterator[tuple[xr.Dataset | str, float]]:
    """(Result, or the reason why there is none; seconds) of each point, in order."""
    done, start = 0, time.perf_counter()
    if hasattr(task, "many"):
        try:
            for result in task.many(points):
                done += 1
                yield result, time.perf_counter() - start
                start = time.perf_counter()
        except Exception:  # noqa: BLE001  the rest go one by one, so that the failure is told of the one that fails
            start = time.perf_counter()
    for point in points[done:]:
        try:
            result = task(**point)
        except Exception as error:  # noqa: BLE001  whatever a task raises is its reason
            result = reason(error)
        yield result, time.perf_counter() - start
        start = time.perf_counter()


def keep(store: StudyStore, index: Index, result: Any, seconds: float) -> None:
    """Write a result; or its reason, where it is none or does not fit."""
    if not isinstance(result, (str, xr.Dataset)):
        result = f"the task gave a {type(result).__name__}, not a Dataset."
    if isinstance(result, str):
        store.fail(index, result, seconds)
        return
    try:
        store.write(index, result, seconds)
    except StudyError as error:
        store.fail(index, reason(error), seconds)


def reason(error: BaseException) -> str:
    """What was raised, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def _all(work: Work, kept: StudyStore, points: dict[Index, Point], client: Any, batch: int) -> Iterator[Index]:
    """Every point, as it is kept. Until a result has given the store its shape, tasks go one at a time."""
    coords = work.task.coords() if hasattr(work.task, "coords") else {}
    while points and kept.template is None:
        i, point = next(iter(points.items()))
        del points[i]
        result, seconds = work.first(point) if client is None else _answer(client.submit(work.first, point, pure=False))
        if isinstance(result, xr.Dataset):
            try:
                kept.take_shape(result, coords)
            except StudyError as error:
                result = reason(error)
        keep(kept, i, result, seconds)
        yield i
    if client is None:
        yield from work.each(points) if points else ()
    else:
        yield from _on_cluster(work, kept, points, client, batch)


def _on_cluster(work: Work, kept: StudyStore, points: dict[Index, Point], client: Any, batch: int) -> Iterator[Index]:
    """Tasks in batches to the workers. A worker that dies has its batch done by another, less what it had kept."""
    from distributed import as_completed

    groups = [dict(list(points.items())[k : k + batch]) for k in range(0, len(points), batch)]
    futures = {client.submit(work, group, pure=False, key=f"study-{work.sha256[:8]}-{time.time_ns()}-{k}"): group
               for k, group in enumerate(groups)}  # fmt: skip
    try:
        for future in as_completed(list(futures)):
            error = future.exception()
            if isinstance(error, StudyError):
                raise error
            if error is not None:  # the worker died again and again, or Dask could not carry the task
                for i in (i for i in futures[future] if kept.record(i).state not in (DONE, FAILED)):
                    kept.fail(i, reason(error), float("nan"))
            yield from futures[future]
    finally:  # interrupted: what has not begun is not begun
        client.cancel([f for f in futures if not f.done()])


def _answer(future: Any) -> tuple[Any, float]:
    """What a worker found; the reason, where it died of the task."""
    error = future.exception()
    if isinstance(error, StudyError):
        raise error
    return future.result() if error is None else (reason(error), float("nan"))


def _point(axes: Mapping[str, list[Label]], index: Index) -> Point:
    return {d: labels[i] for (d, labels), i in zip(axes.items(), index, strict=True)}


def _label(x: Any) -> Label:
    x = x.item() if isinstance(x, np.generic) else x
    if isinstance(x, bool) or not isinstance(x, (str, int, float)):
        raise StudyError(f"{x!r} cannot be a label of a study's grid: give a text or a number.")
    return x


@contextmanager
def _bar(progress: Progress) -> Iterator[Callable[[int, int], Any]]:
    """``tell(finished, of all)``."""
    if progress is not True:
        yield progress or (lambda done, total: None)
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task("tasks", total=None)
        yield lambda done, total: bar.update(line, completed=done, total=total)
