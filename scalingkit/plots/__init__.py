"""Floor 6: seaborn and matplotlib; Dataset in, Axes out."""
