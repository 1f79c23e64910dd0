"""A run that decides as it goes what can run next: kernels that wait, loops, several threads.

State of a `DataflowRun`, guarded by `_changed`:
    _state: what has arrived where (stepping.py);
    _ready: what can run and has not begun;
    _costly: what of that is expensive. It comes last: something expensive may wait for what is
        cheap, in another thread or, behind a Send, on another device, and then run beside it;
    _is_waiting: whether the thread that waits for the run has nothing to do;
    _outstanding: how many nodes are ready, running, or waiting for their kernels to end;
    _error: the first error; after it nothing begins any more;
    _helpers: how many threads of the pool work on this run, besides the one that waits for it.
A node ends once: `_Done` of an asynchronous kernel ensures it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import CancelledError, InternalError, LaminarError
from ..ops.core.dispatch import as_array
from ..ops.core.failures import located
from ..passes import is_expensive
from .frames import FrameLayouts
from .node import Node
from .pool import inter_op_pool
from .step import StepContext
from .step_state import Runnable, StepState


class _Done:
    """What an asynchronous kernel calls when it has ended."""

    __slots__ = ("_ended", "_item", "_run")

    def __init__(self, run: DataflowRun, item: Runnable) -> None:
        self._run = run
        self._item = item
        self._ended = threading.Lock()

    def __call__(self, result: Any) -> None:
        """The kernel has ended with its outputs."""
        if not self._ended.acquire(blocking=False):
            raise self._run.ended_twice(self._item)
        self._run.complete(self._item, result)

    def fail(self, error: BaseException) -> None:
        """The kernel has ended with an error."""
        if not self._ended.acquire(blocking=False):
            raise self._run.ended_twice(self._item)
        self._run.fail(self._item, error)

    def raised(self, error: Exception) -> None:
        """The kernel has raised, perhaps after it had ended."""
        if self._ended.acquire(blocking=False):
            self._run.fail(self._item, error)
        else:
            self._run.blame(self._item, error)


class DataflowRun:
    """One run of a plan; see the head of this file.

    Args:
        nodes: those of the plan.
        layout: what waits for what.
        context: the machine.
        feeds: values, in the plan's order.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        layout: FrameLayouts,
        context: StepContext,
        feeds: Sequence[Any],
    ) -> None:
        self._nodes = nodes
        self._context = context.step()
        self._state = StepState(layout, feeds)
        self._changed = threading.Condition(threading.Lock())
        self._ready: deque[Runnable] = deque()
        self._costly: deque[Runnable] = deque()
        self._pool = inter_op_pool(context)
        self._is_waiting = False
        self._outstanding = 0
        self._error: BaseException | None = None
        self._helpers = 0

    def wait(self) -> list[Any]:
        """Run to the end, working in this thread; gives the fetches.

        Raises:
            LaminarError: the first error. Everything that had begun has ended.
        """
        cancellation = self._context.cancellation
        if cancellation.register(self._cancelled) is None:
            assert cancellation.error is not None
            raise cancellation.error
        with self._changed:
            self._add(self._state.start())
        try:
            while True:
                self._work()
                with self._changed:
                    while not self._ready and not self._costly and self._outstanding:
                        self._is_waiting = True
                        self._changed.wait()
                    self._is_waiting = False
                    if not self._outstanding:
                        break
        except BaseException as error:  # an interrupt of the thread that waits
            cancellation.cancel(CancelledError(f"the step was interrupted: {error!r}"))
            with self._changed:  # what others run may still store something
                while self._helpers:
                    self._changed.wait()
            raise
        finally:
            cancellation.close()
        if self._error is not None:
            raise self._error
        return self._state.fetched()

    def _add(self, items: Sequence[Runnable]) -> None:
        """Take what can run now; under the lock."""
        self._outstanding += len(items)
        for item in items:
            (self._costly if is_expensive(item.node.op) else self._ready).append(item)

    def _work(self) -> None:
        """Run what is ready, until nothing is."""
        while True:
            with self._changed:
                if self._ready:
                    item = self._ready.popleft()
                elif self._costly:
                    item = self._costly.popleft()
                    self._call_for_help()
                else:
                    return
            self._run(item)

    def _call_for_help(self) -> None:
        """Have a thread of the pool do what is ready and expensive; under the lock."""
        pool = self._pool
        if pool is None or not self._costly or self._helpers >= pool._max_workers:
            return
        self._helpers += 1
        try:
            pool.submit(self._help)
        except RuntimeError:  # the pool was replaced by another one just now
            self._helpers -= 1

    def _help(self) -> None:
        try:
            with np.errstate(all="ignore"):  # IEEE values are the result; nothing is printed
                self._work()
        finally:
            with self._changed:
                self._helpers -= 1
                self._changed.notify_all()

    def _run(self, item: Runnable) -> None:
        node = self._nodes[item.node.number]
        arguments = self._state.arguments(item)
        context = self._context
        if node.definition.tagged:
            context = context.at(item.frame_iter)
        if node.waits:
            done = _Done(self, item)
            try:
                node.call(context, done, *arguments)
            except Exception as cause:
                done.raised(cause)
            return
        try:
            result = node.call(*([context] if node.needs_context else []), *arguments)
        except Exception as cause:
            del arguments
            self.fail(item, cause)
            return
        del arguments
        self.complete(item, result)

    def complete(self, item: Runnable, result: Any) -> None:
        """A node has ended with its outputs."""
        count = len(item.node.outputs)
        outputs = [as_array(result)] if count == 1 else [as_array(y) for y in result]
        if len(outputs) != count:
            self.fail(item, InternalError(f"a kernel gave {len(outputs)} outputs, not {count}"))
            return
        with self._changed:
            self._outstanding -= 1
            if self._error is None:
                self._add(self._state.finish(item, outputs))
                if self._nodes[item.node.number].waits and not self._is_waiting:
                    self._call_for_help()  # those who work may be busy for long
            self._changed.notify_all()

    def fail(self, item: Runnable, cause: BaseException) -> None:
        """A node has ended with an error: the first one is kept, and the rest of the step stops."""
        self._stop(self._located(item, cause), ended=1)

    def ended_twice(self, item: Runnable) -> InternalError:
        """The error of a kernel that ends a second time; it is the step's, while that goes on."""
        error = InternalError("an asynchronous kernel ended twice")
        self.blame(item, error)
        return error

    def blame(self, item: Runnable, cause: BaseException) -> None:
        """Stop the step because of a node that has ended already."""
        self._stop(self._located(item, cause), ended=0)

    def _located(self, item: Runnable, cause: BaseException) -> BaseException:
        if not isinstance(cause, Exception) or getattr(cause, "operation", None) is not None:
            return cause
        if cause is self._context.cancelled:
            return cause  # the step was stopped from outside, the operation is not to blame
        error = located(item.node.op, self._state.arguments(item), cause)
        error.__cause__ = cause
        return error

    def _cancelled(self, error: LaminarError) -> None:
        self._stop(error, ended=0)

    def _stop(self, error: BaseException, *, ended: int) -> None:
        with self._changed:
            self._outstanding -= ended
            first = self._error is None
            if first:
                self._error = error
            self._outstanding -= len(self._ready) + len(self._costly)
            self._ready.clear()
            self._costly.clear()
            self._changed.notify_all()
        if first:
            reason = error if isinstance(error, LaminarError) else CancelledError(repr(error))
            self._context.cancellation.cancel(reason)
