"""Likelihoods: how an observed outcome y scatters about the law's curve m.

    LogNormal      log y ~ Normal(log m, sigma)
    LogStudentT    log y ~ StudentT(nu, log m, sigma)           nu - 2 ~ Gamma(2, 0.1)
    Normal         y ~ Normal(m, sqrt(se**2 + sigma**2))        se known from a column, sigma the rest
    BetaBinomial   k ~ BetaBinomial(n, m * phi, (1 - m) * phi)  m a probability
    Rounded        y known only to lie in y -+ step/2
    Censored       y or more, where the column says so

Two steps: ``nuisance()`` names the noise parameters and their priors, sampled outside the run plate (inside it there
would silently be one per run); ``observe()`` makes the outcome's distribution for each run inside. Densities are on the
outcome's own scale (Jacobian included), so that pointwise log likelihoods compare between likelihoods.
``sigma_on="log_N"`` makes the noise depend on the design: sigma * exp(sigma_slope * (log N - mean log N)).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import gammaln, log_ndtr
from numpyro.distributions import constraints
from numpyro.distributions.transforms import AffineTransform, ExpTransform

Columns = dict[str, np.ndarray]


class DataError(ValueError):
    """The runs do not have what the model needs; the message says which column, which row and what to do."""


def relative_noise() -> dist.Distribution:
    """Default prior of a log-scale sd: median 1.8%, 95% between 0.1% and 35%."""
    return dist.LogNormal(-4.0, 1.5)


def tails() -> dist.Distribution:
    """Default prior of Student-t degrees of freedom: nu - 2 ~ Gamma(2, 0.1), so that a variance exists."""
    return dist.TransformedDistribution(_Gamma2(2.0, 0.1), AffineTransform(2.0, 1.0, domain=constraints.positive))


def noise_slope() -> dist.Distribution:
    """Default prior of the slope of log sigma in a log input: a factor e in sigma per factor e**4 in the input."""
    return dist.Normal(0.0, 0.25)


class _Noise:
    """What the scale likelihoods share: sigma, perhaps log-linear in a column."""

    sigma_on: str | None
    log_scale = True

    def outcome(self, output: str) -> str:
        return output

    def needs(self) -> tuple[str, ...]:
        return (_column(self.sigma_on),) if self.sigma_on else ()

    def columns(self, get: Any, centres: Mapping[str, float]) -> Columns:
        """Arrays per run that ``observe`` needs; ``centres`` holds the pivots of the fit ('log_N' -> mean log N)."""
        return {"sigma_on": _covariate(self.sigma_on, get) - centres[self.sigma_on]} if self.sigma_on else {}

    def centres(self, get: Any) -> dict[str, float]:
        return {self.sigma_on: float(np.mean(_covariate(self.sigma_on, get)))} if self.sigma_on else {}

    def check(self, y: np.ndarray, columns: Columns) -> str | None:
        if not self.log_scale:
            return None
        return _first(y <= 0, "the outcome must be positive for a likelihood on the log scale")

    def _slope(self) -> dict[str, dist.Distribution]:
        return {"sigma_slope": noise_slope()} if self.sigma_on else {}

    def _sigma(self, nuisance: Mapping[str, Any], columns: Mapping[str, Any]) -> Any:
        sigma = nuisance["sigma"]
        return sigma * jnp.exp(nuisance["sigma_slope"] * columns["sigma_on"]) if self.sigma_on else sigma


@dataclass(frozen=True)
class LogNormal(_Noise):
    """log y ~ Normal(log m, sigma)."""

    sigma: dist.Distribution = field(default_factory=relative_noise)
    sigma_on: str | None = None

    def nuisance(self) -> dict[str, dist.Distribution]:
        return {"sigma": self.sigma, **self._slope()}

    def observe(self, m: Any, nuisance: Mapping[str, Any], columns: Mapping[str, Any]) -> dist.Distribution:
        return dist.LogNormal(jnp.log(m), self._sigma(nuisance, columns))


@dataclass(frozen=True)
class LogStudentT(_Noise):
    """log y ~ StudentT(nu, log m, sigma): a few bad runs do not drag the curve."""

    sigma: dist.Distribution = field(default_factory=relative_noise)
    sigma_on: str | None = None

    def nuisance(self) -> dict[str, dist.Distribution]:
        return {"sigma": self.sigma, "nu": tails(), **self._slope()}

    def observe(self, m: Any, nuisance: Mapping[str, Any], columns: Mapping[str, Any]) -> dist.Distribution:
        t = _Student(nuisance["nu"], jnp.log(m), self._sigma(nuisance, columns))
        return dist.TransformedDistribution(t, ExpTransform())


@dataclass(frozen=True)
class Normal(_Noise):
    """y ~ Normal(m, sqrt(se**2 + sigma**2)).

    ``se`` names the column of known standard errors (None: there is none). ``sigma`` is the prior of the noise over and
    above it, in the outcome's unit (None: the standard errors are all there is).
    """

    se: str | None = None
    sigma: dist.Distribution | None = field(default_factory=lambda: dist.LogNormal(-3.0, 2.0))
    sigma_on: str | None = None
    log_scale = False

    def __post_init__(self) -> None:
        if self.se is None and self.sigma is None:
            raise ValueError("Normal has no noise: give se (a column of standard errors), a prior for sigma, or both.")
        if self.sigma is None and self.sigma_on:
            raise ValueError("Normal(sigma=None) has no sigma that could depend on a column.")

    def needs(self) -> tuple[str, ...]:
        return (*super().needs(), *((self.se,) if self.se else ()))

    def columns(self, get: Any, centres: Mapping[str, float]) -> Columns:
        found = super().columns(get, centres)
        return {**found, "se": get(self.se)} if self.se else found

    def check(self, y: np.ndarray, columns: Columns) -> str | None:
        if not self.se:
            return None
        bad = columns["se"] < 0 if self.sigma is not None else columns["se"] <= 0
        return _first(bad, f"standard errors {self.se!r} must be positive")

    def nuisance(self) -> dict[str, dist.Distribution]:
        return {} if self.sigma is None else {"sigma": self.sigma, **self._slope()}

    def observe(self, m: Any, nuisance: Mapping[str, Any], columns: Mapping[str, Any]) -> dist.Distribution:
        known = columns["se"] if self.se else 0.0
        if self.sigma is None:
            return dist.Normal(m, known)
        rest = self._sigma(nuisance, columns)
        return dist.Normal(m, jnp.sqrt(known**2 + rest**2) if self.se else rest)


@dataclass(frozen=True)
class BetaBinomial(_Noise):
    """k ~ BetaBinomial(n, m * phi, (1 - m) * phi): successes k of trials n, the law giving the probability m.

    ``phi`` is how many trials' worth of agreement there is between runs: large for plain binomial scatter.
    The observed site is named as the column of successes.
    """

    successes: str = "k"
    trials: str = "n"
    phi: dist.Distribution = field(default_factory=lambda: dist.LogNormal(5.0, 1.5))
    sigma_on = None
    log_scale = False

    def outcome(self, output: str) -> str:
        return self.successes

    def needs(self) -> tuple[str, ...]:
        return (self.trials,)

    def columns(self, get: Any, centres: Mapping[str, float]) -> Columns:
        return {"trials": get(self.trials)}

    def check(self, y: np.ndarray, columns: Columns) -> str | None:
        n = columns["trials"]
        bad = (y < 0) | (y > n) | (y != np.round(y)) | (n != np.round(n)) | (n < 1)
        return _first(bad, f"{self.successes!r} and {self.trials!r} must be whole numbers with 0 <= k <= n")

    def nuisance(self) -> dict[str, dist.Distribution]:
        return {"phi": self.phi}

    def observe(self, m: Any, nuisance: Mapping[str, Any], columns: Mapping[str, Any]) -> dist.Distribution:
        # a probability that rounds to 0 or 1 has no density: keep it one part in 1e12 inside
        p = jnp.clip(m, 1e-12, 1 - 1e-12)
        return _Counts(p * nuisance["phi"], (1 - p) * nuisance["phi"], columns["trials"].astype(int))


@dataclass(frozen=True)
class Rounded:
    """y read to the nearest ``step`` (off a figure, or printed with few digits): the mass of y -+ step/2, over step.

    Divided by the step it is the mean density in the interval, comparable with the densities of other likelihoods.
    ``step=None`` finds the step in the data. ``base`` is LogNormal or Normal.
    """

    base: LogNormal | Normal = field(default_factory=LogNormal)
    step: float | None = None

    def __post_init__(self) -> None:
        _gaussian(self.base, "Rounded")
        if self.step is not None and not self.step > 0:
            raise ValueError(f"Rounded(step={self.step}): the step must be positive.")

    def outcome(self, output: str) -> str:
        return self.base.outcome(output)

    def needs(self) -> tuple[str, ...]:
        return self.base.needs()

    def centres(self, get: Any) -> dict[str, float]:
        return {**self.base.centres(get), "step": self.step or find_step(get(None))}

    def columns(self, get: Any, centres: Mapping[str, float]) -> Columns:
        return {**self.base.columns(get, centres), "step": np.asarray(centres["step"])}

    def check(self, y: np.ndarray, columns: Columns) -> str | None:
        lowest = columns["step"] / 2 if self.base.log_scale else -np.inf
        return _first(y <= lowest, "the outcome less half a step must be positive") or self.base.check(y, columns)

    def nuisance(self) -> dict[str, dist.Distribution]:
        return self.base.nuisance()

    def observe(self, m: Any, nuisance: Mapping[str, Any], columns: Mapping[str, Any]) -> dist.Distribution:
        return _Interval(self.base.observe(m, nuisance, columns), columns["step"])


@dataclass(frozen=True)
class Censored:
    """Right-censored: where ``column`` is true the outcome is known only to be at least y.

    The log likelihood of such a run is the log of a probability, P(Y >= y); of the others, a log density.
    """

    column: str = "censored"
    base: LogNormal | Normal = field(default_factory=LogNormal)

    def __post_init__(self) -> None:
        _gaussian(self.base, "Censored")

    def outcome(self, output: str) -> str:
        return self.base.outcome(output)

    def needs(self) -> tuple[str, ...]:
        return (*self.base.needs(), self.column)

    def centres(self, get: Any) -> dict[str, float]:
        return self.base.centres(get)

    def columns(self, get: Any, centres: Mapping[str, float]) -> Columns:
        return {**self.base.columns(get, centres), "censored": get(self.column)}

    def check(self, y: np.ndarray, columns: Columns) -> str | None:
        c = columns["censored"]
        return _first((c != 0) & (c != 1), f"{self.column!r} must be true or false") or self.base.check(y, columns)

    def nuisance(self) -> dict[str, dist.Distribution]:
        return self.base.nuisance()

    def observe(self, m: Any, nuisance: Mapping[str, Any], columns: Mapping[str, Any]) -> dist.Distribution:
        return _AtLeast(self.base.observe(m, nuisance, columns), columns["censored"])


Likelihood = LogNormal | LogStudentT | Normal | BetaBinomial | Rounded | Censored
LIKELIHOODS: dict[str, type] = {
    c.__name__: c for c in (LogNormal, LogStudentT, Normal, BetaBinomial, Rounded, Censored)
}


def find_step(y: np.ndarray) -> float:
    """The grid on which all of y lies: the smallest gap where all gaps are its multiples, else a power of ten.

    Raises DataError where there is none: then the step must be given.
    """
    gaps = np.diff(np.unique(y))
    gaps = gaps[gaps > 1e-9 * np.max(np.abs(y))]
    # by chance a few gaps may all be multiples of the smallest; ten hardly
    if gaps.size >= 10 and np.allclose(gaps / gaps.min(), np.round(gaps / gaps.min()), atol=0.05, rtol=0):
        return float(gaps.min())
    for step in 10.0 ** np.arange(0, -7, -1):
        if np.allclose(y / step, np.round(y / step), atol=1e-6, rtol=0):
            return float(step)
    raise DataError("the outcomes lie on no grid that could be found: give Rounded(step=...) the reading precision.")


class _Gamma2(dist.Gamma):
    """Gamma of shape 2, drawn as the sum of two exponentials: JAX's rejection sampler takes seconds to compile."""

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        return jax.random.exponential(key, (2, *sample_shape, *self.batch_shape)).sum(0) / self.rate


class _Student(dist.StudentT):
    """Student-t, drawn without rejection: sqrt(nu (u**(-2/nu) - 1)) cos(2 pi v), u and v uniform (Bailey 1994)."""

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        u, v = jax.random.uniform(key, (2, *sample_shape, *self.batch_shape), minval=jnp.finfo(float).tiny)
        radius = jnp.sqrt(self.df * jnp.expm1(-2 / self.df * jnp.log(u)))
        return self.loc + self.scale * radius * jnp.cos(2 * jnp.pi * v)


class _Counts(dist.BetaBinomial):
    """BetaBinomial through log gammas: JAX's ``betaln`` is right to 1e-8 only, and its error moves with phi."""

    def log_prob(self, value: Any) -> Any:
        n, a, b = self.total_count, self.concentration1, self.concentration0
        ways = gammaln(n + 1.0) - gammaln(value + 1.0) - gammaln(n - value + 1.0)
        return ways + _log_beta(value + a, n - value + b) - _log_beta(a, b)


class _Interval(dist.Distribution):
    """Mean density of ``base`` in y -+ step/2; a draw is a draw of ``base`` rounded to the step."""

    support = constraints.real
    arg_constraints: dict[str, Any] = {}
    pytree_data_fields = ("base", "step")

    def __init__(self, base: dist.Distribution, step: Any) -> None:
        self.base, self.step = base, step
        super().__init__(base.batch_shape, (), validate_args=False)

    def log_prob(self, value: Any) -> Any:
        low, high = (_standardised(self.base, value + s * self.step / 2) for s in (-1, 1))
        return _log_mass(low, high) - jnp.log(self.step)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        return jnp.round(self.base.sample(key, sample_shape) / self.step) * self.step


class _AtLeast(dist.Distribution):
    """log density of ``base``, or log P(Y >= y) where censored; a draw is a draw of ``base``, uncensored."""

    support = constraints.real
    arg_constraints: dict[str, Any] = {}
    pytree_data_fields = ("base", "censored")

    def __init__(self, base: dist.Distribution, censored: Any) -> None:
        self.base, self.censored = base, censored
        super().__init__(jax.lax.broadcast_shapes(base.batch_shape, jnp.shape(censored)), (), validate_args=False)

    def log_prob(self, value: Any) -> Any:
        return jnp.where(self.censored, log_ndtr(-_standardised(self.base, value)), self.base.log_prob(value))

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        return self.base.expand(self.batch_shape).sample(key, sample_shape)


def _log_beta(a: Any, b: Any) -> Any:
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def _standardised(base: dist.Distribution, value: Any) -> Any:
    """(value - loc) / scale, on the log scale for a LogNormal."""
    return ((jnp.log(value) if isinstance(base, dist.LogNormal) else value) - base.loc) / base.scale


def _log_mass(low: Any, high: Any) -> Any:
    """log(Phi(high) - Phi(low)), taken in the lower tail where both are accurate."""
    flip = low > 0
    a, b = jnp.where(flip, -high, low), jnp.where(flip, -low, high)
    lb, la = log_ndtr(b), log_ndtr(a)
    return lb + jnp.log(-jnp.expm1(la - lb))


def _gaussian(base: Any, what: str) -> None:
    if not isinstance(base, (LogNormal, Normal)):
        raise ValueError(
            f"{what} takes LogNormal or Normal as its base, not {type(base).__name__}: the distribution function of a "
            "Student-t has no gradient in nu, so NUTS could not use it."
        )


def _column(name: str) -> str:
    return name.removeprefix("log_")


def _covariate(name: str, get: Any) -> np.ndarray:
    values = get(_column(name))
    return np.log(values) if name.startswith("log_") else values


def _first(bad: np.ndarray, text: str) -> str | None:
    """``text`` with the position of the first bad row, which the caller replaces by its name: 'text|row'."""
    where = np.flatnonzero(np.broadcast_to(bad, np.shape(bad) or (1,)))
    return f"{text}|{where[0]}" if where.size else None
