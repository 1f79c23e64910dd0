"""Histograms, polynomials and the beta function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import segment
from laminar.engine.ops.array.shape import reshape
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast

from .adapting import v1
from .maths import reduce_sum
from .values import operands, static, symbol, tensor


@v1()
def lbeta(x: Any) -> Any:
    """log |Beta(x)| along the last axis: the sum of lgamma(x) less lgamma of the sum of x."""
    given = tensor(x)
    gamma = lookup("Lgamma")
    return reduce_sum(gamma(given), [-1]) - gamma(reduce_sum(given, [-1]))


@v1()
def polyval(coeffs: Sequence[Any], x: Any) -> Any:
    """coeffs[0] * x**(n - 1) + ... + coeffs[n - 1], by Horner's rule."""
    if not isinstance(coeffs, list | tuple):
        raise ValueError(f"polyval: coeffs is a list, got {coeffs!r}")
    at = tensor(x)
    found: Any = lookup("ZerosLike")(at)
    for i, coefficient in enumerate(coeffs):
        one = operands(at, coefficient)[1]
        found = one + found * at if i else one + found
    return found


@v1()
def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = "int32"
) -> Any:
    """In which of `nbins` equal parts of a range each value lies; outside, in the nearest one.

    Args:
        values: numbers.
        value_range: (least, greatest).
        nbins: how many parts.
        dtype: of the result, a whole type.
    """
    x, limits = operands(values, value_range)
    if not limits.shape.is_compatible_with([2]):
        raise InvalidArgumentError(f"histogram: a range has two ends, got {limits.spec}")
    known = static(value_range)
    if not isinstance(known, Tensor) and not known[0] < known[1]:
        raise InvalidArgumentError(f"histogram: the range {known} is empty")
    count = static(nbins)
    if isinstance(count, int) and count <= 0:
        raise InvalidArgumentError(f"histogram: nbins is above 0, got {count}")
    kind = x.dtype if x.dtype.is_floating else "float64"
    wide, least, greatest = (cast(y, kind) for y in (x, limits[0], limits[1]))
    parts = cast(symbol(count), kind)
    place = ops.floor(parts * ((wide - least) / (greatest - least)))
    return cast(ops.maximum(ops.minimum(place, parts - 1.0), 0.0), dtype)


@v1()
def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = "int32"
) -> Any:
    """How many values lie in each of `nbins` equal parts of a range; see the parts above."""
    places = reshape(histogram_fixed_width_bins(values, value_range, nbins), (-1,))
    ones = cast(lookup("OnesLike")(places), dtype)
    return segment.segment_sum(ones, places, static(nbins))
