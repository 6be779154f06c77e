"""CPU seconds to read a table of runs, beside plain pandas.read_csv of the same file in the same process.

    python benchmarks/runs_read.py [--rows 100000] [--repeats 3] [--json FILE]

The clean table has numbers only; in the dirty one every cell of N and D has its own unit ("1.4B") and one in a thousand is
missing; the last has a run name and a step, so that checkpoints are told apart.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from _table import Table, argument

from scalingkit.core import runs


def tables(rows: int) -> dict[str, pd.DataFrame]:
    random = np.random.default_rng(0)
    N, D = 10 ** random.uniform(7, 11, rows), 10 ** random.uniform(9, 13, rows)
    clean = pd.DataFrame(
        {"N": N, "D": D, "loss": 1.7 + 400 * N**-0.34 + 410 * D**-0.28, "lr": random.uniform(0, 1, rows)}
    )
    dirty = clean.assign(N=[f"{n / 1e9:.6g}B" for n in N], D=[f"{d / 1e9:.6g}BT" for d in D]).astype(object)
    dirty.loc[::1000, "loss"] = "NaN"
    checkpoints = clean.assign(
        run=[f"run-{i // 100}" for i in range(rows)], N=np.repeat(N[::100], 100)[:rows], step=np.arange(rows) % 100
    )
    return {"clean": clean, "dirty": dirty, "checkpoints": checkpoints}


def best(call: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    argument(parser)
    asked = parser.parse_args()
    rows, repeats = asked.rows, asked.repeats
    kept = Table("runs_read", f"Reading {rows:,} rows, every one checked, beside plain pandas.read_csv", seed=0)
    print(f"{rows} rows, CPU seconds, best of {repeats}")
    print(f"{'table':<12} {'format':<8} {'read_csv':>10} {'runs.read':>11} {'ratio':>6}  used/set aside")
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in tables(rows).items():
            path = Path(folder) / f"{name}.csv"
            frame.to_csv(path, index=False)
            plain = best(lambda p=path: pd.read_csv(p), repeats)
            for kind, source in (("csv", path), ("pandas", frame)):
                ours = best(lambda s=source: runs.read(s), repeats)
                ds = runs.read(source)
                account = f"{ds.attrs['rows_used']}/{ds.attrs['rows_quarantined']}"
                print(f"{name:<12} {kind:<8} {plain:10.3f} {ours:11.3f} {ours / plain:6.1f}  {account}")
                kept.add(f"{name} table from {kind}", ours, plain, unit="s CPU", note=f"rows used/set aside {account}")
    kept.write(asked.json)


if __name__ == "__main__":
    main()
