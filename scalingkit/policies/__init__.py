"""Floor 1: one file per procedure that spends compute."""
