"""Coordinator: threads that stop together, and the first failure among them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeAlias

from ..errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    StillRunningError,
)

Failure: TypeAlias = (
    BaseException | tuple[type[BaseException], BaseException, TracebackType | None] | None
)

# How often `join` looks whether a thread has ended by itself, before a stop is requested.
_LOOK_SECONDS = 0.05


class Coordinator:
    """Ends a group of threads together.

    A thread asks `should_stop()` between two pieces of work, and calls `request_stop(error)` when
    it fails or is through. `join` waits for all and raises the first error.

        coord = Coordinator()
        threads = [Thread(target=work, args=(coord,)) for _ in range(4)]
        for t in threads: t.start()
        coord.join(threads)

    Args:
        clean_stop_exception_types: errors that mean the end of the work and are not raised by
            `join`; by default OutOfRangeError alone.

    Examples:
        >>> import threading
        >>> coordinator = engine.Coordinator()
        >>> def work():
        ...     while not coordinator.should_stop():
        ...         coordinator.request_stop()
        >>> thread = threading.Thread(target=work)
        >>> thread.start()
        >>> coordinator.join([thread])
    """

    # _stop is set exactly when a stop is requested and not cleared. _error is the first failure;
    # _threads are those registered; _on_stop is called when the stop is requested. All guarded by
    # _lock.

    def __init__(
        self, clean_stop_exception_types: Sequence[type[BaseException]] | None = None
    ) -> None:
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (OutOfRangeError,)
        self._clean = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._joined = False
        self._threads: list[threading.Thread] = []
        self._on_stop: dict[int, Callable[[], object]] = {}
        self._next_key = 0

    def __repr__(self) -> str:
        stops = "stops" if self.should_stop() else "runs"
        failed = "" if self._error is None else f", after {self._error!r}"
        return f"<Coordinator of {len(self._threads)} threads, {stops}{failed}>"

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._stop.is_set()

    def request_stop(self, ex: Failure = None) -> None:
        """Have all threads stop; later requests change nothing.

        Args:
            ex: why: an exception, or what `sys.exc_info()` gives. `join` raises it, unless it is a
                clean stop. After `join` nobody is left to raise it: it is raised here.
        """
        error = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            late = self._joined and error is not None and not isinstance(error, self._clean)
            first = not self._stop.is_set()
            if first and not late:
                if error is not None and not isinstance(error, self._clean):
                    self._error = error
                self._stop.set()
            callbacks = list(self._on_stop.values()) if first else []
            if first:
                self._on_stop.clear()
        for callback in callbacks:
            callback()
        if late and error is not None:
            raise error

    def clear_stop(self) -> None:
        """Start afresh: no stop is requested, no error is kept."""
        with self._lock:
            self._joined = False
            self._error = None
            self._stop.clear()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until a stop is requested; False when `timeout` seconds passed before."""
        return self._stop.wait(timeout)

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A block whose errors become `request_stop(error)`."""
        try:
            yield
        except Exception as error:
            self.request_stop(error)

    @contextmanager
    def calling_on_stop(self, callback: Callable[[], object]) -> Iterator[None]:
        """A block during which a stop calls `callback`, at once if it was requested already.

        For what would otherwise wait on: it is called by the thread that requests the stop.
        """
        with self._lock:
            stopped = self._stop.is_set()
            key = self._next_key
            self._next_key += 1
            if not stopped:
                self._on_stop[key] = callback
        if stopped:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._on_stop.pop(key, None)

    def register_thread(self, thread: threading.Thread) -> None:
        """Have `join` wait for `thread` too."""
        with self._lock:
            self._threads.append(thread)

    @property
    def joined(self) -> bool:
        """Whether `join` has returned since the last `clear_stop`."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raise the first failure, if there was one."""
        with self._lock:
            error = self._error
        if error is not None:
            raise error

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait for the registered threads and for `threads` to end.

        Waits until all have ended or a stop is requested, and from then on for the grace period.

        Args:
            threads: which, besides the registered ones.
            stop_grace_period_secs: how long a thread may take to end after the stop.
            ignore_live_threads: whether those that still run then are left alone.

        Raises:
            StillRunningError: a thread still runs after the grace period.
            Exception: the first failure that a thread reported.
        """
        if stop_grace_period_secs < 0:
            raise InvalidArgumentError(
                f"join: the grace period must not be negative, got {stop_grace_period_secs}"
            )
        with self._lock:
            waited = list(dict.fromkeys([*self._threads, *(threads or ())]))
        if threading.current_thread() in waited:
            raise FailedPreconditionError("join: a thread cannot wait for its own end")
        while not self.wait_for_stop(_LOOK_SECONDS):
            if not any(t.is_alive() for t in waited):
                break
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            if thread.is_alive():
                thread.join(max(deadline - time.monotonic(), 0))
        alive = [t.name for t in waited if t.is_alive()]
        with self._lock:
            self._joined = True
            self._threads.clear()
            error = self._error
        if error is not None:
            if alive and not ignore_live_threads:
                error.add_note(f"threads still run after the grace period: {', '.join(alive)}")
            raise error
        if alive and not ignore_live_threads:
            raise StillRunningError(
                f"{len(alive)} threads still run {stop_grace_period_secs} seconds after the stop: "
                f"{', '.join(alive)}",
                remedy="have them ask should_stop(), and close the queues they wait on",
            )


class LooperThread(threading.Thread):
    """Calls a function again and again until its coordinator stops.

    An error in it stops the coordinator. Derive from it and define `run_loop`, or give a `target`.

    Args:
        coord: asked before each call.
        timer_interval_secs: from one call to the next; None or 0 for no pause.
        target: the function.
        args, kwargs: its arguments.

    Examples:
        >>> coordinator = engine.Coordinator()
        >>> thread = engine.LooperThread.loop(coordinator, None, coordinator.request_stop)
        >>> coordinator.join([thread])
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise InvalidArgumentError(f"LooperThread: expected a Coordinator, got {coord!r}")
        if timer_interval_secs is not None and timer_interval_secs < 0:
            raise InvalidArgumentError(
                f"LooperThread: the interval must not be negative, got {timer_interval_secs}"
            )
        super().__init__(daemon=True, name="Looper")
        self._coord = coord
        self._interval = timer_interval_secs or 0.0
        self._function = target
        self._arguments = tuple(args)
        self._keywords = dict(kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """Start a thread that calls `target(*args, **kwargs)` until `coord` stops."""
        looper = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        """What the thread does: calls are due at fixed times; those that were missed are left."""
        with self._coord.stop_on_exception():
            self.start_loop()
            due = time.monotonic()
            while not self._coord.wait_for_stop(max(due - time.monotonic(), 0)):
                self.run_loop()
                due = max(due + self._interval, time.monotonic())
            self.stop_loop()

    def start_loop(self) -> None:
        """Called in the thread before the first call."""

    def stop_loop(self) -> None:
        """Called in the thread after the last call."""

    def run_loop(self) -> None:
        """One call."""
        if self._function is not None:
            self._function(*self._arguments, **self._keywords)
