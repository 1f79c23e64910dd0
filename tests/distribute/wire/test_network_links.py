"""Links over TCP: who is let in, what the network does to them, and what takes their place."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from laminar.distribute import certs
from laminar.distribute.wire import (
    Budget,
    Call,
    Channels,
    Credentials,
    TensorClient,
    TensorService,
    Transfer,
    WireServer,
    doors,
)
from laminar.distribute.wire.call_link import CALLS, HELLO, CallLink
from laminar.distribute.wire.envelopes import TICKET_BYTES, open_envelope, seal
from laminar.distribute.wire.keepalive import PATIENCE
from laminar.distribute.wire.links import TAKEN, head_of, number_of, numbered
from laminar.distribute.wire.network_pipe import NetworkPipe
from laminar.engine.errors import (
    DataLossError,
    LaminarError,
    ResourceExhaustedError,
    UnavailableError,
)
from tests.distribute.wire.harness import (
    QUICK,
    SECONDS,
    TASK,
    Table,
    eventually,
    nothing_is_left,
    reached,
    receive,
    served,
)
from tests.distribute.wire.proxy import FlipOnce, Proxy

MARKER = bytes(range(100, 140))
VALUES = {n: np.frombuffer(MARKER * (n // 40), np.uint8) for n in (40, 400_000)}
VALUES_BY_NAME = {str(n): value for n, value in VALUES.items()}
WHO = "a.B/Who"


def who(request: bytes, call: Call) -> bytes:
    return f"{call.peer} {call.identity} ".encode() + request


@pytest.fixture(autouse=True)
def _elsewhere() -> Iterator[None]:
    with reached("tcp"):
        yield


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Credentials]:
    """Credentials of one cluster, and of another one."""
    pytest.importorskip("cryptography")
    found = {}
    for cluster in ("our", "their"):
        folder = tmp_path_factory.mktemp(cluster)
        certs.make_authority(folder)
        for name in ("server", "client"):
            certs.make_certificate(folder, name)
            found[f"{cluster} {name}"] = Credentials.from_files(
                ca=folder / "ca.pem", cert=folder / f"{name}.pem", key=folder / f"{name}.key"
            )
    return found


def linked(channels: Channels, address: str) -> None:
    """Call until calls go along a link."""
    eventually(lambda: channels.unary(address, WHO, b"", SECONDS).startswith(b"tcp:"))


def port_of(server: WireServer) -> int:
    """That of its links."""
    assert server._door._network is not None
    return int(server._door._network.name[1])


@contextmanager
def tensors_of(table: Table, **options: Any) -> Iterator[tuple[TensorClient, WireServer]]:
    """Who has tensors, and who asks for them."""
    service = TensorService(table.receive, task=TASK)
    with (
        served({WHO: who}, service=service) as server,
        Channels(names={server.address: TASK}, keepalive=QUICK) as channels,
        TensorClient(channels, **options) as client,
    ):
        yield client, server


@contextmanager
def bypassed(monkeypatch: pytest.MonkeyPatch, *change: Any) -> Iterator[list[Proxy]]:
    """A block in which links go through proxies that misbehave."""
    proxies: dict[int, Proxy] = {}
    connect = socket.create_connection

    def through(place: tuple[str, int], timeout: float) -> socket.socket:
        host, port = place
        if port not in proxies:
            proxies[port] = Proxy(f"{host}:{port}", *change)
            found.append(proxies[port])
        return connect((host, int(proxies[port].address.partition(":")[2])), timeout)

    found: list[Proxy] = []
    with monkeypatch.context() as patch:
        patch.setattr("laminar.distribute.wire.network_pipe.create_connection", through)
        try:
            yield found
        finally:
            for proxy in found:
                proxy.close()


def test_links_within_tls(ours: dict[str, Credentials]) -> None:
    """Both sides show certificates there, too; packets come whole in both directions."""
    table = Table(VALUES_BY_NAME)
    service = TensorService(table.receive, task=TASK)
    seen: list[Transfer] = []
    with (
        nothing_is_left(),
        served({WHO: who}, service=service, credentials=ours["our server"]) as server,
        Channels(ours["our client"], has_links=True) as channels,
        TensorClient(channels, on_transfer=seen.append) as client,
    ):
        linked(channels, server.address)
        said = bytes(60_000)
        _, identity, answer = channels.unary(server.address, WHO, said, SECONDS).split(b" ", 2)
        assert identity == b"cert:client"
        assert answer == said
        for _ in range(3):
            waiting = [receive(client, server.address, key) for key in VALUES_BY_NAME]
            for future, value in zip(waiting, VALUES.values(), strict=True):
                np.testing.assert_array_equal(future.value(), value)
        assert {t.way for t in seen} == {"link"}
        pipes = [link.pipe for link in service._links.values()]
        assert [type(pipe) for pipe in pipes] == [NetworkPipe]
        del waiting, future


def test_who_is_not_let_in_over_tls(ours: dict[str, Credentials]) -> None:
    """Also with a number that is good: it was given to another one."""
    with (
        nothing_is_left(),
        served({WHO: who}, credentials=ours["our server"]) as server,
        Channels(ours["our client"], has_links=True) as channels,
    ):
        linked(channels, server.address)
        own = ours["our client"]
        for stranger in (
            *(None, ours["their client"], Credentials(ca=own.ca)),
            *(Credentials(ca=ours["their client"].ca, cert=own.cert, key=own.key),),
            ours["our server"],
        ):
            number, way = greeted(channels, server.address)
            to = doors.Way(server.address, stranger, QUICK)
            assert to.come(CALLS, number, way) is None
        assert channels.way(server.address).come(CALLS, number, way) is None  # it is used up
        number, way = greeted(channels, server.address)
        pipe = channels.way(server.address).come(CALLS, number, way)
        assert pipe is not None
        pipe.end()


def greeted(channels: Channels, address: str) -> tuple[bytes, bytes]:
    """The number of a link, and the way to it."""
    answer = channels.call(address, "unary_unary", HELLO, seal(doors.ELSEWHERE), SECONDS)
    _, welcome = open_envelope(answer, "it")
    return welcome[:TICKET_BYTES], welcome[TICKET_BYTES:]


def test_where_no_connection_can_be_made_all_goes_over_grpc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wall lets only the server's port through, or another program answers."""
    for ends in (OSError("no route"), None):

        def connect(*_: object, ends: OSError | None = ends) -> socket.socket:
            if ends is not None:
                raise ends
            with socket.create_server(("127.0.0.1", 0)) as listening:
                found = socket.create_connection(listening.getsockname())
                other, _ = listening.accept()
            other.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            other.close()
            return found

        monkeypatch.setattr("laminar.distribute.wire.network_pipe.create_connection", connect)
        seen: list[Transfer] = []
        table = Table(VALUES_BY_NAME)
        with nothing_is_left(), tensors_of(table, on_transfer=seen.append) as (client, server):
            for key, value in VALUES_BY_NAME.items():
                np.testing.assert_array_equal(receive(client, server.address, key).value(), value)
            with Channels(has_links=True) as channels:
                for _ in range(5):
                    found = channels.unary(server.address, WHO, b"", SECONDS)
                    assert found.startswith(b"ipv4:127.")
        assert [t.way for t in seen] == ["link", "unary"]


def test_who_opens_a_connection_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "SHAKE_SECONDS", 0.2)
    with nothing_is_left(), tensors_of(Table(VALUES_BY_NAME)) as (client, server):
        receive(client, server.address, "40").value()
        silent = [socket.create_connection(("127.0.0.1", port_of(server))) for _ in range(3)]
        silent[1].sendall(b"\x10\0\0\0")  # some of a packet
        for one in silent:
            one.settimeout(SECONDS)
            assert one.recv(1) == b""
            one.close()
        receive(client, server.address, "400000").value()


@pytest.mark.parametrize("size", VALUES)
def test_a_damaged_tensor_is_asked_for_again(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The rendezvous is asked once: what it gave is kept until it has come whole."""
    table = Table(VALUES_BY_NAME)
    flip = FlipOnce(MARKER)
    with (
        nothing_is_left(),
        bypassed(monkeypatch, flip) as proxies,
        tensors_of(table) as (client, server),
    ):
        never = receive(client, server.address, "never", step=2)
        eventually(lambda: table.waiting)
        value = receive(client, server.address, str(size)).value()
        np.testing.assert_array_equal(value, VALUES[size])
        assert flip.num_flipped == 1
        assert proxies[0].num_connections == 2
        table.send("never", np.arange(3))
        np.testing.assert_array_equal(never.value(), np.arange(3))
        assert sorted(key for _, key in table.asked) == sorted(["never", str(size)])
        del value


def test_damaged_requests_and_answers_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done once must not be done again by itself."""
    done: list[bytes] = []

    def note(request: bytes, call: Call) -> bytes:
        done.append(request)
        return MARKER

    for sent, num_done in ((MARKER, 0), (b"x", 1)):
        done.clear()
        with (
            bypassed(monkeypatch, FlipOnce(MARKER)),
            served({WHO: who, "a.B/Note": note}) as server,
            Channels(has_links=True, keepalive=QUICK) as channels,
        ):
            linked(channels, server.address)
            with pytest.raises(DataLossError):
                channels.unary(server.address, "a.B/Note", sent, SECONDS)
            assert len(done) == num_done
            assert channels.unary(server.address, "a.B/Note", b"y", SECONDS) == MARKER


def test_a_network_that_is_cut_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By pings, within a bounded time; when it is there again, so are calls and tensors."""
    table = Table(VALUES_BY_NAME)
    waits = threading.Event()

    def wait(request: bytes, call: Call) -> bytes:
        waits.wait(SECONDS)
        return request

    service = TensorService(table.receive, task=TASK)
    with (
        bypassed(monkeypatch) as proxies,
        served({WHO: who, "a.B/Wait": wait}, service=service) as server,
        Channels(names={server.address: TASK}, has_links=True, keepalive=QUICK) as channels,
        TensorClient(channels) as client,
    ):
        linked(channels, server.address)
        receive(client, server.address, "40").value()
        never = receive(client, server.address, "never", step=9)
        eventually(lambda: table.waiting)
        found: list[LaminarError | None] = []
        channels.begin(server.address, "a.B/Wait", b"", SECONDS, lambda _, e: found.append(e))
        for proxy in proxies:
            proxy.is_cut.set()
        start = time.monotonic()
        with pytest.raises(UnavailableError, match=rf"{TASK}.*no sign of life") as caught:
            never.value()
        assert caught.value.origin == (TASK, "", 9)
        eventually(lambda: found)
        assert isinstance(found[0], UnavailableError)
        bound = QUICK.time_seconds + PATIENCE * QUICK.timeout_seconds
        assert time.monotonic() - start < 2 * bound
        for proxy in proxies:
            proxy.is_cut.clear()
            proxy.drop_connections()
        waits.set()
        value = receive(client, server.address, "400000").value()
        np.testing.assert_array_equal(value, VALUES[400_000])
        linked(channels, server.address)


def test_limits_hold_before_there_is_memory() -> None:
    """Of the budget of the receiver, for what comes along the link."""
    budget = Budget(100_000)
    with tensors_of(Table(VALUES_BY_NAME), budget=budget) as (client, server):
        with pytest.raises(ResourceExhaustedError, match="400000"):
            receive(client, server.address, "400000").value()
        assert budget.used_bytes == 0
        np.testing.assert_array_equal(receive(client, server.address, "40").value(), VALUES[40])


def test_packets_wait_for_a_slow_reader_in_order() -> None:
    with nothing_is_left(), socket.create_server(("127.0.0.1", 0)) as listening:
        one = NetworkPipe(socket.create_connection(listening.getsockname()), QUICK)
        other = NetworkPipe(listening.accept()[0], QUICK)
        assert not one.has_ended()
        big = memoryview(bytes(100_000))
        num = 200
        for i in range(num):  # the socket takes some, a thread sends the others
            one.send(numbered(TAKEN, i, bytes(50)))
            one.put_with(head_of(TAKEN, i, len(big)), big)
        found = other.messages()
        came = [(number_of(m.body)[0], len(m.body)) for m in (next(found) for _ in range(2 * num))]
        assert came == [(i, 8 + size) for i in range(num) for size in (50, len(big))]
        found.close()  # ends the pipe
        eventually(one.has_ended)
        one.end()
        one.send(b"nobody is there")
        assert one.is_gone


def test_a_call_link_over_tcp_that_has_ended_takes_no_calls() -> None:
    """It is known before something is sent, so the call goes another way, once."""
    with served({WHO: who}) as server, Channels(has_links=True) as channels:
        linked(channels, server.address)
        link = channels._open[server.address].link
        assert isinstance(link, CallLink)
        listener = server._door._network
        assert listener is not None
        for connection in list(listener._readers.values()):
            connection.shutdown(socket.SHUT_RDWR)
        eventually(link._pipe.has_ended)
        for _ in range(20):
            assert channels.unary(server.address, WHO, b"", SECONDS)
        linked(channels, server.address)
