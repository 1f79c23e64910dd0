"""Images in one form: a batch with the channels last, whatever the caller has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import axes
from laminar.engine.ops.array.shape import dims_of
from laminar.settings import standardize_data_format

from ..typing import DataFormat, TensorLike
from .arguments import tensor


def on_batch(
    who: str,
    images: TensorLike,
    data_format: DataFormat | None,
    compute: Callable[[Tensor], Tensor],
    spatial: int = 2,
) -> Tensor:
    """`compute` of images as (batch, *spatial, channels); the result in the form of the images.

    Raises:
        ShapeError: the images have another number of axes.
    """
    x = tensor(images)
    if x.shape.rank not in (spatial + 1, spatial + 2):
        raise ShapeError(
            f"{who}: expected {spatial + 1} axes, or {spatial + 2} for a batch, got {x.spec}",
            remedy="give (height, width, channels) or (batch, height, width, channels)",
        )
    first = standardize_data_format(data_format) == "channels_first"
    single = x.shape.rank == spatial + 1
    if single:
        x = axes.expand_dims(x, 0)
    if first:
        x = axes.moveaxis(x, 1, -1)
    y = compute(x)
    if first:
        y = axes.moveaxis(y, -1, 1)
    return axes.squeeze(y, 0) if single else y


def sizes(x: Tensor) -> list[Any]:
    """The dimensions of `x`: ints, and scalar tensors for the unknown ones."""
    shape, dims = dims_of(x)
    return [dims.pop(0) if d is None else d for d in shape]


def known_dims(who: str, x: Tensor, *places: int) -> list[int]:
    """The sizes of `x` along some axes; ShapeError when one is unknown."""
    found = [x.shape[axis] for axis in places]
    if None in found:
        raise ShapeError(
            f"{who}: height, width and channels of {x.spec} must be known",
            remedy="give the images a shape",
        )
    return [d for d in found if d is not None]
