"""Floor 6: Jupyter widgets; Dataset in, view out."""
