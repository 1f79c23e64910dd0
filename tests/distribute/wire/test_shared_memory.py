from __future__ import annotations

import array
import fcntl
import mmap
import os
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.distribute.wire import Channels, TensorClient, TensorService, links
from laminar.distribute.wire.doors import _Listener, _unix_socket
from laminar.distribute.wire.local_pipe import LocalPipe, boot_id
from laminar.distribute.wire.shared_memory import SharedBuffers, SharedFile
from laminar.distribute.wire.socket_pipe import SocketPipe
from laminar.engine.errors import DataLossError
from tests.distribute.wire.harness import (
    SECONDS,
    Table,
    connected,
    eventually,
    nothing_is_left,
    receive,
    served,
)

pytestmark = pytest.mark.skipif(not boot_id(), reason="no memory files (memfd) on this system")

LONG = np.random.default_rng(0).normal(size=50_000)


def placed(buffers: SharedBuffers, data: bytes) -> tuple[int, int | None]:
    number = buffers.place(data)
    assert number is not None
    return number, buffers.new_file(number)


def test_what_is_placed_is_read_there() -> None:
    with nothing_is_left():
        buffers = SharedBuffers()
        number, fd = placed(buffers, b"abc" * 30_000)
        assert fd is not None
        memory = SharedFile(fd).memory(90_000)
        assert memory[:90_000].tobytes() == b"abc" * 30_000
        buffers.take_back(number)
        assert placed(buffers, b"xyz" * 30_000) == (number, None)  # the same, which is known
        assert memory[:90_000].tobytes() == b"xyz" * 30_000
        other, new = placed(buffers, b"other" * 20_000)
        assert other != number
        assert new is not None
        buffers.close()
        assert buffers.place(b"late") is None
        assert memory[:90_000].tobytes() == b"xyz" * 30_000  # it stays with who has mapped it
        del memory


def test_who_receives_a_file_can_neither_write_nor_shorten_it() -> None:
    buffers = SharedBuffers()
    _, fd = placed(buffers, bytes(100_000))
    assert fd is not None
    memory = SharedFile(fd).memory(100_000)
    assert not memory.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        memory[0] = 1
    with pytest.raises(PermissionError):
        mmap.mmap(fd, 1 << 16, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    for size in (0, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    with pytest.raises(PermissionError):
        os.write(fd, b"x")
    with pytest.raises(PermissionError):
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    buffers.close()


def test_files_that_are_not_sealed_are_refused(tmp_path: Path) -> None:
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 1 << 16)
    with pytest.raises(DataLossError, match="not sealed"):
        SharedFile(fd)
    os.close(fd)
    with open(tmp_path / "file", "w+b") as file:
        file.write(bytes(100))
        file.flush()
        with pytest.raises(DataLossError, match="no memory to be shared"):
            SharedFile(file.fileno())


def test_memory_of_another_size_than_told_is_not_mapped() -> None:
    """A sender that shares a terabyte, and says that eight bytes of it are meant."""
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 1 << 40)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    with nothing_is_left():
        file = SharedFile(fd)
        for size in (8, (1 << 40) + 1):
            with pytest.raises(DataLossError, match="were told to be in"):
                file.memory(size)
        file.close()
        file.close()
    os.close(fd)


def test_too_much_in_the_receivers_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laminar.distribute.wire.shared_memory._MOST_BYTES", 3 << 16)
    buffers = SharedBuffers()
    first = buffers.place(bytes(2 << 16))
    assert first is not None
    assert buffers.place(bytes(2 << 16)) is None
    buffers.take_back(first)
    assert buffers.place(bytes(3 << 16)) is not None  # in place of the other
    buffers.close()


def test_what_finds_no_memory_comes_over_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laminar.distribute.wire.shared_memory._MOST_BYTES", 1 << 19)
    ways: list[str] = []
    table = Table({"long": LONG})
    with connected(table.receive, on_transfer=lambda t: ways.append(t.way)) as (client, _, address):
        held = [receive(client, address, "long").value() for _ in range(3)]
        for value in held:
            np.testing.assert_array_equal(value, LONG)
        assert ways == ["memory", "unary", "unary"]


def test_memory_outlives_the_sender() -> None:
    with connected(Table({"long": LONG}).receive) as (client, service, address):
        value = receive(client, address, "long").value()
        service.close()
    np.testing.assert_array_equal(value, LONG)


def test_memory_of_a_link_that_broke_is_not_given_to_the_next() -> None:
    """Numbers of memory begin anew: one that is let go late must not free another of its number."""
    table = Table({str(i): LONG + i for i in range(6)})
    with connected(table.receive) as (client, service, address):
        early = [receive(client, address, str(i)).value() for i in range(2)]
        peer = client._peers[address]
        for link in list(service._links.values()):
            assert link.pipe is not None
            link.pipe.close()
        eventually(lambda: peer._thread is None)
        late = receive(client, address, "2").value()
        del early  # numbers 1 and 2 of the link that broke; `late` is number 1 of this one
        others = [receive(client, address, str(i)).value() for i in (3, 4, 5)]
        for i, value in enumerate([late, *others], 2):
            np.testing.assert_array_equal(value, LONG + i)


def pair() -> tuple[LocalPipe, LocalPipe]:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return LocalPipe(one), LocalPipe(other)


def test_packets_wait_for_a_slow_reader_in_order() -> None:
    with nothing_is_left():
        one, other = pair()
        num = 3_000
        for i in range(num):  # the socket takes a few, a thread sends the others
            one.send(links.numbered(links.TAKEN, i, bytes(50)))
        found = other.messages()
        numbers = [links.number_of(next(found).body)[0] for _ in range(num)]
        assert numbers == list(range(num))
        one.end()
        assert next(found, None) is None
        other.end()
        one.send(b"nobody is there")


def test_packets_that_are_no_messages() -> None:
    for packet in (b"x", links.message(links.TAKEN, b"ab")[:-1], bytes([255] * 40)):
        one, other = pair()
        one.send(packet)
        with pytest.raises(DataLossError, match="link"):
            next(other.messages())
        one.end()


def test_strangers_are_not_served() -> None:
    """A process of this host that knows the socket's name, and not the number of a link."""
    with nothing_is_left():
        service = TensorService(Table({"k": LONG}).receive)
        with (
            served(service=service) as server,
            Channels() as channels,
            TensorClient(channels) as client,
        ):
            address = server.address
            receive(client, address, "k").value()
            listener = server._door._local
            assert listener is not None
            name = bytes(listener.name)[1:]
            for first in (
                links.message(links.ATTACH, bytes(16)),
                links.Request(1, 1, 0, False, "k").to_bytes(),
                b"\xff" * 100,
            ):
                pipe = LocalPipe.connect(name)
                pipe.send(first + links.Request(1, 1, 0, False, "k").to_bytes())
                assert list(pipe.messages()) == []
            silent = LocalPipe.connect(name)
            receive(client, address, "k").value()  # the others are served as before
            eventually(lambda: len(listener._readers) == 2)
        assert list(silent.messages()) == []  # it does not keep the task from stopping


def test_files_that_nobody_asked_for_are_closed() -> None:
    done = threading.Event()
    found: list[Any] = []

    def serve(pipe: SocketPipe) -> None:
        found.extend(m.kind for m in pipe.messages())
        done.set()

    with nothing_is_left():
        listener = _Listener(_unix_socket(), LocalPipe, serve)
        pipe = LocalPipe.connect(bytes(listener.name)[1:])
        fd = os.open("/dev/null", os.O_RDONLY)
        for _ in range(20):
            pipe.send(links.numbered(links.TAKEN, 1), fd)
        many = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd] * 5))]
        pipe._socket.sendmsg([links.numbered(links.TAKEN, 1)], many)
        os.close(fd)
        pipe.end()
        assert done.wait(SECONDS)
        listener.close()
    assert len(found) == 21
