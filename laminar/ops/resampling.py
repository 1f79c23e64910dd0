"""How much each place of a line counts for each place of the line at another scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from laminar.engine.graph import Tensor
from laminar.engine.ops.array import creation
from laminar.engine.ops.array.axes import expand_dims
from laminar.engine.ops.core.basic import ones_like, zeros_like
from laminar.engine.ops.math import elementary as engine_math
from laminar.engine.ops.math.arithmetic import absolute, maximum
from laminar.engine.ops.math.compare import greater, less_equal, logical_and, where
from laminar.engine.ops.math.reduce import reduce_sum

from .arguments import one_of, tensor


def _triangle(t: Any) -> Tensor:
    return maximum(zeros_like(t), 1 - absolute(t))


def _keys(t: Any) -> Tensor:
    """Keys, "Cubic convolution interpolation for digital image processing", 1981, equation 15."""
    t = absolute(t)
    near = ((1.5 * t - 2.5) * t) * t + 1
    far = ((-0.5 * t + 2.5) * t - 4) * t + 2
    one, two = ones_like(t), 2 * ones_like(t)
    return where(less_equal(t, one), near, where(less_equal(t, two), far, zeros_like(t)))


def _lanczos(radius: int) -> Callable[[Any], Tensor]:
    """Duchon, "Lanczos filtering in one and two dimensions", 1979, equation 9."""

    def kernel(t: Any) -> Tensor:
        found = engine_math.sinc(t) * engine_math.sinc(t / radius)
        return where(greater(absolute(t), radius * ones_like(t)), zeros_like(t), found)

    return kernel


_KERNELS: dict[str, Callable[[Any], Tensor]] = {
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), _triangle),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), _keys),
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
}


def resampling_weights(
    size: int, target: int, scale: Tensor, shift: Tensor, method: str, antialias: bool
) -> Tensor:
    """(size, target): the columns add up to 1, but are 0 for places outside of the line."""
    one_of("scale_and_translate", "method", method, tuple(_KERNELS))
    dtype = scale.dtype
    step: Any = ones_like(scale) / scale
    spread = maximum(step, ones_like(step)) if antialias else ones_like(step)
    place: Any = creation.arange(target, dtype=dtype)
    at: Any = (place + 0.5) * step - shift * step - 0.5
    distance: Any = at - expand_dims(creation.arange(size, dtype=dtype), 1)
    weights = _KERNELS[method](distance / spread)
    total = reduce_sum(weights, 0, keepdims=True)
    tiny = tensor(1000 * math.ulp(1.0) if dtype == "float64" else 1e-4, dtype)
    has_weight = greater(absolute(total), tiny)
    weights = where(has_weight, weights / where(has_weight, total, ones_like(total)), 0 * weights)
    first, last = tensor(-0.5, dtype), tensor(size - 0.5, dtype)
    inside = logical_and(less_equal(first, at), less_equal(at, last))
    return where(inside, weights, zeros_like(weights))
