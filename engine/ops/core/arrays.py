"""Host arrays of Python numbers, nested lists, NumPy arrays and other libraries' arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError
from ...graph import (
    DType,
    TensorSpec,
    as_dtype,
    bool_,
    complex64,
    float32,
    int32,
    int64,
    resource,
    string,
)

# Numbers that fit into every floating type.
_SMALL = 60000


class Defaults:
    """The element types that Python's own numbers get."""

    floating: DType = float32
    integer: DType = int32


def to_array(
    value: Any, wanted: DType | None = None, *, copy: bool = True
) -> tuple[np.ndarray[Any, Any], DType]:
    """`value` as a host array with its dtype; see `convert.convert_to_tensor`."""
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
