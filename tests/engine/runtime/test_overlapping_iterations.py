"""Iterations of a loop run side by side, where there are threads and nothing keeps them apart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar.engine import Session, SessionConfig, TensorSpec
from laminar.engine.runtime import set_inter_op_threads

Loop = Callable[[Any], Any]


class Slow:
    """The square of a number, which waits for a second call at the same time, if it may."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self.most = 0

    def __call__(self, x: Any) -> list[Any]:
        with self._changed:
            self._running += 1
            self.most = max(self.most, self._running)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most > 1, timeout=0.05)
            self._running -= 1
        return [x * x]

    def of(self, x: Any) -> Any:
        return eng.host_function(self, [x], [TensorSpec((), "int32")])[0]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    yield
    set_inter_op_threads(1)


def by_the_counter(slow: Slow, parallel: int = 10) -> Loop:
    """The sum of the squares below n, each of which depends on the counter alone."""

    def run(n: Any) -> Any:
        return eng.while_loop(
            lambda i, _: i < n,
            lambda i, s: (i + 1, s + slow.of(i)),
            (0, 0),
            parallel_iterations=parallel,
        )[1]

    return run


def run_in(config: SessionConfig, loop: Loop) -> Any:
    with eng.Graph().as_default():
        n = eng.placeholder("int32", [])
        y = loop(n)
        with Session(config=config) as session:
            return session.run(y, {n: 5})


@pytest.mark.parametrize("compiled", [False, True])
def test_what_depends_on_the_counter_alone(compiled: bool) -> None:
    slow = Slow()
    config = SessionConfig(inter_op_threads=[3], jit_compile=compiled)
    assert run_in(config, by_the_counter(slow)) == 30
    assert slow.most > 1


@pytest.mark.parametrize(("threads", "parallel"), [(3, 1), (1, 10)])
def test_no_more_than_asked_for(threads: int, parallel: int) -> None:
    slow = Slow()
    config = SessionConfig(inter_op_threads=[threads])
    assert run_in(config, by_the_counter(slow, parallel)) == 30
    assert slow.most == 1


def test_functions() -> None:
    slow = Slow()
    set_inter_op_threads(3)
    assert laminar.function(by_the_counter(slow))(laminar.ops.convert_to_tensor(5)) == 30
    assert slow.most > 1


def test_scans() -> None:
    slow = Slow()

    def squares(n: Any) -> Any:
        xs = laminar.ops.stack([n, n + 1, n + 2])
        return eng.scan(lambda c, x: (c, slow.of(x)), n, xs)[1]

    found = run_in(SessionConfig(inter_op_threads=[3]), squares)
    np.testing.assert_array_equal(found, [25, 36, 49])
    assert slow.most > 1


def test_two_chains_that_each_wait_for_themselves() -> None:
    """The second chain is an iteration behind the first."""
    slow = Slow()

    def chains(n: Any) -> Any:
        def body(i: Any, x: Any, y: Any) -> Any:
            x = slow.of(x)
            return i + 1, x, slow.of(y) + x

        return eng.while_loop(lambda i, x, y: i < n, body, (0, n - 4, n - 5))[2]

    assert run_in(SessionConfig(inter_op_threads=[3]), chains) == 677
    assert slow.most > 1


def test_what_waits_for_itself_stays_one_operation() -> None:
    slow = Slow()

    def chain(n: Any) -> Any:
        body = lambda i, x: (i + 1, slow.of(x))  # noqa: E731  # it reads as a body
        return eng.while_loop(lambda i, x: i < n, body, (0, n - 4))[1]

    config = SessionConfig(inter_op_threads=[3], log_device_placement=True)
    with eng.Graph().as_default():
        n = eng.placeholder("int32", [])
        y = chain(n)
        with Session(config=config) as session:
            assert session.run(y, {n: 5}) == 1
            assert session.placement is not None
            types = {d.type for d in session.placement.decisions}
    assert slow.most == 1
    assert "While" in types
    assert "Enter" not in types


def test_a_condition_on_it_keeps_iterations_apart() -> None:
    slow = Slow()

    def until(n: Any) -> Any:
        body = lambda i, s: (i + 1, slow.of(i))  # noqa: E731  # it reads as a body
        return eng.while_loop(lambda i, s: s < n, body, (0, 0))[0]

    assert run_in(SessionConfig(inter_op_threads=[3]), until) == 4
    assert slow.most == 1


def test_effects_keep_their_order() -> None:
    seen: list[int] = []

    def write(n: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            eng.py_function(lambda x: seen.append(int(x)), [i], [])
            return i + 1, s + i

        return eng.while_loop(lambda i, s: i < n, body, (0, 0))[1]

    set_inter_op_threads(3)
    assert laminar.function(write)(laminar.ops.convert_to_tensor(5)) == 10
    assert seen == [0, 1, 2, 3, 4]
