"""Loops: their bodies become statements that are repeated, on memory that moves on.

What a loop carries is in one place, which the body's new value replaces. If it is also stacked, the
stack is that place: it begins with the first value, and each iteration reads one slice and writes
the next. Slices of sequences and of stacks are windows. What is the same in all iterations is
computed before them.

What it buys: where bodies run as clusters of their own, the step of an LSTM of 128 over 50 words
takes 3.7 times as long on one thread and 5.6 on two, an iteration of a small loop 4.1 us instead of
13 ns (`python -m benchmarks --workload train-lstm while-loop`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...graph import bool_, int32, resource
from ...ops.control import structured
from ...ops.core.cluster import ClusterBody, ClusterOp
from ...ops.core.op_def import OpDef
from ..ir.builder import Builder, as_it_is
from ..ir.not_lowered import NotLoweredError
from ..ir.program import (
    Literal,
    Loop,
    Operand,
    Shape,
    Statement,
    Storage,
    View,
    Window,
    contiguous,
    views_of,
)
from .operations import OperationLowering
from .rules.table import Lowered, known_size, lowers
from .sink_reductions import reductions_to_sink, without

LOOPS = frozenset({*structured.SCAN, *structured.WHILE})
GRAPHS = frozenset({"body", "condition"})  # those of their attributes that are graphs


def traced(graph: structured.Body, outputs: Sequence[int]) -> ClusterBody:
    """The operations of a loop's graph that some of its outputs need."""
    wanted = [y for i in outputs if (y := graph.outputs[i]) is not None]
    number = {id(x): i for i, x in enumerate(graph.inputs)}
    specs = [x.spec for x in graph.inputs]
    steps = []
    for op in graph.operations_for(wanted):
        if all(id(y) in number for y in op.outputs):
            continue  # it stands for an input
        definition: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
        first = len(specs)
        specs.extend(y.spec for y in op.outputs)
        number.update((id(y), first + i) for i, y in enumerate(op.outputs))
        inputs = tuple(number[id(x)] for x in op.inputs)
        steps.append(ClusterOp(definition, inputs, op.attrs, tuple(range(first, len(specs))), op))
    return ClusterBody(steps, specs, len(graph.inputs), [number[id(y)] for y in wanted])


class _Frame:
    """A loop that is being built, and what it has in memory.

    Attributes:
        first: the first storage that belongs to it.
        windows: the storages that move on.
        carried: storage -> the view that it holds after an iteration.
        kept: the storages that others read, or that keep their values between iterations.
        begun: those of them that have a value before the loop.
    """

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.first = len(b.program.storages)
        self.windows: list[int] = []
        self.carried: dict[int, View] = {}
        self.kept: list[int] = []
        self.begun: set[int] = set()

    def keep(self, shape: Shape, like: Operand) -> View:
        """Memory that stays between iterations, of the type of `like`."""
        made = self.b.storage(shape, self.b.dtype(like))
        self.kept.append(made.storage)
        return made

    def begin(self, first: Operand) -> View:
        """Memory for what is carried, with its first value."""
        place = self.keep(self.b.shape(first), first)
        self.fill(place, first)
        return place

    def fill(self, place: View, first: Operand) -> None:
        """Put a first value into memory that stays between iterations."""
        self.begun.add(place.storage)
        self.b.map_into(place, as_it_is, [first])

    def window(self, base: View, begin: int, step: int, shape: Shape, strides: Shape) -> View:
        """A part of `base`, which begins at an element, and moves on in each iteration."""
        pairs = list(zip(shape, strides, strict=True))
        low = sum(s * (n - 1) for n, s in pairs if s < 0)
        extent = 1 + sum(abs(s) * (n - 1) for n, s in pairs)
        storage = Storage(self.b.dtype(base), (extent,), "window")
        storage.window = Window(base.storage, begin + low, step)
        number = self.b.program.add(storage)
        self.windows.append(number)
        return View(number, tuple(shape), tuple(strides), -low)

    def slices(self, x: Operand, reverse: bool) -> View:
        """The slice of a sequence, along the first axis, of each iteration."""
        view = x if isinstance(x, View) else self.b.copy(x)
        (total, *shape), (step, *strides) = view.shape, view.strides
        begin = view.offset + (step * (total - 1) if reverse else 0)
        moved = -step if reverse else step
        return self.window(view, begin, moved, tuple(shape), tuple(strides))

    def place(self, value: Operand, base: View, begin: int, step: int, made: set[int]) -> None:
        """Let what an iteration computes be a window; `made` as in `owned`."""
        view = self.owned(value, made)
        storage = self.b.program.storages[view.storage]
        storage.role, storage.window = "window", Window(base.storage, begin, step)
        self.windows.append(view.storage)

    def owned(self, value: Operand, made: set[int]) -> View:
        """A value as an array that the body makes, or a copy; `made` are those free to take."""
        storages = self.b.program.storages
        if isinstance(value, View) and value.storage in made and value.is_contiguous:
            storage = storages[value.storage]
            if storage.role == "temporary" and storage.num_elements == math.prod(value.shape):
                made.discard(value.storage)
                return value
        found = self.b.copy(value)
        made.discard(found.storage)
        return found

    def finish(
        self,
        count: int | None,
        body: list[Statement],
        test: Sequence[Statement] = (),
        stop: View | None = None,
    ) -> None:
        """Add the loop to the program."""
        program = self.b.program
        written = {n for s in (*test, *body) for n in s.writes} | {*self.windows}
        reads = {v.storage for s in (*test, *body) for v in views_of(s.operands)}
        windows = [w for n in self.windows if (w := program.storages[n].window) is not None]
        reads |= {window.base for window in windows}
        inputs = sorted((reads - written - {*self.kept}) | self.begun)
        self.b.loop(
            Loop(
                count,
                list(test),
                stop,
                body,
                tuple(self.windows),
                self.carried,
                tuple(program.whole(n) for n in inputs),
                tuple(self.kept),
            )
        )


def _split(
    statements: Sequence[Statement], moving: set[int]
) -> tuple[list[Statement], list[Statement], set[int]]:
    """Statements that are the same in all iterations, the others, and what those write.

    Args:
        statements: in order.
        moving: storages that differ from one iteration to the next.
    """
    moving = set(moving)
    while True:
        more = {
            n
            for s in statements
            if moving.intersection(s.writes) or moving & {v.storage for v in views_of(s.operands)}
            for n in s.writes
        }
        if more <= moving:
            break
        moving |= more
    fixed, rest = list[Statement](), list[Statement]()
    for s in statements:
        touched = {*s.writes, *(v.storage for v in views_of(s.operands))}
        (rest if touched & moving else fixed).append(s)
    return fixed, rest, {n for s in rest for n in s.writes}


def _check_graph(kind: str, graph: structured.Body) -> None:
    if graph.effects or any(x.dtype == resource for x in graph.inputs):
        raise NotLoweredError(f"{kind}: its body changes something besides its variables")


def _lowered(b: Builder, body: ClusterBody, inputs: Sequence[Operand | None]) -> OperationLowering:
    """The values of a graph for inputs; None for one that it does not need."""
    steps = OperationLowering(b, body.specs, body.steps, body.outputs)
    steps.values[: len(inputs)] = inputs
    for step in body.steps:
        steps.lower(step)
    return steps


def _check_carry(b: Builder, kind: str, new: Operand, place: View) -> None:
    if b.shape(new) != place.shape or b.dtype(new) != b.dtype(place):
        raise NotLoweredError(f"{kind}: a variable of {place.shape} becomes {b.shape(new)}")


@lowers("Scan", takes_halves=True, places_from_data=True)
def _scan(b: Builder, step: Lowered, length: Operand, *inputs: Operand) -> list[Operand | None]:
    return _Scan(b, step, length, inputs).write()


class _Scan:
    """A Scan as a loop; values are numbered as in `body`, whose inputs are those of the graph.

    Attributes:
        carried: the carries that matter.
        kept: the stacked outputs that somebody takes.
        sums: what is added up after the loop.
        new: for each carry, the number of what it becomes.
        stacks: the number of a value -> its values in all iterations.
        places: carry -> where its value is in an iteration.
        after: carry -> the stack it is in, where that begins, and how far it moves.
    """

    def __init__(
        self, b: Builder, step: Lowered, length: Operand, inputs: Sequence[Operand]
    ) -> None:
        attrs = step.attrs
        graph: structured.Body = attrs["body"]
        _check_graph("Scan", graph)
        carries, slices = attrs["carries"], attrs["slices"]
        live = step.live
        self.b, self.length, self.inputs = b, length, inputs
        self.reverse: bool = attrs["reverse"]
        self.num_outputs = len(live)
        self.kept = [j for j in range(carries, len(live)) if live[j]]
        carried = structured.needed_carries(graph, carries, live, self.kept, set())
        whole = traced(graph, [*carried, *self.kept])
        self.new = dict(zip(carried, whole.outputs, strict=False))
        self.outputs = dict(zip(self.kept, whole.outputs[len(carried) :], strict=True))
        self.total = known_size(length)
        self.slices = range(carries, carries + slices)
        self.sums = [] if self.total is None else reductions_to_sink(whole, self.new, self.slices)
        late = {sum.carry for sum in self.sums}
        self.carried = [i for i in carried if i not in late]
        self.body = without(whole, self.sums)
        if self.total is None and (self.kept or slices):
            raise NotLoweredError("Scan: the number of iterations depends on data")
        if any(b.shape(inputs[i])[0] != self.total for i in self.slices):
            raise NotLoweredError("Scan: sequences of different lengths")
        self.frame = _Frame(b)
        self.stacks: dict[int, Operand] = {i: inputs[i] for i in self.slices}
        self.places: dict[int, View] = {}
        self.after: dict[int, tuple[View, int, int]] = {}

    def write(self) -> list[Operand | None]:
        """Add the loop to the program; gives its results."""
        b, frame = self.b, self.frame
        counter = None
        if self.total is None:
            counter = frame.begin(Literal(0, b.dtype(self.length)))
        last = self._begin_carries()
        with b.inside_loop(frame.first) as body:
            fixed = self._write_body(body)
            if counter is not None:
                frame.carried[counter.storage] = _next(b, counter)
        b.program.statements.extend(fixed)
        if counter is None:
            frame.finish(self.total, body)
        else:
            with b.inside_loop(frame.first) as test:
                stop = b.map(lambda s, i, n: ~(i < n), [counter, self.length], bool_)
            frame.finish(None, body, test, stop)
        found: list[Operand | None] = [None] * self.num_outputs
        for i, x in last.items():
            found[i] = x
        for j in self.kept:
            found[j] = self.stacks[self.outputs[j]]
        for sum in self.sums:
            found[sum.carry] = sum.added(b, self.body, self.inputs, self.stacks)
        return found

    def _begin_carries(self) -> dict[int, View]:
        """Give the carries their first values; gives where the last ones will be."""
        b, frame = self.b, self.frame
        wanted = self._wanted
        last = {}
        for i in self.carried:
            new = self.new[i]
            is_stacked = i in wanted or (new in wanted and new >= self.body.num_inputs)
            if self.total is None or not is_stacked:
                last[i] = self.places[i] = frame.begin(self.inputs[i])
                continue
            shape = b.shape(self.inputs[i])
            size = math.prod(shape)
            stack = frame.keep((self.total + 1, *shape), self.inputs[i])
            end = self.total * size
            first, step = (end, -size) if self.reverse else (0, size)
            cell = View(stack.storage, shape, contiguous(shape), first)
            frame.fill(cell, self.inputs[i])
            last[i] = cell._replace(offset=end - first)
            self.after[i] = stack, first, step
            values = stack._replace(shape=(self.total, *shape))
            before, behind = (size, 0) if self.reverse else (0, size)
            self.stacks[i] = values._replace(offset=before)
            self.stacks.setdefault(new, values._replace(offset=behind))
        return last

    def _write_body(self, statements: list[Statement]) -> list[Statement]:
        """Build the body; gives what is to come before the loop."""
        b, frame, total = self.b, self.frame, self.total
        used = {v for step in self.body.steps for v in step.inputs}
        values: list[Operand | None] = list(self.inputs)
        for i in self.carried:
            if i in self.after:
                stack, first, step = self.after[i]
                shape = stack.shape[1:]
                self.places[i] = frame.window(stack, first, step, shape, contiguous(shape))
            values[i] = self.places[i]
        for i in self.slices:
            values[i] = frame.slices(self.inputs[i], self.reverse) if i in used else None
        steps = _lowered(b, self.body, values)
        own = {*frame.windows, *frame.kept}
        fixed, statements[:], made = _split(statements, own)
        for i, (stack, first, step) in self.after.items():
            new = steps.value(self.new[i])
            _check_carry(b, "Scan", new, self.places[i])
            frame.place(new, stack, first + step, step, made)
        placed: dict[Operand, View] = {}
        for v in self.body.outputs:
            if v in self.stacks or v not in self._wanted:
                continue
            value = steps.value(v)
            if value not in placed:
                assert total is not None
                shape = b.shape(value)
                size = math.prod(shape)
                stack = placed[value] = frame.keep((total, *shape), value)
                first, step = ((total - 1) * size, -size) if self.reverse else (0, size)
                frame.place(value, stack, first, step, made)
            self.stacks[v] = placed[value]
        for i in self.carried:
            if i not in self.after:
                new = steps.value(self.new[i])
                _check_carry(b, "Scan", new, self.places[i])
                frame.carried[self.places[i].storage] = frame.owned(new, made)
        return fixed

    @property
    def _wanted(self) -> set[int]:
        """The values that are stacked."""
        return {*self.outputs.values(), *(v for sum in self.sums for v in sum.stacked)}


def _next(b: Builder, counter: View) -> View:
    return b.compute(lambda s, i: i + 1, counter)


@lowers("While", takes_halves=True, places_from_data=True)
def _while(b: Builder, step: Lowered, limit: Operand, *inputs: Operand) -> list[Operand | None]:
    attrs = step.attrs
    graph: structured.Body = attrs["body"]
    condition: structured.Body = attrs["condition"]
    count: int = attrs["variables"]
    _check_graph("While", graph)
    _check_graph("While", condition)
    if any(step.live[count + 1 :]):
        raise NotLoweredError("While: the number of stacked values depends on data")
    carried = structured.needed_carries(graph, count, step.live, [], condition.inputs_for([0]))
    body, test = traced(graph, carried), traced(condition, [0])
    frame = _Frame(b)
    values: list[Operand | None] = list(inputs)
    for i in range(count):
        values[i] = frame.begin(inputs[i]) if i in carried else None
    most = known_size(limit)
    is_counted = step.live[count] or most is None or most >= 0
    counter = frame.begin(Literal(0, int32)) if is_counted else None
    fixed_of: list[Statement] = []
    with b.inside_loop(frame.first) as statements:
        holds = _lowered(b, test, values).value(test.outputs[0])
        if b.shape(holds):
            holds = b.reshape(holds, ())
        if counter is not None and (most is None or most >= 0):
            given = [holds, counter, b.cast(limit, int32)]
            stop = b.map(lambda s, holds, i, most: ~holds | (i == most), given, bool_)
        else:
            stop = b.map(lambda s, holds: ~holds, [holds], bool_)
        fixed, tests, _ = _split(statements, {*frame.kept, stop.storage})
        fixed_of.extend(fixed)
    with b.inside_loop(frame.first) as statements:
        steps = _lowered(b, body, values)
        fixed, rest, made = _split(statements, {*frame.kept})
        fixed_of.extend(fixed)
        statements[:] = rest
        for i, v in zip(carried, body.outputs, strict=True):
            new, place = steps.value(v), values[i]
            assert isinstance(place, View)
            _check_carry(b, "While", new, place)
            frame.carried[place.storage] = frame.owned(new, made)
        if counter is not None:
            frame.carried[counter.storage] = _next(b, counter)
        rest = list(statements)
    b.program.statements.extend(fixed_of)
    frame.finish(None, rest, tests, stop)
    stays = [values[i] if i in carried else inputs[i] for i in range(count)]
    return [*stays, counter, *[None] * (len(step.live) - count - 1)]
