"""A step that is fed and fetched bit by bit.

The step runs once, in a thread of its own, on a client graph: an operation that takes a fed tensor
waits, without holding a thread, until the feed is there.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import CancelledError, InvalidArgumentError
from ..graph import GraphTensor, Operation
from ..passes import client_graph, needed_operations, other_reads
from .call_frame import CallFrame
from .partitioned import Machine
from .step import StepContext
from .targets import Element
from .workers import WORKERS


class DirectPartialStep:
    """One step; see `PartialStep`.

    Args:
        machine: makes the plan.
        context: of the session.
        elements: all that will be fetched.
        feeds: all that will be fed.
        given: tensors that are given at once, as `values`.
        fetched: makes what the user gets of a tensor and its value.
    """

    def __init__(
        self,
        machine: Machine,
        context: StepContext,
        elements: Sequence[Element],
        feeds: Sequence[GraphTensor],
        given: Sequence[GraphTensor],
        values: Sequence[Any],
        fetched: Callable[[GraphTensor, Any], Any],
    ) -> None:
        elements = list({id(e): e for e in elements}.values())
        self._slots = {id(e): i for i, e in enumerate(elements)}
        self._feeds = {id(t): i for i, t in enumerate(feeds)}
        self._names = [t.name for t in feeds]
        self._fetched = fetched
        self._lock = threading.Lock()
        self._needs = [_needed_feeds(e, feeds, given) for e in elements]
        self._frame = frame = CallFrame(
            [t.dtype for t in feeds],
            [e.dtype if isinstance(e, GraphTensor) else None for e in elements],
        )
        plan = machine.plan(client_graph(elements, feeds, given))
        step = context.step()
        step.frame = frame

        def run() -> None:
            try:
                plan.run(values, step)
            except BaseException as error:  # it is raised where the results are waited for
                frame.end(error)
            else:
                frame.end()
            finally:
                step.cancellation.close()

        WORKERS.start(run)
        cancelled = CancelledError("the partial run was dropped")
        weakref.finalize(self, step.cancellation.cancel, cancelled).atexit = False

    def run(
        self, elements: Sequence[Element], feeds: Sequence[GraphTensor], values: Sequence[Any]
    ) -> list[Any]:
        """Give it some feeds, wait for some fetches; None for an operation."""
        frame = self._frame
        with self._lock:
            wanted = self._check(elements, feeds)
            for t, value in zip(feeds, values, strict=True):
                frame.set_arg(self._feeds[id(t)], value)
        found = dict(zip(wanted, frame.consume_retvals(wanted), strict=True))
        return [
            self._fetched(e, found[self._slots[id(e)]]) if isinstance(e, GraphTensor) else None
            for e in elements
        ]

    def _check(self, elements: Sequence[Element], feeds: Sequence[GraphTensor]) -> list[int]:
        """The slots of the fetches; nothing has changed when it raises."""
        coming = set()
        for t in feeds:
            i = self._feeds.get(id(t))
            if i is None:
                raise InvalidArgumentError(
                    f"{t.name} was not set up to be fed", remedy="name it in partial_run_setup"
                )
            if self._frame.has_arg(i):
                raise InvalidArgumentError(f"{t.name} was fed to this partial run before")
            coming.add(i)
        wanted: dict[int, None] = {}
        for e in elements:
            slot = self._slots.get(id(e))
            if slot is None:
                raise InvalidArgumentError(
                    f"{e.name} was not set up to be fetched", remedy="name it in partial_run_setup"
                )
            missing = [
                i for i in self._needs[slot] if i not in coming and not self._frame.has_arg(i)
            ]
            if missing:
                names = ", ".join(self._names[i] for i in missing)
                raise InvalidArgumentError(
                    f"{e.name} needs {names}, not fed so far", remedy="feed it in this call"
                )
            wanted[slot] = None
        return list(wanted)


def _needed_feeds(
    element: Element, feeds: Sequence[GraphTensor], given: Sequence[GraphTensor]
) -> list[int]:
    """Which feeds an element is computed from."""
    tensors = [element] if isinstance(element, GraphTensor) else []
    targets = [element] if isinstance(element, Operation) else []
    taken = {id(t) for t in tensors}
    same = other_reads(feeds)
    for op in needed_operations(tensors, targets, [*feeds, *given], same):
        taken |= {id(x) for x in op.inputs}
    taken |= {id(fed) for other, fed in same.items() if other in taken}
    return [i for i, t in enumerate(feeds) if id(t) in taken]
