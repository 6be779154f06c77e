"""Progress gives every thing once and is silent where nobody watches."""

from __future__ import annotations

from scalingkit import progress


def test_everything_comes_through_in_order(capsys):
    assert list(progress.over([3, 1, 2], "counting")) == [3, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_stages_are_lines_off_a_terminal_and_nothing_when_quiet(capsys):
    with progress.stages() as say:
        say("reading [the] runs")
    assert capsys.readouterr().err == "reading [the] runs\n"
    with progress.stages(quiet=True) as say:
        say("reading")
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_there_is_a_bar(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert list(progress.over([1], "counting")) == [1]
    with progress.stages() as say:
        say("reading")
    assert capsys.readouterr().err
