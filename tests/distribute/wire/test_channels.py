from __future__ import annotations

import threading
from typing import Any

import pytest

from laminar.distribute.wire import Call, Channels, Limits, make_server
from laminar.engine.errors import (
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    DTypeError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    LaminarError,
    Origin,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from tests.distribute.wire.harness import SECONDS, TASK, eventually, nothing_is_left, served

ECHO = "laminar.Test/Echo"


def echo(request: bytes, call: Call) -> bytes:
    return request


def wait(request: bytes, call: Call) -> bytes:
    ended = threading.Event()
    call.on_end(ended.set)
    assert ended.wait(SECONDS)
    return b""


def fail(request: bytes, call: Call) -> bytes:
    error = DTypeError("int32 does not fit", remedy="cast it")
    error.operation = "MatMul_3"
    raise error


def test_requests_and_answers_of_all_sizes() -> None:
    with nothing_is_left(), served({ECHO: echo}) as server, Channels() as channels:
        for size in (0, 1, 1 << 20, (1 << 20) + 1, (9 << 20) + 7):
            data = bytes(range(256)) * (size // 256) + bytes(size % 256)
            assert channels.unary(server.address, ECHO, data, SECONDS) == data


def test_errors_are_raised_as_what_they_are() -> None:
    def crash(request: bytes, call: Call) -> bytes:
        raise KeyError("x")

    methods = {"a.B/Fail": fail, "a.B/Crash": crash}
    with served(methods) as server, Channels(names={server.address: TASK}) as channels:
        with pytest.raises(DTypeError) as caught:
            channels.unary(server.address, "a.B/Fail", b"", SECONDS)
        error = caught.value
        assert (error.message, error.remedy) == ("int32 does not fit", "cast it")
        assert (error.operation, error.origin) == ("MatMul_3", Origin(TASK))
        assert "in: /job:worker/task:1" in str(error)
        with pytest.raises(InternalError, match="KeyError: 'x'"):
            channels.unary(server.address, "a.B/Crash", b"", SECONDS)
        with pytest.raises(UnimplementedError, match=r"task:1 \(127.*a.B/None"):
            channels.unary(server.address, "a.B/None", b"", SECONDS)


def test_deadlines() -> None:
    with served({"a.B/Wait": wait}) as server, Channels() as channels:
        with pytest.raises(DeadlineExceededError, match="a.B/Wait"):
            channels.unary(server.address, "a.B/Wait", b"", 0.1)
        for timeout in (0, -1.0, float("nan")):
            with pytest.raises(InvalidArgumentError, match="positive timeout"):
                channels.unary(server.address, "a.B/Wait", b"", timeout)


def test_calls_side_by_side() -> None:
    answers: list[tuple[bytes | None, LaminarError | None]] = []

    def done(answer: bytes | None, error: LaminarError | None) -> None:
        answers.append((answer, error))

    with (
        nothing_is_left(),
        served({ECHO: echo, "a.B/Wait": wait}) as server,
        Channels() as channels,
    ):
        big = bytes(3 << 20)
        for request in (b"a", big):
            channels.begin(server.address, ECHO, request, SECONDS, done)
        eventually(lambda: len(answers) == 2)
        assert sorted(answers, key=lambda a: len(a[0] or b"")) == [(b"a", None), (big, None)]
        pending = channels.begin(server.address, "a.B/Wait", b"", SECONDS, done)
        pending.cancel()
        eventually(lambda: len(answers) == 3)
        assert isinstance(answers[2][1], CancelledError)
        channels.begin("127.0.0.1:1", ECHO, b"", SECONDS, done)
        eventually(lambda: len(answers) == 4)
        assert isinstance(answers[3][1], UnavailableError)


def test_calls_after_the_end_are_told_so() -> None:
    errors: list[LaminarError | None] = []
    channels = Channels()
    channels.close()
    for size in (1, 2 << 20):
        channels.begin("127.0.0.1:1", ECHO, bytes(size), SECONDS, lambda _, e: errors.append(e))
    assert [type(error) for error in errors] == [FailedPreconditionError] * 2


def test_the_caller_is_known() -> None:
    calls: list[tuple[str, float | None]] = []

    def note(request: bytes, call: Call) -> bytes:
        calls.append((call.identity, call.time_remaining()))
        assert call.is_active()
        assert call.peer.startswith("ipv4:127.0.0.1:")
        return b""

    with served({"a.B/Note": note}) as server, Channels() as channels:
        channels.unary(server.address, "a.B/Note", b"", 5.0)
    ((identity, left),) = calls
    assert identity == "loopback"
    assert left is not None
    assert 0 < left < 5.1  # it is rounded on the way


def test_port_taken() -> None:
    with nothing_is_left(), served() as server:
        with pytest.raises(AlreadyExistsError, match=rf"{server.address}.*listens there"):
            make_server({}, server.address)
        with pytest.raises(InvalidArgumentError, match=r"203\.0\.113\.1"):
            make_server({}, "203.0.113.1:0", allow_insecure_network=True)


def test_a_server_that_never_started_gives_up_its_port() -> None:
    never = make_server({ECHO: echo}, "127.0.0.1:0")
    never.stop()
    never.stop()
    with nothing_is_left():
        make_server({}, never.address).stop()
    with pytest.raises(FailedPreconditionError, match="was stopped"):
        never.start()


def test_starting_and_stopping() -> None:
    server = make_server({ECHO: echo}, "127.0.0.1:0")
    with Channels() as channels:
        with pytest.raises(DeadlineExceededError):  # it has its port, and does not answer
            channels.unary(server.address, ECHO, b"", 0.2)
        server.start()
        server.start()
        assert channels.unary(server.address, ECHO, b"x", SECONDS) == b"x"
        assert not server.wait(0.01)
        server.stop()
        server.stop()
        assert server.wait()
        with pytest.raises(FailedPreconditionError, match="was stopped"):
            server.start()
        with pytest.raises(UnavailableError):
            channels.unary(server.address, ECHO, b"", SECONDS)
    with pytest.raises(FailedPreconditionError, match="were closed"):
        channels.unary(server.address, ECHO, b"", SECONDS)


def test_a_task_that_comes_back_is_found_again() -> None:
    with served({ECHO: echo}) as server, Channels() as channels:
        address = server.address
        assert channels.unary(address, ECHO, b"x", SECONDS) == b"x"
        server.stop()
        again = make_server({ECHO: echo}, address)
        again.start()
        assert channels.unary(address, ECHO, b"y", SECONDS, wait_for_ready=True) == b"y"
        again.stop()


def test_limits() -> None:
    limits = Limits(request_bytes=2 << 20, waiting_bytes=3 << 20)
    methods: dict[str, Any] = {ECHO: echo, "a.B/Long": lambda request, call: bytes(3 << 20)}
    with served(methods, limits=limits) as server:
        with Channels() as channels:
            with pytest.raises(ResourceExhaustedError, match="2097153 bytes, 2097152 are allowed"):
                channels.unary(server.address, ECHO, bytes((2 << 20) + 1), SECONDS)
            with pytest.raises(InvalidArgumentError, match="more than is sent at once"):
                channels.unary(server.address, "a.B/Long", b"", SECONDS)
            assert channels.unary(server.address, ECHO, b"x", SECONDS) == b"x"
        refused = pytest.raises(ResourceExhaustedError, match="are allowed")
        with Channels(limit_bytes=1 << 20) as channels, refused:
            channels.unary(server.address, ECHO, bytes((1 << 20) + 1), SECONDS)
    with pytest.raises(InvalidArgumentError, match="threads must be positive"):
        Limits(threads=0)
