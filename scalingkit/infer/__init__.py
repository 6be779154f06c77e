"""Floor 2: the only folder that samples."""
