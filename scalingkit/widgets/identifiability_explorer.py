"""IdentifiabilityExplorer: why runs at one number of tokens per parameter cannot tell a law, and how a spread cures it.

    w = IdentifiabilityExplorer(sd_log_tpp=0.2)        # controls begin at the arguments of design.explorer.explored
    w                                                  # sliders: gap, sd of log TPP, noise, runs, budget
    w.result                                           # explored(...) of the controls as they stand

Grey: the ray; orange: the same runs spread at equal N D. The windows of the pictures stay where they are, so that what
shrinks is what is not known. The numbers are ``design.explorer.explored``, the picture at rest ``plots.explorer``.
"""

from __future__ import annotations

import html
from typing import Any

import ipywidgets
import numpy as np
import plotly.graph_objects as go
import xarray as xr
from plotly.subplots import make_subplots

from scalingkit.core import zoo
from scalingkit.core.errors import hint
from scalingkit.design.explorer import LAWS, LEAST, MOST, WIDEST, explored, gap_of, pairs
from scalingkit.design.grids import DesignError
from scalingkit.plots import explorer as rest
from scalingkit.widgets.base import Panel

RAY, PLANNED, GRID = "#8a8f98", rest.PLANNED, "rgba(128,128,128,0.22)"
# Text takes the ink of the page's theme; the grey stands where a page names none
_STYLE = """<style>
.sk-explorer .js-plotly-plot text { fill: var(--jp-content-font-color1, var(--vscode-foreground, #767c85)) !important }
.sk-explorer .sk-key span { margin-right: 1.4em; white-space: nowrap }
.sk-explorer .sk-key i { display: inline-block; width: .75em; height: .75em; margin-right: .4em; border-radius: 50% }
.sk-explorer .sk-words { line-height: 1.45; overflow-wrap: anywhere }
</style>"""
HEIGHT = 600


class IdentifiabilityExplorer(Panel):
    """Sliders over ``explored``; ``start`` gives any of its arguments their first value."""

    def __init__(self, **start: Any) -> None:
        self.start = start
        self.words = ipywidgets.HTML()
        self.answers = 0
        super().__init__()
        self.add_class("sk-explorer")

    def controls(self) -> dict[str, Any]:
        law = self.start.get("law", LAWS[0])
        if law not in LAWS:
            raise DesignError(f"the explorer has no law {law!r}; it has {', '.join(LAWS)}.{hint(str(law), LAWS)}")
        first = dict(
            law=law, gap=round(gap_of(zoo.get(law, "laws"), zoo.get(law, "laws").truth), 6), sd_log_tpp=0.0,
            noise=0.01, runs=12, budget=1e23, kappa_goal=1000.0,
        ) | self.start  # fmt: skip
        made = _controls(first)
        if unknown := [k for k in self.start if k not in made]:
            raise DesignError(f"no control {unknown[0]!r}.{hint(unknown[0], made)}")
        for k, c in made.items():
            if k != "law" and not np.isclose(c.value, first[k]):
                raise DesignError(f"{k} = {first[k]:g} lies outside its slider, {c.min:g} to {c.max:g}.")
        return made

    def compute(self, **values: Any) -> xr.Dataset:
        return explored(**values)

    def view(self) -> go.FigureWidget:
        figure = make_subplots(2, 4, subplot_titles=rest.TITLES, horizontal_spacing=0.065, vertical_spacing=0.15)
        _frame(figure)
        for trace in _traces():
            at = trace.meta["panel"]
            figure.add_trace(trace, row=at // 4 + 1, col=at % 4 + 1)
        made = go.FigureWidget(figure)
        made._config = {"responsive": True, "displayModeBar": False}  # as wide as its cell, from the start
        return made

    def show(self, result: xr.Dataset) -> None:
        values = _drawn(result)
        with self.picture.batch_update():
            for trace in self.picture.data:
                trace.update(values[trace.name])
            _windows(self.picture.layout, result)
        self.answers += 1
        self.words.value = _worded(result, self.answers)

    def arranged(self) -> list[Any]:
        return [ipywidgets.HTML(_STYLE), *super().arranged()[:1], self.words, self.picture, self.line]

    def twin(self, result: xr.Dataset) -> Any:
        return rest.explorer(result)


def _controls(first: dict[str, Any]) -> dict[str, Any]:
    wide = dict(style={"description_width": "112px"}, layout=ipywidgets.Layout(width="340px"))
    powers = {"base": 10, **wide}
    goals = [(f"{10**k:,}", 10.0**k) for k in (2, 3, 4)]
    if first["kappa_goal"] not in [g for _, g in goals]:
        goals.append((f"{first['kappa_goal']:g}", first["kappa_goal"]))
    return {
        "law": ipywidgets.Dropdown(options=LAWS, value=first["law"], description="law", **wide),
        "gap": ipywidgets.FloatSlider(
            first["gap"], min=-0.3, max=0.3, step=0.002, readout_format=".3f", description="exponent gap", **wide
        ),
        "sd_log_tpp": ipywidgets.FloatSlider(
            first["sd_log_tpp"], min=0, max=WIDEST, step=0.02, description="sd of log TPP", **wide
        ),
        "noise": ipywidgets.FloatLogSlider(
            first["noise"], min=-3, max=-1, step=0.05, readout_format=".4f", description="noise (sd of log)", **powers
        ),
        "runs": ipywidgets.IntSlider(first["runs"], min=LEAST, max=MOST, description="runs", **wide),
        "budget": ipywidgets.FloatLogSlider(
            first["budget"], min=20, max=26, step=0.25, readout_format=".1e", description="budget (FLOP)", **powers
        ),
        "kappa_goal": ipywidgets.Dropdown(
            options=goals, value=first["kappa_goal"], description="kappa at most", **wide
        ),
    }  # fmt: skip


def _traces() -> list[go.Scatter]:
    """One scatter per thing that moves; the name finds its values in ``_drawn``."""

    def points(name: str, panel: int, colour: str, *, hollow: bool = False, **more: Any) -> go.Scatter:
        marker = {
            "color": colour,
            "size": 8,
            "symbol": "circle-open" if hollow else "circle",
            "line": {"width": 1.5, "color": colour},
        }
        return go.Scatter(name=name, meta={"panel": panel}, hoverinfo="x+y", mode="markers", marker=marker, **more)

    def line(name: str, panel: int, colour: str, dash: str = "solid", width: float = 2, **more: Any) -> go.Scatter:
        style = {"color": colour, "dash": dash, "width": width}
        return go.Scatter(name=name, meta={"panel": panel}, hoverinfo="x+y", mode="lines", line=style, **more)

    shade = {"ray": "rgba(138,143,152,0.28)", "planned": "rgba(217,99,42,0.38)"}
    out = [points(f"runs-{d}", 0, c, hollow=d == "ray") for d, c in (("ray", RAY), ("planned", PLANNED))]
    out += [points(f"spectrum-{d}", 1, c, hollow=d == "ray") for d, c in (("ray", RAY), ("planned", PLANNED))]
    for block, colour in rest.BLOCK.items():
        out += [line(f"scan-{block}", 2, colour), points(f"now-{block}", 2, colour)]
    out += [line("goal", 2, RAY, "dash", 1), line("needed", 2, RAY, "dash", 1)]
    out += [points(f"se-{d}", 3, c, hollow=d == "ray") for d, c in (("ray", RAY), ("planned", PLANNED))]
    for panel, pair in ((4, "exponents"), (5, "coefficients")):
        out += [line(f"{pair}-ray", panel, RAY, "dash", fill="toself", fillcolor=shade["ray"])]
        out += [line(f"{pair}-planned", panel, PLANNED, fill="toself", fillcolor=shade["planned"])]
    out += [line("quadratic", 6, RAY, "dash", 1.5), line("profile", 6, PLANNED), line("level", 6, RAY, "dot", 1)]
    for d in ("ray", "planned"):
        out += [line(f"band-{d}", 7, shade[d], width=0, fill="toself", fillcolor=shade[d])]
    return [*out, line("loss", 7, PLANNED), line("trained", 7, RAY, "dot", 1)]


def _drawn(read: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Trace -> its x and y (and symbols)."""
    out: dict[str, dict[str, Any]] = {}
    sd, tpp = read["sd"].values, read["tpp"].values
    for d, shift in (("ray", -0.14), ("planned", 0.14)):
        one = read.sel(design=d)
        hollow = "-open" if d == "ray" else ""
        # symbols for all: plotly resets those of the traces that an update of symbols leaves out
        out[f"runs-{d}"] = dict(x=one["N"].values, y=one["D"].values, marker_symbol=f"circle{hollow}")
        value = np.maximum(one["eigenvalue"].values, rest.LEAST_EIGENVALUE)
        at = np.broadcast_to(np.arange(len(value))[:, None] + shift, value.shape)
        there = np.isfinite(value)
        out[f"spectrum-{d}"] = dict(x=at[there], y=value[there], marker_symbol=f"circle{hollow}")
        cut = one["se"].values > rest.SE[1]
        symbol = np.where(cut, "triangle-up", "circle").astype(object) + hollow
        out[f"se-{d}"] = dict(
            x=np.arange(cut.size) + shift, y=np.where(cut, rest.SE[1] / 2, one["se"].values), marker_symbol=list(symbol)
        )
        for pair in ("exponents", "coefficients"):
            x, y = one["ellipse"].sel(pair=pair).values
            out[f"{pair}-{d}"] = dict(x=x, y=y)
        low, high = rest.edges(read, d)
        out[f"band-{d}"] = dict(x=np.r_[tpp, tpp[::-1]], y=np.r_[low, high[::-1]])
    for b in rest.BLOCK:
        if b not in read["block"].values:
            out |= {f"{k}-{b}": dict(x=[], y=[]) for k in ("scan", "now")}
            continue
        kappa = read["kappa_scan"].sel(block=b).values
        now = float(read["kappa"].sel(block=b, design="planned"))
        out[f"scan-{b}"] = dict(x=sd, y=np.where(np.isfinite(kappa), kappa, np.nan))
        out[f"now-{b}"] = dict(x=[read.attrs["sd_log_tpp"]], y=[min(now, rest.KAPPA[1])], marker_symbol="circle")
    needed = float(read["sd_needed"])
    out["goal"] = dict(x=sd[[0, -1]], y=[read.attrs["kappa_goal"]] * 2)
    out["needed"] = dict(
        x=[needed] * 2 if np.isfinite(needed) else [], y=list(rest.KAPPA) if np.isfinite(needed) else []
    )
    value = read["profile_value"].values
    out["quadratic"] = dict(x=value, y=read["profile_quadratic"].values)
    out["profile"] = dict(x=value, y=read["profile_deviance"].values)
    out["level"] = dict(x=list(rest.windows(read)["exponents"][0]), y=[rest.level(read)] * 2)
    out["loss"] = dict(x=tpp, y=read["loss"].values)
    out["trained"] = dict(x=[20.0, 20.0], y=list(rest.LOSS))
    return out


def _frame(figure: go.Figure) -> None:
    """What never moves: grids, scales, titles of axes, room."""
    figure.update_layout(
        template="none", height=HEIGHT, autosize=True, showlegend=False, margin=dict(l=58, r=14, t=28, b=48),
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", font=dict(size=11, color="#767c85"),
        hovermode="closest", dragmode=False,
    )  # fmt: skip
    figure.update_annotations(font_size=12.5)
    figure.update_xaxes(gridcolor=GRID, zeroline=False, linecolor=RAY, showline=True, title_standoff=4, fixedrange=True)
    figure.update_yaxes(gridcolor=GRID, zeroline=False, linecolor=RAY, showline=True, title_standoff=2, fixedrange=True)
    log = dict(type="log", exponentformat="power", dtick=1)
    few = log | dict(dtick=4)
    x = [
        dict(log, title_text="parameters N", range=[7.3, 10.2]), dict(range=[-0.6, 2.6]),
        dict(title_text="sd of log TPP (nat)", range=[0, WIDEST]), dict(range=[-0.6, 4.6]),
        {}, {}, {}, dict(log, title_text="tokens per parameter", range=[0, 3]),
    ]  # fmt: skip
    y = [
        dict(log, title_text="tokens D", range=[8.2, 12.4]),
        dict(few, title_text="eigenvalue", range=[np.log10(rest.LEAST_EIGENVALUE / 3), 1.5]),
        dict(few, title_text="kappa", range=list(np.log10(rest.KAPPA))),
        dict(few, title_text="se of the logarithm", range=list(np.log10(rest.SE)), dtick=2),
        {}, {}, dict(title_text="deviance", range=list(rest.DEVIANCE)),
        dict(title_text="loss (nat per token)", range=list(rest.LOSS)),
    ]  # fmt: skip
    for i, (a, b) in enumerate(zip(x, y, strict=True)):
        at = dict(row=i // 4 + 1, col=i % 4 + 1)
        figure.update_xaxes(a, **at)
        figure.update_yaxes(b, **at)


def _windows(layout: Any, read: xr.Dataset) -> None:
    """What another law moves: names and ranges. Set only where they differ: laying out again costs time."""
    law = zoo.get(read.attrs["law"], "laws")
    (exponents, coefficients), windows = pairs(law), rest.windows(read)
    names = [n.removesuffix(" parameters") for n in rest.blocks(read).values()]
    wanted = {
        "xaxis2": dict(tickvals=list(range(len(names))), ticktext=names, range=[-0.6, len(names) - 0.4]),
        "xaxis4": dict(tickvals=list(range(len(law.params))), ticktext=list(law.params),
                       range=[-0.6, len(law.params) - 0.4]),
        "xaxis5": dict(range=list(windows["exponents"][0]), title_text=exponents[0]),
        "yaxis5": dict(range=list(windows["exponents"][1]), title_text=exponents[1]),
        "xaxis6": dict(range=list(windows["coefficients"][0]), title_text=f"log10 {coefficients[0]}"),
        "yaxis6": dict(range=list(windows["coefficients"][1]), title_text=f"log10 {coefficients[1]}"),
        "xaxis7": dict(range=list(windows["exponents"][0]), title_text=exponents[0]),
    }  # fmt: skip
    if getattr(layout.xaxis5.title, "text", None) != exponents[0]:
        for axis, values in wanted.items():
            layout[axis].update(values)


def _worded(read: xr.Dataset, answers: int) -> str:
    """The lines, with the numbers as the page's own attributes beside them."""
    numbers = {f"kappa-{b}": float(read["kappa"].sel(design="planned", block=b)) for b in read["block"].values}
    numbers |= {"sd-needed": float(read["sd_needed"]), "contraction": float(read["contraction"]), "answers": answers}
    numbers |= {k.replace("_", "-"): read.attrs[k] for k in ("gap", "sd_log_tpp", "noise", "runs", "budget")}
    attributes = " ".join(f'data-{k.replace("+", "-").lower()}="{v!r}"' for k, v in numbers.items())
    colours = {"the ray": RAY, "the same runs, spread": PLANNED}
    colours |= {f"kappa of {name}": rest.BLOCK[b] for b, name in rest.blocks(read).items()}
    key = "".join(f'<span><i style="background: {c}"></i>{html.escape(k)}</span>' for k, c in colours.items())
    lines = "".join(f"<div>{html.escape(text)}</div>" for text in rest.said(read))
    return f'<div class="sk-words" role="status" {attributes}>{lines}<div class="sk-key">{key}</div></div>'
