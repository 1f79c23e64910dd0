"""Where elements come from: arrays, ranges, a single element, generators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import TensorSpec
from laminar.engine.ops.core.arrays import to_array
from laminar.tree import flatten, flatten_with_path, is_nested, map_structure

from .elements import as_element, spec_of
from .epochs import INFINITE, UNKNOWN, Epoch, State
from .indexing import ArrayRows, Block, RangeRows, Rows, length
from .orders import Indexed, InOrder
from .stage import Cursor, Stage, call_user

# Rows are taken this many at a time, and handed out one by one.
_BLOCK = 256


class IndexedStage(Stage):
    """Examples in memory in some order; a step of the order is a new stage over the same rows."""

    def __init__(self, label: str, found: Indexed, *sources: Stage) -> None:
        super().__init__(label, *sources)
        self._found = found

    def indexed(self) -> Indexed:
        return self._found

    def cardinality(self) -> int:
        return self._found.order.size

    def spec(self) -> Any:
        return self._found.rows.spec()

    def open(self, walk: Epoch) -> Cursor:
        return _RowsCursor(self._found, walk)


class _RowsCursor(Cursor):
    """One example at a time. `_before` is where the order was before the block in hand."""

    def __init__(self, found: Indexed, walk: Epoch) -> None:
        self._read = found.rows.reader()
        self._order = found.order.open(walk)
        self._before: State | None = None
        self._rows: Iterator[Any] = iter(())
        self._taken = 0
        self._has_many = is_nested(found.rows.spec())
        self._spec = found.rows.spec()

    def __next__(self) -> Any:
        for row in self._rows:
            self._taken += 1
            return row
        before = self._order.state()
        block = self._order.block(_BLOCK)
        if not length(block):
            raise StopIteration
        self._hold(before, block)
        return next(self)

    def _hold(self, before: State, block: Block) -> None:
        self._before, self._taken = before, 0
        batch = self._read(block)
        leaves = flatten(batch)
        if not self._has_many:
            self._rows = iter(leaves[0])
        elif type(batch) is tuple and len(leaves) == len(batch):
            self._rows = zip(*leaves, strict=True)
        else:
            names = [path for path, _ in flatten_with_path(batch)]
            rows = zip(*leaves, strict=True)
            self._rows = (_rebuilt(batch, names, row) for row in rows)

    def state(self) -> State:
        if self._before is None:
            return {"order": self._order.state(), "taken": 0}
        return {"order": self._before, "taken": self._taken}

    def restore(self, state: State) -> None:
        self._order.restore(state["order"])
        self._before, self._rows = None, iter(())
        taken = int(state["taken"])
        if taken:
            self._hold(dict(state["order"]), self._order.block(_BLOCK))
            for _ in range(taken):
                next(self._rows)
            self._taken = taken


def _rebuilt(like: Any, paths: list[Any], row: tuple[Any, ...]) -> Any:
    leaves = iter(row)
    return map_structure(lambda _: next(leaves), like)


def slices(label: str, tensors: Any) -> Stage:
    """The rows of arrays.

    Raises:
        InvalidArgumentError: no arrays, or arrays of different lengths.
        ShapeError: an array without axes.
    """
    arrays = as_element(tensors)
    found = [(path, np.asarray(leaf)) for path, leaf in flatten_with_path(arrays)]
    if not found:
        raise InvalidArgumentError(f"{label}: expected arrays, got {tensors!r}")
    for path, leaf in found:
        if leaf.ndim == 0:
            raise ShapeError(
                f"{label}: expected arrays with the examples first, got a scalar at {list(path)}",
                remedy="use from_tensors for a single element",
            )
    sizes = {len(leaf) for _, leaf in found}
    if len(sizes) > 1:
        listed = ", ".join(f"{list(path)} has {len(leaf)}" for path, leaf in found)
        raise InvalidArgumentError(
            f"{label}: the arrays must have the same number of rows: {listed}",
            remedy="pair each example with its label",
        )
    return in_memory(label, ArrayRows(map_structure(np.asarray, arrays)))


def in_memory(label: str, rows: Rows, *sources: Stage) -> Stage:
    """All of `rows`, as they lie."""
    return IndexedStage(label, Indexed(rows, InOrder(0, rows.size)), *sources)


def numbers(label: str, *args: int) -> Stage:
    """The numbers of `range(*args)`, int64."""
    try:
        found = range(*args)
    except (TypeError, ValueError) as cause:
        raise InvalidArgumentError(
            f"{label}: expected (stop), (start, stop) or (start, stop, step), got {args}"
        ) from cause
    return in_memory(label, RangeRows(found))


class Single(Stage):
    """One element."""

    def __init__(self, label: str, value: Any) -> None:
        super().__init__(label)
        self._value = as_element(value)

    def cardinality(self) -> int:
        return 1

    def spec(self) -> Any:
        return spec_of(self._value)

    def open(self, walk: Epoch) -> Cursor:
        return Listed([self._value])


class Listed(Cursor):
    """Elements of a list."""

    def __init__(self, elements: list[Any]) -> None:
        self._elements = elements
        self._at = 0

    def __next__(self) -> Any:
        if self._at >= len(self._elements):
            raise StopIteration
        self._at += 1
        return self._elements[self._at - 1]

    def state(self) -> State:
        return {"at": self._at}

    def restore(self, state: State) -> None:
        self._at = int(state["at"])


class Generated(Stage):
    """What a function's generator yields.

    Args:
        make: gives a new iterator at each pass.
        signature: specs that the elements are checked against, and cast to; None to take them as
            they come.
        args: of `make`.
    """

    def __init__(
        self, label: str, make: Callable[..., Any], signature: Any, args: tuple[Any, ...]
    ) -> None:
        super().__init__(label)
        if not callable(make):
            raise InvalidArgumentError(
                f"{label}: expected a function that makes a generator, got {make!r}",
                remedy="pass the function itself, or lambda: items for a list",
            )
        self.make = make
        self.signature = signature
        self.args = args

    def cardinality(self) -> int:
        return UNKNOWN

    def spec(self) -> Any:
        if self.signature is not None:
            return self.signature
        return first_spec(self)

    def open(self, walk: Epoch) -> Cursor:
        return _GeneratorCursor(self)

    def checked(self, value: Any) -> Any:
        """A value of the generator as an element."""
        if self.signature is None:
            return as_element(value)
        return _fitted(self.label, value, self.signature)


class _GeneratorCursor(Cursor):
    def __init__(self, stage: Generated) -> None:
        self._stage = stage
        self._items: Iterator[Any] | None = None
        self._taken = 0

    def _next_value(self) -> Any:
        if self._items is None:
            self._items = iter(call_user(self._stage, self._stage.make, *self._stage.args))
        try:
            return next(self._items)
        except StopIteration:
            raise
        except BaseException as error:
            self._stage.blame(error)
            raise

    def __next__(self) -> Any:
        value = self._next_value()
        self._taken += 1
        return call_user(self._stage, self._stage.checked, value)

    def state(self) -> State:
        return {"taken": self._taken}

    def restore(self, state: State) -> None:
        self.close()
        for _ in range(int(state["taken"])):
            self._next_value()
        self._taken = int(state["taken"])

    def close(self) -> None:
        close = getattr(self._items, "close", None)
        if close is not None:
            close()
        self._items = None
        self._taken = 0


def _fitted(who: str, value: Any, signature: Any) -> Any:
    """`value` as an element of these specs."""
    if isinstance(signature, TensorSpec):
        array, dtype = to_array(value, signature.dtype, copy=False)
        if not signature.shape.is_compatible_with(array.shape):
            raise ShapeError(
                f"{who}: the generator gave {dtype}{list(array.shape)}, expected {signature}",
                remedy="give the signature None for sizes that change",
            )
        return array if array.ndim or array.dtype != object else array.item()
    if signature is None:
        return None
    keys = list(signature) if isinstance(signature, dict) else range(len(signature))
    try:
        fits = len(value) == len(keys)
        parts = {key: _fitted(who, value[key], signature[key]) for key in keys} if fits else None
    except (TypeError, KeyError) as cause:
        if not isinstance(value, dict | tuple | list):
            parts = None
        else:
            raise InvalidArgumentError(
                f"{who}: the generator gave another structure than its signature: {cause}"
            ) from cause
    if parts is None:
        raise InvalidArgumentError(
            f"{who}: the generator gave {type(value).__name__}, expected {len(keys)} parts "
            f"as in the signature",
            remedy="yield the structure of the signature",
        )
    return parts if isinstance(signature, dict) else tuple(parts.values())


def first_spec(stage: Stage) -> Any:
    """The specs of the first element of a pass, for stages that know no better.

    Raises:
        InvalidArgumentError: there is no element.
    """
    cursor = stage.open((0,))
    try:
        return spec_of(next(cursor))
    except StopIteration:
        raise InvalidArgumentError(
            f"{stage.label}: there is no element to tell the form of elements from"
        ) from None
    finally:
        cursor.close()


def size_of_sum(sizes: list[int]) -> int:
    """The number of elements of several stages one after the other."""
    if INFINITE in sizes:
        return INFINITE
    return UNKNOWN if UNKNOWN in sizes else sum(sizes)
