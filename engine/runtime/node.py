"""A step of a plan: an operation with its kernel bound, and where its values lie."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..graph import Operation
from ..ops.core.late_checks import named
from ..ops.core.op_def import OpDef


class Node:
    """An operation of a plan, ready to run.

    Attributes:
        op: the operation.
        inputs: slots of its inputs.
        outputs: slots of its outputs, -1 for what nobody takes.
        call: its kernel, with the attributes bound; `waits` tells that it is asynchronous,
            `needs_context` that it takes the step's context first.
        drops: slots that nobody takes after it.
    """

    __slots__ = (
        "call",
        "definition",
        "drops",
        "inputs",
        "needs_context",
        "op",
        "outputs",
        "waits",
    )

    def __init__(self, op: Operation, inputs: list[int], device: Any) -> None:
        definition: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
        self.op = op
        self.definition = definition
        self.inputs = inputs
        self.outputs: list[int] = []
        self.drops: tuple[int, ...] = ()
        self.waits = definition.async_kernel is not None
        self.needs_context = self.waits or definition.context_kernel is not None
        kernel: Callable[..., Any]
        if definition.async_kernel is not None:
            kernel = definition.async_kernel
        elif device is not None:
            kernel = device.bind(definition)
            kernel = kernel if device.is_host else named(op, kernel)
        elif definition.context_kernel is not None:
            kernel = definition.context_kernel
        else:
            kernel = definition.on_host()
        self.call = functools.partial(kernel, **op.attrs) if op.attrs else kernel
