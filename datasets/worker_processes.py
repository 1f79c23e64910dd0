"""Batches made by several processes, in order.

Each worker has a pipe of its own and works on one batch at a time. What travels is numbers, texts
and arrays as `codec` writes them: nothing that is received can run code. Nothing is shared that a
dying worker could leave locked, so whatever happens to one is noticed by the end of its pipe.

    to a worker: uint64 number of a batch
    from it: when it began and ended, and b"B" and the batch, or b"E" and JSON about an error
"""

from __future__ import annotations

import builtins
import contextlib
import json
import multiprocessing
import os
import random
import signal
import struct
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Final

import numpy as np

from laminar.engine import errors
from laminar.engine.errors import AbortedError, DeadlineExceededError, LaminarError
from laminar.engine.timeline import Event, Recording, now

from .codec import decode, encode
from .epochs import Epoch, generator

_INDEX: Final = struct.Struct("<Q")
_TIMES: Final = struct.Struct("<qq")  # nanoseconds, of a clock that all processes have
# How long workers are given to end by themselves, and then after they are told to.
_GRACE_SECONDS: Final = 1.0
# How often a worker without work looks whether its parent still lives.
_LOOK_SECONDS: Final = 5.0


class WorkerProcesses(Iterator[Any]):
    """`make(index)` for each index, by processes that work ahead. To be used by one thread.

    `_asked` maps a worker's pipe to the index that it works on; `_done` holds batches that came
    before their turn.

    Args:
        make: makes a batch; it and what it needs is copied to the workers when they start.
        indices: of the batches, in the order in which they are wanted.
        workers: the number of processes.
        ahead: how many batches wait or are made at most.
        timeout: seconds that a batch is waited for; None for any time.
        seed: of the random numbers of the workers, with `walk` and the index.
    """

    def __init__(
        self,
        make: Callable[[int], Any],
        indices: Iterator[int],
        workers: int,
        ahead: int,
        timeout: float | None,
        seed: int,
        walk: Epoch,
    ) -> None:
        self._indices = indices
        self._ahead = max(ahead, workers)
        self._timeout = timeout
        self._workers: dict[Connection, Any] = {}
        self._idle: list[Connection] = []
        self._asked: dict[Connection, int] = {}
        self._wanted: list[int] = []  # indices asked for and not yet handed out, in order
        self._done: dict[int, Any] = {}
        context = multiprocessing.get_context()
        with _interrupt_waits():
            for _ in range(workers):
                ours, theirs = context.Pipe()
                # A forked worker has copies of our ends, which would hide that we have closed them.
                ends = [*self._workers, ours] if context.get_start_method() == "fork" else []
                arguments = (theirs, ends, make, seed, walk, os.getpid())
                worker = context.Process(
                    target=_serve, args=arguments, name="laminar-data", daemon=True
                )
                with warnings.catch_warnings():
                    # Of forking beside threads: a worker runs the user's code alone, and one that
                    # hangs in it is noticed.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    worker.start()
                theirs.close()
                self._workers[ours] = worker
                self._idle.append(ours)

    def __next__(self) -> Any:
        self._ask()
        if not self._wanted:
            self.close()
            raise StopIteration
        index = self._wanted[0]
        end = None if self._timeout is None else time.monotonic() + self._timeout
        while index not in self._done:
            self._receive(index, end)
            self._ask()
        self._wanted.pop(0)
        result = self._done.pop(index)
        if isinstance(result, BaseException):
            raise result
        return result

    def _ask(self) -> None:
        """Give work to the idle, as long as there is some and room for its results."""
        while self._idle and len(self._wanted) < self._ahead:
            index = next(self._indices, None)
            if index is None:
                return
            pipe = self._idle.pop()
            with contextlib.suppress(OSError):  # a dead worker shows when its answer is waited for
                pipe.send_bytes(_INDEX.pack(index))
            self._asked[pipe] = index
            self._wanted.append(index)

    def _receive(self, index: int, end: float | None) -> None:
        """Take what has come, or wait for it until `end`."""
        left = None if end is None else end - time.monotonic()
        ready = wait(list(self._asked), left) if left is None or left > 0 else []
        if not ready:
            raise DeadlineExceededError(
                f"batch {index} was not ready after {self._timeout:g} s",
                remedy="look for what it waits for, or give PyDataset a longer timeout",
            )
        for pipe in ready:
            assert isinstance(pipe, Connection)
            asked = self._asked.pop(pipe)
            try:
                answer = pipe.recv_bytes()
            except (EOFError, OSError):
                raise self._death(pipe, asked) from None
            began, ended = _TIMES.unpack_from(answer)
            timeline = Recording.active
            if timeline is not None:
                worker = self._workers[pipe].pid
                name, device = f"make batch {asked}", f"input worker {worker}"
                timeline.add(Event(name, "data", began, ended, worker, device))
            self._done[asked] = _read(answer, asked)
            self._idle.append(pipe)

    def _death(self, pipe: Connection, index: int) -> AbortedError:
        worker = self._workers[pipe]
        worker.join(_GRACE_SECONDS)
        code = worker.exitcode
        how = f"signal {signal.Signals(-code).name}" if code and code < 0 else f"exit status {code}"
        return AbortedError(
            f"the worker process {worker.pid} ended ({how}) while it made batch {index}",
            remedy="it may have run out of memory, or crashed in native code: try workers=1",
        )

    def close(self) -> None:
        """End the processes, by force those that do not end by themselves."""
        workers, self._workers = self._workers, {}
        for pipe in workers:
            pipe.close()
        self._idle.clear()
        self._asked.clear()
        self._wanted.clear()
        self._done.clear()
        end = time.monotonic() + _GRACE_SECONDS
        for worker in workers.values():
            worker.join(max(0.0, end - time.monotonic()))
        for stop in ("terminate", "kill"):
            alive = [w for w in workers.values() if w.exitcode is None]
            for worker in alive:
                getattr(worker, stop)()
            end = time.monotonic() + _GRACE_SECONDS
            for worker in alive:
                worker.join(max(0.0, end - time.monotonic()))

    def __del__(self) -> None:
        if getattr(self, "_workers", None):
            self.close()


@contextlib.contextmanager
def _interrupt_waits() -> Iterator[None]:
    """Let a SIGINT come when the block ends: what a callback of a fork raises, Python drops."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is None:  # a handler that is not Python's
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        signal.raise_signal(signal.SIGINT)


def _serve(
    pipe: Connection,
    ends: list[Connection],
    make: Callable[[int], Any],
    seed: int,
    walk: Epoch,
    parent: int,
) -> None:
    """The work of a worker, which ends when the other end of its pipe is closed."""
    for end in ends:
        end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's matter, which ends us
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            while not pipe.poll(_LOOK_SECONDS):
                if os.getppid() != parent:
                    return
            (index,) = _INDEX.unpack(pipe.recv_bytes())
            numbers = generator(seed, (*walk, index)).integers(2**32, size=2)
            random.seed(int(numbers[0]))
            np.random.seed(int(numbers[1]))
            start = now()
            try:
                kind, answer = b"B", encode(make(index), "PyDataset")
            except BaseException as error:
                kind, answer = b"E", json.dumps(_about(error)).encode()
            pipe.send_bytes(_TIMES.pack(start, now()) + kind + answer)


def _about(error: BaseException) -> dict[str, str]:
    return {
        "kind": type(error).__name__,
        "text": error.message if isinstance(error, LaminarError) else str(error),
        "remedy": (error.remedy or "") if isinstance(error, LaminarError) else "",
        "trace": "".join(traceback.format_exception(error)),
    }


def _read(answer: bytes, index: int) -> Any:
    """The batch of an answer, or the error."""
    content = _TIMES.size + 1
    if answer[content - 1 : content] == b"B":
        return decode(answer[content:], "PyDataset")
    about = json.loads(answer[content:])
    error = _rebuilt(about["kind"], about["text"], about["remedy"])
    trace = about["trace"].replace("\n", "\n  ").rstrip()
    error.add_note(f"  raised in a worker process, in batch {index}:\n  {trace}")
    return error


def _rebuilt(kind: str, text: str, remedy: str) -> BaseException:
    """An error of the same class where it is Python's or laminar's, found by name."""
    ours = getattr(errors, kind, None)
    if isinstance(ours, type) and issubclass(ours, LaminarError):
        return ours(text, remedy=remedy or None)
    found = getattr(builtins, kind, None)
    if isinstance(found, type) and issubclass(found, Exception):
        with contextlib.suppress(TypeError):  # some are made of more than a text
            error: BaseException = found(text)
            return error
    return AbortedError(f"{kind}: {text}")
