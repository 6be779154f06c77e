"""Floor 1: one file per estimator."""
