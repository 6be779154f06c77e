"""Prior: a law's prior as a centre and a spread in the unconstrained coordinates, and draws from it.

u_k = T_k^-1(theta_k),  theta_k ~ prior_k (coefficients at the pivot):  mean and sd of u_k
"""

from __future__ import annotations

from functools import lru_cache

import jax
import numpy as np
import numpyro.distributions as dist

from scalingkit.core.law import Law
from scalingkit.infer.coordinates import Coordinates
from scalingkit.infer.coordinates import of as coordinates

_DRAWS = 20_000


def moments(law: Law) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd (p,) of u under the prior: exact for Normal and LogNormal, else from 20,000 draws at a fixed key."""
    return _moments(coordinates(law))


def draws(law: Law, n: int, seed: int = 0) -> np.ndarray:
    """u (n, p) from the prior."""
    c = coordinates(law)
    keys = jax.random.split(jax.random.key(seed), len(c.names))
    columns = [c.to[k].inv(law.params[k].prior.sample(key, (n,))) for k, key in zip(c.names, keys, strict=True)]
    return np.stack([np.asarray(x) for x in columns], -1)


@lru_cache(maxsize=256)
def _moments(c: Coordinates) -> tuple[np.ndarray, np.ndarray]:
    sampled = None
    mean, sd = np.empty(len(c.names)), np.empty(len(c.names))
    for i, k in enumerate(c.names):
        prior = c.law.params[k].prior
        if isinstance(prior, (dist.Normal, dist.LogNormal)):
            mean[i], sd[i] = float(prior.loc), float(prior.scale)
            continue
        sampled = draws(c.law, _DRAWS) if sampled is None else sampled
        mean[i], sd[i] = sampled[:, i].mean(), sampled[:, i].std()
    return mean, sd
