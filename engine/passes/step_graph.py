"""The graph of a step: what plans are made of, and what passes rewrite.

A step graph begins as a view of the graph that the user built, which is never edited. Passes
rewrite a copy (`StepGraph.of`), in a graph that belongs to it alone. Operations keep their names
in it, so that errors, statistics and placements tell of what the user wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..errors import NotFoundError
from ..graph import Graph, GraphTensor, Operation, TensorSpec
from ..graph.text import graph_text
from ..ops.core.basic import const_op, placeholder_op
from ..ops.core.cluster import ClusterDevice
from ..ops.core.graphs import needed_operations
from ..ops.core.op_def import OpDef
from .fed_variables import check_reads
from .order import are_numbered_in_order, in_order


class StepGraph:
    """What a step gives, takes and runs.

    Attributes:
        fetches: the tensors to compute.
        feeds: the tensors that are given.
        targets: operations to run besides.
        graph: holds the operations.
        is_own: whether `graph` is this step's alone, so that passes may rewrite it; the feeds are
            outputs of placeholders then.
        fed_too: by the id of a tensor that is given besides the feeds, the feed that it is the same
            as (see fed_variables.py); the pipeline copies a step that has some. None: feeds stand
            for themselves.
        compiled: whether operations run as native code where there is some.
        device: what runs all of it, None for the host.
        schedule: what runs, in order, once the pipeline has said so.
        members: by the id of an operation that is part of a cluster, the cluster.

    Examples:
        >>> with engine.Graph().as_default():
        ...     y = engine.constant(2.0) * 3.0
        >>> len(engine.StepGraph([y]).fetches)
        1
    """

    def __init__(
        self,
        fetches: Sequence[GraphTensor],
        feeds: Sequence[GraphTensor] = (),
        targets: Sequence[Operation] = (),
        graph: Graph | None = None,
        fed_too: Mapping[int, GraphTensor] | None = None,
    ) -> None:
        self.fetches = list(fetches)
        self.feeds = list(feeds)
        self.targets = list(targets)
        ends = [*self.targets, *(x.op for x in (*self.fetches, *self.feeds))]
        self.is_own = graph is not None
        self.graph = graph or (ends[0].graph if ends else Graph())
        self.compiled = False
        self.device: ClusterDevice | None = None
        self.schedule: list[Operation] | None = None
        self.members: dict[int, Operation] = {}
        self.fed_too = fed_too
        self._made: list[Operation] = []
        self._pruned: list[Operation] | None = None

    @classmethod
    def of(
        cls,
        fetches: Sequence[GraphTensor],
        feeds: Sequence[GraphTensor] = (),
        targets: Sequence[Operation] = (),
        fed_too: Mapping[int, GraphTensor] | None = None,
    ) -> StepGraph:
        """A step graph of its own, with a copy of what computes `fetches` and runs `targets`.

        Each feed becomes a placeholder: with its own name if it was one, else `_feed_<op>_<k>`.
        """
        return cls(fetches, feeds, targets, fed_too=fed_too).copy()

    def copy(self) -> StepGraph:
        """The same step in another graph, of its own."""
        graph = Graph()
        tensors: dict[int, GraphTensor] = {}
        twins: dict[int, Operation] = {}
        for x in self.feeds:
            if id(x) in tensors:
                continue
            own = x.op.definition is placeholder_op
            name = x.op.name if own else f"_feed_{x.op.name}_{x.value_index}"
            attrs = {"shape": x.shape, "dtype": x.dtype}
            twin = graph.append(placeholder_op, name, (), attrs, (x.spec,), like=x.op)
            twin.colocation = ()
            tensors[id(x)] = twin.outputs[0]
            if own:
                twins[x.op.id] = twin
        for number, x in (self.fed_too or {}).items():
            tensors[number] = tensors[id(x)]
        needed = self.operations
        for op in needed:
            if op.id not in twins:
                specs = tuple([y.spec for y in op._outputs])
                twin = graph.append(op.definition, op.name, (), op.attrs, specs, like=op)
                twins[op.id] = twin
                for y, other in zip(op._outputs, twin._outputs, strict=True):
                    tensors.setdefault(id(y), other)
        names = {op.name for op in needed}
        for op in needed:
            twin = twins[op.id]
            if op.colocation and not names.issuperset(op.colocation):
                twin.colocation, twin.device = standing_with(op, names)
            if op.inputs:
                twin.inputs = tuple([tensors[id(x)] for x in op.inputs])
            if op.control_inputs:
                twin.control_inputs = [twins[c.id] for c in op.control_inputs if c.id in twins]
        made = StepGraph(
            [tensors[id(y)] for y in self.fetches],
            [tensors[id(x)] for x in self.feeds],
            [twins[op.id] for op in self.targets],
            graph,
        )
        made.compiled, made.device = self.compiled, self.device
        return made

    @property
    def operations(self) -> list[Operation]:
        """What a step runs, inputs before consumers."""
        found = self._pruned
        if found is None:
            needed = needed_operations(self.fetches, self.targets, self.feeds, self.fed_too or ())
            if self.fed_too is not None:
                check_reads(self.feeds, needed)
            found = in_order(needed, {id(t) for t in self.feeds})
            if not self.is_own:  # nobody changes what a view shows
                self._pruned = found
        return found

    def runnable(self) -> list[Operation]:
        """As `operations`, and maybe some that nothing needs any more: it takes less time."""
        operations = self.graph.operations
        return operations if are_numbered_in_order(operations) else self.operations

    def text(self) -> str:
        """What a step is, an operation a line."""
        return graph_text(self.operations, self.fetches, self.feeds, self.targets)

    def trim(self) -> None:
        """Drop what nothing needs, and number what stays in an order in which it can run."""
        self._keep(self.operations)

    def _keep(self, operations: Sequence[Operation]) -> None:
        given = {id(x.op): x.op for x in self.feeds}
        given |= {id(op): op for op in operations}
        self.graph.keep(list(given.values()))

    def users(self) -> dict[int, list[Operation]]:
        """By the id of a tensor, the operations that take it."""
        found: dict[int, list[Operation]] = {}
        for op in self.operations:
            for x in op.inputs:
                found.setdefault(id(x), []).append(op)
        return found

    def add(
        self,
        definition: OpDef,
        inputs: Sequence[GraphTensor],
        attrs: Mapping[str, Any] | None = None,
        *,
        like: Operation,
        name: str | None = None,
    ) -> Operation:
        """A new operation in the place of `like`: with its device, control inputs and line.

        Raises:
            LaminarError: the op refuses the inputs.
        """
        specs, full = definition.infer([x.spec for x in inputs], attrs or {})
        unique = self.graph.unique_name(name or f"{like.name}_{definition.type}")
        op = self.graph.append(definition, unique, inputs, full, specs, like=like)
        op.control_inputs = list(like.control_inputs)
        self._made.append(op)
        return op

    def constant(self, value: Any, old: GraphTensor) -> GraphTensor:
        """A constant in the place of a tensor: of its type, on its device."""
        op = old.op
        attrs = {"value": value, "dtype": old.dtype}
        spec = TensorSpec(value.shape, old.dtype)
        name = self.graph.unique_name(f"{op.name}_folded")
        made = self.graph.append(const_op, name, (), attrs, (spec,), like=op)
        self._made.append(made)
        return made.outputs[0]

    def rewrite(self, rule: Callable[[Operation], Sequence[GraphTensor] | None]) -> None:
        """Have a rule say what stands for the outputs of each operation; None where they stay.

        The rule is asked in an order in which the operations can run, and sees inputs that stay.
        What it adds comes before the operation that it is asked about. What waits for an operation
        that is replaced waits for what stands for it.
        """
        instead: dict[int, GraphTensor] = {}
        gone: dict[int, list[Operation]] = {}
        kept: list[Operation] = []
        self._made = []
        for op in self.runnable():
            for x in op.inputs:
                if id(x) in instead:
                    op.inputs = tuple([instead.get(id(x), x) for x in op.inputs])
                    break
            if op.control_inputs and not gone.keys().isdisjoint(map(id, op.control_inputs)):
                op.control_inputs = _replaced(op.control_inputs, gone)
            found = rule(op)
            if self._made:
                kept += self._made
                self._made = []
            if found is None:
                kept.append(op)
                continue
            gone[id(op)] = list({id(y.op): y.op for y in found}.values())
            instead |= {id(y): new for y, new in zip(op._outputs, found, strict=True)}
        self.fetches = [instead.get(id(y), y) for y in self.fetches]
        self.targets = [gone.get(id(op), [op])[0] for op in self.targets]
        self._keep(kept)

    def replace(self, pairs: Sequence[tuple[GraphTensor, GraphTensor]]) -> None:
        """Have everybody who takes the first tensor of a pair take the second one.

        What waits for an operation whose outputs are all replaced waits for the new ones.
        """
        instead = {id(old): new for old, new in pairs}

        def now(x: GraphTensor) -> GraphTensor:
            while id(x) in instead:
                x = instead[id(x)]
            return x

        makers = {id(new.op) for _, new in pairs}
        gone: dict[int, list[Operation]] = {}
        for old, _ in pairs:
            if all(id(y) in instead for y in old.op.outputs):
                new_ops = {id(op): op for op in (now(y).op for y in old.op.outputs)}
                gone[id(old.op)] = list(new_ops.values())
        for op in self.graph.operations:
            if any(id(x) in instead for x in op.inputs):
                own = {id(y) for y in op.outputs}
                if id(op) not in makers or not any(id(now(x)) in own for x in op.inputs):
                    op.inputs = tuple(now(x) for x in op.inputs)
            if any(id(c) in gone for c in op.control_inputs):
                op.control_inputs = [c for c in _replaced(op.control_inputs, gone) if c is not op]
        self.fetches = [now(y) for y in self.fetches]
        self.targets = [gone.get(id(op), [op])[0] for op in self.targets]


def _replaced(
    operations: Sequence[Operation], gone: Mapping[int, list[Operation]]
) -> list[Operation]:
    """The operations, each once, and in the place of one that is gone what stands for it."""
    found = [n for op in operations for n in gone.get(id(op), [op])]
    return list({id(op): op for op in found}.values())


def standing_with(op: Operation, present: Collection[str]) -> tuple[tuple[str, ...], str]:
    """What an operation is colocated with, and its device, where that is not all in the step.

    What is not there may itself be part of others, and say where they are to be.
    """
    found: dict[str, None] = {}
    device = op.device
    left = list(op.colocation)
    while left:
        name = left.pop(0)
        if name in found:
            continue
        found[name] = None
        if name not in present:
            with suppress(NotFoundError):
                other = op.graph.get_operation_by_name(name)
                device = device or other.device
                left += other.colocation
    return tuple(found), device
