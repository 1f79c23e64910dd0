"""Dropout: numbers set to 0 at random while a model trains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import (
    FLOATING,
    Array,
    Dim,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    broadcast_shapes,
    float32,
    float64,
)
from ..array.shape import dims_of
from ..core.arrays import computing_dtype
from ..core.checks import check
from ..core.convert import convert_to_tensor
from ..core.op_def import Grads
from ..core.registry import define
from ..math.cast import cast
from ..math.compare import logical_and, where
from ..random.draws import random_uniform
from ..random.philox import random_bits
from ..random.random_state import STATE, check_state, stream


@define("Dropout", dtypes={"x": FLOATING, **STATE}, same_dtype=False)
def _dropout(
    x: TensorSpec, state: TensorSpec, *, rate: float, noise_shape: tuple[Dim, ...] | None
) -> TensorSpec:
    """y = x / (1 - rate), but 0 with probability `rate`.

    One choice is made for each place of `noise_shape`, which broadcasts to x and in which None
    means the size of x. The gradient is Dropout itself: the state makes the same choices again.
    """
    check_state("Dropout", state)
    if not 0 <= rate <= 1:
        raise InvalidArgumentError(f"Dropout: the rate must be from 0 to 1, got {rate}")
    if noise_shape is not None and x.shape.rank is not None:
        wanted = TensorShape(noise_shape)
        if len(wanted) != len(x.shape) or not broadcast_shapes(
            "Dropout", x.shape, wanted
        ).is_compatible_with(x.shape):
            raise ShapeError(
                f"Dropout: noise_shape must have 1 or the size of x on each axis; "
                f"x is {x}, noise_shape {wanted}"
            )
    return x


@_dropout.reference
def _dropout_kernel(
    xp: Any, x: Array, state: Array, *, rate: float, noise_shape: tuple[Dim, ...] | None
) -> Array:
    if rate == 1:
        return xp.zeros_like(x)
    sizes = x.shape if noise_shape is None else noise_shape
    shape = tuple(n if d is None else d for d, n in zip(sizes, x.shape, strict=True))
    bits = random_bits(xp, n=math.prod(shape), **stream(state)).reshape(shape)
    kept = bits >= xp.uint32(min(round(rate * 2**32), 2**32 - 1))
    scaled = x.astype(computing_dtype(xp, x), copy=False) / (1 - rate)
    return xp.where(kept, scaled, 0).astype(x.dtype, copy=False)


@_dropout.grad
def _dropout_grad(op: OpView, dy: Tensor) -> Grads:
    return _dropout(dy, op.inputs[1], **op.attrs), None


def dropout(
    x: Tensor, state: Tensor, rate: float | Tensor, noise_shape: Sequence[Dim] | None = None
) -> Tensor:
    """`x` with numbers set to 0 at random, the others divided by 1 - rate.

    Args:
        x: a floating tensor.
        state: uint32[4]; the same state drops the same places.
        rate: the probability of a number to be dropped, from 0 to 1; a number, or a scalar tensor.
        noise_shape: 1 on each axis along which numbers are dropped together, None elsewhere.

    Raises:
        InvalidArgumentError: the rate is not a probability.
        ShapeError: noise_shape does not fit x.

    Source: Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting",
        JMLR 15, 2014, section 4; scaled in training, as in section 10.
    """
    if isinstance(rate, Tensor):
        return _dropout_at(x, state, rate, noise_shape)
    if rate == 0:
        return x
    noise = None if noise_shape is None else tuple(noise_shape)
    return _dropout(x, state, rate=float(rate), noise_shape=noise)


def _dropout_at(
    x: Tensor, state: Tensor, rate: Tensor, noise_shape: Sequence[Dim] | None
) -> Tensor:
    """`dropout` at a rate that is computed, written with other ops."""
    wide = float64 if x.dtype == float64 else float32
    shape, dims = dims_of(x)
    unknown = iter(dims)
    sizes = [next(unknown) if d is None else d for d in shape]
    if noise_shape is not None:
        sizes = [n if d is None else d for d, n in zip(noise_shape, sizes, strict=True)]
    rate = cast(rate, wide)
    in_range = logical_and(rate >= 0.0, rate <= 1.0)
    is_valid = check(in_range, "dropout: the rate must be from 0 to 1", [rate])
    kept = logical_and(is_valid, random_uniform(state, sizes) >= cast(rate, float32))
    zero, one = convert_to_tensor(0.0, wide), convert_to_tensor(1.0, wide)
    share = where(rate < 1.0, one - rate, one)  # at a rate of 1 nothing is kept
    return cast(where(kept, cast(x, wide) / share, zero), x.dtype)
