"""The rendezvous of a step in one task: what other tasks send is pulled from them.

Who sends puts a value into the table of its own task. Who receives takes it from there: by a call
if it is in the same task, else by a request to the task of the sender. So a tensor travels when,
and only if, somebody waits for it. What a step receives in any case is asked for when it begins, in
one message to each task.

State of a `RemoteRendezvous`, guarded by `_lock`: `_early[key]` is, of what was asked for at the
beginning, what has come, or who waits for it; None where it has not come and nobody waits.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 3.3.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from laminar.engine.devices import Device
from laminar.engine.errors import AbortedError, CancelledError, LaminarError, Origin
from laminar.engine.runtime.rendezvous import Arrival, Receiver, Rendezvous, RendezvousKey

from ..wire import Together, with_origin
from .messages import as_held
from .tasks import known_task_of

# Asks the task of that name for what is sent there under some keys.
Pull: TypeAlias = Callable[[str, Sequence[tuple[RendezvousKey, Receiver]]], None]


class RemoteRendezvous(Rendezvous):
    """The table of one step in one task.

    Args:
        devices: of the task.
        task: its name.
    """

    def __init__(self, devices: Iterable[Device], task: str) -> None:
        devices = list(devices)
        super().__init__(devices)
        self._here = {d.name: d for d in devices}
        self._task = task
        self._early: dict[RendezvousKey, Arrival | Receiver | None] = {}
        self.pull: Pull | None = None
        self.give_up: Callable[[LaminarError], None] | None = None

    def ask(self, receives: Mapping[str, Sequence[RendezvousKey]]) -> None:
        """Ask other tasks, by their names, for what the step receives from them in any case."""
        assert self.pull is not None, "the step has begun here"
        for source, keys in receives.items():
            with self._lock:
                self._early.update(dict.fromkeys(keys))
            self.pull(
                source,
                [
                    (k, functools.partial(self._arrived, k, functools.partial(self._keep, k)))
                    for k in keys
                ],
            )

    def _keep(self, key: RendezvousKey, arrival: Arrival) -> None:
        """What was asked for at the beginning has come."""
        with self._lock:
            waiting = self._early.get(key)
            if waiting is None:
                self._early[key] = arrival
                return
            del self._early[key]
        assert not isinstance(waiting, Arrival), "it comes once"
        waiting(arrival)

    def recv_async(self, key: RendezvousKey, done: Receiver) -> None:
        """Have `done` called with what arrives, from this task or from another one."""
        source = known_task_of(key.send_device)
        if source == self._task:
            super().recv_async(key, done)
            return
        if self.error is not None:
            done(Arrival(error=self.error))
            return
        with self._lock:
            is_early = key in self._early
            found = self._early.pop(key, None)
            if is_early and found is None:
                self._early[key] = done
                return
        if isinstance(found, Arrival):
            done(found)
        else:
            assert self.pull is not None, "the step has begun here"
            self.pull(source, [(key, functools.partial(self._arrived, key, done))])

    def give(self, key: RendezvousKey, done: Receiver) -> None:
        """Have `done` called with what is sent here for a device of another task."""
        source = self._here.get(key.send_device)

        def on_host(arrival: Arrival) -> None:
            value = arrival.value
            if source is not None and source.holds(value):
                try:
                    arrival = Arrival(source.get(value), arrival.is_dead)
                except LaminarError as error:
                    arrival = Arrival(error=error)
            done(arrival)

        super().recv_async(key, on_host)

    def together(self) -> AbstractContextManager[None]:
        """A block after which what this thread has sent in it goes out, to each task at once."""
        return Together()

    def abort(self, error: LaminarError) -> None:
        """Fail all that wait, here and for other tasks, and all that comes later."""
        super().abort(error)
        if self.give_up is not None:
            self.give_up(error)

    def _arrived(self, key: RendezvousKey, done: Receiver, arrival: Arrival) -> None:
        """A value from another task has come: it goes into the memory of its device."""
        error = arrival.error
        if isinstance(error, CancelledError) and error.operation is None:
            # Nobody has cancelled this step here: the other task has given its share up.
            done(Arrival(error=with_origin(AbortedError(error.message), Origin(self._task))))
            return
        device = self._here.get(key.recv_device)
        value: Any = as_held(arrival.value)
        try:
            if device is not None and hasattr(value, "dtype") and not device.holds(value):
                value = device.put(value)
        except LaminarError as error:
            done(Arrival(error=error))
        else:
            done(arrival._replace(value=value))
