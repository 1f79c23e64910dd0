"""Loops whose operations are in several parts of a cut graph.

The part that decides whether a loop goes on has the whole of its steering. Every other part that
takes something from inside the loop gets a small loop of its own, which turns as often: it
receives the decision in each iteration, and a tensor from inside of the loop is received once in
each, dead or alive.

    token -> Enter -> Merge -> Switch(the decision, received) -> NextIteration -> Merge

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError
from ..graph import Graph, GraphTensor, Operation, float32
from ..ops.control.dataflow import ENTER, LOOP_COND, MERGE, NEXT_ITERATION, SWITCH
from ..ops.core.basic import const_op
from ..ops.core.op_def import OpDef
from .loop_frames import assign_frames
from .purity import is_unfed_constant

Receive = Callable[[GraphTensor], GraphTensor]


class LoopFrame:
    """A loop of the graph that is cut.

    Attributes:
        name, parent, parallel: see `assign_frames`.
        decision: what its LoopCond gives.
        merge: one of its Merges, which are all in the same part.
    """

    def __init__(self, name: str, parent: LoopFrame | None, parallel: int) -> None:
        self.name = name
        self.parent = parent
        self.parallel = parallel
        self.decision: GraphTensor | None = None
        self.merge: Operation | None = None

    @property
    def path(self) -> str:
        """Its name, after those of the loops around it."""
        return self.name if self.parent is None else f"{self.parent.path}/{self.name}"


class PartLoops:
    """The loops of a graph that is cut, and the small loops of its parts.

    Args:
        operations: what a step runs.
        fed: the id() of tensors that are given.
    """

    def __init__(self, operations: Sequence[Operation], fed: Collection[int]) -> None:
        self._frames: dict[int, LoopFrame] = {}
        self._turning: dict[tuple[int, str], Operation] = {}
        if not any(op.definition is ENTER for op in operations):
            return
        fixed = {id(op.outputs[0]) for op in operations if is_unfed_constant(op, fed)}
        index = {op.id: i for i, op in enumerate(operations)}
        root = LoopFrame("", None, 1)
        found = assign_frames(operations, fed, fixed, index, root, LoopFrame)
        for op, (own, outside) in zip(operations, found, strict=True):
            if outside.parent is not None:
                self._frames[op.id] = outside
            if op.definition is LOOP_COND:
                own.decision = op.outputs[0]
            if op.definition is MERGE and any(x.op.definition is NEXT_ITERATION for x in op.inputs):
                own.merge = own.merge or op

    @property
    def any(self) -> bool:
        """Whether the graph has loops."""
        return bool(self._frames)

    def frame(self, op: Operation) -> LoopFrame | None:
        """The loop that the outputs of an operation are in, None outside of loops."""
        return self._frames.get(op.id)

    def turning(
        self,
        frame: LoopFrame,
        location: str,
        graph: Graph,
        own: Callable[[Operation], Operation | None],
        receive: Receive,
    ) -> Operation:
        """What runs once in each iteration of a loop in the part at `location`.

        Args:
            graph: that of the part.
            own: gives the copy of an operation if it is in that part.
            receive: gives what stands for a tensor there.
        """
        if frame.decision is None or frame.merge is None:
            raise InvalidArgumentError(
                f"the loop {frame.path!r} is on several devices, and nothing tells whether it "
                f"goes on",
                remedy="mark its condition with loop_cond, or write it with while_loop",
            )
        found = own(frame.merge) or self._turning.get((id(frame), location))
        if found is not None:
            return found
        if frame.parent is None or frame.parent.parent is None:
            attrs = {"value": np.zeros(0, "float32"), "dtype": float32}
            token = graph.add(const_op, (), attrs, name="_loop_token").outputs[0]
        else:
            around = self.turning(frame.parent, location, graph, own, receive)
            token = around.outputs[0]
        origin = frame.merge

        def make(definition: OpDef, inputs: Sequence[GraphTensor], **attrs: Any) -> Operation:
            op = graph.add(definition, inputs, attrs, name=f"_loop_{definition.type}")
            op.location, op.layer, op.device = origin.location, origin.layer, location
            return op

        entered = make(ENTER, [token], frame_name=frame.name, parallel_iterations=frame.parallel)
        merged = self._turning[id(frame), location] = make(MERGE, entered.outputs)
        sides = make(SWITCH, [merged.outputs[0], receive(frame.decision)])
        again = make(NEXT_ITERATION, [sides.outputs[1]])
        graph.add_input(merged, again.outputs[0])
        return merged
