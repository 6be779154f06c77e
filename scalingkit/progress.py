"""Progress on standard error, where a person watches: a bar over things, or a line that says the stage. Else silence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, track

T = TypeVar("T")


def over[T](things: Iterable[T], text: str, *, quiet: bool = False) -> Iterator[T]:
    """The things, with a bar that counts them."""
    console = Console(stderr=True)
    yield from track(list(things), text, console=console, disable=quiet or not console.is_terminal, transient=True)


@contextmanager
def stages(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """``say(text)`` names the stage beside a spinner and a clock; off a terminal it prints the line once."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if quiet or not console.is_terminal:
        yield (lambda text: None) if quiet else (lambda text: console.print(text, markup=False))
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda text: bar.update(task, description=text)
