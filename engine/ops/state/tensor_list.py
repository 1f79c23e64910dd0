"""Lists of tensors as values: what is pushed makes a new list, and the one before stays as it was.

Loops that are functions keep in them what their gradients need; no order of operations has to be
kept, as a stack wants it. A list is its last tensor and the list before it, or None where it is
empty (`ListValue`), so to push and to pop take the same time for any length.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import ANY, Array, TensorShape, TensorSpec, as_dtype, resource
from ..core.effects import HANDLE
from ..core.registry import KernelContext, define, no_gradient

_LIST = TensorSpec((), resource)


class _Item(NamedTuple):
    value: Any  # an array, or a list
    before: _Item | None


class ListValue:
    """A list; see above."""

    __slots__ = ("last",)

    def __init__(self, last: _Item | None = None) -> None:
        self.last = last


@define("TensorList")
def tensor_list() -> TensorSpec:
    """An empty list."""
    return _LIST


@tensor_list.effect
def _tensor_list_kernel(context: KernelContext) -> ListValue:
    return ListValue()


@define("TensorListPush", dtypes={"values": HANDLE, "x": ANY | HANDLE}, same_dtype=False)
def tensor_list_push(values: TensorSpec, x: TensorSpec) -> TensorSpec:
    """The list `values` with `x`, which may be a list, behind it."""
    return _LIST


@tensor_list_push.effect
def _push_kernel(context: KernelContext, values: ListValue, x: Array) -> ListValue:
    return ListValue(_Item(x, values.last))


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
    if values.last is None:
        raise InvalidArgumentError("TensorListPop: the list is empty")
    value, before = values.last
    is_list = isinstance(value, ListValue)
    kind = resource if is_list else as_dtype(value.dtype)
    if kind != dtype:
        raise DTypeError(f"TensorListPop: the tensor is {kind}, asked for {dtype}")
    if not is_list and not shape.is_compatible_with(value.shape):
        raise ShapeError(f"TensorListPop: the tensor has {TensorShape(value.shape)}, not {shape}")
    return ListValue(before), value


for _op in (tensor_list, tensor_list_push, tensor_list_pop):
    _op.grad(no_gradient)
