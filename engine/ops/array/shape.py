"""Shapes as data: reading them at run time, and giving them where they are not known before.

An op that takes a shape has it as an attribute, with None for each dimension that is only known at
run time; those come as extra scalar inputs `*dims`, in order. So ranks are always static.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import (
    ANY,
    INTEGER,
    Array,
    Dim,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    as_dtype,
    int32,
    int64,
)
from ..core.entries import known_entries, taken_entries
from ..core.op_def import Grads
from ..core.registry import define, no_gradient
from ..core.traits import Traits, Work, same_entries

Sizes = Sequence[list[Dim]]


def _query(entries: Callable[[Mapping[str, Any], Sizes], list[Dim]]) -> Traits:
    return Traits(work=Work.NONE, shape_query=True, entries=entries)


@define("Shape", traits=_query(lambda attrs, shapes: shapes[0]))
def shape_of(x: TensorSpec, *, dtype: str = int32) -> TensorSpec:
    """The dimensions of `x` as a vector of integers."""
    return TensorSpec([x.shape.rank], as_dtype(dtype))


@shape_of.reference
def _shape_kernel(xp: Any, x: Array, *, dtype: str) -> Array:
    return np.asarray(x.shape, dtype)


shape_of.grad(no_gradient)


@define("Dim", traits=_query(lambda attrs, shapes: [shapes[0][attrs["axis"]]]))
def dim_of(x: TensorSpec, *, axis: int) -> TensorSpec:
    """The size of `x` along `axis`, an int32 scalar."""
    if x.shape.rank is not None and not -len(x.shape) <= axis < len(x.shape):
        raise ShapeError(f"Dim: {x} has no axis {axis}")
    return TensorSpec((), int32)


@dim_of.reference
def _dim_kernel(xp: Any, x: Array, *, axis: int) -> Array:
    return np.asarray(x.shape[axis], "int32")


dim_of.grad(no_gradient)


@define("Rank", traits=_query(lambda attrs, shapes: [len(shapes[0])]))
def rank_of(x: TensorSpec) -> TensorSpec:
    """The number of axes of `x`, an int32 scalar."""
    return TensorSpec((), int32)


@rank_of.reference
def _rank_kernel(xp: Any, x: Array) -> Array:
    return np.asarray(x.ndim, "int32")


rank_of.grad(no_gradient)


@define("Size", traits=_query(lambda attrs, shapes: [TensorShape(shapes[0]).num_elements()]))
def size_of(x: TensorSpec) -> TensorSpec:
    """The number of elements of `x`, an int64 scalar."""
    return TensorSpec((), int64)


@size_of.reference
def _size_kernel(xp: Any, x: Array) -> Array:
    return np.asarray(math.prod(x.shape), "int64")


size_of.grad(no_gradient)


def runtime_shape(shape: Sequence[Dim] | None, dims: Sequence[Any]) -> tuple[int, ...]:
    """`shape` with its unknown dimensions filled from `dims`; for kernels.

    Where not even the number of axes was known, `dims` is one vector of all dimensions.
    """
    if shape is None:
        return tuple(int(n) for n in dims[0])
    if not dims:
        return tuple(shape)  # type: ignore[arg-type]  # nothing unknown
    given = iter(dims)
    return tuple(int(next(given)) if d is None else d for d in shape)


def dims_of(x: Tensor) -> tuple[tuple[Dim, ...], list[Tensor]]:
    """The shape of `x` as an attribute, and tensors for what is unknown in it."""
    if x.shape.rank is None:
        raise ShapeError(
            f"the number of axes of {x!r} must be known here",
            remedy="give the tensor a shape (set_shape, or a full TensorSpec)",
        )
    shape = tuple(x.shape)
    return shape, [dim_of(x, axis=i) for i, d in enumerate(shape) if d is None]


def sizes_of(x: Tensor) -> tuple[tuple[Dim, ...] | None, list[Tensor]]:
    """As `dims_of`; where not even the number of axes is known, None, and all in one vector."""
    return (None, [shape_of(x)]) if x.shape.rank is None else dims_of(x)


def split_shape(shape: Any) -> tuple[tuple[Dim, ...], list[Tensor]]:
    """A shape whose entries may be scalar tensors, as (attribute, tensors for the unknown)."""
    if isinstance(shape, Tensor) or not np.iterable(shape):
        shape = _entries(shape)
    attribute: list[Dim] = []
    dims: list[Tensor] = []
    for entry in shape:
        if isinstance(entry, Tensor) and not hasattr(entry, "value"):
            known = (taken_entries(entry) or [None])[0] if entry.shape.rank == 0 else None
            attribute.append(known)
            if known is None:
                dims.append(entry)
        elif entry is None:
            raise ShapeError(
                f"the shape {tuple(shape)} has an unknown dimension",
                remedy="take it from the tensor itself: laminar.ops.shape(x)[axis], or use -1",
            )
        else:
            attribute.append(entry if type(entry) is int else _whole(entry))
    return tuple(attribute), dims


def static_shape(sizes: Any) -> TensorShape:
    """What a tensor or array of sizes says while the graph is built."""
    if isinstance(sizes, np.ndarray):
        return TensorShape(sizes.tolist())
    known = known_entries(sizes)
    if known is not None:
        return TensorShape(known)
    length = sizes.shape[0] if sizes.shape.rank == 1 else None
    return TensorShape(None if length is None else [None] * length)


def is_open(x: Any) -> bool:
    """Whether it is a tensor of which neither entries are known nor how many there are."""
    return (
        isinstance(x, Tensor)
        and x.shape.rank != 0
        and (x.shape.rank is None or x.shape[0] is None)
        and known_entries(x) is None
    )


def _whole(entry: Any) -> int:
    """A dimension as an int; nothing is rounded on the way."""
    value = getattr(entry, "value", entry)
    try:
        whole = int(value)
    except (TypeError, ValueError):
        whole = None
    if whole is None or whole != value:
        raise ShapeError(
            f"a shape consists of whole numbers, got {value!r}",
            remedy="divide with //, or round the number",
        )
    return whole


def _entries(shape: Any) -> list[Any]:
    if not isinstance(shape, Tensor):
        return [shape]
    if shape.shape.rank == 0:
        return [shape]
    if shape.shape.rank != 1 or shape.shape[0] is None:
        whole = taken_entries(shape)
        if whole is None or None in whole:
            raise InvalidArgumentError(f"a shape is a vector of known length, got {shape!r}")
        return list(whole)
    known = taken_entries(shape) or [None] * shape.shape[0]
    return [shape[i] if n is None else n for i, n in enumerate(known)]


@define(
    "Reshape",
    dtypes={"x": ANY},
    traits=Traits(work=Work.NONE, linear=True, entries=same_entries),
)
def reshape_op(x: TensorSpec, *dims: TensorSpec, shape: tuple[Dim, ...]) -> TensorSpec:
    """The elements of `x` in row-major order under another shape.

    One entry of `shape` may be -1: it is what the number of elements leaves. Each None is given at
    run time by one of `dims`.
    """
    if sum(d == -1 for d in shape) > 1:
        raise ShapeError(f"Reshape: at most one dimension can be -1, got {shape}")
    if any(d is not None and d < -1 for d in shape):
        raise ShapeError(f"Reshape: a dimension cannot be negative, got {shape}")
    known = math.prod(d for d in shape if d is not None and d != -1)
    total = x.shape.num_elements()
    if total is None or None in shape:
        return TensorSpec([None if d == -1 else d for d in shape], x.dtype)
    if (known == 0 or total % known) if -1 in shape else total != known:
        raise ShapeError(
            f"Reshape: {x} has {total} elements, which do not fit into {shape}",
            remedy="the product of the new dimensions must equal the number of elements",
        )
    return TensorSpec([total // known if d == -1 else d for d in shape], x.dtype)


@reshape_op.reference
def _reshape_kernel(xp: Any, x: Array, *dims: Array, shape: tuple[Dim, ...]) -> Array:
    return x.reshape(runtime_shape(shape, dims))


@reshape_op.grad
def _reshape_grad(op: OpView, dy: Tensor) -> Grads:
    return (reshape_like(dy, op.inputs[0]), *(None for _ in op.inputs[1:]))


@define(
    "ReshapeToShape",
    dtypes={"x": ANY, "shape": INTEGER},
    same_dtype=False,
    traits=Traits(work=Work.NONE),
)
def reshape_to_shape(x: TensorSpec, shape: TensorSpec) -> TensorSpec:
    """As Reshape, to the dimensions that the vector `shape` holds."""
    return TensorSpec(None, x.dtype)


@reshape_to_shape.reference
def _reshape_to_shape_kernel(xp: Any, x: Array, shape: Array) -> Array:
    return x.reshape(tuple(shape.tolist()))


@reshape_to_shape.grad
def _reshape_to_shape_grad(op: OpView, dy: Tensor) -> Grads:
    return reshape_like(dy, op.inputs[0]), None


def reshape(x: Tensor, shape: Any) -> Tensor:
    """`x` under another shape; entries may be ints, one -1, and scalar tensors, or all a vector."""
    if is_open(shape):
        return reshape_to_shape(x, shape)
    attribute, dims = split_shape(shape)
    if attribute == x.shape and x.shape.is_fully_defined:
        return x
    return reshape_op(x, *dims, shape=attribute)


def reshape_like(x: Tensor, like: Tensor) -> Tensor:
    """`x` under the shape of `like`."""
    if x.shape == like.shape and x.shape.is_fully_defined:
        return x
    if like.shape.rank is None:
        return reshape_to_shape(x, shape_of(like))
    shape, dims = dims_of(like)
    if len(dims) == 1 and 0 not in shape:  # one unknown dimension follows from the element count
        return reshape_op(x, shape=tuple(-1 if d is None else d for d in shape))
    return reshape_op(x, *dims, shape=shape)


def matrix_dims(who: str, x: TensorSpec) -> tuple[Dim, Dim]:
    """Rows and columns of the matrices along the last two axes.

    Raises:
        ShapeError: there are less than two axes.
    """
    if x.shape.rank is None:
        return None, None
    if len(x.shape) < 2:
        raise ShapeError(
            f"{who}: expected a matrix or a stack of them, got {x}",
            remedy="give the tensor at least two axes",
        )
    rows, columns = x.shape[-2:]
    return rows, columns
