"""Priors, before any data: at the middle of each example they expect what a person would."""

from __future__ import annotations

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from scalingkit.core import zoo

LOSS_LAWS = [n for n, law in zoo.systems("laws").items() if law.output == "loss"]
CURVE_LAWS = [n for n, law in zoo.systems("laws").items() if law.output == "y"]


def prior_predictive(law, n=4000):
    """Outcomes (n, runs) on the example's design, coefficients drawn at its pivots."""
    design = law.example_design()
    pivots = law.pivots(design)
    theta = {k: np.asarray(p.prior.sample(jax.random.key(i), (n, 1))) for i, (k, p) in enumerate(law.params.items())}
    for c, (x, e) in law.scales.items():
        theta[c] = theta[c] * pivots[x] ** (theta[e] if isinstance(e, str) else e)
    return np.asarray(law(**{k: v[None, :] for k, v in design.items()}, **theta))


def sane(y, low, median, high):
    """90% of the outcomes in (low, high), and the median over design and prior in ``median``."""
    assert np.all(np.isfinite(y))
    assert np.mean((y > low) & (y < high)) > 0.9, np.quantile(y, [0.05, 0.5, 0.95])
    assert median[0] < np.median(y) < median[1], np.median(y)


@pytest.mark.parametrize("name", LOSS_LAWS)
def test_a_loss_is_expected_between_half_a_nat_and_that_of_an_untrained_model(name):
    sane(prior_predictive(zoo.get(name, "laws")), 0.5, (1.0, 4.5), 12.0)


@pytest.mark.parametrize("name", [n for n in CURVE_LAWS if n != "power"])
def test_an_outcome_of_a_learning_curve_is_expected_of_order_one(name):
    sane(prior_predictive(zoo.get(name, "laws")), 0.05, (0.3, 4.0), 30.0)


def test_the_plain_power_is_expected_within_three_orders():
    # it serves tables of counts, rates and losses alike, whatever their unit
    sane(prior_predictive(zoo.get("power", "laws")), 1e-3, (0.1, 10.0), 1e3)


@pytest.mark.parametrize("name", LOSS_LAWS)
def test_the_published_values_are_not_in_a_tail_of_the_prior(name):
    law = zoo.get(name, "laws")
    pivots = law.pivots(law.example_design())
    for source, values in {**law.published, "example": law.truth}.items():
        for i, (k, p) in enumerate(law.params.items()):
            value = values[k]
            if k in law.scales:
                x, e = law.scales[k]
                value = value * pivots[x] ** -(values[e] if isinstance(e, str) else e)
            draws = np.asarray(p.prior.sample(jax.random.key(i), (20_000,)))
            assert 0.005 < np.mean(draws < value) < 0.995, (str(source), k, value)


def test_a_prior_on_raw_coefficients_would_be_seen():
    law = zoo.get("chinchilla", "laws").with_priors(A=dist.LogNormal(6.0, 1.0))  # log 482, but at the pivot
    with pytest.raises(AssertionError):
        sane(prior_predictive(law), 0.5, (1.0, 4.5), 12.0)
