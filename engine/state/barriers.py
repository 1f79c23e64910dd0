"""Barriers as a user has them in hand."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..graph import Operation, Tensor, int32, string
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.core.effects import perform
from ..ops.state import keyed_barrier as ops
from .elements import ElementHandle
from .handles import as_tensor


class Barrier(ElementHandle):
    """Elements of several components, which come one by one under keys, and go when they are whole.

    Args:
        types: of the components; one dtype, or a list.
        shapes: of the components, where they are known; a shape, or a list.
        shared_name: the name under which sessions share it in a container.
        name: of the operation.

    Raises:
        ShapeError: a component has no elements.

    Examples:
        >>> barrier = engine.Barrier(["int32"], shapes=[()])
        >>> _ = barrier.insert_many(0, ["a", "b"], [1, 2])
        >>> indices, keys, (values,) = barrier.take_many(2)
        >>> keys
        Tensor([b'a', b'b'], shape=(2,), dtype=string)
    """

    def __init__(
        self,
        types: Any,
        shapes: Any = None,
        shared_name: str | None = None,
        name: str = "barrier",
    ) -> None:
        super().__init__(ops.keyed_barrier, types, shapes, None, shared_name, name, {})
        for i, shape in enumerate(self.shapes):
            if shape.rank is not None and 0 in shape:
                raise ShapeError(f"{name}: component {i} of shape {shape} has no elements")

    @property
    def barrier_ref(self) -> Tensor:
        """The tensor that stands for it."""
        return self.handle

    def insert_many(
        self, component_index: int, keys: Any, values: Any, name: str | None = None
    ) -> Operation | None:
        """Give elements one of their components.

        Args:
            component_index: which component.
            keys: (n), strings: of the elements. Those that are new begin an element.
            values: (n, ...), the component of each.
            name: of the operation.

        Raises:
            CancelledError: at run time, the barrier is closed, and a key is new.
            InvalidArgumentError: at run time, an element has the component already.
        """
        attrs = {**self._element, "component": int(component_index)}
        dtype = self.dtypes[component_index] if component_index < len(self.dtypes) else None
        inputs = [as_tensor(keys, string), as_tensor(values, dtype)]
        with self.beside():
            return perform(ops.barrier_insert_many, [self.handle, *inputs], attrs, name)

    def take_many(
        self, num_elements: Any, allow_small_batch: bool = False, name: str | None = None
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Take whole elements, those first whose keys came first; waits until they are there.

        Args:
            num_elements: how many.
            allow_small_batch: whether a closed barrier gives fewer, if it has some.
            name: of the operation.

        Returns:
            The index of each (int64: in which call its key came, counted from -2**63), its key, and
            the components, each joined along a new first axis.

        Raises:
            OutOfRangeError: at run time, the barrier is closed, and so many cannot come.
        """
        known = num_elements if isinstance(num_elements, int) and not allow_small_batch else None
        attrs = {**self._element, "allow_small_batch": bool(allow_small_batch), "batch": known}
        count = convert_to_tensor(num_elements, int32)
        with self.beside():
            found = apply(ops.barrier_take_many, [self.handle, count], attrs, name)
        return found[0], found[1], list(found[2:])

    def close(
        self, cancel_pending_enqueues: bool = False, name: str | None = None
    ) -> Operation | None:
        """Accept no new keys; elements that are not whole can be made so.

        Args:
            cancel_pending_enqueues: whether these are dropped, and nothing is accepted.
            name: of the operation.
        """
        attrs = {"cancel_pending_enqueues": bool(cancel_pending_enqueues)}
        with self.beside():
            return perform(ops.barrier_close, [self.handle], attrs, name)

    def ready_size(self, name: str | None = None) -> Tensor:
        """The number of whole elements, int32."""
        with self.beside():
            return apply(ops.barrier_ready_size, [self.handle], {}, name)[0]

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """The number of elements that are not whole, int32."""
        with self.beside():
            return apply(ops.barrier_incomplete_size, [self.handle], {}, name)[0]
