"""Random numbers of a distribution from random bits: each element from its own fixed words.

All functions take the array library `xp` first, then the key of a Philox stream, and number their
blocks from `counter` on; element i is the same however many are asked for. Uniform numbers have as
many random bits as their dtype can tell apart in [1/2, 1): 53, 24, 11 (float16) or 8 (bfloat16).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...errors import DTypeError, InvalidArgumentError
from ...graph import Array, DType, as_dtype
from ..math.special import erfinv
from .philox import Counter, as_int, blocks_together, random_bits

_UNIFORM_BITS = {"bfloat16": 8, "float16": 11, "float32": 24}
_LOW = 0xFFFF_FFFF
_WORD = 1 << 64
_TWO_DEVIATIONS = math.erf(math.sqrt(2))  # the part of a normal distribution in [-2, 2]


def uniform(xp: Any, key: Array, n: int, dtype: str = "float32", *, counter: Counter = 0) -> Array:
    """`n` numbers uniform in [0, 1), multiples of 2**-bits; (n,) of a floating dtype."""
    dtype = _floating("uniform", dtype)
    if dtype == "float64":
        return _blockwise(xp, key, n, dtype, counter, 2, lambda words: unit_interval(xp, words))
    bits = _UNIFORM_BITS[dtype]

    def make(words: Array) -> Array:
        # Exact: so few bits are a number of the dtype, and 2**-bits only moves its exponent.
        return (words >> (32 - bits)).astype(xp.float32) * xp.float32(2.0**-bits)

    return _blockwise(xp, key, n, dtype, counter, 4, make)


def normal(xp: Any, key: Array, n: int, dtype: str = "float32", *, counter: Counter = 0) -> Array:
    """`n` numbers of mean 0 and variance 1; (n,) of a floating dtype.

    Each pair is (r cos t, r sin t) with r = sqrt(-2 log u) and t = 2 pi v, for uniform u and v.

    Source: Box and Muller, "A note on the generation of random normal deviates", Annals of
        Mathematical Statistics 29 (1958).
    """
    dtype = _floating("normal", dtype)
    if dtype == "float64":

        def double(words: Array) -> Array:
            u = unit_interval(xp, words)
            return box_muller(xp, u[:, 0::2], u[:, 1::2])

        return _blockwise(xp, key, n, dtype, counter, 2, double)

    def single(words: Array) -> Array:
        # The radius takes all 32 bits: u = 2**-33 is 6.8 deviations, 24 bits would end at 5.8.
        log_u = xp.log(_open_interval(xp, words[:, 0::2]))
        angle = (words[:, 1::2] >> 8).astype(xp.float32) * xp.float32(2 * math.pi * 2.0**-24)
        radius = xp.sqrt(-2 * log_u)
        return xp.stack([radius * xp.cos(angle), radius * xp.sin(angle)], axis=-1)

    return _blockwise(xp, key, n, dtype, counter, 4, single)


def truncated_normal(
    xp: Any, key: Array, n: int, dtype: str = "float32", *, counter: Counter = 0
) -> Array:
    """`n` numbers of the standard normal distribution within two deviations; (n,).

    y = sqrt(2) erfinv(v erf(sqrt(2))) for v uniform in (-1, 1): by the inverse of the distribution,
    so that no number is ever drawn again.
    """
    dtype = _floating("truncated_normal", dtype)

    def make(words: Array) -> Array:
        if dtype == "float64":
            # (k + 1/2) 2**-53, rounded, is at most 1 - 2**-53: never the bound itself.
            v = 2 * unit_interval(xp, words) - (1 - 2.0**-53)
        else:
            # From the signed integer, so that numbers near 0 keep all their bits.
            v = (words.view(xp.int32).astype(xp.float64) + 0.5) * 2.0**-31
        # The clip takes back what rounding may add at the very ends.
        return xp.clip(math.sqrt(2) * erfinv(xp, v * _TWO_DEVIATIONS), -2, 2)

    return _blockwise(xp, key, n, dtype, counter, 2 if dtype == "float64" else 4, make)


def randint(
    xp: Any,
    key: Array,
    n: int,
    low: int,
    high: int,
    dtype: str = "int32",
    *,
    counter: Counter = 0,
) -> Array:
    """`n` integers uniform in [low, high); (n,) of an integer dtype.

    low + floor(x (high - low) / 2**b) for a random x of b bits: 64 up to a span of 2**32, else 128.
    No number is likelier than another by more than one part in 2**32 or 2**64.

    Raises:
        InvalidArgumentError: low >= high, or the numbers do not fit the dtype.

    Source: Lemire, "Fast random integer generation in an interval", ACM Transactions on Modeling
        and Computer Simulation 29 (2019), section 4, without the rejection.
    """
    dtype = as_dtype(dtype)
    info = xp.iinfo(dtype.numpy) if dtype.is_integer else None
    if info is None:
        raise DTypeError(f"randint: expected an integer dtype, got {dtype}")
    if not info.min <= low < high <= info.max + 1:
        raise InvalidArgumentError(
            f"randint: expected low < high within {dtype}, got low={low} and high={high}",
            remedy=f"give bounds from {info.min} to {info.max + 1}, the upper one excluded",
        )
    span = high - low

    def make(words: Array) -> Array:
        x = _pairs(xp, words)
        if span <= 1 << 32:
            value = ((x >> 32) * span + ((x & _LOW) * span >> 32)) >> 32
        elif span == _WORD:
            value = x[:, 1:]
        else:
            # (x1 2**64 + x0) span / 2**128: the upper half of x1 span, plus a carry from below it.
            upper, lower = _multiply(xp, x[:, 1:], span)
            carry, _ = _multiply(xp, x[:, :1], span)
            value = upper + (lower + carry < carry)
        return value + xp.uint64(low % _WORD)  # modulo 2**64, as two's complement is

    per_block = 2 if span <= 1 << 32 else 1
    return _blockwise(xp, key, n, dtype, counter, per_block, make)


def bernoulli(
    xp: Any, key: Array, n: int, p: float | Array = 0.5, *, counter: Counter = 0
) -> Array:
    """`n` bools, each true with probability `p` (one, or one for each), to 2**-32; (n,)."""
    bits = random_bits(xp, key, counter, n)
    return bits < xp.asarray(p, dtype=xp.float64) * 2.0**32


def permutation(xp: Any, key: Array, n: int, *, counter: Counter = 0) -> Array:
    """The numbers 0 to n - 1 in random order: the order of `n` random 64-bit keys; (n,) int64."""
    words = random_bits(xp, key, counter, 4 * -(-n // 2)).reshape(-1, 4)
    keys = _pairs(xp, words).reshape(-1)[:n]
    return xp.argsort(keys, kind="stable").astype(xp.int64)


def categorical(
    xp: Any,
    key: Array,
    logits: Array,
    num_samples: int,
    dtype: str = "int32",
    *,
    counter: Counter = 0,
) -> Array:
    """Draw classes with probabilities softmax(logits), by the inverse of their distribution.

    Args:
        xp: the array library.
        key: (2,) uint32.
        logits: (batch, classes), floating; a class of logit -inf is never drawn.
        num_samples: how many to draw for each row.
        dtype: of the result.
        counter: the number of the first block.

    Returns:
        (batch, num_samples), integers below `classes`.
    """
    logits = xp.asarray(logits).astype(xp.float64)
    batch, classes = logits.shape
    weights = xp.exp(logits - logits.max(axis=-1, keepdims=True))
    cumulative = xp.cumsum(weights, axis=-1)
    total = cumulative[:, -1:]
    u = uniform(xp, key, batch * num_samples, "float64", counter=counter)
    # Below the total, so that what is found has a weight of its own.
    u = xp.minimum(u.reshape(batch, num_samples) * total, xp.nextafter(total, xp.zeros_like(total)))
    # Binary search: how many cumulative weights are <= u, bit by bit from the highest.
    found = xp.zeros(u.shape, xp.int64)
    for bit in reversed(range((classes - 1).bit_length())):
        probe = found + (1 << bit)
        value = xp.take_along_axis(cumulative, xp.minimum(probe, classes) - 1, axis=-1)
        found = xp.where((probe < classes) & (value <= u), probe, found)
    return found.astype(as_dtype(dtype).numpy)


def unit_interval(xp: Any, words: Array) -> Array:
    """(n, 2 k) words to (n, k) float64 in [0, 1), of 53 bits: 27 of the first, 26 of the second."""
    upper = (words[:, 0::2] >> 5).astype(xp.float64)
    upper *= 2.0**26
    upper += words[:, 1::2] >> 6
    upper *= 2.0**-53
    return upper


def box_muller(xp: Any, u: Array, v: Array) -> Array:
    """Pairs of normal numbers from uniform ones in [0, 1), along a new last axis; see `normal`."""
    radius = xp.sqrt(-2 * xp.log1p(-u))
    angle = 2 * math.pi * v
    return xp.stack([radius * xp.cos(angle), radius * xp.sin(angle)], axis=-1)


def _open_interval(xp: Any, words: Array) -> Array:
    """Words to float32 in (0, 1], (k + 1/2) 2**-32 rounded."""
    return (words.astype(xp.float32) + xp.float32(0.5)) * xp.float32(2.0**-32)


def _pairs(xp: Any, words: Array) -> Array:
    """(n, 4) words to (n, 2) uint64, the first word of each pair in the lower half."""
    return words[:, 0::2].astype(xp.uint64) | (words[:, 1::2].astype(xp.uint64) << 32)


def _multiply(xp: Any, x: Array, y: int) -> tuple[Array, Array]:
    """The upper and the lower 64 bits of x y, by halves of 32 bits."""
    x1, x0 = x >> 32, x & _LOW
    y1, y0 = y >> 32, y & _LOW
    low = x0 * y0
    middle = (low >> 32) + (x1 * y0 & _LOW) + (x0 * y1 & _LOW)
    high = x1 * y1 + (x1 * y0 >> 32) + (x0 * y1 >> 32) + (middle >> 32)
    return high, (middle << 32) | (low & _LOW)


def _floating(who: str, dtype: str) -> DType:
    dtype = as_dtype(dtype)
    if dtype != "float64" and dtype not in _UNIFORM_BITS:
        raise DTypeError(f"{who}: expected a floating dtype, got {dtype}")
    return dtype


def _blockwise(
    xp: Any,
    key: Array,
    n: int,
    dtype: DType,
    counter: Counter,
    per_block: int,
    make: Callable[[Array], Array],
) -> Array:
    """`n` numbers, `per_block` of each block: `make` turns (m, 4) words into them, in order."""
    blocks = -(-n // per_block)
    first = as_int(counter)
    step = blocks_together(xp)
    out = xp.empty(blocks * per_block, dtype.numpy)
    for start in range(0, blocks, step):
        count = min(step, blocks - start)
        words = random_bits(xp, key, first + start, 4 * count).reshape(count, 4)
        out[start * per_block : (start + count) * per_block] = make(words).reshape(-1)
    return out[:n]
