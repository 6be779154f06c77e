"""Floor 5: one file per source paper."""
