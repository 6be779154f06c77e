"""Which column plays which role. The precedence, stated once:

1. ``columns={"N": "Model Size"}``, as given
2. a header that names the asked ``params_kind`` or ``flops_kind`` ("N_no_emb" for "non-embedding")
3. a header spelled exactly as the field: N, D, C, U, P, loss, family, corpus, seed, run
4. an alias of the first rank ("params", "training tokens", "val_loss"), then of the next ranks
5. for N, D and loss: the only header with the word (parameters, tokens, loss) in it

A column of words only is never taken for a number. Two headers of equal standing for an input or the outcome are an error that names both. Labels (family, corpus, seed,
run) take the first in the order written here; the others stay as labels under their own names. Letter case, spaces,
punctuation, a unit and a namespace ("config.", "summary.", "eval/") do not matter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from scalingkit.core import units
from scalingkit.core.errors import RunsError, hint, listed

INPUTS = ("N", "D", "U", "C")
LABELS = ("family", "corpus", "seed", "trajectory")
ARCHITECTURE = ("d_model", "n_layers", "vocab", "d_ff", "n_heads", "context")
HELPERS = ("run", "step", "diverged", *ARCHITECTURE)

ALIASES: dict[str, tuple[str, ...]] = {  # ranks are the strings, names in a rank are parted by commas
    "N": (
        "params, parameters, num params, n params, nparams, num parameters, param count, params count, parameter count, "
        "parameters count, model size, model params, model parameters, num model params, model parameter count, "
        "number of parameters, number of params, trainable parameters, trainable params",
        "size, model n params, n",
    ),
    "D": (
        "tokens, num tokens, n tokens, token count, token num, train tokens, training tokens, pretraining tokens, "
        "pretrain tokens, tokens seen, tokens trained, trained tokens, training data size, pretraining data size, "
        "number of tokens, number of training tokens, num train tokens, n train tokens, consumed tokens, tokens processed",
        "dataset size, data size, token, d",
    ),
    "U": ("unique tokens, num unique tokens, n unique tokens, unique training tokens, tokens unique",),
    "C": (
        "compute, flops, flop, training flops, training flop, train flops, training compute, train compute, flop count, "
        "flops count, num flops, n flops, pretraining flops, pretraining compute, compute flops, flops total",
        "compute budget, flop budget, flops budget, budget, c",
    ),
    "loss": (
        "val loss, validation loss, valid loss, eval loss, evaluation loss, test loss, heldout loss, held out loss, "
        "dev loss, loss val, loss eval, loss test, final val loss, final validation loss, final eval loss, "
        "validation cross entropy, val cross entropy, eval cross entropy",
        "final loss, loss final, cross entropy, cross entropy loss, ce loss, xent, nll",
        "train loss, training loss, loss train, final train loss",
        "perplexity, ppl, val ppl, val perplexity, eval perplexity, test perplexity",
    ),
    "loss_se": ("loss se, loss stderr, loss sem, loss standard error, se loss, stderr loss",),
    "error": ("error rate, test error, val error, top 1 error, top1 error",),
    "family": ("model family, family name, architecture family",),
    "corpus": ("train corpus, training corpus, train dataset, training dataset, dataset, training data", "data"),
    "seed": ("random seed, rng seed, init seed, model seed, data seed", "replicate"),
    "run": ("run name, name, exp name, run id, run key, id", "model, model name, experiment, experiment name"),
    "step": (
        "global step, train step, training step, checkpoint step, ckpt step, trainer global step, iteration, iter, steps",
        "current steps, current step, checkpoint",
    ),
    "diverged": ("is diverged, has diverged",),
    "d_model": ("d model, hidden size, hidden dim, n embd, model dim, model width, width, embedding dim", "dim"),
    "n_layers": ("n layers, num layers, layers, n layer, num hidden layers, depth, number of layers",),
    "vocab": ("vocab, vocab size, n vocab, vocabulary size, padded vocab size",),
    "d_ff": ("d ff, dff, ffn dim, ffn hidden dim, intermediate size, ff dim, mlp dim",),
    "n_heads": ("n heads, num heads, n head, num attention heads, heads",),
    "context": ("context, context length, seq len, sequence length, seq length, block size, n ctx",),
}
EXACT = ("N", "D", "U", "C", "P", "loss", "family", "corpus", "seed", "run", "step", "trajectory", "diverged")
CONTAINS = {"N": r"\bparam(s|eters?)?\b", "D": r"\btokens\b", "loss": r"\bloss\b"}
NOT_CONTAINS = {
    "N": r"embed|emb\b|active|ratio|per|mode|attn|frac|percent",
    "D": r"unique|per|batch|ratio|frac|tokeni|second|max|context|limit|generated|epoch",
    "loss": r"\b(se|sd|std|stderr|sem|err|error|lo|hi|lower|upper|ci|min|max|scale|weight|coef|name|type|fn|function|"
    r"delta|var|variance|aux|z|balance|balancing|reg|diff|gap|ratio|rank|lo\d+|hi\d+)\b",
}
_KINDS = (
    (
        r"\b(?:non|no|without|excluding|excl|exclude) ?emb(?:ed(?:dings?)?|d)?(?: params?| parameters?)?\b|\bnonemb\w*\b",
        "non-embedding",
    ),
    (r"\b(?:with|including|incl|include) emb(?:ed(?:dings?)?)?\b|\btotal\b", "total"),
    (r"\b(?:active|activated)\b", "active"),
)
_FLOPS = ((r"\b6 ?n ?d\b", "6ND"), (r"\bexact\b", "exact"), (r"\breported\b", "reported"))
_SPACES = ("config", "summary", "summary metrics", "hparams", "throughput", "metrics")


class Header(NamedTuple):
    """A header taken apart: words (lower case), what it has in brackets, and the last part of its path."""

    text: str
    words: str
    tail: str
    brackets: tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """The column that plays ``role``: its header, the scale its header or the user states, and how it was found."""

    role: str
    header: str
    unit: str = ""
    factor: float = 1.0
    how: str = "given"
    kind: str = ""
    perplexity: bool = False
    others: tuple[str, ...] = ()

    def said(self) -> dict[str, object]:
        """As JSON for ``attrs['columns']``."""
        out: dict[str, object] = {"column": self.header, "unit": self.unit, "factor": self.factor, "found": self.how}
        return (
            out
            | ({"kind": self.kind} if self.kind else {})
            | ({"transform": "log of perplexity"} if self.perplexity else {})
            | ({"others": list(self.others)} if self.others else {})
        )


def header(text: str) -> Header:
    """Take a header apart: 'config.nParams [M]' -> words 'n params', brackets ('M',)."""
    plain = unicodedata.normalize("NFKC", str(text))
    brackets = tuple(b.strip() for pair in re.findall(r"\(([^()]*)\)|\[([^\[\]]*)\]", plain) for b in pair if b.strip())
    plain = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", " ", plain)
    parts = [w for part in re.split(r"[./]", plain) if (w := _words(part))]
    while len(parts) > 1 and parts[0] in _SPACES:
        parts = parts[1:]
    if len(parts) > 1 and parts[-1] == "value":
        parts = parts[:-1]
    return Header(str(text), " ".join(parts), parts[-1] if parts else "", brackets)


def _words(text: str) -> str:
    text = re.sub(r"([a-z0-9])([A-Z][a-z])", r"\1 \2", text)
    text = re.sub(r"([a-z]{2,})([A-Z])", r"\1 \2", text)
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def _kind(words: str, role: str) -> tuple[str, str]:
    """('params', 'non-embedding') from 'non embedding params'."""
    for pattern, kind in {"N": _KINDS, "C": _FLOPS}.get(role, ()):
        if re.search(pattern, words):
            rest = re.sub(r"\s+", " ", re.sub(pattern, " ", words)).strip()
            return rest or {"N": "params", "C": "flops"}[role], kind
    return (re.sub(r"\btotal\b ?", "", words).strip(), "") if role in "DC" else (words, "")


def _kind_in(head: Header, role: str) -> str:
    """The kind that a header names anywhere: 'N (non-embedding)', 'params_no_embed'."""
    return next((k for text in (head.words, *map(_words, head.brackets)) if (k := _kind(text, role)[1])), "")


def _trailing(words: str, role: str) -> tuple[str, float, str]:
    """('params', 1e9, 'billions') from 'params in billions', 'billions of params', 'params b', 'params 1e9'."""
    found = re.fullmatch(rf"(.+?)(?: in)? ({'|'.join(units.WORDS)}|1e\d+)", words)
    if found:
        text = found[2]
        return found[1], units.WORDS.get(text) or float(text), text
    found = re.fullmatch(rf"({'|'.join(w for w in units.WORDS if len(w) > 2)})(?: of)? (.+)", words)
    if found:
        return found[2], units.WORDS[found[1]], found[1]
    if role == "N" and (found := re.fullmatch(r"([kmb])params", words)):
        return "params", units.WORDS[found[1]], found[1]
    amount = role == "C" and re.search(r"\b(total|train|training|pretraining)\b", words)  # a bare "tflops" is a rate
    if amount and (found := re.fullmatch(rf"((?:\w+ )*)({'|'.join(units.SI)})flops?((?: \w+)*)", words)):
        return f"{found[1]}flops{found[3]}", units.SI[found[2]], found[2] + "flop"
    return words, 1.0, ""


def _unit(head: Header, role: str, given: object = None) -> tuple[float, str]:
    """The scale of a column: what the user says, else its header. RunsError where the header's unit is not known."""
    if given is not None:
        try:
            factor, text = units.factor_of(given, role)
        except ValueError as e:
            raise RunsError(f'units: {e}. Write a factor (1e9), "B", "T", "1e21", "PF-days", "bits".') from None
        return factor, text
    factors = {}
    for text in head.brackets:
        found = units.bracket(text, role)
        if found is not None:
            factors[text] = found
        elif role in INPUTS and not _comment(text):
            raise RunsError(
                f"column {head.text!r}: the unit {text!r} is not one of {role} that is known here. Say what one is "
                f"worth: units={{{role!r}: 1e9}} (1 where the cells are plain numbers), or give another column."
            )
    _, factor, text = _trailing(head.words, role) if role in INPUTS else ("", 1.0, "")
    if text:
        factors[text] = factor
    scales = {f for f in factors.values() if f != 1.0}
    if len(scales) > 1:
        raise RunsError(
            f"column {head.text!r} states two units ({', '.join(factors)}). Say which one: units={{{role!r}: 1e9}}."
        )
    text = next((t for t, f in factors.items() if f != 1.0), next(iter(factors), ""))
    if role not in INPUTS and not text and head.brackets:
        text = head.brackets[0]  # "loss (bits per byte)": kept as its unit, not converted
    return next(iter(scales), 1.0), text


def _comment(text: str) -> bool:
    """Words in brackets that say what is counted, not in which unit."""
    said = (
        r"non|no|embed\w*|emb|total|active|activated|trainable|est|estimated|approx\w*|count|number|of|the|params?|"
        r"parameters?|tokens?|flops?|6nd|exact|reported|training|train|seen|unique|incl\w*|excl\w*|with|without|model"
    )
    return all(re.fullmatch(said, w) for w in _words(text).split())


def _rank(head: Header, role: str) -> tuple[int, str] | None:
    """(rank, kind) of a header for a role by its name; None where it has none."""
    if head.text.strip() in EXACT and head.text.strip() == role:
        return 0, ""
    inside = _kind_in(head, role)
    for words in dict.fromkeys((head.words, head.tail)):
        base, _, scaled = _trailing(words, role) if role in INPUTS else (words, 1.0, "")
        base, kind = _kind(base, role)
        kind = kind or inside
        if role in EXACT and base == role.lower() and (scaled or kind or head.brackets or len(role) > 1):
            return 1, kind
        for rank, aliases in enumerate(ALIASES.get(role, ())):
            if base in aliases.split(", "):
                return rank + 2, kind
    return None


def resolve(
    headers: Sequence[str],
    columns: Mapping[str, str | None] | None = None,
    given_units: Mapping[str, object] | None = None,
    params_kind: str | None = None,
    flops_kind: str | None = None,
    numeric: Callable[[str, str], bool] = lambda header, role: True,
) -> dict[str, Column]:
    """Role -> Column. Raises RunsError: an unknown column, an unknown role's unit, or two columns of equal standing.

    ``numeric(header, role)`` says whether a column holds numbers at all.
    """
    heads = [header(h) for h in headers]
    columns, given_units = dict(columns or {}), dict(given_units or {})
    found: dict[str, Column] = {}
    for role, name in columns.items():
        if name is not None:
            head = _given(role, name, heads)
            kind, logged = _kind_in(head, role), _perplexed(head, role)
            found[role] = Column(role, head.text, how="given", kind=kind, perplexity=logged)
    _no_header_twice(found)
    taken = {c.header for c in found.values()}
    one_input = "x" in columns or "y" in columns
    for role in [r for r in (*INPUTS, "P", "loss", "loss_se", "error", *LABELS, *HELPERS) if r not in columns]:
        if one_input and role not in (*LABELS, "run", "step"):
            continue
        if role == "error" and "loss" in found:
            continue
        free = [h for h in heads if h.text not in taken]
        if role not in (*LABELS, *HELPERS):
            free = [h for h in free if not _candidate(h, role) or numeric(h.text, role)]
        column = _search(role, free, {"N": params_kind, "C": flops_kind}.get(role))
        if column:
            found[role] = column
            taken.add(column.header)
    if not {*INPUTS, "loss", "error", "x", "y", "d_model"} & set(found) and {"x", "y"} <= set(headers) - taken:
        found |= {k: Column(k, k, how="exact name") for k in ("x", "y") if k not in columns}
    return _with_units(found, heads, given_units)


def _given(role: str, name: str, heads: Sequence[Header]) -> Header:
    """The header the user means: as written, else the same but for case, spaces and unit."""
    for same in (lambda h: h.text == name, lambda h: h.text.strip().casefold() == str(name).strip().casefold()):
        exact = [h for h in heads if same(h)]
        if len(exact) == 1:
            return exact[0]
    close = [h for h in heads if h.words and h.words == header(name).words]
    if len(close) == 1:
        return close[0]
    if close:
        raise RunsError(
            f"columns: {role!r} = {name!r} could be {listed(repr(h.text) for h in close)}. Write it in full."
        )
    raise RunsError(
        f"columns: the table has no column {name!r} (for {role}).{hint(str(name), [h.text for h in heads])}"
    )


def _no_header_twice(found: Mapping[str, Column]) -> None:
    seen: dict[str, str] = {}
    for role, column in found.items():
        if column.header in seen:
            raise RunsError(f"columns: {column.header!r} is given for both {seen[column.header]} and {role}.")
        seen[column.header] = role


def _candidate(head: Header, role: str) -> bool:
    return _rank(head, role) is not None or (role in CONTAINS and bool(re.search(CONTAINS[role], head.words)))


def _search(role: str, heads: Sequence[Header], kind: str | None) -> Column | None:
    """The best header for a role among those left, by the precedence above."""
    ranked = [(r, h) for h in heads if (r := _rank(h, role)) is not None]
    if kind and (asked := [(r, h) for r, h in ranked if r[1] == kind]):
        ranked = asked
    elif kind and kind != "unknown":
        ranked = [(r, h) for r, h in ranked if r[1] in ("", kind)]
    how = {0: "exact name", 1: "exact name with a unit"}
    if ranked:
        best = min(r[0] for r, _ in ranked)
        first = [(r, h) for r, h in ranked if r[0] == best]
        others = tuple(sorted(h.text for r, h in ranked if r[0] != best))
        if len(first) > 1 and role in (*LABELS, *HELPERS):
            order = ", ".join(ALIASES.get(role, ())).split(", ")
            first.sort(key=lambda rh: (order.index(rh[1].words) if rh[1].words in order else 99, rh[1].text))
            others = (*sorted(h.text for _, h in first[1:]), *others)
        elif len(first) > 1:
            _ambiguous(role, [h for _, h in first])
        rank, head = first[0]
        return Column(role, head.text, how=how.get(rank[0], "alias"), kind=rank[1], others=others,
                      perplexity=_perplexed(head, role))  # fmt: skip
    if role not in CONTAINS:
        return None
    loose = [h for h in heads if re.search(CONTAINS[role], h.words) and not re.search(NOT_CONTAINS[role], h.words)]
    if len(loose) > 1:
        _ambiguous(role, loose)
    return Column(role, loose[0].text, how="word in the header") if loose else None


def _ambiguous(role: str, heads: Sequence[Header]) -> None:
    names = sorted(h.text for h in heads)
    kinds = {k for h in heads if (k := _kind_in(h, role))}
    also = ""
    if kinds and role in ("N", "C"):
        option = "params_kind" if role == "N" else "flops_kind"
        also = f" or {option}={sorted(kinds)[0]!r}"
    raise RunsError(
        f"{role} could be {' or '.join(repr(n) for n in names[:6])}{' ...' if len(names) > 6 else ''}. "
        f"Choose: columns={{{role!r}: {names[0]!r}}}{also}; columns={{{role!r}: None}} uses none of them."
    )


def _perplexed(head: Header, role: str) -> bool:
    return role == "loss" and bool(re.search(r"\b(ppl|perplexity)\b", head.words))


def _with_units(found: dict[str, Column], heads: Sequence[Header], given: Mapping[str, object]) -> dict[str, Column]:
    by_text = {h.text: h for h in heads}
    for key in given:
        if key not in found and key not in by_text:
            names = [*found, *by_text]
            raise RunsError(f"units: {key!r} is neither a role of this table nor a header.{hint(str(key), names)}")
    out = {}
    for role, column in found.items():
        if role in (*LABELS, *HELPERS):
            out[role] = column
            continue
        said = given.get(role, given.get(column.header))
        if role == "loss" and str(said).casefold() in ("ppl", "perplexity"):
            out[role] = replace(column, unit="perplexity", perplexity=True)
            continue
        factor, text = _unit(by_text[column.header], role, said)
        out[role] = replace(column, unit=text, factor=factor)
    return out
