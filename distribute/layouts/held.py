"""The pieces of variables that this process has in the place of whole values.

A variable of a program has its whole shape; its store has no value while pieces are all there is.
Who reads it then gets the whole value, which all processes gather at once; the next step drops it.
State: `_held[store]` are the pieces of the variables that have some.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from laminar.engine.graph import EagerTensor, Tensor, TensorShape, resource
from laminar.engine.ops.state.variable import VariableStore, fetched, one_lock, settle_with
from laminar.engine.state import Variable

from .cuts import Cut, checked_cut, gathered_array, piece_of
from .mesh import ProcessMesh


class Held:
    """This process's piece of a variable.

    Args:
        variable: the whole.
        cut: how it is cut.
        mesh: by which processes.

    Attributes:
        path, cut, shape: of the whole.
        mesh: whose processes have the pieces.
        handle: of the piece, for graphs.
        known: the whole value that the piece is of, where the variable has it; it may be dropped.
    """

    def __init__(self, variable: Variable, cut: Cut, mesh: ProcessMesh) -> None:
        self.path, self.cut = variable.path, cut
        self.shape: TensorShape = variable.shape
        self.mesh = mesh
        self._store = VariableStore(variable.path)
        self.handle: Tensor = EagerTensor(self._store, resource)
        self.known: Any = None
        self.put(variable.store.read())

    def put(self, value: Any) -> None:
        """Keep the piece of a whole value."""
        piece = piece_of(fetched(value), self.cut, self.mesh)
        with one_lock((self._store,)):
            self._store.store(piece)

    def is_news(self, value: Any) -> bool:
        """Whether the variable's whole value, if it has one, was set since the piece was."""
        return value is not None and value is not self.known

    def piece(self) -> Any:
        """The array that this process keeps."""
        return fetched(self._store.read())

    def gathered(self) -> Any:
        """The whole value, from all processes."""
        found = self.piece()
        for axis, name in enumerate(self.cut):
            if name is not None:
                found = gathered_array(found, axis, self.mesh.along(name))
        return found


_held: weakref.WeakKeyDictionary[VariableStore, Held] = weakref.WeakKeyDictionary()


def _settle(store: VariableStore) -> None:
    """The whole value of a variable is asked for."""
    held = _held.get(store)
    if held is not None:
        value = held.gathered()
        with one_lock((store,)):
            if store.value is None:
                store.value = held.known = value


settle_with(_settle)


class HeldPieces:
    """The pieces that the processes of a mesh have.

    Args:
        mesh: the processes.
        layout: the layout of a variable, None for one that stays whole.
    """

    def __init__(self, mesh: ProcessMesh, layout: Callable[[Variable], Any]) -> None:
        self._mesh = mesh
        self._layout = layout

    def of(self, store: VariableStore) -> Held | None:
        """The piece of a variable, made when it is first asked for; None if it is not cut."""
        found = _held.get(store)
        if found is not None and found.mesh is self._mesh:
            return found
        variable: Any = None if store.owner is None else store.owner()
        axes = None if variable is None else self._layout(variable)
        if axes is None or not any(cut := checked_cut(variable, axes, self._mesh)):
            return None
        made = _held[store] = Held(variable, cut, self._mesh)  # it reads what another mesh has
        return made

    def __iter__(self) -> Iterator[tuple[VariableStore, Held]]:
        every = list(_held.items())
        return iter([(store, held) for store, held in every if held.mesh is self._mesh])

    def drop_wholes(self) -> None:
        """Keep pieces alone; those of values that the program has set since are taken of these."""
        for store, held in self:
            value = store.value
            if value is None:
                continue
            if held.is_news(value):
                held.put(value)
            held.known = None
            with one_lock((store,)):
                if store.value is value:
                    store.value = None
