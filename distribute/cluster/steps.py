"""The steps that a worker takes part in.

State of `Steps`, guarded by `_lock`:
    _steps[id]: a step that has begun here, or that another task has asked for already;
    _ended: the ids of those that are over, the last `_REMEMBERED` of them: what comes for one of
        these comes too late, or a second time.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from laminar.engine.cancellation import CancellationManager
from laminar.engine.errors import AbortedError, LaminarError, ResourceExhaustedError
from laminar.engine.ops.state.undo import UndoLog
from laminar.engine.runtime import NodeStats
from laminar.engine.runtime.rendezvous import Arrival, Receiver, RendezvousKey

from .remote_rendezvous import RemoteRendezvous

_REMEMBERED = 10_000
_MOST = 10_000  # steps at a time


class WorkerStep:
    """A step in one task.

    Attributes:
        rendezvous: where its parts meet those of other tasks.
        undo: what it has stored in variables here.
        session: the handle of its session, "" before it has begun here.
        cancellation: of what runs here, None before it has begun.
        transfers: what came from other tasks, None where nobody traces the step.
        asked: when it was first heard of, in seconds of the monotonic clock.
    """

    def __init__(self, rendezvous: RemoteRendezvous) -> None:
        self.rendezvous = rendezvous
        self.undo = UndoLog()
        self.session = ""
        self.cancellation: CancellationManager | None = None
        self.transfers: list[NodeStats] | None = None
        self.asked = time.monotonic()

    def traced(self, key: RendezvousKey, done: Receiver) -> Receiver:
        """A receiver that notes, in a step that is traced, how long it has waited from now on.

        The tensor has been on its way since then, or since its Send has ended in the other task.
        """
        start, notes = time.time_ns(), self.transfers
        assert notes is not None

        def arrived(arrival: Arrival) -> None:
            spent = (time.time_ns() - start) * 1e-3
            nbytes = int(getattr(arrival.value, "nbytes", 0))
            thread = threading.get_ident()
            notes.append(
                NodeStats(key.tensor_name, "RecvTensor", start * 1e-3, spent, nbytes, thread)
            )
            done(arrival)

        return arrived


class Steps:
    """The table of steps.

    Args:
        make: makes the rendezvous of a step.
        forget: what has a step's tensors on their way elsewhere is told when it ends.
    """

    def __init__(self, make: Callable[[], RemoteRendezvous], forget: Callable[[int], None]) -> None:
        self._make = make
        self._forget = forget
        self._lock = threading.Lock()
        self._steps: dict[int, WorkerStep] = {}
        self._ended: OrderedDict[int, None] = OrderedDict()

    def get(self, step_id: int) -> WorkerStep:
        """A step, which may not have begun here yet.

        Raises:
            AbortedError: it is over.
            ResourceExhaustedError: there are too many.
        """
        with self._lock:
            return self._get(step_id)

    def begin(self, step_id: int, session: str, cancellation: CancellationManager) -> WorkerStep:
        """A step that begins here.

        Raises:
            AbortedError: it has begun here before, or is over.
        """
        with self._lock:
            step = self._get(step_id)
            if step.session:
                raise AbortedError(f"step {step_id:x} was asked for twice, and runs once")
            step.session, step.cancellation = session, cancellation
            return step

    def _get(self, step_id: int) -> WorkerStep:
        step = self._steps.get(step_id)
        if step is None:
            if step_id in self._ended:
                raise AbortedError(f"step {step_id:x} is over", remedy="run a new step")
            if len(self._steps) >= _MOST:
                raise ResourceExhaustedError(f"the worker has {_MOST} steps at a time")
            step = self._steps[step_id] = WorkerStep(self._make())
        return step

    def end(self, step_id: int, error: LaminarError | None = None) -> None:
        """A step is over: with an error, what it stored here is taken back."""
        with self._lock:
            step = self._steps.pop(step_id, None)
            self._ended[step_id] = None
            while len(self._ended) > _REMEMBERED:
                self._ended.popitem(last=False)
        if step is not None and error is not None:
            if step.cancellation is not None:
                step.cancellation.cancel(error)
            step.rendezvous.abort(error)
            step.undo.undo()
        self._forget(step_id)

    def end_session(self, session: str, error: LaminarError) -> None:
        """A session is over, and with it what runs of its steps; what is done stays done."""
        with self._lock:
            found = {i: s for i, s in self._steps.items() if s.session == session}
        for step in found.values():
            if step.cancellation is not None:
                step.cancellation.cancel(error)
            step.rendezvous.abort(error)
        for step_id in found:
            self.end(step_id)

    def drop_unbegun(self, seconds: float) -> None:
        """Forget steps that others have asked for so long ago, and that never began."""
        before = time.monotonic() - seconds
        with self._lock:
            old = [i for i, s in self._steps.items() if not s.session and s.asked < before]
        for step_id in old:
            self.end(step_id, AbortedError(f"step {step_id:x} did not begin in {seconds} s"))

    def __len__(self) -> int:
        return len(self._steps)
