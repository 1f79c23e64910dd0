"""The rows of a batch shared out among several, and put together again.

Of n rows, share r of R has those from n r // R to n (r + 1) // R: sizes that differ by one at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import ANY, Array, Dim, OpView, Tensor, TensorShape, TensorSpec
from ..core.basic import zeros_like
from ..core.op_def import Grads
from ..core.registry import define
from ..core.traits import Traits
from .shape import dim_of


def _bounds(n: int, index: int, count: int) -> tuple[int, int]:
    return n * index // count, n * (index + 1) // count


@define("Share", dtypes={"x": ANY})
def _share(x: TensorSpec, *, index: int, count: int) -> TensorSpec:
    """Share `index` of `count` of the rows of `x`."""
    if not 0 <= index < count:
        raise InvalidArgumentError(f"Share: there is no share {index} of {count}")
    if x.shape.rank is None:
        return x
    if not x.shape.rank:
        raise ShapeError(f"Share: expected rows, got {x}, which has no axis")
    n = x.shape[0]
    begin, end = (0, None) if n is None else _bounds(n, index, count)
    return TensorSpec((None if end is None else end - begin, *x.shape[1:]), x.dtype)


@_share.reference
def _share_kernel(xp: Any, x: Array, *, index: int, count: int) -> Array:
    begin, end = _bounds(x.shape[0], index, count)
    return x[begin:end]


@_share.grad
def _share_grad(op: OpView, dy: Tensor) -> Grads:
    (x,) = op.inputs
    index, count = op.attrs["index"], op.attrs["count"]
    parts = [dy if i == index else zeros_like(share(x, i, count)) for i in range(count)]
    return (join_shares(parts, dim_of(x, axis=0)),)


def share(x: Tensor, index: int, count: int) -> Tensor:
    """The rows of `x` that are share `index` of `count`.

    Raises:
        ShapeError: `x` has no axis.
        InvalidArgumentError: there is no such share.
    """
    return _share(x, index=index, count=count)


@define("JoinShares", dtypes={"given": ANY}, same_dtype=False, traits=Traits(size_inputs=True))
def join_shares_op(*given: TensorSpec) -> TensorSpec:
    """The rows of all shares, in order; the last input, a scalar, says how many there are."""
    parts = given[:-1]
    if not parts:
        raise InvalidArgumentError("JoinShares: expected at least one share, got none")
    inner = TensorShape(None)
    sizes: list[Dim] = []
    for p in parts:
        if p.dtype != parts[0].dtype:
            raise DTypeError(f"JoinShares: the shares are of {parts[0].dtype} and {p.dtype}")
        if p.shape.rank is None:
            return TensorSpec(None, p.dtype)
        rows = TensorShape(p.shape[1:])
        if not p.shape.rank or not inner.is_compatible_with(rows):
            raise ShapeError(f"JoinShares: the rows differ: {', '.join(str(p) for p in parts)}")
        inner = inner.merge_with(rows)
        sizes.append(p.shape[0])
    total = None if None in sizes else sum(n for n in sizes if n is not None)
    return TensorSpec((total, *inner), parts[0].dtype)


@join_shares_op.reference
def _join_shares_kernel(xp: Any, *given: Array) -> Array:
    *parts, size = given
    n, count = int(size), len(parts)
    for i, part in enumerate(parts):
        begin, end = _bounds(n, i, count)
        if len(part) != end - begin:
            raise ShapeError(
                f"JoinShares: share {i} of {n} rows in {count} has {end - begin}, got {len(part)}",
                remedy="give one row for each row of the batch",
            )
    return xp.concatenate(parts, axis=0)


@join_shares_op.grad
def _join_shares_grad(op: OpView, dy: Tensor) -> Grads:
    count = len(op.inputs) - 1
    return (*(share(dy, i, count) for i in range(count)), None)


def join_shares(parts: Sequence[Tensor], size: Tensor) -> Tensor:
    """The rows of all shares, in order.

    Args:
        parts: the shares, each with as many rows as `share` gives it.
        size: how many rows there are in all, a scalar integer.

    Raises:
        ShapeError: their rows differ in shape, or a share has other than its number of rows.
        DTypeError: they are of several types.
    """
    return join_shares_op(*parts, size)
