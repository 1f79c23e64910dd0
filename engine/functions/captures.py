"""What a function takes from outside: variables, tables and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeGuard

from ..errors import (
    FailedPreconditionError,
)
from ..graph import (
    DeviceTensor,
    EagerPlace,
    EagerTensor,
    GraphTensor,
    Tensor,
    resource,
    value_of,
)
from ..ops.core.recording import recorders
from ..ops.state.variable import VariableStore


class Capture(NamedTuple):
    """Something that a function uses from outside.

    Attributes:
        kind: "Variable", "HashTable", "FIFOQueue", ...; "Tensor" for a value.
        name: its own; of a value, that of its placeholder.
        item: the object in the user's hand, where there is one, else what it stands for.
        input: the placeholder in the graph of the function.
    """

    kind: str
    name: str
    item: Any
    input: GraphTensor


def is_resource(tensor: Tensor) -> TypeGuard[EagerTensor]:
    """Whether `tensor` is a handle whose resource is known."""
    return isinstance(tensor, EagerTensor) and tensor.dtype == resource


def owner_of(held: Any) -> Any:
    """The object in the user's hand for a resource: a variable, a table, ...; else itself."""
    reference = getattr(held, "owner", None)
    owner = None if reference is None else reference()
    return held if owner is None else owner


def capture_of(outer: Tensor, x: GraphTensor) -> Capture:
    """What a tensor from outside is to the user; `x` is its placeholder."""
    if outer.dtype != resource:
        return Capture("Tensor", x.op.name, outer, x)
    if isinstance(outer, GraphTensor):  # of a plain graph around
        return Capture(outer.op.type.removesuffix("Handle"), outer.op.name, outer, x)
    item = owner_of(value_of(outer)) if isinstance(outer, EagerTensor) else outer
    kind = "Variable" if isinstance(item, VariableStore) else type(item).__name__
    name = getattr(item, "path", None) or getattr(item, "name", x.op.name)
    return Capture(kind, str(name), item, x)


def watch_variables(captured: Sequence[Tensor], handles: Sequence[Tensor]) -> None:
    """Tell the tapes of the trainable variables that a call reads, by their handles there."""
    for outer, handle in zip(captured, handles, strict=True):
        if is_resource(outer) and getattr(outer.value, "trainable", False):
            for recorder in recorders.active:
                recorder.watched_variable(handle)


def host_value(tensor: Tensor) -> Any:
    """The value on the host, or the resource."""
    return _eager(tensor).value


def value_where_it_lies(tensor: Tensor) -> Any:
    """The value, on the device that has it."""
    return value_of(_eager(tensor))


def lies_at(tensor: Tensor, place: EagerPlace) -> bool:
    """Whether the value is on that device."""
    return isinstance(tensor, DeviceTensor) and tensor.place is place


def _eager(tensor: Tensor) -> EagerTensor:
    if isinstance(tensor, EagerTensor):
        return tensor
    raise FailedPreconditionError(
        f"{tensor!r} is symbolic, and the call runs outside of its graph",
        remedy="return the tensor from the function that made it",
    )
