"""Distributions of real numbers: densities, draws, moments and divergences.

Source of the formulas: Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions", 2nd
edition, 1994; of divergences: Gil, Alajaji and Linder, "Renyi divergence measures for commonly used
univariate continuous distributions", 2013, table 2.
"""

from __future__ import annotations

import math
from typing import Any

from laminar.engine.graph import Tensor
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.random import draws

from .distribution import NOT_REPARAMETERIZED, Distribution, RegisterKL
from .maths import reduce_sum

_log, _log1p, _exp, _sqrt, _abs = (lookup(n) for n in ("Log", "Log1p", "Exp", "Sqrt", "Abs"))
_lgamma, _digamma, _xlogy = lookup("Lgamma"), lookup("Digamma"), lookup("Xlogy")
_where, _less, _greater = lookup("Where"), lookup("Less"), lookup("Greater")
_NAN, _INF = float("nan"), float("inf")


def _lbeta(a: Tensor, b: Tensor) -> Any:
    return _lgamma(a) + _lgamma(b) - _lgamma(a + b)


class Normal(Distribution):
    """The density exp(-(x - loc)**2 / (2 scale**2)) / (scale sqrt(2 pi)).

    Args:
        loc: the mean.
        scale: the standard deviation.
    """

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:
        super().__init__(name, loc=loc, scale=scale)

    def _draw(self, sizes: Any, state: Tensor) -> Any:
        return self.loc + self.scale * draws.random_normal(state, sizes, 0.0, 1.0, self.dtype)

    def _log_prob(self, x: Tensor) -> Any:
        z = (x - self.loc) / self.scale
        return -0.5 * z * z - _log(self.scale) - 0.5 * math.log(2 * math.pi)

    def _cdf(self, x: Tensor) -> Any:
        z = (x - self.loc) / self.scale
        return 0.5 * lookup("Erfc")(-z * math.sqrt(0.5))

    def _quantile(self, p: Tensor) -> Any:
        return self.loc + self.scale * lookup("Ndtri")(p)

    def _entropy(self) -> Any:
        return self._full(0.5 * math.log(2 * math.pi * math.e)) + _log(self.scale)

    def _mean(self) -> Any:
        return self._full(0.0) + self.loc

    _mode = _mean

    def _variance(self) -> Any:
        return self._full(0.0) + self.scale * self.scale


@RegisterKL(Normal, Normal)
def _normal_from_normal(p: Normal, q: Normal, name: str | None = None) -> Any:
    ratio = p.scale / q.scale
    shift = (p.loc - q.loc) / q.scale
    return 0.5 * (ratio * ratio + shift * shift - 1.0) - _log(ratio)


class Uniform(Distribution):
    """The density 1 / (high - low) in [low, high)."""

    def __init__(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        super().__init__(name, low=low, high=high)

    def range(self, name: str = "range") -> Any:
        """high - low."""
        return self.high - self.low

    def _draw(self, sizes: Any, state: Tensor) -> Any:
        return self.low + self.range() * draws.random_uniform(state, sizes, 0.0, 1.0, self.dtype)

    def _log_prob(self, x: Tensor) -> Any:
        outside = lookup("LogicalOr")(_less(x, self.low), lookup("GreaterEqual")(x, self.high))
        inside = -_log(self.range()) + 0.0 * x
        return _where(outside, lookup("ZerosLike")(inside) - _INF, inside)

    def _cdf(self, x: Tensor) -> Any:
        part = (x - self.low) / self.range()
        return lookup("Minimum")(lookup("Maximum")(part, part * 0.0), part * 0.0 + 1.0)

    def _quantile(self, p: Tensor) -> Any:
        return self.low + p * self.range()

    def _entropy(self) -> Any:
        return _log(self.range())

    def _mean(self) -> Any:
        return 0.5 * (self.low + self.high)

    def _variance(self) -> Any:
        return self.range() * self.range() / 12.0


class Laplace(Distribution):
    """The density exp(-|x - loc| / scale) / (2 scale)."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Laplace",
    ) -> None:
        super().__init__(name, loc=loc, scale=scale)

    def _draw(self, sizes: Any, state: Tensor) -> Any:
        u = draws.random_uniform(state, sizes, -1.0, 1.0, self.dtype)
        return self._quantile(0.5 + 0.5 * u)

    def _log_prob(self, x: Tensor) -> Any:
        return -_abs(x - self.loc) / self.scale - _log(2.0 * self.scale)

    def _cdf(self, x: Tensor) -> Any:
        z = (x - self.loc) / self.scale
        half = 0.5 * _exp(-_abs(z))
        return _where(_greater(z, z * 0.0), 1.0 - half, half)

    def _quantile(self, p: Tensor) -> Any:
        u = 2.0 * p - 1.0
        return self.loc - self.scale * lookup("Sign")(u) * _log1p(-_abs(u))

    def _entropy(self) -> Any:
        return self._full(1.0) + _log(2.0 * self.scale)

    def _mean(self) -> Any:
        return self._full(0.0) + self.loc

    _mode = _mean

    def _variance(self) -> Any:
        return self._full(0.0) + 2.0 * self.scale * self.scale


class Gamma(Distribution):
    """The density rate**a x**(a - 1) exp(-rate x) / Gamma(a), with a the concentration."""

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        super().__init__(name, concentration=concentration, rate=rate)

    def _draw(self, sizes: Any, state: Tensor) -> Any:
        a = self._full(0.0) + self.concentration
        return draws.random_gamma(state, sizes, a, self.dtype) / self.rate

    def _log_prob(self, x: Tensor) -> Any:
        a, rate = self.concentration, self.rate
        return _xlogy(a - 1.0, x) - rate * x - _lgamma(a) + a * _log(rate)

    def _cdf(self, x: Tensor) -> Any:
        return lookup("Igamma")(self.concentration, self.rate * x)

    def _entropy(self) -> Any:
        a = self.concentration
        return a - _log(self.rate) + _lgamma(a) + (1.0 - a) * _digamma(a)

    def _mean(self) -> Any:
        return self.concentration / self.rate

    def _variance(self) -> Any:
        return self._mean() / self.rate

    def _mode(self) -> Any:
        mode = (self.concentration - 1.0) / self.rate
        return _where(_less(mode, mode * 0.0), mode * 0.0 + _NAN, mode)


@RegisterKL(Gamma, Gamma)
def _gamma_from_gamma(p: Gamma, q: Gamma, name: str | None = None) -> Any:
    a, b = p.concentration, q.concentration
    return (
        (a - b) * _digamma(a)
        + _lgamma(b)
        - _lgamma(a)
        + b * (_log(p.rate) - _log(q.rate))
        + a * (q.rate / p.rate - 1.0)
    )


class Exponential(Gamma):
    """The density rate exp(-rate x)."""

    def __init__(
        self,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Exponential",
    ) -> None:
        Distribution.__init__(self, name, rate=rate)

    @property
    def concentration(self) -> Any:
        """1."""
        found: Tensor = lookup("OnesLike")(self._parameters["rate"])
        return found

    def _draw(self, sizes: Any, state: Tensor) -> Any:
        return -_log1p(-draws.random_uniform(state, sizes, 0.0, 1.0, self.dtype)) / self.rate

    def _quantile(self, p: Tensor) -> Any:
        return -_log1p(-p) / self.rate


class Beta(Distribution):
    """The density x**(a - 1) (1 - x)**(b - 1) / B(a, b) in (0, 1).

    Args:
        concentration1: a.
        concentration0: b.
    """

    reparameterization_type = NOT_REPARAMETERIZED

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        super().__init__(
            name,
            concentration1=1.0 if concentration1 is None else concentration1,
            concentration0=1.0 if concentration0 is None else concentration0,
        )

    @property
    def total_concentration(self) -> Any:
        """a + b."""
        return self.concentration1 + self.concentration0

    def _draw(self, sizes: Any, state: Tensor) -> Any:
        zeros = self._full(0.0)
        a, b = zeros + self.concentration1, zeros + self.concentration0
        return draws.random_beta(state, sizes, a, b, self.dtype)

    def _log_prob(self, x: Tensor) -> Any:
        a, b = self.concentration1, self.concentration0
        return _xlogy(a - 1.0, x) + (b - 1.0) * _log1p(-x) - _lbeta(a, b)

    def _cdf(self, x: Tensor) -> Any:
        return lookup("Betainc")(self.concentration1, self.concentration0, x)

    def _entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return (
            _lbeta(a, b)
            - (a - 1.0) * _digamma(a)
            - (b - 1.0) * _digamma(b)
            + (a + b - 2.0) * _digamma(a + b)
        )

    def _mean(self) -> Any:
        return self.concentration1 / self.total_concentration

    def _variance(self) -> Any:
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self.total_concentration)

    def _mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        least = lookup("Minimum")(a, b)
        mode = (a - 1.0) / (a + b - 2.0)
        return _where(_greater(least, least * 0.0 + 1.0), mode, mode * 0.0 + _NAN)


@RegisterKL(Beta, Beta)
def _beta_from_beta(p: Beta, q: Beta, name: str | None = None) -> Any:
    a, b = p.concentration1, p.concentration0
    c, d = q.concentration1, q.concentration0
    return (
        _lbeta(c, d)
        - _lbeta(a, b)
        + (a - c) * _digamma(a)
        + (b - d) * _digamma(b)
        + (c - a + d - b) * _digamma(a + b)
    )


class StudentT(Distribution):
    """Student's density with `df` degrees of freedom, moved to `loc` and stretched by `scale`."""

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        super().__init__(name, df=df, loc=loc, scale=scale)

    def _draw(self, sizes: Any, state: Tensor) -> Any:
        # A normal number over the root of a mean of squares of df others: of keys of their own.
        from_gamma = lookup("RandomFold")(state, 1)
        z = draws.random_normal(state, sizes, 0.0, 1.0, self.dtype)
        df = self._full(0.0) + self.df
        squares = draws.random_gamma(from_gamma, sizes, 0.5 * df, self.dtype) * 2.0
        return self.loc + self.scale * z * lookup("Rsqrt")(squares / df)

    def _log_prob(self, x: Tensor) -> Any:
        z, df = (x - self.loc) / self.scale, self.df
        return (
            -0.5 * (df + 1.0) * _log1p(z * z / df)
            - _log(_abs(self.scale))
            - 0.5 * _log(df * math.pi)
            - _lgamma(0.5 * df)
            + _lgamma(0.5 * (df + 1.0))
        )

    def _cdf(self, x: Tensor) -> Any:
        z, df = (x - self.loc) / self.scale, self._full(0.0) + self.df
        z = z + 0.0 * df
        tail = 0.5 * lookup("Betainc")(0.5 * df + 0.0 * z, 0.0 * z + 0.5, df / (df + z * z))
        return _where(_less(z, z * 0.0), tail, 1.0 - tail)

    def _entropy(self) -> Any:
        df = self._full(0.0) + self.df
        return (
            _log(_abs(self.scale))
            + 0.5 * _log(df)
            + _lbeta(0.5 * df * 0.0 + 0.5, 0.5 * df)
            + 0.5 * (df + 1.0) * (_digamma(0.5 * (df + 1.0)) - _digamma(0.5 * df))
        )

    def _mean(self) -> Any:
        zeros = self._full(0.0)
        return _where(_greater(zeros + self.df, zeros + 1.0), zeros + self.loc, zeros + _NAN)

    def _variance(self) -> Any:
        zeros = self._full(0.0)
        df, square = zeros + self.df, zeros + self.scale * self.scale
        known = _where(_greater(df, zeros + 2.0), square * df / (df - 2.0), zeros + _INF)
        return _where(_greater(df, zeros + 1.0), known, zeros + _NAN)

    def _mode(self) -> Any:
        return self._full(0.0) + self.loc


class Dirichlet(Distribution):
    """The density prod x_i**(a_i - 1) / B(a) of vectors of positive numbers whose sum is 1."""

    reparameterization_type = NOT_REPARAMETERIZED
    _event_axes = 1

    def __init__(
        self,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Dirichlet",
    ) -> None:
        super().__init__(name, concentration=concentration)

    @property
    def total_concentration(self) -> Any:
        """The sum of the a_i."""
        found: Tensor = reduce_sum(self.concentration, [-1])
        return found

    def _draw(self, sizes: Any, state: Tensor) -> Any:
        found = draws.random_gamma(state, sizes, self.concentration, self.dtype)
        return found / reduce_sum(found, [-1], keepdims=True)

    def _lbeta(self) -> Any:
        return reduce_sum(_lgamma(self.concentration), [-1]) - _lgamma(self.total_concentration)

    def _log_prob(self, x: Tensor) -> Any:
        found: Tensor = reduce_sum(_xlogy(self.concentration - 1.0, x), [-1]) - self._lbeta()
        return found

    def _entropy(self) -> Any:
        a, total = self.concentration, self.total_concentration
        size = float(a.shape[-1])
        found: Tensor = (
            self._lbeta()
            + (total - size) * _digamma(total)
            - reduce_sum((a - 1.0) * _digamma(a), [-1])
        )
        return found

    def _mean(self) -> Any:
        found: Tensor = self.concentration / reduce_sum(self.concentration, [-1], keepdims=True)
        return found

    def _variance(self) -> Any:
        total = reduce_sum(self.concentration, [-1], keepdims=True)
        mean = self._mean()
        found: Tensor = mean * (1.0 - mean) / (1.0 + total)
        return found


@RegisterKL(Dirichlet, Dirichlet)
def _dirichlet_from_dirichlet(p: Dirichlet, q: Dirichlet, name: str | None = None) -> Any:
    gap = _digamma(p.concentration) - lookup("ExpandDims")(
        _digamma(p.total_concentration), axis=(-1,)
    )
    return reduce_sum((p.concentration - q.concentration) * gap, [-1]) - p._lbeta() + q._lbeta()
