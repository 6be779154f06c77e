"""Floor 0: the vocabulary. No sampling, no plots, no files."""
