"""Constant folding: what is computed of constants alone becomes a constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..devices import is_on_host
from ..graph import INEXACT, GraphTensor, Operation
from ..ops.array.join import concat_op, stack_op
from ..ops.array.rearrange import tile_op
from ..ops.array.shape import dim_of, rank_of
from ..ops.core.basic import const_op, placeholder_op
from ..ops.core.dispatch import as_array
from ..ops.core.registry import definition_of
from ..ops.core.traits import Work
from .purity import is_pure
from .step_graph import StepGraph

# What is larger than this, and than what it is computed of, is cheaper to make than to keep.
_MOST_BYTES = 1 << 20
# Their results are elements of what they are given, though the op has work to do.
_MOVES = (concat_op, stack_op, tile_op)


def fold_constants(step: StepGraph) -> None:
    """Compute at once what depends on nothing that is known only when a step runs.

    The same kernels do it that a step on the CPU runs, so the bits are the same; where a step runs
    native code, only what that computes to the same bits. What is on another device, waits for
    something, or fails, stays as it is: it fails when it is run.
    """
    free = set[int]()  # operations that run, and may as well not
    values: dict[int, Any] = {}  # by the id of a tensor

    def folded(op: Operation) -> Sequence[GraphTensor] | None:
        if op.control_inputs or not op.outputs:
            return None
        if op.definition is const_op:
            free.add(id(op))
            values[id(op.outputs[0])] = op.attrs["value"]
            return None
        if op.definition is placeholder_op:
            free.add(id(op))
            return None
        is_free = free.issuperset([id(x.op) for x in op.inputs]) and is_pure(op)
        if not is_free:
            return None
        free.add(id(op))
        if not _on_host(op) or (step.compiled and not _is_exact(op)):
            return None
        found = _computed(op, values)
        if found is None:
            return None
        made = [step.constant(v, y) for v, y in zip(found, op.outputs, strict=True)]
        free.update(id(y.op) for y in made)
        values.update((id(y), v) for y, v in zip(made, found, strict=True))
        return made

    step.rewrite(folded)


def _is_exact(op: Operation) -> bool:
    """Whether all kernels and compilers give an operation the same bits: it is of whole numbers,
    or moves elements.
    """
    definition = definition_of(op)
    if definition.traits.work is not Work.COMPUTE or definition in _MOVES:
        return True
    return not any(x.dtype in INEXACT for x in (*op.inputs, *op.outputs))


def _on_host(op: Operation) -> bool:
    return not op.device or is_on_host(op.device)


def _computed(op: Operation, values: dict[int, Any]) -> list[Any] | None:
    """The outputs of an operation of free ones, None if they are not known before a step runs."""
    definition = definition_of(op)
    if definition.traits.shape_query:
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
    except Exception:  # it is raised when the operation is run, with its name and line
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
