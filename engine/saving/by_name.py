"""Checkpoints of objects restored by the names of variables, as a Saver knows them.

A `Checkpoint` keeps values under the paths of attributes that lead to them, and with each the name
that its variable had; so what it wrote can be given to the variables of a graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..checkpoint import CheckpointReader, parse_slice
from ..errors import InvalidArgumentError
from ..graph import GraphTensor, Operation
from ..ops.io.checkpoints import check_fit, restore_v2
from .object_graph import KEY, VALUE, read_graph


def keys_of(reader: CheckpointReader, names: Iterable[str]) -> dict[str, str]:
    """Under which keys a checkpoint has the values of these names.

    Names that it has, or knows nothing of, stand for themselves.

    Raises:
        InvalidArgumentError: two of its variables have one of the names.
        DataLossError: it is damaged.
    """
    found = {name: name for name in names}
    missing = {name for name in found if name not in reader}
    if missing and KEY in reader:
        taken: set[str] = set()
        for node in read_graph(reader.read(KEY).item()):
            name = node.paths.get(VALUE, "")
            if name not in missing:
                continue
            if name in taken:
                raise InvalidArgumentError(
                    f"Saver.restore: {reader.prefix} has two variables that are called {name!r}",
                    remedy="restore it with Checkpoint, or pass Saver a dictionary with the keys "
                    "that list_variables(prefix) tells",
                )
            taken.add(name)
            found[name] = node.values[VALUE]
    return found


def values_to_feed(prefix: str, restore: Operation) -> Mapping[GraphTensor, Any]:
    """What is fed for the tensors that `restore` reads, where they have other keys in a checkpoint.

    Empty where the operations find all by themselves.

    Raises:
        NotFoundError: the checkpoint does not have a variable.
        ShapeError, DTypeError: a value does not fit.
    """
    reads = [op for op in _before(restore) if op.definition is restore_v2]
    names = {op: _texts(op, 1) for op in reads}
    with CheckpointReader(prefix) as reader:
        keys = keys_of(reader, (name for found in names.values() for name in found))
        if all(name == key for name, key in keys.items()):
            return {}
        values: dict[GraphTensor, Any] = {}
        for op, found in names.items():
            shapes = op.attrs["shapes"] or (None,) * len(found)
            rows = zip(op.outputs, found, _texts(op, 2), op.attrs["dtypes"], shapes, strict=True)
            for tensor, name, text, dtype, shape in rows:
                part = parse_slice(text)
                whole = part and part[0]
                check_fit(reader, keys[name], dtype, whole, shape if part is None else None)
                values[tensor] = reader.read(keys[name], part and part[1])
    return values


def _before(restore: Operation) -> list[Operation]:
    """All operations that run when `restore` does."""
    found: dict[int, Operation] = {}
    waiting = [restore]
    while waiting:
        op = waiting.pop()
        if op.id not in found:
            found[op.id] = op
            waiting += [*op.control_inputs, *(x.op for x in op.inputs)]
    return list(found.values())


def _texts(op: Operation, index: int) -> list[str]:
    """The texts that an input of an operation holds, which are constants."""
    value = op.inputs[index].op.attrs.get("value")
    items = [] if value is None else np.asarray(value, object).ravel().tolist()
    return [item.decode() for item in items]
