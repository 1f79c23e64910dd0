"""Numbers that functions are tried on, and how far off results are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .modules import Array, Body, elementwise

BITS = {"float32": (np.uint32, 23), "float64": (np.uint64, 52)}
# Borders of the ranges of exp, log, tanh, erfc, ..., and what is special in itself.
SPECIAL = [
    *(np.nan, np.inf, 0.0, 1.0, 0.5, 2.0, 3.0, 1e-45, 1e-40, 1.1754944e-38, 3.4028235e38),
    *(88.72283, 88.72284, 87.33655, 103.97208, 103.97209, 89.41599, 17.328, 9.0109, 0.34657359),
    *(1.4142135, 0.6666667, 1.3333334, 3.9192059, 9.194549, 10.054, 127.99999, 149.0, 149.5),
    *(1.5707964, 3.1415927, 0.7853982, 4.0e5, 400000.03, 1.0e14, 16777217.0),
    *(5e-324, 1e-310, 2.2250738585072014e-308, 1.7976931348623157e308, 709.782712893384),
    *(709.79, 745.1332191019412, 745.2, 710.4758600739439, 710.48, 26.543, 27.226, 1e300),
]


def ulps(found: Array, expected: Array) -> Array:
    """The error in units in the last place of what `found` should be, computed in a wider type.

    A wrong sign of 0 and a wrong NaN count as infinite; infinity is the number after the greatest.
    """
    dtype, wide = found.dtype.type, expected.dtype.type
    limit = np.finfo(dtype).max
    below = np.nextafter(limit, dtype(0))
    rounded = np.abs(expected.astype(dtype))
    unit = np.spacing(np.minimum(rounded, below)).astype(wide)
    # Halved, so that the number after the greatest exists.
    end = wide(limit) / 2 + wide(limit - below) / 2
    y, e = (np.clip(a.astype(wide) / 2, -end, end) for a in (found, expected))
    error = 2 * (np.abs(y - e) / unit)
    zeros = (found == 0) & (expected == 0) & (np.signbit(found) != np.signbit(expected))
    nans = np.isnan(found) | np.isnan(expected)
    error = np.where(nans, np.where(np.isnan(found) & np.isnan(expected), 0.0, np.inf), error)
    return np.where(zeros, np.inf, error)


def everywhere(dtype: str, per_exponent: int, seed: int = 0) -> Array:
    """Numbers of each sign and exponent, with any mantissa: below the normal ones, NaN too."""
    kind, mantissa_bits = BITS[dtype]
    rng = np.random.default_rng(seed)
    width = np.dtype(kind).itemsize * 8
    heads = np.arange(1 << (width - mantissa_bits), dtype=np.uint64)
    tails = rng.integers(0, 1 << mantissa_bits, (heads.size, per_exponent), dtype=np.uint64)
    bits = (heads[:, None] << np.uint64(mantissa_bits)) | tails
    found: Array = bits.astype(kind).ravel().view(dtype)
    found[np.isnan(found)] = np.nan  # none that signals
    return found


def special_values(dtype: str) -> Array:
    with np.errstate(all="ignore"):
        values = np.array([*SPECIAL, *(-x for x in SPECIAL)]).astype(dtype)
        limits = np.array([[np.inf], [0.0]], dtype)
        return np.concatenate([values, *np.nextafter(values, limits)])


def check(
    body: Body, reference: Callable[..., Array], inputs: Sequence[Array], limit: float
) -> None:
    dtype = inputs[0].dtype
    wide = np.float64 if dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        found = elementwise(body, [dtype] * len(inputs), dtype)(*inputs)
        expected = reference(*(x.astype(wide) for x in inputs))
        errors = ulps(found, np.asarray(expected, wide))
    worst = int(np.argmax(errors))
    assert errors[worst] <= limit, (
        f"{errors[worst]} ulp at {[x[worst] for x in inputs]!r}: "
        f"{found[worst]!r} for {expected[worst]!r}"
    )


def pairs(dtype: str, size: int) -> list[Array]:
    """Any two numbers, two of one size, two whole ones, and all pairs of special ones."""
    rng = np.random.default_rng(2)
    some = everywhere(dtype, -(-size // (1 << 9 if dtype == "float32" else 1 << 12)))
    near = rng.uniform(-20, 20, (2, size)).astype(dtype)
    borders = special_values(dtype)[: len(SPECIAL) * 2]
    grid = np.meshgrid(borders, borders)
    return [
        np.concatenate([a, b, np.rint(c), d.ravel()])
        for a, b, c, d in zip((some, rng.permutation(some)), near, near[::-1], grid, strict=True)
    ]


def same(found: Array, expected: Array) -> None:
    """Equal, signs of zeros included."""
    np.testing.assert_array_equal(found, expected)
    if found.dtype.kind == "f":
        zeros = found == 0
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))
