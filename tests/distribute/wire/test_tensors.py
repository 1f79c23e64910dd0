from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from laminar.distribute.wire import Budget, Transfer
from laminar.engine.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
    ShapeError,
    UnavailableError,
)
from laminar.engine.graph import TensorSpec
from laminar.engine.runtime.rendezvous import Arrival, Receiver
from tests.distribute.wire.harness import (
    TASK,
    WAYS,
    Table,
    connected,
    eventually,
    nothing_is_left,
    receive,
    rss_bytes,
)

rng = np.random.default_rng(0)
VALUES: dict[str, Any] = {
    "scalar": np.float64(0.1),
    "short": np.arange(256, dtype=np.float32),
    "middle": rng.normal(size=100_000).astype(np.float32),
    "long": rng.normal(size=(3, 200_000)),
    "strings": np.array([b"abc", b"", b"\0"], object),
    "long-strings": np.array([b"x" * 3_000_000, b"y" * 5], object),
    "half": np.asarray(rng.normal(size=1_000_001), np.float16),
    "empty": np.zeros((0, 3), np.int8),
}
LONG_ONES = {
    "grpc": {"middle": "unary", "long": "stream", "long-strings": "stream", "half": "stream"},
    "tcp": {"long": "stream"},
    "host": dict.fromkeys(("middle", "long", "long-strings", "half"), "memory"),
}


@pytest.fixture(params=WAYS, autouse=True)
def way(request: pytest.FixtureRequest) -> str:
    """Tasks of two hosts, with sockets and without, and of one host that share memory."""
    found: str = request.param
    return found


def test_values_of_all_sizes(way: str) -> None:
    seen: list[Transfer] = []
    with (
        nothing_is_left(),
        connected(Table(VALUES).receive, on_transfer=seen.append, way=way) as found,
    ):
        client, _, address = found
        for key, expected in VALUES.items():
            value = receive(client, address, key, incarnation=7).value()
            np.testing.assert_array_equal(value, expected)
            if expected.dtype != object:
                assert value.dtype == expected.dtype
            del value
        assert {t.key: t.way for t in seen} == {
            key: LONG_ONES[way].get(key, "link") for key in VALUES
        }
        assert all(t.start_seconds <= t.end_seconds for t in seen)


def test_dead_tensors_and_errors(way: str) -> None:
    table = Table({"dead": Arrival(None, True), "bad": Arrival(error=ShapeError("no fit"))})
    with connected(table.receive, way=way) as (client, _, address):
        assert receive(client, address, "dead").get() == Arrival(None, True)
        with pytest.raises(ShapeError, match="no fit") as caught:
            receive(client, address, "bad", step=5).value()
        assert caught.value.origin == (TASK, "", 5)


def test_the_consumer_may_come_first(way: str) -> None:
    table = Table({})
    with connected(table.receive, way=way) as (client, _, address):
        futures = [receive(client, address, f"k{i}", step=i) for i in range(200)]
        for i in reversed(range(200)):
            table.send(f"k{i}", np.full(3, i))
        for i, future in enumerate(futures):
            np.testing.assert_array_equal(future.value(), np.full(3, i))
        assert table.asked == [(i, f"k{i}") for i in range(200)]


def test_many_threads_ask_at_once(way: str) -> None:
    table = Table({str(i): np.arange(i) for i in range(400)})
    with connected(table.receive, way=way) as (client, _, address):

        def ask(start: int) -> None:
            for i in range(start, 400, 8):
                np.testing.assert_array_equal(
                    receive(client, address, str(i)).value(), np.arange(i)
                )

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(key for _, key in table.asked) == sorted(table.values)


def test_deadlines_and_cancelling(way: str) -> None:
    table = Table({})
    with connected(table.receive, way=way) as (client, service, address):
        late = receive(client, address, "late", timeout_seconds=0.1)
        kept = receive(client, address, "kept", step=2)
        gone = receive(client, address, "gone", step=3)
        ended = receive(client, address, "ended", step=4)
        with pytest.raises(DeadlineExceededError, match=rf"{TASK}.*late: nothing came in 0\.1 s"):
            late.value()
        client.cancel_step(3, AbortedError("another task failed"))
        with pytest.raises(AbortedError, match="another task failed"):
            gone.value()
        eventually(lambda: "ended" in table.waiting)
        service.end_step(4)
        with pytest.raises(AbortedError, match="step 4 has ended"):
            ended.value()
        (link,) = service._links.values()
        eventually(lambda: len(link.entries) == 1)  # the sender keeps "kept" alone
        table.send("kept", np.ones(2))
        np.testing.assert_array_equal(kept.value(), np.ones(2))


def test_another_incarnation_and_another_spec(way: str) -> None:
    with connected(Table(VALUES).receive, way=way) as (client, _, address):
        with pytest.raises(AbortedError, match="restarted"):
            receive(client, address, "short", incarnation=8).value()
        for key in ("short", "long"):
            with pytest.raises(InvalidArgumentError, match="expected"):
                receive(client, address, key, spec=TensorSpec((7,), "float32")).value()


def test_the_budget_is_asked_before_memory(way: str) -> None:
    budget = Budget(6 << 20)
    with connected(Table(VALUES).receive, budget=budget, way=way) as (client, _, address):
        first: Any = receive(client, address, "long").value()
        assert budget.used_bytes >= first.nbytes
        with pytest.raises(ResourceExhaustedError, match=r"long.* bytes are to come"):
            receive(client, address, "long").value()
        view = first[1:]
        del first
        assert budget.used_bytes, "a view holds the memory"
        del view
        assert not budget.used_bytes
        np.testing.assert_array_equal(receive(client, address, "long").value(), VALUES["long"])


def test_memory_is_used_again(way: str) -> None:
    with connected(Table(VALUES).receive, way=way) as (client, _, address):
        places = set()
        for _ in range(5):
            value = receive(client, address, "long").value()
            places.add(value.ctypes.data)
            assert value.flags.writeable is (way != "host")
            del value
        assert len(places) == 1


def test_what_was_taken_is_forgotten(way: str) -> None:
    with connected(Table(VALUES).receive, way=way) as (client, service, address):
        for _ in range(200):
            receive(client, address, "short").value()
        receive(client, address, "long").value()
        (link,) = service._links.values()
        eventually(lambda: not link.entries)
        assert not service._tickets


def test_nobody_is_there_and_a_task_that_ends(way: str) -> None:
    table = Table({})
    refused = pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1: k: ")
    with nothing_is_left(), connected(table.receive, way=way) as (client, _, _), refused:
        receive(client, "127.0.0.1:1", "k").value()
    with connected(table.receive, way=way) as (client, service, address):
        waiting = receive(client, address, "never")
        eventually(lambda: "never" in table.waiting)
        service.close()
        with pytest.raises(UnavailableError, match=TASK):
            waiting.value()
    with connected(table.receive, way=way) as (client, _, address):
        waiting = receive(client, address, "never")
        client.close()
        with pytest.raises(CancelledError, match="stopped"):
            waiting.value()
        with pytest.raises(CancelledError, match="stopped"):
            receive(client, address, "never").value()


def test_memory_is_given_back_when_both_sides_have_ended(way: str) -> None:
    long = np.zeros(4 << 20)  # 32 MiB

    def use() -> None:
        with connected(Table({"long": long}).receive, way=way) as (client, _, address):
            for _ in range(6):
                held = [receive(client, address, "long").value() for _ in range(2)]
                del held

    def grown() -> int:
        before = rss_bytes()
        with nothing_is_left():
            use()
        return rss_bytes() - before

    use()
    # What is held grows each time; what an allocator keeps once, of other threads too, does not.
    assert any(grown() < 8 << 20 for _ in range(3))


def test_what_fails_in_the_sender_is_an_error_of_the_receiver(way: str) -> None:
    def receive_or_fail(step_id: int, key: str, done: Receiver) -> None:
        if key == "raises":
            raise KeyError("no such thing")
        done(Arrival([[1], [2, 3]] if key == "ragged" else np.ones(2)))

    with connected(receive_or_fail, way=way) as (client, _, address):
        with pytest.raises(InternalError, match="KeyError: 'no such thing'"):
            receive(client, address, "raises").value()
        with pytest.raises(InternalError, match="ValueError"):
            receive(client, address, "ragged").value()
        np.testing.assert_array_equal(receive(client, address, "fine").value(), np.ones(2))
