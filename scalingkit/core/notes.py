"""Notes: coded warnings with a severity and the name of what they are about.

Every answer of the house carries its notes: in text, in ``attrs["notes"]`` (JSON) and in ``--json``. A code is spelled
once, in CODES, with what it means and what to do; the docs page of codes is made from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["info", "warning", "error"]

CODES: dict[str, str] = {
    "rows-quarantined": "Rows were set aside and not used; the quarantine table gives a reason for each.",
    "compute-mismatch": "C and 6 N D differ by more than a factor 2 in some rows: the parameter or FLOP convention is not 6ND.",
    "compute-completed": "Some rows lacked one of N, D and C; it was computed from the other two by C = 6 N D.",
    "unit-suspect": "A value stands 1000-fold away from its column, or a whole column is too small for its unit: check the unit.",
    "size-counted": "N was counted from the width and depth of a plain decoder; gated or grouped layers differ.",
    "no-outcome": "No column was found for the loss or another outcome; the table can be designed from, not fitted.",
    "checkpoints-dropped": "Earlier checkpoints of runs were set aside; checkpoints='all' keeps them.",
    "checkpoints-kept": "Rows with the same trajectory are checkpoints of one run: not independent observations.",
    "checkpoints-unclear": "Some rows may be checkpoints of one run, but the table does not name its runs.",
    "label-missing": "Some rows have no label; they are grouped as '(none)'.",
    "perplexity-logged": "The loss is the natural logarithm of a perplexity column.",
    "unfinished-runs": "Some runs are marked as crashed, failed or running; their last logged row was used.",
    "starts-disagree": "Few of the optimiser's starts reached the best minimum; a better one may exist. Raise starts.",
    "not-converged": "The optimiser stopped where the objective still falls. Do not use the values.",
    "ridge": "The data leave a combination of parameters nearly free; the named ones trade against each other.",
    "no-effect": "A parameter changes no prediction: its term has vanished, or its input never varies in these runs.",
    "no-interior-optimum": "At some draws the law has no compute-optimal size inside the window that was searched.",
    "beyond-runs": "The answer lies far beyond the runs it was learnt from; its interval assumes that the law holds there.",
    "not-identified": "The runs leave a combination of parameters free; its value comes from the prior. Add the named run.",
    "prior-dominated": "The posterior of a parameter is hardly narrower than its prior: the prior sets it.",
    "right-censored": "Some outcomes are only known to lie above a bound; a likelihood must say so.",
    "stopping-rule": "The number of samples was not fixed beforehand; ratios of counts are biased.",
    "mixed-conventions": "One column holds numbers of two kinds; they were told apart, not averaged.",
    "copied-replicates": "Some replicates are exact copies of others and carry no information of their own.",
    "constants-only": "The source prints fitted constants; the measured points behind them are not public.",
    "suspect-values": "The values contradict what the column is said to be; look before using them.",
    "old-version": "A package is missing or older than the oldest version that works; install again.",
    "float32": "JAX runs in float32, where condition numbers and large N, D and C cannot be trusted.",
    "data-missing": "A public table is not to be had here as it is; the catalogue says how to get it.",
    "claim-differs": "A number that is claimed was not found again.",
    "simulated-data": "The table is simulated: what it shows is how the method works, nothing about real models.",
    "divergences": "Draws diverged: the sampler cannot follow the posterior in the named parameters, and their intervals are too short.",
    "not-mixed": "The chains do not agree or hold too few effective draws; the numbers are not to be used.",
    "draws-thinned": "The answer is so large that evenly spaced draws were used, not all.",
    "one-group": "A pooled label has one value only; nothing can be learnt about the spread between groups.",
    "check-statistic": "A statistic of the residuals is unlike what the model produces; the law or its noise is wrong there.",
    "check-pit": "Predictions are not calibrated: PIT values are not uniform. The text says too narrow, too wide or shifted.",
    "check-trend": "Residuals depend on an axis of the design: the law has another shape there. Try another law.",
    "influential-runs": "A few runs decide the answer. Look at them; fit with and without, or with LogStudentT.",
    "loo-unreliable": "PSIS k-hat above 0.7: the leave-one-out score of these runs cannot be trusted. Use exact refits.",
    "approximate": "The posterior is an approximation; its intervals have not been checked against a sampler.",
}


@dataclass(frozen=True)
class Note:
    """``code`` (a key of CODES), ``severity``, ``about`` (a parameter, column, row or group), ``text`` (one sentence)."""

    code: str
    severity: Severity
    about: str
    text: str

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"note code {self.code!r} is not in scalingkit.core.notes.CODES: spell it there first.")

    def __str__(self) -> str:
        return f"{self.severity} [{self.code}] {self.about}: {self.text}"


def dump(notes: Iterable[Note]) -> str:
    """JSON text for ``attrs["notes"]``."""
    return json.dumps([asdict(n) for n in notes])


def of(thing: Any) -> list[Note]:
    """The notes in the attrs of a Dataset, DataTree or mapping."""
    attrs = getattr(thing, "attrs", thing)
    return [Note(**n) for n in json.loads(attrs.get("notes", "[]"))]


def add(thing: Any, *notes: Note) -> None:
    """Append notes to the attrs of a Dataset or DataTree that the caller owns."""
    thing.attrs["notes"] = dump([*of(thing), *notes])
