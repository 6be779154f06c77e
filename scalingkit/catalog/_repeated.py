"""Repeated sampling: the line that two tables of success counts declare, written once."""

from __future__ import annotations

from scalingkit.catalog._table import Fit


def line(table: str, family: str, a: float, alpha: float, where: str) -> Fit:
    """-log pass@k = a k**-alpha of one family's mean curve, by least squares on the logs."""
    return Fit(
        law="power",
        options={
            "load": {"table": table},
            "where": {"family": family},
            "rename": {"x": "k", "y": "neg_log_pass_at_k"},
            "delta": 1e3,  # no residual is that large: plain least squares on the logs
        },
        expected={"A": a, "alpha": alpha},
        tolerance={"A": 6e-4, "alpha": 6e-4},
        where=where,
    )
