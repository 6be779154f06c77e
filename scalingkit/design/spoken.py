"""Spoken: targets and costs from text, as a command line or a form gives them.

    target("loss@7e9,1.4e11")  Loss(N, D)         target("nstar@1e24")  Size(budget)      target("alpha")  Exponent
    cost("6")                  6 N D              cost("6*N*D + 1e18")  an expression     cost("mine.py:price")  a function

An expression may use N, D, numbers, + - * / ** and sqrt, log, exp, minimum, maximum; nothing else is evaluated.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from scalingkit.core.law import Law
from scalingkit.core.units import number
from scalingkit.design.cost import Cost, CostError, per_run
from scalingkit.design.grids import DesignError
from scalingkit.design.targets import Exponent, Loss, Size, Target

_FUNCTIONS = ("sqrt", "log", "exp", "minimum", "maximum")
_NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Load, ast.Constant, ast.Add, ast.Sub, ast.Mult,
    ast.Div, ast.Pow, ast.USub, ast.UAdd,
)  # fmt: skip
_FORMS = "write loss@N,D (loss@7e9,1.4e11), nstar@BUDGET (nstar@1e24) or a parameter's name (alpha)."


def target(text: str, law: Law, cost: Cost | None = None) -> Target:
    """The target that ``text`` names. Raises DesignError with the forms there are."""
    kind, at, where = text.strip().partition("@")
    if not at:
        if kind not in law.params:
            raise DesignError(f"target {text!r}: law {law.name!r} has no parameter {kind!r}; {_FORMS}")
        return Exponent(kind)
    roles = ("N", "D") if kind == "loss" else ("C",)
    values = [_number(v, text, role) for v, role in zip_longest(where.split(","), roles, fillvalue="")]
    if kind == "loss" and len(values) == 2:
        return Loss(values[0], values[1])
    if kind == "nstar" and len(values) == 1:
        return Size(values[0], cost)
    raise DesignError(f"target {text!r} is none: {_FORMS}")


def cost(text: str | None) -> Cost | None:
    """A cost model from a number, an expression in N and D, or "file.py:function" or "module:function"."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    model = _function(text) if ":" in text else _expression(text)
    cheap, dear = per_run(model, 1e9, np.array([1e10, 2e10]))
    if not dear > cheap:
        raise CostError(f"cost {text!r} does not grow with the tokens D: {cheap:.3g} at 1e10, {dear:.3g} at 2e10.")
    return model


def _number(text: str, whole: str, role: str) -> float:
    cell = number(text.strip(), role)
    if cell.code or not cell.value * cell.factor > 0:
        raise DesignError(f"target {whole!r}: {text.strip()!r} is not a positive number; {_FORMS}")
    return float(cell.value * cell.factor)


def _expression(text: str) -> Callable[[Any, Any], Any]:
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as e:
        raise CostError(f"cost {text!r} is no expression in N and D ({e.msg}).") from None
    for node in ast.walk(tree):
        known = not isinstance(node, ast.Name) or node.id in ("N", "D", *_FUNCTIONS)
        plain = not isinstance(node, ast.Constant) or type(node.value) in (int, float)
        if not isinstance(node, _NODES) or not known or not plain:
            said = node.id if isinstance(node, ast.Name) else type(node).__name__
            raise CostError(f"cost {text!r}: {said} is not allowed; use N, D, numbers, + - * / ** and {_FUNCTIONS}.")
    code = compile(tree, "<cost>", "eval")
    names = {k: getattr(np, k) for k in _FUNCTIONS}

    def priced(N: Any, D: Any) -> Any:
        # only the nodes allowed above are in the code, and no builtin is within its reach
        return eval(code, {"__builtins__": {}}, {**names, "N": N, "D": D})

    priced.__name__ = text
    return priced


def _function(text: str) -> Callable[[Any, Any], Any]:
    place, _, name = text.rpartition(":")
    try:
        module = _file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        found = getattr(module, name)
    except (ImportError, FileNotFoundError, AttributeError) as e:
        raise CostError(f"cost {text!r}: no function {name!r} in {place!r} ({e}).") from None
    if not callable(found):
        raise CostError(f"cost {text!r}: {name!r} is not a function of N and D.")
    return found


def _file(path: Path) -> Any:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
