"""Algebraic simplification: what gives its input, bit for bit, is left out.

Only what holds for every value is used, signed zeros and NaNs included: x - 0 is x, and so is
x + (-0.0); x + 0.0 is not (-0.0 + 0.0 is 0.0), unless x is an integer. Nothing is reassociated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph import GraphTensor, Operation, canonical_axes
from ..ops.array.axes import transpose_op
from ..ops.array.broadcast import broadcast_to_op, sum_to_op
from ..ops.array.shape import reshape_op
from ..ops.core.basic import identity, stop_gradient
from ..ops.core.op_def import OpDef
from ..ops.core.registry import definition_of
from ..ops.math.arithmetic import add, conj, divide, multiply, negative, subtract
from ..ops.math.cast import cast_op
from ..ops.math.compare import logical_not
from .purity import is_unfed_constant
from .step_graph import StepGraph

# Given the step and an operation with known inputs: what its output is equal to, or None.
Rule = Callable[[StepGraph, Operation], GraphTensor | None]


def simplify(step: StepGraph) -> None:
    """Leave out operations that give their input, and join pairs that are one.

    An operation that waits for others stays: it makes them run.
    """

    def simpler(op: Operation) -> Sequence[GraphTensor] | None:
        rule = _RULES.get(definition_of(op))
        if rule is None or op.control_inputs:
            return None
        found = rule(step, op)
        return None if found is None or not _stands_for(found, op.outputs[0]) else [found]

    step.rewrite(simpler)


def _stands_for(found: GraphTensor, y: GraphTensor) -> bool:
    """Whether at least as much is known of `found` as of `y`, and it is on the same device."""
    if found.dtype != y.dtype or found.op.device != y.op.device:
        return False
    merged = found.shape.is_compatible_with(y.shape)
    return merged and (found.shape == y.shape or found.shape.is_fully_defined())


def _value(x: GraphTensor) -> Any:
    """The one number that a constant consists of; None for what is not known or has several."""
    if not is_unfed_constant(x.op):
        return None
    array = x.op.attrs["value"]
    return array.reshape(-1)[0] if array.size == 1 and array.dtype != object else None


def _keeps_shape(x: GraphTensor, other: GraphTensor) -> bool:
    """Whether `other`, a single number, broadcast with `x` gives the shape of `x`."""
    rank = x.shape.rank
    return rank is not None and other.shape.rank is not None and other.shape.rank <= rank


def _neutral(is_neutral: Callable[[Any], bool], *, both: bool) -> Rule:
    def rule(step: StepGraph, op: Operation) -> GraphTensor | None:
        a, b = op.inputs
        for x, other in ((a, b), (b, a)) if both else ((a, b),):
            value = _value(other)
            if value is not None and is_neutral(value) and _keeps_shape(x, other):
                return x
        return None

    return rule


def _is_nothing_to_add(value: Any) -> bool:
    if value != 0:
        return False
    if np.asarray(value).dtype.kind in "iub":
        return True
    return value.dtype.kind != "c" and bool(np.signbit(np.float64(value)))


def _is_nothing_to_subtract(value: Any) -> bool:
    if value != 0:
        return False
    if np.asarray(value).dtype.kind in "iub":
        return True
    return value.dtype.kind != "c" and not np.signbit(np.float64(value))


def _is_one(value: Any) -> bool:
    return value.dtype.kind != "c" and bool(value == 1)  # inf * (1 + 0j) has a NaN


def _input(step: StepGraph, op: Operation) -> GraphTensor | None:
    return op.inputs[0]


def _twice(step: StepGraph, op: Operation) -> GraphTensor | None:
    """f(f(x)) is x."""
    inner = op.inputs[0].op
    return (
        inner.inputs[0] if inner.definition is op.definition and not inner.control_inputs else None
    )


def _transpose(step: StepGraph, op: Operation) -> GraphTensor | None:
    x = op.inputs[0]
    rank = x.shape.rank
    if rank is None:
        return None
    axes = _order(op, rank)
    if axes == tuple(range(rank)):
        return x
    inner = x.op
    if inner.definition is not op.definition or inner.control_inputs:
        return None
    before = _order(inner, rank)
    joined = tuple(before[a] for a in axes)
    (source,) = inner.inputs
    if joined == tuple(range(rank)):
        return source
    definition: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
    return step.add(definition, [source], {"axes": joined}, like=op).outputs[0]


def _order(op: Operation, rank: int) -> tuple[int, ...]:
    axes = op.attrs["axes"]
    return tuple(range(rank))[::-1] if axes is None else canonical_axes("Transpose", axes, rank)


def _cast(step: StepGraph, op: Operation) -> GraphTensor | None:
    """To its own type, or back from a type that holds all values."""
    x, y = op.inputs[0], op.outputs[0]
    if x.dtype == y.dtype:
        return x
    inner = x.op
    if inner.definition is not op.definition or inner.control_inputs:
        return None
    source = inner.inputs[0]
    if source.dtype != y.dtype or source.dtype.numpy.kind not in "fiu":
        return None
    return source if np.can_cast(source.dtype.numpy, x.dtype.numpy, "safe") else None


def _same_shape(step: StepGraph, op: Operation) -> GraphTensor | None:
    """What gives the shape that its input has."""
    x = op.inputs[0]
    if len(op.inputs) > 1 or not x.shape.is_fully_defined:
        return None
    return x if x.shape == op.outputs[0].shape else None


def _reshape(step: StepGraph, op: Operation) -> GraphTensor | None:
    same = _same_shape(step, op)
    inner = op.inputs[0].op
    if same is not None or inner.definition is not op.definition:
        return same
    shape = op.outputs[0].shape
    if len(op.inputs) > 1 or inner.control_inputs or not shape.is_fully_defined:
        return None
    if len(inner.inputs) > 1 or not inner.inputs[0].shape.is_fully_defined:
        return None
    source = inner.inputs[0]
    if source.shape == shape:
        return source
    definition: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
    return step.add(definition, [source], {"shape": tuple(shape)}, like=op).outputs[0]


_RULES: dict[OpDef, Rule] = {
    add: _neutral(_is_nothing_to_add, both=True),
    subtract: _neutral(_is_nothing_to_subtract, both=False),
    multiply: _neutral(_is_one, both=True),
    divide: _neutral(_is_one, both=False),
    negative: _twice,
    logical_not: _twice,
    conj: _twice,
    identity: _input,
    stop_gradient: _input,
    transpose_op: _transpose,
    cast_op: _cast,
    broadcast_to_op: _same_shape,
    sum_to_op: _same_shape,
    reshape_op: _reshape,
}
