"""The graph of a function under trace: captures what it uses from outside, and keeps program order.

Automatic control dependencies: two operations that use one resource run in the order in which they
were written (reads among themselves in any order), and so do operations marked stateful. State:
    _last_write[resource id]: the last operation that may have changed it;
    _reads[resource id]: the operations that have read it since;
    _last_stateful: the last stateful operation;
    effects: operations that must run although no output needs them;
    given: what the call that is being traced passes for `arguments`, while it is traced.

Source: "RFC: Functions, not sessions", 2018, sections "Program-order semantics" and "Referencing
    state".
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..graph import (
    EagerTensor,
    Graph,
    GraphTensor,
    Operation,
    TensorSpec,
    building,
    get_default_graph,
    resource,
)
from ..ops.core.basic import constant, placeholder_op
from ..ops.core.dispatch import as_input, encloses
from ..ops.core.recording import paused, recorders
from ..passes import StepGraph, needed_operations
from ..runtime import Plan, StepContext
from ..tree import flatten

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.]+|^[^A-Za-z0-9]+")


class FuncGraph(Graph):
    """A graph whose placeholders are arguments and captures."""

    captures_values = True

    def __init__(self, name: str, *, outer: Graph | None = None) -> None:
        super().__init__()
        self.name = name_for_graph(name)
        self.outer = outer if outer is not None else building()
        around = () if self.outer is None else self.outer.tapes_outside
        self.tapes_outside = weakref.WeakSet([*recorders.active, *around])
        self.scopes.inherit_device(get_default_graph().scopes.device_name)
        self.arguments: list[GraphTensor] = []
        self.given: Sequence[Any] = ()
        self.effects: list[Operation] = []
        self._last_write: dict[int, Operation] = {}
        self._reads: dict[int, list[Operation]] = {}
        self._last_stateful: Operation | None = None

    def add_argument(self, spec: TensorSpec, name: str) -> GraphTensor:
        """A placeholder for the next argument."""
        attrs = {"shape": spec.shape, "dtype": spec.dtype}
        tensor = self.add(placeholder_op, (), attrs, name=name_for_graph(name)).outputs[0]
        self.arguments.append(tensor)
        return tensor

    def value_of(self, tensor: GraphTensor) -> EagerTensor | None:
        """The value that `tensor` has in the call that is being traced.

        None when the call has no values (it asks for a graph of specs), or when computing the
        value would have an effect, which the call itself is to have.
        """
        known: dict[int, Any] = {id(x): y for x, y in zip(self.arguments, self.given, strict=False)}
        known.update((id(inner), outer) for outer, inner in self.captures.values())
        operations = needed_operations([tensor])
        effects = {op.id for op in self.effects}
        feeds, values = [], []
        for op in operations:
            if op.id in effects:
                return None
            if op.definition is not placeholder_op:
                continue
            value = known.get(id(op.outputs[0]))
            if isinstance(value, GraphTensor):
                value = value.graph.value_of(value)
            if not isinstance(value, EagerTensor):
                return None
            feeds.append(op.outputs[0])
            values.append(value.value)
        (found,) = Plan(StepGraph([tensor], feeds)).run(values, StepContext())
        return EagerTensor(found, tensor.dtype)

    @contextmanager
    def control_dependencies(self, controls: Any) -> Iterator[None]:
        """As in any graph; what is outside has run before the graph does."""
        if controls is not None:
            controls = [self._control(c) for c in flatten(controls)]
        with super().control_dependencies(controls):
            yield

    def _control(self, control: Any) -> Any:
        if not self._is_outside(control):
            return control
        first = control if isinstance(control, GraphTensor) else next(iter(control.outputs), None)
        if first is None or first.dtype == resource:
            op = control.op if isinstance(control, GraphTensor) else control
            with op.graph.as_default(), paused(), op.graph.control_dependencies([op]):
                first = constant(0)
        return as_input(self, first)

    @contextmanager
    def colocate_with(self, target: Any, ignore_existing: bool = False) -> Iterator[None]:
        """As in any graph; for what is outside, where that is asked to be."""
        if not self._is_outside(target):
            with super().colocate_with(target, ignore_existing):
                yield
            return
        op = target.op if isinstance(target, GraphTensor) else target
        with self.device(op.device):
            yield

    def _is_outside(self, element: Any) -> bool:
        """Whether an operation or a tensor belongs to a graph around this one."""
        known = isinstance(element, GraphTensor | Operation) and element.graph is not self
        return known and encloses(element.graph, self)

    def _added(self, op: Operation) -> None:
        used = {id(x): x for x in op.inputs if x.dtype == resource}
        writes = bool(used) and not op.definition.read_only
        if writes or op.definition.stateful:
            self.effects.append(op)
        for key in used:
            last = self._last_write.get(key)
            if last is not None:
                op.add_control_input(last)
            if writes:
                for read in self._reads.pop(key, ()):
                    op.add_control_input(read)
                self._last_write[key] = op
            else:
                self._reads.setdefault(key, []).append(op)
        if op.definition.stateful:
            if self._last_stateful is not None:
                op.add_control_input(self._last_stateful)
            self._last_stateful = op


def name_for_graph(name: str) -> str:
    """`name` without what an operation's name cannot hold: "<lambda>" becomes "lambda"."""
    return _NOT_IN_NAMES.sub("", name) or "function"
