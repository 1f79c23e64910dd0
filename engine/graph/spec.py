"""What is known of a tensor before it has a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DTypeError
from ..late import later
from .dtypes import DType, as_dtype, float32
from .shapes import TensorShape

_converted = later("laminar.engine.ops.core.convert", "convert_to_tensor")


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

    @classmethod
    def from_spec(cls, spec: TensorSpec, name: str | None = None) -> TensorSpec:
        """The same spec, with another name if one is given."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec of a tensor or array; a symbol's has the name of its operation."""
        if name is None and hasattr(tensor, "op"):
            name = tensor.op.name
        return cls(tensor.shape, tensor.dtype, name)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor, or what a spec describes, could be described by this spec."""
        return self.dtype == as_dtype(other.dtype) and self.shape.is_compatible_with(other.shape)

    def most_specific_compatible_type(self, other: TensorSpec) -> TensorSpec:
        """The narrowest spec that describes what either of two specs describes.

        Raises:
            DTypeError: the element types differ.
        """
        if self.dtype != other.dtype:
            raise DTypeError(f"no spec describes both {self} and {other}: their dtypes differ")
        return TensorSpec(self.shape.most_specific_compatible_shape(other.shape), self.dtype)

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
    """The spec of an array, a tensor, or what becomes one.

    Examples:
        >>> engine.tensor_like(np.zeros((2, 3), "float32"))
        TensorSpec(float32[2, 3])
    """
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        x = _converted(x)
    return TensorSpec(x.shape, x.dtype)
