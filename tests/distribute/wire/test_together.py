from __future__ import annotations

import gc
import os
import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from laminar.distribute.wire import Together, links
from laminar.distribute.wire.links import StreamPipe, messages_of, number_of, numbered
from laminar.distribute.wire.local_pipe import LocalPipe, boot_id
from laminar.distribute.wire.together import is_held, joined
from tests.distribute.wire.harness import Table, connected, eventually, receive

needs_sockets = pytest.mark.skipif(not boot_id(), reason="no sockets within the host")


class Sent:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def send(self, messages: bytes) -> None:
        if not is_held(self, messages):
            self.put(messages)

    def put(self, messages: bytes) -> None:
        self.pieces.append(messages)


def test_messages_that_are_said_together_fit_into_packets() -> None:
    messages = [bytes([i % 251]) * (i * 37 % 900 + 1) for i in range(1000)]
    pieces = list(joined(messages))
    assert b"".join(pieces) == b"".join(messages)
    assert 1 < len(pieces) < 20
    assert max(map(len, pieces)) <= 64 << 10
    assert list(joined([bytes(1 << 17)])) == [bytes(1 << 17)]
    assert list(joined([])) == []


def test_what_a_block_sends_goes_at_its_end_to_each_in_one_piece() -> None:
    one, other = Sent(), Sent()
    with Together():
        one.send(b"a")
        with Together():
            other.send(b"x")
            one.send(b"b")
        assert one.pieces == other.pieces == []
    assert (one.pieces, other.pieces) == ([b"ab"], [b"x"])
    one.send(b"c")
    assert one.pieces == [b"ab", b"c"]


def test_an_error_in_a_block_keeps_nothing_back() -> None:
    sent = Sent()

    def fails() -> None:
        with Together():
            sent.send(b"a")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fails()
    sent.send(b"b")
    assert sent.pieces == [b"a", b"b"]


def test_a_block_holds_nothing_of_other_threads() -> None:
    sent = Sent()
    with Together():
        thread = threading.Thread(target=sent.send, args=(b"now",))
        thread.start()
        thread.join()
        assert sent.pieces == [b"now"]


def test_a_block_that_another_thread_ends_leaves_that_ones_own() -> None:
    """A generator that is forgotten in the middle of a packet ends where it is collected."""
    sent, mine = Sent(), Sent()

    def packet() -> Iterator[None]:
        with Together():
            sent.send(b"a")
            yield

    found = [packet()]
    thread = threading.Thread(target=next, args=found)
    thread.start()
    thread.join()
    with Together():
        mine.send(b"b")
        found.clear()
        gc.collect()
        assert (sent.pieces, mine.pieces) == ([b"a"], [])
        mine.send(b"c")
    assert mine.pieces == [b"bc"]


def test_a_thread_whose_block_another_has_ended_holds_nothing_back() -> None:
    """One that goes on to serve others, as those of a pool do."""
    sent = Sent()

    def packet() -> Iterator[None]:
        with Together():
            yield

    found = packet()
    next(found)
    thread = threading.Thread(target=list, args=(found,))
    thread.start()
    thread.join()
    sent.send(b"a")
    assert sent.pieces == [b"a"]
    with Together():
        sent.send(b"b")
        assert sent.pieces == [b"a"]
    assert sent.pieces == [b"a", b"b"]


def test_what_answers_a_batch_is_one_batch() -> None:
    batches = [links.batch_of(b"".join(numbered(links.RECV, i) for i in range(5)))] * 2
    pipe = StreamPipe()
    for message in links.messages_in(batches):
        pipe.send(numbered(links.TENSOR, number_of(message.body)[0]))
    pipe.close()
    assert [pipe._waiting.get() for _ in range(3)] == [
        b"".join(numbered(links.TENSOR, i) for i in range(5)),
        b"".join(numbered(links.TENSOR, i) for i in range(5)),
        None,
    ]


@needs_sockets
def test_a_file_goes_behind_what_was_said_before() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one, other = LocalPipe(ours), LocalPipe(theirs)
    file = os.open(os.devnull, os.O_RDONLY)
    with Together():
        one.send(numbered(links.TENSOR, 1))
        one.send(numbered(links.TENSOR, 2))
        one.send(numbered(links.SHARED, 3), file)
        os.close(file)  # whose it is may close it as soon as it was sent
        one.send(numbered(links.TENSOR, 4))
    one.end()
    came = [(number_of(m.body)[0], m.fd is not None) for m in other.messages()]
    assert came == [(1, False), (2, False), (3, True), (4, False)]


@needs_sockets
def test_tensors_that_are_asked_for_in_one_message_come_in_one_packet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table({str(i): np.arange(i, i + 3.0) for i in range(6)})
    with connected(table.receive) as (client, _, address):
        receive(client, address, "0").value()  # there is a link
        sizes: list[int] = []
        put = LocalPipe.put

        def noted(self: LocalPipe, messages: bytes, fd: int | None = None) -> None:
            batch = links.batch_of(messages)
            sizes.append(sum(m.kind == links.TENSOR for m in messages_of(batch)))
            put(self, messages, fd)

        monkeypatch.setattr(LocalPipe, "put", noted)
        found: dict[str, np.ndarray] = {}
        asked = [
            (key, lambda arrival, key=key: found.__setitem__(key, arrival.value))
            for key in table.values
        ]
        client.receive_all(address, 2, asked, 0, 20.0)
        eventually(lambda: len(found) == 6)
        assert [n for n in sizes if n] == [6]
    for i in range(6):
        np.testing.assert_array_equal(found[str(i)], np.arange(i, i + 3.0))
