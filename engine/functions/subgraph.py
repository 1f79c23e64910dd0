"""Graphs as attributes of operations: the branches of a condition, the body of a loop.

A Python function is traced into a `FuncGraph`; what it uses from outside becomes explicit inputs,
alike for all graphs of one operation. Reads of variables that none of them changes are done before
the operation: the graphs then take values, which costs nothing and is differentiated as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..errors import DTypeError, InvalidArgumentError, ShapeError
from ..graph import (
    EagerTensor,
    Graph,
    GraphTensor,
    Operation,
    Tensor,
    TensorShape,
    TensorSpec,
    building,
    resource,
)
from ..graph.bodies import Fill
from ..ops.array.shape import reshape
from ..ops.control.structured import Run
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply, as_input, symbolic_graph
from ..ops.core.op_def import PlanOptions
from ..ops.core.recording import paused, recorders
from ..ops.state.variable import VariableStore, read_variable
from ..passes import StepGraph, needed_operations
from ..runtime import Plan
from ..tree import assert_same_structure, flatten, flatten_with_path
from .func_graph import FuncGraph


class Subgraph:
    """A graph with inputs and outputs, as an attribute of an operation.

    Attributes:
        graph: the one that was traced.
        inputs: tensors of the graph whose values are given.
        outputs: tensors of the graph; None for what only another branch has.
        effects: operations that run although no output needs them.
    """

    __hash__ = None  # type: ignore[assignment]  # no cache of attributes may hold on to it

    def __init__(
        self,
        graph: FuncGraph,
        inputs: Sequence[GraphTensor],
        outputs: Sequence[GraphTensor | None],
        effects: Sequence[Operation] = (),
    ) -> None:
        self.graph = graph
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.effects = list(effects)
        self._plans: dict[tuple[tuple[int, ...], PlanOptions], Plan] = {}

    @property
    def input_specs(self) -> list[TensorSpec]:
        """What it takes."""
        return [x.spec for x in self.inputs]

    @property
    def output_specs(self) -> list[TensorSpec | None]:
        """What it gives."""
        return [None if y is None else y.spec for y in self.outputs]

    def bind(self, outputs: Sequence[int], options: PlanOptions) -> Run:
        """A function `(context, arrays)` that gives the arrays of some of its outputs."""
        key = (tuple(outputs), options)
        plan = self._plans.get(key)
        if plan is None:
            fetches = [y for i in outputs if (y := self.outputs[i]) is not None]
            step = StepGraph(fetches, self.inputs, self.effects)
            plan = Plan(step, **options._asdict(), name=self.graph.name)
            self._plans[key] = plan
        return plan.run_inside

    def inputs_for(self, outputs: Sequence[int]) -> set[int]:
        """The numbers of the inputs that some outputs, and the effects, depend on."""
        wanted = [y for i in outputs if (y := self.outputs[i]) is not None]
        used = {id(y) for y in wanted}
        for op in needed_operations(wanted, self.effects, self.inputs):
            used.update(id(x) for x in op.inputs)
            used.update(id(y) for before in op.control_inputs for y in before.outputs)
        return {i for i, x in enumerate(self.inputs) if id(x) in used}

    def extended(self, more: Sequence[GraphTensor | None]) -> Subgraph:
        """The same with further outputs."""
        return Subgraph(self.graph, self.inputs, [*self.outputs, *more], self.effects)

    def rebuilt(
        self,
        inputs: Sequence[GraphTensor],
        outputs: Sequence[GraphTensor | None],
        effects: Sequence[Operation],
    ) -> Subgraph:
        """The same with other operations, of a graph that was made of its own."""
        return Subgraph(self.graph, inputs, outputs, effects)

    def operations_for(self, outputs: Sequence[GraphTensor]) -> list[Operation]:
        """What computes some of its tensors."""
        return needed_operations(outputs, (), self.inputs)

    @property
    def stateful(self) -> bool:
        """Whether running it has effects besides those on its inputs."""
        return any(op.definition.stateful for op in self.effects)

    def __repr__(self) -> str:
        return f"<graph {self.graph.name} of {len(self.graph.operations)} operations>"


def make_body(
    name: str,
    outer: Graph,
    fill: Fill,
    inputs: Sequence[str],
    outputs: Sequence[str | None],
    effects: Sequence[str],
) -> Subgraph:
    """A graph that is read from data; see `laminar.engine.graph.bodies`."""
    graph = FuncGraph(name, outer=outer)
    present = [y for y in outputs if y is not None]
    with graph.as_default(), paused():
        found: list[Any] = fill(graph, [*inputs, *present, *effects])
    graph.arguments = found[: len(inputs)]
    given = iter(found[len(inputs) :])
    made = [None if y is None else next(given) for y in outputs]
    return Subgraph(graph, graph.arguments, made, list(given))


def graph_for(who: str, leaves: Sequence[Any]) -> Graph | None:
    """The graph that an operation on `leaves` belongs to, None to compute at once."""
    graph = building()
    return graph or symbolic_graph(who, [x for x in leaves if isinstance(x, Tensor)])


def inside(graph: Graph) -> AbstractContextManager[Any]:
    """A block that builds `graph`."""
    return nullcontext() if building() is graph else graph.as_default()


def trace(
    graph: FuncGraph, fn: Callable[..., Any], specs: Sequence[TensorSpec], names: Sequence[str]
) -> Any:
    """What `fn` gives for new placeholders of `graph`, which it is called with."""
    with graph.as_default(), paused():
        arguments = [graph.add_argument(s, n) for s, n in zip(specs, names, strict=True)]
        return fn(*arguments)


def as_output(graph: FuncGraph, value: Any, dtype: Any, who: str) -> GraphTensor:
    """A result of a traced function as a tensor of its graph; a Python number gets `dtype`."""
    python = isinstance(value, bool | int | float | complex)
    with graph.as_default(), paused():
        try:
            return as_input(graph, convert_to_tensor(value, dtype if python else None))
        except (TypeError, ValueError) as cause:
            raise InvalidArgumentError(
                f"{who} must be a tensor, got {value!r}", remedy="return tensors"
            ) from cause


def one_element(test: GraphTensor) -> GraphTensor | None:
    """A tensor of one element as a scalar, also where only a run knows that; None of more."""
    if test.shape.rank == 0:
        return test
    if test.shape.rank is not None and any(d not in (1, None) for d in test.shape):
        return None
    found = reshape(test, ())
    assert isinstance(found, GraphTensor)
    return found


def share_captures(
    outer: Graph, graphs: Sequence[FuncGraph], *, every_run: bool
) -> tuple[list[Tensor], list[list[GraphTensor]]]:
    """What the graphs use from outside, alike for all: outer tensors, and the inputs of each graph.

    Args:
        outer: the graph that is being built, to which reads of variables are added.
        graphs: they may use tensors of `outer`, of what encloses it, and values.
        every_run: whether each graph runs whenever the operation does (a branch does not): then
            any read can be done before, else only that of a variable that has a value.
    """
    used: dict[int, Tensor] = {}
    for graph in graphs:
        for x, _ in graph.captures.values():
            used.setdefault(id(x), x)
    given: list[Tensor] = []
    inputs: list[list[GraphTensor]] = [[] for _ in graphs]
    for x in used.values():
        if x.dtype == resource:
            _watch(outer, x)
            reads = [_reads(graph, x) for graph in graphs]
            if _can_read_before(reads, x, every_run):
                found = [r for r in reads if r is not None]
                first = next(op for ops in found for op in ops)
                value = apply(read_variable, (as_input(outer, x),), first.attrs)[0]
                for k in range(max(map(len, found))):
                    given.append(value)
                    for graph, ops, taken in zip(graphs, found, inputs, strict=True):
                        taken.append(
                            ops[k].outputs[0]
                            if k < len(ops)
                            else graph.add_argument(value.spec, "unused")
                        )
                continue
        given.append(x)
        for graph, taken in zip(graphs, inputs, strict=True):
            taken.append(as_input(graph, x))
    return given, inputs


def _reads(graph: FuncGraph, handle: Tensor) -> list[Operation] | None:
    """The operations that read a variable, if nothing else uses its handle in a graph."""
    if id(handle) not in graph.captures:
        return []
    users = graph.captures[id(handle)][1].consumers()
    waited = {c.id for op in graph.operations for c in op.control_inputs}
    if all(op.definition is read_variable and op.id not in waited for op in users):
        return users
    return None


def _can_read_before(
    reads: Sequence[list[Operation] | None], handle: Tensor, every_run: bool
) -> bool:
    if any(ops is None for ops in reads) or not any(reads):
        return False
    store = _store(handle)
    return every_run or (isinstance(store, VariableStore) and store.value is not None)


def _store(handle: Tensor) -> Any:
    """What a handle stands for, where that is known while the graph is built."""
    while isinstance(handle, GraphTensor):
        for outer, own in handle.graph.captures.values():
            if own is handle:
                handle = outer
                break
        else:
            return None
    return handle.value if isinstance(handle, EagerTensor) else None


def _watch(outer: Graph, handle: Tensor) -> None:
    """Tell the tapes of a trainable variable that is about to be read."""
    if recorders.active and getattr(_store(handle), "trainable", False):
        own = as_input(outer, handle)
        for recorder in recorders.active:
            recorder.watched_variable(own)


def matched(who: str, name: str, spec: TensorSpec, found: TensorSpec, fixed: bool) -> TensorSpec:
    """The spec of a loop's variable that also covers what the body made of it.

    Args:
        who: the loop.
        name: the variable.
        spec: what the body was traced for.
        found: what it returned.
        fixed: whether `spec` is what the user declared, and cannot be extended.

    Raises:
        DTypeError: the dtypes differ.
        ShapeError: the shapes contradict each other, or what was declared.
    """
    said = f"{who}: the loop variable {name} is {spec}, and the body returns {found} for it"
    if found.dtype != spec.dtype:
        raise DTypeError(said, remedy=f'cast one to the type of the other: cast(x, "{spec.dtype}")')
    if covers(spec.shape, found.shape):
        return spec
    if fixed or not spec.shape.is_compatible_with(found.shape):
        raise ShapeError(
            said,
            remedy="a variable keeps its shape; where it grows, declare what stays: "
            "while_loop(..., shape_invariants=...) with None for the sizes that change",
        )
    if found.shape.rank is None or spec.shape.rank is None:
        return TensorSpec(None, spec.dtype)
    dims = [a if a == b else None for a, b in zip(spec.shape, found.shape, strict=True)]
    return TensorSpec(dims, spec.dtype)


def covers(general: TensorShape, special: TensorShape) -> bool:
    """Whether every value of the shape `special` has the shape `general`."""
    if general.rank is None:
        return True
    if special.rank is None or len(general) != len(special):
        return False
    return all(g is None or g == s for g, s in zip(general, special, strict=True))


def names_of(structure: Any, root: str) -> list[str]:
    """How messages call the leaves of a structure: loop_vars[1]['state']."""
    return [
        root + "".join(f"[{key!r}]" for key in path) for path, _ in flatten_with_path(structure)
    ]


def same_structure(expected: Any, found: Any, said: str) -> list[Any]:
    """The leaves of `found`, which must nest as `expected`.

    Raises:
        InvalidArgumentError: it does not; the message begins with `said`.
    """
    try:
        assert_same_structure(expected, found)
    except InvalidArgumentError as cause:
        raise InvalidArgumentError(
            f"{said}: {cause.message}", remedy="return one value for each, nested in the same way"
        ) from cause
    return flatten(found)
