"""What is known of scalars and vectors of whole numbers while a graph is built.

Shapes, axes and the like may be given as tensors: where they are constants, or made of constants
and of sizes that are known, what is computed of them has the sizes that it would have if they were
given as numbers. A graph notes the tensors that it has taken for numbers (`Graph.numbers`): a step
that feeds another value for one is refused, for the value would not reach what was built with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, UnknownValueError
from ...graph import BOOLEAN, INTEGER, Dim, EagerTensor, GraphTensor, Tensor, resource
from .basic import const_op
from .kernels import HOST
from .op_def import OpDef

# A shape has few entries; a longer vector is data.
_MOST = 256
# How far back a number is followed.
_DEPTH = 32


def whole(who: str, what: str, value: Any) -> int:
    """`value` as an int: a whole number, which a float may be, too; nothing is cut off.

    Raises:
        DTypeError: it is no whole number.
        UnknownValueError: it is a tensor of a graph that is built.
    """
    try:
        number = int(value)
    except UnknownValueError:
        raise
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or isinstance(value, str) or number != value:
        raise DTypeError(f"{who}: {what} must be a whole number, got {value!r}")
    return number


def known_entries(x: Any, depth: int = _DEPTH) -> list[Dim] | None:
    """The entries of a scalar (one) or vector of whole numbers, None for each unknown one.

    None where nothing is known, not even how many there are.
    """
    if isinstance(x, EagerTensor):
        return _few(x.value) if x.dtype in INTEGER | BOOLEAN else None
    if not isinstance(x, GraphTensor) or x.dtype not in INTEGER | BOOLEAN or not depth:
        return None
    if x.shape.rank not in (0, 1):
        return None
    op = x.op
    definition: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
    if definition is const_op:
        return _few(op.attrs["value"])
    if not op.inputs:
        outer = next((out for out, own in x.graph.captures.values() if own is x), None)
        return None if outer is None else known_entries(outer, depth - 1)
    traits = definition.traits
    if traits.entries is not None:
        if traits.shape_query:
            shape = op.inputs[0].shape
            given: Any = None if shape.rank is None else [[*shape]]
        else:
            given = [known_entries(i, depth - 1) for i in op.inputs]
        found: Any = None if given is None else traits.entries(op.attrs, given)
        several = found is not None and len(op.outputs) > 1
        entries: list[Dim] | None = found[x.value_index] if several else found
        return entries
    return _computed(x, definition, depth)


def _few(array: Any) -> list[Dim] | None:
    array = np.asarray(array)
    if array.ndim > 1 or array.size > _MOST:
        return None
    entries: list[Dim] = array.reshape(-1).tolist()
    return entries


def _computed(x: GraphTensor, definition: OpDef, depth: int) -> list[Dim] | None:
    """What the kernel of a pure op makes of numbers that are all known."""
    op = x.op
    kernel = definition.reference_kernel
    if kernel is None or definition.stateful or definition.takes_dead or len(op.outputs) > 1:
        return None
    arrays = []
    for i in op.inputs:
        known = None if i.dtype == resource else known_entries(i, depth - 1)
        if known is None or None in known:
            return None
        array = np.asarray(known, i.dtype.numpy)
        arrays.append(array.reshape(()) if i.shape.rank == 0 else array)
    try:
        return _few(kernel(HOST, *arrays, **op.attrs))
    except Exception:  # it is raised when the operation is run, with its name and line
        return None


def taken_entries(x: Any) -> list[Dim] | None:
    """As `known_entries`, of what is built with the numbers instead of the tensor."""
    entries = known_entries(x)
    if isinstance(x, GraphTensor) and entries is not None and entries != [None] * len(entries):
        _note(x, _DEPTH)
    return entries


def _note(x: Tensor, depth: int) -> None:
    """Note that a tensor, and with it what it is computed of, is not looked at any more."""
    if not isinstance(x, GraphTensor) or not depth or id(x) in x.graph.numbers:
        return
    op = x.op
    definition: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
    if not op.inputs and definition is not const_op:
        for outer, own in x.graph.captures.values():
            if own is x:
                _note(outer, depth - 1)
        return
    x.graph.numbers[id(x)] = x
    if not definition.traits.shape_query:
        for source in op.inputs:
            _note(source, depth - 1)


def check_number(tensor: GraphTensor, array: Any) -> None:
    """Raise InvalidArgumentError for a feed that the graph was not built with."""
    if id(tensor) not in tensor.graph.numbers:
        return
    is_const = tensor.op.definition is const_op
    known = tensor.op.attrs["value"].reshape(-1) if is_const else known_entries(tensor) or []
    differ = (a is not None and a != b for a, b in zip(known, array.reshape(-1), strict=True))
    if any(differ):
        raise InvalidArgumentError(
            f"{tensor.name} was known to be {np.asarray(known).tolist()} when the graph was built, "
            f"and its operations have these sizes: {array.tolist()} cannot be fed for it",
            remedy="build it with a placeholder, or placeholder_with_default, in this place",
            location=tensor.op.location,
        )


def known_value(x: Any) -> Any:
    """`x` as Python numbers where it is a tensor whose value is known, else as it is.

    Items of lists and tuples likewise; what else there is in them stays.
    """
    if isinstance(x, list | tuple):
        return type(x)(map(known_value, x)) if type(x) in (list, tuple) else x
    if not isinstance(x, Tensor):
        return x
    if isinstance(x, GraphTensor) and x.op.definition is const_op and x.dtype in INTEGER | BOOLEAN:
        value = x.op.attrs["value"]  # of any rank
        if value.size > _MOST:
            return x
        _note(x, _DEPTH)
        return value.tolist()
    entries = known_entries(x)
    if entries is None or None in entries:
        return x
    _note(x, _DEPTH)
    return entries[0] if x.shape.rank == 0 else entries
