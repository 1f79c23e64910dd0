"""What a staged loop carries from one iteration to the next.

Of the variables that a body changes, each is one of:
    carried: it has a value that tensors can stand for; a Python number takes the type, and the
        shape, that the body gives it, an integer becomes a real number, and sizes may change;
        a list of as many items as before is carried item by item;
    fixed: it holds another object, which must be the same after an iteration;
    local: it has no value before the loop, or none that is read: each iteration binds it anew.
A list that grows is carried as its cells (lists.py).
Tracing a body may show that a variable is of another kind: the trace begins again (`AgainError`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from ..errors import FailedPreconditionError, InvalidArgumentError
from ..functions.subgraph import covers
from ..graph import DType, Tensor, TensorShape, TensorSpec
from ..ops.array.broadcast import broadcast_to
from ..ops.array.creation import zeros
from ..ops.array.shape import dim_of, reshape_op
from ..ops.core.arrays import can_stand_for
from ..ops.core.convert import convert_to_tensor
from ..ops.math.cast import cast
from ..tree import assert_same_structure, flatten, map_structure
from .lists import Cells, TensorList, spec_of_items
from .state import (
    UNBOUND,
    Get,
    Set,
    Undefined,
    are_same,
    check_bound,
    copied,
    is_internal,
    is_missing,
    is_number,
    is_stageable,
    label,
    put_back,
    refuse_change,
)

_NO_ITERATIONS = "has a value only inside of a loop, which may have no iterations"


class AgainError(Exception):
    """The body is to be traced once more, for a state of another form."""


class NoValueYetError(InvalidArgumentError):
    """A variable is None before a loop, and a tensor after an iteration."""


class LoopState:
    """The variables of a loop.

    Attributes:
        carried: by name, the first values.
        appended: by name, what an iteration appended to a list; of the last trace.
    """

    def __init__(self, who: str, get: Get, set_: Set, names: Sequence[str], kept: int) -> None:
        self._who = who
        self._get = get
        self._set = set_
        self._names = names
        self._kept = kept
        self._before = get()
        self.carried: dict[str, Any] = {}
        self.appended: dict[str, list[Any]] = {}
        self._numbers: set[str] = set()
        self._made: set[str] = set()  # lists of tensors that nothing but the loop holds
        self._entered: list[Any] = []
        self._rebound: set[str] = set()
        for name, value in zip(names[:kept], self._before, strict=False):
            if isinstance(value, TensorList):
                self.carried[name] = value.cells
            elif not is_missing(value) and is_stageable(value) and type(value) is not list:
                self.carried[name] = value
                if is_number(value):
                    self._numbers.add(name)

    def staged(self, run: Callable[[], Any]) -> Any:
        """What `run`, which traces the loop, gives for a state that fits the body."""
        while True:
            try:
                return run()
            except AgainError:
                continue
            finally:
                self._set(self._before)

    def enter(self, carried: dict[str, Any]) -> None:
        """Bind the variables as they are at the beginning of an iteration."""
        values = []
        for place, (name, before) in enumerate(zip(self._names, self._before, strict=True)):
            if name in carried:
                now = carried[name]
                values.append(TensorList(cells=now) if isinstance(now, Cells) else copied(now))
            elif place >= self._kept or is_missing(before):
                values.append(UNBOUND)
            else:
                values.append(copied(before))
        self._entered = values
        self._set(values)

    def leave(self, entered: dict[str, Any]) -> dict[str, Any]:
        """The carried variables after an iteration that began with `entered`."""
        found: dict[str, Any] = {}
        self.appended = {}
        now = self._get()
        pairs = zip(self._names, self._entered, now, strict=True)
        self._rebound = {name for name, a, b in pairs if a is not b}
        for place, name in enumerate(self._names):
            home, after = entered.get(name), now[place]
            if isinstance(home, Cells) and isinstance(after, TensorList):
                now[place] = after.read_before(home)
        for name, before, after in zip(self._names, self._before, now, strict=True):
            check_bound(name, before, after)
            if name in self.carried:
                found[name] = self._carried(name, entered[name], after)
            elif is_missing(before):
                if is_internal(name) and not is_missing(after) and self._is_kept(name):
                    self._begin_with_zeros(name, after)
            elif self._is_kept(name) and not are_same(before, after):
                self._fixed(name, before, after)
        return found

    def _is_kept(self, name: str) -> bool:
        return self._names.index(name) < self._kept

    def _carried(self, name: str, entered: Any, after: Any) -> Any:
        if is_missing(after):
            raise FailedPreconditionError(
                f"{self._who}: {label(name)} has no value after an iteration, and had one before",
                remedy="do not delete it in the loop",
            )
        if after is None and isinstance(self.carried[name], _Zeros):
            raise InvalidArgumentError(
                f"{self._who}: {label(name)} is None on some of the paths, and a tensor on others",
                remedy="return a tensor on each path",
            )
        if isinstance(entered, Cells) and isinstance(after, TensorList | list):
            return self._moved(name, entered, after)
        has_items = isinstance(self.carried[name], _Items)
        if has_items and (isinstance(after, TensorList) or len(after) != len(entered)):
            self._grow(name, self.list_before(name), after)
        is_a_number = name in self._numbers
        if is_a_number and after is entered:  # it stays Python's
            del self.carried[name]
            self._numbers.discard(name)
            raise AgainError
        if not is_stageable(after) and not hasattr(after, "shape"):
            refuse_change(self._who, name, (self._first(name), after))
        if not isinstance(entered, Tensor) or isinstance(after, list | tuple | dict):
            return after  # what differs in their structures, the loop says
        tensor = convert_to_tensor(after)
        dtype, shape = entered.dtype, entered.shape
        if _becomes(dtype, tensor.dtype, is_a_number and not is_number(after)):
            dtype = tensor.dtype
        if is_a_number and shape.rank == 0 and tensor.shape.is_fully_defined:
            shape = tensor.shape
        elif not covers(shape, tensor.shape) and shape.rank == tensor.shape.rank:
            sizes = zip(shape, tensor.shape, strict=True)
            shape = TensorShape([a if a == b else None for a, b in sizes])
        if dtype != entered.dtype or shape != entered.shape:
            self.carried[name] = _Typed(self._first(name), dtype, shape)
            raise AgainError
        return after

    def _moved(self, name: str, entered: Cells, after: Any) -> Cells:
        """A list, which may be another one than before, in the arrays that the loop carries."""
        home = TensorList(cells=entered)
        is_list = type(after) is list
        found = TensorList.of(after, spec_of_items(name, home, after)) if is_list else after
        assert isinstance(found, TensorList)
        if not found.is_in(entered) and name not in self._made:
            self._grow(name, self.list_before(name), found)
        return found.moved_to(entered)

    def _first(self, name: str) -> Any:
        first = self.carried[name]
        return first.value if isinstance(first, _Typed) else first

    def _begin_with_zeros(self, name: str, after: Any) -> None:
        """Carry what a `return` in the loop gives; nobody looks at it before there is one."""
        specs = map_structure(lambda y: None if y is None else convert_to_tensor(y).spec, after)
        self.carried[name] = _Zeros(specs)
        raise AgainError

    def _fixed(self, name: str, before: Any, after: Any) -> None:
        if type(before) is list and isinstance(after, TensorList):
            self._grow(name, before, after)
        are_lists = type(before) is list and type(after) is list
        if are_lists and len(after) > len(before) and are_same(before, after[: len(before)]):
            self.appended[name] = after[len(before) :]
            return
        if are_lists and len(after) != len(before):
            self._grow(name, before, after)
        if are_lists and None not in flatten(after) and is_stageable(after):
            self._carry_items(name, before, after)
        if before is None and is_stageable(after):
            raise NoValueYetError(
                f"{self._who}: {label(name)} is None before the loop, and a tensor after an "
                f"iteration; how many there are depends on tensors",
                remedy="give it a tensor of the same type and shape before",
            )
        refuse_change(self._who, name, (before, after))

    def grow_lists(self, names: Collection[str] | None = None) -> None:
        """Trace again with what an iteration appended to as lists that can grow at run time.

        Args:
            names: which of them; by default all.
        """
        for name, items in self.appended.items():
            if names is None or name in names:
                self._grow(name, self.list_before(name), items)

    def _grow(self, name: str, before: Any, more: Any) -> None:
        spec = spec_of_items(name, before, more)
        assert spec is not None, "there is more"
        self._made.add(name)
        self.carried[name] = _Growing(before, spec)
        raise AgainError

    def _carry_items(self, name: str, before: list[Any], after: list[Any]) -> None:
        """Carry a list of as many items as before, each by itself."""
        try:
            assert_same_structure(before, after)
        except InvalidArgumentError:
            refuse_change(self._who, name, (before, after))
        self.carried[name] = _Items(before, map_structure(_spec, after))
        raise AgainError

    def first_values(self) -> dict[str, Any]:
        """The carried variables before the loop, in the graph that is being built."""
        found: dict[str, Any] = {}
        for name, value in self.carried.items():
            if isinstance(value, _Zeros):
                value = map_structure(_zeros, value.specs)
            elif isinstance(value, _Growing):
                value = self.carried[name] = TensorList.of(value.items, value.spec).cells
            elif isinstance(value, _Items):
                value = map_structure(_of_spec, value.items, value.specs)
            elif isinstance(value, _Typed):
                value = _of_shape(cast(convert_to_tensor(value.value), value.dtype), value.shape)
            found[name] = value
        return found

    def finish(self, carried: dict[str, Any], lists: dict[str, Any]) -> None:
        """Bind the variables as they are after the loop."""
        values = []
        for place, (name, before) in enumerate(zip(self._names, self._before, strict=True)):
            if name in carried:
                original = None if name in self._rebound else before
                values.append(put_back(original, carried[name]))
            elif name in lists:
                values.append(lists[name])
            elif is_missing(before):
                is_read = place < self._kept
                values.append(Undefined(name, _NO_ITERATIONS) if is_read else UNBOUND)
            else:
                values.append(before)
        self._set(values)

    def list_before(self, name: str) -> Any:
        """The list that a variable holds before the loop; a copy, where it is bound to another."""
        found = self._before[self._names.index(name)]
        return copied(found) if name in self._rebound else found


class _Zeros(NamedTuple):
    """Zeros of some specs, to be made where the loop is."""

    specs: Any


class _Growing(NamedTuple):
    """A list that an iteration appends to, with what is known of all items."""

    items: Any
    spec: Any


class _Items(NamedTuple):
    """A list whose items an iteration changes, with what it makes of them."""

    items: list[Any]
    specs: list[Any]


class _Typed(NamedTuple):
    """A value as the kind of tensor that an iteration makes of it."""

    value: Any
    dtype: DType
    shape: TensorShape


def _spec(leaf: Any) -> TensorSpec:
    return convert_to_tensor(leaf).spec


def _of_spec(leaf: Any, spec: TensorSpec) -> Any:
    """A number as the kind of tensor that an iteration makes of it."""
    if not is_number(leaf) or not spec.shape.is_fully_defined:
        return leaf
    if not can_stand_for(convert_to_tensor(leaf).dtype, spec.dtype):
        return leaf  # the loop says that they differ
    return broadcast_to(cast(convert_to_tensor(leaf), spec.dtype), spec.shape)


def _of_shape(x: Tensor, shape: TensorShape) -> Tensor:
    """`x` broadcast; as a tensor whose sizes are not known, where they change in the loop."""
    if None not in shape:
        return broadcast_to(x, shape)
    dims = [dim_of(x, axis=i) for i, size in enumerate(shape) if size is None]
    return reshape_op(x, *dims, shape=tuple(shape))


def _becomes(dtype: DType, found: DType, is_free: bool) -> bool:
    """Whether a variable takes the type that it has after an iteration.

    A number of an earlier kind does (integer, then real), as it does in Python; of the same kind,
    one of Python's own (`is_free`).
    """
    up, down = can_stand_for(dtype, found), can_stand_for(found, dtype)
    return up and (not down or is_free)


def _zeros(spec: Any) -> Any:
    return None if spec is None else zeros([d or 0 for d in spec.shape], spec.dtype)
