"""Threads that stop together: the first failure, the grace period, loopers."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import pytest

from laminar.engine.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
)
from laminar.engine.state.coordinator import Coordinator, LooperThread

pytestmark = pytest.mark.usefixtures("no_thread_left")


def loops(coord: Coordinator, n: int, fail: dict[int, Exception]) -> list[threading.Thread]:
    def work(i: int) -> None:
        with coord.stop_on_exception():
            while not coord.should_stop():
                if i in fail:
                    raise fail[i]
                coord.wait_for_stop(0.001)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    return threads


def test_one_failure_stops_all_and_join_raises_it() -> None:
    coord = Coordinator()
    assert not coord.should_stop()
    error = ValueError("the third")
    threads = loops(coord, 10, {3: error})
    with pytest.raises(ValueError, match="the third") as raised:
        coord.join(threads)
    assert raised.value is error
    assert coord.should_stop()
    assert coord.joined
    assert not any(t.is_alive() for t in threads)


def test_a_stop_without_an_error_lets_join_return() -> None:
    coord = Coordinator()
    for thread in loops(coord, 3, {}):
        coord.register_thread(thread)
    coord.request_stop()
    assert coord.should_stop()
    coord.join()


@pytest.mark.parametrize("how", ["exception", "exc_info"])
def test_the_end_of_input_is_a_clean_stop(how: str) -> None:
    coord = Coordinator()
    try:
        raise OutOfRangeError("the end")
    except OutOfRangeError as error:
        raised: Any = error if how == "exception" else sys.exc_info()
        coord.request_stop(raised)
    coord.join()


def test_what_is_clean_can_be_chosen() -> None:
    coord = Coordinator(clean_stop_exception_types=(KeyError,))
    coord.request_stop(KeyError("fine"))
    coord.join()
    coord = Coordinator(clean_stop_exception_types=())
    coord.request_stop(OutOfRangeError("not fine"))
    with pytest.raises(OutOfRangeError):
        coord.join()


def test_only_the_first_error_counts() -> None:
    coord = Coordinator()
    coord.request_stop(ValueError("first"))
    coord.request_stop(ValueError("second"))
    with pytest.raises(ValueError, match="first"):
        coord.raise_requested_exception()
    with pytest.raises(ValueError, match="first"):
        coord.join()


def test_after_join_a_failure_is_raised_where_it_is_reported() -> None:
    coord = Coordinator()
    coord.request_stop()
    coord.join()
    with pytest.raises(ValueError, match="late"):
        coord.request_stop(ValueError("late"))
    coord.clear_stop()
    assert not coord.should_stop()
    assert not coord.joined
    coord.request_stop(ValueError("anew"))
    with pytest.raises(ValueError, match="anew"):
        coord.join()


def test_join_ends_when_the_threads_do() -> None:
    coord = Coordinator()
    thread = threading.Thread(target=lambda: time.sleep(0.02))
    thread.start()
    coord.join([thread])
    assert not coord.should_stop()


def test_a_thread_that_does_not_stop_is_named_after_the_grace_period() -> None:
    coord = Coordinator()
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="stubborn")
    thread.start()
    coord.request_stop()
    with pytest.raises(DeadlineExceededError, match="stubborn") as caught:
        coord.join([thread], stop_grace_period_secs=0.01)
    assert isinstance(caught.value, RuntimeError)
    coord.join([thread], stop_grace_period_secs=0.01, ignore_live_threads=True)
    coord.clear_stop()
    coord.request_stop(ValueError("why"))
    with pytest.raises(ValueError, match="why") as raised:
        coord.join([thread], stop_grace_period_secs=0.01)
    assert "stubborn" in raised.value.__notes__[0]
    release.set()
    thread.join()


def test_wrong_use() -> None:
    coord = Coordinator()
    with pytest.raises(InvalidArgumentError, match="grace"):
        coord.join(stop_grace_period_secs=-1)
    with pytest.raises(FailedPreconditionError, match="own end"):
        coord.join([threading.current_thread()])
    with pytest.raises(InvalidArgumentError, match="Coordinator"):
        LooperThread("coord", 1.0)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InvalidArgumentError, match="interval"):
        LooperThread(coord, -1.0)


def test_a_stop_calls_back_those_inside_the_block_once() -> None:
    coord = Coordinator()
    calls: list[str] = []
    with coord.calling_on_stop(lambda: calls.append("left before")):
        pass
    with coord.calling_on_stop(lambda: calls.append("inside")):
        coord.request_stop()
        coord.request_stop()
    with coord.calling_on_stop(lambda: calls.append("stopped already")):
        pass
    assert calls == ["inside", "stopped already"]


def test_a_looper_calls_at_its_interval() -> None:
    coord = Coordinator()
    times: list[float] = []

    def tick(by: int, *, unit: float) -> None:
        times.append(by * unit)
        if len(times) == 4:
            coord.request_stop()

    start = time.monotonic()
    LooperThread.loop(coord, 0.02, tick, (2,), {"unit": 0.5})
    coord.join()
    assert times == [1.0] * 4
    assert time.monotonic() - start >= 3 * 0.02


def test_an_error_in_a_looper_ends_join_with_it() -> None:
    coord = Coordinator()
    seen: list[str] = []

    class Failing(LooperThread):
        def start_loop(self) -> None:
            seen.append("start")

        def run_loop(self) -> None:
            raise RuntimeError("in the loop")

    Failing(coord, None).start()
    with pytest.raises(RuntimeError, match="in the loop"):
        coord.join()
    assert seen == ["start"]


def test_a_looper_says_when_it_ends() -> None:
    coord = Coordinator()
    seen: list[str] = []

    class Counting(LooperThread):
        def run_loop(self) -> None:
            seen.append("run")
            coord.request_stop()

        def stop_loop(self) -> None:
            seen.append("stop")

    Counting(coord, 0).start()
    coord.join()
    assert seen == ["run", "stop"]
