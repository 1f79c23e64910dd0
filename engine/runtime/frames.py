"""A graph laid out in frames: what each node waits for, in which loop, and where its outputs go.

A frame is a loop as the graph has it, in its place among the loops around it. A node stands in the
frame of its inputs; so do its outputs, but those of an Enter are in the frame that it leads into,
those of an Exit in the frame around. Nodes and tensors are numbered within their frames.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..errors import InvalidArgumentError
from ..graph import GraphTensor, Operation
from ..ops.control.dataflow import ENTER, EXIT, MERGE, NEXT_ITERATION, SWITCH
from ..passes.loop_frames import assign_frames, frame_mismatch

# What is to be done with a node: run its kernel, or steer.
RUN_NODE, SWITCH_NODE, MERGE_NODE, ENTER_NODE, EXIT_NODE, NEXT_NODE = range(6)
_KINDS = {
    SWITCH: SWITCH_NODE,
    MERGE: MERGE_NODE,
    ENTER: ENTER_NODE,
    EXIT: EXIT_NODE,
    NEXT_ITERATION: NEXT_NODE,
}


class NodeLayout:
    """A node.

    Attributes:
        op: the operation.
        number: its place in the plan; `index` is that in its frame.
        frame: where it stands; `inner` is where its outputs and those that it holds back are.
        kind: what is to be done with it.
        dead_runs: whether its kernel runs though an input is dead.
        inputs: slots of its inputs.
        outputs: slots of its outputs in `inner`, -1 for what nobody takes.
        targets: for each output, the nodes that take it.
        controls: the nodes that wait for it without taking anything.
    """

    __slots__ = (
        "controls",
        "dead_runs",
        "frame",
        "index",
        "inner",
        "inputs",
        "kind",
        "number",
        "op",
        "outputs",
        "targets",
    )

    def __init__(self, op: Operation, number: int, frame: FrameLayout, inner: FrameLayout) -> None:
        definition: Any = op.definition
        self.op = op
        self.number = number
        self.frame = frame
        self.index = len(frame.nodes)
        self.kind = _KINDS.get(definition, RUN_NODE)
        self.dead_runs: bool = definition.takes_dead
        self.inner = inner
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.targets: list[list[NodeLayout]] = [[] for _ in op.outputs]
        self.controls: list[NodeLayout] = []
        frame.nodes.append(self)


class FrameLayout:
    """A frame.

    Attributes:
        uses: by slot, how many nodes (and fetches) take it; a Merge takes values as they arrive.
        pending: by node, for how many arrivals it waits; at a Merge, for control edges alone.
        merges: by node, how many values can arrive at a Merge in iteration 0, and in later ones.
        constants: slots with values that are there in each iteration.
        at_once: the Merges that take something given, with its slot and whether in each iteration.
    """

    def __init__(self, name: str, parent: FrameLayout | None, parallel: int) -> None:
        self.name = name
        self.parent = parent
        self.parallel = parallel
        self.nodes: list[NodeLayout] = []
        self.num_slots = 0
        self.uses: list[int] = []
        self.pending: list[int] = []
        self.merges: dict[int, tuple[int, int]] = {}
        self.num_enters = 0
        self.exits: list[NodeLayout] = []
        self.constants: list[tuple[int, Any]] = []
        self.at_once: list[tuple[NodeLayout, int, bool]] = []
        self._constant_slots: dict[int, int] = {}

    def constant(self, key: int, value: Any) -> int:
        """The slot of a constant."""
        slot = self._constant_slots.get(key)
        if slot is None:
            slot = self._constant_slots[key] = self.slot()
            self.constants.append((slot, value))
            self.uses[slot] = 1  # one more than nodes take: it stays
        return slot

    def slot(self) -> int:
        """A new slot."""
        self.uses.append(0)
        self.num_slots += 1
        return self.num_slots - 1

    @property
    def path(self) -> str:
        """The frames around it, and its name."""
        return self.name if self.parent is None else f"{self.parent.path}/{self.name}"


class FrameLayouts:
    """A graph laid out for a `StepState`.

    Attributes:
        root: the frame of what is in no loop; its first slots are those of the feeds.
        nodes: by number.
        fetches: slots of the root.
        sources: the nodes that wait for nothing.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        feeds: Sequence[GraphTensor],
        fetches: Sequence[GraphTensor],
        constants: Sequence[tuple[GraphTensor, Any]],
        index: dict[int, int],
        waits: Mapping[int, Collection[int]],
    ) -> None:
        """Lay out.

        Args:
            operations: what runs.
            feeds, fetches: tensors given and wanted.
            constants: tensors with values that stay, in any frame.
            index: the place in `operations` of an operation, by id.
            waits: by the place of an operation in no loop, those of others that it is to wait for.

        Raises:
            InvalidArgumentError: the inputs of an operation are of different frames, or a fetch is
                inside of a loop, or there is a cycle without a NextIteration.
        """
        self.root = FrameLayout("", None, 1)
        frames = assign_frames(
            operations,
            {id(x) for x in feeds},
            {id(x) for x, _ in constants},
            index,
            self.root,
            FrameLayout,
        )
        self.nodes = [NodeLayout(op, i, *frames[i]) for i, op in enumerate(operations)]
        place: dict[int, tuple[FrameLayout, int]] = {}
        for x in feeds:
            place.setdefault(id(x), (self.root, self.root.slot()))
        values = {id(x): value for x, value in constants}
        given = {*place, *values}
        for node in self.nodes:
            if node.kind == ENTER_NODE:
                node.inner.num_enters += 1
            elif node.kind == EXIT_NODE:
                node.frame.exits.append(node)
            for y in node.op.outputs:
                if id(y) in given:
                    node.outputs.append(-1)
                else:
                    node.outputs.append(node.inner.slot())
                    place[id(y)] = (node.inner, node.outputs[-1])
        sources = {
            id(y): (node, i)
            for node in self.nodes
            for i, y in enumerate(node.op.outputs)
            if id(y) not in given
        }
        for node in self.nodes:
            more = waits.get(node.number, ())
            self._connect(node, place, values, sources, index, more)
        self.fetches: list[int] = []
        for y in fetches:
            if id(y) in values:
                frame, slot = self.root, self.root.constant(id(y), values[id(y)])
            else:
                frame, slot = place[id(y)]
            if frame is not self.root:
                raise InvalidArgumentError(
                    f"{y.name} is inside of the loop {frame.path!r}, and has a value in each of "
                    f"its iterations",
                    remedy="fetch what the loop gives, or add it to the loop's variables",
                    location=y.op.location,
                )
            self.fetches.append(slot)
            self.root.uses[slot] += 1
        self.sources = [
            node
            for node in self.root.nodes
            if node.kind != MERGE_NODE and not self.root.pending[node.index]
        ]
        self.fetched = list(fetches)

    def _connect(
        self,
        node: NodeLayout,
        place: dict[int, tuple[FrameLayout, int]],
        values: dict[int, Any],
        sources: dict[int, tuple[NodeLayout, int]],
        index: dict[int, int],
        more: Collection[int],
    ) -> None:
        """Join a node to what it waits for."""
        merges = node.kind == MERGE_NODE
        arrivals = back = 0
        at_once = []
        for x in node.op.inputs:
            if id(x) in values:
                frame, slot = node.frame, node.frame.constant(id(x), values[id(x)])
            else:
                frame, slot = place[id(x)]
            if frame is not node.frame:
                raise frame_mismatch(node.op, x.op.name, frame, node.frame)
            node.inputs.append(slot)
            if not merges:
                frame.uses[slot] += 1
            if id(x) in sources:
                source, output = sources[id(x)]
                source.targets[output].append(node)
                arrivals += 1
                back += source.kind == NEXT_NODE
            else:
                at_once.append(slot)
                frame.uses[slot] += merges  # it stays until the Merge has looked
        controls = {index[c.id] for c in node.op.control_inputs if c.id in index} - {node.number}
        controls.update(more)
        for i in controls:
            source = self.nodes[i]
            if source.inner is not node.frame:
                raise frame_mismatch(node.op, source.op.name, source.inner, node.frame)
            source.controls.append(node)
        waits = len(controls)
        if merges:
            forward = len(node.inputs) - back
            node.frame.merges[node.index] = (forward, back if back else forward)
            node.frame.at_once += [(node, slot, not back) for slot in at_once]
        else:
            waits += arrivals
        node.frame.pending.append(waits)
