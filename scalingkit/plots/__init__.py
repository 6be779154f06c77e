"""Floor 6: seaborn and matplotlib; Dataset in, Axes out."""

from scalingkit.plots.allocation import allocation
from scalingkit.plots.calibration import influence, pit
from scalingkit.plots.plane import plane
from scalingkit.plots.posterior import forest, prior_posterior, ridges
from scalingkit.plots.predictive import curves, fit_against_data, residuals
from scalingkit.plots.theme import theme

__all__ = [
    "allocation", "curves", "fit_against_data", "forest", "influence", "pit", "plane", "prior_posterior", "residuals",
    "ridges", "theme",
]  # fmt: skip
