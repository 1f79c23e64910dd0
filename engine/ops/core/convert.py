"""Make tensors of Python numbers, nested lists, NumPy arrays and other libraries' arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import ops
from ...graph import DType, EagerTensor, Literal, Tensor, as_dtype, building, stack
from .arrays import to_array


def convert_to_tensor(
    value: Any, dtype: Any = None, *, copy: bool = True, name: str | None = None
) -> Tensor:
    """A tensor of `value`: itself if it is one (cast if `dtype` differs), else an eager tensor.

    Args:
        value: tensor, variable, number, nested list, NumPy array, or an array with `__dlpack__`
            or `__array__`.
        dtype: element type; by default that of an array, float32 for Python floats, int32 for ints.
        copy: whether an array that the caller may change later is copied.
        name: of its operation, where a graph is built.

    Raises:
        DTypeError: the value has no element type of ours.
        InvalidArgumentError: nested lists of unequal length, or a number that does not fit.

    Examples:
        >>> engine.convert_to_tensor(np.array([1, 2], "int8"))
        Tensor([1, 2], shape=(2,), dtype=int8)
    """
    if name is not None:
        named: Tensor = ops.naming.call_named(name, convert_to_tensor, value, dtype, copy=copy)
        return named
    wanted = dtype if dtype is None or type(dtype) is DType else as_dtype(dtype)
    kind = type(value)
    if kind is float or kind is int:
        return _tensor(*to_array(value, wanted))
    if type(value) is EagerTensor and (wanted is None or value.dtype == wanted):
        return value
    as_tensor = getattr(value, "__laminar_tensor__", None)  # a variable gives its value
    if as_tensor is not None:
        value = as_tensor()
    if isinstance(value, Tensor):
        if wanted is None or value.dtype == wanted:
            return value
        return ops.cast.cast(value, wanted)
    if isinstance(value, list | tuple) and _holds_tensor(value):
        return _stacked(value, wanted)
    return _tensor(*to_array(value, wanted, copy=copy))


def _tensor(array: np.ndarray[Any, Any], dtype: DType) -> Tensor:
    """An array as a tensor of where the thread computes."""
    graph = building()
    if graph is not None:
        return Literal(array, dtype, graph)
    place = stack.place
    return EagerTensor(array, dtype) if place is None else place.tensor(array, dtype)


def _stacked(value: Sequence[Any], dtype: DType | None) -> Tensor:
    """Nested lists with tensors among them."""
    items = [convert_to_tensor(item, dtype) for item in value]
    common = ops.lattice.result_type(*items)
    return ops.join.stack([ops.cast.cast(item, common) for item in items])


def _holds_tensor(value: Any) -> bool:
    """Whether a tensor or variable is among the leaves of nested lists."""
    if isinstance(value, list | tuple):
        return any(_holds_tensor(item) for item in value)
    return isinstance(value, Tensor) or hasattr(value, "__laminar_tensor__")
