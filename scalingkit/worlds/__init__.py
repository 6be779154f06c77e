"""Floor 1: one file per simulator, solvable model or toy trainer."""
