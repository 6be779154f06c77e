"""Floor 6: seaborn and matplotlib; Dataset in, Axes out."""

from scalingkit.plots.allocation import allocation
from scalingkit.plots.calibration import influence, pit
from scalingkit.plots.identified import off_ray, spectrum, suggested
from scalingkit.plots.plane import plane
from scalingkit.plots.posterior import forest, prior_posterior, ridges
from scalingkit.plots.predictive import curves, fit_against_data, residuals
from scalingkit.plots.theme import theme

__all__ = [
    "allocation", "curves", "fit_against_data", "forest", "influence", "off_ray", "pit", "plane", "prior_posterior", "residuals",
    "ridges", "spectrum", "suggested", "theme",
]  # fmt: skip
