"""From the operations of a cluster to a loop program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph import DType, int32, int64, resource
from ..ops.cluster import Body, Step
from .builder import Builder
from .emit import NotLoweredError, scalar_type
from .lowerings import LOWERINGS, Lowered
from .program import Operand, Program, Shape, Size, View

# Of sizes, these are sizes again.
_ON_SIZES: dict[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
}
# Through these the numbers for a shape come.
_SIZE_OPS = frozenset({*_ON_SIZES, "Cast", "Identity"})

_READ, _ASSIGN = "ReadVariable", "Assign"
_UPDATES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "AssignAdd": lambda s, old, x: old + x,
    "AssignSub": lambda s, old, x: old - x,
}
STATE = frozenset({_READ, _ASSIGN, *_UPDATES})
# Inputs whose scalars are sizes and places, besides those called "dims".
_PLACES = frozenset(
    {"Range", "Slice", "SliceUpdate", "StridedSlice", "StridedSliceGrad", "ScatterNd"}
)


class Lowering:
    """A body as a program.

    Attributes:
        program: what it computes.
        builder: what has built it.
        variables: for each input that is a handle, the storage of its variable.
        inputs: for each input that is an array, its storage.
    """

    def __init__(self, body: Body, shapes: Sequence[Shape | int], num_sizes: int) -> None:
        """Lower a body.

        Args:
            body: the operations.
            shapes: of each input; for a handle (), for a number that is a size, that number.
            num_sizes: how many stand-ins there are among the shapes.

        Raises:
            NotLoweredError: an operation has no native form for these shapes.
        """
        self.builder = Builder(num_sizes)
        self.program: Program = self.builder.program
        self.variables: dict[int, int] = {}
        self.inputs: dict[int, int] = {}
        self._handles: dict[int, int] = {}  # value number of a handle -> input
        self._current: dict[int, Operand] = {}  # input of a handle -> the variable's value now
        self._values: list[Operand | None] = [None] * len(body.specs)
        self._known: dict[Any, list[Operand]] = {}
        for i, given in enumerate(shapes):
            self._take(body, i, given)
        for step in body.steps:
            self._step(body, step)
        for i, value in self._current.items():
            if i in self._written:
                self.program.updates[self.variables[i]] = self._as_view(value)
        self.program.outputs = [self._as_view(self._output(v)) for v in body.outputs]

    _written: set[int]

    def _take(self, body: Body, i: int, given: Shape | int) -> None:
        spec = body.specs[i]
        if i == 0:
            self._written = set()
        if spec.dtype == resource:
            self._handles[i] = i
        elif isinstance(given, int):
            self._values[i] = Size(given, spec.dtype)
        else:
            scalar_type(spec.dtype)
            view = self.builder.storage(given, spec.dtype, "input")
            self.inputs[i] = view.storage
            self._values[i] = view

    def _output(self, value: int) -> Operand:
        found = self._values[value]
        assert found is not None
        return found

    def _as_view(self, x: Operand) -> View:
        return x if isinstance(x, View) else self.builder.copy(x)

    def _step(self, body: Body, step: Step) -> None:
        b, kind = self.builder, step.definition.type
        b.label = step.label
        if kind in STATE:
            self._state(body, step)
            return
        if kind == "Identity" and step.inputs[0] in self._handles:
            self._handles[step.outputs[0]] = self._handles[step.inputs[0]]
            return
        operands = [self._output(v) for v in step.inputs]
        key = _key(step, operands)
        results = self._known.get(key) if key is not None else None
        if results is None:
            results = self._lower(body, step, operands)
            if key is not None:
                self._known[key] = results
        for v, result in zip(step.outputs, results, strict=True):
            self._values[v] = result

    def _lower(self, body: Body, step: Step, operands: list[Operand]) -> list[Operand]:
        b, definition = self.builder, step.definition
        kind = definition.type
        dtypes = tuple(body.specs[v].dtype for v in step.outputs)
        for dtype in dtypes:
            scalar_type(dtype)
        if kind in _ON_SIZES and all(isinstance(x, Size) for x in operands):
            first, second = operands
            assert isinstance(first, Size)
            assert isinstance(second, Size)
            return [Size(_ON_SIZES[kind](first.value, second.value), dtypes[0])]
        lowering = LOWERINGS.get(kind)
        if lowering is not None:
            found = lowering(b, Lowered(kind, step.attrs, dtypes), *operands)
            if isinstance(found, Operand):
                return [found]
            return list(found)
        if definition.scalar is None:
            raise NotLoweredError(f"{kind} has no native form")
        return [b.compute(definition.scalar, *operands, dtype=dtypes[0], **step.attrs)]

    def _state(self, body: Body, step: Step) -> None:
        b, kind = self.builder, step.definition.type
        i = self._handles[step.inputs[0]]
        shape, dtype = tuple(step.attrs["shape"]), DType(step.attrs["dtype"])
        if i not in self.variables:
            scalar_type(dtype)
            view = b.storage(shape, dtype, "variable")
            self.variables[i] = view.storage
            self._current[i] = view
        value = self._current[i]
        if kind != _READ:
            new = self._output(step.inputs[1])
            if b.shape(new) != shape:
                raise NotLoweredError(f"{kind} of {b.shape(new)} to a variable of {shape}")
            if kind in _UPDATES:
                new = b.compute(_UPDATES[kind], value, new, dtype=dtype)
            value = self._current[i] = new
            self._written.add(i)
        self._values[step.outputs[0]] = value


def _key(step: Step, operands: Sequence[Operand]) -> Any:
    """What two steps have in common that compute the same; None if that cannot be told."""
    try:
        key = (
            step.definition.type,
            tuple(operands),
            tuple(sorted(step.attrs.items())),
            tuple(map(type, step.attrs.values())),
        )
        hash(key)
    except (TypeError, ValueError):
        return None
    return key


def sizes_among_inputs(body: Body) -> list[int]:
    """The inputs whose values are sizes: they lead to the `*dims` of an operation."""
    made = {step.outputs[0]: step for step in body.steps if len(step.outputs) == 1}
    found: dict[int, None] = {}
    todo: list[int] = []
    for step in body.steps:
        names = step.definition.input_names
        if names and (names[-1] == "dims" or step.definition.type in _PLACES):
            todo.extend(step.inputs[len(names) - 1 :])
    seen = set()
    while todo:
        v = todo.pop()
        if v in seen:
            continue
        seen.add(v)
        if v < body.num_inputs:
            spec = body.specs[v]
            if spec.dtype in (int32, int64) and spec.shape.rank == 0:
                found[v] = None
        elif v in made and made[v].definition.type in _SIZE_OPS:
            todo.extend(made[v].inputs)
    return list(found)
