"""Diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import DENSE, INTEGER, Array, Dim, OpView, Tensor, TensorSpec, canonical_axes
from ..core.convert import convert_to_tensor
from ..core.entries import known_value
from ..core.op_def import Grads
from ..core.registry import define
from .axes import transpose
from .shape import dims_of, matrix_dims, runtime_shape


def _length(rows: int, columns: int, offset: int) -> int:
    """The number of elements of the diagonal j = i + offset."""
    return max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))


@define("DiagPart", dtypes=DENSE)
def _diag_part(x: TensorSpec, *, offset: int) -> TensorSpec:
    """y[..., i] = the elements x[..., r, r + offset], by rising r."""
    rows, columns = matrix_dims("DiagPart", x)
    if x.shape.rank is None:
        return TensorSpec(None, x.dtype)
    length = None if rows is None or columns is None else _length(rows, columns, offset)
    return TensorSpec([*x.shape[:-2], length], x.dtype)


@_diag_part.reference
def _diag_part_kernel(xp: Any, x: Array, *, offset: int) -> Array:
    return xp.diagonal(x, offset, -2, -1)


@_diag_part.grad
def _diag_part_grad(op: OpView, dy: Tensor) -> Grads:
    shape, dims = dims_of(op.inputs[0])
    dims = dims[len(dims) - shape[-2:].count(None) :]
    return (_matrix_diag(dy, *dims, offset=op.attrs["offset"], shape=shape[-2:]),)


@define("MatrixDiag", dtypes={"x": DENSE})
def _matrix_diag(
    x: TensorSpec,
    *dims: TensorSpec,
    offset: int = 0,
    shape: tuple[Dim, Dim] | None = None,
) -> TensorSpec:
    """Matrices of zeros but for y[..., r, r + offset] = the elements of x[..., :], by rising r.

    `shape` is that of a matrix, each None given by `dims`; without it, the smallest square.
    """
    if x.shape.rank is None:
        return TensorSpec(None, x.dtype)
    if not x.shape:
        raise ShapeError(f"MatrixDiag: expected a vector or a stack of them, got {x}")
    n = x.shape[-1]
    if shape is None:
        side = None if n is None else n + abs(offset)
        return TensorSpec([*x.shape[:-1], side, side], x.dtype)
    rows, columns = shape
    if n is not None and rows is not None and columns is not None:
        length = _length(rows, columns, offset)
        if length != n:
            raise ShapeError(
                f"MatrixDiag: x is {x}, but diagonal {offset} of a matrix [{rows}, {columns}] "
                f"has {length} elements"
            )
    return TensorSpec([*x.shape[:-1], rows, columns], x.dtype)


@_matrix_diag.reference
def _matrix_diag_kernel(
    xp: Any, x: Array, *dims: Array, offset: int, shape: tuple[Dim, Dim] | None
) -> Array:
    n = x.shape[-1]
    side = n + abs(offset)
    rows, columns = (side, side) if shape is None else runtime_shape(shape, dims)
    y = xp.zeros((*x.shape[:-1], rows, columns), x.dtype)
    i = xp.arange(n)
    y[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return y


@_matrix_diag.grad
def _matrix_diag_grad(op: OpView, dy: Tensor) -> Grads:
    return (_diag_part(dy, offset=op.attrs["offset"]), *(None for _ in op.inputs[1:]))


def matrix_diag(x: Tensor, offset: int = 0) -> Tensor:
    """Square matrices with the vectors x[..., :] on diagonal `offset`; positive ones lie above."""
    return _matrix_diag(x, offset=offset, shape=None)


def diagonal(x: Tensor, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """The elements x[..., r, r + offset, ...] of the matrices along two axes, as the last axis.

    Args:
        x: at least two axes.
        offset: which diagonal; positive ones lie above the main one.
        axis1: the axis of the rows.
        axis2: the axis of the columns.

    Raises:
        ShapeError: there are not two such axes.
    """
    rows, columns = canonical_axes("diagonal", (axis1, axis2), x.ndim)
    rest = [i for i in range(x.ndim) if i not in (rows, columns)]
    return _diag_part(transpose(x, [*rest, rows, columns]), offset=offset)


def diag(x: Tensor, k: int = 0) -> Tensor:
    """The matrix with the vector `x` on diagonal `k`; of a matrix `x`, that diagonal.

    Raises:
        ShapeError: `x` has another number of axes than 1 or 2.
    """
    if x.shape.rank == 1:
        return matrix_diag(x, k)
    if x.shape.rank == 2:
        return diagonal(x, k)
    raise ShapeError(
        f"diag: expected a vector or a matrix, got {x.spec}",
        remedy="use diagonal or matrix_diag for stacks of them",
    )


@define("BandPart", dtypes=DENSE)
def _band_part(x: TensorSpec, *, low: int | None, high: int | None) -> TensorSpec:
    """y[..., i, j] = x[..., i, j] where low <= j - i <= high, else 0; None sets no bound."""
    matrix_dims("BandPart", x)
    return x


@_band_part.reference
def _band_part_kernel(xp: Any, x: Array, *, low: int | None, high: int | None) -> Array:
    rows, columns = x.shape[-2:]
    distance = xp.arange(columns) - xp.arange(rows)[:, None]
    if low is None:
        keep = distance <= high if high is not None else xp.ones((rows, columns), bool)
    else:
        keep = distance >= low
        if high is not None:
            keep &= distance <= high
    return xp.where(keep, x, xp.zeros((), x.dtype))


@_band_part.grad
def _band_part_grad(op: OpView, dy: Tensor) -> Grads:
    return (_band_part(dy, **op.attrs),)


@define("BandPartBy", dtypes={"x": DENSE, "bounds": INTEGER}, same_dtype=False)
def band_part_by(x: TensorSpec, *bounds: TensorSpec) -> TensorSpec:
    """As BandPart, of how many diagonals stay below the main one, and above: -1 for all."""
    matrix_dims("BandPartBy", x)
    return x


@band_part_by.reference
def _band_part_by_kernel(xp: Any, x: Array, *bounds: Array) -> Array:
    below, above = (int(n) for n in bounds)
    if min(below, above) < -1:
        raise InvalidArgumentError(f"band_part: -1 is for all diagonals, got {below}, {above}")
    low, high = None if below == -1 else -below, None if above == -1 else above
    return _band_part_kernel(xp, x, low=low, high=high)


@band_part_by.grad
def _band_part_by_grad(op: OpView, dy: Tensor) -> Grads:
    return band_part_by(dy, *op.inputs[1:]), None, None


def _band_by(x: Tensor, *bounds: Any) -> Tensor:
    return band_part_by(x, *(convert_to_tensor(n) for n in bounds))


def tril(x: Tensor, k: int = 0) -> Tensor:
    """`x` with zeros above diagonal `k` of its last two axes."""
    return _band_part(x, low=None, high=k)


def triu(x: Tensor, k: int = 0) -> Tensor:
    """`x` with zeros below diagonal `k` of its last two axes."""
    return _band_part(x, low=k, high=None)


def band_part(x: Tensor, num_lower: Any, num_upper: Any) -> Tensor:
    """`x` with zeros outside a band around the main diagonal of its last two axes.

    Args:
        x: at least two axes.
        num_lower: how many diagonals below the main one stay; -1 for all. A number, or a scalar
            tensor.
        num_upper: how many above it stay; -1 for all.

    Raises:
        InvalidArgumentError: a number below -1.
    """
    num_lower, num_upper = known_value(num_lower), known_value(num_upper)
    if isinstance(num_lower, Tensor) or isinstance(num_upper, Tensor):
        return _band_by(x, num_lower, num_upper)
    if min(num_lower, num_upper) < -1:
        raise InvalidArgumentError(
            f"band_part: expected numbers of diagonals, or -1 for all, got {num_lower}, {num_upper}"
        )
    low = None if num_lower == -1 else -num_lower
    return _band_part(x, low=low, high=None if num_upper == -1 else num_upper)
