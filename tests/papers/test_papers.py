"""The contract of every paper, found by discovery; a paper built to break each promise must fail it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from scalingkit import papers
from scalingkit.core.card import Card, Source
from scalingkit.papers import verify
from scalingkit.papers.paper import WORDS, Paper, PaperClaim

NAMES = papers.names()
RERUNS: dict[str, xr.Dataset] = {}


def fast(paper: Paper) -> xr.Dataset:
    if paper.name not in RERUNS:
        RERUNS[paper.name] = paper.rerun(True)
    return RERUNS[paper.name]


def check_card(paper: Paper) -> None:
    assert paper.card.summary and paper.card.sources and paper.card.scope and paper.card.tags
    assert paper.claims and all(c.statement and c.evidence for c in paper.claims)
    assert len({c.statement for c in paper.claims}) == len(paper.claims)


def check_dataset(data: xr.Dataset) -> None:
    assert data.data_vars
    assert not [d for d in data.dims if str(d).startswith("dim_")]


def check_repeats(paper: Paper) -> None:
    assert fast(paper).identical(paper.rerun(True)), "two reruns differ: a seed is missing"


def check_claims(paper: Paper) -> None:
    judged = paper.check(data=fast(paper))
    assert judged and all(j.holds for j in judged), [str(j) for j in judged if not j.holds]


def spoiled(claim: PaperClaim, found: float) -> PaperClaim:
    """The claim with a value that the rerun contradicts: near it for "differs", away from it otherwise."""
    room = 3 * claim.within + abs(found) + 1
    if claim.outcome == "differs":
        return replace(claim, value=found)
    return replace(claim, value=found - room if claim.sense == "at most" else found + room)


@pytest.mark.parametrize("name", NAMES)
def test_a_paper_keeps_the_contract(name):
    paper = papers.get(name)
    assert paper.name == name
    check_card(paper)
    check_dataset(fast(paper))
    check_claims(paper)
    check_repeats(paper)


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_can_fail(name):
    paper = papers.get(name)
    data = fast(paper)
    nothing = data.map(lambda v: v * np.nan if v.dtype.kind in "fi" else v)
    for judged in paper.check(data=data):
        if judged.claim.quantity is not None:
            assert not judged.claim.check(nothing).holds, f"NaN passes: {judged.claim.statement}"
            assert not spoiled(judged.claim, judged.found).check(data).holds, judged.claim.statement


def toy(**changes) -> Paper:
    claim = PaperClaim("one is one", "reproduced", "derived", lambda d: d["x"].sum(), 1, 0.1)
    made = Paper(
        Card("toy", "a toy", frozenset({"toy"}), (Source("s", "S"),), "nothing"),
        lambda fast: xr.Dataset({"x": ("size", [0.5, 0.5])}),
        (claim, replace(claim, statement="one is not two", outcome="differs", value=2, why="arithmetic")),
    )
    return replace(made, **changes)


def test_a_good_toy_keeps_it_and_broken_ones_do_not():
    good = toy()
    check_card(good)
    check_claims(good)
    rng = np.random.default_rng(0)
    with pytest.raises(AssertionError):
        check_card(toy(card=replace(good.card, scope="")))
    with pytest.raises(AssertionError):
        check_dataset(xr.Dataset({"x": xr.DataArray([1.0])}))
    with pytest.raises(AssertionError, match="one is one"):
        check_claims(replace(good, card=replace(good.card, name="toy2"), claims=(replace(good.claims[0], value=3),)))
    with pytest.raises(AssertionError, match="seed"):
        check_repeats(Paper(replace(good.card, name="toy3"), lambda f: xr.Dataset({"x": rng.normal()}), good.claims))


def test_a_difference_that_went_away_is_stale_and_fails():
    stale = replace(toy().claims[1], value=1)
    assert not stale.check(toy().rerun(True)).holds
    assert toy().claims[1].check(toy().rerun(True)).holds


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(outcome="maybe"), "none of"),
        (dict(quantity=None), "quantity"),
        (dict(outcome="out of scope"), "quantity"),
        (dict(outcome="differs"), "why"),
        (dict(evidence="published"), "printed"),
    ],
)
def test_a_claim_that_hides_something_is_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        replace(toy().claims[0], **changes)


def test_claims_of_the_long_rerun_are_left_out_of_a_fast_one():
    long = toy(claims=(replace(toy().claims[0], full=True), toy().claims[1]))
    assert [len(long.check(f)) for f in (True, False)] == [1, 2]


def test_table_and_names():
    row = next(r for r in papers.table() if r["name"] == "tpp_identifiability")
    assert set(row["claims"]) <= set(WORDS) and sum(row["claims"].values()) >= 10
    assert papers.get("tpp-identifiability") is papers.get("tpp_identifiability")
    with pytest.raises(KeyError, match="Did you mean tpp_identifiability"):
        papers.get("tpp-identifiabilty")


@pytest.fixture
def shelved(monkeypatch):
    """A toy in place of a real paper, so that the verbs run at once."""

    def put(paper):
        monkeypatch.setattr("scalingkit.papers.tpp_identifiability.paper", paper)

    return put


def test_verify_by_name_exits_by_the_claims(shelved):
    from scalingkit.cli import app

    shelved(toy())
    good = CliRunner().invoke(app, ["verify", "tpp-identifiability"])
    assert good.exit_code == 0 and "reproduced" in good.output
    shelved(toy(claims=(replace(toy().claims[0], value=3),)))
    bad = CliRunner().invoke(app, ["verify", "tpp-identifiability", "--json"])
    assert bad.exit_code == 1 and "DIFFERS" in bad.output
    assert not verify.papers(["tpp-identifiability"]).holds
    assert CliRunner().invoke(app, ["verify", "--papers"]).exit_code == 1
    assert CliRunner().invoke(app, ["verify", "no-such-paper"]).exit_code == 2
    listed = CliRunner().invoke(app, ["papers", "--json"])
    assert listed.exit_code == 0 and "tpp_identifiability" in listed.output or "toy" in listed.output
