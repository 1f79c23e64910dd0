"""Lists of tensors as values: what is changed makes a new list, and the one before stays as it was.

Loops that are functions keep in them what they give and what their gradients need; no order of
operations has to be kept, as a stack wants it.

A `ListValue` is the first part of a Python list, which grows at its end as long as nobody has
pushed something else there: so to push, to pop and to look up take the same time for any length.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import ANY, INTEGER, Array, TensorShape, TensorSpec, as_dtype, int32, resource
from ..core.effects import HANDLE
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient

_LIST = TensorSpec((), resource)
_MOST = 1 << 24  # places that are reserved at once
_growing = threading.Lock()


class ListValue:
    """A list: the first `size` of `items`; None is a place that was reserved and not yet set."""

    __slots__ = ("items", "size")

    def __init__(self, items: list[Any], size: int) -> None:
        self.items = items
        self.size = size

    def pushed(self, x: Any) -> ListValue:
        """The list with one more value."""
        with _growing:
            items = self.items if len(self.items) == self.size else self.items[: self.size]
            items.append(x)
        return ListValue(items, self.size + 1)

    def values(self) -> list[Any]:
        """All of it."""
        return self.items[: self.size]


@define("TensorList")
def tensor_list() -> TensorSpec:
    """An empty list."""
    return _LIST


@tensor_list.effect
def _tensor_list_kernel(context: KernelContext) -> ListValue:
    return ListValue([], 0)


@define("TensorListPush", dtypes={"values": HANDLE, "x": ANY | HANDLE}, same_dtype=False)
def tensor_list_push(values: TensorSpec, x: TensorSpec) -> TensorSpec:
    """The list `values` with `x`, which may be a list, behind it."""
    return _LIST


@tensor_list_push.effect
def _push_kernel(context: KernelContext, values: ListValue, x: Array) -> ListValue:
    return values.pushed(x)


@define("TensorListPop", dtypes={"values": HANDLE})
def tensor_list_pop(
    values: TensorSpec, *, dtype: str, shape: TensorShape
) -> tuple[TensorSpec, TensorSpec]:
    """The list without its last tensor, and that tensor."""
    return _LIST, TensorSpec(shape, as_dtype(dtype))


@tensor_list_pop.effect
def _pop_kernel(
    context: KernelContext, values: ListValue, *, dtype: str, shape: TensorShape
) -> Any:
    if not values.size:
        raise InvalidArgumentError("TensorListPop: the list is empty")
    value = _checked("TensorListPop", values.items[values.size - 1], dtype, shape)
    return ListValue(values.items, values.size - 1), value


def _checked(who: str, value: Any, dtype: str, shape: TensorShape) -> Any:
    """A value of the type and shape that were said."""
    if value is None:
        if shape.rank is None or None in shape or dtype == resource:
            raise InvalidArgumentError(
                f"{who}: nothing was stored there, and {shape} does not say how much nothing is",
                remedy="store each tensor before it is read, or give the shape of them",
            )
        return np.zeros(tuple(shape), as_dtype(dtype).numpy)
    is_list = isinstance(value, ListValue)
    kind = resource if is_list else as_dtype(value.dtype)
    if kind != dtype:
        raise DTypeError(f"{who}: the tensor is {kind}, asked for {dtype}")
    if not is_list and not shape.is_compatible_with(value.shape):
        raise ShapeError(f"{who}: the tensor has {TensorShape(value.shape)}, not {shape}")
    return value


@define("TensorListReserve", dtypes={"size": INTEGER})
def tensor_list_reserve(size: TensorSpec) -> TensorSpec:
    """A list of `size` places in which nothing is stored."""
    return _LIST


@tensor_list_reserve.effect
def _reserve_kernel(context: KernelContext, size: Array) -> ListValue:
    count = _count("TensorListReserve", size)
    return ListValue([None] * count, count)


@define("TensorListResize", dtypes={"values": HANDLE, "size": INTEGER}, same_dtype=False)
def tensor_list_resize(values: TensorSpec, size: TensorSpec) -> TensorSpec:
    """The list with `size` places: without the last ones, or with more in which nothing is."""
    return _LIST


@tensor_list_resize.effect
def _resize_kernel(context: KernelContext, values: ListValue, size: Array) -> ListValue:
    count = _count("TensorListResize", size)
    more = [None] * (count - values.size)
    return ListValue([*values.values()[:count], *more], count)


def _count(who: str, size: Any) -> int:
    count = int(size)
    if not 0 <= count <= _MOST:
        raise InvalidArgumentError(f"{who}: expected 0 to {_MOST} places, got {count}")
    return count


@define("TensorListFrom", dtypes={"x": ANY})
def tensor_list_from(x: TensorSpec) -> TensorSpec:
    """The slices of `x` along its first axis."""
    return _LIST


@tensor_list_from.effect
def _from_kernel(context: KernelContext, x: Array) -> ListValue:
    return ListValue([*x], len(x))


@define("TensorListLength", dtypes={"values": HANDLE})
def tensor_list_length(values: TensorSpec) -> TensorSpec:
    """How many places a list has, int32."""
    return TensorSpec((), int32)


@tensor_list_length.effect
def _length_kernel(context: KernelContext, values: ListValue) -> Any:
    return np.int32(values.size)


@define("TensorListGet", dtypes={"values": HANDLE, "index": INTEGER}, same_dtype=False)
def tensor_list_get(
    values: TensorSpec, index: TensorSpec, *, dtype: str, shape: TensorShape
) -> TensorSpec:
    """The tensor at a place; zeros of `shape` where nothing was stored."""
    return TensorSpec(shape, as_dtype(dtype))


@tensor_list_get.effect
def _get_kernel(
    context: KernelContext, values: ListValue, index: Array, *, dtype: str, shape: TensorShape
) -> Any:
    place = _place("TensorListGet", values.size, index)
    return _checked("TensorListGet", values.items[place], dtype, shape)


@define(
    "TensorListSet",
    dtypes={"values": HANDLE, "index": INTEGER, "x": ANY | HANDLE},
    same_dtype=False,
)
def tensor_list_set(
    values: TensorSpec, index: TensorSpec, x: TensorSpec, *, grows: bool = False
) -> TensorSpec:
    """The list with `x` at a place; `grows`: as long as it has to be for that."""
    return _LIST


@tensor_list_set.effect
def _set_kernel(
    context: KernelContext, values: ListValue, index: Array, x: Array, *, grows: bool
) -> ListValue:
    if grows and int(index) == values.size:
        return values.pushed(x)
    items = values.values()
    if grows:
        items += [None] * (_count("TensorListSet", index + 1) - values.size)
    items[_place("TensorListSet", len(items), index)] = x
    return ListValue(items, len(items))


def _place(who: str, size: int, index: Any) -> int:
    place = int(index)
    if not 0 <= place < size:
        raise InvalidArgumentError(f"{who}: there is no place {place} in a list of {size}")
    return place


@define("TensorListStack", dtypes={"values": HANDLE})
def tensor_list_stack(values: TensorSpec, *, dtype: str, shape: TensorShape) -> TensorSpec:
    """All tensors of a list along a new first axis; `shape` is that of one."""
    dims = None if shape.rank is None else [None, *shape]
    return TensorSpec(dims, as_dtype(dtype))


@tensor_list_stack.effect
def _stack_kernel(
    context: KernelContext, values: ListValue, *, dtype: str, shape: TensorShape
) -> Any:
    """Where something was stored, what was not has the shape of that."""
    who, found = "TensorListStack", values.values()
    known = next((x.shape for x in found if x is not None), None)
    one = shape if known is None else TensorShape(known)
    found = [_checked(who, x, dtype, shape if x is not None else one) for x in found]
    if len({x.shape for x in found}) > 1:
        raise ShapeError(f"{who}: the tensors have several shapes: {found[0].shape}, ...")
    if not found:
        dims = () if shape.rank is None else shape
        return np.zeros((0, *(d or 0 for d in dims)), as_dtype(dtype).numpy)
    return np.stack(found)


@define("TensorListZeros", dtypes={"values": HANDLE})
def tensor_list_zeros(values: TensorSpec) -> TensorSpec:
    """A list with zeros in the places of tensors."""
    return _LIST


@tensor_list_zeros.effect
def _zeros_kernel(context: KernelContext, values: ListValue) -> ListValue:
    found = [None if x is None else np.zeros_like(x) for x in values.values()]
    return ListValue(found, values.size)


@define("TensorListAdd", dtypes={"lists": HANDLE})
def tensor_list_add(*lists: TensorSpec) -> TensorSpec:
    """The list of the sums, place by place; where nothing was stored counts as zeros."""
    return _LIST


@tensor_list_add.effect
def _add_kernel(context: KernelContext, *lists: ListValue) -> ListValue:
    sizes = {found.size for found in lists}
    if len(sizes) != 1:
        raise InvalidArgumentError(f"TensorListAdd: the lists have {sorted(sizes)} places")
    rows = zip(*(found.values() for found in lists), strict=True)
    return ListValue([_sum(row) for row in rows], lists[0].size)


def _sum(row: tuple[Any, ...]) -> Any:
    there = [x for x in row if x is not None]
    shapes = {x.shape for x in there}
    if len(shapes) > 1:
        raise ShapeError(f"TensorListAdd: tensors of one place have the shapes {sorted(shapes)}")
    total = there[0] if there else None
    for x in there[1:]:
        total = total + x
    return total


for _op in (
    tensor_list,
    tensor_list_push,
    tensor_list_pop,
    tensor_list_reserve,
    tensor_list_resize,
    tensor_list_from,
    tensor_list_length,
    tensor_list_get,
    tensor_list_set,
    tensor_list_stack,
    tensor_list_zeros,
    tensor_list_add,
):
    _op.grad(no_gradient)
