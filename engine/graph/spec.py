"""What is known of a tensor before it has a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import DType, as_dtype, float32
from .shapes import TensorShape


class TensorSpec:
    """Shape and dtype of a tensor, and a name where it is an argument.

    Args:
        shape: dimensions, None for each unknown one; None for unknown rank.
        dtype: element type. The two may change places, as in pairs of an input signature.
        name: of the argument it describes.

    Examples:
        >>> engine.TensorSpec((None, 3), "float32", name="x")
        TensorSpec(float32[?, 3])
    """

    __slots__ = ("dtype", "name", "shape")

    shape: TensorShape
    dtype: DType
    name: str | None

    def __init__(self, shape: Any, dtype: Any = float32, name: str | None = None) -> None:
        if isinstance(shape, str | type | np.dtype):  # no shape is one of these
            shape, dtype = dtype, shape
        self.shape = TensorShape(shape)
        self.dtype = as_dtype(dtype)
        self.name = name

    @property
    def rank(self) -> int | None:
        """The number of axes, or None."""
        return self.shape.rank

    def is_compatible_with(self, other: TensorSpec) -> bool:
        """Whether a tensor described by `other` could be described by this one."""
        return self.dtype == other.dtype and self.shape.is_compatible_with(other.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return self.dtype == other.dtype and self.shape == other.shape

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __str__(self) -> str:
        return f"{self.dtype}{self.shape}"

    def __repr__(self) -> str:
        return f"TensorSpec({self})"


def tensor_like(x: Any) -> TensorSpec:
    """The spec of an array or tensor.

    Examples:
        >>> engine.tensor_like(np.zeros((2, 3), "float32"))
        TensorSpec(float32[2, 3])
    """
    return TensorSpec(x.shape, x.dtype)
