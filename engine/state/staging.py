"""Staging areas as a user has them in hand: elements that one step puts down for another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidArgumentError
from ..graph import Operation, Tensor, int32, int64
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.core.effects import perform
from ..ops.core.op_def import OpDef
from ..ops.state import staging as ops
from .elements import ElementHandle
from .handles import as_list, as_tensor


class _Staging(ElementHandle):
    """What both kinds share."""

    def __init__(
        self,
        op: OpDef,
        dtypes: Any,
        shapes: Any,
        names: Any,
        shared_name: str | None,
        name: str,
        capacity: int,
        memory_limit: int,
        **options: Any,
    ) -> None:
        attrs = {"capacity": int(capacity), "memory_limit": int(memory_limit), **options}
        super().__init__(op, dtypes, shapes, names, shared_name, name, attrs)

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements that can be taken, int32."""
        with self.beside():
            return apply(ops.stage_size, [self.handle], {}, name)[0]

    def clear(self, name: str | None = None) -> Operation | None:
        """Drop all elements."""
        with self.beside():
            return perform(ops.stage_clear, [self.handle], {}, name)


class StagingArea(_Staging):
    """Elements come out in the order in which they went in.

    A step that takes an element and puts the next one down overlaps with what makes elements.

    Args:
        dtypes: of the components; one dtype, or a list.
        shapes: of the components, where they are known; a shape, or a list.
        names: of the components: then elements are dicts.
        shared_name: the name under which sessions share it in a container.
        capacity: how many elements fit, 0 for any number.
        memory_limit: how many bytes fit, 0 for any number.
        name: of the operation.

    Examples:
        >>> area = engine.StagingArea(["int32"], shapes=[()])
        >>> _ = area.put(5)
        >>> area.get()
        Tensor(5, shape=(), dtype=int32)
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
        name: str = "staging_area",
    ) -> None:
        how = (shared_name, name, capacity, memory_limit)
        super().__init__(ops.staging_area, dtypes, shapes, names, *how)

    def put(self, values: Any, name: str | None = None) -> Operation | None:
        """Put one element down; waits until there is room.

        Raises:
            ResourceExhaustedError: at run time, it is larger than the memory.
            ShapeError, DTypeError: it does not fit.
        """
        inputs = self._components(values)
        with self.beside():
            return perform(ops.stage_put, [self.handle, *inputs], self._element, name)

    def get(self, name: str | None = None) -> Any:
        """Take the element that came first; waits until there is one."""
        with self.beside():
            return self._result(apply(ops.stage_get, [self.handle], self._element, name))

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The element at a place, which stays; waits until there are so many."""
        place = convert_to_tensor(index, int32)
        with self.beside():
            return self._result(apply(ops.stage_peek, [self.handle, place], self._element, name))


class MapStagingArea(_Staging):
    """Elements under keys, whose components may come and be taken by themselves.

    Args:
        ordered: whether the least key comes first where none is asked for; else the oldest.
        dtypes, shapes, names, shared_name, capacity, memory_limit, name: as for StagingArea.

    Examples:
        >>> area = engine.MapStagingArea(["int32"], shapes=[()])
        >>> _ = area.put(engine.constant(7, "int64"), [5])
        >>> area.get(engine.constant(7, "int64"))
        (Tensor(7, shape=(), dtype=int64), Tensor(5, shape=(), dtype=int32))
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        ordered: bool = False,
        capacity: int = 0,
        memory_limit: int = 0,
        name: str = "map_staging_area",
    ) -> None:
        how = (shared_name, name, capacity, memory_limit)
        super().__init__(ops.map_staging_area, dtypes, shapes, names, *how, ordered=bool(ordered))

    def put(
        self, key: Any, vals: Any, indices: Any = None, name: str | None = None
    ) -> Operation | None:
        """Put components of an element down; waits until there is room.

        Args:
            key: of the element, an int64 scalar.
            vals: all components, or those of `indices`; with names a dict of any of them.
            indices: the numbers of the components given, by default all.
            name: of the operation.

        Raises:
            InvalidArgumentError: at run time, the element has one of them already.
        """
        numbers, inputs = self._given(vals, indices)
        attrs = {**self._element, "indices": numbers}
        with self.beside():
            where = [self.handle, as_tensor(key, int64)]
            return perform(ops.map_stage_put, [*where, *inputs], attrs, name)

    def _given(self, vals: Any, indices: Any) -> tuple[tuple[int, ...], list[Tensor]]:
        if isinstance(vals, Mapping):
            if self.names is None or not vals.keys() <= set(self.names):
                raise InvalidArgumentError(
                    f"{self!r}: the components are {self.names or 'not named'}, got {sorted(vals)}"
                )
            numbers = tuple(i for i, n in enumerate(self.names) if n in vals)
            values: Sequence[Any] = [vals[self.names[i]] for i in numbers]
        elif self.names is not None:
            raise InvalidArgumentError(f"{self!r}: expected a dict of {', '.join(self.names)}")
        else:
            numbers = self._numbers(indices)
            values = vals if isinstance(vals, list | tuple) else [vals]
            if len(values) != len(numbers):
                raise InvalidArgumentError(
                    f"{self!r}: {len(numbers)} components are to be given, got {len(values)}"
                )
        pairs = zip(values, numbers, strict=True)
        return numbers, [as_tensor(v, self.dtypes[i]) for v, i in pairs]

    def _numbers(self, indices: Any) -> tuple[int, ...]:
        """The numbers of components, given as such or by name; by default all."""
        if indices is None:
            return tuple(range(len(self.dtypes)))
        names = self.names or []
        found = []
        for index in as_list(indices):
            known = names.index(index) if index in names else index
            if not isinstance(known, int) or not 0 <= known < len(self.dtypes):
                raise InvalidArgumentError(f"{self!r}: there is no component {index!r}")
            found.append(known)
        return tuple(found)

    def _taken(
        self, key: Sequence[Any], indices: Any, stays: bool, name: str | None
    ) -> tuple[Tensor, Any]:
        numbers = self._numbers(indices)
        attrs = {**self._element, "indices": numbers, "stays": stays}
        keys = [as_tensor(k, int64) for k in key]
        with self.beside():
            found = apply(ops.map_stage_get, [self.handle, *keys], attrs, name)
        if self.names is not None:
            named = {self.names[i]: v for i, v in zip(numbers, found[1:], strict=True)}
            return found[0], named
        return found[0], found[1] if len(found) == 2 else list(found[1:])

    def get(
        self, key: Any = None, indices: Any = None, name: str | None = None
    ) -> tuple[Tensor, Any]:
        """Take components of an element; waits until it is whole.

        Args:
            key: of the element; any that is whole by default.
            indices: the numbers or names of the components, by default all. When none is left,
                the element is gone.
            name: of the operation.

        Returns:
            The key, and the components: one, a list, or a dict.

        Raises:
            InvalidArgumentError: at run time, one of them has been taken already.
        """
        return self._taken([] if key is None else [key], indices, False, name)

    def peek(self, key: Any, indices: Any = None, name: str | None = None) -> Any:
        """Components of an element, which stay; waits until it is whole."""
        return self._taken([key], indices, True, name)[1]

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """The number of elements of which components are missing, int32."""
        with self.beside():
            return apply(ops.stage_incomplete_size, [self.handle], {}, name)[0]
