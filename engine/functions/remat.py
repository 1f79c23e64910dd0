"""`remat`: keep the inputs of a function for its gradient, and compute the rest again.

While the function runs, a recorder writes down which ops it applies to what. The gradient applies
them once more, to the inputs behind a Barrier that waits for the gradients that arrive: so nothing
takes the values for those of the first time, and nothing computes them before they are needed. What
has effects (draws of seeds, updates of variables, reads) is not done again: its results count among
the inputs.

Source: Chen et al., "Training deep nets with sublinear memory cost", 2016, arXiv:1604.06174,
    section 4.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from ..gradients.backprop import backpropagate
from ..graph import EagerTensor, Graph, GraphTensor, Tensor, building, resource
from ..ops.core.barrier import barrier
from ..ops.core.dispatch import apply, as_input, symbolic_graph
from ..ops.core.op_def import OpDef
from ..ops.core.recording import Record, Recorder, notify, recorders
from ..tree import flatten, pack_sequence_as
from .custom_gradient import custom_op


def _always(result: Any) -> bool:
    return True


def remat(
    fn: Callable[..., Any],
    results: Callable[[Any], Sequence[Any]] = flatten,
    wanted: Callable[[Any], bool] = _always,
) -> Callable[..., Any]:
    """A function that gives what `fn` gives, and keeps only its inputs for the gradient.

    Args:
        fn: of any arguments; it returns a structure of tensors (and other things, which are passed
            on). Variables that it reads count among its inputs. It is called once for each call;
            what it does besides computing is done once.
        results: of what `fn` returned, the tensors whose gradients matter; what is not among them
            has a gradient only in a graph.
        wanted: whether a call that has given a result is to be one of these, or one of `fn`.

    Returns:
        A function of the same arguments. Its gradients are those of `fn`, of any order.
    """

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = [x for x in flatten((args, kwargs)) if isinstance(x, Tensor)]
        graph = building() or symbolic_graph("remat", given)
        if graph is None and not recorders.active:
            return fn(*args, **kwargs)
        writer = _Writer(recorders.active, eager=graph is None)
        before = recorders.active
        recorders.active = [writer] if graph is None else [*before, writer]
        try:
            result = fn(*args, **kwargs)
        finally:
            recorders.active = before
        if not wanted(result):
            writer.tell()
            return result
        found = {id(y): y for y in results(result) if isinstance(y, Tensor)}
        if graph is not None:
            found = {key: as_input(graph, y) for key, y in found.items()}
        # What was given is passed on as a tensor of its own, whose gradient is one of the result.
        ys = [y if writer.has_made(y) or graph is not None else _twin(y) for y in found.values()]
        script, outside = writer.finish(list(found.values()))
        if graph is None:
            notify(_Again(script), outside, {}, ys)  # type: ignore[arg-type]  # as an op is
        else:
            ys = _in_graph(graph, script, outside, ys)
        by_id = dict(zip(found, ys, strict=True))
        leaves = [by_id.get(id(y), y) for y in flatten(result)]
        return pack_sequence_as(result, leaves)

    return wrapped


def _in_graph(
    graph: Graph, script: Script, outside: Sequence[Tensor], ys: Sequence[Tensor]
) -> list[Tensor]:
    """The results as outputs of an operation whose gradient goes through the script."""
    if not ys:
        return []
    inputs = [as_input(graph, x) for x in outside]
    rule = _Rule(script)
    made = custom_op.many(
        *ys, *inputs, *inputs, outputs=len(ys), arguments=len(inputs), backward=rule
    )
    for y, own in zip(ys, made, strict=True):
        _copy_mask(y, own)
    return list(made)


def _twin(y: Tensor) -> Tensor:
    found = y.twin() if isinstance(y, EagerTensor) else y
    _copy_mask(y, found)
    return found


def _copy_mask(source: Tensor, target: Tensor) -> None:
    """What the layers keep on a tensor goes with it."""
    mask = getattr(source, "_keras_mask", None)
    if mask is not None:
        target._keras_mask = mask  # type: ignore[attr-defined]  # a slot, not declared


class _Entry(NamedTuple):
    """An op that was applied; values are numbers.

    `is_kept` where it is not applied again: its outputs are among the values from outside.
    """

    definition: Any
    inputs: tuple[int, ...]
    attrs: Mapping[str, Any]
    outputs: tuple[int, ...]
    device: str
    is_kept: bool


class Script:
    """What a function computed, as ops on numbered values.

    Attributes:
        entries: the ops, in order.
        outside: the numbers of the values that come from outside.
        outputs: the numbers of the results.
    """

    def __init__(
        self, entries: Sequence[_Entry], outside: Sequence[int], outputs: Sequence[int]
    ) -> None:
        self.entries = entries
        self.outside = outside
        self.outputs = outputs

    def play(self, given: Sequence[Tensor]) -> list[Tensor]:
        """The results, computed again from the values from outside."""
        values = dict(zip(self.outside, given, strict=True))
        for entry in self.entries:
            inputs = [values[i] for i in entry.inputs]
            if entry.is_kept:
                notify(entry.definition, inputs, entry.attrs, [values[i] for i in entry.outputs])
                continue
            with _on(entry.device):
                if isinstance(entry.definition, _Again):
                    found: Sequence[Tensor] = entry.definition.apply(inputs)
                else:
                    found = apply(entry.definition, inputs, entry.attrs)
            values.update(zip(entry.outputs, found, strict=True))
        return [values[i] for i in self.outputs]

    def gradient(
        self, outside: Sequence[Tensor], dys: Sequence[Tensor | None]
    ) -> list[Tensor | None]:
        """The gradients for the values from outside, from those of the results."""
        arriving = [dy for dy in dys if dy is not None]
        if not arriving or not outside:
            return [None for _ in outside]
        fresh = barrier.many(*outside, *arriving, outputs=len(outside))
        reader = _Reader()
        before = recorders.active
        recorders.active = [*before, reader]
        try:
            found = self.play(fresh)
        finally:
            recorders.active = before
        live = [y for y, dy in zip(found, dys, strict=True) if dy is not None]
        return backpropagate(reader.records, live, fresh, arriving)


def _on(device: str) -> AbstractContextManager[None]:
    graph = building()
    return graph.device(device) if graph is not None and device else nullcontext()


class _Rule:
    """The gradient of the operation that stands for a script in a graph."""

    __hash__ = None  # type: ignore[assignment]  # no cache of attributes may hold on to it

    def __init__(self, script: Script) -> None:
        self.script = script

    def __call__(
        self, dys: Sequence[Tensor], captured: Sequence[Tensor]
    ) -> Sequence[Tensor | None]:
        live = [dy if dy.dtype.is_differentiable else None for dy in dys]
        return self.script.gradient(captured, live)


class _Again:
    """What tapes see of a call on values: an op from what is outside to the results."""

    type = "Remat"
    stateful = False
    read_only = False
    row_gradient = None
    inner_row_gradient = None

    def __init__(self, script: Script) -> None:
        self.script = script

    def gradient(self, record: Record, *dys: Tensor | None) -> list[Tensor | None]:
        """The gradients for what came from outside."""
        return self.script.gradient(record.inputs, dys)

    def apply(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The results again, recorded as one op."""
        before = recorders.active
        recorders.active = []
        try:
            outputs = self.script.play(inputs)
        finally:
            recorders.active = before
        notify(self, inputs, {}, outputs)  # type: ignore[arg-type]  # as an op is
        return outputs


class _Reader:
    """A recorder that keeps all applications."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def is_tracking(self, tensors: Iterable[Tensor]) -> bool:
        return True

    def record(self, record: Record) -> None:
        self.records.append(record)

    def watched_variable(self, handle: Tensor, variable: Any = None) -> None:
        """Reads of variables count by their values."""


class _Writer:
    """A recorder that makes a script.

    While a graph is built, the tapes around it record what it does too, which costs nothing. On
    values they do not, for they would keep them: they see only what has effects. State:
        _numbers: of the tensors, by id;
        _tensors: by number; holding them keeps the ids theirs;
        _made: the numbers of the outputs of entries;
        _records: what the entries were made of.
    """

    def __init__(self, outer: Sequence[Recorder], *, eager: bool) -> None:
        self._outer = outer
        self._eager = eager
        self._numbers: dict[int, int] = {}
        self._tensors: list[Tensor] = []
        self._made: set[int] = set()
        self._entries: list[_Entry] = []
        self._records: list[Record] = []

    def is_tracking(self, tensors: Iterable[Tensor]) -> bool:
        """Whether these matter: all do."""
        return True

    def watched_variable(self, handle: Tensor, variable: Any = None) -> None:
        """Variables are read for those outside."""
        if self._eager:
            for recorder in self._outer:
                recorder.watched_variable(handle, variable)

    def record(self, record: Record) -> None:
        """Write down an application."""
        is_kept = not _can_repeat(record)
        if is_kept and not (self._eager and any(self.has_made(x) for x in record.inputs)):
            if self._eager:
                for recorder in self._outer:
                    recorder.record(record)
            return
        inputs = tuple(map(self._number, record.inputs))
        outputs = tuple(map(self._number, record.outputs))
        if not is_kept:
            self._made.update(outputs)
        first = record.outputs[0] if record.outputs else None
        device = first.op.device if isinstance(first, GraphTensor) else ""
        entry = _Entry(record.definition, inputs, record.attrs, outputs, device, is_kept)
        self._entries.append(entry)
        self._records.append(record)

    def tell(self) -> None:
        """Pass on to those outside all that they have not seen."""
        for record in self._records if self._eager else ():
            for recorder in self._outer:
                recorder.record(record)

    def has_made(self, x: Tensor) -> bool:
        """Whether a tensor is what an op that can be repeated has given."""
        return self._numbers.get(id(x)) in self._made

    def _number(self, x: Tensor) -> int:
        number = self._numbers.get(id(x))
        if number is None:
            number = self._numbers[id(x)] = len(self._tensors)
            self._tensors.append(x)
        return number

    def finish(self, results: Sequence[Tensor]) -> tuple[Script, list[Tensor]]:
        """The script for results, without what they do not need, and the values from outside."""
        outputs = [self._number(y) for y in results]
        needed = set(outputs)
        entries = []
        for entry in reversed(self._entries):
            if needed.intersection(entry.outputs):
                needed.update(entry.inputs)
                if entry.is_kept:
                    needed.update(entry.outputs)
                entries.append(entry)
        outside = sorted(needed - self._made)
        script = Script(entries[::-1], outside, outputs)
        return script, [self._tensors[i] for i in outside]


def _can_repeat(record: Record) -> bool:
    """Whether an application is a function of its inputs alone, and has some."""
    definition = record.definition
    if isinstance(definition, _Again):
        return True
    return (
        isinstance(definition, OpDef)
        and not definition.stateful
        and definition.async_kernel is None
        and bool(record.inputs)
        and all(x.dtype != resource for x in (*record.inputs, *record.outputs))
    )
