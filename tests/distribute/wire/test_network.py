"""What the network does to tasks: damage, cuts, breaks. No wrong value, no call without an end."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from laminar.distribute.wire import Call, Channels, TensorClient, TensorService, Transfer
from laminar.engine.errors import DataLossError, LaminarError, UnavailableError
from tests.distribute.wire.harness import (
    QUICK,
    SECONDS,
    TASK,
    Table,
    eventually,
    nothing_is_left,
    receive,
    served,
)
from tests.distribute.wire.proxy import Change, FlipAt, FlipOnce, Proxy, unchanged

MARKER = bytes(range(100, 140))
SIZES = {"link": 40, "unary": 400_000, "stream": 3_000_000}
VALUES = {key: np.frombuffer(MARKER * (n // 40), np.uint8) for key, n in SIZES.items()}


def echo(request: bytes, call: Call) -> bytes:
    return request


@contextmanager
def through_proxy(
    table: Table, change: Change = unchanged, **options: Any
) -> Iterator[tuple[TensorClient, Channels, Proxy]]:
    service = TensorService(table.receive, task=TASK)
    with (
        served({"a.B/Echo": echo}, service=service) as server,
        Proxy(server.address, change) as proxy,
        Channels(names={proxy.address: TASK}, keepalive=QUICK) as channels,
    ):
        client = TensorClient(channels, has_sockets=False, **options)
        try:
            yield client, channels, proxy
        finally:
            client.close()


@pytest.mark.parametrize("way", SIZES)
def test_damaged_tensors_come_again_over_another_connection(way: str) -> None:
    flip = FlipOnce(MARKER)
    ways: list[Transfer] = []
    with (
        nothing_is_left(),
        through_proxy(Table(VALUES), flip, on_transfer=ways.append) as (client, _, proxy),
    ):
        np.testing.assert_array_equal(receive(client, proxy.address, way).value(), VALUES[way])
        assert flip.num_flipped == 1
        assert [t.way for t in ways] == [way]
        assert proxy.num_connections == 2
        # The link serves on.
        np.testing.assert_array_equal(receive(client, proxy.address, way).value(), VALUES[way])


def test_damage_asks_no_rendezvous_twice() -> None:
    """A link that breaks while others wait on it: each of them is asked for once, and comes."""
    table = Table({"link": VALUES["link"]})
    with through_proxy(table, FlipOnce(MARKER)) as (client, _, proxy):
        waiting = [receive(client, proxy.address, f"k{i}") for i in range(20)]
        eventually(lambda: len(table.asked) == 20)
        first = receive(client, proxy.address, "link")
        np.testing.assert_array_equal(first.value(), VALUES["link"])
        for i, future in enumerate(waiting):
            table.send(f"k{i}", np.full(2, i))
            np.testing.assert_array_equal(future.value(), np.full(2, i))
        assert sorted(key for _, key in table.asked) == sorted(
            ["link", *(f"k{i}" for i in range(20))]
        )


def test_damage_that_goes_on_is_an_error() -> None:
    def always(data: bytes, before: int, is_answer: bool) -> bytes:
        return data.replace(MARKER, bytes(40))

    for way, value in VALUES.items():
        refused = pytest.raises(DataLossError, match=rf"{TASK}.*{way}: .*checksum")
        with through_proxy(Table({way: value}), always) as (client, _, proxy), refused:
            receive(client, proxy.address, way).value()


@pytest.mark.parametrize("size", [1, 60_000])
def test_damaged_calls_are_errors(size: int) -> None:
    """Requests and answers: what is done once must not be done again by itself."""
    with through_proxy(Table({}), FlipOnce(MARKER)) as (_, channels, proxy):
        with pytest.raises(DataLossError):
            channels.unary(proxy.address, "a.B/Echo", MARKER * size, SECONDS)
        answer = channels.unary(proxy.address, "a.B/Echo", MARKER * size, SECONDS)
        assert answer == MARKER * size


def flip_somewhere(seed: int) -> int:
    """Flip one bit anywhere; every value is right, or there is an error. Gives the errors."""
    rng = random.Random(seed)
    is_answer = rng.random() < 0.7
    change = FlipAt(rng.randrange(600_000 if is_answer else 1_500), rng.randrange(8), is_answer)
    num_errors = 0
    with through_proxy(Table(VALUES), change) as (client, channels, proxy):
        for key in ("link", "unary", "link", "link"):
            try:
                value = receive(client, proxy.address, key, timeout_seconds=5.0).value()
            except LaminarError:
                num_errors += 1
            else:
                np.testing.assert_array_equal(value, VALUES[key])
        try:
            assert channels.unary(proxy.address, "a.B/Echo", MARKER, 5.0) == MARKER
        except LaminarError:
            num_errors += 1
    return num_errors


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_bit_that_flips_anywhere_gives_no_wrong_value(seed: int) -> None:
    flip_somewhere(seed)


@pytest.mark.exhaustive
def test_many_bits_that_flip_anywhere() -> None:
    for seed in range(100, 400):
        flip_somewhere(seed)


def test_a_network_that_is_cut_off_is_noticed() -> None:
    table = Table(VALUES)
    with nothing_is_left(), through_proxy(table) as (client, channels, proxy):
        channels.unary(proxy.address, "a.B/Echo", b"", SECONDS)
        receive(client, proxy.address, "link").value()
        waiting = receive(client, proxy.address, "never", step=9)
        eventually(lambda: "never" in table.waiting)
        proxy.is_cut.set()
        start = time.monotonic()
        with pytest.raises(UnavailableError, match=TASK) as caught:
            waiting.value()
        assert caught.value.origin == (TASK, "", 9)
        with pytest.raises(UnavailableError):
            channels.unary(proxy.address, "a.B/Echo", b"", SECONDS)
        # Twice the time between pings and the time for their answers.
        assert time.monotonic() - start < 2 * (QUICK.time_seconds + QUICK.timeout_seconds)
        proxy.is_cut.clear()
        proxy.drop_connections()
        np.testing.assert_array_equal(
            receive(client, proxy.address, "link").value(), VALUES["link"]
        )


def test_a_connection_that_breaks() -> None:
    table = Table(VALUES)
    with nothing_is_left(), through_proxy(table) as (client, channels, proxy):
        for _ in range(5):
            waiting = receive(client, proxy.address, "never")
            eventually(lambda: "never" in table.waiting)
            table.waiting.clear()
            proxy.drop_connections()
            with pytest.raises(UnavailableError, match=TASK):
                waiting.value()
            np.testing.assert_array_equal(
                receive(client, proxy.address, "stream").value(), VALUES["stream"]
            )
            assert (
                channels.unary(proxy.address, "a.B/Echo", b"x", SECONDS, wait_for_ready=True)
                == b"x"
            )
