"""Floor 1: public run tables by name."""
