"""Verdict: the identifiability report as one paragraph that a person reads and acts on."""

from __future__ import annotations

import numpy as np
import xarray as xr

from scalingkit.core.law import Law
from scalingkit.core.names import PARAM, RUN, TRAJECTORY
from scalingkit.design import words
from scalingkit.design.bands import FARTHEST

_OPENING = {
    "data": "The {n} runs determine {names}",
    "mostly data": "{names} {come} mostly from the data",
    "leans on the prior": "{names} {lean} on the prior",
    "prior": "{names} {is_} set by the prior",
}
_SMALL = 0.02  # a gain in contraction that is not worth a run
_MENDED = 0.5  # contraction of the weakest direction from which nothing is free
_MISSED = 1.5  # a miss of the dearest decade by so many times the noise


def dependent(runs: xr.Dataset | None) -> str:
    """A sentence where rows are checkpoints of fewer trajectories; "" where they are not."""
    if runs is None or TRAJECTORY not in runs.coords:
        return ""
    n, many = runs.sizes[RUN], len(np.unique(runs[TRAJECTORY].values.astype(str)))
    if many >= 0.7 * n:
        return ""
    return (
        f"The {n} rows are checkpoints of {many} training runs and not independent: all this is too sure of itself by a "
        f"factor of up to {np.sqrt(n / many):.2g} in the errors."
    )


def paragraph(part: xr.Dataset, law: Law, n: int) -> str:
    """One paragraph: what the data determine, what the prior does, what is free, how far it holds, what to add."""
    said = [
        _identified(part, law),
        _parameters(part, n),
        _free(part),
        _spread(part),
        _extrapolation(part),
        _decade(part),
    ]
    return " ".join(s for s in [*said, _add(part, law)] if s)


def over_groups(parts: list[xr.Dataset], names: list[str], said: list[str], dim: str) -> str:
    """The paragraph for several groups: how many are identified, then the weakest of them in full."""
    free = [n for n, p in zip(names, parts, strict=True) if not int(p["identified"])]
    weakest = int(np.argmin([float(p["direction_contraction"][0]) for p in parts]))
    if not free:
        head = f"All {len(names)} groups ({dim}) are identified. The weakest is {names[weakest]!r}: "
    else:
        which = "no group" if len(free) == len(names) else f"{len(names) - len(free)} of {len(names)} groups"
        head = f"By {dim}, {which} identified: {words.listed(free)} not identified. The weakest is {names[weakest]!r}: "
        head = head.replace("no group identified: ", "no group is identified: ")
    return head + said[weakest]


def swaying(k: xr.DataArray, limit: float = 0.7, most: int = 5) -> list[str]:
    """One sentence naming the runs whose PSIS k-hat is above the limit; none where there are none."""
    high = k.sortby(k, ascending=False)
    names = [str(r) for r in high[RUN].values[high.values > limit]]
    if not names:
        return []
    if len(names) > k.size / 2:
        return [f"PSIS cannot be trusted for these draws (k-hat above {limit:g} for {len(names)} of {k.size} runs)."]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    sway = "sways" if len(names) == 1 else "sway"
    return [
        f"{words.listed(names[:most])}{more} {sway} the fit by {'itself' if len(names) == 1 else 'themselves'} (k-hat above {limit:g})."
    ]


def free_names(part: xr.Dataset) -> str:
    """Names of the parameters in the weakest direction."""
    v = np.abs(part["vector"].values[0])
    return ", ".join(part[PARAM].values[v >= 0.25 * v.max()])


def _identified(part: xr.Dataset, law: Law) -> str:
    if int(part["identified"]):
        return f"Identified: the {law.name} law's parameters are all informed by these runs."
    return f"Not identified: these runs leave a combination of the {law.name} law's parameters free."


def _parameters(part: xr.Dataset, n: int) -> str:
    """ "The 20 runs determine E (0.99) and A (0.95); beta is set by the prior (contraction 0)." """
    said, first = [], True
    for status, form in _OPENING.items():
        names = part[PARAM].values[part["status"].values == status]
        if not names.size:
            continue
        values = [words.contraction(float(part["contraction"].sel({PARAM: k}))) for k in names]
        listed = words.listed(
            [
                f"{k} ({'contraction ' if first and i == 0 else ''}{v})"
                for i, (k, v) in enumerate(zip(names, values, strict=True))
            ]
        )
        if status == "prior":
            alike = len(set(values)) == 1
            listed = words.listed(list(names)) if alike else listed
            form += f" (contraction {values[0]})" if alike else ""
        many = names.size > 1
        said.append(
            form.format(n=n, names=listed, come="come" if many else "comes", lean="lean" if many else "leans",
                        is_="are" if many else "is")
        )  # fmt: skip
        first = False
    return "; ".join(said) + "."


def _free(part: xr.Dataset) -> str:
    along, said, effect = (part[k].values for k in ("direction_contraction", "words", "effect"))
    noise = float(part["noise"])
    if int(part["identified"]):
        c = words.contraction(float(along[0]))
        return f"The least certain combination is: {said[0]} (contraction {c})."
    free = np.flatnonzero(along < 0.5)
    number = {
        1: "One combination is",
        2: "Two combinations are",
        3: "Three combinations are",
        4: "Four combinations are",
    }
    head = number.get(free.size, f"{free.size} combinations are") + " free"
    text = f"{head}; the freest: {said[0]} changes no run's outcome by more than {_percent(effect[0])}"
    return f"{text} (noise {_percent(noise)}; contraction {words.contraction(float(along[0]))})."


def _spread(part: xr.Dataset) -> str:
    if "sd_log_tpp" not in part:
        return ""
    sd, kappa = float(part["sd_log_tpp"]), float(part["kappa"].sel(block="scale"))
    text = f"Tokens per parameter spread by {sd:.2f} (sd of the log)"
    if np.isfinite(kappa):
        text += f", condition number of the scale coefficients {words.short(kappa)}"
    elif not np.isnan(kappa):
        text += ", which leaves the scale coefficients exactly collinear"
    if "tpp_threshold" in part and sd < float(part["tpp_threshold"]):
        text += f"; a spread of {float(part['tpp_threshold']):.2f} would hold it under 1000"
    return text + "."


def _extrapolation(part: xr.Dataset) -> str:
    within = part.attrs["within"]
    known = [(str(w), float(r)) for w, r in zip(part["way"].values, part["reach"].values, strict=True)]
    safe = [f"{words.times(r, FARTHEST)} in {w}" for w, r in known if r > 1]
    unsafe = [w for w, r in known if r <= 1]
    if not safe:
        text = f"Beyond the dearest run the loss is not known to {within:.0%} in any direction"
    else:
        text = f"If the law holds beyond the dearest run, the loss is known to {within:.0%} up to {words.listed(safe)}"
        text += f", but not beyond it in {' or '.join(unsafe)}" if unsafe else ""
    return f"{text}{_off_ray(part)}."


def _off_ray(part: xr.Dataset) -> str:
    """How much wider the runs alone leave the loss at four times more or fewer tokens per parameter, where it is 10x."""
    if "band_data" not in part:
        return ""
    low, on, high = (float(part["band_data"][i]) for i in (1, 2, 3))
    ratio = max(low, high) / on if on > 0 else np.nan
    if not ratio > 10:
        return ""
    said = f"{words.short(ratio)} times" if ratio < 1e6 else "more than a million times"
    return f"; by the runs alone its error at four times more or fewer tokens per parameter is {said} that at their own"


def _decade(part: xr.Dataset) -> str:
    error, n = float(part["decade_error"]), int(part["decade_runs"])
    if not np.isfinite(error):
        return ""
    runs = "run" if n == 1 else f"{n} runs"
    text = f"Fitted without the dearest decade, the law misses its {runs} by {_percent(error)} (noise {_percent(float(part['noise']))})"
    far = bool((part["reach"] > 1).any())
    if n > 2 and error > _MISSED * float(part["noise"]) and far:
        text += ", more than noise alone: the reach above may be too hopeful"
    return f"{text}."


def _add(part: xr.Dataset, law: Law) -> str:
    free = not int(part["identified"])
    before, after = float(part["direction_contraction"][0]), float(part["add_contraction"][-1])
    each = [_run(part.isel(add=i), law) for i in range(part.sizes["add"])]
    runs = [f"{r}{f', {each.count(r)} times' if each.count(r) > 1 else ''}" for r in dict.fromkeys(each)]
    outcome = f"contraction of the weakest combination from {words.contraction(before)} to {words.contraction(after)}"
    if after - before < _SMALL:
        return _of_no_use(part, each, free, after)
    if len(each) > 1:
        lead = f"To mend it, add {len(each)} runs:" if free else "The runs that would help most:"
        if free and after < _MENDED:
            lead = f"{len(each)} more runs would not mend it, but help most:"
    else:
        lead = "To mend it, add a run at" if free else "The run that would help most is at"
    return f"{lead} {'; '.join(runs)}: {outcome}."


def _of_no_use(part: xr.Dataset, each: list[str], free: bool, after: float) -> str:
    """What is said where more runs of the sizes so far would change next to nothing."""
    if not free:
        return "No run as dear as the dearest so far would tell much more."
    said = f"{len(each)} more runs" if len(each) > 1 else "One more run"
    return (
        f"{said} no dearer than the dearest so far would not mend it (contraction {words.contraction(after)}): at a noise "
        f"of {_percent(float(part['noise']))} it takes larger runs, less noise or another law."
    )


def _run(one: xr.Dataset, law: Law) -> str:
    """ "N = 5e8, D = 2e11 (400 tokens per parameter, 6e20 FLOP)"."""
    run = ", ".join(f"{k} = {words.short(float(one[f'add_{k}']))}" for k in law.inputs)
    if "add_cost" not in one:
        return run
    tpp = float(one["add_D"]) / float(one["add_N"])
    token = "token" if words.short(tpp) == "1" else "tokens"
    return f"{run} ({words.short(tpp)} {token} per parameter, {words.short(float(one['add_cost']))} FLOP)"


def _percent(x: float) -> str:
    return f"{100 * x:.2g}%" if x >= 1e-5 else "0.001%"
