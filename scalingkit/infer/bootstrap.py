"""Bootstrap: which data a refit sees. Rows, whole groups, or residuals with random signs.

    rows    w* ~ Multinomial(n; 1/n)                                runs are independent
    groups  the same over the G labels of a column                  runs of one group share what went wrong
    wild    t(y*) = t(f) + s_g (t(y) - t(f)),  E s = 0, E s**2 = 1  the design stays as it was; signs shared in a group

Signs are Rademacher's, or Webb's six points for fewer than 12 groups, where 2**G sign patterns would be too few.
Each function returns arrays of shape (bootstrap, run). Sources: Cameron, Gelbach and Miller 2008; Webb 2014.
"""

from __future__ import annotations

import numpy as np

RESAMPLES = ("rows", "groups", "wild")
WEBB = np.sqrt(np.array([1.5, 1.0, 0.5, 0.5, 1.0, 1.5])) * np.array([-1, -1, -1, 1, 1, 1])


def weights(rng: np.random.Generator, count: int, groups: np.ndarray) -> np.ndarray:
    """How often each row is drawn. ``groups``: integer label per row (0..G-1); rows that are drawn together share one."""
    n = int(groups.max()) + 1
    drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=count)
    return drawn[:, groups].astype(float)


def signs(rng: np.random.Generator, count: int, groups: np.ndarray) -> np.ndarray:
    """The factor s by which each row's residual is multiplied."""
    n = int(groups.max()) + 1
    points = WEBB if n < 12 else np.array([-1.0, 1.0])
    return rng.choice(points, size=(count, n))[:, groups]
