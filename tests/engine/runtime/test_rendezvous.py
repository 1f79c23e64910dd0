"""The rendezvous: keys, the meeting of sender and receiver in either order, abort, time-outs."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.engine.devices import CpuDevice
from laminar.engine.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OutOfRangeError,
)
from laminar.engine.runtime.rendezvous import Arrival, Rendezvous, RendezvousKey
from tests.engine.runtime.fake_gpu import fake_gpu

ONE, TWO = CpuDevice(0), CpuDevice(1)
WAIT = 30.0  # seconds after which a test has failed


def key(name: str = "x", frame_iter: tuple[int, int] = (0, 0), **changes: Any) -> RendezvousKey:
    fields = {"send_device": ONE.name, "incarnation": ONE.incarnation, "recv_device": TWO.name}
    return RendezvousKey(**{**fields, **changes}, tensor_name=name, frame_iter=frame_iter)


def test_the_form_of_a_key() -> None:
    made = RendezvousKey("/device:cpu:0", 0x1F, "/device:gpu:1", "edge_3_a", (2, 5))
    assert str(made) == "/device:cpu:0;000000000000001f;/device:gpu:1;edge_3_a;2:5"


@given(
    st.integers(0, 2**64 - 1),
    st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=";"), min_size=1),
    st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)),
)
def test_a_key_survives_its_text(incarnation: int, name: str, frame_iter: tuple[int, int]) -> None:
    made = key(name, frame_iter, incarnation=incarnation)
    assert RendezvousKey.parse(str(made)) == made


@pytest.mark.parametrize("part", ["", "a;b", "a b", "a\n", "caf\u00e9", "\u0663"])
def test_what_cannot_stand_in_a_key(part: str) -> None:
    for name in ("send_device", "recv_device", "name"):
        changes: dict[str, Any] = {name: part}
        with pytest.raises(InvalidArgumentError, match="cannot stand in the key"):
            key(**changes)


@pytest.mark.parametrize(
    "text",
    [
        "/device:cpu:0;000000000000001f;/device:cpu:1;x;0:\u0663",  # another script's digit
        "",
        "a;b;c",
        "/device:cpu:0;1f;/device:cpu:1;x;0:0",  # not 16 digits
        "/device:cpu:0;000000000000001F;/device:cpu:1;x;0:0",
        "/device:cpu:0;000000000000001f;/device:cpu:1;x;0",
        "/device:cpu:0;000000000000001f;/device:cpu:1;x;0:0;",
        "/device:cpu:0;000000000000001f;/device:cpu:1;;0:0",
        "/device:cpu;000000000000001f;/device:cpu:1;x;0:0",  # not a full name
        "nowhere/;000000000000001f;/device:cpu:1;x;0:0",
        "/device:cpu:0;000000000000001f;/device:cpu:1;x;0:-1",
    ],
)
def test_what_is_not_a_key(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is not a rendezvous key"):
        RendezvousKey.parse(text)


@pytest.mark.parametrize("first", ["send", "recv"])
def test_either_may_come_first(first: str) -> None:
    meeting = Rendezvous([ONE, TWO])
    got: list[Arrival] = []
    x = np.arange(3.0)
    if first == "recv":
        meeting.recv_async(key(), got.append)
        assert not got
    meeting.send(key(), x)
    if first == "send":
        meeting.recv_async(key(), got.append)
    assert len(got) == 1
    assert np.shares_memory(got[0].value, x)  # CPUs pass arrays on
    assert meeting.bytes_sent == {(ONE.name, TWO.name): x.nbytes}
    assert meeting.num_received == {(ONE.name, TWO.name): 1}


def test_dead_values_arrive_as_such() -> None:
    meeting = Rendezvous([ONE, TWO])
    got: list[Arrival] = []
    meeting.send(key(), None, is_dead=True)
    meeting.recv_async(key(), got.append)
    assert got[0].is_dead


def test_iterations_do_not_mix() -> None:
    meeting = Rendezvous([ONE, TWO])
    for i in (1, 0):
        meeting.send(key(frame_iter=(1, i)), np.asarray(float(i)))
    for i in (0, 1):
        assert float(meeting.recv(key(frame_iter=(1, i)), WAIT).value) == i


def test_a_blocked_receiver_gets_what_another_thread_sends() -> None:
    meeting = Rendezvous([ONE, TWO])
    sender = threading.Timer(0.02, lambda: meeting.send(key(), np.asarray(7.0)))
    sender.start()
    assert float(meeting.recv(key(), WAIT).value) == 7.0
    sender.join()


def test_time_runs_out_and_the_key_can_be_used_again() -> None:
    meeting = Rendezvous([ONE, TWO])
    with pytest.raises(DeadlineExceededError, match="nothing was sent in 0.01 s"):
        meeting.recv(key(), 0.01)
    meeting.send(key(), np.asarray(1.0))
    assert float(meeting.recv(key(), WAIT).value) == 1.0


def test_abort_wakes_who_waits_and_fails_who_comes() -> None:
    meeting = Rendezvous([ONE, TWO])
    got: list[Arrival] = []
    meeting.recv_async(key("a"), got.append)
    failed: list[BaseException] = []

    def blocked() -> None:
        try:
            meeting.recv(key("b"), WAIT)
        except OutOfRangeError as error:
            failed.append(error)

    thread = threading.Thread(target=blocked)
    thread.start()
    error = OutOfRangeError("the end")
    deadline = time.monotonic() + WAIT
    while len(meeting._table) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    meeting.abort(error)
    meeting.abort(CancelledError("later"))  # the first one stays
    thread.join(WAIT)
    assert got[0].error is error
    assert failed == [error]
    with pytest.raises(OutOfRangeError):
        meeting.send(key("c"), np.asarray(1.0))
    with pytest.raises(OutOfRangeError):
        meeting.recv(key("c"), WAIT)


@pytest.mark.parametrize("received", [False, True])
def test_a_key_is_sent_once(received: bool) -> None:
    meeting = Rendezvous([ONE, TWO])
    meeting.send(key(), np.asarray(1.0))
    if received:
        meeting.recv(key(), WAIT)
    with pytest.raises(AbortedError, match="is sent twice"):
        meeting.send(key(), np.asarray(1.0))


def test_a_key_is_received_once() -> None:
    meeting = Rendezvous([ONE, TWO])
    meeting.send(key(), np.asarray(1.0))
    meeting.recv(key(), WAIT)
    with pytest.raises(AbortedError, match="is received twice"):
        meeting.recv(key(), WAIT)


def test_a_device_that_was_restarted_is_noticed() -> None:
    meeting = Rendezvous([ONE, TWO])
    old = key(incarnation=ONE.incarnation ^ 1)
    with pytest.raises(AbortedError, match="was restarted"):
        meeting.send(old, np.asarray(1.0))
    with pytest.raises(AbortedError, match="was restarted"):
        meeting.recv(old, WAIT)


def test_values_are_brought_to_the_receiver_and_back_bit_for_bit() -> None:
    gpu = fake_gpu()
    meeting = Rendezvous([ONE, gpu])
    x = np.random.default_rng(0).normal(size=(3, 5))
    there = RendezvousKey(ONE.name, ONE.incarnation, gpu.name, "x")
    back = RendezvousKey(gpu.name, gpu.incarnation, ONE.name, "x")
    meeting.send(there, x)
    held = meeting.recv(there, WAIT).value
    assert gpu.holds(held)
    meeting.send(back, held)
    found = meeting.recv(back, WAIT).value
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, x)


def test_many_threads_meet() -> None:
    meeting = Rendezvous([ONE, TWO])
    found: dict[int, float] = {}

    def sender(start: int) -> None:
        for i in range(start, 400, 4):
            meeting.send(key(f"x{i}"), np.asarray(float(i)))

    def receiver(start: int) -> None:
        for i in range(start, 400, 4):
            found[i] = float(meeting.recv(key(f"x{i}"), WAIT).value)

    threads = [threading.Thread(target=f, args=(i,)) for f in (receiver, sender) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(WAIT)
    assert found == {i: float(i) for i in range(400)}
