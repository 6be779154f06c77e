"""Floor 4: what to do, at what risk."""
