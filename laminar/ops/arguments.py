"""What users pass, as tensors of the element type in which an op computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import (
    FLOATING,
    INEXACT,
    INTEGER,
    DType,
    EagerTensor,
    Tensor,
    as_dtype,
    bool_,
    float32,
    int32,
)
from laminar.engine.ops.core.arrays import Defaults
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.core.entries import whole as whole
from laminar.engine.ops.core.lattice import result_type
from laminar.engine.ops.core.promotion import promote
from laminar.engine.ops.math.cast import cast

from ..typing import DTypeLike, TensorLike

Scalar = int | float | bool | complex


def tensor(x: TensorLike, dtype: DType | None = None) -> Tensor:
    """`x` as a tensor, of `dtype` if one is given."""
    if type(x) is not EagerTensor and not isinstance(x, Tensor):
        x = convert_to_tensor(x, dtype)
    return x if dtype is None or x.dtype == dtype else cast(x, dtype)


def known_array(x: Tensor) -> Any:
    """The value of `x` as a NumPy array, None where it is known at run time only."""
    return x.numpy() if isinstance(x, EagerTensor) else None


def floating(x: TensorLike) -> Tensor:
    """`x` as a tensor of a type with fractions: integers and bools become the default float."""
    x = tensor(x)
    return x if x.dtype is float32 or x.dtype in INEXACT else cast(x, Defaults.floating)


def numeric(x: TensorLike) -> Tensor:
    """`x` as a tensor of numbers: bools become int32."""
    x = tensor(x)
    return cast(x, int32) if x.dtype == bool_ else x


def boolean(x: TensorLike) -> Tensor:
    """`x` as a tensor of bools: a number holds when it is not 0."""
    return cast(tensor(x), bool_)


def pair(x1: TensorLike, x2: TensorLike) -> tuple[Tensor, Tensor]:
    """Two operands in their common type; a Python number takes the type of the tensor."""
    if type(x1) is EagerTensor and type(x2) is EagerTensor and x1.dtype is x2.dtype:
        return x1, x2
    if isinstance(x1, Tensor):
        if isinstance(x2, Tensor):
            if x1.dtype == x2.dtype:
                return x1, x2
        elif type(x2) in (float, int) and x1.dtype in FLOATING:
            return x1, convert_to_tensor(x2, x1.dtype)
    elif type(x1) in (float, int) and isinstance(x2, Tensor) and x2.dtype in FLOATING:
        return convert_to_tensor(x1, x2.dtype), x2
    x1, x2 = _read(x1), _read(x2)
    dtype = common(x1, x2)
    return tensor(x1, dtype), tensor(x2, dtype)


def _read(x: Any) -> Any:
    """The value of a variable, which is read once; anything else as it is."""
    value = getattr(x, "__laminar_tensor__", None)
    return x if value is None else value()


def floating_pair(x1: TensorLike, x2: TensorLike) -> tuple[Tensor, Tensor]:
    """Two operands in their common type, which has fractions."""
    if type(x2) is int and not isinstance(x1, Scalar):
        x1 = tensor(x1)
        if x1.dtype in INTEGER:  # a type that may not hold x2: uint8 has no -2
            return floating(x1), convert_to_tensor(x2, Defaults.floating)
    elif type(x1) is int and not isinstance(x2, Scalar):
        x2 = tensor(x2)
        if x2.dtype in INTEGER:
            return convert_to_tensor(x1, Defaults.floating), floating(x2)
    a, b = pair(x1, x2)
    return (a, b) if a.dtype in INEXACT else (floating(a), floating(b))


def numeric_pair(x1: TensorLike, x2: TensorLike) -> tuple[Tensor, Tensor]:
    """Two operands in their common type, which is one of numbers."""
    a, b = pair(x1, x2)
    return (a, b) if a.dtype != bool_ else (numeric(a), numeric(b))


def common(*xs: Any) -> DType:
    """The common type of operands: Python numbers are weak, everything else has a type."""
    return result_type(*(x if isinstance(x, Scalar) else tensor(x) for x in xs))


def tensors(xs: Any) -> tuple[Tensor, ...]:
    """The items of a sequence (or the slices of a tensor) as tensors of their common type."""
    try:
        items = list(xs)
    except TypeError:
        raise ShapeError(f"expected a sequence of tensors, got {xs!r}") from None
    for x in items:
        if type(x) is not EagerTensor or x.dtype is not items[0].dtype:
            break
    else:  # which is common
        return tuple(items)
    if all(isinstance(x, Tensor) and x.dtype == items[0].dtype for x in items):
        return tuple(items)
    return promote(*items)


def known_rank(who: str, x: Tensor) -> int:
    """The number of axes of `x`.

    Raises:
        ShapeError: it is unknown.
    """
    if x.shape.rank is None:
        raise ShapeError(
            f"{who}: the number of axes of {x!r} must be known",
            remedy="give the tensor a shape (set_shape, or a full TensorSpec)",
        )
    return len(x.shape)


def known_size(who: str, x: Tensor, axis: int) -> int:
    """The size of `x` along `axis`.

    Raises:
        DTypeError: the axis is no whole number.
        ShapeError: it does not exist, or its size is unknown.
    """
    rank = known_rank(who, x)
    if not hasattr(axis, "__index__"):
        raise DTypeError(f"{who}: the axis must be a whole number, got {axis!r}")
    if not -rank <= axis < rank:
        raise ShapeError(
            f"{who}: axis {axis} does not exist, the tensor has {rank} axes",
            remedy=f"choose an axis from {-rank} to {rank - 1}" if rank else None,
        )
    size = x.shape[axis]
    if size is None:
        raise ShapeError(
            f"{who}: the size of axis {axis} of {x.spec} must be known",
            remedy="give the axis a size",
        )
    return size


def axes_of(axis: Any) -> Any:
    """One axis, or several as a tuple; None stays."""
    return tuple(axis) if isinstance(axis, Sequence) else axis


def dtype_or_float(dtype: DTypeLike | None) -> DType:
    """The element type meant by `dtype`; None means the default float."""
    return Defaults.floating if dtype is None else as_dtype(dtype)


def one_of(who: str, name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise InvalidArgumentError unless `value` is one of `choices`."""
    if value not in choices:
        raise InvalidArgumentError(
            f"{who}: {name} must be one of {', '.join(map(repr, choices))}, got {value!r}",
        )
