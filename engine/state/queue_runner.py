"""QueueRunner: threads that keep a queue filled."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from ..cancellation import CancellationManager, cancelled_with
from ..errors import (
    ArgumentTypeError,
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
)
from ..graph import Operation, get_default_graph
from .collections import GraphKeys
from .coordinator import Coordinator
from .queues import QueueBase


class Session(Protocol):
    """What a runner needs of a session."""

    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        """Run operations."""


class QueueRunner:
    """Keeps a queue of a graph filled: one thread for each of its enqueue operations.

    A thread runs its operation until the coordinator stops or the input ends. When the last of
    them meets the end, the queue is closed: what is in it can still be taken, and then those who
    take get OutOfRangeError themselves. So the end of the input runs through all stages.

    Args:
        queue: the queue.
        enqueue_ops: what the threads run.
        close_op: closes the queue; by default `queue.close()`.
        cancel_op: closes it, and cancels enqueues that wait; by default
            `queue.close(cancel_pending_enqueues=True)`.
        queue_closed_exception_types: the errors that mean the end of the input.

    Raises:
        InvalidArgumentError: there is no operation to run, or they are not of the queue's graph.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     queue = engine.FIFOQueue(3, ["int32"], shapes=[()])
        ...     runner = engine.QueueRunner(queue, [queue.enqueue(7)])
        ...     threads = runner.create_threads(session, start=True)
        ...     session.run(queue.dequeue())
        np.int32(7)
    """

    # _running[id(session)] is the number of threads at work for a session, and _errors what they
    # failed with where there is no coordinator to report to; guarded by _lock.

    def __init__(
        self,
        queue: QueueBase,
        enqueue_ops: Sequence[Operation | None],
        close_op: Operation | None = None,
        cancel_op: Operation | None = None,
        queue_closed_exception_types: Sequence[type[BaseException]] = (OutOfRangeError,),
    ) -> None:
        ops = [op for op in enqueue_ops or () if isinstance(op, Operation)]
        if not ops or len(ops) < len(enqueue_ops):
            raise InvalidArgumentError(
                f"QueueRunner: expected enqueue operations of a graph, got {enqueue_ops!r}",
                remedy="build the queue and its enqueue inside `with graph.as_default()`",
            )
        types = tuple(queue_closed_exception_types)
        if not types or not all(isinstance(t, type) and issubclass(t, Exception) for t in types):
            raise ArgumentTypeError(
                f"QueueRunner: queue_closed_exception_types are classes of errors, got {types}"
            )
        self.queue = queue
        self.enqueue_ops = ops
        with ops[0].graph.as_default(), ops[0].graph.control_dependencies(None):
            self.close_op = close_op or queue.close()
            self.cancel_op = cancel_op or queue.close(cancel_pending_enqueues=True)
        self.queue_closed_exception_types = types
        self._lock = threading.Lock()
        self._running: dict[int, int] = {}
        self._errors: list[BaseException] = []

    @property
    def name(self) -> str:
        """The name of the queue."""
        return self.queue.name

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """What threads failed with that had no coordinator to tell."""
        with self._lock:
            return list(self._errors)

    def __repr__(self) -> str:
        return f"<QueueRunner of {self.queue!r}, {len(self.enqueue_ops)} threads>"

    def create_threads(
        self,
        sess: Session,
        coord: Coordinator | None = None,
        daemon: bool = False,
        start: bool = False,
    ) -> list[threading.Thread]:
        """One thread for each enqueue operation, and with a coordinator one that closes the queue.

        Args:
            sess: runs the operations.
            coord: is asked whether to stop, is given failures, and joins the threads.
            daemon: whether the program may end while they run.
            start: whether to start them.

        Returns:
            The threads; none when those of an earlier call still run in this session.

        Raises:
            FailedPreconditionError: they still run, and there is no coordinator to stop them.
        """
        key = id(sess)
        with self._lock:
            if self._running.get(key, 0):
                if coord is not None:
                    return []
                raise FailedPreconditionError(
                    f"the threads of the runner of {self.name!r} run already in this session"
                )
            self._running[key] = len(self.enqueue_ops)
            self._errors.clear()
        threads = [
            threading.Thread(
                target=self._fill, args=(sess, op, coord), name=f"runner {self.name} {op.name}"
            )
            for op in self.enqueue_ops
        ]
        if coord is not None:
            threads.append(
                threading.Thread(
                    target=self._close_on_stop, args=(sess, coord), name=f"closer {self.name}"
                )
            )
        for thread in threads:
            thread.daemon = daemon
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def run_once(self, sess: Session, enqueue_op: Operation) -> None:
        """What a thread does again and again."""
        sess.run(enqueue_op)

    def _fill(self, sess: Session, enqueue_op: Operation, coord: Coordinator | None) -> None:
        """What a thread does."""
        over = False
        # A stop cancels the step: it may wait for a queue that nobody closes.
        step = CancellationManager()
        stop: AbstractContextManager[None] = nullcontext()
        if coord is not None:
            stop = coord.calling_on_stop(lambda: step.cancel(CancelledError("the threads stop")))
        try:
            with stop, cancelled_with(step):
                while coord is None or not coord.should_stop():
                    self.run_once(sess, enqueue_op)
        except self.queue_closed_exception_types:
            over = True
        except Exception as error:
            stopping = coord is not None and coord.should_stop()
            if not (stopping and isinstance(error, CancelledError)):
                if coord is None:
                    with self._lock:
                        self._errors.append(error)
                else:
                    coord.request_stop(error)
        finally:
            with self._lock:
                left = self._running[id(sess)] = self._running[id(sess)] - 1
                if not left:
                    del self._running[id(sess)]
        if over and not left:
            self._run_quietly(sess, self.close_op)

    def _close_on_stop(self, sess: Session, coord: Coordinator) -> None:
        """What the closing thread does: it frees those who wait for room."""
        coord.wait_for_stop()
        self._run_quietly(sess, self.cancel_op)

    @staticmethod
    def _run_quietly(sess: Session, op: Operation | None) -> None:
        try:
            sess.run(op)
        except Exception:  # the session is closed: then so are its queues
            return


def add_queue_runner(runner: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """List a runner in its graph, for `start_queue_runners`.

    Args:
        runner: it belongs to the graph of its operations.
        collection: the name under which the graph lists it.

    Raises:
        ArgumentTypeError: it is no QueueRunner.

    Examples:
        >>> with engine.Graph().as_default():
        ...     queue = engine.FIFOQueue(3, ["int32"], shapes=[()])
        ...     engine.add_queue_runner(engine.QueueRunner(queue, [queue.enqueue(1)]))
        ...     len(engine.get_collection("queue_runners"))
        1
    """
    if not isinstance(runner, QueueRunner):
        raise ArgumentTypeError(f"add_queue_runner: expected a QueueRunner, got {runner!r}")
    runner.enqueue_ops[0].graph.add_to_collection(collection, runner)


def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Start the threads of all runners that the session's graph lists.

    Args:
        sess: runs them; by default the default session.
        coord: stops and joins them.
        daemon: whether the program may end while they run.
        start: whether to start the threads, or only to make them.
        collection: the list of runners.

    Raises:
        InvalidArgumentError: there is no session.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     number = engine.range_input_producer(3, shuffle=False).dequeue()
        ...     threads = engine.start_queue_runners(session)
        ...     session.run(number)
        np.int32(0)
    """
    if sess is None:
        sess = get_default_graph().session_for(None, "start_queue_runners")
    runners = sess.graph.get_collection(collection)
    threads: list[threading.Thread] = []
    for runner in runners:
        threads += runner.create_threads(sess, coord, daemon, start)
    return threads
