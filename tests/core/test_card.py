"""Claims agree within their room and not beyond; cards refuse names that cannot be files."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpyro.distributions as dist
import pytest

from scalingkit.core.card import OURS, Card, Claim, Source
from scalingkit.core.param import Param


def claim(found, **options):
    return Claim(OURS, "here", "a number", lambda: found, **(dict(value=100.0, within=0.5) | options))


@pytest.mark.parametrize("found, agrees", [(100.0, True), (100.5, True), (99.4, False), (float("nan"), False)])
def test_a_claim_agrees_within_its_room(found, agrees):
    assert claim(found).check().agrees is agrees


@pytest.mark.parametrize("found, agrees", [(150.0, True), (151.0, False), (-100.0, False)])
def test_a_relative_claim_scales_its_room(found, agrees):
    assert claim(found, relative=True).check().agrees is agrees


def test_infinity_never_agrees():
    assert not claim(float("inf"), within=float("inf")).check().agrees


def test_a_verdict_says_both_numbers():
    assert "expected 100, found 101: DIFFERS" in str(claim(101.0).check())
    assert str(claim(100.2).check()).endswith("agrees")


def test_a_claim_hands_its_arguments_on():
    found = Claim(OURS, "here", "a sum", lambda a, b: a + b, 5.0, 0.0).check(2.0, b=3.0)
    assert found.agrees and found.found == 5.0


@pytest.mark.parametrize("name", ["two words", "1st", "a-b", ""])
def test_a_card_name_is_an_identifier(name):
    with pytest.raises(ValueError, match="identifier"):
        Card(name, "summary")


def test_cards_and_sources_are_values():
    assert Card("a", "b", tags={"x"}).tags == frozenset({"x"})
    assert {Source("k", "c"): 1}[Source("k", "c")] == 1
    assert str(Source("k", "Author 2020", "1234.5678")) == "Author 2020 arXiv:1234.5678"
    with pytest.raises(dataclasses.FrozenInstanceError):
        Card("a", "b").name = "c"


def test_a_param_is_one_number():
    with pytest.raises(ValueError, match="one number"):
        Param(dist.Normal(0.0, 1.0).expand([3]), "three")
    with pytest.raises(ValueError, match="one number"):
        Param(dist.Dirichlet(jnp.ones(3)), "a simplex")
