"""Host arrays of Python numbers, nested lists, NumPy arrays and other libraries' arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError
from ...graph import (
    Array,
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
    uint64,
)

# Numbers that fit into every floating type.
_SMALL = 60000
_add: Any = np.add  # their stubs know no `keepdims` that is a variable
_maximum: Any = np.maximum


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
        array = _from_python(value)
        if wanted == string and python and not array.size:
            array = array.astype(object)  # no items: NumPy takes them for floats
        return _typed(array, wanted, python=python)
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
        if type(value) is float and dtype is not float32 and dtype.is_integer:
            _check_integers(np.array(value), dtype)
        if -_SMALL < value < _SMALL:
            return np.array(value, dtype.numpy), dtype
        with np.errstate(over="ignore"):  # rounding to infinity is the result, not a warning
            return np.array(value, dtype.numpy), dtype
    except OverflowError as cause:
        raise _no_fit(value, dtype) from cause


def _no_fit(value: Any, dtype: DType) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the number {value!r} does not fit into {dtype}", remedy="use a wider element type"
    )


def _check_integers(array: np.ndarray[Any, Any], dtype: DType) -> None:
    """InvalidArgumentError unless an integer type holds each element as it is."""
    if not array.size or np.can_cast(array.dtype, dtype.numpy):
        return
    is_real = array.dtype.kind not in "iuO"
    if is_real:
        array = array.astype(np.float64)
    limits = np.iinfo(dtype.numpy)
    # The bound above is exact as a float, which the greatest number itself may not be.
    inside = (array >= limits.min) & (array < int(limits.max) + 1)
    if not inside.all():
        raise _no_fit(array[~inside].tolist()[0], dtype)
    if is_real and not (whole := np.trunc(array) == array).all():
        raise InvalidArgumentError(
            f"the number {array[~whole].tolist()[0]!r} is not whole, and {dtype} holds integers",
            remedy="round it, or cast() it, which truncates",
        )


def _from_python(value: Any) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
        if array.dtype == np.float64 and array.size and np.abs(array).max() >= 2**53:
            return _of_large_integers(value, array)
        # NumPy's own strings would lose zero bytes at the end of an item.
        return np.array(value, object) if array.dtype.kind in "SU" else array
    except UnicodeDecodeError:  # str and bytes together
        return np.array(value, object)
    except (ValueError, TypeError) as cause:
        raise InvalidArgumentError(
            f"cannot make a tensor of a {type(value).__name__}: {cause}",
            remedy="nested lists must have equal lengths; pad them, or pass a NumPy array",
        ) from cause


def _of_large_integers(value: Any, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`value` as Python's integers if it holds nothing else: NumPy makes some of them floats."""
    exact = np.array(value, object)
    return exact if _are_integers(exact) else array


def _are_integers(array: np.ndarray[Any, Any]) -> bool:
    return all(isinstance(v, int | np.integer) for v in array.flat)


def _typed(
    array: np.ndarray[Any, Any], wanted: DType | None, *, python: bool = False
) -> tuple[np.ndarray[Any, Any], DType]:
    if array.dtype == object and array.size and _are_integers(array):
        if wanted is None:
            wanted = uint64
        if wanted.is_integer:
            _check_integers(array, wanted)
        return array.astype(wanted.numpy), wanted
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
        if wanted.is_integer:
            _check_integers(array, wanted)
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


def can_stand_for(dtype: DType, wanted: DType) -> bool:
    """Whether values of one type may be given where another is asked for.

    Numbers stand for numbers of the same or of a later kind: bool, integer, real, complex.
    """
    return _kind(dtype) <= _kind(wanted)


def _kind(dtype: DType) -> int:
    if dtype == string:
        return 9
    return 3 if dtype.is_complex else 2 if dtype.is_floating else 1 if dtype.is_integer else 0


# In which type kernels compute, and compare.


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether it is float16 or bfloat16, which NumPy knows as two bytes of something."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def computing_dtype(xp: Any, x: Array) -> Any:
    """float32 for half types, so that a kernel rounds once, at its end; else the type of `x`."""
    return xp.float32 if is_half(x.dtype) else x.dtype


def widened(xp: Any, x: Array) -> Array:
    """Half types as float32, so that a kernel rounds once, at its end; anything else as it is."""
    return x.astype(xp.float32) if is_half(x.dtype) else x


def rounded(y: Array, dtype: Any) -> Array:
    """A result in a type, itself where it has it: a call of `astype` is dear where there is little
    to compute."""
    return y if y.dtype == dtype else y.astype(dtype)


def summed(xp: Any, x: Array, axis: tuple[int, ...] | None, keepdims: bool) -> Array:
    """The sum over some axes, or (None) all, in the type of `x`."""
    if xp is np:  # what np.sum does, without its own way there
        return _add.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdims)
    return xp.sum(x, axis=axis, dtype=x.dtype, keepdims=keepdims)


def greatest(xp: Any, x: Array, axis: tuple[int, ...] | None, keepdims: bool) -> Array:
    """The greatest element over some axes, or (None) all."""
    if xp is np:
        return _maximum.reduce(x, axis=axis, keepdims=keepdims)
    return xp.max(x, axis=axis, keepdims=keepdims)


def in_order(xp: Any, x: Array) -> Array:
    """`x` in a type that is put in order with NaN as the greatest: bfloat16 is not."""
    return x.astype(xp.float32) if x.dtype.kind == "V" else x
