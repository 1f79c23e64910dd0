"""The graphs inside of conditions and loops."""

from __future__ import annotations

from ..graph import Operation
from ..ops.control.structured import CASE, SCAN, WHILE, Body
from ..ops.core.graphs import needed_operations

CONTROL_FLOW = frozenset((*CASE, *WHILE, *SCAN))


def bodies_of(op: Operation) -> list[Body]:
    """The graphs inside of an operation."""
    if op.definition in CASE:
        return list(op.attrs["branches"])
    if op.definition in WHILE:
        return [op.attrs["condition"], op.attrs["body"]]
    return [op.attrs["body"]] if op.definition in SCAN else []


def inner_operations(op: Operation) -> list[Operation]:
    """The operations of the graphs inside of an operation, and of those inside of them."""
    found = []
    for body in bodies_of(op):
        outputs = [y for y in body.outputs if y is not None]
        for inner in needed_operations(outputs, body.effects, body.inputs):
            found += [inner, *inner_operations(inner)]
    return found
