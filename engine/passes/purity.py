"""What a rewrite may do with an operation."""

from __future__ import annotations

from ..graph import Operation, resource
from ..ops.control.dataflow import STEERING
from ..ops.core.basic import const_op
from ..ops.core.registry import OpDef


def is_pure(op: Operation) -> bool:
    """Whether its outputs depend on its inputs and attributes alone, and nothing else happens.

    Draws of random numbers are pure in laminar: the generator's state is an input.
    """
    definition: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
    return not (
        definition.stateful
        or definition.context_kernel is not None
        or definition.async_kernel is not None
        or definition in STEERING
        or any(x.dtype == resource for x in op.inputs)
        or any(y.dtype == resource for y in op.outputs)
    )


def is_constant(op: Operation) -> bool:
    """Whether it gives a value that is part of the graph, and waits for nothing."""
    return op.definition is const_op and not op.control_inputs
