"""PosteriorExplorer: look into any posterior: what the prior says and what the runs, ridges, bands with the data.

    w = PosteriorExplorer(tree)                        # a tree of ``fit``, or any DataTree with a posterior
    w                                                  # choose parameters, groups, a pair, a slice
    w.result                                           # infer.portrait.portrait of the choices as they stand

A colour is a group. Dashed: the prior; ink: what all groups share. A tree without a law of the package shows its runs
against what it replicates. The numbers are ``infer.portrait``, the picture at rest ``plots.portrait``.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import ipywidgets
import numpy as np
import plotly.graph_objects as go
import xarray as xr
from plotly.subplots import make_subplots

from scalingkit.core.errors import hint
from scalingkit.infer.findings import WIDE
from scalingkit.infer.model import Model
from scalingkit.infer.portrait import FIT, MOST_GROUPS, MOST_PARAMS, PortraitError, offered, portrait
from scalingkit.plots import portrait as rest
from scalingkit.widgets.base import Panel

INK, PRIOR, GRID = "#767c85", "#8a8f98", "rgba(128,128,128,0.22)"
STRONGEST = "strongest"
HEIGHT = 520
REACHES = (1, 3, 10, 30, 100, 1000)
# Text takes the ink of the page's theme; the grey stands where a page names none
_STYLE = """<style>
.sk-portrait .js-plotly-plot text { fill: var(--jp-content-font-color1, var(--vscode-foreground, #767c85)) !important }
.sk-portrait .sk-words { line-height: 1.45; overflow-wrap: anywhere }
.sk-portrait .sk-words table { border-collapse: collapse; margin-top: .3em; font-variant-numeric: tabular-nums }
.sk-portrait .sk-words td, .sk-portrait .sk-words th { padding: 0 1.1em 0 0; text-align: left; white-space: nowrap }
.sk-portrait .sk-words i { display: inline-block; width: .75em; height: .75em; margin-right: .4em; border-radius: 50% }
.sk-portrait .sk-words .sk-table { overflow-x: auto }
</style>"""


class PosteriorExplorer(Panel):
    """Choices over ``portrait``; ``start`` gives params, groups, pair, along, level, reach or prob their first value."""

    def __init__(self, tree: xr.DataTree, *, model: Model | None = None, **start: Any) -> None:
        self.tree, self.model, self.start = tree, model, start
        self.can = offered(tree, model)
        self.words = ipywidgets.HTML()
        self.answers = 0
        self.sent: dict[str, dict[str, Any]] = {}
        super().__init__()
        self.add_class("sk-portrait")

    def controls(self) -> dict[str, Any]:
        known = ("params", "groups", "pair", "along", "level", "reach", "prob")
        if unknown := [k for k in self.start if k not in known]:
            raise PortraitError(f"no choice {unknown[0]!r}.{hint(unknown[0], known)}")
        first = portrait(self.tree, model=self.model, **self.start)  # its errors are those of a first choice
        return _controls(self.can, first, self.start.get("pair", (None, None)))

    def values(self) -> dict[str, Any]:
        v = super().values()
        pair = tuple(None if p == STRONGEST else p for p in (v.pop("pair_x"), v.pop("pair_y")))
        return v | {"params": list(v["params"]), "groups": list(v["groups"]), "pair": pair}

    def compute(self, **values: Any) -> xr.Dataset:
        return portrait(self.tree, model=self.model, **values)

    def view(self) -> go.FigureWidget:
        cell = {"secondary_y": False}
        figure = make_subplots(
            2, 4, column_widths=[0.15, 0.15, 0.32, 0.38], horizontal_spacing=0.055, vertical_spacing=0.17,
            specs=[[cell, cell, {"rowspan": 2}, {"rowspan": 2}], [cell, cell, None, None]],
            subplot_titles=("", "", "Joint draws", " ", "", ""),
        )  # fmt: skip
        _frame(figure)
        for trace, (row, col) in _traces():
            figure.add_trace(trace, row=row, col=col)
        made = go.FigureWidget(figure)
        made._config = {"responsive": True, "displayModeBar": False}
        return made

    def show(self, result: xr.Dataset) -> None:
        drawn = _drawn(result)
        with self.picture.batch_update():
            for trace in self.picture.data:
                new = drawn.get(trace.name, {"x": [], "y": []})
                if not _same(self.sent.get(trace.name), new):
                    trace.update(new)
                    self.sent[trace.name] = new
            _titles(self.picture.layout, result)
        self.answers += 1
        self.words.value = _worded(result, self.answers)

    def arranged(self) -> list[Any]:
        return [ipywidgets.HTML(_STYLE), *super().arranged()[:1], self.words, self.picture, self.line]

    def twin(self, result: xr.Dataset) -> Any:
        return rest.portrait(result)


def _controls(can: dict[str, Any], first: xr.Dataset, pair: Sequence[str | None]) -> dict[str, Any]:
    wide = dict(style={"description_width": "90px"}, layout=ipywidgets.Layout(width="300px"))
    several = wide | {"rows": 5}
    partners = [STRONGEST, *can["params"]]
    attrs = first.attrs
    reaches, probs = sorted({*REACHES, attrs["reach"]}), sorted({0.5, 0.8, 0.9, 0.95, attrs["prob"]})
    return {
        "params": ipywidgets.SelectMultiple(
            options=can["params"], value=list(first["param"].values), description="parameters",
            tooltip=f"up to {MOST_PARAMS}: hold Ctrl or Shift", **several,
        ),
        "groups": ipywidgets.SelectMultiple(
            options=can["groups"], value=list(first["group"].values), description="groups",
            tooltip=f"up to {MOST_GROUPS}: hold Ctrl or Shift", **several,
        ),
        "pair_x": ipywidgets.Dropdown(options=partners, value=pair[0] or STRONGEST, description="ridge, x", **wide),
        "pair_y": ipywidgets.Dropdown(options=partners, value=pair[1] or STRONGEST, description="ridge, y", **wide),
        "along": ipywidgets.Dropdown(options=can["along"], value=attrs["along"], description="curve along", **wide),
        "level": ipywidgets.FloatSlider(
            attrs["level"], min=0, max=1, step=0.05, description="others at", readout_format=".0%", **wide
        ),
        "reach": ipywidgets.Dropdown(
            options=[(f"{r:g} x the largest run", r) for r in reaches], value=attrs["reach"], description="as far as", **wide
        ),
        "prob": ipywidgets.Dropdown(
            options=[(f"{p:.0%}", p) for p in probs], value=attrs["prob"], description="intervals", **wide
        ),
    }  # fmt: skip


def _traces() -> list[tuple[go.Scatter, tuple[int, int]]]:
    """One scatter per thing that is drawn, and its cell; the name finds its values in ``_drawn``."""

    def line(name: str, colour: str, dash: str = "solid", width: float = 1.6, **more: Any) -> go.Scatter:
        style = {"color": colour, "dash": dash, "width": width}
        return go.Scatter(name=name, mode="lines", hoverinfo="x+y", line=style, **more)

    def points(name: str, size: float, symbol: str = "circle", **more: Any) -> go.Scatter:
        return go.Scatter(name=name, mode="markers", marker={"size": size, "symbol": symbol}, **more)

    out: list[tuple[go.Scatter, tuple[int, int]]] = []
    for i in range(MOST_PARAMS):
        at = (i // 2 + 1, i % 2 + 1)
        out.append((line(f"prior-{i}", PRIOR, "dash"), at))
        out.append((line(f"all-{i}", INK, fill="tozeroy", fillcolor="rgba(128,128,128,0.2)"), at))
        out += [(line(f"density-{i}-{g}", INK, fill="tozeroy"), at) for g in range(MOST_GROUPS)]
    for g in ("all", *range(MOST_GROUPS)):
        out.append((points(f"cloud-{g}", 4, hoverinfo="x+y", opacity=0.55), (1, 3)))
    for g in range(MOST_GROUPS):
        out.append((line(f"band-{g}", INK, width=0, fill="toself"), (1, 4)))
        out.append((line(f"new-{g}", INK, "dot", 1), (1, 4)))
        out.append((line(f"middle-{g}", INK, width=2), (1, 4)))
    out.append((line("equal", PRIOR, width=1), (1, 4)))
    for g in ("none", *range(MOST_GROUPS)):
        out.append((line(f"interval-{g}", INK, width=1, opacity=0.55), (1, 4)))
        out.append((points(f"run-{g}", 6, "circle-open", hovertemplate="%{text}<extra></extra>"), (1, 4)))
    return out


def _drawn(read: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Trace -> its x, y and colours; what is not named is empty. Colours for all: plotly resets what an update leaves out."""
    colours = rest.colours(read)
    out: dict[str, dict[str, Any]] = {}
    for i in range(read.sizes["param"]):
        one = read.isel(param=i)
        x = one["value"].values
        if np.isfinite(one["prior_density"]).all():
            out[f"prior-{i}"] = dict(x=x, y=one["prior_density"].values, line_color=PRIOR)
        if bool(one["shared"]):
            out[f"all-{i}"] = dict(x=x, y=one["density"].values[0], line_color=INK, fillcolor=_pale(INK))
            continue
        for g, c in enumerate(colours):
            out[f"density-{i}-{g}"] = dict(x=x, y=one["density"].values[g], line_color=c, fillcolor=_pale(c))
    logs = read["cloud_log"].values
    x, y = (rest.scaled(read["cloud"].values[i], logs[i]) for i in (0, 1))
    if bool(read["cloud_shared"]):
        out["cloud-all"] = dict(x=x[0], y=y[0], marker_color=INK)
    else:
        out |= {f"cloud-{g}": dict(x=x[g], y=y[g], marker_color=c) for g, c in enumerate(colours)}
    for g, c in enumerate(colours):
        out |= _bands(read, g, c)
        out |= _points(read, str(g), g, c)
    if read.attrs["along"] == FIT and read.sizes.get("run"):
        ends = [float(f(read[k].values)) for f, k in ((np.min, "run_y"), (np.max, "run_y"))]
        out["equal"] = dict(x=ends, y=ends, line_color=PRIOR)
        out |= _points(read, "none", -1, PRIOR)
    return out


def _bands(read: xr.Dataset, g: int, colour: str) -> dict[str, dict[str, Any]]:
    if "band" not in read:
        return {}
    x = read["x"].values[g]
    low, mid, high = read["band"].values[g].T
    out = {
        f"band-{g}": dict(
            x=np.r_[x, x[::-1]], y=np.r_[low, high[::-1]], fillcolor=_pale(colour), line_color=_pale(colour)
        ),
        f"middle-{g}": dict(x=x, y=mid, line_color=colour),
    }
    if "outcome" in read:
        low, _, high = read["outcome"].values[g].T
        out[f"new-{g}"] = dict(x=np.r_[x, np.nan, x], y=np.r_[low, np.nan, high], line_color=colour)
    return out


def _points(read: xr.Dataset, name: str, g: int, colour: str) -> dict[str, dict[str, Any]]:
    if "run_group" not in read:
        return {}
    mine = read["run_group"].values == g
    x, y = read["run_x"].values[mine], read["run_y"].values[mine]
    text = [f"{n}<br>{v:.5g}" for n, v in zip(read["run_label"].values[mine], _observed(read)[mine], strict=True)]
    out = {f"run-{name}": dict(x=x, y=y, text=text, marker_color=colour)}
    if "run_lower" in read:
        gap = np.full(x.size, np.nan)
        ends = np.stack([read["run_lower"].values[mine], read["run_upper"].values[mine], gap], 1).ravel()
        out[f"interval-{name}"] = dict(x=ends, y=np.repeat(y, 3), line_color=colour)
    return out


def _observed(read: xr.Dataset) -> np.ndarray:
    return read["run_seen" if "run_seen" in read else "run_y"].values if "run_label" in read.coords else np.zeros(0)


def _pale(colour: str) -> str:
    r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({r},{g},{b},0.25)"


def _same(old: dict[str, Any] | None, new: dict[str, Any]) -> bool:
    if old is None:
        return not len(new["x"])
    return old.keys() == new.keys() and all(
        np.array_equal(np.asarray(old[k]), np.asarray(new[k]), equal_nan=np.asarray(new[k]).dtype.kind == "f")
        for k in new
    )


def _frame(figure: go.Figure) -> None:
    """What never moves: grids, room, ink."""
    figure.update_layout(
        template="none", height=HEIGHT, autosize=True, showlegend=False, margin=dict(l=24, r=14, t=28, b=48),
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", font=dict(size=11, color="#767c85"),
        hovermode="closest", dragmode=False,
    )  # fmt: skip
    figure.update_annotations(font_size=12.5)
    figure.update_xaxes(
        gridcolor=GRID, zeroline=False, linecolor=PRIOR, showline=True, title_standoff=4, fixedrange=True
    )
    figure.update_yaxes(
        gridcolor=GRID, zeroline=False, linecolor=PRIOR, showline=True, title_standoff=2, fixedrange=True
    )
    for i in range(MOST_PARAMS):
        figure.update_yaxes(showticklabels=False, showgrid=False, rangemode="tozero", row=i // 2 + 1, col=i % 2 + 1)


# axes of the cells, in the order in which make_subplots numbers them: by row
_DENSITY, _CLOUD, _SLICE = ("", "2", "5", "6"), "3", "4"


def _titles(layout: Any, read: xr.Dataset) -> None:
    """Names, scales and windows that follow the choices. Set only where they differ: laying out again costs time."""
    wanted: dict[str, dict[str, Any]] = {}
    for i, n in enumerate(_DENSITY):
        there = i < read.sizes["param"]
        one = read.isel(param=i) if there else None
        name = rest.axis_name(str(one["param"].values), bool(one["log"])) if one is not None else ""
        ends = [float(v) for v in one["value"].values[[0, -1]]] if one is not None else [0.0, 1.0]
        wanted[f"xaxis{n}"] = dict(title_text=name, range=ends, visible=there)
        wanted[f"yaxis{n}"] = dict(visible=there)
    names = [
        rest.axis_name(str(n), bool(g)) for n, g in zip(read["axis"].values, read["cloud_log"].values, strict=True)
    ]
    wanted[f"xaxis{_CLOUD}"], wanted[f"yaxis{_CLOUD}"] = dict(title_text=names[0]), dict(title_text=names[1])
    x, y = rest.slice_names(read)
    log = read.attrs["along"] != FIT and float(read["x"].min()) > 0
    ticks = (
        dict(type="log", exponentformat="power", dtick=1)
        if log
        else dict(type="linear", exponentformat="none", dtick=None)
    )
    wanted[f"xaxis{_SLICE}"], wanted[f"yaxis{_SLICE}"] = dict(title_text=x, **ticks), dict(title_text=y)
    for axis, values in wanted.items():
        have = layout[axis].to_plotly_json()
        flat = {**have, "title_text": have.get("title", {}).get("text", "")}
        if any(flat.get(k) != v for k, v in values.items()):
            layout[axis].update(values)
    title = rest.slice_title(read)
    if layout.annotations[1].text != title:
        layout.annotations[1].text = title


def _worded(read: xr.Dataset, answers: int) -> str:
    """The lines and the table of intervals, with numbers as the page's own attributes beside them."""
    numbers = {"answers": answers, "correlation": float(read["cloud_correlation"].values[0])}
    numbers |= {k: float(read.attrs[k]) for k in ("level", "reach", "prob")}
    if "band" in read:
        numbers["band-width"] = float(read["band"][0, -1, 2] - read["band"][0, -1, 0])
    attributes = " ".join(f'data-{k}="{v!r}"' for k, v in numbers.items())
    lines = "".join(f"<div>{html.escape(text)}</div>" for text in rest.said(read))
    return f'<div class="sk-words" role="status" {attributes}>{lines}<div class="sk-table">{_table(read)}</div></div>'


def _table(read: xr.Dataset) -> str:
    """Median and interval by group and parameter; * where the prior speaks."""
    head = "".join(f"<th>{html.escape(str(p))}</th>" for p in read["param"].values)
    rows = []
    for g, (name, c) in enumerate(zip(read["group"].values, rest.colours(read), strict=True)):
        cells = ""
        for p in range(read.sizes["param"]):
            low, mid, high = read["interval"].values[p, g]
            star = " *" if float(read["sd_ratio"][p, g]) > WIDE else ""
            cells += f"<td>{mid:.4g} ({low:.4g} to {high:.4g}){star}</td>"
        rows.append(f'<tr><td><i style="background: {c}"></i>{html.escape(str(name))}</td>{cells}</tr>')
    star = "<div>* the prior speaks</div>" if bool((read["sd_ratio"] > WIDE).any()) else ""
    return f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>{star}"
