"""Reshapes that part a size which was joined of others: (batch * 12, 3) to (batch, 12, 3).

By itself nothing says that the first size is a multiple of 12, so such an operation cannot be tried
alone as others are (supported_ops.py). Here the sizes of a graph's tensors are written as numbers
made of symbolic sizes (sizes.py) for what is unknown of its inputs: the ops' own shape rules carry
them on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import LaminarError
from ...graph import GraphTensor, Operation, TensorSpec, int32, int64
from ...ops.array.shape import dim_of, reshape_op, size_of
from ...ops.control.structured import SCAN
from ...ops.core.basic import const_op
from ...ops.core.registry import definition_of
from ..ir.sizes import symbolic_size


def accept_reshapes(
    operations: Sequence[Operation], found: list[bool], undecided: Sequence[int]
) -> None:
    """Accept those Reshapes whose sizes fit where they stand.

    Args:
        operations: in an order in which inputs stand before consumers.
        found: whether each operation has native code; true is written for Reshapes that fit.
        undecided: the places of Reshapes that have none by themselves.
    """
    shapes = _Shapes(operations)
    waiting = set(undecided)
    for i, op in enumerate(operations[: max(waiting) + 1]):
        if i in waiting:
            found[i] = shapes.fits(op)
        if found[i]:  # what others make comes into a cluster as an input, of any size
            shapes.note(op)


def parts_a_size(op: Operation) -> bool:
    """Whether an operation is a Reshape for which the sizes around it may decide."""
    return op.definition is reshape_op and op.inputs[0].shape.num_elements() is None


class _Shapes:
    """The specs of tensors with numbers for unknown sizes, and the numbers that are sizes.

    Attributes:
        _own: the operations that are visited.
        _specs: by the tensor's id.
        _numbers: the values of scalars that are sizes, by the tensor's id.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._own = {op.id for op in operations}
        self._specs: dict[int, TensorSpec] = {}
        self._numbers: dict[int, int] = {}

    def _spec(self, x: GraphTensor) -> TensorSpec:
        known = self._specs.get(id(x))
        if known is not None:
            return known
        if x.op.id in self._own or x.shape.rank is None:
            return x.spec
        filled = [symbolic_size(axis) if n is None else n for axis, n in enumerate(x.shape)]
        return TensorSpec(filled, x.dtype)

    def fits(self, op: Operation) -> bool:
        """Whether a Reshape has as many elements as it takes, whatever the unknown sizes are."""
        total = self._spec(op.inputs[0]).shape.num_elements()
        shape = self._filled(op)
        if total is None or shape is None:
            return False
        known = math.prod(n for n in shape if n != -1)
        return known > 0 and (total % known == 0 if -1 in shape else total == known)

    def note(self, op: Operation) -> None:
        """Find out about what an operation makes."""
        definition = definition_of(op)
        if len(op.outputs) == 1 and op.outputs[0].shape == ():
            number = self._number(op)
            if number is not None:
                self._numbers[id(op.outputs[0])] = number
        try:
            specs, _ = definition.infer([self._spec(x) for x in op.inputs], op.attrs)
        except (
            LaminarError,
            OverflowError,
        ):  # sizes that are equal in each run, which nothing here says
            return
        self._specs.update({id(y): spec for y, spec in zip(op.outputs, specs, strict=True)})
        if definition in SCAN:
            self._note_scan(op)
        if op.attrs.get("num_segments", 0) is None:  # the sums of rows, in so many segments
            number = self._numbers.get(id(op.inputs[-1]))
            if number is not None:
                sizes = [number, *specs[0].shape[1:]]
                self._specs[id(op.outputs[0])] = TensorSpec(sizes, specs[0].dtype)
        shape = self._filled(op)
        if shape is not None and len(specs) == 1 and specs[0].rank == len(shape):
            if -1 in shape:
                rest = math.prod(n for n in shape if n != -1)
                total = self._spec(op.inputs[0]).shape.num_elements()
                if total is None or not rest or total % rest:
                    return
                shape = [total // rest if n == -1 else n for n in shape]
            self._specs[id(op.outputs[0])] = TensorSpec(shape, specs[0].dtype)

    def _note_scan(self, op: Operation) -> None:
        """What it carries is at the end as it was at the beginning; stacks are of the body's."""
        carries, body = op.attrs["carries"], op.attrs["body"]
        last = carries + op.attrs["slices"]
        operations = body.operations_for([y for y in body.outputs if y is not None])
        inside = _Shapes(operations)
        for k, x in enumerate(body.inputs):
            given = self._spec(op.inputs[k + 1])
            shape = given.shape[1:] if carries <= k < last else given.shape
            inside._specs[id(x)] = TensorSpec(shape, given.dtype)
            if id(op.inputs[k + 1]) in self._numbers:
                inside._numbers[id(x)] = self._numbers[id(op.inputs[k + 1])]
        for inner in operations:
            if any(id(y) not in inside._specs for y in inner.outputs):
                inside.note(inner)
        count = self._numbers.get(id(op.inputs[0]))
        for k, (x, y) in enumerate(zip(body.outputs, op.outputs, strict=True)):
            if k < carries:
                self._specs[id(y)] = self._spec(op.inputs[k + 1])
            elif x is not None and count is not None:
                self._specs[id(y)] = TensorSpec((count, *inside._spec(x).shape), y.dtype)

    def _filled(self, op: Operation) -> list[int] | None:
        """The attribute `shape` with its `*dims`; None where it has none, or data in it."""
        definition = definition_of(op)
        names, shape = definition.input_names, op.attrs.get("shape")
        if not names or names[-1] != "dims" or not isinstance(shape, tuple):
            return None
        dims = [self._numbers.get(id(x)) for x in op.inputs[len(names) - 1 :]]
        if None in dims or len(dims) != sum(n is None for n in shape):
            return None
        given = iter(dims)
        return [next(given) if n is None else n for n in shape]  # type: ignore[misc]  # no None left

    def _number(self, op: Operation) -> int | None:
        """The value of a scalar that is a size or computed from sizes."""
        if op.outputs[0].dtype not in (int32, int64):
            return None
        definition = definition_of(op)
        if definition is const_op:
            return int(op.attrs["value"])
        if definition is dim_of:
            shape = self._spec(op.inputs[0]).shape
            size: int | None = shape[op.attrs["axis"]]
            return size
        if definition is size_of:
            return self._spec(op.inputs[0]).shape.num_elements()
        values: list[Any] = [self._numbers.get(id(x)) for x in op.inputs]
        if None in values:
            return None
        on_sizes = definition.traits.on_sizes
        return None if on_sizes is None else int(on_sizes(*values))
