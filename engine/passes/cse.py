"""Common subexpressions: what is computed twice is computed once.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 5.1; Click, "Global code motion / global value numbering", 1995.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ..graph import GraphTensor, Operation
from ..ops.core.registry import definition_of
from .program import Program
from .purity import is_pure

_MOST_BYTES = 1 << 20  # larger constants are equal only if they are one array


def merge_common(program: Program) -> None:
    """Merge operations of one op with the same inputs and attributes.

    They must be pure (what reads or changes state, and what is fed, never merges), be bound to the
    same device, and wait for the same operations. Attributes are the same if their bits are.
    """
    first: dict[Hashable, Operation] = {}
    instead: dict[int, GraphTensor] = {}
    merged: dict[int, Operation] = {}
    pairs: list[tuple[GraphTensor, GraphTensor]] = []
    for op in program.operations:
        if not is_pure(op) or not op.outputs:
            continue
        inputs = [id(instead.get(id(x), x)) for x in op.inputs]
        if definition_of(op).traits.commutative:
            inputs.sort()
        controls = frozenset(id(merged.get(id(c), c)) for c in op.control_inputs)
        try:
            key = (
                id(op.definition),
                *inputs,
                _frozen(op.attrs),
                op.device,
                controls,
                op.colocation,
            )
            other = first.setdefault(key, op)
        except TypeError:  # an attribute that cannot be compared
            continue
        if other is not op and _alike(op, other):
            merged[id(op)] = other
            for y, same in zip(op.outputs, other.outputs, strict=True):
                instead[id(y)] = same
                pairs.append((y, same))
    program.replace(pairs)


def _alike(op: Operation, other: Operation) -> bool:
    """Whether as much is known of the outputs of both."""
    return all(a.spec == b.spec for a, b in zip(op.outputs, other.outputs, strict=True))


def _frozen(value: Any) -> Hashable:
    """A key that is equal for attributes of the same bits; TypeError when there is none."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return "strings", value.shape, tuple(value.reshape(-1).tolist())
        if value.nbytes > _MOST_BYTES:
            return "array", id(value)
        return (
            "array",
            value.dtype.str,
            value.dtype.name,
            value.shape,
            value.strides,
            value.tobytes(),
        )
    if isinstance(value, float):
        return "float", value.hex()  # -0.0 is not 0.0, and a NaN is itself
    if type(value) in (list, tuple):
        return type(value), tuple(map(_frozen, value))
    if isinstance(value, Mapping):
        return "mapping", tuple((k, _frozen(v)) for k, v in value.items())
    hash(value)
    return type(value), value
