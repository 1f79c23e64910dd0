"""What these names take for a tensor, for a number and for a shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laminar.engine.errors import ShapeError
from laminar.engine.graph import (
    EagerTensor,
    GraphTensor,
    Literal,
    Tensor,
    TensorShape,
    as_dtype,
    building,
)
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core.basic import constant
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.sparse.sparse_values import SparseValues

# What makes 0 of 0.
_KEEPS_ZERO = frozenset(
    {
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Erf",
        "Expm1",
        "Floor",
        "Identity",
        "Log1p",
        "Neg",
        "Round",
        "Sign",
        "Sin",
        "Sinh",
        "Sqrt",
        "Square",
        "StopGradient",
        "Tan",
        "Tanh",
    }
)


def is_value(x: Any) -> bool:
    """Whether it is no tensor yet, so that its type is still open."""
    return not isinstance(x, Tensor) and not hasattr(x, "__laminar_tensor__")


def tensor(x: Any, dtype: Any = None) -> Tensor:
    """A tensor; what has no type yet gets `dtype`."""
    return convert_to_tensor(x, dtype if dtype is not None and is_value(x) else None)


def symbol(x: Any, dtype: Any = None) -> Tensor:
    """As `tensor`; in a graph, a symbol of it."""
    found = tensor(x, dtype)
    if isinstance(found, Literal) or (building() is not None and isinstance(found, EagerTensor)):
        return constant(found.value, found.dtype)
    return found


def only_dtype(op: Any) -> Any:
    """The element type of an op that takes one alone, else None: that of an empty list for it."""
    kinds = {kind for kinds in getattr(op, "dtypes", {}).values() for kind in kinds or ("", "any")}
    return kinds.pop() if len(kinds) == 1 else None


def operands(*xs: Any, empty: Any = None) -> list[Tensor]:
    """Tensors of one type: what has none yet gets that of the first tensor among them.

    An empty list among values alone is of the type `empty`.
    """
    typed = next((x for x in xs if not is_value(x)), None)
    if typed is not None:
        if not hasattr(typed, "dtype"):  # of a class that was registered
            xs = tuple(tensor(x) if x is typed else x for x in xs)
            return operands(*xs)
        dtype = typed.dtype
        return [tensor(x, dtype) for x in xs]
    first = tensor(xs[0], empty if isinstance(xs[0], list) and not xs[0] else None)
    return [first, *(tensor(x, first.dtype) for x in xs[1:])]


def on_operands(op: Callable[..., Any]) -> Callable[..., Any]:
    """An op that takes values too; of a sparse tensor, one that keeps zeros is of its values."""

    def call(*xs: Any, **attrs: Any) -> Any:
        if len(xs) == 1 and isinstance(xs[0], SparseValues):
            kind = getattr(op, "type", "")
            if kind not in _KEEPS_ZERO:
                raise TypeError(f"{kind} makes other numbers of zeros, so its result is not sparse")
            return xs[0].with_values(op(tensor(xs[0].values), **attrs))
        return op(*operands(*xs, empty=only_dtype(op)), **attrs)

    call.__doc__ = getattr(op, "doc", None)
    return call


def static(x: Any) -> Any:
    """An axis, a permutation, a shape, ...: Python numbers where they are known.

    A constant tensor gives its value; of a list, each item is looked at. What is known at run time
    only stays a tensor.
    """
    if isinstance(x, GraphTensor):
        return x.op.attrs["value"].tolist() if x.op.type == "Const" else x
    if isinstance(x, TensorShape):
        return list(x)
    if isinstance(x, list | tuple):
        return [static(item) for item in x]
    if hasattr(x, "__laminar_tensor__"):
        return static(x.__laminar_tensor__())
    return x.tolist() if isinstance(x, EagerTensor | np.ndarray | np.generic) else x


def axes(axis: Any) -> Any:
    """The axes of a reduction, each once: None for all; a tensor, where a run knows them."""
    found = static(axis)
    if found is None or isinstance(found, Tensor):
        return found
    if np.ndim(found) > 1:
        raise ShapeError(f"the axes of a reduction must be at most rank 1, got {found}")
    return tuple(dict.fromkeys(int(a) for a in np.ravel(found)))


def as_kind(dtype: Any, default: Any = "float32") -> Any:
    """An element type."""
    return as_dtype(default if dtype is None else dtype)


# In an index: one more axis.
NEWAXIS = None


def dims_of(x: Tensor) -> list[Any]:
    """The sizes of the axes: numbers, and scalar tensors for those that a run knows."""
    return [dim_of(x, axis=i) if d is None else d for i, d in enumerate(x.shape)]
