"""Calls over sockets, unix ones and TCP, once gRPC has been asked."""

from __future__ import annotations

import gc
import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from laminar.distribute.wire import Call, Channels, Limits, RateLimit, WireServer, doors, local_pipe
from laminar.distribute.wire.call_link import CALLS, HELLO, CallLink, call_message
from laminar.distribute.wire.envelopes import TICKET_BYTES, open_envelope, seal
from laminar.distribute.wire.links import message
from laminar.distribute.wire.local_pipe import LocalPipe, boot_id
from laminar.distribute.wire.socket_pipe import MOST_BYTES, SocketPipe
from laminar.engine.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    LaminarError,
    Origin,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from tests.distribute.wire.harness import (
    QUICK,
    SECONDS,
    TASK,
    eventually,
    num_fds,
    reached,
    served,
)

pytestmark = pytest.mark.skipif(not boot_id(), reason="this system has no such sockets")

WHO = "a.B/Who"
SOCKETS = b"unix:", b"tcp:127.0.0.1:"


class Waiting:
    """A method that waits until it is told to go on, or the call ends."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended: list[float | None] = []
        self.goes_on = threading.Event()

    def __call__(self, request: bytes, call: Call) -> bytes:
        over = threading.Event()
        call.on_end(over.set)
        self.begun += 1
        while not (over.wait(0.005) or self.goes_on.is_set()):
            pass
        self.ended.append(call.time_remaining())
        return request


def who(request: bytes, call: Call) -> bytes:
    return f"{call.peer} {call.identity} ".encode() + request


def fail(request: bytes, call: Call) -> bytes:
    if not request:
        raise KeyError("x")
    raise InvalidArgumentError("int32 does not fit", remedy="cast it")


def long(request: bytes, call: Call) -> bytes:
    return request * (3 << 20)


@pytest.fixture(params=["host", "tcp"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Processes of one host, and of two."""
    with reached(request.param):
        yield request.param


@contextmanager
def linked(methods: dict[str, Any] | None = None, **options: Any) -> Iterator[tuple[Any, ...]]:
    """A server, and channels that have a link to it."""
    methods = {WHO: who, **(methods or {})}
    with (
        nothing_is_open(),
        served(methods, **options) as server,
        Channels(names={server.address: TASK}, keepalive=QUICK, has_links=True) as channels,
    ):
        link(channels, server)
        yield server, channels


@contextmanager
def nothing_is_open() -> Iterator[None]:
    """A block after which there are as many open files, and threads that serve, as before."""

    def found() -> tuple[int, int]:
        serving = [t for t in threading.enumerate() if t.name != "partition"]
        return num_fds(), len(serving)

    gc.collect()
    with served():  # what gRPC keeps for the next server
        pass
    before = found()
    yield
    gc.collect()
    eventually(lambda: all(a <= b for a, b in zip(found(), before, strict=True)))


def link(channels: Channels, server: WireServer) -> None:
    """Call until the calls go over a link."""
    eventually(lambda: channels.unary(server.address, WHO, b"", SECONDS).startswith(SOCKETS))


def test_who_is_not_asked_to_has_no_link() -> None:
    with served({WHO: who}) as server, Channels() as channels:
        for _ in range(3):
            time.sleep(0.01)
            assert b"ipv4:127" in channels.unary(server.address, WHO, b"", SECONDS)


def test_what_is_asked_and_answered(way: str) -> None:
    with linked({"a.B/Long": long}) as (server, channels):
        peer, identity, said = channels.unary(server.address, WHO, b"abc", SECONDS).split()
        assert peer.startswith(SOCKETS[0] if way == "host" else SOCKETS[1])
        assert (identity, said) == (b"loopback", b"abc")
        assert channels.unary(server.address, "a.B/Long", b"xy", SECONDS) == b"xy" * (3 << 20)
        request = bytes(1 << 18)  # too much for a packet: by gRPC
        assert channels.unary(server.address, WHO, request, SECONDS)[:9] == b"ipv4:127."
        found: list[bytes | None] = []
        for method, request in ((WHO, b"1"), ("a.B/Long", b"2")):
            channels.begin(
                server.address, method, request, SECONDS, lambda answer, _: found.append(answer)
            )
        eventually(lambda: len(found) == 2)
        short, long_one = sorted(found, key=lambda f: len(f or b""))
        assert short is not None
        assert short.endswith(b" loopback 1")
        assert long_one == b"2" * (3 << 20)


def test_errors_are_what_they_were() -> None:
    with linked({"a.B/Fail": fail}) as (server, channels):
        with pytest.raises(InvalidArgumentError) as caught:
            channels.unary(server.address, "a.B/Fail", b"x", SECONDS)
        error = caught.value
        assert (error.message, error.remedy) == ("int32 does not fit", "cast it")
        assert error.origin == Origin(TASK)
        with pytest.raises(InternalError, match="KeyError: 'x'"):
            channels.unary(server.address, "a.B/Fail", b"", SECONDS)
        with pytest.raises(UnimplementedError, match="a.B/None"):
            channels.unary(server.address, "a.B/None", b"", SECONDS)


def test_many_call_at_a_time() -> None:
    """Each gets its own answer, whoever reads it."""
    waiting = Waiting()
    with linked({"a.B/Wait": waiting}) as (server, channels):
        held: list[bytes | None] = []
        for i in range(5):
            channels.begin(
                server.address, "a.B/Wait", b"%d" % i, SECONDS, lambda a, _: held.append(a)
            )
        eventually(lambda: waiting.begun == 5)
        wrong: list[bytes] = []

        def ask(name: int) -> None:
            for i in range(100):
                text = b"%d %d" % (name, i)
                answer = channels.unary(server.address, WHO, text, SECONDS)
                if not answer.endswith(b" loopback " + text):
                    wrong.append(answer)

        threads = [threading.Thread(target=ask, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert not held
        waiting.goes_on.set()
        eventually(lambda: sorted(a or b"" for a in held) == [b"0", b"1", b"2", b"3", b"4"])


def test_calls_that_are_given_up() -> None:
    waiting = Waiting()
    with linked({"a.B/Wait": waiting}) as (server, channels):
        start = time.monotonic()
        with pytest.raises(DeadlineExceededError, match=r"task:1 .*a.B/Wait"):
            channels.unary(server.address, "a.B/Wait", b"", 0.1)
        assert 0.1 <= time.monotonic() - start < 2.0
        eventually(lambda: len(waiting.ended) == 1)  # the server has heard of it
        found: list[LaminarError | None] = []
        pending = channels.begin(
            server.address, "a.B/Wait", b"", SECONDS, lambda _, error: found.append(error)
        )
        eventually(lambda: waiting.begun == 2)
        pending.cancel()
        eventually(lambda: len(waiting.ended) == 2)
        (error,) = found
        assert isinstance(error, CancelledError)
        remaining = waiting.ended[1]
        assert remaining is not None
        assert SECONDS - 10 < remaining <= SECONDS
        # A call with an earlier end than that which somebody waits for already.
        channels.begin(server.address, "a.B/Wait", b"", SECONDS, lambda _, e: found.append(e))
        with pytest.raises(DeadlineExceededError):
            channels.unary(server.address, "a.B/Wait", b"", 0.1)
    assert isinstance(found[1], CancelledError | UnavailableError)


def test_another_server_at_the_same_address() -> None:
    with linked() as (server, channels):
        with served({WHO: who}) as other:
            link(channels, other)
            address = other.address
        waiting = Waiting()
        from laminar.distribute.wire import make_server

        again = make_server({WHO: who, "a.B/Wait": waiting}, address)
        again.start()
        try:
            link(channels, again)
            found: list[LaminarError | None] = []
            channels.begin(address, "a.B/Wait", b"", SECONDS, lambda _, e: found.append(e))
            eventually(lambda: waiting.begun)
        finally:
            again.stop()
        eventually(lambda: found)
        assert isinstance(found[0], UnavailableError | CancelledError)
        with pytest.raises(UnavailableError):
            channels.unary(address, WHO, b"", SECONDS)
        assert channels.unary(server.address, WHO, b"", SECONDS)


def test_limits_and_rates() -> None:
    waiting = Waiting()
    methods = {"a.B/Wait": waiting, "a.B/Rare": who}
    rates = {"a.B/Rare": RateLimit(2, 60.0, "calls")}
    with linked(methods, limits=Limits(threads=2), rates=rates) as (server, channels):
        for _ in range(2):
            channels.unary(server.address, "a.B/Rare", b"", SECONDS)
        with pytest.raises(ResourceExhaustedError, match="calls"):
            channels.unary(server.address, "a.B/Rare", b"", SECONDS)
        for _ in range(2):
            channels.begin(server.address, "a.B/Wait", b"", SECONDS, lambda *_: None)
        eventually(lambda: waiting.begun == 2)
        with pytest.raises(ResourceExhaustedError, match="2 calls run at a time"):
            channels.unary(server.address, WHO, b"", SECONDS)
        waiting.goes_on.set()
        eventually(lambda: len(waiting.ended) == 2)
        eventually(lambda: _answers(channels, server.address))


def _answers(channels: Channels, address: str) -> bool:
    try:
        return bool(channels.unary(address, WHO, b"", SECONDS))
    except ResourceExhaustedError:
        return False


def test_a_process_that_hangs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers nothing more, while its socket is open."""
    waiting = Waiting()
    with linked({"a.B/Wait": waiting}) as (server, channels):
        with pytest.raises(DeadlineExceededError):  # who computes, and is there, is waited for
            channels.unary(server.address, "a.B/Wait", b"", 1.5)
        monkeypatch.setattr(
            "laminar.distribute.wire.call_link_service._Connection._take",
            lambda self, packet, is_first: False,
        )
        start = time.monotonic()
        with pytest.raises(UnavailableError, match="no sign of life"):
            channels.unary(server.address, WHO, b"", SECONDS)
        assert time.monotonic() - start < 5.0


def greeted(channels: Channels, server: WireServer) -> tuple[bytes, bytes]:
    """The number of a link, and the way to it."""
    host = seal(local_pipe.boot_id().encode())
    answer = channels.call(server.address, "unary_unary", HELLO, host, SECONDS)
    _, welcome = open_envelope(answer, "")
    return welcome[:TICKET_BYTES], welcome[TICKET_BYTES:]


def test_packets_that_are_damaged() -> None:
    """They end their connection at most."""
    with served({WHO: who}) as server, Channels() as channels:
        draw = random.Random(1)
        good = call_message(1, 1.0, WHO, seal(b"abc"))
        for trial in range(100):
            number, route = greeted(channels, server)
            to = channels.way(server.address)
            if trial % 10 == 0:
                assert to.come(CALLS, draw.randbytes(TICKET_BYTES), route) is None
            pipe = to.come(CALLS, number, route)
            assert pipe is not None
            packet = bytearray(good)
            for _ in range(draw.randint(1, 4)):
                packet[draw.randrange(len(packet))] = draw.randrange(256)
            if trial % 3 == 0:
                packet = packet[: draw.randrange(1, len(packet))]
            if trial % 2:
                pipe.send(bytes(packet))
            else:  # as it is, without its size and checksum
                pipe._socket.sendall(packet)
            pipe.close()
            pipe.end()
        assert channels.unary(server.address, WHO, b"", SECONDS)


def test_a_stranger_who_does_not_attach_is_not_served() -> None:
    with served({WHO: who}) as server, Channels() as channels:
        number, route = greeted(channels, server)
        to = channels.way(server.address)
        call = call_message(1, 1.0, WHO, seal(b"a"))
        for first in (call, message(CALLS, bytes(16)), message(99, number)):
            assert _said(to._connect(route), first, call) == b""
        assert b" loopback a" in _said(to._connect(route), message(CALLS, number), call)
        assert _said(to._connect(route), message(CALLS, number), call) == b""  # it is for one


def _said(pipe: SocketPipe | None, *packets: bytes) -> bytes:
    """What comes back."""
    assert pipe is not None
    for packet in packets:
        pipe.send(packet)
    buffer, found = bytearray(MOST_BYTES), b""
    while b"loopback" not in found and (size := pipe.packet(buffer)):
        found += buffer[:size]
    pipe.end()
    return found.removeprefix(message(doors.ATTACHED))


def test_a_link_that_is_forgotten_closes_what_it_has_open() -> None:
    """Nobody has closed it: its owner was not closed either."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    dropped = CallLink(LocalPipe(ours), QUICK)
    wake = dropped._wake
    os.fstat(wake)
    before = num_fds()
    del dropped
    gc.collect()
    assert ours.fileno() == -1
    assert num_fds() == before - 1
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(wake)
    theirs.close()
