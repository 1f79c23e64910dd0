"""Values of a checkpoint given to objects: to those that are there, and to those made later.

A variable that is made while a restoration waits for objects has no value at first. Who reads it
first has the objects looked through once more: by then it stands where it belongs, and gets the
value of the checkpoint, or else the one it was made with.

State of the module, guarded by `_lock`:
    _waiting: the restorations that have values left, the newest last;
    _initial[store]: the value that a variable was made with, while it has none.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .. import forks
from ..checkpoint import CheckpointReader
from ..errors import DTypeError, LaminarError, ShapeError
from ..graph import EagerTensor, as_dtype, eager_scope
from ..ops.state.variable import VariableStore, one_lock, settle_with
from ..state import Variable
from ..state.creation import tell_of_new_variables
from .object_graph import STATE, VALUE, Node, children_of, is_stateful, parse_json

_lock = forks.recursive_lock()
_waiting: list[Restoration] = []
_initial: weakref.WeakKeyDictionary[VariableStore, Any] = weakref.WeakKeyDictionary()


class Restoration:
    """The values of a checkpoint on their way to objects.

    Args:
        reader: of the checkpoint; it is closed when all values are in use.
        nodes: of the checkpoint.
        parts: what node 0 holds, by name.
        root: an object that stands for node 0 besides, and may get more parts; None for none.

    Attributes:
        matched: by the number of a node, what leads to the object that has its values.
    """

    def __init__(
        self,
        reader: CheckpointReader,
        nodes: list[Node],
        parts: Mapping[str, Any],
        root: Any = None,
    ) -> None:
        self.reader = reader
        self.nodes = nodes
        # It keeps nothing alive that others do not: its objects may be dropped without a value.
        self._parts = {name: self._reference(part) for name, part in parts.items()}
        self._root = self._reference(root)
        self._names = {id(part) for part in (*parts.values(), root) if part is not None}
        self.matched: dict[int, Callable[[], Any]] = {}
        self.graph_values: dict[str, Variable] = {}

    def _reference(self, value: Any) -> Callable[[], Any]:
        try:
            return weakref.ref(value, self._part_is_gone)
        except TypeError:  # None, lists and dicts
            return lambda: value

    def _part_is_gone(self, reference: object) -> None:
        with _lock:
            if self in _waiting and not self.is_alive():
                self.end()

    def end(self) -> None:
        """Wait for objects no longer."""
        self.reader.close()
        if self in _waiting:
            _waiting.remove(self)

    def is_alive(self) -> bool:
        """Whether anybody has objects that may get values."""
        return any(part() is not None for part in (self._root, *self._parts.values()))

    def is_for(self, other: Restoration) -> bool:
        """Whether it is about an object that the other is about."""
        return bool(self._names & other._names)

    def _first(self) -> Iterator[tuple[str, Any]]:
        for name, part in self._parts.items():
            yield name, part()
        if (root := self._root()) is not None:
            yield from children_of(root)

    def start(self) -> None:
        """Give values to the objects that are there; wait for the others.

        Raises:
            ShapeError, DTypeError: a value does not fit; nothing is changed then.
            DataLossError: the checkpoint is damaged; nothing is changed then.
        """
        with _lock:
            self._match()
            for other in [r for r in _waiting if r.is_for(self)]:
                other.end()
            if self.missing():
                self.reader.open_all()
                _waiting.append(self)
            else:
                self.reader.close()

    def missing(self) -> list[int]:
        """The nodes with values that no object has got."""
        return [i for i, node in enumerate(self.nodes) if node.values and i not in self.matched]

    def _match(self) -> None:
        """Walk both graphs side by side; each object takes the values of its node, once."""
        new: dict[int, Any] = {}
        seen = {0}
        waiting: deque[tuple[int, Any]] = deque([(0, None)])
        while waiting:
            number, value = waiting.popleft()
            node = self.nodes[number]
            if node.values and number not in self.matched and _takes(value, node):
                new[number] = value
            if not node.children:
                continue
            for name, item in self._first() if not number else children_of(value):
                if item is None:
                    continue
                child = node.children.get(name)
                if child is not None and child not in seen:
                    seen.add(child)
                    waiting.append((child, item))
        variables = {n: v for n, v in new.items() if isinstance(v, Variable)}
        self._check(variables)
        eager = [n for n, v in variables.items() if v.graph is None]
        values = dict(zip(eager, self._read(eager, VALUE), strict=True))
        others = [*(new.keys() - variables.keys())]
        states = {
            n: parse_json(text.item())
            for n, text in zip(others, self._read(others, STATE), strict=True)
        }
        for number, value in values.items():
            _give(variables[number], value)
        for number, state in states.items():
            new[number].restore(state)
        for number, variable in variables.items():
            if variable.graph is not None:
                self.graph_values[self.nodes[number].values[VALUE]] = variable
        self.matched |= {n: self._reference(value) for n, value in new.items()}

    def _check(self, variables: dict[int, Variable]) -> None:
        for number, variable in variables.items():
            key = self.nodes[number].values[VALUE]
            entry = self.reader.entry(key)
            text = (
                f"{key!r} is {entry.dtype}{list(entry.shape)} in {self.reader.prefix}, variable "
                f"{variable.path!r} is {variable.stored_dtype}{variable.shape}"
            )
            if entry.dtype != variable.stored_dtype:
                raise DTypeError(text, remedy="make it in the type that was saved")
            if not variable.shape.is_compatible_with(entry.shape):
                raise ShapeError(text, remedy="make the objects as they were when it was saved")

    def _read(self, numbers: Iterable[int], what: str) -> list[Any]:
        return self.reader.read_all([(self.nodes[n].values[what], None) for n in numbers])


def _takes(value: Any, node: Node) -> bool:
    return VALUE in node.values if isinstance(value, Variable) else _is_state(value, node)


def _is_state(value: Any, node: Node) -> bool:
    return STATE in node.values and is_stateful(value)


def _give(variable: Variable, value: Any) -> None:
    """Store a value, unless a variable that was made later has got another one meanwhile."""
    if variable.store in _initial:
        with one_lock((variable.store,)):
            if variable.store.value is not None:
                return
        _initial.pop(variable.store)
    with eager_scope():  # a function may be being traced
        variable.assign(EagerTensor(value, as_dtype(value.dtype)))  # it is nobody else's: no copy


def _is_new(variable: Variable) -> None:
    """A variable was made: it has no value while a restoration may have one for it."""
    if not _waiting or variable.graph is not None:
        return
    with _lock:
        store = variable.store
        with one_lock((store,)):
            _initial[store], store.value = store.value, None


def _settle(store: VariableStore) -> None:
    """A variable without a value is read: give all that have none theirs."""
    with _lock:
        if store not in _initial:
            return
        try:
            for restoration in reversed(_waiting):
                restoration._match()
        except LaminarError:
            restoration.end()  # it is said once
            raise
        finally:
            for other in list(_initial):
                value = _initial.pop(other, None)
                with one_lock((other,)):
                    if other.value is None:
                        other.value = value
        for restoration in [r for r in _waiting if not r.missing()]:
            restoration.end()


tell_of_new_variables(_is_new)
settle_with(_settle)
