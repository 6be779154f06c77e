"""geometry: the posterior as a potential over R^p, and back. What samplers, modes and approximations stand on.

    U(z) = -log p(y, theta(z)) - log |d theta / dz|       theta = T(z), T from the support of each site's prior

Compiled once for each (model, shapes of the table) and found again: the table is an argument, not a constant.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import numpy as np
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer.util import potential_energy

from scalingkit.infer.model import Model
from scalingkit.infer.prepare import Data

Sites = dict[str, Any]
KEPT = 64  # models whose compiled functions are kept
BATCH = 256  # draws worked on side by side
PRIOR_DRAWS = 500  # always as many, so that one compiled function serves all who ask


def potential(model: Model, z: Sites, data: Data) -> Any:
    """U at one point."""
    return potential_energy(model, (data,), {}, z)


@lru_cache(KEPT)
def slope(model: Model) -> Any:
    """Compiled (z, data) -> (U, dU/dz)."""
    return jax.jit(jax.value_and_grad(lambda z, data: potential(model, z, data)))


def transforms(model: Model, data: Data) -> dict[str, Any]:
    """T of every sampled site. Supports never depend on other sites' values here."""
    trace = handlers.trace(handlers.seed(model, jax.random.key(0))).get_trace(data, observed=False)
    return {k: biject_to(s["fn"].support) for k, s in trace.items() if _sampled(k, s, model)}


@lru_cache(KEPT)
def prior(model: Model) -> Any:
    """Compiled (keys, data) -> (z of each draw of the prior, every site and the outcome)."""

    def one(key: Any, data: Data) -> tuple[Sites, Sites]:
        trace = handlers.trace(handlers.seed(model, key)).get_trace(data, observed=False)
        z = {k: biject_to(s["fn"].support).inv(s["value"]) for k, s in trace.items() if _sampled(k, s, model)}
        return z, {k: s["value"] for k, s in trace.items() if s["type"] in ("sample", "deterministic")}

    return jax.jit(lambda keys, data: jax.vmap(lambda k: one(k, data))(keys))


@lru_cache(KEPT)
def sites(model: Model) -> Any:
    """Compiled (z of many draws, data) -> every sampled and deterministic site, the outcome left out."""

    def one(z: Sites, data: Data) -> Sites:
        trace = _at(model, z, data, observed=False)
        return {
            k: s["value"] for k, s in trace.items() if s["type"] in ("sample", "deterministic") and k != model.outcome
        }

    return jax.jit(lambda z, data: jax.lax.map(lambda one_z: one(one_z, data), z, batch_size=BATCH))


@lru_cache(KEPT)
def outcomes(model: Model) -> Any:
    """Compiled (theta of many draws, keys, data) -> (replicated outcome, pointwise log likelihood), each (draw, run)."""

    def one(theta: Sites, key: Any, data: Data) -> tuple[Any, Any]:
        fixed = handlers.substitute(handlers.seed(model, key), data=theta)
        y = handlers.trace(fixed).get_trace(data)[model.outcome]
        return y["fn"].sample(key), y["fn"].log_prob(y["value"])

    def many(theta: Sites, keys: Any, data: Data) -> tuple[Any, Any]:
        return jax.lax.map(lambda a: one(a[0], a[1], data), (theta, keys), batch_size=BATCH)

    return jax.jit(many)


def from_prior(model: Model, data: Data, seed: int) -> tuple[Sites, Sites]:
    """PRIOR_DRAWS draws: z, and every site with the outcome."""
    return prior(model)(jax.random.split(jax.random.key(seed), PRIOR_DRAWS), data)


def starts(model: Model, data: Data, n: int, seed: int) -> list[dict[str, np.ndarray]]:
    """``n`` (at most PRIOR_DRAWS) points of R^p, drawn from the prior."""
    z, _ = from_prior(model, data, seed)
    return [{k: np.asarray(v)[i] for k, v in z.items()} for i in range(n)]


def _at(model: Model, z: Sites, data: Data, observed: bool) -> Any:
    to = transforms(model, data)
    theta = {k: to[k](v) for k, v in z.items()}
    fixed = handlers.substitute(handlers.seed(model, jax.random.key(0)), data=theta)
    return handlers.trace(fixed).get_trace(data, observed=observed)


def _sampled(name: str, site: Any, model: Model) -> bool:
    return site["type"] == "sample" and not site["is_observed"] and name != model.outcome
