"""Code for the loop nests of a body: one native function that runs all of them.

The function takes two tables: the Python objects of the arrays (inputs, then outputs, then
temporaries), whose data it finds itself, and the run-time sizes: for each nest its loop sizes, then
the strides of each value read along all loops but the innermost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph import DType, int64
from ..ops.cluster import Body, Step
from .emit import POINTER, Function, Module, NotLoweredError, Value
from .nests import Loops, Nest
from .scalars import VectorScalars

SYMBOL = "run"

# Where CPython keeps the data pointer of an ndarray: after its reference count and type.
DATA_OFFSET = 16

_AS_IT_IS = ("Identity", "StopGradient", "BroadcastTo")


def generate(
    body: Body,
    nests: Sequence[Nest],
    loops: Sequence[Loops],
    slots: Mapping[int, int],
    vector_bytes: int,
) -> str:
    """The IR of a body.

    Args:
        body: the steps.
        nests: which steps run together.
        loops: the loops of each nest; only their pattern matters.
        slots: value -> place of its array in the table of objects.
        vector_bytes: size of the host's vector registers.

    Raises:
        NotLoweredError: a step has no native form.
    """
    module = Module()
    fn = Function(module, SYMBOL, [POINTER, POINTER])
    first = 0
    for nest, nest_loops in zip(nests, loops, strict=True):
        first = _Writer(fn, body, nest, nest_loops, slots, vector_bytes).write(first)
    return module.text()


class _Writer:
    """Writes one nest."""

    def __init__(
        self,
        fn: Function,
        body: Body,
        nest: Nest,
        loops: Loops,
        slots: Mapping[int, int],
        vector_bytes: int,
    ) -> None:
        self.fn = fn
        self.body = body
        self.nest = nest
        self.loops = loops
        self.slots = slots
        narrowest = min(self._size(v) for v in (*nest.reads, *nest.writes))
        self.lanes = vector_bytes // max(narrowest, 4)

    def _dtype(self, value: int) -> DType:
        return self.body.specs[value].dtype

    def _size(self, value: int) -> int:
        return self._dtype(value).size

    def write(self, first: int) -> int:
        """Write the nest, whose sizes begin at place `first`; gives the place after them."""
        fn = self.fn
        self.data = {v: self._pointer(v) for v in (*self.nest.reads, *self.nest.writes)}
        depth = len(self.loops.sizes)
        sizes = [self._number(first + a) for a in range(depth)]
        place = first + depth
        strides: dict[int, list[Value]] = {}
        for v in self.nest.reads:
            strides[v] = [self._number(place + a) for a in range(max(depth - 1, 0))]
            place += max(depth - 1, 0)
        if not depth:
            self._single()
            return place
        zero = fn.number(0)
        self._level(0, sizes, strides, dict.fromkeys(self.nest.reads, zero), zero)
        return place

    def _pointer(self, value: int) -> str:
        fn = self.fn
        place = fn.number(self.slots[value])
        held = fn.load_pointer(fn.offset(fn.arguments[0], place, 8))
        return fn.load_pointer(fn.offset(held, fn.number(DATA_OFFSET), 1))

    def _number(self, place: int) -> Value:
        fn = self.fn
        return fn.load(fn.offset(fn.arguments[1], fn.number(place), 8), int64, 0)

    def _level(
        self,
        axis: int,
        sizes: Sequence[Value],
        strides: Mapping[int, Sequence[Value]],
        offsets: Mapping[int, Value],
        written: Value,
    ) -> None:
        """The loops from `axis` inwards; `offsets` and `written` are in elements."""
        fn = self.fn
        if axis == len(sizes) - 1:
            self._innermost(sizes[axis], offsets, written)
            return

        def body(i: Value) -> None:
            inner = {
                v: offset + i * strides[v][axis] if self._steps(v, axis) else offset
                for v, offset in offsets.items()
            }
            outer = written * sizes[axis] + i if axis else i
            self._level(axis + 1, sizes, strides, inner, outer)

        fn.loop(fn.number(0), sizes[axis], 1, body)

    def _steps(self, value: int, axis: int) -> bool:
        """Whether a value read moves along an axis."""
        return self.loops.strides[self.nest.reads.index(value)][axis] != 0

    def _innermost(self, size: Value, offsets: Mapping[int, Value], row: Value) -> None:
        fn, lanes = self.fn, self.lanes
        last = len(self.loops.sizes) - 1
        starts = {v: fn.offset(self.data[v], o, self._size(v)) for v, o in offsets.items()}
        begin = row * size if last else fn.number(0)
        for v in self.nest.writes:
            starts[v] = fn.offset(self.data[v], begin, self._size(v))
        self.data_row = starts
        self.repeated = {
            v: fn.splat(fn.load(starts[v], self._dtype(v), 0), lanes)
            for v in self.nest.reads
            if not self._steps(v, last)
        }
        whole = fn.binary("and", size, -lanes)
        fn.loop(fn.number(0), whole, lanes, lambda i: self._vector(i, None))
        rest = size - whole

        def tail() -> None:
            self._vector(whole, fn.first_lanes(rest, lanes))

        fn.when(rest > 0, tail)

    def _vector(self, i: Value, mask: Value | None) -> None:
        fn = self.fn
        env: dict[int, Value] = dict(self.repeated)
        for v in self.nest.reads:
            if v not in env:
                address = fn.offset(self.data_row[v], i, self._size(v))
                env[v] = fn.load(address, self._dtype(v), self.lanes, mask)
        self._compute(env, self.lanes)
        for v in self.nest.writes:
            address = fn.offset(self.data_row[v], i, self._size(v))
            fn.store(fn.splat(env[v], self.lanes), address, mask)

    def _single(self) -> None:
        """A nest of one element."""
        fn = self.fn
        env = {v: fn.load(self.data[v], self._dtype(v), 0) for v in self.nest.reads}
        self._compute(env, 0)
        for v in self.nest.writes:
            fn.store(env[v], self.data[v])

    def _compute(self, env: dict[int, Value], lanes: int) -> None:
        for step in self.body.steps:
            if step.definition.type == "Const":
                env[step.output] = evaluate(self.fn, step, [], self._dtype(step.output), lanes)
        for place in self.nest.steps:
            step = self.body.steps[place]
            env[step.output] = evaluate(
                self.fn, step, [env[v] for v in step.inputs], self._dtype(step.output), lanes
            )


def evaluate(fn: Function, step: Step, values: Sequence[Value], dtype: DType, lanes: int) -> Value:
    """The result of one step in registers.

    Raises:
        NotLoweredError: the step has no native form.
    """
    kind = step.definition.type
    if kind == "Const":
        like = Value(fn, "poison", dtype, lanes)
        return fn.constant(step.attrs["value"].reshape(()).item(), like)
    if kind in _AS_IT_IS:
        return values[0]
    if kind == "Cast":
        return fn.convert(values[0], dtype)
    if kind in ("ZerosLike", "OnesLike"):
        return fn.constant(kind == "OnesLike", values[0])
    scalar = step.definition.scalar
    if scalar is None:
        raise NotLoweredError(f"{kind} has no scalar expression")
    found = scalar(VectorScalars(fn), *values, **step.attrs)
    if not isinstance(found, Value):
        raise NotLoweredError(f"{kind} gives the constant {found!r}")
    if found.dtype != dtype:
        raise NotLoweredError(f"{kind} gives {found.dtype}, not {dtype}")
    return found
