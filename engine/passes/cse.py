"""Common subexpressions: what is computed twice is computed once.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 5.1; Click, "Global code motion / global value numbering", 1995.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import GraphTensor, Operation, resource
from ..graph.operation import OpDefinition
from ..ops.core.basic import const_op
from ..ops.core.registry import definition_of
from ..ops.state.variable import read_variable
from .purity import is_pure
from .step_graph import StepGraph
from .updates import UPDATES

_MOST_BYTES = 1 << 20  # larger constants are equal only if they are one array


def merge_common(step: StepGraph) -> None:
    """Merge operations of one op with the same inputs and attributes.

    They must be pure, be bound to the same device, and wait for the same operations. Attributes are
    the same if their bits are. A read of a variable merges with another between the same two
    updates, and with the update that it waits for; what changes state, and what is fed, never
    merges.
    """
    found = _Found()
    variables = _Variables()

    def same(op: Operation) -> Sequence[GraphTensor] | None:
        version: Hashable = None
        if op.definition is read_variable:
            version = variables.version(op.inputs[0])
        elif not is_pure(op):
            variables.change(op)
            if op.definition in UPDATES:
                version = variables.version(op.inputs[0])
                found.first(op, _key(op, read_variable, op.inputs[:1], [op], version))
            return None
        elif not op.outputs:
            return None
        other = found.first(op, _key(op, op.definition, op.inputs, op.control_inputs, version))
        return other.outputs if other is not op and _alike(op, other) else None

    step.rewrite(same)


def _key(
    op: Operation,
    definition: OpDefinition,
    inputs: Sequence[GraphTensor],
    controls: Sequence[Operation],
    version: Hashable,
) -> Hashable:
    """What operations have in common that give the same, but for their attributes."""
    numbers = [id(x) for x in inputs]
    if len(numbers) == 2 and definition_of(op).traits.commutative:
        numbers.sort()
    waits = frozenset(map(id, controls)) if controls else None
    shape = None if numbers else op.outputs[0].shape  # constants differ in that first
    return definition, *numbers, shape, version, op.device, waits, op.colocation


class _Found:
    """The first operations of their kind: `_first[key]` is one, or several by their attributes."""

    def __init__(self) -> None:
        self._first: dict[Hashable, Operation | dict[Hashable, Operation]] = {}

    def first(self, op: Operation, key: Hashable) -> Operation:
        """The first one of this key, and with the same attributes; itself if there was none."""
        known = self._first.setdefault(key, op)
        if known is op or (not op.attrs and isinstance(known, Operation)):
            return known  # of one op, all have attributes or none
        try:
            if isinstance(known, Operation):
                known = self._first[key] = {_attributes(known): known}
            return known.setdefault(_attributes(op), op)
        except TypeError:  # an attribute that cannot be compared
            return op


class _Variables:
    """Which operations may have changed a variable so far.

    `_changes[tensor id]` counts them for a handle, `_others` those that may have changed any.
    """

    def __init__(self) -> None:
        self._changes: dict[int, int] = {}
        self._others = 0

    def version(self, handle: GraphTensor) -> Hashable:
        """What differs for two reads of a variable that an operation between may have changed."""
        return self._changes.get(id(handle), 0), self._others

    def change(self, op: Operation) -> None:
        """An operation that is not pure comes."""
        definition = definition_of(op)
        handles = [x for x in op.inputs if x.dtype == resource]
        if any(y.dtype == resource for y in op.outputs):
            self._others += bool(handles)  # nobody knows which handle is which
        elif definition.stateful:
            self._others += 1
        elif not definition.read_only:
            for x in handles:
                self._changes[id(x)] = self._changes.get(id(x), 0) + 1


def _alike(op: Operation, other: Operation) -> bool:
    """Whether as much is known of the outputs of both."""
    pairs = zip(op.outputs, other.outputs, strict=True)
    return all(a.spec is b.spec or a.spec == b.spec for a, b in pairs)


def _attributes(op: Operation) -> Hashable:
    """As `_frozen`, of the attributes of an operation; most often it is a constant."""
    if (
        op.definition is const_op
        and not (value := op.attrs["value"]).ndim
        and value.dtype != object
    ):
        return value.dtype, value.tobytes()
    return _frozen(op.attrs)


def _frozen(value: Any) -> Hashable:
    """A key that is equal for attributes of the same bits; TypeError when there is none."""
    kind = type(value)
    if kind is int or kind is str or kind is bool or value is None:
        return kind, value
    if kind is float:
        return "float", value.hex()  # -0.0 is not 0.0, and a NaN is itself
    if kind is dict:
        return "mapping", tuple([(k, _frozen(v)) for k, v in value.items()])
    if kind in (list, tuple):
        return kind, tuple(map(_frozen, value))
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return "strings", value.shape, tuple(value.reshape(-1).tolist())
        if value.nbytes > _MOST_BYTES:
            return "array", id(value)
        return "array", value.dtype, value.shape, value.strides, value.tobytes()
    if isinstance(value, float):
        return kind, value.hex()
    if isinstance(value, Mapping):
        return "mapping", tuple((k, _frozen(v)) for k, v in value.items())
    hash(value)
    return kind, value
