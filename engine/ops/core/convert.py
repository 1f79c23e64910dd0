"""Make tensors of Python numbers, nested lists, NumPy arrays and other libraries' arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError
from ...graph import (
    DType,
    EagerTensor,
    Literal,
    Tensor,
    TensorSpec,
    as_dtype,
    bool_,
    building,
    complex64,
    float32,
    int32,
    int64,
    resource,
    stack,
    string,
)

# Numbers that fit into every floating type.
_SMALL = 60000


class Defaults:
    """The element types that Python's own numbers get."""

    floating: DType = float32
    integer: DType = int32


def convert_to_tensor(value: Any, dtype: Any = None, *, copy: bool = True) -> Tensor:
    """A tensor of `value`: itself if it is one (cast if `dtype` differs), else an eager tensor.

    Args:
        value: tensor, variable, number, nested list, NumPy array, or an array with `__dlpack__`
            or `__array__`.
        dtype: element type; by default that of an array, float32 for Python floats, int32 for ints.
        copy: whether an array that the caller may change later is copied.

    Raises:
        DTypeError: the value has no element type of ours.
        InvalidArgumentError: nested lists of unequal length, or a number that does not fit.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if type(value) is EagerTensor and (wanted is None or value.dtype == wanted):
        return value
    as_tensor = getattr(value, "__laminar_tensor__", None)  # a variable gives its value
    if as_tensor is not None:
        value = as_tensor()
    if isinstance(value, Tensor):
        if wanted is None or value.dtype == wanted:
            return value
        from ..math.cast import cast  # cast.py declares an op, which needs this module

        return cast(value, wanted)
    if isinstance(value, list | tuple) and _holds_tensor(value):
        return _stacked(value, wanted)
    array, dtype = to_array(value, wanted, copy=copy)
    graph = building()
    if graph is not None:
        return Literal(array, dtype, graph)
    place = stack.place
    return EagerTensor(array, dtype) if place is None else place.tensor(array, dtype)


def _stacked(value: Sequence[Any], dtype: DType | None) -> Tensor:
    """Nested lists with tensors among them."""
    from ..array.join import stack  # these declare ops, which need this module
    from .promotion import promote

    return stack(promote(*[convert_to_tensor(item, dtype) for item in value]))


def _holds_tensor(value: Any) -> bool:
    """Whether a tensor or variable is among the leaves of nested lists."""
    if isinstance(value, list | tuple):
        return any(_holds_tensor(item) for item in value)
    return isinstance(value, Tensor) or hasattr(value, "__laminar_tensor__")


def to_array(
    value: Any, wanted: DType | None = None, *, copy: bool = True
) -> tuple[np.ndarray[Any, Any], DType]:
    """`value` as a host array with its dtype; see `convert_to_tensor`."""
    if wanted == resource:
        raise DTypeError(f"a handle to state cannot be made of {value!r}")
    kind = type(value)
    if kind is float or kind is int or kind is bool:
        return _scalar(value, wanted or _default(value))
    if isinstance(value, np.ndarray | np.generic):
        array = np.array(value) if copy else np.asarray(value)
        return _typed(array, wanted)
    if isinstance(value, str | bytes):
        return _typed(np.array(value, object), wanted)
    if isinstance(value, TensorSpec) or value is None:
        raise InvalidArgumentError(
            f"expected a tensor or an array, got {value!r}", remedy="pass a value"
        )
    if isinstance(value, list | tuple):
        python = not any(isinstance(v, np.ndarray) for v in value)
        return _typed(_from_python(value), wanted, python=python)
    if hasattr(value, "detach") and hasattr(value, "cpu"):  # PyTorch, whatever the device
        value = value.detach().cpu()
    if hasattr(value, "__array__"):
        array, python = _from_python(value), False
    elif hasattr(value, "__dlpack__"):
        array, python = np.from_dlpack(value), False
    else:
        array, python = _from_python(value), True
    # The array may be the other library's own memory.
    return _typed(array.copy() if copy else array, wanted, python=python)


def _default(value: Any) -> DType:
    """The type of a Python number."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, float):
        return Defaults.floating
    return Defaults.integer if -(2**31) <= value < 2**31 else int64


def _scalar(value: Any, dtype: DType) -> tuple[np.ndarray[Any, Any], DType]:
    if dtype == string:
        raise DTypeError(f"cannot read the number {value!r} as a string")
    try:
        if -_SMALL < value < _SMALL:
            return np.array(value, dtype.numpy), dtype
        with np.errstate(over="ignore"):  # rounding to infinity is the result, not a warning
            return np.array(value, dtype.numpy), dtype
    except (OverflowError, ValueError) as cause:
        raise InvalidArgumentError(
            f"the number {value!r} does not fit into {dtype}", remedy="use a wider element type"
        ) from cause


def _from_python(value: Any) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
        # NumPy's own strings would lose zero bytes at the end of an item.
        return np.array(value, object) if array.dtype.kind in "SU" else array
    except UnicodeDecodeError:  # str and bytes together
        return np.array(value, object)
    except (ValueError, TypeError) as cause:
        raise InvalidArgumentError(
            f"cannot make a tensor of a {type(value).__name__}: {cause}",
            remedy="nested lists must have equal lengths; pad them, or pass a NumPy array",
        ) from cause


def _typed(
    array: np.ndarray[Any, Any], wanted: DType | None, *, python: bool = False
) -> tuple[np.ndarray[Any, Any], DType]:
    if array.dtype.kind in "OSU":
        if wanted not in (None, string):
            raise DTypeError(f"cannot read {array.dtype} values as {wanted}")
        return _byte_strings(array), string
    if wanted is None:
        wanted = as_dtype(array.dtype)
        if python and array.dtype.kind in "fic":  # of Python numbers, which NumPy makes 64 bits
            wanted = {"f": Defaults.floating, "i": Defaults.integer, "c": complex64}[
                array.dtype.kind
            ]
            if wanted == int32 and array.size and not _fits_int32(array):
                wanted = int64
    elif wanted == string or (array.dtype.kind == "c" and not wanted.is_complex):
        raise DTypeError(
            f"cannot read {array.dtype} values as {wanted}", remedy="convert them first"
        )
    if array.dtype != wanted.numpy:
        with np.errstate(all="ignore"):
            array = array.astype(wanted.numpy)
    return array, wanted


def _fits_int32(array: np.ndarray[Any, Any]) -> bool:
    return bool(array.min() >= -(2**31) and array.max() < 2**31)


def _byte_strings(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    def encode(item: Any) -> bytes:
        if isinstance(item, str):
            return item.encode()
        if isinstance(item, bytes):
            return item
        raise DTypeError(
            f"expected numbers or strings, got an element of type {type(item).__name__}",
            remedy="pass an array of one numeric type, or of str or bytes",
        )

    flat = [encode(item) for item in array.ravel().tolist()]
    out = np.empty(len(flat), object)
    out[:] = flat
    return out.reshape(array.shape)
