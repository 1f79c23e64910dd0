"""Regions: operations of a graph written out as dataflow that run, or do not, all together.

A Switch makes values that may be dead, a loop runs its operations many times: only operations of
one frame whose inputs are alive under the same conditions may become one operation. The conditions
of a tensor are a set of atoms, all of which must hold:
    (predicate, side): of each Switch on the way to it;
    a frame: there is this iteration of the loop;
    the conditions of all inputs of a Merge, one of which must hold.
Both sides of one predicate together are no condition. A loop's variables are alive in the same
iterations if all begin under the same conditions, and go on under the one that decides; in a loop
where that does not hold nothing is joined.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple, TypeAlias

from ..graph import Operation
from ..ops.control.dataflow import ENTER, EXIT, MERGE, NEXT_ITERATION, SWITCH
from .loop_frames import assign_frames
from .order import in_order
from .purity import is_unfed_constant

_Conditions: TypeAlias = frozenset[Hashable]
_ALWAYS: _Conditions = frozenset()


class _Frame:
    """A loop; `begins` are the conditions of what enters it, `goes_on` of what goes round."""

    def __init__(self, name: str, parent: _Frame | None, parallel: int) -> None:
        self.name = name
        self.parent = parent
        self.begins: set[_Conditions] = set()
        self.goes_on: set[_Conditions] = set()
        self.ends: set[_Conditions] = set()

    @property
    def path(self) -> str:
        return self.name if self.parent is None else f"{self.parent.path}/{self.name}"

    @property
    def is_regular(self) -> bool:
        """Whether its variables are all alive in the same iterations, and those around it are."""
        if self.parent is None:
            return True
        if len(self.begins) != 1 or len(self.goes_on) != 1 or not self.parent.is_regular:
            return False
        (goes_on,) = self.goes_on
        (decision,) = goes_on - {self} if len(goes_on) == 2 else [None]
        if not isinstance(decision, tuple) or self not in goes_on:
            return False
        predicate, side = decision
        return side == 1 and self.ends <= {frozenset({self, (predicate, 0)})}


class Regions(NamedTuple):
    """Where the operations of a graph may be joined.

    Attributes:
        of: for each operation its region; None for one that must stay alone.
        ends: by the place of an Exit, the places of what ends an iteration of its loop: what comes
            out depends on that, though no edge that stays within one iteration says so.
    """

    of: list[Hashable | None]
    ends: dict[int, list[int]]


def regions(operations: Sequence[Operation], fed: Collection[int]) -> Regions:
    """The regions of a graph.

    Args:
        operations: written out as dataflow, in any order.
        fed: the id() of tensors that are given.

    Raises:
        InvalidArgumentError: the frames of loops do not match, or there is a cycle without a
            NextIteration.
    """
    root = _Frame("", None, 1)
    index = {op.id: i for i, op in enumerate(operations)}
    constants = {id(op.outputs[0]) for op in operations if is_unfed_constant(op, fed)}
    frames = assign_frames(operations, fed, constants, index, root, _Frame)
    conditions: dict[int, _Conditions] = {}  # of an operation, by id
    outputs: dict[int, _Conditions] = {}  # of a tensor, by id()
    own: list[_Conditions] = [_ALWAYS] * len(operations)
    for op in in_order(operations, fed):
        inputs = [
            outputs.get(id(x), _ALWAYS)
            for x in op.inputs
            if id(x) not in fed and x.op.definition is not NEXT_ITERATION
        ]
        waits = frozenset().union(*(conditions.get(c.id, _ALWAYS) for c in op.control_inputs))
        frame, inner = frames[index[op.id]]
        all_ = frozenset().union(waits, *inputs)
        found = [all_] * len(op.outputs)
        if op.definition is SWITCH:
            found = [all_ | {(id(op.inputs[1]), side)} for side in (0, 1)]
        elif op.definition is ENTER:
            inner.begins.add(all_)
            found = [_ALWAYS]
        elif op.definition is EXIT:
            frame.ends.add(all_)
            found = [next(iter(frame.begins), _ALWAYS)]
        elif op.definition is MERGE:
            if any(x.op.definition is NEXT_ITERATION for x in op.inputs):
                all_ = waits | {frame}
            else:
                all_ = waits | _either(inputs)
            found = [all_] * 2
        elif op.definition is NEXT_ITERATION:
            frame.goes_on.add(all_)
        own[index[op.id]] = conditions[op.id] = all_
        for y, conditions_of_y in zip(op.outputs, found, strict=True):
            outputs[id(y)] = conditions_of_y
    regular = {id(frame): frame.is_regular for frame, _ in frames}
    ends: dict[int, list[int]] = {}
    for i, op in enumerate(operations):
        if op.definition is NEXT_ITERATION:
            ends.setdefault(id(frames[i][0]), []).append(i)
    return Regions(
        [
            (id(frame), alive) if regular[id(frame)] else None
            for (frame, _), alive in zip(frames, own, strict=True)
        ],
        {
            i: ends.get(id(frames[i][0]), [])
            for i, op in enumerate(operations)
            if op.definition is EXIT
        },
    )


def _either(inputs: Sequence[_Conditions]) -> _Conditions:
    """The conditions under which one of several is alive."""
    common = frozenset.intersection(*inputs) if inputs else _ALWAYS
    rests = {alive - common for alive in inputs}
    if len(rests) == 2 and all(len(rest) == 1 for rest in rests):
        (one,), (other,) = rests
        if isinstance(one, tuple) and isinstance(other, tuple) and one[0] == other[0]:
            return common  # both sides of one predicate
    return common if rests == {_ALWAYS} else common | {frozenset(rests)}
