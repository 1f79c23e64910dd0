"""Verify: whether the graph of a step is one that can run.

A pass is checked by verifying the graph before and after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from ..errors import InternalError, LaminarError
from ..graph import Operation, resource
from ..ops.control.dataflow import NEXT_ITERATION
from ..ops.core.basic import placeholder_op
from ..ops.core.op_def import OpDef
from .step_graph import StepGraph


def verify(step: StepGraph) -> None:
    """Check that a graph is well formed.

    Every input and control input is of an operation of the graph; types and shapes are what the
    ops' rules give for the inputs; no operation waits for itself, but through a NextIteration.

    Raises:
        InternalError: it is not; the message shows the operation and its neighbours.
    """
    graph = step.graph
    operations = graph.operations
    known = {id(op) for op in operations}
    for what, ops in (
        ("fetched", [t.op for t in step.fetches]),
        ("fed", [t.op for t in step.feeds]),
        ("a target", step.targets),
    ):
        for op in ops:
            if id(op) not in known:
                raise InternalError(f"{op!r}\n  is {what}, and is not in the graph of the step")
    for t in step.feeds:
        if t.op.definition is not placeholder_op:
            _refuse(t.op, "is fed and is not a placeholder")
    for op in operations:
        _check_neighbours(op, known)
        _check_specs(op)
    _check_order(operations)


def _refuse(op: Operation, why: str) -> NoReturn:
    lines = [f"{op.name!r} ({op.type}) {why}", f"  {op!r}"]
    lines += [f"  takes {x.op!r}" for x in op.inputs]
    lines += [f"  waits for {c!r}" for c in op.control_inputs]
    raise InternalError("\n".join(lines), location=op.location, layer=op.layer)


def _check_neighbours(op: Operation, known: set[int]) -> None:
    for x in op.inputs:
        if id(x.op) not in known:
            _refuse(op, f"takes {x.name}, which is not in its graph")
        if x.value_index >= len(x.op.outputs) or x.op.outputs[x.value_index] is not x:
            _refuse(op, f"takes {x.name}, which is no output of {x.op.name!r}")
    for c in op.control_inputs:
        if id(c) not in known:
            _refuse(op, f"waits for {c.name!r}, which is not in its graph")


def _check_specs(op: Operation) -> None:
    definition: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
    try:
        specs, _ = definition.infer([x.spec for x in op.inputs], op.attrs)
    except LaminarError as cause:
        _refuse(op, f"does not take its inputs: {cause.message}")
    if len(specs) != len(op.outputs):
        _refuse(op, f"has {len(op.outputs)} outputs, its rule gives {len(specs)}")
    for y, spec in zip(op.outputs, specs, strict=True):
        same = y.dtype == spec.dtype
        if not same or (y.dtype != resource and not spec.shape.is_compatible_with(y.shape)):
            _refuse(op, f"gives {y.spec} as output {y.value_index}, its rule gives {spec}")


def _check_order(operations: Sequence[Operation]) -> None:
    """No circle among operations, found by depth-first search without recursion."""
    state: dict[int, bool] = {}  # whether all that it waits for has been seen
    for root in operations:
        stack = [(root, False)]
        while stack:
            op, done = stack.pop()
            if done:
                state[id(op)] = True
                continue
            seen = state.get(id(op))
            if seen is not None:
                continue
            state[id(op)] = False
            stack.append((op, True))
            sources = [x.op for x in op.inputs if x.op.definition is not NEXT_ITERATION]
            for source in (*sources, *op.control_inputs):
                if state.get(id(source)) is False:
                    _refuse(op, f"waits for itself, through {source.name!r}")
                stack.append((source, False))
