"""Discovery is by folder: a new file is found, a helper is not, and a near miss is named."""

from __future__ import annotations

import sys

import pytest

from scalingkit.core import zoo

LAW = '''"""Toy: a constant.

    y(x) = c + 0 x
"""
import numpyro.distributions as dist
from scalingkit.core.card import Card
from scalingkit.core.law import Law
from scalingkit.core.param import Param

law = Law(
    card=Card("NAME", "a constant", tags={"toy"}), inputs={"x": "input"}, output="y", curve=lambda x, c: c + 0 * x,
    params={"c": Param(dist.Normal(), "level")},
)
'''


@pytest.fixture
def new_law(tmp_path, monkeypatch):
    """A law in a folder of its own, seen beside the package's laws."""
    import scalingkit.laws

    (tmp_path / "toy_constant.py").write_text(LAW.replace("NAME", "toy_constant"))
    (tmp_path / "_toy_helper.py").write_text("raise RuntimeError('a helper was imported as a law')")
    monkeypatch.setattr(scalingkit.laws, "__path__", [*scalingkit.laws.__path__, str(tmp_path)])
    yield
    sys.modules.pop("scalingkit.laws.toy_constant", None)


def test_one_new_file_is_enough(new_law):
    assert zoo.get("toy_constant").name == "toy_constant"
    assert "toy_constant" in zoo.names("laws") and "_toy_helper" not in zoo.names("laws")
    assert list(zoo.systems("laws", "toy")) == ["toy_constant"]
    assert zoo.table("laws", "toy").summary.tolist() == ["a constant"]


def test_it_is_gone_with_its_file():
    assert "toy_constant" not in zoo.names()


def test_names_come_without_importing_the_files():
    sys.modules.pop("scalingkit.laws.saturating", None)
    assert "saturating" in zoo.names("laws")
    assert "scalingkit.laws.saturating" not in sys.modules


@pytest.mark.parametrize(
    "name, hint", [("chinchila", "chinchilla"), ("brokenpower", "broken_power"), ("kaplin", "kaplan")]
)
def test_a_near_miss_is_named(name, hint):
    with pytest.raises(KeyError, match=f"Did you mean.*{hint}"):
        zoo.get(name)


def test_a_far_miss_lists_what_there_is():
    with pytest.raises(KeyError, match="no world called 'zzzz'. There are: .*corpora"):
        zoo.get("zzzz", "worlds")


def test_a_law_is_not_found_among_the_worlds():
    with pytest.raises(KeyError, match="no world called 'chinchilla'"):
        zoo.get("chinchilla", "worlds")
