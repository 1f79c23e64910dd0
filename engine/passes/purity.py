"""What a rewrite may do with an operation."""

from __future__ import annotations

import functools
from collections.abc import Container

from ..graph import Operation, resource
from ..ops.control.dataflow import STEERING
from ..ops.core.basic import const_op
from ..ops.core.op_def import OpDef


def is_pure(op: Operation) -> bool:
    """Whether its outputs depend on its inputs and attributes alone, and nothing else happens.

    Draws of random numbers are pure in laminar: the generator's state is an input.
    """
    definition: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
    if not _computes_only(definition):
        return False
    for x in op.inputs:
        if x.dtype == resource:
            return False
    for y in op.outputs:  # noqa: SIM110  # all of it is a loop, which takes half the time
        if y.dtype == resource:
            return False
    return True


@functools.cache
def _computes_only(definition: OpDef) -> bool:
    """Whether operations of an op do nothing but compute."""
    return not (
        definition.stateful
        or definition.context_kernel is not None
        or definition.async_kernel is not None
        or definition in STEERING
    )


def is_unfed_constant(op: Operation, fed: Container[int] = ()) -> bool:
    """Whether it gives a value that is part of the graph, in every run, and waits for nothing.

    Args:
        op: any operation.
        fed: the id() of tensors that are given.
    """
    return op.definition is const_op and not op.control_inputs and id(op.outputs[0]) not in fed
