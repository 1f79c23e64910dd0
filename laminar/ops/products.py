"""Products that sum: of matrices, of vectors, and in the notation of einsum."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import BOOLEAN, INEXACT, EagerTensor, Tensor, bool_, int8, int32
from laminar.engine.ops.array import axes, rearrange
from laminar.engine.ops.linalg import einsum as engine_einsum
from laminar.engine.ops.linalg import products as engine
from laminar.engine.ops.linalg.byte_matmul import byte_matmul
from laminar.engine.ops.linalg.matmul import matmul_nd
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.nn import convolution

from ..typing import TensorLike
from .arguments import Scalar, floating_pair, known_size, one_of, pair, tensor, tensors
from .recording import public

__all__ = [
    "correlate",
    "cross",
    "dot",
    "einsum",
    "inner",
    "kron",
    "matmul",
    "outer",
    "tensordot",
    "vdot",
]


def _factors(*xs: Any) -> tuple[Tensor, ...]:
    """Operands of one type of numbers; products of int8 are summed in int32."""
    found = tensors(xs)
    wide = int32 if found[0].dtype in BOOLEAN | {int8} else found[0].dtype
    return tuple(cast(x, wide) for x in found)


def _summed(product: Callable[..., Tensor], x1: TensorLike, x2: TensorLike, *args: Any) -> Tensor:
    """A product that sums, of operands of one type; of booleans, whether any pair is both True."""
    a, b = pair(x1, x2)
    if a.dtype is not bool_:
        return product(a, b, *args)
    return cast(product(cast(a, int32), cast(b, int32), *args), bool_)


@public
def matmul(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The matrix product over the last two axes; the others broadcast.

    A vector on the left counts as a row, on the right as a column. Two int8 give int32.

    Args:
        x1: (..., m, k), or (k,).
        x2: (..., k, n), or (k,).

    Returns:
        (..., m, n), without m where `x1` is a vector and without n where `x2` is one; in the common
        type, two bools give int32.

    Raises:
        ShapeError: the sizes k differ, the leading axes do not broadcast, or one is a scalar.

    Examples:
        >>> ops.matmul([[1, 2], [3, 4]], [[1, 0], [0, 10]])
        Tensor([[ 1, 20],
                [ 3, 40]], shape=(2, 2), dtype=int32)
    """
    if type(x1) is EagerTensor and type(x2) is EagerTensor:
        dtype = x1.dtype  # a short way, which the commonest products take
        if dtype is x2.dtype and dtype in INEXACT:
            return matmul_nd(x1, x2)
    x1, x2 = (x if isinstance(x, Scalar) else tensor(x) for x in (x1, x2))  # converted once
    one, other = (tensor(x).dtype for x in (x1, x2))
    given = tensors([x1, x2])
    if one == other == int8 and given[0].shape.rank and given[1].shape.rank == 2:
        return byte_matmul(*given)
    found = matmul_nd(*_factors(*given))
    return cast(found, int8) if {one, other} == {bool_, int8} else found


@public
def dot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The sum of products over the last axis of `x1` and the last but one of `x2`.

    Of vectors the inner product, of matrices the matrix product, with a scalar a plain product.

    Args:
        x1: (i..., k), or a scalar.
        x2: (j..., k, n), (k,), or a scalar.

    Returns:
        (i..., j..., n), or (i...) for a vector `x2`; in the common type, where
        small integers wrap around (`matmul` of int8 is int32).

    Raises:
        ShapeError: the sizes k differ.

    Examples:
        >>> ops.dot([1, 2, 3], [4, 5, 6])
        Tensor(32, shape=(), dtype=int32)
    """
    return _summed(engine.dot, x1, x2)


@public
def inner(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The sum of products over the last axes of both.

    Args:
        x1: (i..., k), or a scalar.
        x2: (j..., k), or a scalar.

    Returns:
        (i..., j...), in the common type.

    Raises:
        ShapeError: the sizes k differ.

    Examples:
        >>> ops.inner([1, 2, 3], [4, 5, 6])
        Tensor(32, shape=(), dtype=int32)
    """
    return _summed(engine.inner, x1, x2)


@public
def outer(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The product of each element of `x1` with each of `x2`, both in row order.

    Args:
        x1: any tensor, of m elements.
        x2: any tensor, of n elements.

    Returns:
        (m, n), in the common type.

    Examples:
        >>> ops.outer([1, 2], [10, 100])
        Tensor([[ 10, 100],
                [ 20, 200]], shape=(2, 2), dtype=int32)
    """
    return engine.outer(*pair(x1, x2))


@public
def vdot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The sum of conj(x1) * x2 over all elements in row order.

    Args:
        x1: any tensor.
        x2: with as many elements, whatever its shape.

    Returns:
        A scalar of the common type.

    Raises:
        ShapeError: the numbers of elements differ.

    Examples:
        >>> ops.vdot([1, 2], [3, 4])
        Tensor(11, shape=(), dtype=int32)
    """
    return _summed(engine.vdot, x1, x2)


@public
def kron(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The Kronecker product: a block x1[i...] * x2 for each element of `x1`.

    Args:
        x1: any tensor.
        x2: any tensor; the one with fewer axes gets ones in front.

    Returns:
        Size `x1.shape[i] * x2.shape[i]` along axis i; in the common type.

    Examples:
        >>> ops.kron([[1, 2]], [[1, 1]])
        Tensor([[1, 1, 2, 2]], shape=(1, 4), dtype=int32)
    """
    return engine.kron(*pair(x1, x2))


@public
def tensordot(x1: TensorLike, x2: TensorLike, axes: int | Sequence[Any] = 2) -> Tensor:
    """The sum of products over some axes of each.

    Args:
        x1: any tensor.
        x2: any tensor.
        axes: a number n, for the last n of `x1` and the first n of `x2`; or the axes of each.

    Returns:
        The axes of `x1` that are left, then those of `x2`.

    Raises:
        ShapeError: the sizes differ, or there are not so many axes.

    Examples:
        >>> ops.tensordot(np.ones((2, 3)), np.ones((3, 4)), axes=1).shape
        (2, 4)
    """
    return _summed(engine.tensordot, x1, x2, axes)


@public
def einsum(subscripts: str, *operands: TensorLike, **kwargs: Any) -> Tensor:
    """The sum of products that `subscripts` describes, as "ij,jk->ik".

    Args:
        subscripts: the axes of each operand as letters, and those of the result.
        *operands: as many tensors as `subscripts` has terms.
        **kwargs: optimize, accepted for its name: the order of products is always chosen.

    Returns:
        The axes after "->"; without an arrow those that are named once, in alphabetical order.

    Raises:
        ShapeError: a letter stands for different sizes.
        InvalidArgumentError: subscripts that do not fit, or an unknown option.

    Examples:
        >>> ops.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 10])
        Tensor([21, 43], shape=(2,), dtype=int32)
    """
    unknown = builtins.sorted(set(kwargs) - {"optimize"})
    if unknown:
        raise InvalidArgumentError(f"einsum: there is no option {', '.join(unknown)}")
    return engine_einsum.einsum(subscripts, *_factors(*operands))


@public
def cross(
    x1: TensorLike,
    x2: TensorLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Tensor:
    """The cross product of vectors of 3 elements, or of 2 (whose third is taken as 0).

    Args:
        x1: any tensor.
        x2: any tensor.
        axisa: the axis of the vectors in `x1`.
        axisb: the axis of the vectors in `x2`.
        axisc: the axis of the vectors in the result.
        axis: all three of these.

    Returns:
        The vectors of the result; only the third element, without its axis, where both have 2.

    Raises:
        ShapeError: vectors of another length.

    Examples:
        >>> ops.cross([1, 0, 0], [0, 1, 0])
        Tensor([0, 0, 1], shape=(3,), dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    return engine.cross(*pair(x1, x2), axisa, axisb, axisc)


@public
def correlate(x1: TensorLike, x2: TensorLike, mode: str = "valid") -> Tensor:
    """The sum of products of `x1`, moved step by step, and `x2`: y[k] = sum of x1[n + k] * x2[n].

    Args:
        x1: a vector.
        x2: a vector.
        mode: "valid" (where both overlap fully), "same" (as long as the longer one) or "full"
            (where they overlap at all).

    Returns:
        A vector of floats: of m and n elements with m >= n it has m - n + 1, m or m + n - 1.

    Raises:
        ShapeError: one is no vector, or its length is unknown.

    Examples:
        >>> ops.correlate([1, 2, 3], [0, 1, 2])
        Tensor([8.], shape=(1,), dtype=float32)
    """
    one_of("correlate", "mode", mode, ("valid", "same", "full"))
    a, b = floating_pair(x1, x2)
    for x in (a, b):
        if x.shape.rank != 1:
            raise ShapeError(f"correlate: expected vectors, got {a.spec} and {b.spec}")
    long, short = known_size("correlate", a, 0), known_size("correlate", b, 0)
    swapped = long < short  # the shorter one moves over the longer: the result is then reversed
    if swapped:
        a, b, long, short = b, a, short, long
    before = {"valid": 0, "same": short // 2, "full": short - 1}[mode]
    after = {"valid": 0, "same": short - 1 - before, "full": short - 1}[mode]
    x = axes.expand_dims(a, (0, 2))
    kernel = axes.expand_dims(b, (1, 2))
    y = axes.squeeze(convolution.conv(x, kernel, padding=[(before, after)]), (0, 2))
    return rearrange.flip(y, 0) if swapped else y
