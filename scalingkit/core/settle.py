"""Settle: load NumPyro whole before one of its submodules is asked for.

ArviZ puts a lazily loaded ``numpyro`` into ``sys.modules``. The first ``import numpyro.distributions`` then runs the
package in the middle of importing the submodule, which is made twice; the second copy lacks its own submodules, and
``numpyro.factor`` fails. Touching an attribute first loads the package whole. Every folder that needs NumPyro imports
this module before anything else.
"""

from __future__ import annotations

import numpyro

VERSION = numpyro.__version__

import numpyro.distributions as dist  # noqa: E402  (only now is it safe)

__all__ = ["VERSION", "dist"]
