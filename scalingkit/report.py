"""Report: one self-contained HTML file: text, tables and pictures, each picture for light and for dark paper.

No script, no font and no image is fetched: it can be mailed. Everything that comes from a table is escaped.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from scalingkit.plots.axes import to_image
from scalingkit.plots.theme import theme

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --muted: #5b6470; --line: #d5d9de; --warn: #9a4a00; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --ink: #e8eaed; --muted: #a3abb5; --line: #3a4047; --warn: #f0a35e; } }
body { background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 62rem;
  padding: 2rem 1.25rem 4rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
p { max-width: 46rem; } .muted { color: var(--muted); } .warning { color: var(--warn); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; } td.text, th.text { text-align: left; }
figure { margin: 1.2rem 0; } figure img { max-width: 100%; height: auto; } figcaption { color: var(--muted); max-width: 46rem; }
.pair { display: flex; flex-wrap: wrap; gap: 1rem; } .pair figure { flex: 1 1 24rem; max-width: 31rem; margin: .4rem 0; }
code { font-size: .9em; }
"""


@dataclass
class Report:
    """Parts in order; ``write`` makes the file."""

    title: str
    lead: str
    parts: list[str] = field(default_factory=list)

    def heading(self, text: str) -> None:
        self.parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, text: str, kind: str = "") -> None:
        for paragraph in text.split("\n\n"):
            self.parts.append(f"<p{f' class={kind!r}' if kind else ''}>{escape(paragraph)}</p>")

    def items(self, texts: Sequence[str]) -> None:
        self.parts.append("<ul>" + "".join(f"<li>{escape(t)}</li>" for t in texts) + "</ul>")

    def table(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
        if not rows:
            return
        columns = list(columns or rows[0])
        words = {c for c in columns if any(isinstance(r.get(c), str) for r in rows)}

        def cell(c: str, v: Any, tag: str) -> str:
            return f"<{tag}{' class=text' if c in words else ''}>{escape(number(v))}</{tag}>"

        head = "".join(cell(c, c, "th") for c in columns)
        body = "".join("<tr>" + "".join(cell(c, r.get(c), "td") for c in columns) + "</tr>" for r in rows)
        self.parts.append(f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")

    def picture(self, draw: Callable[[], Any], caption: str, alt: str = "") -> None:
        """``draw`` makes a picture and returns its axes; it is called once for each kind of paper."""
        self.parts.append(_figure(draw, caption, alt))

    def pictures(self, *pairs: tuple[Callable[[], Any], str]) -> None:
        """Several pictures side by side where the page is wide enough."""
        self.parts.append("<div class=pair>" + "".join(_figure(d, c, "") for d, c in pairs) + "</div>")

    def html(self) -> str:
        head = (
            f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{escape(self.title)}</title>"
        )
        lead = "".join(f"<p>{escape(t)}</p>" for t in self.lead.split("\n\n"))
        body = f"<h1>{escape(self.title)}</h1>{lead}" + "\n".join(self.parts)
        return f"<!doctype html>\n<html lang=en><head>{head}<style>{STYLE}</style></head>\n<body>{body}</body></html>\n"

    def write(self, path: Path) -> Path:
        """Write through a temporary name: a reader never sees half a report."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_text(self.html(), encoding="utf-8")
        os.replace(part, path)
        return path


def number(v: Any) -> str:
    """A table's cell as text: five significant digits, thousands apart."""
    if v is None:
        return "-"
    if isinstance(v, bool) or not isinstance(v, (int, float)):
        return str(v)
    if v != v:
        return "-"
    if isinstance(v, int):
        return f"{v:,}" if abs(v) < 1e7 else f"{v:.4g}"
    return f"{v:.4g}"


def _figure(draw: Callable[[], Any], caption: str, alt: str) -> str:
    light, dark = (_data(draw, mode) for mode in ("light", "dark"))
    source = f"<source media='(prefers-color-scheme: dark)' srcset='{dark}'>"
    image = f"<img src='{light}' alt='{escape(alt or caption, quote=True)}'>"
    return f"<figure><picture>{source}{image}</picture><figcaption>{escape(caption)}</figcaption></figure>"


def _data(draw: Callable[[], Any], mode: Any) -> str:
    with theme(mode):
        axes = draw()
        first = axes.flat[0] if hasattr(axes, "flat") else axes
        return "data:image/png;base64," + base64.b64encode(to_image(first.figure)).decode()
