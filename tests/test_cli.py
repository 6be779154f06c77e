"""Verbs: one JSON contract, exit 2 and one line for bad input, files that come back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from scalingkit import cli

PARTS = {"verb", "result", "diagnostics", "warnings", "provenance"}


def run(*args: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli.app, list(args), env={"COLUMNS": "200"})
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def answer(*args: str, code: int = 0) -> dict:
    status, out, _ = run(*args, "--json")
    found = json.loads(out)
    assert status == code and set(found) == PARTS, found
    assert all(set(w) == {"code", "severity", "about", "text"} for w in found["warnings"])
    return found


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    """Forty clean runs as a user would have them: units in the headers."""
    rng = np.random.default_rng(3)
    N, D = 10 ** rng.uniform(7, 9.5, 40), 10 ** rng.uniform(9, 11.5, 40)
    loss = (1.8 + 480 * N**-0.35 + 2100 * D**-0.37) * np.exp(0.01 * rng.standard_normal(40))
    lines = ["Model Size (B),Tokens (T),loss,corpus"]
    lines += [
        f"{n / 1e9:.6f},{d / 1e12:.8f},{y:.5f},{'ab'[i % 2]}"
        for i, (n, d, y) in enumerate(zip(N, D, loss, strict=True))
    ]
    path = tmp_path_factory.mktemp("cli") / "runs.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def kept(csv):
    """A posterior that ``fit --out`` kept, and the answer it gave."""
    place = csv.parent / "posterior.zarr"
    found = answer(
        "fit", "chinchilla", "--data", str(csv), "--chains", "2", "--draws", "150", "--tune", "300", "--out", str(place)
    )
    return place, found


@pytest.mark.parametrize(
    "args",
    [["table"], ["table", "laws"], ["show", "chinchilla"], ["data", "list"], ["verify", "chinchilla"], ["doctor"]],
)
def test_every_quick_verb_keeps_the_contract_and_speaks_text(args):
    assert answer(*args)["verb"] == " ".join(a for a in args if a not in ("laws", "chinchilla"))
    assert run(*args)[0] == 0


def test_show_has_the_formula_priors_and_claims():
    found = answer("show", "chinchilla")["result"]
    assert "L(N, D) = E + A / N**alpha + B / D**beta" in found["about"]
    assert found["parameters"]["alpha"]["prior"].startswith("LogNormal(") and found["claims"]


def test_point_fit_in_the_contract(csv):
    found = answer("fit", "chinchilla", "--data", str(csv), "--method", "huber", "--bootstrap", "20")
    assert found["result"]["objective_name"].startswith("sum of Huber")
    assert found["diagnostics"]["device"] == "cpu:0" and "one small fit" in found["provenance"]["device_reason"]
    alpha = found["result"]["parameters"]["alpha"]
    assert alpha["lower"] < alpha["value"] < alpha["upper"] and abs(alpha["value"] - 0.35) < 0.1


def test_a_device_that_is_not_there_is_refused_in_one_line(csv):
    for method in ("nuts", "laplace", "huber"):
        status, _, told = run("fit", "chinchilla", "--data", str(csv), "--method", method, "--device", "gpu")
        assert status == 2 and "no device 'gpu' here; JAX sees cpu" in told and told.count("\n") == 1


def test_posterior_in_the_contract(kept):
    _, found = kept
    alpha = found["result"]["parameters"]["alpha"]
    assert set(alpha) == {"mean", "sd", "lower", "upper"} and alpha["lower"] < 0.35 < alpha["upper"]
    assert {"divergences", "rhat_max", "ess_bulk_min", "route", "device", "seconds"} <= set(found["diagnostics"])
    assert found["provenance"]["seed"] == 0 and found["result"]["verdict"]


def test_predict_and_check_read_what_fit_kept(kept):
    place, _ = kept
    at = ["--at", "N=1e9", "--at", "D=20B"]
    curve = answer("predict", str(place), *at)["result"]["predictions"]["loss"]
    new = answer("predict", str(place), *at, "--outcome")["result"]["predictions"]["loss"]
    truth = 1.8 + 480 * 1e9**-0.35 + 2100 * 20e9**-0.37
    assert curve["lower"] < truth < curve["upper"]
    assert new["upper"] - new["lower"] > curve["upper"] - curve["lower"]
    checked = answer("check", str(place))["result"]
    assert checked["verdict"] and {r["group"] for r in checked["calibration"]} >= {"all"}


def test_runs_check_names_every_bad_row(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("N,D,loss\n1e8,2e9,3.0\n2e8,4e9,NaN\n1e8,2e9,3.0\n4e8,8e9,2.6\n5e8,9e9,2.5\n0.7,9e9,2.5\n")
    found = answer("runs", "check", str(path))["result"]
    assert found["rows_in"] == 6 and found["rows_in"] == found["rows_used"] + found["rows_quarantined"]
    assert {q["row"] for q in found["quarantine"]} >= {1, 2, 5}
    assert "NaN" in run("runs", "check", str(path))[1]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["show", "chinchila"], "Did you mean chinchilla"),
        (["fit", "chinchilla", "--data", "nowhere.csv"], "no file 'nowhere.csv'"),
        (["fit", "chinchilla", "--data", "chinchilla-epoch-svgg"], "Did you mean"),
        (["fit", "chinchilla", "--data", "chinchilla-epoch-svg", "--method", "guess"], "--method 'guess'"),
        (["fit", "chinchilla", "--data", "chinchilla-epoch-svg", "--set", "rule"], "name=value"),
        (["predict", "none.zarr", "--at", "N=1"], "no posterior"),
        (["runs", "check", "none.csv"], "no file"),
        (["table", "lawz"], "not a kind"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(args, says):
    status, _, err = run(*args)
    assert status == 2 and says in err and err.count("\n") == 1
    status, out, _ = run(*args, "--json")
    assert status == 2 and says in json.loads(out)["error"]["text"]


def test_faults_of_ours_are_not_hidden(monkeypatch):
    monkeypatch.setattr("scalingkit.core.describe.describe", lambda system: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("show", "chinchilla")


def test_verify_exits_1_where_a_claim_fails(monkeypatch):
    from dataclasses import replace

    from scalingkit.core import zoo

    law = zoo.get("chinchilla")
    wrong = replace(law, claims=(replace(law.claims[0], value=law.claims[0].value + 1),))
    monkeypatch.setattr("scalingkit.laws.chinchilla.law", wrong)
    found = answer("verify", "chinchilla", code=1)
    assert found["warnings"][0]["code"] == "claim-differs"


@pytest.mark.data
def test_parity_with_the_published_objective():
    found = answer("fit", "chinchilla", "--data", "chinchilla-epoch-svg", "--method", "huber")["result"]
    assert found["objective"] == pytest.approx(1.018274e-3, rel=1e-4)
    values = {k: v["value"] for k, v in found["parameters"].items()}
    for k, expected in {"alpha": 0.3473, "beta": 0.3672, "E": 1.8172}.items():
        assert values[k] == pytest.approx(expected, abs=5e-4)
