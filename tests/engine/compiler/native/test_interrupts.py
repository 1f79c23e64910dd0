"""Ctrl-C while the main thread is in a native loop."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine.compiler.native import interrupts

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
    try:
        timer.start()
        run()
    except KeyboardInterrupt:
        return True
    finally:
        timer.join()
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


def test_what_is_heard_between_loops_is_no_matter() -> None:
    calls: list[int] = []
    for _ in range(3):
        assert interrupts.interruptible(lambda: calls.append(1), calls.clear) == (None, False)
    assert len(calls) == 3
