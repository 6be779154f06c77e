"""Execute every notebook below a folder in full and write its outputs back: python tools/notebooks.py notebooks

Each runs in its own folder with its own kernel. Stops at the first that fails, leaving that file as it was.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def execute(path: Path, timeout: int = 3600) -> float:
    """Run one notebook and save it with its outputs; returns the seconds it took."""
    start = time.perf_counter()
    book = nbformat.read(path, as_version=4)
    NotebookClient(
        book, timeout=timeout, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    ).execute()
    tidy(book)
    nbformat.write(book, path)
    return time.perf_counter() - start


def tidy(book: nbformat.NotebookNode) -> None:
    """Drop what changes at every run or tells of the machine: timestamps and the interpreter's exact version."""
    book.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for cell in book.cells:
        cell.metadata.pop("execution", None)


def main(folder: str) -> None:
    paths = [p for p in sorted(Path(folder).rglob("*.ipynb")) if ".ipynb_checkpoints" not in p.parts]
    for path in paths:
        print(f"{path} ...", end=" ", flush=True)
        print(f"{execute(path):.0f} s")
    print(f"{len(paths)} notebooks executed")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "notebooks")
