"""The report: one self-contained file, escaped, written whole or not at all."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import pytest

from scalingkit.report import Report, number


def made() -> Report:
    report = Report("a <title>", "lead")
    report.heading("one & two")
    report.table([{"name": "<b>", "value": 1.23456789}, {"name": "x", "value": None}])
    report.picture(lambda: plt.subplots()[1], "a caption")
    return report


def fetched(html: str) -> list[str]:
    """Addresses that a browser would fetch."""
    return [u for u in re.findall(r"(?:src|srcset|href)=['\"]([^'\"]+)", html) if not u.startswith("data:")]


def test_self_contained_with_a_picture_for_each_paper():
    html = made().html()
    assert fetched(html) == [] and "<script" not in html
    assert html.count("data:image/png;base64,") == 2 and "prefers-color-scheme: dark" in html
    assert fetched("<img src='https://example.org/a.png'>") == ["https://example.org/a.png"]


def test_what_comes_from_a_table_is_escaped():
    html = made().html()
    assert "&lt;b&gt;" in html and "<b>" not in html and "a &lt;title&gt;" in html


def test_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    made().write(path)
    before = path.read_text()
    monkeypatch.setattr("os.replace", lambda a, b: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        Report("other", "lead").write(path)
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (float("nan"), "-"), (True, "True"), (12345, "12,345"), (1.23456e10, "1.235e+10")]
)
def test_numbers_as_people_read_them(value, text):
    assert number(value) == text
