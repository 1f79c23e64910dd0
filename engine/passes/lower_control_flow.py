"""Write conditions and loops out as dataflow: Switch and Merge, and frames of iterations.

Case, While and Scan run their graphs by themselves, in one thread and on one device. Written out,
their operations are operations of the whole graph: they can be on any device, wait without holding
a thread, and iterations can overlap. The result is another graph; the one given stays as it is.

    Case:   each input goes through a Switch to each branch; each output is a Merge.
    While:  Enter -> Merge -> (condition) -> Switch -> (body) -> NextIteration -> Merge; Exit.
    Scan:   a While whose condition is the number of iterations.

What has no inputs in a branch or body waits for its pivot, a tensor that is dead unless the branch
is taken or the iteration runs. Effects keep their order: an iteration counts on when those of the
one before have ended. What is kept for gradients is pushed on stacks, which go round with the loop.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 4.4; Yu et al., "Dynamic Control Flow in Large-Scale Machine
    Learning", 2018, arXiv:1805.01772, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..graph import (
    Graph,
    GraphTensor,
    Operation,
    Tensor,
    TensorSpec,
    bool_,
    int32,
    resource,
)
from ..ops.control.dataflow import (
    close_loop,
    enter,
    exit_loop,
    loop_cond,
    loosen,
    merge,
    next_iteration,
    switch,
)
from ..ops.control.structured import (
    CASE,
    WHILE,
    Body,
    relaxed,
    stack_all,
    stack_item,
    stack_new,
    stack_push,
)
from ..ops.core.basic import constant, identity, placeholder_op
from ..ops.core.dispatch import as_input
from ..ops.core.graphs import needed_operations
from ..ops.math.arithmetic import add, subtract
from ..ops.math.cast import cast
from ..ops.math.compare import equal, greater_equal, less, logical_and, logical_or, not_equal
from .inner_graphs import CONTROL_FLOW, inner_operations
from .order import in_order
from .step_graph import StepGraph


def waits_inside(operations: Sequence[Operation]) -> bool:
    """Whether something inside a condition or loop may have to wait, which must hold no thread."""
    return any(
        getattr(inner.definition, "async_kernel", None) is not None
        for op in operations
        if op.definition in CONTROL_FLOW
        for inner in inner_operations(op)
    )


def spans_devices(operations: Sequence[Operation]) -> bool:
    """Whether something inside a condition or loop is to be on a device of its own."""
    return any(
        inner.device not in ("", op.device)
        for op in operations
        if op.definition in CONTROL_FLOW
        for inner in inner_operations(op)
    )


def lower_control_flow(step: StepGraph) -> StepGraph:
    """A copy of a step without Case, While and Scan.

    Operations keep their names; those of a branch or body get the name of its operation as scope.
    """
    graph = Graph()
    writer = _Writer(graph, None, None, set())
    with graph.as_default():
        for x in step.feeds:
            attrs = {"shape": x.shape, "dtype": x.dtype}
            twin = graph.add(placeholder_op, (), attrs, name=f"{x.op.name}").outputs[0]
            twin.op.location, twin.op.layer = x.op.location, x.op.layer
            twin.op.device = x.op.device
            writer.tensors.setdefault(id(x), twin)
        writer.copy(step.operations)
    made = StepGraph(
        [writer.tensors[id(y)] for y in step.fetches],
        [writer.tensors[id(x)] for x in step.feeds],
        [writer.done[op.id] for op in step.targets],
        graph,
    )
    made.compiled = step.compiled
    return made


class _Writer:
    """Copies the operations of one graph into `graph`.

    Attributes:
        pivot: what operations without inputs wait for, None at the top.
        tensors: the copy of a tensor, by its id().
        done: by the id of an operation, the one that runs when that has ended.
        stateful: what runs when something that uses state has ended.
        located: ids of the operations that know the user's line; one set for all writers.
    """

    def __init__(
        self, graph: Graph, pivot: GraphTensor | None, scope: str | None, located: set[int]
    ) -> None:
        self.graph = graph
        self.pivot = pivot
        self.scope = scope
        self.located = located
        self.tensors: dict[int, GraphTensor] = {}
        self.done: dict[int, Operation] = {}
        self.stateful: list[Operation] = []
        self._places: dict[str, str] = {}

    def copy(self, operations: Sequence[Operation]) -> None:
        """Copy operations, which stand after what they wait for."""
        given = set(self.tensors)
        for op in operations:
            write = self._control_flow if op.definition in CONTROL_FLOW else self._plain
            outputs = write(op)
            for y, twin in zip(op.outputs, outputs, strict=True):
                if id(y) not in given:  # what is given stays what it is
                    self.tensors[id(y)] = twin

    def _control_flow(self, op: Operation) -> list[GraphTensor]:
        first = self.graph.version
        with self.graph.device(op.device):
            if op.definition in CASE:
                outputs = self._case(op)
            else:
                outputs = self._while(op) if op.definition in WHILE else self._scan(op)
        if any(_uses_state(inner) for inner in inner_operations(op)):
            self.stateful.append(self.done[op.id])
        for made in self.graph.operations[first:]:
            if made.id not in self.located:
                self.located.add(made.id)
                made.location, made.layer = op.location, op.layer
        return outputs

    def _name(self, op: Operation) -> str:
        return op.name if self.scope is None else f"{self.scope}/{op.name}"

    def _inputs(self, op: Operation) -> list[GraphTensor]:
        return [self.tensors[id(x)] for x in op.inputs]

    def _waits(self, op: Operation) -> list[Operation]:
        """What the copy of an operation waits for besides its inputs."""
        found = [self.done[c.id] for c in op.control_inputs if c.id in self.done]
        if self.pivot is not None and (_uses_state(op) or not op.inputs):
            found.append(self.pivot.op)
        return found

    def _plain(self, op: Operation) -> list[GraphTensor]:
        made = self.graph.add(op.definition, self._inputs(op), op.attrs, name=self._name(op))
        made.location, made.layer, made.device = op.location, op.layer, op.device
        made.control_inputs.extend(self._waits(op))
        self._places[op.name] = made.name
        made.colocation = tuple(self._places[n] for n in op.colocation if n in self._places)
        for y, twin in zip(op.outputs, made.outputs, strict=True):
            twin.set_shape(y.shape)
        if _uses_state(op):
            self.stateful.append(made)
        self.located.add(made.id)
        self.done[op.id] = made
        return list(made.outputs)

    def _source(self, value: Any, dtype: Any = int32) -> GraphTensor:
        """A constant of this place."""
        made = as_input(self.graph, constant(np.asarray(value), dtype))
        return made if self.pivot is None else _after(made, [self.pivot.op])

    def _stack(self) -> GraphTensor:
        """A new stack."""
        made = _one(stack_new())
        if self.pivot is not None:
            made.op.control_inputs.append(self.pivot.op)
        return made

    # Conditions

    def _case(self, op: Operation) -> list[GraphTensor]:
        index, *inputs = self._inputs(op)
        branches: Sequence[Body] = op.attrs["branches"]
        # Nothing of it begins before what the operation waits for.
        index = _after(index, self._waits(op))
        results: list[list[GraphTensor]] = []
        ends = []
        specs = [relaxed(c) for c in zip(*(b.output_specs for b in branches), strict=True)]
        for k, branch in enumerate(branches):
            taken, side = _is_taken(index, k, len(branches))
            pivot = _one(identity(switch(taken, taken)[side]))
            writer = _Writer(self.graph, pivot, f"{self._name(op)}/branch_{k}", self.located)
            for x, outer in zip(branch.inputs, inputs, strict=True):
                writer.tensors[id(x)] = _one(switch(outer, taken)[side])
            writer.copy(_operations_of(branch))
            blank = [
                None if y is not None else writer._source(_blank(spec), spec.dtype)
                for y, spec in zip(branch.outputs, specs, strict=True)
            ]
            results.append(
                [
                    writer.tensors[id(y)] if y is not None else _one(b)
                    for y, b in zip(branch.outputs, blank, strict=True)
                ]
            )
            ends.append(_after(pivot, writer.stateful))
        done = merge(ends, name=self._name(op))[0]
        self.done[op.id] = _one(done).op
        merged = [_one(merge(column)[0]) for column in zip(*results, strict=True)]
        return [loosen(y, spec.shape) for y, spec in zip(merged, specs, strict=True)]

    # Loops

    def _while(self, op: Operation) -> list[GraphTensor]:
        attrs = op.attrs
        count: int = attrs["variables"]
        limit, *inputs = self._inputs(op)
        body: Body = attrs["body"]
        condition: Body = attrs["condition"]
        kept = list(range(count, len(body.outputs)))
        loop = _Frame(self, op, attrs["parallel_iterations"])
        variables = [
            loop.variable(x, spec)
            for x, spec in zip(inputs, body.input_specs[:count], strict=False)
        ]
        stacks = [loop.variable(self._stack(), _HANDLE) for _ in kept]
        constants = [loop.constant(x) for x in inputs[count:]]
        limited = loop.constant(limit)
        tested = _Writer(self.graph, loop.count.merged, f"{self._name(op)}/condition", self.located)
        now = [*(v.merged for v in variables), *constants]
        tested.tensors |= {id(x): y for x, y in zip(condition.inputs, now, strict=True)}
        tested.copy(_operations_of(condition))
        (holds,) = (tested.tensors[id(y)] for y in condition.outputs if y is not None)
        below = not_equal(loop.count.merged, _cast(limited, loop.count.merged))
        loop.decide(logical_and(holds, below), tested.stateful)
        writer = loop.writer("body")
        given = [*(v.inside for v in variables), *(loop.guarded(c) for c in constants)]
        writer.tensors |= {id(x): y for x, y in zip(body.inputs, given, strict=True)}
        writer.copy(_operations_of(body))
        found = [writer.tensors[id(y)] for y in body.outputs if y is not None]
        for variable, y in zip(variables, found, strict=False):
            loop.next(variable, y)
        for stack, y in zip(stacks, found[count:], strict=True):
            loop.next(stack, stack_push(stack.inside, y))
        loop.close(writer.stateful)
        self.done[op.id] = loop.count.left.op
        specs = [_one(body.outputs[i]).spec for i in kept]
        return [
            *(v.left for v in variables),
            loop.count.left,
            *(_values(s.left, spec) for s, spec in zip(stacks, specs, strict=True)),
        ]

    def _scan(self, op: Operation) -> list[GraphTensor]:
        attrs = op.attrs
        carries, slices = attrs["carries"], attrs["slices"]
        length, *inputs = self._inputs(op)
        body: Body = attrs["body"]
        loop = _Frame(self, op, 10)
        variables = [
            loop.variable(x, spec)
            for x, spec in zip(inputs, body.input_specs[:carries], strict=False)
        ]
        ys = [y for y in body.outputs[carries:] if y is not None]
        stacks = [loop.variable(self._stack(), _HANDLE) for _ in ys]
        constants = [loop.constant(x) for x in inputs[carries:]]
        total = _cast(loop.constant(length), loop.count.merged)
        loop.decide(less(loop.count.merged, total), [])
        writer = loop.writer("body")
        place: Tensor = loop.count.inside
        if attrs["reverse"]:
            last = subtract(loop.guarded(_one(total)), _one(writer._source(1)))
            place = subtract(last, loop.count.inside)
        sliced = [_one(stack_item(x, place)) for x in constants[:slices]]
        given = [
            *(v.inside for v in variables),
            *sliced,
            *(loop.guarded(c) for c in constants[slices:]),
        ]
        for x, y in zip(body.inputs, given, strict=True):
            y.set_shape(x.shape)
            writer.tensors[id(x)] = y
        writer.copy(_operations_of(body))
        found = [writer.tensors[id(y)] for y in body.outputs if y is not None]
        for variable, y in zip(variables, found, strict=False):
            loop.next(variable, y)
        for stack, y in zip(stacks, found[carries:], strict=True):
            loop.next(stack, stack_push(stack.inside, y))
        loop.close(writer.stateful)
        self.done[op.id] = loop.count.left.op
        reverse = attrs["reverse"]
        return [
            *(v.left for v in variables),
            *(_values(s.left, y.spec, reverse) for s, y in zip(stacks, ys, strict=True)),
        ]


class _Variable:
    """A variable of a loop: `merged` in the condition, `inside` the body, `left` after it."""

    def __init__(self, merged: GraphTensor) -> None:
        self.merged = merged
        self.inside = self.left = merged

    def decide(self, go: Tensor) -> None:
        """Lead it into the body or out of the loop."""
        out, inside = switch(self.merged, go)
        self.inside, self.left = _one(inside), _one(exit_loop(out))


class _Frame:
    """The frame of a loop under construction; `count` is the number of iterations so far."""

    def __init__(self, outer: _Writer, op: Operation, parallel: int) -> None:
        self._outer = outer
        self._graph = outer.graph
        self._scope = outer._name(op)
        self._name = outer.graph.unique_name(f"{self._scope}/frame")
        self._parallel = max(parallel, 1)
        self._variables: list[_Variable] = []
        self._go: Tensor | None = None
        self._anchor: Operation | None = None
        zero = _after(outer._source(0), outer._waits(op))
        self.count = self.variable(zero, TensorSpec((), int32))

    def variable(self, start: Tensor, spec: TensorSpec) -> _Variable:
        """A new variable."""
        with self._together():
            first = enter(start, self._name, parallel_iterations=self._parallel)
            merged = _one(merge([first])[0])
        self._anchor = self._anchor or merged.op
        made = _Variable(loosen(merged, spec.shape))
        self._variables.append(made)
        return made

    def _together(self) -> AbstractContextManager[None]:
        """A block whose operations are on one device with the others that steer this loop."""
        return nullcontext() if self._anchor is None else self._graph.colocate_with(self._anchor)

    def constant(self, value: Tensor) -> GraphTensor:
        """A value that is the same in each iteration."""
        parallel = self._parallel
        with self._together():
            made = enter(value, self._name, is_constant=True, parallel_iterations=parallel)
        return _one(made)

    def decide(self, condition: Tensor, waits: Sequence[Operation]) -> None:
        """Say what decides whether there is another iteration, after `waits` have ended."""
        with self._together():
            self._go = loop_cond(_after(_one(condition), waits))
            for variable in self._variables:
                variable.decide(self._go)

    def guarded(self, value: GraphTensor) -> GraphTensor:
        """A constant of the loop, dead when there is no iteration any more."""
        assert self._go is not None
        with self._together():
            return _one(switch(value, self._go)[1])

    def next(self, variable: _Variable, value: Tensor) -> None:
        """Say what a variable is in the next iteration."""
        with self._together():
            close_loop(variable.merged, next_iteration(value))

    def writer(self, part: str) -> _Writer:
        """What copies the body."""
        pivot = _one(identity(self.count.inside))
        return _Writer(self._graph, pivot, f"{self._scope}/{part}", self._outer.located)

    def close(self, waits: Sequence[Operation]) -> None:
        """Count on, when `waits` have ended."""
        self.next(self.count, add(_after(self.count.inside, waits), constant(1, int32)))


_HANDLE = TensorSpec((), resource)


def _operations_of(body: Body) -> list[Operation]:
    """What runs, each after what it waits for, also where that was made later."""
    outputs = [y for y in body.outputs if y is not None]
    needed = needed_operations(outputs, body.effects, body.inputs)
    return in_order(needed, {id(x) for x in body.inputs})


def _is_taken(index: GraphTensor, k: int, count: int) -> tuple[Tensor, int]:
    """(a condition, the side of a Switch on it that leads to branch `k`)."""
    if index.dtype == bool_:
        return index, k
    number = cast(index, int32)
    if k < count - 1:
        return equal(number, constant(k, int32)), 1
    last = constant(count - 1, int32)
    return logical_or(less(number, constant(0, int32)), greater_equal(number, last)), 1


def _after(tensor: GraphTensor, waits: Sequence[Operation]) -> GraphTensor:
    """`tensor`, when `waits` have ended too."""
    if not waits:
        return tensor
    made = _one(identity(tensor))
    made.op.control_inputs.extend(w for w in dict.fromkeys(waits) if w is not made.op)
    return made


def _values(stack: GraphTensor, spec: TensorSpec, reverse: bool = False) -> GraphTensor:
    return _one(stack_all(stack, shape=spec.shape, dtype=spec.dtype, reverse=reverse))


def _blank(spec: TensorSpec) -> Any:
    return np.zeros((0,) * (spec.shape.rank or 0), spec.dtype.numpy)


def _cast(x: GraphTensor, like: GraphTensor) -> Tensor:
    return x if x.dtype == like.dtype else cast(x, like.dtype)


def _one(tensor: Tensor | None) -> GraphTensor:
    assert isinstance(tensor, GraphTensor)
    return tensor


def _uses_state(op: Operation) -> bool:
    return op.definition.stateful or any(x.dtype == resource for x in op.inputs)
