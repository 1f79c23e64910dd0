"""Asynchronous replicas: a thread per device trains on batches of its own.

State of an `AsyncStep`, guarded by `_changed`:
    _waiting: batches that no thread has taken, with their numbers;
    _begun: how many batches there have been; `_done` of them, beyond the first `_all_done`, are
        trained on;
    _latest: what the step that was applied last reported. Metrics go on from batch to batch, so it
        speaks for all that were applied before it;
    _alive: the numbers of the devices whose threads are there;
    _closing: they are to end as soon as there is no batch left;
    _error: the first error, until it is raised. While there is one nothing is begun.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .staleness import Staleness

Compute = Callable[[Any], Any]
Apply = Callable[[Any], Mapping[str, Any]]

_PATIENCE_SECONDS = 2.0  # how long a thread waits for a batch before it ends


class AsyncStep:
    """A step of training that is begun when it is called, and ends later, in another thread.

    Args:
        computes: for each device, what it computes from a batch: gradients, and what `apply` needs.
        apply: updates the weights and the metrics; gives what is reported. One at a time.
        staleness: counts and bounds how old the weights are that gradients are computed with.
        prepare: is called with each batch, in the thread of the caller, before anything else.
    """

    def __init__(
        self,
        computes: Sequence[Compute],
        apply: Apply,
        staleness: Staleness,
        prepare: Callable[[Any], None],
    ) -> None:
        self._prepare = prepare
        self._computes = computes
        self._apply = apply
        self._staleness = staleness
        self._changed = threading.Condition()
        self._waiting: deque[tuple[int, Any]] = deque()
        self._begun = 0
        self._all_done = 0
        self._done: set[int] = set()
        self._latest: Mapping[str, Any] = {}
        self._alive: set[int] = set()
        self._closing = False
        self._error: BaseException | None = None

    def __call__(self, batch: Any) -> Mapping[str, Any]:
        """Begin with a batch as soon as a device is free; gives what will be reported.

        Raises:
            LaminarError: an earlier batch failed.
        """
        self._prepare(batch)
        with self._changed:
            self._changed.wait_for(lambda: self._error or not self._waiting)
            self._raise_error()
            number = self._begun
            self._begun += 1
            self._waiting.append((number, batch))
            for i in range(len(self._computes)):
                if i not in self._alive:
                    self._alive.add(i)
                    threading.Thread(
                        target=self._work, args=(i,), name=f"laminar-replica-{i}", daemon=True
                    ).start()
            self._changed.notify_all()
        return _Report(self, number)

    def result(self, number: int) -> Mapping[str, Any]:
        """What is reported when all batches up to this one have been trained on.

        Raises:
            LaminarError: one of them failed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._error or self._all_done > number)
            self._raise_error()
            return self._latest

    def close(self) -> None:
        """Return when all that was begun has been trained on, or has failed; no thread is left.

        The step can be called again.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._alive)
            self._closing = False
            self._reset()

    def _reset(self) -> None:
        """Begin anew, as if all had been trained on; no thread is there."""
        self._error = None
        self._waiting.clear()
        self._done.clear()
        self._all_done = self._begun

    def _raise_error(self) -> None:
        """Raise the error of a thread, after all of them have ended; then all begins anew."""
        if self._error is None:
            return
        self._changed.wait_for(lambda: not self._alive)
        error = self._error
        self._reset()
        raise error

    def _work(self, device: int) -> None:
        """Train on batches, on one device, until there are none for a while."""
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._error or self._waiting or self._closing, _PATIENCE_SECONDS
                )
                if self._error is not None or not self._waiting:
                    self._leave(device)
                    return
                number, batch = self._waiting.popleft()
                self._changed.notify_all()
            try:
                self._train(self._computes[device], number, batch)
            except BaseException as error:  # it is raised in the thread that reads the results
                with self._changed:
                    self._error = self._error or error
                    self._leave(device)
                return
            del batch

    def _leave(self, device: int) -> None:
        """A thread ends; under the lock."""
        self._alive.discard(device)
        self._changed.notify_all()

    def _train(self, compute: Compute, number: int, batch: Any) -> None:
        ticket = self._staleness.begin()
        try:
            found = compute(batch)
            with self._staleness.applying(ticket):
                report = self._apply(found)
                with self._changed:
                    self._latest = report
        finally:
            self._staleness.give_up(ticket)
        with self._changed:
            self._done.add(number)
            while self._all_done in self._done:
                self._done.remove(self._all_done)
                self._all_done += 1
            self._changed.notify_all()


class _Report(Mapping[str, Any]):
    """What a step reports; looking into it waits for the step."""

    def __init__(self, step: AsyncStep, number: int) -> None:
        self._step = step
        self._number = number
        self._found: Mapping[str, Any] | None = None

    def _wait(self) -> Mapping[str, Any]:
        if self._found is None:
            self._found = self._step.result(self._number)
        return self._found

    def __getitem__(self, name: str) -> Any:
        return self._wait()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._wait())

    def __len__(self) -> int:
        return len(self._wait())
