"""Constant folding: what is computed of constants alone becomes a constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..devices import is_on_host
from ..graph import GraphTensor, Operation
from ..ops.array.shape import dim_of, rank_of
from ..ops.core.basic import const_op, placeholder_op
from ..ops.core.dispatch import as_array
from ..ops.core.registry import definition_of
from .program import Program, constant_like
from .purity import is_constant, is_pure

# What is larger than this, and than what it is computed of, is cheaper to make than to keep.
_MOST_BYTES = 1 << 20


def fold_constants(program: Program) -> None:
    """Compute at once what depends on nothing that is known only when a step runs.

    The same kernels do it that a step on the CPU runs, so the bits are the same. What is on another
    device, waits for something, or fails, stays as it is: it fails when it is run.
    """
    free = set[int]()  # operations that run, and may as well not
    values: dict[int, Any] = {}  # by the id of a tensor
    pairs: list[tuple[GraphTensor, GraphTensor]] = []
    for op in program.operations:
        if op.definition is const_op:
            if is_constant(op):
                values[id(op.outputs[0])] = op.attrs["value"]
        elif is_pure(op) and not op.control_inputs and _on_host(op):
            found = _computed(op, values, free)
            if found is not None:
                for y, value in zip(op.outputs, found, strict=True):
                    values[id(y)] = value
                    pairs.append((y, constant_like(program, value, y)))
        harmless = is_pure(op) or op.definition is placeholder_op
        if harmless and not op.control_inputs and all(id(x.op) in free for x in op.inputs):
            free.add(id(op))
    program.replace(pairs)


def _on_host(op: Operation) -> bool:
    return not op.device or is_on_host(op.device)


def _computed(op: Operation, values: dict[int, Any], free: set[int]) -> list[Any] | None:
    """The outputs of an operation, None if they are not known before a step runs."""
    definition = definition_of(op)
    if definition.traits.shape_query and id(op.inputs[0].op) in free:
        stand_in = _of_same_shape(op)
        arrays = None if stand_in is None else [stand_in]
    elif all(id(x) in values for x in op.inputs):
        arrays = [values[id(x)] for x in op.inputs]
    else:
        arrays = None
    if arrays is None:
        return None
    given = sum(a.nbytes for a in arrays)
    made = [y.shape.num_elements() for y in op.outputs]
    if any(n is None for n in made):
        return None  # a size that only the kernel knows may be any
    size = sum(n * y.dtype.numpy.itemsize for n, y in zip(made, op.outputs, strict=True) if n)
    if size > max(_MOST_BYTES, given):
        return None
    try:
        with np.errstate(all="ignore"):
            result = definition.on_host()(*arrays, **op.attrs)
    except Exception:  # it is told when the operation is run, with its name and line
        return None
    results = [result] if len(op.outputs) == 1 else list(result)
    return [as_array(r) for r in results]


def _of_same_shape(op: Operation) -> Any:
    """An array that has the shape of the input, as far as the op asks for it; None if unknown."""
    shape = op.inputs[0].shape
    if shape.rank is None:
        return None
    asked = (
        []
        if op.definition is rank_of
        else [op.attrs["axis"]]
        if op.definition is dim_of
        else list(range(shape.rank))
    )
    if any(shape[axis] is None for axis in asked):
        return None
    return np.broadcast_to(np.zeros((), np.int8), [1 if d is None else d for d in shape])
