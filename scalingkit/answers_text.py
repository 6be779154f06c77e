"""An answer as text for a terminal. The JSON is the contract; this is how a person reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from scalingkit.answers import Answer

_TELL_THEMSELVES = ("runs check",)  # their text names the warnings already
_COLOUR = {"info": "cyan", "warning": "yellow", "error": "red"}


def show_answer(answer: Answer, console: Console | None = None) -> None:
    """Print an answer: the verb's own view, then warnings, then diagnostics in one line."""
    from rich.console import Console

    console = console or Console(soft_wrap=False, highlight=False)
    plain = answer.plain()
    _VIEWS.get(answer.verb, _generic)(console, plain["result"])
    told = [] if answer.verb in _TELL_THEMSELVES else plain["warnings"]
    for w in told:
        console.print(
            f"[{_COLOUR[w['severity']]}]{w['severity']}[/] \\[{w['code']}] {_safe(w['about'])}: {_safe(w['text'])}"
        )
    if d := plain["diagnostics"]:
        console.print("[dim]" + ", ".join(f"{k} {_number(v)}" for k, v in d.items()) + "[/]")


def _safe(v: Any) -> str:
    from rich.markup import escape

    return escape(str(v))


def _number(v: Any) -> str:
    if isinstance(v, bool) or not isinstance(v, (int, float)):
        return "-" if v is None else str(v)
    return f"{v:,}" if isinstance(v, int) and abs(v) < 1e7 else f"{v:.5g}"


def _rows(console: Console, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
    from rich import box
    from rich.table import Table

    if not rows:
        console.print("nothing")
        return
    columns = columns or list(rows[0])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for c in columns:
        numeric = all(isinstance(r.get(c), (int, float)) or r.get(c) is None for r in rows)
        table.add_column(c, justify="right" if numeric else "left", overflow="fold", no_wrap=c == columns[0])
    for r in rows:
        table.add_row(*(_safe(_number(r.get(c))) for c in columns))
    console.print(table)


def _parameters(console: Console, result: Mapping[str, Any]) -> None:
    rows = [{"parameter": k, **v} for k, v in result["parameters"].items()]
    columns = ["parameter", *dict.fromkeys(c for r in rows for c in r if c != "parameter")]
    _rows(console, rows, columns)


def _fit(console: Console, result: Mapping[str, Any]) -> None:
    _parameters(console, result)
    name = result.get("objective_name")
    console.print(f"objective: {_number(result['objective'])}{f' ({name})' if name else ''}")
    if result.get("verdict"):
        console.print(f"\n{_safe(result['verdict'])}")


def _runs(console: Console, result: Mapping[str, Any]) -> None:
    console.print(_safe(result["report"]) if "report" in result else result)


def _show(console: Console, result: Mapping[str, Any]) -> None:
    console.print(f"[bold]{result['name']}[/] ({result['kind']}): {_safe(result['summary'])}\n")
    if result.get("about"):
        console.print(_safe(result["about"]) + "\n")
    if "parameters" in result:
        _rows(console, [{"parameter": k, **v} for k, v in result["parameters"].items()])
    for key, values in result.get("published", {}).items():
        console.print(f"{key}: " + ", ".join(f"{k} {v:g}" for k, v in values.items()))
    for c in result.get("claims", []):
        said = c.get("outcome") or f"= {c['value']:g}"
        told = ", ".join(filter(None, (c["evidence"], c.get("source") or c.get("where"))))
        console.print(f"claim ({told}): {_safe(c['statement'])}: {said}")
    if result.get("scope"):
        console.print(f"scope: {_safe(result['scope'])}")


def _predict(console: Console, result: Mapping[str, Any]) -> None:
    console.print(
        f"at {', '.join(f'{k} = {v}' for k, v in result['at'].items())} ({result['kind']}, {result['prob']:.0%} interval)"
    )
    _rows(console, [{"": k, **v} for k, v in result["predictions"].items()])


def _verify(console: Console, result: Mapping[str, Any]) -> None:
    _rows(console, result["outcomes"], ["name", "what", "outcome", "why"])
    console.print(", ".join(f"{k}: {v}" for k, v in result["summary"].items()))


def _identify(console: Console, result: Mapping[str, Any]) -> None:
    console.print(_safe(result["verdict"]) + "\n")
    for name, one in result.get("groups", {"": result}).items():
        if name:
            console.print(f"[bold]{_safe(name)}[/]")
        _rows(console, one["parameters"])
        _rows(console, one["directions"])


def _tour(console: Console, result: Mapping[str, Any]) -> None:
    console.print(f"[bold]{_safe(result['title'])}[/]\n")
    for heading, text in result["sections"].items():
        console.print(f"[bold]{heading}[/]")
        if isinstance(text, list):
            _rows(console, text)
        else:
            console.print(_safe(text) + "\n")
    console.print(f"report: {result['files']['report']}\nposterior: {result['files']['posterior']}")


def _generic(console: Console, result: Any) -> None:
    if isinstance(result, list) and result and isinstance(result[0], Mapping):
        _rows(console, result)
    elif isinstance(result, Mapping):
        for k, v in result.items():
            _item(console, k, v)
    else:
        console.print(_safe(result))


def _item(console: Console, key: str, value: Any) -> None:
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        console.print(f"[bold]{key}[/]")
        _rows(console, value)
    elif isinstance(value, Mapping):
        console.print(f"[bold]{key}[/]")
        for k, v in value.items():
            console.print(f"  {k}: {_safe(_number(v))}")
    elif isinstance(value, list):
        console.print(f"[bold]{key}[/]")
        for v in value:
            console.print(f"  - {_safe(v)}")
    else:
        console.print(f"[bold]{key}[/]: {_safe(_number(value))}")


_VIEWS: dict[str, Callable[[Console, Any], None]] = {
    "fit": _fit, "show": _show, "predict": _predict, "verify": _verify, "tour": _tour, "runs check": _runs,
    "identify": _identify,
}  # fmt: skip
