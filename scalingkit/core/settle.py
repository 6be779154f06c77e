"""Settle: load NumPyro whole before one of its submodules is asked for.

ArviZ puts a lazily loaded ``numpyro`` into ``sys.modules``. The first ``import numpyro.distributions`` then runs the
package in the middle of importing the submodule, which is made twice; the second copy lacks its own submodules, and
``numpyro.factor`` fails. Touching an attribute first loads the package whole. Every folder that needs NumPyro imports
this module before anything else. A notebook that asked for a submodule before us is mended: what is missing is put back.
"""

from __future__ import annotations

import sys

import numpyro

VERSION = numpyro.__version__

import numpyro.distributions as dist  # noqa: E402  (only now is it safe)


def mend(package: str = "numpyro") -> list[str]:
    """Names of the loaded submodules that their parents had lost, now theirs again."""
    lost = []
    for name, module in sorted(sys.modules.items()):
        parent, _, child = name.rpartition(".")
        if name.startswith(package + ".") and not hasattr(sys.modules[parent], child):
            setattr(sys.modules[parent], child, module)
            lost.append(name)
    return lost


mend()

__all__ = ["VERSION", "dist", "mend"]
