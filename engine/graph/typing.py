"""The types of arguments that are made into tensors, dtypes and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np

from .dtypes import DType
from .tensor import Tensor


class SupportsArray(Protocol):
    """What NumPy can read: arrays of it and of other libraries, variables, data frames.

    Examples:
        >>> x: laminar.typing.SupportsArray = np.ones(2)
        >>> ops.add(x, 1).shape
        (2,)
    """

    def __array__(self) -> Any:
        """The value as a NumPy array."""


class SupportsDLPack(Protocol):
    """An array of another library, which may lie on another device.

    Examples:
        >>> x: laminar.typing.SupportsDLPack = np.ones(2)
        >>> ops.convert_to_tensor(x).shape
        (2,)
    """

    def __dlpack__(self) -> Any:
        """The value as a DLPack capsule."""


# What `convert_to_tensor` takes.
TensorLike: TypeAlias = (
    Tensor
    | SupportsArray
    | SupportsDLPack
    | bool
    | int
    | float
    | complex
    | str
    | bytes
    | Sequence["TensorLike"]
)
# What `as_dtype` takes: a name, a NumPy dtype, or a Python or NumPy scalar type.
DTypeLike: TypeAlias = DType | str | np.dtype[Any] | type[Any]
# A static shape as layers get it: None where a size is unknown.
Shape: TypeAlias = Sequence[int | None]
# A size of a new tensor, which may be known at run time only.
SizeLike: TypeAlias = SupportsIndex | Tensor
# The shape of a new tensor: one number is a vector's.
ShapeLike: TypeAlias = SizeLike | Sequence[SizeLike | None]
