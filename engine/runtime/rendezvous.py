"""The rendezvous of one step: where a tensor that is sent meets who receives it.

A `Rendezvous` lives for one step of a graph that was cut into parts; its table maps
    _table[key]: a value that nobody has taken yet, or the receivers that wait for one.
`_lock` guards the table, `_error` and the counters; callbacks run outside of it, in the thread that
brings the value or the error, so they must be short.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 3.2.2.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..devices import Device, transferred
from ..errors import (
    AbortedError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    LaminarError,
)
from ..graph import DeviceSpec

_KEY = re.compile(r"([^;]+);([0-9a-f]{16});([^;]+);([^;]+);(\d+):(\d+)", re.ASCII)
_PART = re.compile(r"[!-:<-~]+")  # a part of a key: printed ASCII, without spaces and ";"
_NO_FRAME = (0, 0)


@functools.lru_cache(4096)
def _check_parts(*parts: str) -> None:
    """InvalidArgumentError unless each part of a key can stand in one."""
    for part in parts:
        if not _PART.fullmatch(part):
            raise InvalidArgumentError(
                f"{part!r} cannot stand in the key of a transfer",
                remedy="names of devices and tensors are ASCII without spaces and ';'",
            )


@dataclass(frozen=True)
class RendezvousKey:
    """What names a transfer within a step.

    Attributes:
        send_device: full name of the device that sends.
        incarnation: of that device; another one means that it was restarted meanwhile.
        recv_device: full name of the device that receives.
        tensor_name: of the edge.
        frame_iter: frame and iteration of a loop, (0, 0) outside.
    """

    send_device: str
    incarnation: int
    recv_device: str
    tensor_name: str
    frame_iter: tuple[int, int] = _NO_FRAME

    def __post_init__(self) -> None:
        _check_parts(self.send_device, self.recv_device, self.tensor_name)

    def __str__(self) -> str:
        frame, iteration = self.frame_iter
        return (
            f"{self.send_device};{self.incarnation:016x};{self.recv_device};"
            f"{self.tensor_name};{frame}:{iteration}"
        )

    @classmethod
    def parse(cls, text: str) -> RendezvousKey:
        """The key that `str` wrote.

        Raises:
            InvalidArgumentError: `text` is not a key.
        """
        return _parsed(text)


@functools.lru_cache(4096)  # the keys outside of loops are those of each step
def _parsed(text: str) -> RendezvousKey:
    match = _KEY.fullmatch(text)
    try:
        if match is None:
            raise InvalidArgumentError("the parts are not those of a key")
        source, incarnation, target, name, frame, iteration = match.groups()
        for device in (source, target):
            if DeviceSpec.from_string(device).device_index is None:
                raise InvalidArgumentError(f"{device!r} is not the full name of a device")
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"{text!r} is not a rendezvous key: {error.message}",
            remedy='write it as "device;incarnation in 16 hex digits;device;name;frame:iter"',
        ) from None
    return RendezvousKey(source, int(incarnation, 16), target, name, (int(frame), int(iteration)))


class Arrival(NamedTuple):
    """What a receiver gets: a value (or the news that there will be none), or an error."""

    value: Any = None
    is_dead: bool = False
    error: LaminarError | None = None


Receiver = Callable[[Arrival], None]


class Rendezvous:
    """The table of one step.

    Args:
        devices: those that take part; values are brought into the memory of the receiving one.

    Attributes:
        bytes_sent: by (sending, receiving) device, the bytes that were received.
        num_received: the same, in tensors.
    """

    def __init__(self, devices: Iterable[Device] = ()) -> None:
        self._devices = {d.name: d for d in devices}
        self._lock = threading.Lock()
        self._table: dict[RendezvousKey, Arrival | list[Receiver]] = {}
        self._done: set[RendezvousKey] = set()
        self._error: LaminarError | None = None
        self.bytes_sent: dict[tuple[str, str], int] = {}
        self.num_received: dict[tuple[str, str], int] = {}

    def send(self, key: RendezvousKey, value: Any, *, is_dead: bool = False) -> None:
        """Bring a value; never waits.

        Raises:
            AbortedError: the key was sent already, or is of a device's earlier life.
            LaminarError: the step was aborted.
        """
        self._check(key)
        with self._lock:
            if self._error is not None:
                raise self._error
            waiting = self._table.get(key)
            if isinstance(waiting, Arrival) or key in self._done:
                raise AbortedError(f"{key} is sent twice in one step")
            arrival = Arrival(value, is_dead)
            if waiting is None:
                self._table[key] = arrival
                return
            del self._table[key]
            self._done.add(key)
        self._deliver(key, waiting, arrival)

    def together(self) -> AbstractContextManager[None]:
        """A block in which this thread sends several values, and waits for nothing."""
        return nullcontext()

    def recv_async(self, key: RendezvousKey, done: Receiver) -> None:
        """Have `done` called with what arrives, now or later, once."""
        try:
            self._check(key)
        except LaminarError as error:
            done(Arrival(error=error))
            return
        with self._lock:
            error_now = self._error
            found = self._table.get(key)
            if error_now is None and not isinstance(found, Arrival):
                if found is None:
                    if key in self._done:
                        error_now = AbortedError(f"{key} is received twice in one step")
                    else:
                        self._table[key] = [done]
                        return
                else:
                    found.append(done)
                    return
            elif error_now is None:
                del self._table[key]
                self._done.add(key)
        if error_now is not None:
            done(Arrival(error=error_now))
        else:
            assert isinstance(found, Arrival)
            self._deliver(key, [done], found)

    def recv(self, key: RendezvousKey, timeout_seconds: float | None = None) -> Arrival:
        """Wait for what arrives.

        Raises:
            DeadlineExceededError: nothing came in time.
            LaminarError: the step was aborted.
        """
        arrived = threading.Event()
        box: list[Arrival] = []

        def done(arrival: Arrival) -> None:
            box.append(arrival)
            arrived.set()

        self.recv_async(key, done)
        if not arrived.wait(timeout_seconds):
            with self._lock:
                waiting = self._table.get(key)
                if isinstance(waiting, list) and done in waiting:
                    waiting.remove(done)
                    if not waiting:
                        del self._table[key]
            if not box:
                raise DeadlineExceededError(f"{key}: nothing was sent in {timeout_seconds} s")
        (arrival,) = box
        if arrival.error is not None:
            raise arrival.error
        return arrival

    @property
    def error(self) -> LaminarError | None:
        """Why the step was aborted, None while it goes on."""
        return self._error

    def abort(self, error: LaminarError) -> None:
        """Fail all that wait, and all that comes later, with `error`; the first one stays."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            waiting = [r for w in self._table.values() if isinstance(w, list) for r in w]
            self._table.clear()
        for receiver in waiting:
            receiver(Arrival(error=error))

    def _deliver(self, key: RendezvousKey, receivers: Iterable[Receiver], arrival: Arrival) -> None:
        target = self._devices.get(key.recv_device)
        source = self._devices.get(key.send_device)
        if target is not None and source is not None and not arrival.is_dead:
            try:
                arrival = Arrival(transferred(arrival.value, source, target))
            except LaminarError as error:
                arrival = Arrival(error=error)
            except Exception as cause:  # of a transport that is not laminar's
                arrival = Arrival(error=InternalError(f"{key}: the transport failed: {cause!r}"))
        pair = key.send_device, key.recv_device
        with self._lock:
            self.num_received[pair] = self.num_received.get(pair, 0) + 1
            nbytes = getattr(arrival.value, "nbytes", 0)
            self.bytes_sent[pair] = self.bytes_sent.get(pair, 0) + nbytes
        for receiver in receivers:
            receiver(arrival)

    def _check(self, key: RendezvousKey) -> None:
        device = self._devices.get(key.send_device)
        if device is not None and device.incarnation != key.incarnation:
            raise AbortedError(
                f"{key}: {key.send_device} was restarted since the graph was made for it",
                remedy="run the step again",
            )
