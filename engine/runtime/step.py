"""The machine as the kernels of a step see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..cancellation import CancellationManager, scope_manager
from ..errors import LaminarError
from ..ops.core.kernels import HOST
from ..ops.state.undo import UndoLog
from .call_frame import CallFrame
from .pool import InterOpThreads
from .rendezvous import Rendezvous


class StepContext:
    """What a kernel with effects is called with.

    Args:
        get: gives resources by container and name; without it each is a new one.
        cancellation: cancelled when the step, or what it belongs to, is to stop.

    Attributes:
        frame_iter: for ops that ask for it (`tagged`), the frame of the innermost loop and the
            iteration in it; (0, 0) outside of loops. All devices that run a loop give it one frame.
        runner: what runs the step's plans; None for the plans themselves (see tracing.py).
        inner_runner: likewise, of the graphs inside of its operations.
        inter_op: the threads that may run its operations side by side, None for the process's.
        frame: the slots of `_Arg` and `_Retval`, where there are some.
        files: gives the path of a file or folder, or raises if the step may not touch it.
        rendezvous: where the parts of the step meet, None for one of the step's own.
        undo: notes what the step stores in variables before something that may fail; None where
            it stores nothing so, or nobody takes it back.
    """

    xp = HOST
    frame_iter = (0, 0)
    cancellation = CancellationManager()
    runner: Callable[[Any, StepContext, Sequence[Any]], list[Any]] | None = None
    inner_runner: Callable[[Any, StepContext, Sequence[Any]], list[Any]] | None = None
    inter_op: InterOpThreads = None
    frame: CallFrame | None = None
    rendezvous: Rendezvous | None = None
    undo: UndoLog | None = None

    def __init__(
        self,
        get: Callable[[str, str, Callable[[], Any]], Any] | None = None,
        cancellation: CancellationManager | None = None,
    ) -> None:
        self._get = get
        self.files: Callable[[str], str] = str
        if cancellation is not None:
            self.cancellation = cancellation

    @property
    def cancelled(self) -> LaminarError | None:
        """Why the step is to stop, None while it is to go on."""
        return self.cancellation.error

    def resource(self, container: str, name: str, make: Callable[[], Any]) -> Any:
        """The resource of that name; without containers, one of its own."""
        return make() if self._get is None else self._get(container, name, make)

    def step(self) -> StepContext:
        """This context for one step, which can be cancelled alone; close its `cancellation`."""
        made = self._copy()
        made.cancellation = CancellationManager(self.cancellation, scope_manager())
        return made

    @contextmanager
    def undoing(self) -> Iterator[StepContext]:
        """This context for a step whose updates are taken back if the block fails."""
        made = self._copy()
        log = made.undo = UndoLog()
        try:
            yield made
        except BaseException:
            log.undo()
            raise

    def at(self, frame_iter: tuple[int, int]) -> StepContext:
        """This context for one iteration of a loop."""
        if frame_iter == self.frame_iter:
            return self
        made = self._copy()
        made.frame_iter = frame_iter
        return made

    def _copy(self) -> StepContext:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made
