"""Fake quantization: numbers rounded to what few bits can store, for training with it.

Source: Jacob et al., "Quantization and training of neural networks for efficient
integer-arithmetic-only inference", 2018, arXiv:1712.05877, section 3.1, equation 12.
"""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast

from .adapting import v1
from .values import tensor

_maximum, _minimum, _floor, _stop = (
    lookup(n) for n in ("Maximum", "Minimum", "Floor", "StopGradient")
)


def _nudged(low: Any, high: Any, num_bits: int, narrow_range: bool) -> tuple[Any, Any, Any]:
    """(scale, least, greatest): the range moved so that 0 is one of the numbers stored."""
    if not 2 <= num_bits <= 16:
        raise InvalidArgumentError(f"num_bits is from 2 to 16, got {num_bits}")
    least, greatest = float(narrow_range), float(2**num_bits - 1)
    scale = (high - low) / (greatest - least)
    zero = _floor(least - low / scale + 0.5)
    zero = _minimum(_maximum(zero, zero * 0.0 + least), zero * 0.0 + greatest)
    return scale, (least - zero) * scale, (greatest - zero) * scale


def _quantized(x: Tensor, low: Tensor, high: Tensor, num_bits: int, narrow_range: bool) -> Tensor:
    scale, least, greatest = (_stop(v) for v in _nudged(low, high, num_bits, narrow_range))
    # The slope by x is 1 in the range; beyond it, the slope by the end that was passed is 1.
    least, greatest = least + (low - _stop(low)), greatest + (high - _stop(high))
    clipped = _minimum(_maximum(x, least), greatest)
    rounded = _floor((_stop(clipped) - _stop(least)) / scale + 0.5) * scale + _stop(least)
    found: Tensor = clipped + _stop(rounded - _stop(clipped))
    return found


@v1()
def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False
) -> Tensor:
    """`inputs` rounded to the 2**num_bits numbers from `min` to `max`, of which 0 is one.

    Args:
        inputs: float32.
        min: the least number, at most 0; a scalar.
        max: the greatest, at least 0.
        num_bits: from 2 to 16.
        narrow_range: whether one number less is used, for a range that is symmetric around 0.
    """
    x = tensor(inputs, "float32")
    return _quantized(x, tensor(min, x.dtype), tensor(max, x.dtype), num_bits, narrow_range)


@v1()
def fake_quant_with_min_max_vars_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False
) -> Tensor:
    """`fake_quant_with_min_max_vars` with a range for each channel, the last axis."""
    x = tensor(inputs, "float32")
    return _quantized(x, tensor(min, x.dtype), tensor(max, x.dtype), num_bits, narrow_range)


@v1()
def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False
) -> Tensor:
    """`fake_quant_with_min_max_vars` with a fixed range."""
    x = tensor(inputs, "float32")
    if not min < max:
        raise InvalidArgumentError(f"min must be below max, got {min} and {max}")
    low, high = (tensor(float(v), x.dtype) for v in (min, max))
    return _quantized(x, low, high, num_bits, narrow_range)


@v1()
def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
) -> Tensor:
    """The gradients where `inputs` are in the range, else 0."""
    dy, x = tensor(gradients, "float32"), tensor(inputs, "float32")
    low, high = (tensor(float(v), x.dtype) for v in (min, max))
    _, least, greatest = _nudged(low, high, num_bits, narrow_range)
    inside = lookup("LogicalAnd")(
        lookup("GreaterEqual")(x, least), lookup("LessEqual")(x, greatest)
    )
    found: Tensor = dy * cast(inside, dy.dtype)
    return found
