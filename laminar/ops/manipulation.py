"""The same elements under another shape, in another order, or repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor, canonical_axes
from laminar.engine.ops.array import axes as _axes
from laminar.engine.ops.array import broadcast as engine_broadcast
from laminar.engine.ops.array import rearrange as _array
from laminar.engine.ops.array import shape as engine_shape
from laminar.engine.ops.math.bits import bitcast

from ..typing import DTypeLike, ShapeLike, TensorLike
from .arguments import dtype_or_float, known_rank, tensor, whole
from .recording import public

__all__ = [
    "broadcast_to",
    "copy",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "moveaxis",
    "ndim",
    "ravel",
    "repeat",
    "reshape",
    "roll",
    "rot90",
    "size",
    "squeeze",
    "swapaxes",
    "tile",
    "transpose",
    "view",
]

Axes = int | Sequence[int]


@public
def copy(x: TensorLike) -> Tensor:
    """A tensor with the value of `x`.

    Examples:
        >>> ops.copy([1, 2])
        Tensor([1, 2], shape=(2,), dtype=int32)
    """
    return tensor(x)


@public
def ndim(x: TensorLike) -> int:
    """The number of axes of `x`.

    Examples:
        >>> ops.ndim([[1, 2]])
        2
    """
    return known_rank("ndim", tensor(x))


@public
def size(x: TensorLike) -> Any:
    """The number of elements of `x`: an int, or a scalar tensor where it is not known yet.

    Examples:
        >>> ops.size([[1, 2], [3, 4]])
        4
    """
    x = tensor(x)
    known = x.shape.num_elements()
    return engine_shape.size_of(x) if known is None else known


@public
def reshape(x: TensorLike, newshape: ShapeLike) -> Tensor:
    """The elements of `x`, in row order, under another shape.

    Args:
        x: any tensor.
        newshape: ints or scalar integer tensors; one may be -1 or None, for what the others leave.

    Raises:
        ShapeError: the numbers of elements differ.

    Examples:
        >>> ops.reshape([1, 2, 3, 4], (2, -1))
        Tensor([[1, 2],
                [3, 4]], shape=(2, 2), dtype=int32)
    """
    if isinstance(newshape, tuple | list) and sum(entry is None for entry in newshape) == 1:
        newshape = [-1 if entry is None else entry for entry in newshape]
    return engine_shape.reshape(tensor(x), newshape)


@public
def ravel(x: TensorLike) -> Tensor:
    """The elements of `x`, in row order, as a vector.

    Examples:
        >>> ops.ravel([[1, 2], [3, 4]])
        Tensor([1, 2, 3, 4], shape=(4,), dtype=int32)
    """
    return engine_shape.reshape(tensor(x), (-1,))


@public
def transpose(x: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """`x` with its axes in the order `axes`, or reversed.

    Args:
        x: of any shape.
        axes: for each axis of the result, which axis of `x` it is; None reverses the order.

    Returns:
        Axis i of the result is axis `axes[i]` of `x`.

    Raises:
        ShapeError: `axes` does not name each axis of `x` once.

    Examples:
        >>> ops.transpose([[1, 2], [3, 4]])
        Tensor([[1, 3],
                [2, 4]], shape=(2, 2), dtype=int32)
    """
    return _axes.transpose(tensor(x), axes)


@public
def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """`x` with two axes exchanged.

    Args:
        x: of any shape.
        axis1: one axis; negative numbers count from the end.
        axis2: the axis that changes places with it.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.swapaxes(np.zeros((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
    return _axes.swapaxes(tensor(x), axis1, axis2)


@public
def moveaxis(x: TensorLike, source: Axes, destination: Axes) -> Tensor:
    """`x` with the axes `source` at the places `destination`; the others keep their order.

    Args:
        x: of any shape.
        source: one axis of `x` or several.
        destination: where each of them is in the result, as many as in `source`.

    Raises:
        ShapeError: an axis does not exist or is named twice, or the two numbers of axes differ.

    Examples:
        >>> ops.moveaxis(np.zeros((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    return _axes.moveaxis(tensor(x), source, destination)


@public
def expand_dims(x: TensorLike, axis: Axes) -> Tensor:
    """`x` with a new axis of size 1 at each place `axis` of the result.

    Args:
        x: of any shape.
        axis: one place or several, counted in the result: -1 is behind the last axis.

    Raises:
        ShapeError: the result has no such axis, or one is named twice.

    Examples:
        >>> ops.expand_dims([1, 2], 0).shape
        (1, 2)
    """
    return _axes.expand_dims(tensor(x), axis)


@public
def squeeze(x: TensorLike, axis: Axes | None = None) -> Tensor:
    """`x` without its axes `axis` of size 1, by default all of them.

    Where no axis is named, those of unknown size stay: the rank does not depend on the data.

    Args:
        x: of any shape.
        axis: one axis or several, each of size 1; None for all of size 1.

    Raises:
        ShapeError: an axis does not exist, or its size is not 1.

    Examples:
        >>> ops.squeeze([[[1, 2]]]).shape
        (2,)
    """
    given = tensor(x)
    if axis is None and given.shape.rank is not None and None in given.shape:
        axis = tuple(i for i, size in enumerate(given.shape) if size == 1)
    return _axes.squeeze(given, axis)


@public
def broadcast_to(x: TensorLike, shape: ShapeLike) -> Tensor:
    """`x` repeated along axes of size 1 and new leading axes, to `shape`.

    Args:
        x: whose sizes, counted from the last axis, are 1 or those of `shape`.
        shape: ints or scalar integer tensors, or a vector of integers.

    Returns:
        A tensor of shape `shape` and the type of `x`.

    Raises:
        ShapeError: `x` does not broadcast to `shape`, or a size is negative.

    Examples:
        >>> ops.broadcast_to([1, 2], (2, 2))
        Tensor([[1, 2],
                [1, 2]], shape=(2, 2), dtype=int32)
    """
    if isinstance(shape, Tensor) and engine_shape.is_open(shape):
        return engine_broadcast.broadcast_to_shape(tensor(x), shape)
    attribute, dims = engine_shape.split_shape(shape)
    return engine_broadcast.broadcast_to(tensor(x), attribute, dims)


@public
def flip(x: TensorLike, axis: Axes | None = None) -> Tensor:
    """`x` with the order of its elements reversed along `axis`, by default all axes.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.

    Returns:
        Shape and type of `x`.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.flip([[1, 2], [3, 4]], axis=1)
        Tensor([[2, 1],
                [4, 3]], shape=(2, 2), dtype=int32)
    """
    return _array.flip(tensor(x), axis)


@public
def fliplr(x: TensorLike) -> Tensor:
    """`x` with the order of its columns (axis 1) reversed.

    Examples:
        >>> ops.fliplr([[1, 2], [3, 4]])
        Tensor([[2, 1],
                [4, 3]], shape=(2, 2), dtype=int32)
    """
    return _array.flip(tensor(x), 1)


@public
def flipud(x: TensorLike) -> Tensor:
    """`x` with the order of its rows (axis 0) reversed.

    Examples:
        >>> ops.flipud([[1, 2], [3, 4]])
        Tensor([[3, 4],
                [1, 2]], shape=(2, 2), dtype=int32)
    """
    return _array.flip(tensor(x), 0)


@public
def rot90(array: TensorLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """`array` turned k times by 90 degrees in a plane, from the first of `axes` to the second.

    Args:
        array: with at least two axes.
        k: the number of turns; negative ones go from the second axis to the first.
        axes: the two axes of the plane.

    Returns:
        The sizes along the two axes are exchanged where k is odd.

    Raises:
        ShapeError: `axes` are not two different axes of `array`.

    Examples:
        >>> ops.rot90([[1, 2], [3, 4]])
        Tensor([[2, 4],
                [1, 3]], shape=(2, 2), dtype=int32)
    """
    x = tensor(array)
    if len(axes) != 2:
        raise ShapeError(f"rot90: expected two axes, got {axes}")
    first, second = canonical_axes("rot90", axes, known_rank("rot90", x))
    turns = whole("rot90", "k", k) % 4
    if turns == 0:
        return x
    if turns == 2:
        return _array.flip(x, (first, second))
    if turns == 1:
        return _axes.swapaxes(_array.flip(x, second), first, second)
    return _array.flip(_axes.swapaxes(x, first, second), second)


@public
def roll(x: TensorLike, shift: Axes, axis: Axes | None = None) -> Tensor:
    """`x` with its elements moved along `axis`; those that leave at one end enter at the other.

    Args:
        x: of any shape.
        shift: by how many places, towards greater indices; one number, or one for each axis. Of
            several along one axis the sum counts.
        axis: one axis or several; None rolls the elements in row order and keeps the shape.

    Returns:
        Shape and type of `x`.

    Raises:
        ShapeError: an axis does not exist.
        InvalidArgumentError: several shifts, but not one for each axis.

    Examples:
        >>> ops.roll([1, 2, 3, 4], 1)
        Tensor([4, 1, 2, 3], shape=(4,), dtype=int32)
    """
    if isinstance(shift, Sequence) and not isinstance(axis, Sequence):
        shift = sum(shift)
    return _array.roll(tensor(x), shift, axis)


@public
def repeat(x: TensorLike, repeats: TensorLike, axis: int | None = None) -> Tensor:
    """Each slice of `x` along `axis`, several times in a row.

    Args:
        x: any tensor.
        repeats: how often; one number for all slices, or one for each.
        axis: the axis; None repeats the elements in row order.

    Returns:
        Where `axis` is None a vector, otherwise the shape of `x` with the sum of `repeats` over the
        slices along `axis`.

    Raises:
        ShapeError: there are not as many repeats as slices, or the axis does not exist.
        InvalidArgumentError: a repeat is negative.

    Examples:
        >>> ops.repeat([1, 2], 2)
        Tensor([1, 1, 2, 2], shape=(4,), dtype=int32)
    """
    if isinstance(repeats, np.integer):
        repeats = int(repeats)
    return _array.repeat(tensor(x), repeats, axis)


@public
def tile(x: TensorLike, repeats: TensorLike) -> Tensor:
    """`x` repeated as a whole, `repeats[i]` times along axis i.

    Args:
        x: of any shape.
        repeats: whole numbers; the shorter of `repeats` and the shape of `x` is filled up with ones
            in front.

    Returns:
        Size `x.shape[i] * repeats[i]` along axis i.

    Raises:
        InvalidArgumentError: a number is negative.

    Examples:
        >>> ops.tile([1, 2], 2)
        Tensor([1, 2, 1, 2], shape=(4,), dtype=int32)
    """
    return _array.tile(tensor(x), repeats)


@public
def view(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """The bytes of `x` read as another element type; the last axis grows or shrinks to fit.

    Args:
        x: of any shape.
        dtype: the type in which the bytes are read; None for the default float.

    Returns:
        The shape of `x`, with its last axis times the size of its type by the size of `dtype`.

    Raises:
        ShapeError: the bytes along the last axis are no whole number of elements of `dtype`.

    Examples:
        >>> ops.view(ops.array([1.0], "float32"), "int32")
        Tensor([1065353216], shape=(1,), dtype=int32)
    """
    return bitcast(tensor(x), dtype=dtype_or_float(dtype))
