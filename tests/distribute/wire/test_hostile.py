"""What comes is not what it should be: one clear error, nothing allocated, the server alive."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.distribute.wire import (
    WIRE_VERSION,
    Budget,
    Call,
    Channels,
    TensorClient,
    TensorService,
    links,
    statuses,
)
from laminar.distribute.wire.chunks import CHUNK_BYTES, checked, chunks_of
from laminar.distribute.wire.envelopes import UPLOAD, Depot, announce, open_envelope, seal
from laminar.distribute.wire.frames import pack_header, payload_of
from laminar.distribute.wire.links import Message, Request, batch_of, numbered
from laminar.distribute.wire.services import Guard
from laminar.distribute.wire.tensor_service import HELLO, LINK, RECV, RECV_STREAM
from laminar.engine.errors import (
    AbortedError,
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    LaminarError,
    Origin,
    ResourceExhaustedError,
    ShapeError,
)
from laminar.engine.source import Location
from tests.distribute.wire.harness import (
    SECONDS,
    TASK,
    Table,
    eventually,
    nothing_is_left,
    receive,
    rss_bytes,
    served,
)

LONG = np.random.default_rng(0).integers(0, 256, 3 * CHUNK_BYTES + 100, np.uint8)
PICKLED = b"cos\nsystem\n(S'touch canary'\ntR."  # os.system(...), were it loaded


# The messages, one by one


def changed(error: LaminarError) -> bytes:
    return statuses.to_bytes(error)


def some_error() -> LaminarError:
    error = ShapeError("x", remedy="y", location=Location("f.py", 3, "g"), layer="l")
    error.operation, error.origin = "MatMul", Origin(TASK, f"{TASK}/device:cpu:0", 5)
    return error


READERS: dict[str, tuple[Callable[[bytes], Any], bytes]] = {
    "envelope": (lambda data: open_envelope(data, "a client"), seal(b"content")),
    "batch": (
        lambda data: [(m.kind, bytes(m.body)) for m in links.messages_of(data)],
        batch_of(numbered(links.TAKEN, 1) + Request(1, 2, 3, False, "k").to_bytes()),
    ),
    "packet": (
        lambda data: [(m.kind, bytes(m.body)) for m in links.parse_messages(memoryview(data))],
        numbered(links.TAKEN, 1) + numbered(links.CANCEL_STEP, 2),
    ),
    "request": (
        lambda data: Request.parse(memoryview(data)),
        Request(1, 2, 3, True, "key").to_bytes()[5:],
    ),
    "number": (lambda data: links.number_of(memoryview(data)), bytes(12)),
    "error": (statuses.from_bytes, statuses.to_bytes(some_error())),
    "chunks": (
        lambda data: b"".join(checked([data[:50], data[50:100], data[100:]], 100)),
        b"".join(chunks_of(memoryview(bytes(100)))),
    ),
}


@pytest.mark.parametrize("kind", READERS)
def test_honest_messages_are_read(kind: str) -> None:
    read, honest = READERS[kind]
    assert read(honest) is not None


@pytest.mark.parametrize("kind", READERS)
@given(data=st.binary(max_size=300), at=st.integers(0, 200), is_cut=st.booleans())
def test_messages_of_any_bytes(kind: str, data: bytes, at: int, is_cut: bool) -> None:
    read, honest = READERS[kind]
    for mutant in (data, honest[:at] + data + (b"" if is_cut else honest[at:]), data + PICKLED):
        with contextlib.suppress(DataLossError, FailedPreconditionError):
            read(mutant)


def test_errors_come_back_as_they_were() -> None:
    found = statuses.from_bytes(statuses.to_bytes(some_error()))
    expected = some_error()
    assert type(found) is ShapeError
    for name in ("message", "remedy", "location", "layer", "operation", "origin"):
        assert getattr(found, name) == getattr(expected, name)
    long = ShapeError("m" * 10_000, remedy="r" * 10_000, layer="l" * 10_000)
    assert len(statuses.to_bytes(long)) < 7_000  # metadata has 8 KB


def test_only_known_classes_are_made() -> None:
    data = statuses.to_bytes(ShapeError("x")).replace(b"ShapeError", b"SystemExit")
    assert type(statuses.from_bytes(data)).__name__ == "InternalError"


def test_chunks_that_are_left_out_or_come_twice() -> None:
    pieces = list(chunks_of(memoryview(LONG.tobytes()), 7))
    whole = b"".join(checked(pieces, len(LONG), 7))
    assert whole == LONG.tobytes()
    one, two, *rest = pieces
    for wrong in (
        *(pieces[:-1], pieces[1:], [two, one, *rest], [one, one, *rest], [one, *pieces]),
        *([*pieces, pieces[-1]], [*pieces[:-1], b"1234"], [*pieces[:-1], b""], []),
        [b"", *pieces],
    ):
        with pytest.raises(DataLossError, match="stream of chunks"):
            list(checked(wrong, len(LONG), 7))
    for size, start in ((len(LONG) - 1, 7), (len(LONG) + 1, 7), (len(LONG), 8)):
        with pytest.raises(DataLossError, match="stream of chunks"):
            list(checked(pieces, size, start))


def test_what_waits_in_a_depot_is_bounded_and_private() -> None:
    depot = Depot(100)
    ticket = depot.keep(bytes(60), "alice")
    with pytest.raises(ResourceExhaustedError, match="60 bytes of long messages wait"):
        depot.keep(bytes(60), "bob")
    for identity, name in (("bob", ticket), ("alice", bytes(16))):
        with pytest.raises(AbortedError):
            depot.take(name, identity)
    assert depot.take(ticket, "alice") == bytes(60)
    with pytest.raises(AbortedError):
        depot.take(ticket, "alice")
    depot.keep(bytes(100), "bob")


# A server whose clients are hostile


def echo(request: bytes, call: Call) -> bytes:
    return request


def error_of(failure: grpc.RpcError) -> LaminarError:
    return statuses.of_call(failure, "it")


class Raw:
    """A client that sends what it likes."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.insecure_channel(address)

    def unary(self, method: str, data: bytes) -> bytes:
        found: bytes = self.channel.unary_unary(f"/{method}")(data, timeout=SECONDS)
        return found

    def upload(self, messages: list[bytes]) -> bytes:
        call = self.channel.stream_unary(f"/{UPLOAD}")
        found: bytes = call(iter(messages), timeout=SECONDS)
        return found

    def link(self, batches: list[bytes]) -> list[Message]:
        """Open a link, send, and give what comes until the server ends it, or all is answered."""
        welcome = open_envelope(self.unary(HELLO, seal(b"")), "it")[1]
        first = batch_of(links.message(links.ATTACH, welcome[:16]))
        answers = self.channel.stream_stream(f"/{LINK}")(iter([first, *batches]), timeout=SECONDS)
        found = [Message(m.kind, memoryview(bytes(m.body))) for m in links.messages_in(answers)]
        for kind, body, _ in found:
            if kind == links.FAILED and not links.number_of(body)[0]:
                raise statuses.from_bytes(bytes(links.number_of(body)[1]))
        return found

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()


def test_versions_that_differ_are_named() -> None:
    with served({"a.B/Echo": echo}) as server, Raw(server.address) as raw:
        later = bytes([WIRE_VERSION + 1]) + seal(b"x")[1:]
        with pytest.raises(grpc.RpcError) as caught:
            raw.unary("a.B/Echo", later)
        error = error_of(caught.value)
        assert isinstance(error, FailedPreconditionError)
        assert f"version {WIRE_VERSION + 1} " in error.message
        assert f"version {WIRE_VERSION}" in error.message.partition("this task")[2]
        assert open_envelope(raw.unary("a.B/Echo", seal(b"x")), "it") == (0, b"x")


def test_messages_that_are_too_long_are_not_taken() -> None:
    with served({"a.B/Echo": echo}) as server, Raw(server.address) as raw:
        before = rss_bytes()
        with pytest.raises(grpc.RpcError) as caught:
            raw.unary("a.B/Echo", seal(bytes(5 << 20)))
        assert isinstance(error_of(caught.value), ResourceExhaustedError)
        for size in (1 << 60, (2 << 30) + 1):
            claim = seal(struct.pack("<Q", size))
            with pytest.raises(grpc.RpcError) as caught:
                raw.upload([claim, bytes(1000)])
            assert f"{size} bytes" in error_of(caught.value).message
        assert rss_bytes() - before < 16 << 20
        assert open_envelope(raw.unary("a.B/Echo", seal(b"x")), "it")[1] == b"x"


def test_uploads_that_are_cut_are_not_taken() -> None:
    with served({"a.B/Echo": echo}) as server, Raw(server.address) as raw:
        pieces = list(chunks_of(memoryview(LONG.tobytes())))
        for wrong in ([], [b"x"], [announce(bytes(LONG)), *pieces[:-1]], [seal(b"x")]):
            with pytest.raises(grpc.RpcError) as caught:
                raw.upload(wrong)
            assert isinstance(error_of(caught.value), DataLossError)
        for ticket in (b"", bytes(16), b"x" * 500):
            with pytest.raises(grpc.RpcError) as caught:
                raw.unary("a.B/Echo", seal(ticket, 1))
            assert isinstance(error_of(caught.value), AbortedError)
            for method in (RECV, RECV_STREAM):
                with pytest.raises(grpc.RpcError):
                    raw.unary(method, seal(ticket))


def test_a_request_that_is_replayed_is_refused() -> None:
    table = Table({"k": np.arange(3)})
    service = TensorService(table.receive, task=TASK)
    with nothing_is_left(), served(service=service) as server, Raw(server.address) as raw:
        request = Request(5, 1, 0, False, "k").to_bytes()
        taken = numbered(links.TAKEN, 5)
        found = raw.link([batch_of(m) for m in (request, request, taken, request)])
        kinds = [m.kind for m in found]
        assert kinds == [links.TENSOR, links.FAILED, links.FAILED]
        for message in found[1:]:
            number, rest = links.number_of(message.body)
            assert number == 5
            assert isinstance(statuses.from_bytes(bytes(rest)), AlreadyExistsError)
        assert len(table.asked) == 1
        again = Request(5, 1, 0, True, "k").to_bytes()  # a retry is sent the same once more
        found = raw.link([batch_of(request), batch_of(again)])
        assert [m.kind for m in found] == [links.TENSOR, links.TENSOR]
        assert len(table.asked) == 2


def test_links_that_begin_or_go_on_wrongly() -> None:
    table = Table({"k": np.arange(3)})
    service = TensorService(table.receive, task=TASK)
    with nothing_is_left(), served(service=service) as server, Raw(server.address) as raw:
        for wrong in (
            *(b"", b"x", bytes(100), batch_of(b"x"), batch_of(links.message(99))),
            *(batch_of(links.message(links.RECV)), batch_of(numbered(links.TENSOR, 1))),
            batch_of(struct.pack("<IB", 1 << 31, links.RECV)),
        ):
            with pytest.raises(DataLossError):
                raw.link([wrong])
        for first in ([], [batch_of(links.message(links.ATTACH, bytes(16)))]):
            call = raw.channel.stream_stream(f"/{LINK}")
            with pytest.raises(grpc.RpcError) as caught:
                list(call(iter(first), timeout=SECONDS))
            assert isinstance(error_of(caught.value), DataLossError | AbortedError)
        assert not table.asked
        eventually(lambda: all(link.pipe is None for link in service._links.values()))


def test_bytes_that_are_not_even_http() -> None:
    rng = random.Random(0)
    with nothing_is_left(), served({"a.B/Echo": echo}) as server:
        host, _, port = server.address.rpartition(":")
        for start in (
            b"",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"\x16\x03",
        ):
            for _ in range(5):
                with socket.create_connection((host, int(port)), SECONDS) as one:
                    one.sendall(start + rng.randbytes(300))
        with Channels() as channels:
            assert channels.unary(server.address, "a.B/Echo", b"x", SECONDS) == b"x"


# A task whose tensors are hostile


class Hostile(TensorService):
    """Answers all that is asked for with the messages of `answer`, and chunks with `chunks`."""

    answer: Callable[[int], list[bytes]]
    chunks: Callable[[list[bytes]], list[bytes]] = staticmethod(lambda pieces: pieces)

    def _ask(self, link: Any, pipe: Any, request: Request) -> None:
        if hasattr(self, "answer"):
            for message in self.answer(request.number):
                pipe.send(message)
        else:
            super()._ask(link, pipe, request)

    def streams(self, guard: Guard) -> Mapping[str, Any]:
        found = dict(super().streams(guard))
        honest = found[RECV_STREAM].unary_stream

        def stream(request: bytes, context: Any) -> Iterator[bytes]:
            yield from self.chunks(list(honest(request, context)))

        return {**found, RECV_STREAM: grpc.unary_stream_rpc_method_handler(stream)}


def refused(service: TensorService, kind: type[LaminarError], pattern: str) -> None:
    """The tensor of a hostile task is an error, and nothing is held for it afterwards."""
    budget = Budget(1 << 30)
    with (
        served(service=service) as server,
        Channels(names={server.address: TASK}) as channels,
        TensorClient(channels, has_sockets=False, budget=budget) as client,
    ):
        before = rss_bytes()
        with pytest.raises(kind, match=pattern) as caught:
            receive(client, server.address, "k").value()
        assert rss_bytes() - before < 16 << 20
        assert caught.value.origin is not None
        assert caught.value.origin.task == TASK
    assert budget.used_bytes == 0


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda p: p[:-1], id="no-checksum"),
        pytest.param(lambda p: p[:-2], id="truncated"),
        pytest.param(lambda p: [p[1], p[0], *p[2:]], id="reordered"),
        pytest.param(lambda p: [p[0], *p], id="replayed"),
        pytest.param(lambda p: [*p, *p], id="twice"),
        pytest.param(lambda p: [p[0][:-1], *p[1:]], id="short-chunk"),
        pytest.param(lambda p: [bytes(len(p[0])), *p[1:]], id="other-bytes"),
        pytest.param(lambda p: [b"", *p], id="empty-chunk"),
        pytest.param(lambda p: [], id="nothing"),
    ],
)
def test_chunks_that_are_not_those_announced(change: Any) -> None:
    service = Hostile(Table({"k": LONG}).receive, task=TASK)
    service.chunks = change
    refused(service, DataLossError, "stream of chunks is damaged")


def announced(number: int, **lies: Any) -> bytes:
    """READY, with a header that claims a lot."""
    header = bytearray(pack_header(payload_of(np.zeros(8, np.uint8)), is_separate=True))
    if "num_bytes" in lies:
        struct.pack_into("<Q", header, 24, lies["num_bytes"])
        struct.pack_into("<Q", header, 36, lies.get("size", lies["num_bytes"]))
    if "rank" in lies:
        header[7] = lies["rank"]
    checksum = zlib.crc32(header[36:], zlib.crc32(header[:32]))
    struct.pack_into("<I", header, 32, checksum)
    return numbered(links.READY, number, bytes(16), bytes(header))


BOMBS = [
    pytest.param({"num_bytes": 1 << 60}, ResourceExhaustedError, "are to come", id="exabyte"),
    pytest.param({"num_bytes": 3 << 30}, ResourceExhaustedError, "are to come", id="beyond"),
    pytest.param({"num_bytes": 1 << 63}, DataLossError, "the shape", id="beyond-numbers"),
    pytest.param({"num_bytes": 8, "size": 1 << 60}, DataLossError, "8 bytes for", id="product"),
    pytest.param({"rank": 255}, DataLossError, "255 axes", id="rank"),
    pytest.param({"num_bytes": 2 << 20}, AbortedError, "not there", id="no-such-ticket"),
]


@pytest.mark.parametrize(("lies", "kind", "pattern"), BOMBS)
def test_bombs_are_refused_before_there_is_memory_for_them(
    lies: dict[str, int], kind: type[LaminarError], pattern: str
) -> None:
    service = Hostile(Table({}).receive, task=TASK)
    service.answer = lambda number: [announced(number, **lies)]
    refused(service, kind, pattern)


ANSWERS: dict[str, Callable[[int], list[bytes]]] = {
    "no frame": lambda n: [numbered(links.TENSOR, n, PICKLED)],
    "no header": lambda n: [numbered(links.READY, n, bytes(16), PICKLED)],
    "no ticket": lambda n: [numbered(links.READY, n)],
    "no error": lambda n: [numbered(links.FAILED, n, PICKLED)],
    "another kind": lambda n: [numbered(200, n)],
    "a request": lambda n: [Request(n, 1, 0, False, "k").to_bytes()],
    "memory over the network": lambda n: [numbered(links.SHARED, n, bytes(8))],
    "no number": lambda n: [links.message(links.TENSOR, b"1")],
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_answers_that_are_none(answer: str) -> None:
    service = Hostile(Table({}).receive, task=TASK)
    service.answer = ANSWERS[answer]
    refused(service, DataLossError, "are not a tensor|is damaged|not an error|mutated")


def test_answers_that_nobody_asked_for() -> None:
    frame = payload_of(np.arange(3))
    service = Hostile(Table({}).receive, task=TASK)

    def answer(number: int) -> list[bytes]:
        unasked = [links.numbered(links.TENSOR, n, bytes(50)) for n in (0, 77, 2**64 - 1)]
        own = pack_header(frame) + bytes(frame.data)
        return [*unasked, announced(77), *[numbered(links.TENSOR, number, own)] * 2]

    service.answer = answer
    with served(service=service) as server, Channels() as channels:
        client = TensorClient(channels, has_sockets=False)
        for _ in range(3):
            future = receive(client, server.address, "k")
            np.testing.assert_array_equal(future.value(), np.arange(3))
        client.close()
        assert len(future.arrivals) == 1


def attack(num: int) -> None:
    """Mutated answers to many requests: an error or the tensor, and the client goes on."""
    rng = random.Random(0)
    own = pack_header(payload_of(np.arange(3))) + np.arange(3).tobytes()

    def answer(number: int) -> list[bytes]:
        message = bytearray(numbered(links.TENSOR, number, own))
        for _ in range(rng.randrange(3)):
            at = rng.randrange(13, len(message))
            message[at] = rng.choice((0, 255, message[at] ^ 1 << rng.randrange(8)))
        return [bytes(message)]

    service = Hostile(Table({}).receive, task=TASK)
    service.answer = answer
    num_right = 0
    with served(service=service) as server, Channels() as channels:
        client = TensorClient(channels, has_sockets=False)
        futures = [receive(client, server.address, "k") for _ in range(num)]
        for future in futures:
            try:
                np.testing.assert_array_equal(future.value(), np.arange(3))
                num_right += 1
            except LaminarError:
                pass
        client.close()
    assert num / 10 < num_right < num


def test_mutated_answers() -> None:
    attack(500)


@pytest.mark.exhaustive
def test_many_mutated_answers() -> None:
    attack(200_000)


def test_hostile_clients_side_by_side() -> None:
    """While some send anything, others are served."""
    table = Table({"k": np.arange(3), "long": LONG})
    service = TensorService(table.receive, task=TASK)
    stop = threading.Event()

    def attack() -> None:
        rng = random.Random(1)
        with Raw(server.address) as raw:
            while not stop.is_set():
                for use in (raw.unary, lambda _, data: raw.link([data])):
                    with pytest.raises((grpc.RpcError, LaminarError)):
                        use(rng.choice((RECV, HELLO)), rng.randbytes(rng.randrange(200)))

    with nothing_is_left(), served(service=service) as server, Channels() as channels:
        client = TensorClient(channels, has_sockets=False)
        attacker = threading.Thread(target=attack)
        attacker.start()
        for _ in range(30):
            for key in ("k", "long"):
                value = receive(client, server.address, key).value()
                np.testing.assert_array_equal(value, table.values[key])
        stop.set()
        attacker.join()
        client.close()
