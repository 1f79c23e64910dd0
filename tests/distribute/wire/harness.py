"""Two sides of the wire in one process, and what is left of them afterwards."""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from laminar.distribute.wire import (
    Channels,
    Credentials,
    Handler,
    Keepalive,
    Limits,
    RateLimit,
    TensorClient,
    TensorService,
    WireServer,
    local_pipe,
    make_server,
)
from laminar.engine.runtime.rendezvous import Arrival, Receiver

TASK = "/job:worker/task:1"
SECONDS = 20.0  # until what must happen is given up
QUICK = Keepalive(0.5, 0.5)
WAYS = ("grpc", "tcp", "host")  # by which two sides reach each other; see `connected`


@contextmanager
def served(
    handlers: Mapping[str, Handler] | None = None,
    *,
    service: TensorService | None = None,
    credentials: Credentials | None = None,
    limits: Limits | None = None,
    rates: Mapping[str, RateLimit] | None = None,
) -> Iterator[WireServer]:
    """A server on a port of this machine, in a block."""
    server = make_server(
        handlers or {},
        "127.0.0.1:0",
        credentials,
        limits=limits or Limits(),
        rates=rates,
        services=() if service is None else (service,),
        task=TASK,
        keepalive=QUICK,
    )
    server.start()
    try:
        yield server
    finally:
        server.stop()


class Table:
    """A rendezvous of values that are there, or come when `send` brings them."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)
        self.asked: list[tuple[int, str]] = []
        self.waiting: dict[str, list[Receiver]] = {}

    def receive(self, step_id: int, key: str, done: Receiver) -> None:
        self.asked.append((step_id, key))
        if key in self.values:
            value = self.values[key]
            done(value if isinstance(value, Arrival) else Arrival(value))
        else:
            self.waiting.setdefault(key, []).append(done)

    def send(self, key: str, value: Any) -> None:
        eventually(lambda: key in self.waiting)
        for done in self.waiting.pop(key):
            done(Arrival(value))


class Future:
    """What `receive` calls with what arrives."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self._event = threading.Event()

    def __call__(self, arrival: Arrival) -> None:
        self.arrivals.append(arrival)
        self._event.set()

    def get(self) -> Arrival:
        assert self._event.wait(SECONDS), "nothing arrived"
        (arrival,) = self.arrivals
        return arrival

    def value(self) -> Any:
        arrival = self.get()
        if arrival.error is not None:
            raise arrival.error
        return arrival.value


def receive(client: TensorClient, address: str, key: str, step: int = 1, **options: Any) -> Future:
    """Ask for a tensor."""
    found = Future()
    timeout = options.pop("timeout_seconds", SECONDS)
    client.receive(address, step, key, options.pop("incarnation", 0), timeout, found, **options)
    return found


@contextmanager
def reached(way: str) -> Iterator[None]:
    """A block in which no process is of the host of another one, except by the way "host"."""
    with pytest.MonkeyPatch.context() as patch:
        if way != "host":
            patch.setattr(local_pipe, "boot_id", secrets.token_hex)
        yield


@contextmanager
def connected(
    receive: Callable[[int, str, Receiver], None], *, way: str = "host", **options: Any
) -> Iterator[tuple[TensorClient, TensorService, str]]:
    """A task that has tensors and one that wants some: client, service and address.

    Both are of one host ("host"), or reach each other over sockets of TCP ("tcp"), or over gRPC
    alone ("grpc").
    """
    service = TensorService(receive, incarnation=7, task=TASK)
    with (
        reached(way),
        served(service=service) as server,
        Channels(names={server.address: TASK}) as channels,
    ):
        client = TensorClient(channels, has_sockets=way != "grpc", **options)
        try:
            yield client, service, server.address
        finally:
            client.close()


def eventually(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.002)


def num_fds() -> int:
    """Open sockets, files and shared memory; gRPC's own pollers stay for the next server."""
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that lists the folder
            found += not os.readlink(f"/proc/self/fd/{fd}").startswith("anon_inode:")
    return found


def rss_bytes() -> int:
    """Memory that this process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def num_threads() -> int:
    """Threads but for those that wait for the next work of any kind."""
    return sum(thread.name != "partition" for thread in threading.enumerate())


@contextmanager
def nothing_is_left() -> Iterator[None]:
    """A block after which there are as many threads and open files as before."""
    gc.collect()
    threads, fds = num_threads(), num_fds()
    yield
    gc.collect()
    eventually(lambda: num_threads() <= threads)
    eventually(lambda: num_fds() <= fds)
