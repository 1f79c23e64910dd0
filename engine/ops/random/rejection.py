"""Random numbers of the distributions that need several attempts: gamma, beta, binomial, Poisson.

Attempt j of element i takes its words from block number (i, j) of the stream, so an element depends
on nothing but the key, its place and its own parameters, however many attempts others need. All is
computed in float64. Parameters out of range give NaN, as nothing that runs on a device can raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...graph import Array, as_dtype
from ..math.gamma import lgamma
from ..math.special import sigmoid
from .distributions import box_muller, unit_interval
from .philox import blocks_at

_SMALL_MEAN = 10.0  # below, the distribution is inverted by adding up probabilities
_NEGLIGIBLE = 1e-18
_BLOCKS = 2  # of each attempt: eight words, four uniform numbers of 53 bits


def gamma(xp: Any, key: Array, n: int, alpha: float | Array, dtype: str = "float32") -> Array:
    """`n` numbers of the gamma distribution of shape `alpha` > 0 and scale 1; (n,).

    Args:
        xp: the array library.
        key: (2,) uint32.
        n: how many.
        alpha: the shape, one or one for each.
        dtype: floating, of the result.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26
        (2000); section 6 for alpha < 1.
    """
    return xp.exp(_log_gamma_variate(xp, key, n, alpha, 0)).astype(as_dtype(dtype).numpy)


def beta(
    xp: Any,
    key: Array,
    n: int,
    alpha: float | Array,
    beta: float | Array,
    dtype: str = "float32",
) -> Array:
    """`n` numbers of the beta distribution: g / (g + h) for gamma numbers g and h; (n,).

    Computed from log g - log h, as both underflow for small shapes.
    """
    g = _log_gamma_variate(xp, key, n, alpha, 0)
    h = _log_gamma_variate(xp, key, n, beta, 1)
    return sigmoid(xp, g - h).astype(as_dtype(dtype).numpy)


def poisson(xp: Any, key: Array, n: int, mean: float | Array, dtype: str = "float32") -> Array:
    """`n` numbers of the Poisson distribution of the given mean (one, or one for each); (n,).

    Source: Hormann, "The transformed rejection method for generating Poisson random variables",
        Insurance: Mathematics and Economics 12 (1993), algorithm PTRS, for means from 10 on.
    """
    mean = _each(xp, mean, n)
    valid = (mean >= 0) & (mean < xp.inf)
    mean = xp.where(valid, mean, 0)
    out = xp.where(valid, 0, xp.nan)

    few = xp.flatnonzero(valid & (mean < _SMALL_MEAN))
    small = mean[few]
    out[few] = _invert(xp, key, few, xp.exp(-small), lambda k: small / k)

    def attempt(index: Array, u: Array, v: Array) -> tuple[Array, Array]:
        m = mean[index]
        b = 0.931 + 2.53 * xp.sqrt(m)
        a = -0.059 + 0.02483 * b
        inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
        u = u - 0.5
        s = 0.5 - xp.abs(u)
        k = xp.floor((2 * a / s + b) * u + m + 0.43)
        k_sure = xp.maximum(k, 0)
        log_bound = k_sure * xp.log(m) - m - lgamma(xp, k_sure + 1)
        fits = xp.log(v * inverse_alpha / (a / (s * s) + b)) <= log_bound
        return k, (k >= 0) & fits

    _transformed(xp, key, xp.flatnonzero(mean >= _SMALL_MEAN), out, attempt)
    return out.astype(as_dtype(dtype).numpy)


def binomial(
    xp: Any,
    key: Array,
    n: int,
    counts: float | Array,
    p: float | Array,
    dtype: str = "float32",
) -> Array:
    """How many of `counts` trials succeed with probability `p` each (one, or one for each); (n,).

    Source: Hormann, "The generation of binomial random variates", Journal of Statistical
        Computation and Simulation 46 (1993), algorithm BTRS, for means from 10 on.
    """
    trials, p = _each(xp, counts, n), _each(xp, p, n)
    valid = (trials >= 0) & (trials < xp.inf) & (p >= 0) & (p <= 1)
    trials = xp.where(valid, xp.floor(trials), 0)
    # The rarer outcome is counted, so that its probability is at most 1/2.
    rare = xp.where(valid, xp.minimum(p, 1 - p), 0)
    out = xp.where(valid, 0, xp.nan)
    mean = trials * rare

    few = xp.flatnonzero(valid & (mean < _SMALL_MEAN))
    t, q = trials[few], rare[few]
    odds = q / (1 - q)
    out[few] = _invert(
        xp, key, few, xp.exp(t * xp.log1p(-q)), lambda k: xp.maximum(t - k + 1, 0) / k * odds
    )

    def attempt(index: Array, u: Array, v: Array) -> tuple[Array, Array]:
        t, q = trials[index], rare[index]
        deviation = xp.sqrt(t * q * (1 - q))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * q
        alpha = (2.83 + 5.1 / b) * deviation
        u = u - 0.5
        s = 0.5 - xp.abs(u)
        k = xp.floor((2 * a / s + b) * u + t * q + 0.5)
        inside = (k >= 0) & (k <= t)
        k_sure = xp.clip(k, 0, t)
        mode = xp.floor((t + 1) * q)
        log_bound = (
            lgamma(xp, mode + 1)
            + lgamma(xp, t - mode + 1)
            - lgamma(xp, k_sure + 1)
            - lgamma(xp, t - k_sure + 1)
            + (k_sure - mode) * xp.log(q / (1 - q))
        )
        fits = xp.log(v * alpha / (a / (s * s) + b)) <= log_bound
        return k, inside & fits

    _transformed(xp, key, xp.flatnonzero(mean >= _SMALL_MEAN), out, attempt)
    out = xp.where(p > 0.5, trials - out, out)
    return out.astype(as_dtype(dtype).numpy)


def _each(xp: Any, value: float | Array, n: int) -> Array:
    return xp.broadcast_to(xp.asarray(value).astype(xp.float64), (n,))


def _uniforms(xp: Any, key: Array, index: Array, stream: int, attempt: int) -> Array:
    """Four uniform numbers in [0, 1) for each index; (len(index), 4) float64."""
    part = (stream << 32) + _BLOCKS * attempt
    index = index.astype(xp.uint64)
    words = [blocks_at(xp, key, index, part + block) for block in range(_BLOCKS)]
    return unit_interval(xp, xp.concatenate(words, axis=1))


def _until_accepted(
    xp: Any,
    key: Array,
    index: Array,
    stream: int,
    out: Array,
    attempt: Callable[[Array, Array], tuple[Array, Array]],
) -> None:
    """Fill `out[index]`: `attempt(index, uniforms)` gives values and which of them to take."""
    number = 0
    while index.size:
        value, accepted = attempt(index, _uniforms(xp, key, index, stream, number))
        out[index[accepted]] = value[accepted]
        index = index[~accepted]
        number += 1


def _transformed(
    xp: Any,
    key: Array,
    index: Array,
    out: Array,
    attempt: Callable[[Array, Array, Array], tuple[Array, Array]],
) -> None:
    """Fill `out[index]` by `attempt(index, u, v)` with u in (0, 1) and v in (0, 1]."""

    def with_two(index: Array, u: Array) -> tuple[Array, Array]:
        # 2**-54: the middle of the first step, so that 1/2 - |u - 1/2| is never 0.
        return attempt(index, xp.maximum(u[:, 0], 2.0**-54), 1 - u[:, 1])

    _until_accepted(xp, key, index, 0, out, with_two)


def _invert(
    xp: Any, key: Array, index: Array, first: Array, ratio: Callable[[int], Array]
) -> Array:
    """The least k with P(0) + ... + P(k) > u, from P(0) = `first` and P(k) / P(k - 1)."""
    left = _uniforms(xp, key, index, 0, 0)[:, 0] - first
    term = first
    found = xp.zeros(index.shape, xp.float64)
    k = 0
    # Rounding may leave a rest of u that no term reaches: terms below 1e-18 end the search.
    while bool(xp.any(going := (left >= 0) & (term > _NEGLIGIBLE))):
        k += 1
        term = term * ratio(k)
        found += going
        left = left - term
    return found


def _log_gamma_variate(xp: Any, key: Array, n: int, alpha: float | Array, stream: int) -> Array:
    """The logarithms of `n` gamma numbers; see `gamma`."""
    alpha = _each(xp, alpha, n)
    valid = (alpha > 0) & (alpha < xp.inf)
    out = xp.where(valid, 0.0, xp.nan)

    def attempt(index: Array, u: Array) -> tuple[Array, Array]:
        shape = alpha[index]
        d = xp.where(shape < 1, shape + 1, shape) - 1 / 3
        x = box_muller(xp, u[:, 0], u[:, 1])[:, 0]
        v = (1 + x / xp.sqrt(9 * d)) ** 3
        log_v = xp.log(xp.where(v > 0, v, 1))
        accepted = (v > 0) & (xp.log1p(-u[:, 2]) < 0.5 * x * x + d * (1 - v + log_v))
        # Gamma(alpha) is Gamma(alpha + 1) U**(1 / alpha).
        boost = xp.where(shape < 1, xp.log1p(-u[:, 3]) / shape, 0)
        return xp.log(d) + log_v + boost, accepted

    _until_accepted(xp, key, xp.flatnonzero(valid), stream, out, attempt)
    return out
