"""Verify raises when something said is not so, and cannot pass on nothing."""

from __future__ import annotations

import pytest

from scalingkit.papers.verify import ClaimFailed, claims, verify


def test_true_statements_pass_and_are_printed(capsys):
    verify(("none diverged", 0, 0), ("alpha", 0.35, 0.34, 0.02), ("clean", True))
    assert capsys.readouterr().out.count("holds") == 3


@pytest.mark.parametrize("statement", [("x", False), ("x", 1, 2), ("x", 0.4, 0.3, 0.05), ("x", float("nan"), 0.3, 1.0)])
def test_a_false_statement_raises(statement):
    with pytest.raises(ClaimFailed, match="1 of 2"):
        verify(("y", True), statement)


def test_no_statement_is_refused():
    with pytest.raises(ValueError, match="no statement"):
        verify()


def test_claims_of_the_zoo_hold_and_a_wrong_one_does_not(monkeypatch):
    from dataclasses import replace

    from scalingkit.core import zoo

    assert claims().holds and len(claims().outcomes) >= 10
    law = zoo.get("kaplan")
    wrong = replace(law, claims=(replace(law.claims[0], value=law.claims[0].value * 2),))
    monkeypatch.setattr("scalingkit.laws.kaplan.law", wrong)
    report = claims(["kaplan"])
    assert not report.holds and report.notes()[0].code == "claim-differs"


@pytest.mark.parametrize(("reason", "holds"), [("the source averages four tasks", True), ("", False)])
def test_a_difference_is_a_failure_unless_the_table_explains_it(monkeypatch, reason, holds):
    from types import SimpleNamespace

    from scalingkit import catalog
    from scalingkit.papers import tables as engine
    from scalingkit.papers import verify as verb

    fit = SimpleNamespace(law="power", where="Table 2", reason=reason)
    monkeypatch.setattr(catalog, "table", lambda name: SimpleNamespace(fits=(fit,)))
    off = engine.Outcome("some-table", "power", "differs", "alpha is off", where="Table 2")
    monkeypatch.setattr(engine, "verify_tables", lambda names: [off])
    report = verb.tables(["some-table"])
    assert report.holds is holds and bool(report.notes()) is not holds
