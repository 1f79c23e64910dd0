"""Class numbers as vectors."""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import FLOATING, INTEGER, Tensor, bool_, int32
from laminar.engine.ops.array import creation
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.reduce import reduce_any, reduce_max

from ..typing import DTypeLike, TensorLike
from .arguments import dtype_or_float, known_array, known_rank, tensor, whole
from .recording import public

__all__ = ["multi_hot", "one_hot"]


def _classes(who: str, x: Any, num_classes: Any, sparse: bool) -> tuple[Tensor, int]:
    if sparse:
        raise InvalidArgumentError(f"{who}: there are dense tensors only, sparse must be false")
    indices, count = tensor(x), whole("one_hot", "num_classes", num_classes)
    if indices.dtype in INTEGER:
        return indices, count
    known = known_array(indices) if indices.dtype in FLOATING else None
    if known is not None and (known % 1 != 0).any():
        raise InvalidArgumentError(
            f"{who}: class numbers are whole, got {known[known % 1 != 0].flat[0]}"
        )
    return cast(indices, int32), count


@public
def one_hot(
    x: TensorLike,
    num_classes: int,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    sparse: bool = False,
) -> Tensor:
    """Each class number as a vector with 1 at its place and 0 elsewhere.

    Args:
        x: class numbers, any shape, in an integer type or as whole floats; those outside
            0 ... num_classes - 1 give zeros alone.
        num_classes: the length of the vectors.
        axis: the place of the new axis.
        dtype: element type, by default the default float.
        sparse: must be false.

    Returns:
        The shape of `x` with an axis of `num_classes` more.

    Raises:
        InvalidArgumentError: a class number with a fraction, or a negative `num_classes`.
        ShapeError: the result has no such axis.

    Examples:
        >>> ops.one_hot([0, 2], 3)
        Tensor([[1., 0., 0.],
                [0., 0., 1.]], shape=(2, 3), dtype=float32)
    """
    indices, count = _classes("one_hot", x, num_classes, sparse)
    return creation.one_hot(indices, count, axis, dtype_or_float(dtype))


@public
def multi_hot(
    inputs: TensorLike,
    num_classes: int | None = None,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    sparse: bool = False,
) -> Tensor:
    """The class numbers of each example as one vector with 1 at each of their places.

    Args:
        inputs: (..., numbers) or (numbers,); those outside 0 ... num_classes - 1 count for nothing.
        num_classes: the length of the vectors; it must be given.
        axis: the place of the class axis.
        dtype: element type, by default the default float.
        sparse: must be false.

    Returns:
        The shape of `inputs` without its last axis, and with an axis of `num_classes`.

    Raises:
        InvalidArgumentError: without `num_classes`, or a class number with a fraction.

    Examples:
        >>> ops.multi_hot([0, 2], num_classes=4)
        Tensor([1., 0., 1., 0.], shape=(4,), dtype=float32)
    """
    if num_classes is None:
        raise InvalidArgumentError(
            "multi_hot: num_classes is missing", remedy="say how many classes there are"
        )
    indices, count = _classes("multi_hot", inputs, num_classes, sparse)
    # The numbers of an example stand along axis 1; without a batch, along axis 0.
    reduced = 1 if known_rank("multi_hot", indices) > 1 else 0
    hot = creation.one_hot(indices, count, axis, dtype_or_float(dtype))
    return reduce_any(hot, reduced) if hot.dtype == bool_ else reduce_max(hot, reduced)
