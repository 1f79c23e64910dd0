"""The state of a step: what has arrived where, and what can run next.

No threads here: whoever drives a `StepState` takes runnable nodes from `start` and `finish`, runs
their kernels, and reports the outputs. Operations that steer (ops/control/dataflow.py) are done
here.

A frame is entered from one iteration of the frame around it, and lives until all its iterations
have ended. An iteration holds, for the nodes of its frame:
    values[slot]: what has arrived, dropped after its last use (`uses` counts down);
    pending[node]: arrivals missing; a node is ready when it is 0, and is done once;
    dead: the nodes at which something dead has arrived: their outputs are dead, they do not run;
    merges[node]: for a Merge that has not passed anything on, how many values can still arrive;
    chosen[node]: the value that it passes on, and which input that is;
    active: how many nodes are ready and not finished, and how many frames were entered from here.
An iteration ends when it is the oldest of its frame, `active` is 0 and, for iteration 0, all
Enters have come. Then those held back by the limit of iterations in flight may start. A frame ends
with its last iteration, and the Exits that nothing came out of give something dead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidArgumentError
from ..ops.control.dataflow import DEAD
from .frames import (
    ENTER_NODE,
    EXIT_NODE,
    MERGE_NODE,
    NEXT_NODE,
    RUN_NODE,
    SWITCH_NODE,
    FrameLayout,
    FrameLayouts,
    NodeLayout,
)


class _Iteration:
    __slots__ = (
        "active",
        "chosen",
        "dead",
        "frame",
        "merges",
        "number",
        "pending",
        "uses",
        "values",
    )

    def __init__(self, frame: _Frame, number: int) -> None:
        layout = frame.layout
        self.frame = frame
        self.number = number
        self.values: list[Any] = [None] * layout.num_slots
        self.uses = layout.uses.copy()
        self.pending = layout.pending.copy()
        self.dead: set[int] = set()
        self.merges = {i: counts[number > 0] for i, counts in layout.merges.items()}
        self.chosen: dict[int, tuple[Any, int]] = {}
        self.active = 0
        for slot, value in layout.constants:
            self.values[slot] = value


class _Frame:
    """A loop under way.

    Attributes:
        origin: the iteration from which it was entered, None for the root.
        iterations: those that have not ended, by number, from `oldest` on.
        waiting_enters: how many Enters have not come.
        constants: what every iteration gets, with the Enter it came through.
        held_back: what is for iterations that may not start yet.
        left: the Exits that have given a value.
        frame_id: what names it on every device.
    """

    __slots__ = (
        "constants",
        "frame_id",
        "held_back",
        "iterations",
        "layout",
        "left",
        "oldest",
        "origin",
        "waiting_enters",
    )

    def __init__(self, layout: FrameLayout, origin: _Iteration | None) -> None:
        self.layout = layout
        self.origin = origin
        self.iterations: dict[int, _Iteration] = {}
        self.oldest = 0
        self.waiting_enters = layout.num_enters
        self.constants: list[tuple[NodeLayout, Any]] = []
        self.held_back: list[tuple[int, NodeLayout, Any]] = []
        self.left: set[int] = set()
        self.frame_id = 0
        if origin is not None:
            path = f"{origin.frame.frame_id};{origin.number};{layout.name}"
            digest = hashlib.blake2b(path.encode(), digest_size=7).digest()
            self.frame_id = int.from_bytes(digest, "little")


class Runnable(NamedTuple):
    """A node to be run, in an iteration."""

    node: NodeLayout
    iteration: _Iteration

    @property
    def frame_iter(self) -> tuple[int, int]:
        """What names the iteration on every device."""
        return self.iteration.frame.frame_id, self.iteration.number


class StepState:
    """A run of a layout; see the head of this file.

    Args:
        layout: what runs.
        feeds: values, in its order.
    """

    def __init__(self, layout: FrameLayouts, feeds: Sequence[Any]) -> None:
        self._layout = layout
        # By the iteration (its frame's id() and number) and the layout of the frame entered there.
        self._frames: dict[tuple[int, int, int], _Frame] = {}
        frame = _Frame(layout.root, None)
        self._root = frame.iterations[0] = _Iteration(frame, 0)
        self._root.values[: len(feeds)] = feeds
        self._ready: list[Runnable] = []

    @property
    def num_frames(self) -> int:
        """How many loops are under way."""
        return len(self._frames)

    def start(self) -> list[Runnable]:
        """What can run at once."""
        self._begin(self._root)
        for node in self._layout.sources:
            self._make_ready(node, self._root)
        return self._advance()

    def arguments(self, item: Runnable) -> list[Any]:
        """The inputs of a runnable node; DEAD for all of them if it runs in spite of that."""
        node, iteration = item
        if node.index in iteration.dead:
            return [DEAD] * len(node.inputs)
        values = iteration.values
        return [values[slot] for slot in node.inputs]

    def finish(self, item: Runnable, outputs: Sequence[Any]) -> list[Runnable]:
        """Report what a node gave, DEAD for what is dead; tells what can run now."""
        node, iteration = item
        dead = bool(outputs) and all(y is DEAD for y in outputs)
        self._drop_inputs(node, iteration)
        self._emit(node, iteration, outputs, dead)
        self._release(iteration)
        return self._advance()

    def fetched(self) -> list[Any]:
        """The values of the fetches, after everything has run.

        Raises:
            InvalidArgumentError: one is dead.
        """
        values = [self._root.values[slot] for slot in self._layout.fetches]
        for value, y in zip(values, self._layout.fetched, strict=True):
            if value is DEAD:
                raise InvalidArgumentError(
                    f"{y.name} has no value in this run: it is on a branch that was not taken",
                    remedy="fetch what merges the branches",
                    location=y.op.location,
                )
        return values

    # Arrivals

    def _begin(self, iteration: _Iteration) -> None:
        """Bring what is given to the Merges of a new iteration."""
        for node, slot, always in iteration.frame.layout.at_once:
            if always or iteration.number == 0:
                self._arrive_at_merge(node, iteration, slot, iteration.values[slot])

    def _emit(
        self, node: NodeLayout, iteration: _Iteration, outputs: Sequence[Any], dead: bool
    ) -> None:
        """Give what a node made to those that wait for it in an iteration of its `inner` frame."""
        for slot, targets, value in zip(node.outputs, node.targets, outputs, strict=True):
            if slot >= 0:
                self._deliver(iteration, slot, targets, value)
        for target in node.controls:
            self._arrive(target, iteration, dead)

    def _deliver(
        self, iteration: _Iteration, slot: int, targets: Sequence[NodeLayout], value: Any
    ) -> None:
        if iteration.uses[slot]:
            iteration.values[slot] = value
        for target in targets:
            if target.kind == MERGE_NODE:
                self._arrive_at_merge(target, iteration, slot, value)
            else:
                self._arrive(target, iteration, value is DEAD)

    def _arrive(self, node: NodeLayout, iteration: _Iteration, dead: bool) -> None:
        i = node.index
        iteration.pending[i] -= 1
        if node.kind == MERGE_NODE:  # by a control edge: what waits does not decide what is passed
            self._pass_on(node, iteration)
            return
        if dead:
            iteration.dead.add(i)
        if not iteration.pending[i]:
            self._make_ready(node, iteration)

    def _arrive_at_merge(
        self, node: NodeLayout, iteration: _Iteration, slot: int, value: Any
    ) -> None:
        i = node.index
        if i not in iteration.merges:
            return  # another value was first
        iteration.merges[i] -= 1
        if value is not DEAD and i not in iteration.chosen:
            iteration.chosen[i] = (value, node.inputs.index(slot))
        self._pass_on(node, iteration)

    def _pass_on(self, node: NodeLayout, iteration: _Iteration) -> None:
        """Have a Merge done if what it waits for is there."""
        i = node.index
        left = iteration.merges.get(i)
        if left is None or iteration.pending[i] or (left and i not in iteration.chosen):
            return
        del iteration.merges[i]
        self._make_ready(node, iteration)

    def _make_ready(self, node: NodeLayout, iteration: _Iteration) -> None:
        iteration.active += 1
        self._ready.append(Runnable(node, iteration))

    def _drop_inputs(self, node: NodeLayout, iteration: _Iteration) -> None:
        uses, values = iteration.uses, iteration.values
        for slot in node.inputs:
            uses[slot] -= 1
            if not uses[slot]:
                values[slot] = None

    # Steering

    def _advance(self) -> list[Runnable]:
        """Do what needs no kernel; gives what does."""
        runnable = []
        while self._ready:
            batch, self._ready = self._ready, []
            for item in batch:
                node, iteration = item
                dead = node.index in iteration.dead
                if node.kind == RUN_NODE and (not dead or node.dead_runs):
                    runnable.append(item)
                    continue
                self._steer(node, iteration, dead)
                self._release(iteration)
        return runnable

    def _steer(self, node: NodeLayout, iteration: _Iteration, dead: bool) -> None:
        if node.kind == MERGE_NODE:
            value, place = iteration.chosen.pop(node.index, (DEAD, 0))
            nothing = value is DEAD
            number = DEAD if nothing else np.asarray(place, np.int32)
            self._emit(node, iteration, (value, number), nothing)
            return
        values = [DEAD if dead else iteration.values[slot] for slot in node.inputs]
        self._drop_inputs(node, iteration)
        if node.kind == RUN_NODE:
            self._emit(node, iteration, [DEAD] * len(node.outputs), True)
        elif node.kind == SWITCH_NODE:
            if dead:
                self._emit(node, iteration, (DEAD, DEAD), True)
            else:
                data, pred = values
                self._emit(node, iteration, (DEAD, data) if pred else (data, DEAD), False)
        elif node.kind == ENTER_NODE:
            self._enter(node, iteration, values[0])
        elif node.kind == EXIT_NODE:
            if not dead:
                iteration.frame.left.add(node.index)
                origin = iteration.frame.origin
                assert origin is not None
                self._emit(node, origin, values, False)
        elif node.kind == NEXT_NODE and not dead:
            self._go_on(iteration.frame, iteration.number + 1, node, values[0])

    def _enter(self, node: NodeLayout, origin: _Iteration, value: Any) -> None:
        key = (id(origin.frame), origin.number, id(node.inner))
        frame = self._frames.get(key)
        if frame is None:
            frame = self._frames[key] = _Frame(node.inner, origin)
            frame.iterations[0] = _Iteration(frame, 0)
            origin.active += 1
            self._begin(frame.iterations[0])
        frame.waiting_enters -= 1
        if node.op.attrs["is_constant"]:
            frame.constants.append((node, value))
            there = list(frame.iterations.values())
        else:
            there = [frame.iterations[0]] if 0 in frame.iterations else []
        for iteration in there:
            self._emit(node, iteration, (value,), value is DEAD)
        self._end_iterations(frame)

    def _go_on(self, frame: _Frame, number: int, node: NodeLayout, value: Any) -> None:
        """Bring a value from a NextIteration into an iteration."""
        iteration = frame.iterations.get(number)
        if iteration is None:
            if number >= frame.oldest + frame.layout.parallel:
                frame.held_back.append((number, node, value))
                return
            iteration = frame.iterations[number] = _Iteration(frame, number)
            self._begin(iteration)
            for enter, constant in frame.constants:
                self._emit(enter, iteration, (constant,), constant is DEAD)
        self._emit(node, iteration, (value,), False)

    # Endings

    def _release(self, iteration: _Iteration) -> None:
        iteration.active -= 1
        if not iteration.active:
            self._end_iterations(iteration.frame)

    def _end_iterations(self, frame: _Frame) -> None:
        """End the oldest iterations as far as nothing is left in them, and then the frame."""
        origin = frame.origin
        if origin is None:
            return
        while (oldest := frame.iterations.get(frame.oldest)) is not None:
            if oldest.active or (frame.oldest == 0 and frame.waiting_enters):
                return
            del frame.iterations[frame.oldest]
            frame.oldest += 1
            held, frame.held_back = frame.held_back, []
            for number, node, value in held:
                self._go_on(frame, number, node, value)
        if self._frames.pop((id(origin.frame), origin.number, id(frame.layout)), None) is None:
            return
        for node in frame.layout.exits:
            if node.index not in frame.left:
                self._emit(node, origin, (DEAD,), True)
        self._release(origin)
