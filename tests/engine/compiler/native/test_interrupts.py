"""Ctrl-C, and time limits, while the main thread is in native code that takes long."""

from __future__ import annotations

import gc
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar import ops
from laminar.engine.compiler.native import interrupts
from laminar.engine.errors import DeadlineExceededError

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="sends itself signals")

FEW, MANY = 1000, 2 * 10**9  # microseconds, and half a minute


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """SIGINT is heard, also where the tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def loop() -> tuple[Any, Any]:
    """A function that counts to a number, natively, and counts its calls."""
    calls = eng.Variable(np.int64(0))

    @eng.function
    def count(limit: Any) -> Any:
        calls.assign_add(1)
        return ops.while_loop(lambda i: i < limit, lambda i: (i + 1,), (ops.zeros((), "int64"),))

    count(ops.convert_to_tensor(FEW, "int64"))  # it is compiled
    return count, calls


def is_interrupted(run: Callable[[], Any]) -> bool:
    """Whether a SIGINT that comes soon after it has begun ends it."""
    timer = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT])
    gc.disable()  # what is raised in its callbacks, such as those of hypothesis, is lost
    try:
        timer.start()
        run()
    except KeyboardInterrupt:
        return True
    finally:
        timer.join()
        gc.enable()
    return False


def test_it_ends_the_loop_and_changes_nothing(loop: Any) -> None:
    count, calls = loop
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    for _ in range(2):
        start = time.perf_counter()
        assert is_interrupted(lambda: count(ops.convert_to_tensor(MANY, "int64")))
        assert time.perf_counter() - start < 5.0  # 0.1 s, but on a busy machine
        assert int(calls) == 1
    assert signal.set_wakeup_fd(before) == before
    count(ops.convert_to_tensor(FEW, "int64"))
    assert int(calls) == 2


def test_a_session_goes_on_after_it() -> None:
    with eng.Graph().as_default():
        limit = eng.placeholder("int64", [])
        n = eng.Variable(np.int64(0), name="n")
        (y,) = ops.while_loop(lambda i: i < limit, lambda i: (i + 1,), (ops.zeros((), "int64"),))
        step = [n.assign_add(1), y + 1]
        with eng.Session(config=eng.SessionConfig(jit_compile=True)) as session:
            session.run(n.initializer)
            session.run(step, {limit: FEW})
            assert is_interrupted(lambda: session.run(step, {limit: MANY}))
            assert session.run(n) == 1
            assert session.run(step, {limit: FEW}) == [2, FEW + 1]


def test_a_handler_that_lets_the_program_go_on(loop: Any) -> None:
    """The loop begins again, and ends."""
    count, calls = loop
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        timer = threading.Timer(0.02, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        (found,) = count(ops.convert_to_tensor(2 * 10**7, "int64"))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert int(found) == 2 * 10**7
    assert int(calls) == 2
    assert heard == [signal.SIGINT]


def test_others_who_listen_to_signals_hear_of_it(loop: Any) -> None:
    count, _ = loop
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno())
    try:
        assert is_interrupted(lambda: count(ops.convert_to_tensor(MANY, "int64")))
        assert signal.set_wakeup_fd(theirs.fileno()) == theirs.fileno()
        ours.settimeout(10)
        assert ours.recv(1) == bytes([signal.SIGINT])
    finally:
        signal.set_wakeup_fd(before)
        ours.close()
        theirs.close()


def scanned(calls: eng.Variable) -> Any:
    """A function that adds a number so many times, and counts its calls."""

    @eng.function
    def add_up(count: Any) -> Any:
        calls.assign_add(1)
        return ops.scan(lambda c, _: (c + 1.0, None), ops.zeros((), "float64"), None, count)[0]

    return add_up


def layers(calls: eng.Variable) -> Any:
    """A function of many products, none of which takes long, and counts its calls."""

    @eng.function
    def propagate(x: Any, w: Any) -> Any:
        calls.assign_add(1)
        for _ in range(200):
            x = ops.matmul(x, w)
        return x

    return propagate


def rows(calls: eng.Variable) -> Any:
    """A function whose loop several threads run, with one in it, and counts its calls."""

    @eng.function
    def repeat(x: Any, w: Any, count: Any) -> Any:
        calls.assign_add(1)

        def inner(y: Any, _: Any) -> Any:
            return ops.tanh(ops.matmul(y, w)), None

        def outer(x: Any, _: Any) -> Any:
            return ops.scan(inner, x, None, 3)[0] + x, None

        return ops.scan(outer, x, None, count)[0]

    return repeat


W = np.full((256, 256), 1e-3, "float32")


def tensors(*values: Any) -> list[Any]:
    return [ops.convert_to_tensor(v) for v in values]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("make", "few", "many"),
    [
        pytest.param(scanned, [np.int64(10**6)], [np.int64(MANY)], id="scan"),
        pytest.param(rows, [W, W, np.int64(5)], [W, W, np.int64(10**6)], id="nested"),
    ],
)
def test_it_ends_a_loop_of_known_length(make: Any, few: Any, many: Any, threads: int) -> None:
    calls = eng.Variable(np.int64(0))
    run = make(calls)
    laminar.set_threads(threads)
    try:
        expected = run(*tensors(*few)).numpy()
        for _ in range(3):
            start = time.perf_counter()
            assert is_interrupted(lambda: run(*tensors(*many)))
            assert time.perf_counter() - start < 5.0  # 0.1 s, but on a busy machine
            assert int(calls) == 1
        np.testing.assert_array_equal(run(*tensors(*few)).numpy(), expected)
    finally:
        laminar.set_threads(None)
    assert int(calls) == 2


def test_it_ends_a_long_plan_between_its_kernels() -> None:
    calls = eng.Variable(np.int64(0))
    run = layers(calls)
    x, w = tensors(np.ones((1200, 1200), "float32"), np.full((1200, 1200), 1e-3, "float32"))
    run(x[:1], w)  # it is compiled
    start = time.perf_counter()
    assert is_interrupted(lambda: run(x, w))
    assert time.perf_counter() - start < 5.0
    assert int(calls) == 1


def test_a_time_limit_ends_a_loop_of_known_length() -> None:
    with eng.Graph().as_default():
        count = eng.placeholder("int64", [])
        n = eng.Variable(np.int64(0), name="n")
        y = eng.scan(lambda c, _: (c + 1.0, None), ops.zeros((), "float64"), None, count)[0]
        step = [n.assign_add(1), y]
        with eng.Session(config=eng.SessionConfig(jit_compile=True)) as session:
            session.run(n.initializer)
            assert session.run(step, {count: 10**6}) == [1, 10**6]
            start = time.perf_counter()
            with pytest.raises(DeadlineExceededError):
                session.run(step, {count: MANY}, eng.RunOptions(timeout_in_ms=50))
            assert time.perf_counter() - start < 5.0
            assert session.run(n) == 1
            assert session.run(step, {count: 7}) == [2, 7]


def test_what_is_heard_between_loops_is_no_matter() -> None:
    calls: list[int] = []
    for _ in range(3):
        assert interrupts.interruptible(lambda: calls.append(1), calls.clear) == (None, False)
    assert len(calls) == 3
