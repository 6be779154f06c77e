"""scalingkit: Bayesian research toolkit for neural scaling laws.

    runs table -> law + pooling + likelihood = Model -> fit -> posterior -> design, decide, plots

Importing it is cheap (PEP 562): JAX, ArviZ and xarray are loaded by the first call that needs them.
"""

from __future__ import annotations

import importlib
from typing import Any

from scalingkit.core.precision import prefer_x64

__version__ = "0.1.0"

prefer_x64()

# public name -> (module, attribute; "" for the module itself)
_PUBLIC = {
    "Card": ("core.card", "Card"),
    "Claim": ("core.card", "Claim"),
    "Source": ("core.card", "Source"),
    "Param": ("core.param", "Param"),
    "Law": ("core.law", "Law"),
    "World": ("core.world", "World"),
    "Estimator": ("core.estimator", "Estimator"),
    "Policy": ("core.policy", "Policy"),
    "get": ("core.zoo", "get"),
    "table": ("core.zoo", "table"),
    "runs": ("core.runs", ""),
    "load": ("catalog", "load"),
    "Model": ("infer.model", "Model"),
    "Shared": ("infer.pooling", "Shared"),
    "Partial": ("infer.pooling", "Partial"),
    "Separate": ("infer.pooling", "Separate"),
    "Crossed": ("infer.pooling", "Crossed"),
    "Nested": ("infer.pooling", "Nested"),
    "Regressed": ("infer.pooling", "Regressed"),
    "LogNormal": ("infer.likelihoods", "LogNormal"),
    "LogStudentT": ("infer.likelihoods", "LogStudentT"),
    "Normal": ("infer.likelihoods", "Normal"),
    "BetaBinomial": ("infer.likelihoods", "BetaBinomial"),
    "Rounded": ("infer.likelihoods", "Rounded"),
    "Censored": ("infer.likelihoods", "Censored"),
    "fit": ("infer.fit", "fit"),
    "predict": ("infer.predict", "predict"),
    "check": ("infer.check", "check"),
    "compare": ("infer.compare", "compare"),
    "pointfit": ("infer.pointfit", "pointfit"),
    "sbc": ("infer.calibrate", "sbc"),
    "coverage": ("infer.calibrate", "coverage"),
    "study": ("infer.manyfits", "study"),
    "Simulated": ("infer.manyfits", "Simulated"),
    "studies": ("infer.studies", ""),
    "save": ("infer.store", "save"),
    "load_tree": ("infer.store", "load_tree"),
    "identify": ("design.identify", "identify"),
    "suggest": ("design.suggest", "suggest"),
    "grids": ("design.grids", ""),
    "allocate": ("decide.allocate", "allocate"),
    "verify": ("papers.verify", "verify"),
    "papers": ("papers", ""),
    "plots": ("plots", ""),
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'scalingkit' has no attribute {name!r}; it has {', '.join(sorted(_PUBLIC))}")
    module, attribute = _PUBLIC[name]
    found = importlib.import_module(f"scalingkit.{module}")
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return sorted(__all__)
