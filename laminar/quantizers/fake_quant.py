"""Floats rounded to the levels of a range, for training that is to stand rounding."""

from __future__ import annotations

from typing import Any

from .. import ops
from ..engine.errors import InvalidArgumentError
from ..typing import TensorLike


def fake_quant_with_min_max_vars(
    inputs: TensorLike,
    min_vals: TensorLike,
    max_vals: TensorLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Any:
    """Floats rounded to the nearest of 2 ** num_bits levels from a minimum to a maximum.

    The range is moved so that 0 is one of the levels. Gradients pass to the inputs inside of it,
    and to its ends where inputs are clipped.

    Args:
        inputs: floats.
        min_vals: the minimum, or one for each place of `axis`.
        max_vals: the maximum, alike.
        num_bits: at least 2.
        narrow_range: whether the lowest level is not used.
        axis: whose places have ranges of their own; None for one range.

    Raises:
        InvalidArgumentError: too few bits.

    Source: Jacob et al., "Quantization and training of neural networks for efficient
        integer-arithmetic-only inference", 2018, arXiv:1712.05877, section 3.

    Examples:
        >>> laminar.quantizers.fake_quant_with_min_max_vars(
        ...     np.array([0.1, 0.6, 7.0]), 0.0, 3.0, num_bits=2
        ... )
        Tensor([0., 1., 3.], shape=(3,), dtype=float64)
    """
    num_bits = int(num_bits)
    if num_bits < 2:
        raise InvalidArgumentError(f"num_bits must be at least 2, got {num_bits}")
    x = ops.convert_to_tensor(inputs)
    given = str(x.dtype)
    wide = ops.cast(x, "float32") if given in ("float16", "bfloat16") else x
    low, high = (_along(v, wide, axis) for v in (min_vals, max_vals))
    least, most = int(narrow_range), (1 << num_bits) - 1
    scale = (high - low) / (most - least)
    zero = ops.round(ops.clip(least - low / scale, least, most))
    bottom, top = (least - zero) * scale, (most - zero) * scale
    clipped = ops.clip(wide, bottom, top)
    steps = 1 / scale
    levels = ops.floor((clipped - bottom) * steps - ops.floor(-bottom * steps + 0.5) + 0.5)
    # Its value is 0, its gradient that of what is not rounded.
    path = ops.where(ops.logical_and(wide >= bottom, wide <= top), wide, 0)
    path = path + ops.where(wide <= bottom, low, 0) + ops.where(wide >= top, high, 0)
    rounded = ops.stop_gradient(levels * scale) + (path - ops.stop_gradient(path))
    return ops.cast(rounded, given)


def _along(values: TensorLike, x: Any, axis: int | None) -> Any:
    """The ends of ranges as they broadcast with `x`."""
    found = ops.cast(ops.convert_to_tensor(values), x.dtype)
    if axis is None:
        return ops.reshape(found, ())
    shape = [1] * len(x.shape)
    shape[axis] = -1
    return ops.reshape(found, shape)
