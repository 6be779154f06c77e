"""Write data/simulated_corpora.csv: the table that stands in where no public one is to be had. Simulated, seeded.

python tools/simulated_table.py data/simulated_corpora.csv
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np
import pandas as pd

from scalingkit.core import runs
from scalingkit.worlds import corpora

SEED = 20
LABELS = ("simulated-books", "simulated-code", "simulated-web")


def table() -> pd.DataFrame:
    """Three corpora, seven sizes, four tokens-per-parameter levels; constants and noise of the world's own example."""
    design = corpora.spread(LABELS, np.geomspace(2e7, 5e9, 7).round(-4), (5.0, 20.0, 80.0, 320.0))
    made = corpora.world.simulate(jax.random.key(SEED), design, **corpora.world.example["theta"])
    frame = runs.to_frame(made.drop_vars("mean_loss"))
    columns = {"run": "run", "corpus": "corpus", "N": "N", "D": "D", "loss": "loss"}
    frame = frame.reset_index()[list(columns)]
    return frame.assign(loss=frame["loss"].round(5))


if __name__ == "__main__":
    table().to_csv(Path(sys.argv[1]), index=False)
