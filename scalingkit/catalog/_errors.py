"""What goes wrong with public tables, said for people: what, where, what to do."""

from __future__ import annotations


class CatalogError(RuntimeError):
    """A public table that is not known, not to be had, or not what the registry says it is."""
