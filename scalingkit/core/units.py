"""Units of a run table: one number and its scale from a header or a cell. Nothing is guessed.

    "Model Size (B)" -> 1e9    "FLOPs (1E21)" -> 1e21    "tokens_in_billions" -> 1e9
    "1.4B" -> 1.4 x 1e9        "300BT" -> 300 x 1e9      "2.3 ExaFLOP" -> 2.3 x 1e18    "1,000" -> 1000

A scale means a multiple of the house unit (parameter, token, FLOP, nat). petaflop/s-day = 1e15 x 86400 FLOP.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

COUNTS = ("N", "D", "U", "C")
NOUNS = {
    "N": r"(?:params?|parameters?|weights?)",
    "D": r"(?:tokens?|toks?)",
    "U": r"(?:unique\s+)?(?:tokens?|toks?)",
    "C": r"(?:flops?)",
}
WORDS = {
    "k": 1e3, "thousand": 1e3, "thousands": 1e3, "m": 1e6, "mn": 1e6, "mil": 1e6, "million": 1e6, "millions": 1e6,
    "b": 1e9, "bn": 1e9, "g": 1e9, "billion": 1e9, "billions": 1e9,
    "t": 1e12, "tn": 1e12, "trillion": 1e12, "trillions": 1e12,
}  # fmt: skip
SI = {
    "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18, "z": 1e21, "y": 1e24, "r": 1e27,
    "kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12, "peta": 1e15, "exa": 1e18, "zetta": 1e21, "yotta": 1e24,
    "ronna": 1e27,
}  # fmt: skip
DAY = 86400.0
OUTCOMES = {
    "nat": 1.0, "nats": 1.0, "nats/token": 1.0, "nats per token": 1.0, "nat/token": 1.0,
    "bit": math.log(2), "bits": math.log(2), "bits/token": math.log(2), "bits per token": math.log(2),
}  # fmt: skip
BLANK = {""}
MISSING = {
    "nan", "na", "n/a", "#n/a", "#na", "<na>", "null", "none", "nil", "-", "--", "---", "–", "—", "?", ".", "tbd",
    "missing", "unknown", "nat", "not available", "+nan", "-nan", "1.#qnan", "#value!", "#div/0!",
}  # fmt: skip
INFINITE = {"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "∞", "-∞", "1.#inf", "-1.#inf"}
DIVERGED = {"diverged", "diverge", "divergence", "overflow"}

_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_PLAIN = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-z][a-z /-]*)?", re.I | re.A)
_NUMBER = re.compile(r"([+-]?)(\d[\d,_'’ \u00a0\u2009\u202f.]*|\.\d+)((?:e[+-]?\d+)?)\s*(.*)", re.I | re.S)
_GROUPED = re.compile(r"\d{1,3}([,_'’ \u00a0\u2009\u202f.])\d{3}(?:\1\d{3})*")
_PRODUCT = re.compile(r"\d+\s*[x×*]\s*\d", re.I)


class Scale(NamedTuple):
    """``factor`` times the house unit; ``text`` as it was written."""

    factor: float
    text: str


class Cell(NamedTuple):
    """What one cell says: ``value`` x ``factor``; ``code`` is '' or why it is not a number; ``why`` in words."""

    value: float
    factor: float = 1.0
    code: str = ""
    why: str = ""


@lru_cache(maxsize=4096)
def scale(text: str, role: str) -> float | None:
    """Factor that ``text`` ("B", "billion tokens", "ZFLOP", "PF-days") stands for in column ``role``; None if unknown.

    An empty text or the bare noun ("tokens") is 1.
    """
    text = re.sub(r"\s+", " ", text.strip().strip(".").casefold())
    if role not in COUNTS:
        return 1.0 if not text else OUTCOMES.get(text) if role in ("loss", "loss_se") else None
    if role == "C" and (found := _compute(text)) is not None:
        return found
    noun = NOUNS[role]
    if re.fullmatch(f"(?:of )?{noun}|", text):
        return 1.0
    letter = "|[kmbgt](?=t$)" if role in "DU" else ""
    match = re.fullmatch(rf"(?:in )?({'|'.join(WORDS)}{letter})(?:[ -]?(?:of )?{noun})?t?", text)
    if not match or (text.endswith("t") and match[1] != text and not _t_is_tokens(text, match[1], role, noun)):
        return None
    return WORDS[match[1]]


def _t_is_tokens(text: str, word: str, role: str, noun: str) -> bool:
    """'300BT': the T after a one-letter scale means tokens, and only in a column of tokens."""
    return (role in "DU" and len(word) == 1 and text == word + "t") or bool(re.search(noun + "$", text))


def _compute(text: str) -> float | None:
    days = re.fullmatch(rf"({'|'.join(SI)})[ -]?f(?:lops?)?(?:s|/s)?[ -]?days?", text)
    if days:
        return SI[days[1]] * DAY
    match = re.fullmatch(rf"({'|'.join(SI)})[ -]?flops?", text)
    return SI[match[1]] if match else None


def factor_of(unit: object, role: str) -> Scale:
    """The scale a user gives: a number (1e9), or a text ("B", "1e21 FLOPs", "bits"). Raises ValueError."""
    found = float(unit) if isinstance(unit, int | float) and not isinstance(unit, bool) else bracket(str(unit), role)
    if found is None or not (math.isfinite(found) and found > 0):
        raise ValueError(f"{unit!r} is not a unit of {role} that is known here")
    return Scale(found, str(unit))


def bracket(text: str, role: str) -> float | None:
    """Factor of what a header has in brackets: "B", "1E21", "x 10^9 tokens", "in billions", "PF-days"."""
    found = scale(re.sub(r"^\s*in\s+", "", text, flags=re.I), role)
    if found is not None:
        return found
    cell = number(re.sub(r"^\s*(?:in|[x×*])\s*", "", text, flags=re.I), role)
    return cell.value * cell.factor if not cell.code and cell.value > 0 else None


def number(text: str, role: str, decimal: str = ".") -> Cell:
    """The number in one cell of text, in column ``role``. Never raises."""
    plain = text.strip()
    if decimal == "." and (quick := _PLAIN.fullmatch(plain)) and (factor := scale(quick[2] or "", role)) is not None:
        return _finite(float(quick[1]), factor)
    low = plain.casefold()
    for words, code in ((BLANK, "blank"), (MISSING, "missing"), (INFINITE, "infinite"), (DIVERGED, "diverged")):
        if low in words:
            return Cell(math.nan, 1.0, code)
    match = _NUMBER.fullmatch(_exponents(plain))
    if not match:
        return _unparsable(plain)
    sign, digits, power, rest = match.groups()
    digits, why = _ungroup(digits.rstrip(), role, decimal)
    if digits is None:
        return Cell(math.nan, 1.0, "unparsable", why)
    factor = scale(rest, role)
    if factor is None:
        return _unparsable(plain, rest.strip())
    return _finite(float(sign + digits + power), factor)


def _exponents(text: str) -> str:
    """'1.5×10^21', '10²¹' and a typographic minus, as Python writes them."""
    text = text.replace("−", "-")
    text = re.sub("([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda m: "^" + m[1].translate(_SUPER), text)
    text = re.sub(r"(\d)\s*[x×*·]\s*10\s*(?:\^|\*\*)\s*([+-]?\d+)", r"\1e\2", text, flags=re.I)
    return re.sub(r"^10\s*(?:\^|\*\*)\s*([+-]?\d+)", r"1e\1", text)


def _ungroup(digits: str, role: str, decimal: str) -> tuple[str | None, str]:
    """Digits without thousands separators, with a decimal point; or None and why."""
    whole, point, part = digits.partition(decimal)
    if not re.fullmatch(r"\d*", part):
        return None, f"{digits!r} has separators after its decimal sign {decimal!r}"
    if re.fullmatch(r"\d*", whole):
        return (whole or "0") + ("." + part if part else ""), ""
    if re.fullmatch(r"\d+(?:_\d+)*", whole):
        return whole.replace("_", "") + ("." + part if part else ""), ""
    sign = "," if decimal == "." else "."
    asks = f"is {digits!r} a decimal {sign!r} or a thousands separator? Read with decimal={sign!r}, or write it plainly"
    if not _GROUPED.fullmatch(whole) or role not in COUNTS:
        return None, asks
    return re.sub(r"\D", "", whole) + ("." + part if part else ""), ""


def _unparsable(text: str, rest: str = "") -> Cell:
    why = f"{text[:60]!r} is not a number"
    if _PRODUCT.match(text):
        why = f"{text[:60]!r} is a product: write the total or the active count as one number"
    elif re.search(r"flops?\s*/\s*s|/s(?:ec)?\b", rest, re.I):
        why = f"{rest[:30]!r} is a rate, not an amount of compute"
    elif rest:
        why = f"{rest[:30]!r} is not a unit known for this column"
    return Cell(math.nan, 1.0, "unparsable", why)


def _finite(value: float, factor: float) -> Cell:
    """Overflow is said, not stored."""
    if not math.isfinite(value * factor):
        return Cell(value, factor, "infinite", "it is too large for a 64-bit float")
    return Cell(value, factor)
