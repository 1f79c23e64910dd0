"""Graphs as text, an operation a line.

    %3: f32[?, 32] = Relu(%2)  # dense/Relu, model.py:12

The name of a value, its type and shape, the op, what it takes, its attributes; behind the sign, the
operation's name, the layer, and the user's line. Values are numbered in a list of operations, but
what comes from outside, which has a name: `%dense/kernel`; alone, an operation calls them by name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .dtypes import resource
from .spec import TensorSpec

if TYPE_CHECKING:  # operations print themselves
    from .operation import GraphBody, Operation
    from .tensor import GraphTensor

_SHORT = {
    **{f"float{n}": f"f{n}" for n in (16, 32, 64)},
    **{f"{sign}int{n}": f"{sign or 'i'}{n}" for n in (8, 16, 32, 64) for sign in ("", "u")},
    "bfloat16": "bf16",
    "complex64": "c64",
    "complex128": "c128",
    "string": "str",
}
_SEEN = frozenset({"dtype", "shape"})  # the outputs show these
_LONGEST = 40
_MOST_NUMBERS = 6


def spec_text(spec: TensorSpec) -> str:
    """A type and shape: "f32[?, 32]", "handle" for a resource."""
    if spec.dtype == resource:
        return "handle"
    return f"{_SHORT.get(spec.dtype, spec.dtype)}{spec.shape}"


def operation_text(op: Operation) -> str:
    """A line for an operation alone: values have the names of what makes them."""
    return _line(op, _name, [])


def _name(op: Operation) -> str:
    return f"%{op.name}"


def graph_text(
    operations: Sequence[Operation],
    fetches: Sequence[GraphTensor] = (),
    feeds: Sequence[GraphTensor] = (),
    targets: Sequence[Operation] = (),
) -> str:
    """The lines of operations, of what is inside of them, and of what comes in and goes out."""
    return "".join(f"{line}\n" for line in _lines(operations, fetches, feeds, targets, _Numbers()))


class _Numbers:
    """Gives operations numbers in the order in which they are named first."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._given = 0

    def name(self, op: Operation, *, given: bool = False) -> str:
        """What a value of an operation is called; by its own name where it is `given`."""
        found = self._names.get(id(op))
        if found is None:
            found = f"%{op.name}" if given else f"%{self._given}"
            self._given += not given
            self._names[id(op)] = found
        return found


def _lines(
    operations: Sequence[Operation],
    fetches: Sequence[GraphTensor | None],
    feeds: Sequence[GraphTensor],
    targets: Sequence[Operation],
    numbers: _Numbers,
) -> list[str]:
    lines = []
    for x in feeds:
        numbers.name(x.op, given=True)
        lines.append(f"given {_value(x, numbers.name)}: {spec_text(x.spec)}")
    taken = {id(x.op) for x in feeds}
    for op in operations:
        if id(op) in taken and not op.inputs:
            continue
        lines.append(_line(op, numbers.name, [op.name]))
        for key, body in _bodies(op):
            inner = _lines(_needed(body), body.outputs, body.inputs, body.effects, numbers)
            lines += [f"    {key}:", *(f"        {line}" for line in inner)]
    if fetches:
        values = ("none" if y is None else _value(y, numbers.name) for y in fetches)
        lines.append(f"gives {', '.join(values)}")
    if targets:
        lines.append(f"runs {', '.join(map(numbers.name, targets))}")
    return lines


def _bodies(op: Operation) -> list[tuple[str, GraphBody]]:
    """The graphs among the attributes of an operation."""
    found = []
    for key, value in op.attrs.items():
        if _is_body(value):
            found.append((key, value))
        elif isinstance(value, tuple):
            found += [(f"{key}[{i}]", body) for i, body in enumerate(value) if _is_body(body)]
    return found


def _is_body(value: Any) -> bool:
    """Whether an attribute is a graph (see bodies.py)."""
    return hasattr(value, "outputs") and hasattr(value, "effects")


def _needed(body: GraphBody) -> list[Operation]:
    """What a body runs, in the order of creation."""
    given = {id(x.op) for x in body.inputs}
    needed: dict[int, Operation] = {}
    stack = [*(y.op for y in body.outputs if y is not None), *body.effects]
    while stack:
        op = stack.pop()
        if op.id not in needed and id(op) not in given:
            needed[op.id] = op
            stack += [*(x.op for x in op.inputs), *op.control_inputs]
    return [needed[i] for i in sorted(needed)]


def _value(x: GraphTensor, name: Callable[[Operation], str]) -> str:
    several = len(x.op.outputs) > 1
    return f"{name(x.op)}:{x.value_index}" if several else name(x.op)


def _line(op: Operation, name: Callable[[Operation], str], notes: list[str]) -> str:
    outputs = [f"{_value(y, name)}: {spec_text(y.spec)}" for y in op.outputs] or [name(op)]
    inputs = [_value(x, name) for x in op.inputs]
    arguments = ", ".join([*inputs, *_attributes(op.attrs)])
    line = f"{', '.join(outputs)} = {op.type}({arguments})"
    if op.control_inputs:
        line += f" after {', '.join(map(name, op.control_inputs))}"
    if op.device:
        line += f" on {op.device}"
    if op.layer and not op.name.startswith(op.layer):
        notes = [*notes, op.layer]
    if op.location is not None:
        notes = [*notes, f"{os.path.basename(op.location.filename)}:{op.location.line}"]
    return f"{line}  # {', '.join(notes)}" if notes else line


def _attributes(attrs: Mapping[str, Any]) -> list[str]:
    """What attributes tell that outputs do not: those with a value that is neither none nor no."""
    found = []
    for key, value in attrs.items():
        if key in _SEEN or value is None or value is False or _is_body(value):
            continue
        if isinstance(value, tuple) and any(map(_is_body, value)):
            continue
        text = _short(value)
        found.append(text if key == "value" else f"{key}={text}")
    return found


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if value.size > _MOST_NUMBERS:
            return f"<{value.size} values>"
        text = np.array2string(value, separator=", ").replace("\n", "")
    else:
        text = str(value) if isinstance(value, tuple | list | float | int) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
