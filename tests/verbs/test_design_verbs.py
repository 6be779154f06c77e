"""identify, design check and design suggest as a user calls them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from scalingkit import cli
from scalingkit.core import runs

N = np.geomspace(1e8, 1e10, 12)


def table(place, D):
    loss = (1.82 + 482 * N**-0.348 + 2085 * D**-0.366) * np.exp(0.005 * np.random.default_rng(0).standard_normal(12))
    rows = "".join(f"{n:.6g},{d:.6g},{y:.6g}\n" for n, d, y in zip(N, D, loss, strict=True))
    place.write_text("N,D,loss\n" + rows)
    return str(place)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    at = tmp_path_factory.mktemp("designs")
    levels = {"ray": 20 * N, "spread": N * np.resize([4, 20, 100], 12), "one": np.full(12, 4.4e9)}
    return {k: table(at / f"{k}.csv", D) for k, D in levels.items()} | {"at": at}


def ask(*args: str) -> tuple[int, dict]:
    done = CliRunner().invoke(cli.app, [*args, "--json"])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, json.loads(done.stdout)


def test_identify_says_what_a_ray_and_one_level_leave_to_the_prior(made):
    status, ray = ask("identify", made["ray"])
    assert status == 0 and not ray["result"]["identified"] and "Not identified" in ray["result"]["verdict"]
    assert "not-identified" in {w["code"] for w in ray["warnings"]}
    _, one = ask("identify", made["one"])
    assert "beta is set by the prior (contraction 0)" in one["result"]["verdict"]
    _, spread = ask("identify", made["spread"])
    assert spread["result"]["identified"] and len(spread["result"]["parameters"]) == 5


def test_design_check_exits_0_or_1(made):
    assert [ask("design", "check", made[k])[0] for k in ("spread", "ray", "one")] == [0, 1, 1]
    assert ask("design", "check", made["spread"], "--kappa", "2")[0] == 1


def test_suggest_writes_runs_that_mend_the_ray(made):
    place = made["at"] / "next.csv"
    status, found = ask(
        "design", "suggest", made["ray"], "--budget", "1e21", "--target", "loss@2e10,4e10", "--out", str(place)
    )
    sd = {r["design"]: r["sd of the target"] for r in found["result"]["compared"]}
    assert status == 0 and sd["suggested"] <= min(sd["random"], sd["grid"]) * 1.001 < sd["none"]
    new = runs.read(place)
    assert float((6 * new["N"] * new["D"]).sum()) <= 1e21 * 1.001
    np.testing.assert_allclose(new["N"], [r["N"] for r in found["result"]["runs"]], rtol=1e-6)


def test_a_cost_of_ones_own_is_kept_to(made):
    _, found = ask("design", "suggest", made["ray"], "--budget", "1e21", "--target", "alpha", "--cost", "6*N*D + 3e20")
    assert len(found["result"]["runs"]) == 3 and found["result"]["spent"] <= 1e21 * 1.001
    assert all(r["cost"] >= 3e20 for r in found["result"]["runs"])


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["identify"], "needs a table"),
        (["design", "suggest", "--budget", "1e21", "--target", "alpha"], "needs a table"),
        (["design", "suggest", "RAY", "--budget", "x", "--target", "alpha"], "--budget 'x'"),
        (["design", "suggest", "RAY", "--budget", "1e21", "--target", "alpa"], "no parameter 'alpa'"),
        (["design", "check", "chinchilla-epoch-svgg"], "Did you mean"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(made, args, says):
    done = CliRunner().invoke(cli.app, [made["ray"] if a == "RAY" else a for a in args])
    assert done.exit_code == 2 and says in done.stderr and done.stderr.count("\n") == 1
