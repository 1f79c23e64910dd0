"""Tasks that are killed, or stopped, without a word."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from laminar.distribute.wire import Channels, TensorClient, TensorService
from laminar.distribute.wire.keepalive import PATIENCE
from laminar.engine.errors import AbortedError, UnavailableError
from tests.distribute.wire.harness import (
    QUICK,
    WAYS,
    Table,
    eventually,
    nothing_is_left,
    reached,
    receive,
    served,
)
from tests.distribute.wire.other_task import LONG

pytestmark = pytest.mark.slow  # an interpreter is started for each


@contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process, and the first line that it writes; it is killed at the end."""
    command = [sys.executable, "-m", "tests.distribute.wire.other_task", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield child, child.stdout.readline().strip()
        finally:
            child.send_signal(signal.SIGCONT)
            child.kill()


@pytest.mark.parametrize("way", WAYS)
def test_a_sender_that_is_killed(way: str) -> None:
    with (
        reached(way),
        process("serve") as (child, address),
        nothing_is_left(),
        Channels(keepalive=QUICK) as channels,
        TensorClient(channels, has_sockets=way != "grpc") as client,
    ):
        held = receive(client, address, "long", incarnation=5).value()
        with pytest.raises(AbortedError, match="restarted"):
            receive(client, address, "long", incarnation=4).value()
        waiting = [receive(client, address, "never") for _ in range(10)]
        long = [receive(client, address, "long") for _ in range(10)]
        child.kill()
        start = time.monotonic()
        for future in waiting:
            with pytest.raises(UnavailableError, match=address):
                future.value()
        for future in long:  # each has come whole, or failed
            arrival = future.get()
            if arrival.error is None:
                np.testing.assert_array_equal(arrival.value, LONG)
        assert time.monotonic() - start < 2.0
        with pytest.raises(UnavailableError, match=address):
            receive(client, address, "long").value()
        np.testing.assert_array_equal(held, LONG)  # what was there stays
        del held, long, future, arrival


@pytest.mark.parametrize("way", WAYS)
def test_a_sender_that_hangs(way: str) -> None:
    """Pings find out."""
    with (
        reached(way),
        process("serve") as (child, address),
        Channels(keepalive=QUICK) as channels,
        TensorClient(channels, has_sockets=way != "grpc") as client,
    ):
        receive(client, address, "long").value()
        child.send_signal(signal.SIGSTOP)
        start = time.monotonic()
        with pytest.raises(UnavailableError):
            receive(client, address, "never").value()
        assert time.monotonic() - start < 2 * (
            QUICK.time_seconds + PATIENCE * QUICK.timeout_seconds
        )
        child.send_signal(signal.SIGCONT)
        np.testing.assert_array_equal(receive(client, address, "long").value(), LONG)


def test_a_receiver_that_is_killed_leaves_nothing() -> None:
    table = Table({"long": LONG})
    service = TensorService(table.receive)
    with (
        nothing_is_left(),
        served(service=service) as server,
        process("pull", server.address) as (child, line),
    ):
        assert line == "came"
        (link,) = service._links.values()
        assert link.shared is not None
        assert link.shared._bytes
        child.kill()
        eventually(lambda: link.pipe is None)
        eventually(lambda: link.shared is not None and not link.shared._bytes)
