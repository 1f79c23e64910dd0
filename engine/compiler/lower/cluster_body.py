"""From the operations of a cluster to a loop program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...graph import DType, TensorShape, TensorSpec, resource
from ...ops.core.basic import identity
from ...ops.core.cluster import ClusterBody, ClusterOp
from ...ops.core.op_def import OpDef
from ...ops.state.variable import assign, assign_add, assign_sub, read_variable
from ...ops.state.variable_rows import assign_rows
from ..ir.builder import Builder
from ..ir.element_types import check_computed
from ..ir.machine import HOST, Machine
from ..ir.not_lowered import NotLoweredError
from ..ir.program import LoopProgram, Operand, Shape, Size, View
from .operations import OperationLowering
from .rules.scattering import put_rows

_UPDATES: dict[OpDef, Callable[[Any, Any, Any], Any]] = {
    assign_add: lambda s, old, x: old + x,
    assign_sub: lambda s, old, x: old - x,
}
STATE = frozenset({read_variable, assign, assign_rows, *_UPDATES})


class ClusterLowering:
    """A body as a program.

    Attributes:
        program: what it computes.
        builder: what has built it.
        variables: for each input that is a handle, the storage of its variable.
        inputs: for each input that is an array, its storage.
    """

    def __init__(
        self,
        body: ClusterBody,
        shapes: Sequence[Shape | int],
        num_sizes: int,
        machine: Machine = HOST,
    ) -> None:
        """Lower a body.

        Args:
            body: the operations.
            shapes: of each input; for a handle (), for a number that is a size, that number.
            num_sizes: how many symbolic sizes there are among the shapes.
            machine: what the program is for.

        Raises:
            NotLoweredError: an operation has no native form for these shapes.
        """
        self.builder = Builder(num_sizes, machine)
        self.program: LoopProgram = self.builder.program
        self.variables: dict[int, int] = {}
        self.inputs: dict[int, int] = {}
        self._handles: dict[int, int] = {}  # value number of a handle -> input
        self._current: dict[int, Operand] = {}  # input of a handle -> the variable's value now
        self._steps = OperationLowering(self.builder, body.specs, body.steps, body.outputs)
        self._values = self._steps.values
        self._names = _names(body)
        for i, given in enumerate(shapes):
            self._take(body, i, given)
        for step in body.steps:
            self._step(step)
        for i, value in self._current.items():
            if i in self._written:
                self.program.updates[self.variables[i]] = self._as_view(value)
        self.program.outputs = [self._as_view(self._steps.value(v)) for v in body.outputs]

    _written: set[int]

    def _take(self, body: ClusterBody, i: int, given: Shape | int) -> None:
        spec = body.specs[i]
        if i == 0:
            self._written = set()
        if spec.dtype == resource:
            self._handles[i] = i
        elif isinstance(given, int):
            self._values[i] = Size(given, spec.dtype)
        else:
            check_computed(spec.dtype)
            view = self.builder.storage(given, spec.dtype, "input")
            self.program.storages[view.storage].name = self._names.get(i, "")
            self.inputs[i] = view.storage
            self._values[i] = view

    def _as_view(self, x: Operand) -> View:
        return x if isinstance(x, View) else self.builder.copy(x)

    def _step(self, step: ClusterOp) -> None:
        definition = step.definition
        if definition in STATE:
            self.builder.label = step.label
            self._state(step)
        elif definition is identity and step.inputs[0] in self._handles:
            self._handles[step.outputs[0]] = self._handles[step.inputs[0]]
        else:
            self._steps.lower(step)

    def _state(self, step: ClusterOp) -> None:
        b, definition = self.builder, step.definition
        i = self._handles[step.inputs[0]]
        shape, dtype = tuple(step.attrs["shape"]), DType(step.attrs["dtype"])
        if i not in self.variables:
            check_computed(dtype)
            if not TensorShape(shape).is_fully_defined:
                raise NotLoweredError(f"a variable of shape {TensorShape(shape)}")
            view = b.storage(shape, dtype, "variable")
            self.program.storages[view.storage].name = self._names.get(i, "")
            self.variables[i] = view.storage
            self._current[i] = view
        value = self._current[i]
        if definition is not read_variable:
            new = self._steps.value(step.inputs[1])
            if definition is assign_rows:
                new = put_rows(b, value, new, self._steps.value(step.inputs[2]))
            if b.shape(new) != shape:
                raise NotLoweredError(
                    f"{definition.type} of {b.shape(new)} to a variable of {shape}"
                )
            if definition in _UPDATES:
                new = b.compute(_UPDATES[definition], value, new, dtype=dtype)
            value = self._current[i] = new
            self._written.add(i)
        self._values[step.outputs[0]] = value


def variables_of(body: ClusterBody) -> dict[int, TensorSpec]:
    """By the number of an input that is a handle, what the variable is."""
    found: dict[int, TensorSpec] = {}
    same: dict[int, int] = {}
    for step in body.steps:
        handle = same.get(step.inputs[0], step.inputs[0]) if step.inputs else -1
        if step.definition in STATE:
            found[handle] = TensorSpec(step.attrs["shape"], step.attrs["dtype"])
        elif step.definition is identity:
            same[step.outputs[0]] = handle
    return found


def _names(body: ClusterBody) -> dict[int, str]:
    """What people call each input of a body that an operation takes."""
    found: dict[int, str] = {}
    for step in body.steps:
        if step.operation is not None:
            for i, x in zip(step.inputs, step.operation.inputs, strict=False):
                if i < body.num_inputs:
                    found.setdefault(i, x.op.name)
    return found
