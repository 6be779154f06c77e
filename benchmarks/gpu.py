"""One GPU against the CPU beside it: equal answers first, then throughput. Under 8 minutes; without a GPU, a small size.

    python benchmarks/gpu.py [--small] [--json FILE] [--limit 450] [--seed 0]

Equality: log density and slope at prior points, minima of bootstraps, posterior means of simulated tables (by z-score:
chains part after a rounding). Throughput: simulation-based calibration, bootstraps, NUTS with many chains, slopes on large
plates. Each call is timed warm, after the same call with another seed. Where time runs out, the rest is said to be unmeasured.
Without a GPU the "device" is the CPU, the vectorised programs run on it, and no ratio is given: the GPU is unmeasured.
Exit status 1 where an answer differs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import numpyro.distributions as dist
from _table import Table, argument

import scalingkit as sk
from scalingkit.infer import nuts
from scalingkit.infer.device import text
from scalingkit.infer.prepare import prepare
from scalingkit.infer.replicate import Nuts, Replicates, _vectorised, ready

MODEL = sk.Model(law="chinchilla", likelihood=sk.LogNormal(sigma=dist.LogNormal(-4.0, 0.3)))


class Size(NamedTuple):
    """How much of everything."""

    points: int
    checked: int
    tables: int
    draws: int
    bootstraps: int
    chains: int
    chain_draws: int
    plates: tuple[int, ...]


FULL = Size(1000, 128, 1024, 300, 4000, 512, 300, (1_000, 30_000, 1_000_000))
SMALL = Size(50, 8, 8, 60, 128, 8, 60, (1_000, 30_000))


class Bench:
    """The devices, the rows, and the time that is left."""

    def __init__(self, size: Size, seed: int, limit: float, small: bool) -> None:
        gpus = [d for d in jax.devices() if d.platform == "gpu"]
        self.cpu = jax.devices("cpu")[0]
        self.device, self.gpu = (gpus[0], True) if gpus else (self.cpu, False)
        self.size, self.seed = size, seed
        self.end, self.wrong = time.monotonic() + limit, 0
        what = (
            self.device.device_kind if self.gpu else "no GPU here: the vectorised programs on the CPU, GPU unmeasured"
        )
        self.rows = Table("gpu", f"Batches on a GPU ({what}{', small size' if small else ''})", seed)

    def late(self, what: str) -> bool:
        if time.monotonic() < self.end:
            return False
        self.rows.add(what, None, unit="", note="not run: out of time")
        return True

    def equal(self, what: str, difference: float, within: float, note: str) -> None:
        """A row that says how far the two answers are apart."""
        row = self.rows.add(what, difference, unit="largest difference", limit=within, note=note)
        self.wrong += not row["met"]
        print(f"equal? {what}: {difference:.2g} (at most {within:g}): {'yes' if row['met'] else 'NO'}", flush=True)

    def rate(self, what: str, unit: str, many: float, on: Callable[[Any], float], note: str = "") -> None:
        """``on(device)`` gives the seconds of ``many`` things, warm."""
        if self.late(what):
            return
        ours = many / on(self.device)
        peer = many / on(self.cpu) if self.gpu else None
        said = f"against the CPU; {note}" if self.gpu else f"CPU alone, GPU unmeasured; {note}"
        self.rows.add(what, ours, peer, unit=unit, better="more", note=said.rstrip("; "))
        print(f"{what}: {ours:.4g} {unit}" + (f", CPU {peer:.4g}" if peer else ""), flush=True)


def seconds(call: Callable[[int], Any], seed: int) -> float:
    """Wall seconds of ``call(seed)`` after ``call(seed + 1)``, which compiles."""
    call(seed + 1)
    start = time.perf_counter()
    call(seed)
    return time.perf_counter() - start


def design(n: int, seed: int) -> Any:
    """Tokens per parameter 1 to 1,000."""
    rng = np.random.default_rng(seed)
    N = np.exp(rng.uniform(np.log(4e7), np.log(1.6e10), n))
    return sk.runs.make(N=N, D=N * np.exp(rng.uniform(0, np.log(1000), n)))


def table(n: int, seed: int) -> Any:
    made = design(n, seed)
    mean = 1.82 + 482 * made["N"].values ** -0.348 + 2085 * made["D"].values ** -0.366
    return made.assign(loss=("run", mean * np.exp(0.01 * np.random.default_rng([seed, 1]).standard_normal(n))))


def slopes(data: Any) -> Any:
    """Compiled points (point, ...) -> log density and its slope at each."""
    value = nuts.potential(MODEL, data).value
    return jax.jit(jax.vmap(jax.value_and_grad(value), in_axes=(0, None)))


def points_on(bench: Bench, data: Any, count: int, device: Any) -> Any:
    starts = nuts.potential(MODEL, data, bench.seed).starts(count, bench.seed)
    stacked = {k: np.stack([np.asarray(s[k]) for s in starts]) for k in starts[0]}
    return jax.device_put((stacked, data), device)


def densities(bench: Bench) -> None:
    data = prepare(MODEL, table(240, bench.seed))
    f = slopes(data)
    here, there = (f(*points_on(bench, data, bench.size.points, d)) for d in (bench.device, bench.cpu))
    pairs = zip(jax.tree.leaves(here), jax.tree.leaves(there), strict=True)
    apart = max(float(np.max(np.abs(np.asarray(a) - np.asarray(b)) / (1 + np.abs(np.asarray(b))))) for a, b in pairs)
    bench.equal("log density and slope", apart, 1e-9, f"{bench.size.points} prior points, relative")


def minima(bench: Bench) -> None:
    runs, count = table(240, bench.seed), min(bench.size.bootstraps, 512)
    made = [
        sk.pointfit("chinchilla", runs, bootstrap=count, seed=bench.seed, device=d.platform)
        for d in (bench.device, bench.cpu)
    ]
    a, b = (m.objective_bootstrap.values for m in made)
    bench.equal("minima of bootstraps", float(np.max(np.abs(a / b - 1))), 1e-8, f"{count} Huber refits, relative")


def means(bench: Bench) -> None:
    """The device's vectorised chains against the CPU's one by one: z-scores of posterior means, over tables and params."""
    n, task = bench.size.checked, None
    task = Replicates(MODEL, MODEL, design(40, bench.seed), n, bench.seed, {}, Nuts(400, 8 * bench.size.draws))
    side = np.stack([d for _, d, _ in _vectorised(task, ready(task), list(range(n)), bench.device)])
    other = Replicates(MODEL, MODEL, task.design, n, bench.seed, {}, Nuts(400, 8 * bench.size.draws), "cpu")
    alone = np.stack([r.draws.values for r in other.many([{"simulation": j} for j in range(n)])])
    error = np.sqrt(squared_error(side) + squared_error(alone))
    z = np.abs(side.mean(-1) - alone.mean(-1)) / error
    bench.equal(
        "posterior means, z-score",
        float(z.max()),
        5.5,
        f"{z.size} means; root mean square {np.sqrt((z**2).mean()):.2f}",
    )


def squared_error(draws: np.ndarray) -> np.ndarray:
    """Squared standard error of the mean over the last axis, by 20 batch means."""
    size = draws.shape[-1] // 20
    batches = draws[..., : 20 * size].reshape(*draws.shape[:-1], 20, size).mean(-1)
    return batches.var(-1, ddof=1) / 20


def calibration(bench: Bench) -> None:
    s = bench.size
    call = lambda d, k: sk.sbc(MODEL, design(40, k), s.tables, seed=k, draws=s.draws, tune=300, device=d.platform)  # noqa: E731
    verdict: list[str] = []

    def on(device: Any) -> float:
        return seconds(lambda k: verdict.append(call(device, k).attrs["verdict"]), bench.seed)

    bench.rate(
        "calibration: simulated tables of 40 runs",
        "tables/s",
        s.tables,
        on,
        f"{s.tables} tables, 300 + {s.draws} draws",
    )
    print("  " + "\n  ".join(dict.fromkeys(verdict)))


def bootstraps(bench: Bench) -> None:
    runs, count = table(240, bench.seed), bench.size.bootstraps

    def on(device: Any) -> float:
        go = lambda k: sk.pointfit("chinchilla", runs, bootstrap=count, seed=k, device=device.platform)  # noqa: E731
        return seconds(go, bench.seed)

    bench.rate("Huber bootstraps, 240 runs", "refits/s", count, on, f"{count:,} refits")


def chains(bench: Bench) -> None:
    """Draws a second of many chains; all chains together, warm-up included in the time."""
    s = bench.size
    data = prepare(MODEL, table(240, bench.seed))
    settings = nuts.Settings(s.chain_draws, s.chain_draws, 0.9)
    starts = nuts.potential(MODEL, data, bench.seed).starts(s.chains, bench.seed)

    def on(device: Any) -> float:
        return seconds(lambda k: nuts.sample(MODEL, data, starts, settings, k, device), bench.seed)

    note = f"{s.chains} chains of {s.chain_draws} + {s.chain_draws}"
    bench.rate("NUTS, many chains, 240 runs", "draws/s", s.chains * s.chain_draws, on, note)


def plates(bench: Bench) -> None:
    """Slopes of the log density a second, 16 points at once, by number of runs."""
    for n in bench.size.plates:
        data = prepare(MODEL, table(n, bench.seed))
        f = slopes(data)

        def on(device: Any, data: Any = data, f: Any = f) -> float:
            given = points_on(bench, data, 16, device)
            jax.block_until_ready(f(*given))
            start = time.perf_counter()
            for _ in range(10):
                jax.block_until_ready(f(*given))
            return time.perf_counter() - start

        bench.rate(f"slopes of the log density, {n:,} runs", "slopes/s", 160, on)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="the size that runs where no GPU is")
    parser.add_argument("--limit", type=float, default=450, help="seconds after which no further part is begun")
    parser.add_argument("--seed", type=int, default=0)
    argument(parser)
    asked = parser.parse_args()
    small = asked.small or not any(d.platform == "gpu" for d in jax.devices())
    bench = Bench(SMALL if small else FULL, asked.seed, asked.limit, small)
    print(f"{text(bench.device)} ({bench.device.device_kind}); JAX {jax.__version__}", flush=True)
    for part in (densities, minima, means, calibration, bootstraps, chains, plates):
        start = time.monotonic()
        if not bench.late(part.__name__):
            part(bench)
        print(f"  [{part.__name__}: {time.monotonic() - start:.0f} s]", flush=True)
    bench.rows.write(asked.json)
    raise SystemExit(1 if bench.wrong else 0)


if __name__ == "__main__":
    main()
