"""Floor 3: what these runs can tell, and which to add."""
