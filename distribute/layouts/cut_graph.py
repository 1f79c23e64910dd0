"""A step that is traced as for one process, made one that computes with pieces of variables.

The graph of the whole step (forward, backward, update, metrics) is copied, operation by operation,
into one that takes pieces where a rule says how, and gathers and sums between. All processes copy
the same graph in the same order, so their collectives meet. What the processes of one row of a mesh
compute of rows of their own is left to them (`worker_share.py`): there, pieces along that axis of
the mesh are gathered first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from laminar.engine.errors import UnimplementedError
from laminar.engine.functions import FuncGraph
from laminar.engine.graph import (
    Graph,
    GraphTensor,
    Operation,
    Tensor,
    building,
    resource,
)
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core.basic import constant, placeholder_op
from laminar.engine.ops.core.dispatch import as_input
from laminar.engine.ops.core.graphs import needed_operations
from laminar.engine.ops.core.recording import paused
from laminar.engine.ops.math.arithmetic import subtract
from laminar.engine.ops.state.variable import assign, assign_add, assign_sub, read_variable
from laminar.engine.ops.state.variable_rows import assign_rows
from laminar.tree import flatten, map_structure

from ..collectives.ops import enters_rows, leaves_rows, summed
from .cuts import Cut, piece_shape, recut, whole
from .held import Held, HeldPieces
from .mesh import ProcessMesh
from .rules import Pieces, pieces_for


def with_pieces(
    step: Callable[[Any], Any], mesh: ProcessMesh, pieces: HeldPieces, rows: str
) -> Callable[[Any], Any]:
    """`step`, to be traced, computed with pieces.

    Args:
        step: for one process, or for those along `rows`.
        mesh: the processes.
        pieces: what they hold of the variables.
        rows: the axis of the mesh that the rows of a batch go along.
    """

    def run(given: Any) -> Any:
        graph = building()
        assert graph is not None, "it is traced"
        inner = FuncGraph("whole", outer=graph)
        with inner.as_default(), paused():
            results = step(
                map_structure(lambda x: None if x is None else as_input(inner, x), given)
            )
        return _Copy(inner, graph, mesh, pieces, rows).of(results)

    return run


class _Copy:
    """The operations of a graph, in another one, with pieces.

    `_made[tensor id, cut]` is a tensor of the whole graph, cut so, in the other one; `_natural`
    says by tensor id how what made it has cut it; `_held` the pieces behind a handle; `_own` the
    tensors that a process along `rows` has of its own; `_copies` the operations by name.
    """

    def __init__(
        self, inner: FuncGraph, graph: Graph, mesh: ProcessMesh, pieces: HeldPieces, rows: str
    ) -> None:
        self._inner = inner
        self._graph = graph
        self._mesh = mesh
        self._rows = rows
        self._made: dict[tuple[int, Cut], Tensor] = {}
        self._natural: dict[int, Cut] = {}
        self._held: dict[int, Held] = {}
        self._own: set[int] = set()
        self._copies: dict[str, Operation] = {}
        for outer, placeholder in inner.captures.values():
            held = None
            if outer.dtype == resource:
                held = pieces.of(outer._value)  # type: ignore[attr-defined]  # of a variable
            if held is not None:
                self._held[id(placeholder)] = held
                outer = held.handle
            self._keep(placeholder, as_input(graph, outer), whole(placeholder))

    def of(self, results: Any) -> Any:
        """The results of the step, which are whole everywhere."""

        def copied(x: Any) -> Any:
            is_inner = isinstance(x, GraphTensor) and x.graph is self._inner
            return self._value(x, whole(x)) if is_inner else x

        leaves = [x for x in flatten(results) if isinstance(x, GraphTensor)]
        fetches = [x for x in leaves if x.graph is self._inner]
        for op in needed_operations(fetches, self._inner.effects):
            if op.definition is not placeholder_op:
                self._copy(op)
        return map_structure(copied, results)

    def _keep(self, x: GraphTensor, made: Tensor, cut: Cut) -> None:
        self._natural[id(x)] = cut
        self._made[id(x), cut] = made

    def _value(self, x: GraphTensor, cut: Cut) -> Any:
        """A tensor of the whole graph, cut so."""
        found = self._made.get((id(x), cut))
        if found is None:
            before = self._natural[id(x)]
            found = recut(self._made[id(x), before], before, cut, self._mesh)
            self._made[id(x), cut] = found
        return found

    def _copy(self, op: Operation) -> None:
        if op.definition is dim_of and (n := op.inputs[0].shape[op.attrs["axis"]]) is not None:
            self._keep(op.outputs[0], as_input(self._graph, constant(n, "int32")), ())
            return
        is_own = any(id(x) in self._own for x in op.inputs) and op.definition not in leaves_rows
        is_own = is_own or op.definition in enters_rows
        cuts = [self._natural[id(x)] for x in op.inputs]
        if is_own:
            cuts = [tuple(None if c == self._rows else c for c in cut) for cut in cuts]
        plan = self._of_variable(op, cuts) or pieces_for(op, cuts, self._mesh)
        inputs = [self._value(x, cut) for x, cut in zip(op.inputs, plan.inputs, strict=True)]
        if op.definition is assign_rows:
            inputs[1] = self._own_places(op, inputs[1])
        controls = [self._copies[c.name] for c in op.control_inputs if c.name in self._copies]
        with self._graph.control_dependencies(controls), self._graph.device(op.device):
            copy = self._graph.add(op.definition, inputs, {**op.attrs, **plan.attrs}, name=op.name)
        copy.location, copy.layer = op.location, op.layer
        self._copies[op.name] = copy
        for y, twin, cut in zip(op.outputs, copy.outputs, plan.outputs, strict=True):
            made: Tensor = twin
            twin.set_shape(piece_shape(y.shape, cut, self._mesh))
            for name in plan.sums:
                (made,) = summed([made], self._mesh.along(name))
            self._keep(y, made, cut)
            if is_own:
                self._own.add(id(y))

    def _of_variable(self, op: Operation, cuts: Sequence[Cut]) -> Pieces | None:
        """How an operation on a variable that is in pieces runs on these; None for others.

        Raises:
            UnimplementedError: it does not.
        """
        held = next((self._held[id(x)] for x in op.inputs if id(x) in self._held), None)
        if held is None:
            return None
        cut = held.cut
        shape = {"shape": piece_shape(held.shape, cut, self._mesh)}
        if op.definition is read_variable:
            return Pieces([()], [cut], (), shape)
        if op.definition in (assign, assign_add, assign_sub):
            return Pieces([(), cut], [cut], (), shape)
        if op.definition is assign_rows:
            return Pieces([(), (None,), (None, *cut[1:])], [cut], (), shape)
        raise UnimplementedError(
            f"ModelParallel: variable {held.path!r} is in pieces, on which {op.type} cannot run",
            remedy="leave the variable whole in the layout map",
        )

    def _own_places(self, op: Operation, places: Any) -> Any:
        """Places in this process's rows of a variable; those out of range name no row."""
        held = self._held.get(id(op.inputs[0]))
        if held is None or (name := held.cut[0]) is None or (n := held.shape[0]) is None:
            return places
        begin = self._mesh.place[name] * (n // self._mesh.sizes[name])
        return subtract(places, constant(begin, places.dtype))
