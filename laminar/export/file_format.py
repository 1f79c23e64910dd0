"""What an exported file holds: names of its parts, structures of tensors, operations of graphs.

A nested structure of tensors is JSON: {"tensor": n}, {"list": []}, {"tuple": []}, {"dict": {}};
among arguments {"value": x} is a number or a text of Python's.
`n` is the place of the tensor among all of the structure; None is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from laminar.engine import ops
from laminar.engine.errors import DataLossError, InvalidArgumentError, LaminarError
from laminar.engine.graph.graphdef import GraphDef
from laminar.engine.ops.core.basic import placeholder_op
from laminar.engine.ops.core.op_def import OpDef
from laminar.engine.ops.core.registry import find
from laminar.engine.ops.state.variable import assign, assign_add, assign_sub, read_variable

CLASS_NAME = "ExportedModel"
FORMAT = 1
VARIABLES = "variables"
# Objects, of which number 0 is the whole: each is a variable, or has parts and functions by name.
OBJECTS = "objects"
VARIABLE, PARTS, FUNCTIONS = "variable", "parts", "functions"


def describe(structure: Any, places: Iterator[int] | None = None, *, values: bool = False) -> Any:
    """What JSON can hold of a structure.

    Args:
        structure: of tensors.
        places: numbers for them.
        values: whether numbers and texts of Python's may be among them.

    Raises:
        InvalidArgumentError: something is in it that is no list, tuple, dict, tensor or None.
    """
    places = count() if places is None else places
    if structure is None:
        return None
    if isinstance(structure, dict):
        if not all(isinstance(key, str) for key in structure):
            raise InvalidArgumentError("export: the keys of dictionaries must be strings")
        return {
            "dict": {
                key: describe(structure[key], places, values=values) for key in sorted(structure)
            }
        }
    if isinstance(structure, list | tuple):
        kind = "list" if isinstance(structure, list) else "tuple"
        return {kind: [describe(item, places, values=values) for item in structure]}
    if values and isinstance(structure, bool | int | float | str):
        return {"value": structure}
    if not hasattr(structure, "shape"):
        raise InvalidArgumentError(
            f"export: an endpoint takes and gives tensors, in lists, tuples and dicts; "
            f"got a {type(structure).__name__}"
        )
    return {"tensor": next(places)}


def packed(description: Any, tensors: Sequence[Any], name: str) -> Any:
    """The structure that was described, with `tensors` in their places.

    Raises:
        DataLossError: that is no description.
    """
    match description:
        case None:
            return None
        case {"tensor": int(place)} if 0 <= place < len(tensors):
            return tensors[place]
        case {"value": bool() | int() | float() | str() as value}:
            return value
        case {"list": list(items)}:
            return [packed(item, tensors, name) for item in items]
        case {"tuple": list(items)}:
            return tuple(packed(item, tensors, name) for item in items)
        case {"dict": dict(items)}:
            return {key: packed(item, tensors, name) for key, item in items.items()}
    raise DataLossError(f"{name}: {str(description)[:80]} describes no structure of tensors")


def taken(description: Any, value: Any, found: list[Any], complain: Callable[[str], None]) -> None:
    """Append the tensors of `value`, whose structure must be the described one, to `found`."""
    match description:
        case {"tensor": _}:
            if isinstance(value, dict | tuple) or value is None:
                complain(f"a tensor, got {type(value).__name__}")
            found.append(value)
        case {"value": wanted}:
            if not same_value(wanted, value):
                complain(f"{wanted!r}, got {value!r}")
        case {"list": items} | {"tuple": items}:
            if not isinstance(value, list | tuple) or len(value) != len(items):
                size = f" of {len(value)}" if isinstance(value, list | tuple) else ""
                complain(f"a sequence of {len(items)}, got {type(value).__name__}{size}")
            for item, part in zip(items, value, strict=True):
                taken(item, part, found, complain)
        case {"dict": items}:
            if not isinstance(value, dict) or set(value) != set(items):
                got = sorted(value) if isinstance(value, dict) else type(value).__name__
                complain(f"a dict with {', '.join(items)}, got {got}")
            for key, item in items.items():
                taken(item, value[key], found, complain)
        case _:
            if value is not None:
                complain(f"None, got {type(value).__name__}")


def same_value(a: Any, b: Any) -> bool:
    """Whether two values of Python's (or NumPy's) are one: True is not 1."""
    a, b = (x.item() if isinstance(x, np.generic) else x for x in (a, b))
    return type(a) is type(b) and (a is b or bool(a == b))


def check_operations(graph_def: GraphDef, kind: type[LaminarError], who: str) -> None:
    """Refuse a graph that reads files, waits on queues, or calls Python.

    Raises:
        kind: it does, or holds an operation that laminar does not have.
    """
    message = graph_def.message
    functions = {function.name for function in message.function}
    for nodes in (message.node, *(function.node for function in message.function)):
        for node in nodes:
            if node.op in functions:
                continue
            op = find(node.op)
            if op is None:
                raise kind(f"{who}: there is no operation {node.op!r} (node {node.name!r})")
            if not (_is_pure(op) or _is_of_own_variables(op)):
                raise kind(
                    f"{who}: {node.op} (node {node.name!r}) is not of its inputs alone; "
                    f"an exported graph may not hold it"
                )


def _is_pure(op: OpDef) -> bool:
    if op.stateful or op.context_kernel or op.async_kernel:
        return False
    return "function" not in op.required  # of Python, which may do anything


def _is_of_own_variables(op: OpDef) -> bool:
    """Whether it has effects, on variables of the file and inside of its graphs alone."""
    if op in (placeholder_op, read_variable, assign, assign_add, assign_sub):
        return True
    flow = ops.structured
    others = (ops.variable_scatter.variable_scatter, ops.checks.assert_op)
    return op in (*others, *flow.CASE, *flow.WHILE, *flow.SCAN)
