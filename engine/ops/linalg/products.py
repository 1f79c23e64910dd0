"""Products of tensors of any rank, as NumPy has them: each an einsum, or a few ops."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import NUMERIC, Array, OpView, Tensor, TensorSpec, broadcast_shapes, canonical_axis
from ..array.axes import expand_dims, moveaxis
from ..array.broadcast import unbroadcast
from ..array.index import get_item
from ..array.padding import pad
from ..array.shape import dim_of, reshape
from ..core.op_def import Grads
from ..core.registry import define
from ..math.arithmetic import conjugate, multiply
from .einsum import einsum_explicit
from .matmul import matmul_nd


def outer(a: Tensor, b: Tensor) -> Tensor:
    """y[i, j] = a[i] * b[j], for the elements of `a` and `b` in row order."""
    return multiply(expand_dims(reshape(a, [-1]), 1), reshape(b, [-1]))


def inner(a: Tensor, b: Tensor) -> Tensor:
    """The sum of products over the last axes; an ordinary product when one is a scalar.

    Args:
        a: (i..., n).
        b: (j..., n).

    Returns:
        (i..., j...).
    """
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    return tensordot(a, b, ([-1], [-1]))


def tensordot(a: Tensor, b: Tensor, axes: int | Sequence[Any] = 2) -> Tensor:
    """The sum of products over some axes of each.

    Args:
        a: any shape.
        b: any shape.
        axes: the axes of `a` and those of `b`, a pair of numbers or of sequences; or a number n:
            the last n of `a` and the first n of `b`.

    Returns:
        The axes left of `a`, then those left of `b`.

    Raises:
        ShapeError: an axis does not exist, or two that go together differ in size.
        InvalidArgumentError: the two lists differ in length.
    """
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ShapeError(
                f"tensordot: cannot sum over {axes} axes of {a.spec} and {b.spec}",
                remedy="name no more axes than both have",
            )
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    if not isinstance(axes, Sequence) or len(axes) != 2:
        raise InvalidArgumentError(
            f"tensordot: axes must be a whole number, or the axes of a and those of b, got {axes!r}"
        )
    first, second = ([each] if isinstance(each, int) else list(each) for each in axes)
    if len(first) != len(second):
        raise InvalidArgumentError(
            f"tensordot: {len(first)} axes of a go with {len(second)} axes of b",
            remedy="name one axis of b for each axis of a",
        )
    letters = iter(string.ascii_letters)
    a_term = [next(letters) for _ in range(a.ndim)]
    b_term = [next(letters) for _ in range(b.ndim)]
    for i, j in zip(first, second, strict=True):
        i, j = canonical_axis("tensordot", i, a.ndim), canonical_axis("tensordot", j, b.ndim)
        b_term[j] = a_term[i]
    summed = {*a_term} & {*b_term}
    left = [label for label in (*a_term, *b_term) if label not in summed]
    return einsum_explicit(["".join(a_term), "".join(b_term)], "".join(left), [a, b])


def dot(a: Tensor, b: Tensor) -> Tensor:
    """NumPy's dot: the sum of products over the last axis of `a` and the last but one of `b`.

    Of vectors it is the inner product, of matrices the matrix product, with a scalar the ordinary
    product.
    """
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    if a.ndim <= 2 and b.ndim <= 2:
        return matmul_nd(a, b)
    return tensordot(a, b, ([-1], [-2] if b.ndim > 1 else [-1]))


def vdot(a: Tensor, b: Tensor) -> Tensor:
    """The sum of conj(a[i]) * b[i] over the elements of both in row order."""
    return matmul_nd(conjugate(reshape(a, [-1])), reshape(b, [-1]))


def kron(a: Tensor, b: Tensor) -> Tensor:
    """The Kronecker product: a block a[i...] * b for each element of `a`.

    y[i * m + j, ...] = a[i, ...] * b[j, ...] for b of size m along the axis; the one with fewer
    axes gets new ones in front.
    """
    rank = max(a.ndim, b.ndim)
    a = expand_dims(a, range(rank - a.ndim)) if a.ndim < rank else a
    b = expand_dims(b, range(rank - b.ndim)) if b.ndim < rank else b
    wide = multiply(expand_dims(a, range(1, 2 * rank, 2)), expand_dims(b, range(0, 2 * rank, 2)))
    return reshape(wide, [_product_dim(a, b, i) for i in range(rank)])


def _product_dim(a: Tensor, b: Tensor, axis: int) -> Any:
    m, n = a.shape[axis], b.shape[axis]
    if m is None or n is None:
        return multiply(dim_of(a, axis=axis), dim_of(b, axis=axis))
    return m * n


@define("Cross", dtypes=NUMERIC)
def _cross(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    """The vector product of the vectors of length 3 along the last axes; the others broadcast."""
    for x in (a, b):
        if x.shape.rank is not None and (not x.shape or x.shape[-1] not in (3, None)):
            raise ShapeError(
                f"Cross: expected vectors of length 3 along the last axis, got {a} and {b}",
                remedy="append a zero to vectors of length 2",
            )
    shape = broadcast_shapes("Cross", a.shape, b.shape)
    return TensorSpec(None if shape.rank is None else [*shape[:-1], 3], a.dtype)


@_cross.reference
def _cross_kernel(xp: Any, a: Array, b: Array) -> Array:
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ShapeError(f"Cross: vectors of length {a.shape[-1]} and {b.shape[-1]}, expected 3")
    return xp.cross(a, b)


@_cross.grad
def _cross_grad(op: OpView, dy: Tensor) -> Grads:
    a, b = op.inputs
    da, db = _cross(conjugate(b), dy), _cross(dy, conjugate(a))
    return unbroadcast(da, 0, op.inputs), unbroadcast(db, 1, op.inputs)


def cross(a: Tensor, b: Tensor, axisa: int = -1, axisb: int = -1, axisc: int = -1) -> Tensor:
    """The vector product.

    Args:
        a: vectors of length 3, or 2 (their third component is 0), along `axisa`.
        b: the same along `axisb`; the other axes broadcast.
        axisa: the axis of the vectors in `a`.
        axisb: the axis of the vectors in `b`.
        axisc: their axis in the result; there is none when both have length 2: the result is then
            the third component alone.

    Raises:
        ShapeError: vectors of another length.
    """
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    flat = a.shape[-1] == 2 and b.shape[-1] == 2
    c = _cross(_in_space(a), _in_space(b))
    return get_item(c, (..., 2)) if flat else moveaxis(c, -1, axisc)


def _in_space(x: Tensor) -> Tensor:
    return pad(x, [(0, 0)] * (x.ndim - 1) + [(0, 1)]) if x.shape[-1] == 2 else x
