"""Point fits against named peers, side by side in one run: same rows, same objective, CPU seconds and ratios.

    python benchmarks/pointfit.py                          simulated runs
    python benchmarks/pointfit.py --table RUNS.csv         columns N, D, loss
    python benchmarks/pointfit.py --peer PYTHON            an interpreter that has simple-scaling-laws (PyPI) installed

Peers: scipy L-BFGS-B from the 4,500-point grid of Hoffmann et al. 2022 with finite differences, as published analyses
run it; the same with analytic gradients; scipy "tight" (BFGS then L-BFGS-B at the smallest tolerances);
simple-scaling-laws' bootstrap draws (least squares, so its objective is another: speed only).
The peers are timed on a sample (--sample of the grid's starts, --refits of the bootstraps) and scaled up; what is
scaled is marked with ~. --refits 4000 compares the minimum of every bootstrap with scipy's.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.optimize
from _table import Table, argument

import scalingkit as sk

DELTA = 1e-3
GRID = [
    np.arange(0, 30, 5.0),
    np.arange(0, 30, 5.0),
    np.arange(-1, 1.5, 0.5),
    np.arange(0, 2.5, 0.5),
    np.arange(0, 2.5, 0.5),
]
SAME = 1e-6  # relative: the same minimum
PEER = """
import json, sys, time, polars as pl
from importlib.metadata import version
from simple_scaling_laws import fit
frame = pl.read_csv(sys.argv[1])
fit(frame, n_draws=50, seed=0)
t, c = time.perf_counter(), time.process_time()
fit(frame, n_draws=int(sys.argv[2]), seed=0)
print(json.dumps(dict(wall=time.perf_counter() - t, cpu=time.process_time() - c, version=version("simple-scaling-laws"))))
"""


def simulated(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """Runs of the chinchilla law with 1% Student-t(4) noise, tokens per parameter 1 to 1,000."""
    rng = np.random.default_rng(seed)
    N = np.exp(rng.uniform(np.log(4e7), np.log(1.6e10), n))
    D = N * np.exp(rng.uniform(0, np.log(1000), n))
    mean = 1.8 + 480 * N**-0.35 + 2100 * D**-0.37
    return pd.DataFrame(dict(N=N, D=D, loss=mean * np.exp(0.01 * rng.standard_t(4, n))))


def huber(u, logs, w, gradient=True):
    """Sum of Huber of log residuals at u = (log A, log B, log E, alpha, beta), by hand in NumPy."""
    log_n, log_d, log_y = logs
    terms = np.stack([u[0] - u[3] * log_n, u[1] - u[4] * log_d, np.full_like(log_n, u[2])])
    top = terms.max(0)
    share = np.exp(terms - top)
    total = share.sum(0)
    r = log_y - top - np.log(total)
    a = np.abs(r)
    value = np.sum(w * np.where(a <= DELTA, r**2 / 2, DELTA * (a - DELTA / 2)))
    if not gradient:
        return value
    psi, share = -w * np.clip(r, -DELTA, DELTA), share / total
    return value, np.array(
        [psi @ share[0], psi @ share[1], psi @ share[2], -psi @ (share[0] * log_n), -psi @ (share[1] * log_d)]
    )


def default(u, logs, w):
    return scipy.optimize.minimize(huber, u, args=(logs, w), jac=True, method="L-BFGS-B").fun


def finite_difference(u, logs, w):
    return scipy.optimize.minimize(huber, u, args=(logs, w, False), method="L-BFGS-B").fun


def tight(u, logs, w):
    end = scipy.optimize.minimize(
        huber, u, args=(logs, w), jac=True, method="BFGS", options=dict(gtol=1e-10, maxiter=2000)
    )
    options = dict(ftol=1e-15, gtol=1e-12, maxiter=5000, maxfun=20000)
    return scipy.optimize.minimize(huber, end.x, args=(logs, w), jac=True, method="L-BFGS-B", options=options).fun


def timed(f, *args):
    """Result, CPU seconds."""
    start = time.process_time()
    result = f(*args)
    return result, time.process_time() - start


def row(what, seconds, ours, note=""):
    print(f"  {what:<48}{seconds:>12.3f} s CPU   {seconds / ours:>9.1f}x   {note}", flush=True)


def global_fit(table, logs, sample, rng, kept):
    """The best of many starts; the grid is 4,500 starts long, of which ``sample`` are run."""
    print("Global fit (best of many starts)")
    _, cold = timed(sk.pointfit, "chinchilla", table)
    fitted, ours = timed(sk.pointfit, "chinchilla", table)
    best = float(fitted.objective)
    said = f"objective {best:.9g}, {float(fitted.agreement):.0%} of starts; cold {cold:.1f} s"
    row("scalingkit, 64 starts, warm", ours, ours, said)
    grid = list(itertools.product(*GRID))
    chosen = [np.array(grid[i]) for i in rng.choice(len(grid), sample, replace=False)]
    w = np.ones(len(table))
    for name, how in (
        ("scipy L-BFGS-B, finite differences", finite_difference),
        ("scipy L-BFGS-B, analytic gradient", default),
    ):
        values, seconds = timed(lambda how=how: np.array([how(u, logs, w) for u in chosen]))
        lowest, reached = values.min() / best - 1, np.mean(values <= best * (1 + 1e-4))
        said = f"{reached:.0%} of {sample} starts within 1e-4 of ours; their lowest is ours {lowest:+.1e}"
        if lowest < -SAME:
            raise SystemExit(f"{name} found a lower minimum: {said}")
        whole = seconds / sample * len(grid)
        row(f"~ {name}, {len(grid)} starts", whole, ours, said)
        kept.add(
            f"global Huber fit against {len(grid):,} starts, {name}", ours, whole, unit="s CPU", goal=50, note=said
        )
    return fitted


def bootstraps(table, logs, fitted, count, sample, kept):
    """Refits of resampled rows; ``sample`` of them are made again by scipy, and the minima compared."""
    print(f"{count} bootstraps over rows (every peer starts from the best full-data fit)")
    sk.pointfit("chinchilla", table, bootstrap=8)
    out, ours = timed(lambda: sk.pointfit("chinchilla", table, bootstrap=count, seed=1))
    row("scalingkit, warm", ours, ours, f"agreement with distant starts {float(out.agreement_bootstrap):.2%}")
    w = np.random.default_rng(1).multinomial(len(table), np.full(len(table), 1 / len(table)), size=count).astype(float)
    p = {k: float(fitted[k]) for k in ("A", "B", "E", "alpha", "beta")}
    u = np.array([np.log(p["A"]), np.log(p["B"]), np.log(p["E"]), p["alpha"], p["beta"]])
    found, seconds = {"scalingkit": out.objective_bootstrap.values[:sample]}, {}
    for name, how in (("scipy L-BFGS-B, defaults", default), ("scipy tight", tight)):
        found[name], part = timed(lambda how=how: np.array([how(u, logs, w[i]) for i in range(sample)]))
        seconds[name] = part / sample * count
        row(f"~ {name}", seconds[name], ours)
    best = np.min(list(found.values()), axis=0)
    over = {name: values / best - 1 for name, values in found.items()}
    for name, v in over.items():
        print(f"    {name:<30} above the best minimum: median {np.median(v):.1e}, max {v.max():.1e} ({sample} refits)")
    for name, cpu in seconds.items():
        within = f"above the best minimum of {sample} refits: ours at most {over['scalingkit'].max():.1e}, "
        within += f"theirs at most {over[name].max():.1e}"
        goal = 25 if name == "scipy tight" else None
        kept.add(f"{count:,} Huber bootstraps against {name}", ours, cpu, unit="s CPU", goal=goal, note=within)
    worst = float(over["scalingkit"].max())
    said = f"{np.mean(over['scalingkit'] <= SAME):.2%} of {sample} refits within {SAME:g} of the best of all routes"
    kept.add("furthest bootstrap above the best minimum", worst, unit="relative", limit=SAME, note=said)
    return ours


def peer(python, table, count, ours, kept):
    """simple-scaling-laws in its own interpreter, warmed up first."""
    print(f"simple-scaling-laws, {count} draws (least squares: another objective)")
    frame = pd.DataFrame(
        dict(
            training_run_id=[f"run_{i}" for i in range(len(table))], train_set_id=[f"train_{i}" for i in range(len(table))],
            test_set_id="test", optimizer_seed=0, model_size__n_params=table.N, dataset_size__n_tokens=table.D,
            test_loss__cross_entropy=table.loss,
        )
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.csv"
        frame.to_csv(path, index=False)
        done = subprocess.run([python, "-c", PEER, str(path), str(count)], capture_output=True, text=True)
    if done.returncode:
        print(f"  did not run: {done.stderr.strip().splitlines()[-1]}")
        return
    told = json.loads(done.stdout.splitlines()[-1])
    kept.about["versions"]["simple-scaling-laws"] = told["version"]
    row("simple-scaling-laws", told["cpu"], ours, f"wall {told['wall']:.1f} s")
    said = "its draws minimise squares, ours Huber: speed only"
    what = f"{count:,} bootstraps against simple-scaling-laws' draws"
    kept.add(what, ours, told["cpu"], unit="s CPU", goal=1, note=said)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", help="CSV with columns N, D, loss")
    parser.add_argument("--bootstraps", type=int, default=4000)
    parser.add_argument("--sample", type=int, default=20, help="how many of the grid's starts are timed")
    parser.add_argument("--refits", type=int, default=20, help="how many bootstraps scipy makes again")
    parser.add_argument("--peer", help="python that has simple-scaling-laws")
    argument(parser)
    options = parser.parse_args()
    table = pd.read_csv(options.table) if options.table else simulated()
    logs = tuple(np.log(table[k].to_numpy(float)) for k in ("N", "D", "loss"))
    print(f"{len(table)} runs, Huber(delta={DELTA:g}) of log residuals; the last column is CPU time over ours")
    kept = Table("pointfit", f"Point fits of the chinchilla law, {len(table)} runs", seed=0)
    fitted = global_fit(table, logs, options.sample, np.random.default_rng(0), kept)
    ours = bootstraps(table, logs, fitted, options.bootstraps, options.refits, kept)
    if options.peer:
        peer(options.peer, table, options.bootstraps, ours, kept)
    kept.write(options.json)


if __name__ == "__main__":
    main()
