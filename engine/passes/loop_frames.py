"""Which loop each operation of a graph is in.

A frame is a loop in its place among the loops around it. An operation stands in the frame of its
inputs; so do its outputs, but those of an Enter are in the frame that it leads into, those of an
Exit in the frame around.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, Self, TypeVar

from ..errors import InvalidArgumentError
from ..graph import Operation
from ..ops.control.dataflow import ENTER, EXIT, MERGE, NEXT_ITERATION


class Frame(Protocol):
    """A loop."""

    @property
    def parent(self) -> Self | None:
        """The loop around it; None for what is in no loop."""

    @property
    def path(self) -> str:
        """Its name, after those of the loops around it."""


F = TypeVar("F", bound=Frame)


def frame_mismatch(op: Operation, name: str, frame: Frame, own: Frame) -> InvalidArgumentError:
    """The error of an operation in the frame `own` with an input of another frame."""

    def where(f: Frame) -> str:
        return f"in the loop {f.path!r}" if f.parent is not None else "outside of any loop"

    return InvalidArgumentError(
        f"frames do not match: {op.type} {op.name!r} is {where(own)}, "
        f"and its input {name!r} is {where(frame)}",
        remedy="bring it there with enter (is_constant=True for each iteration), or out with "
        "exit_loop; while_loop does that by itself",
        location=op.location,
        layer=op.layer,
    )


def cycle_error(operations: Sequence[Operation]) -> InvalidArgumentError:
    """The error of operations that wait for each other."""
    names = ", ".join(repr(op.name) for op in operations[:5])
    lines = "".join(f"\n  {op!r}" for op in operations[:5])
    first = operations[0]
    return InvalidArgumentError(
        f"operations wait for each other in a cycle: {names}{lines}",
        remedy="a cycle must go through next_iteration, as while_loop builds it",
        location=first.location,
        layer=first.layer,
    )


def assign_frames(
    operations: Sequence[Operation],
    fed: Collection[int],
    fixed: Collection[int],
    index: Mapping[int, int],
    root: F,
    make: Callable[[str, F, int], F],
) -> list[tuple[F, F]]:
    """The frame of each operation, and that of its outputs.

    Operations are visited as if they ran, the cycles of loops being cut behind NextIteration.

    Args:
        operations: in any order.
        fed: the id() of tensors that are given, outside of any loop.
        fixed: the id() of constants, which are everywhere.
        index: the place in `operations` of an operation, by its id.
        root: the frame of what is in no loop.
        make: a new frame, of a name, the frame around it, and how many iterations may be in flight.

    Raises:
        InvalidArgumentError: the inputs of an operation are of different frames, or there is a
            cycle without a NextIteration.
    """
    frames: list[tuple[F, F] | None] = [None] * len(operations)
    inner: dict[tuple[int, str], F] = {}
    waits = [0] * len(operations)
    consumers: list[list[int]] = [[] for _ in operations]
    for i, op in enumerate(operations):
        sources = {
            index[x.op.id]
            for x in op.inputs
            if id(x) not in fed
            and id(x) not in fixed
            and not (op.definition is MERGE and x.op.definition is NEXT_ITERATION)
        }
        sources |= {index[c.id] for c in op.control_inputs if c.id in index}
        sources.discard(i)
        waits[i] = len(sources)
        for j in sources:
            consumers[j].append(i)
    ready = [i for i, n in enumerate(waits) if n == 0]
    while ready:
        i = ready.pop()
        op = operations[i]
        found: list[tuple[str, F]] = []
        for x in op.inputs:
            if id(x) in fed:
                found.append((x.name, root))
            elif id(x) not in fixed and (source := frames[index[x.op.id]]) is not None:
                found.append((x.op.name, source[1]))
        if not found:
            for c in op.control_inputs:
                if c.id in index and (source := frames[index[c.id]]) is not None:
                    found.append((c.name, source[1]))
        own = found[0][1] if found else root
        for name, frame in found:
            if frame is not own:
                raise frame_mismatch(op, name, frame, own)
        frames[i] = (own, _frame_of_outputs(op, own, inner, make))
        for j in consumers[i]:
            waits[j] -= 1
            if not waits[j]:
                ready.append(j)
    stuck = [op for op, frame in zip(operations, frames, strict=True) if frame is None]
    if stuck:
        raise cycle_error(stuck)
    return [f for f in frames if f is not None]


def _frame_of_outputs(
    op: Operation, own: F, inner: dict[tuple[int, str], F], make: Callable[[str, F, int], F]
) -> F:
    if op.definition is ENTER:
        name = op.attrs["frame_name"]
        key = (id(own), name)
        if key not in inner:
            inner[key] = make(name, own, op.attrs["parallel_iterations"])
        return inner[key]
    if op.definition is EXIT:
        if own.parent is None:
            raise InvalidArgumentError(
                f"Exit {op.name!r} is outside of any loop",
                remedy="a loop's frame begins with enter",
                location=op.location,
                layer=op.layer,
            )
        return own.parent
    return own
