"""What a tensor is: conversion, types, shapes; and reading and writing parts of one by position."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.functions import custom_gradient as custom_gradient
from laminar.engine.graph import (
    INTEGER,
    DType,
    GraphTensor,
    Tensor,
    as_dtype,
    bool_,
    float64,
    int32,
)
from laminar.engine.ops.array import gather, slicing
from laminar.engine.ops.array import join as engine_join
from laminar.engine.ops.array import scatter as engine
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core import basic
from laminar.engine.ops.core.convert import convert_to_tensor as engine_convert
from laminar.engine.ops.math.arithmetic import maximum, minimum
from laminar.engine.ops.math.cast import cast as engine_cast
from laminar.engine.ops.math.compare import is_nan, where
from laminar.engine.state import Variable

from ..typing import DTypeLike, ShapeLike, TensorLike
from .arguments import known_rank, one_of, tensor, whole
from .recording import public

__all__ = [
    "cast",
    "convert_to_numpy",
    "convert_to_tensor",
    "custom_gradient",
    "dtype",
    "is_tensor",
    "saturate_cast",
    "scatter",
    "scatter_update",
    "shape",
    "slice",
    "slice_update",
    "stop_gradient",
    "unstack",
]


def shape(x: Any) -> tuple[Any, ...]:
    """The dimensions of `x`: ints, and scalar tensors for those known at run time only.

    Those of a symbolic tensor of the functional API are ints and None.

    Raises:
        ShapeError: the number of axes is unknown.

    Examples:
        >>> ops.shape(np.zeros((2, 3)))
        (2, 3)
    """
    if not isinstance(x, GraphTensor):
        return tuple(x.shape) if hasattr(x, "shape") else tuple(tensor(x).shape)
    known_rank("shape", x)
    return tuple(dim_of(x, axis=i) if d is None else d for i, d in enumerate(x.shape))


def dtype(x: Any) -> str:
    """The element type of `x`, as a string.

    Examples:
        >>> ops.dtype(ops.ones((2,), "bfloat16"))
        'bfloat16'
    """
    return str(as_dtype(x.dtype) if hasattr(x, "dtype") else tensor(x).dtype)


def is_tensor(x: object) -> bool:
    """Whether `x` is a tensor of laminar's.

    Examples:
        >>> ops.is_tensor(ops.ones(2)), ops.is_tensor(np.ones(2))
        (True, False)
    """
    return isinstance(x, Tensor)


@public
def convert_to_tensor(
    x: TensorLike,
    dtype: DTypeLike | None = None,
    sparse: bool | None = None,
    ragged: bool | None = None,
) -> Tensor:
    """A tensor of a number, nested list, array, variable or tensor.

    Args:
        x: the value; Python floats become the default float, ints int32, arrays keep their type.
        dtype: element type; what an array of floats has behind the point is cut off by an integer
            type, as it is of a tensor. Python's numbers must fit.
        sparse: must not be true: laminar has dense tensors only.
        ragged: must not be true.

    Examples:
        >>> ops.convert_to_tensor([1, 2], dtype="float32")
        Tensor([1., 2.], shape=(2,), dtype=float32)
    """
    if sparse or ragged:
        raise InvalidArgumentError("convert_to_tensor: there are dense tensors only")
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is not None and wanted.is_integer and isinstance(x, np.ndarray | np.generic):
        return cast(x, wanted)
    return tensor(x, wanted)


def convert_to_numpy(x: TensorLike) -> np.ndarray[Any, Any]:
    """The value of `x` as a NumPy array of its own.

    Raises:
        FailedPreconditionError: `x` is symbolic.

    Examples:
        >>> ops.convert_to_numpy(ops.ones((2,)))
        array([1., 1.], dtype=float32)
    """
    found: np.ndarray[Any, Any] = engine_convert(x).numpy()
    return found


@public
def cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """`x` with another element type.

    Args:
        x: any tensor. Integer types cut off the fraction of a float; integers beyond their range
            wrap around.
        dtype: the element type; bool says whether a number is not 0.

    Raises:
        DTypeError: `dtype` is no element type, or `x` holds strings.

    Examples:
        >>> ops.cast([1.9, -1.9], "int32")
        Tensor([ 1, -1], shape=(2,), dtype=int32)
    """
    wanted = as_dtype(dtype)
    if isinstance(x, Tensor):
        return engine_cast(x, wanted)
    # Python's own numbers have 64 bits, of which their default type keeps fewer.
    if wanted.is_floating and isinstance(x, float | list | tuple):
        with suppress(DTypeError):  # complex numbers, say
            return engine_convert(x, wanted)
    return engine_cast(engine_convert(x, float64 if isinstance(x, float) else None), wanted)


@public
def saturate_cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """`x` with another element type; values beyond the range of an integer type become its limits.

    Args:
        x: any tensor; NaN becomes 0 where `dtype` is an integer type.
        dtype: the element type; only integer types have limits here, a float too great is infinite.

    Returns:
        A tensor of `dtype` and the shape of `x`.

    Examples:
        >>> ops.saturate_cast([-5.0, 300.0], "uint8")
        Tensor([  0, 255], shape=(2,), dtype=uint8)
    """
    x, wanted = tensor(x), as_dtype(dtype)
    if x.dtype.is_complex or wanted not in INTEGER or x.dtype == bool_:
        return engine_cast(x, wanted)
    low, high = _common_range(x.dtype, wanted)
    if x.dtype.is_floating:
        x = where(is_nan(x), basic.zeros_like(x), x)
    return engine_cast(minimum(maximum(x, tensor(low, x.dtype)), tensor(high, x.dtype)), wanted)


def _common_range(source: DType, target: DType) -> tuple[Any, Any]:
    """The least and the greatest number of the integer type `target` that `source` can hold."""
    limits = np.iinfo(target.numpy)
    if source in INTEGER:
        own = np.iinfo(source.numpy)
        return max(int(limits.min), int(own.min)), min(int(limits.max), int(own.max))
    # Rounded towards 0: the float next to 2**31 - 1 may be 2**31, which int32 does not have.
    low, high = (np.float64(v).astype(source.numpy) for v in (limits.min, limits.max))
    if float(high) > limits.max:
        high = np.nextafter(high, np.zeros((), high.dtype), dtype=high.dtype)
    return float(max(low, np.finfo("float64").min)), float(high)


@public
def stop_gradient(variable: TensorLike) -> Tensor:
    """`variable` itself, through which no gradient flows.

    Examples:
        >>> laminar.grad(lambda x: ops.stop_gradient(x) * x)(ops.array(3.0))
        Tensor(3., shape=(), dtype=float32)
    """
    return basic.stop_gradient(tensor(variable))


@public
def unstack(x: TensorLike, num: int | None = None, axis: int = 0) -> list[Tensor]:
    """The slices of `x` along `axis`, without that axis.

    Args:
        x: any tensor.
        num: how many, needed where the size of the axis is unknown.
        axis: the axis to take apart.

    Raises:
        ShapeError: the axis does not exist, or its size is not `num`.

    Examples:
        >>> ops.unstack(np.array([[1, 2], [3, 4]]))
        [Tensor([1, 2], shape=(2,), dtype=int64), Tensor([3, 4], shape=(2,), dtype=int64)]
    """
    return list(engine_join.unstack(tensor(x), num, axis))


@public
def slice(inputs: TensorLike, start_indices: TensorLike, shape: ShapeLike) -> Tensor:
    """The block of `inputs` that begins at `start_indices` and has the sizes `shape`.

    Args:
        inputs: any tensor.
        start_indices: for each axis where the block begins; ints or scalar tensors.
        shape: for each axis how many elements it has, -1 for all that follow. Axes that both lists
            leave out stay whole.

    Raises:
        InvalidArgumentError: the block does not lie inside.
        ShapeError: the lists differ in length.

    Examples:
        >>> ops.slice(np.arange(6).reshape(2, 3), (0, 1), (2, 2))
        Tensor([[1, 2],
                [4, 5]], shape=(2, 2), dtype=int64)
    """
    x, begin, size = tensor(inputs), _integers(start_indices), _integers(shape)
    if isinstance(begin, list) and isinstance(size, list) and len(begin) == len(size):
        left_out = max(0, known_rank("slice", x) - len(begin))
        begin, size = begin + [0] * left_out, size + [-1] * left_out
    return slicing.slice_at(x, begin, size)


@public
def slice_update(inputs: TensorLike, start_indices: TensorLike, updates: TensorLike) -> Tensor:
    """`inputs` with the block that begins at `start_indices` replaced by `updates`.

    Args:
        inputs: any tensor.
        start_indices: for each axis where the block begins; ints or scalar tensors, none negative.
        updates: the block, with as many axes as `inputs`; converted to its type.

    Returns:
        Shape and type of `inputs`.

    Raises:
        ShapeError: not one index for each axis, or `updates` has another number of axes.
        InvalidArgumentError: the block does not lie inside.

    Examples:
        >>> ops.slice_update([1, 2, 3, 4], [1], [20, 30])
        Tensor([ 1, 20, 30,  4], shape=(4,), dtype=int32)
    """
    x = tensor(inputs)
    return slicing.slice_update(x, _integers(start_indices), tensor(updates, x.dtype))


def _integers(values: Any) -> Any:
    """A sequence of whole numbers whose items may be tensors, or one tensor of them."""
    if isinstance(values, Tensor | Variable):
        return tensor(values)
    if not np.iterable(values):
        raise ShapeError(f"slice: expected a start for each axis, got {values!r}")
    return [v if isinstance(v, Tensor) else whole("slice", "a start", v) for v in values]


@public
def scatter(indices: TensorLike, values: TensorLike, shape: ShapeLike) -> Tensor:
    """Zeros of `shape`, with `values` added at `indices`; repeated indices add up.

    Args:
        indices: (i..., k), integers: positions in the first k axes.
        values: (i..., q...).
        shape: (n_0, ..., n_k-1, q...).

    Returns:
        A tensor of `shape` and the type of `values`.

    Raises:
        InvalidArgumentError: an index is out of range.
        ShapeError: indices or values do not fit `shape`.

    Examples:
        >>> ops.scatter([[0], [2]], [10, 20], shape=(4,))
        Tensor([10,  0, 20,  0], shape=(4,), dtype=int32)
    """
    return gather.scatter_nd(_index(indices), tensor(values), shape)


def _index(indices: TensorLike) -> Tensor:
    found = tensor(indices)
    return found if found.dtype in INTEGER else engine_cast(found, int32)


_SCATTER = {
    None: engine.scatter_update,
    "add": engine.scatter_add,
    "mul": engine.scatter_mul,
    "max": engine.scatter_max,
    "min": engine.scatter_min,
}


@public
def scatter_update(
    inputs: TensorLike, indices: TensorLike, updates: TensorLike, reduction: str | None = None
) -> Tensor:
    """`inputs` with the elements or slices at `indices` replaced by `updates`, or combined.

    Args:
        inputs: (n_0, ..., n_k-1, q...).
        indices: (i..., k), integers.
        updates: (i..., q...).
        reduction: None replaces (of equal indices the last counts); "add", "mul", "max" and "min"
            combine with what is there.

    Returns:
        Shape and type of `inputs`.

    Raises:
        ShapeError: indices or updates do not fit.
        InvalidArgumentError: another reduction, or an index out of range.

    Examples:
        >>> ops.scatter_update([1, 2, 3], [[0], [2]], [10, 30])
        Tensor([10,  2, 30], shape=(3,), dtype=int32)
    """
    if reduction not in _SCATTER:
        one_of("scatter_update", "reduction", reduction, ["add", "mul", "max", "min"])
    x = tensor(inputs)
    return _SCATTER[reduction](x, _index(indices), tensor(updates, x.dtype))
