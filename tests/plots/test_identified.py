"""Pictures of what runs can tell: every direction named, free ones told apart, suggested runs within the frame."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from scalingkit.core import zoo
from scalingkit.design import grids
from scalingkit.design.identify import identify
from scalingkit.plots import off_ray, spectrum, suggested

LAW = zoo.get("chinchilla", "laws")
SIZES = np.geomspace(1e8, 1e10, 12)


@pytest.fixture(scope="module")
def known():
    made = {"ray": grids.ray(SIZES), "spread": grids.spread(SIZES, (4, 20, 100))}
    return {k: identify(LAW, d, theta=LAW.truth, noise=0.004, profiles=False) for k, d in made.items()}


def test_spectrum_names_directions_and_tells_free_ones_apart(known):
    for name, colours in (("ray", 2), ("spread", 1)):
        ax = spectrum(known[name])
        assert len({p.get_facecolor() for p in ax.patches}) == colours
        said = [" ".join(label.get_text().split()) for label in ax.get_yticklabels()]
        assert said == list(known[name]["words"].values)
        plt.close(ax.figure)


def test_off_ray_draws_the_ray_above_the_spread(known):
    ax = off_ray(known)
    lines = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert lines["ray"][-1] > 5 * lines["spread"][-1] and ax.get_xscale() == "log"
    plt.close(ax.figure)


def test_suggested_runs_are_inside_the_frame():
    mean = np.asarray(LAW(**LAW.truth, N=SIZES, D=20 * SIZES))
    runs = grids.ray(SIZES).assign(loss=("run", mean))
    ax = suggested(runs, grids.design([1e7], [1e12]))
    assert ax.get_xlim()[0] < 1e7 and ax.get_ylim()[1] > 1e12 and "1 suggested" in ax.get_title()
    plt.close(ax.figure)
