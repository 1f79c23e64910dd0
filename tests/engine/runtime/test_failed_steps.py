"""A step that fails has changed nothing, however it is run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar.engine.errors import InvalidArgumentError, LaminarError
from laminar.engine.ops.core.basic import identity
from laminar.engine.ops.core.checks import check_numerics
from laminar.engine.ops.math.arithmetic import square
from laminar.engine.state import FIFOQueue

GOOD, BAD = np.full(4, 0.5, np.float32), np.full(4, np.nan, np.float32)
CONFIGS = {
    "one-by-one": eng.SessionConfig(jit_compile=False),
    "optimized": eng.SessionConfig(jit_compile=False, optimize=True),
    "compiled": eng.SessionConfig(jit_compile=True),
    "two-threads": eng.SessionConfig(jit_compile=False, inter_op_threads=[2]),
}


@pytest.fixture(autouse=True)
def graph() -> Iterator[eng.Graph]:
    with eng.Graph().as_default() as fresh:
        yield fresh


def grouped(n: Any, w: Any, g: Any) -> Any:
    return eng.group(n.assign_add(1).op, w.assign_sub(check_numerics(g)).op)


def listed(n: Any, w: Any, g: Any) -> Any:
    return [n.assign_add(1), w.assign_sub(check_numerics(g)).op]


def followed(n: Any, w: Any, g: Any) -> Any:
    """The loss is given when the updates are done."""
    checked = check_numerics(g)
    with eng.control_dependencies([n.assign_add(1).op, w.assign_sub(checked).op]):
        return identity(checked)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("step", [grouped, listed, followed])
def test_of_a_session(step: Callable[..., Any], config: eng.SessionConfig) -> None:
    n = eng.Variable(np.int32(0), name="n")
    w = eng.Variable(np.zeros(4, np.float32), name="w")
    g = eng.placeholder("float32", [4])
    run = step(n, w, g)
    with eng.Session(config=config) as session:
        session.run([n.initializer, w.initializer])
        for count in (1, 2):
            with pytest.raises(InvalidArgumentError):
                session.run(run, {g: BAD})
            assert session.run(n) == count - 1
            session.run(run, {g: GOOD})
            assert session.run(n) == count
            np.testing.assert_array_equal(session.run(w), -GOOD * count)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_that_takes_from_a_queue(config: eng.SessionConfig) -> None:
    queue = FIFOQueue(3, ["float32"], [[4]])
    value = eng.placeholder("float32", [4])
    put, close = queue.enqueue(value), queue.close()
    n = eng.Variable(np.int32(0), name="n")
    w = eng.Variable(np.zeros(4, np.float32), name="w")
    step = grouped(n, w, queue.dequeue())
    with eng.Session(config=config) as session:
        session.run([n.initializer, w.initializer])
        for array in (GOOD, BAD):
            session.run(put, {value: array})
        session.run(close)
        session.run(step)
        for _ in range(2):  # what is taken is bad; there is nothing left
            with pytest.raises(LaminarError):
                session.run(step)
            assert session.run(n) == 1
            np.testing.assert_array_equal(session.run(w), -GOOD)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_of_a_function(jit_compile: bool) -> None:
    with eng.eager_scope():
        n, w = eng.Variable(np.int32(0)), eng.Variable(np.zeros(4, np.float32))

        @eng.function(jit_compile=jit_compile)
        def step(g: Any) -> None:
            n.assign_add(1)
            w.assign_sub(check_numerics(g))

        step(eng.constant(GOOD))
        with pytest.raises(InvalidArgumentError):
            step(eng.constant(BAD))
        assert n.numpy() == 1
        np.testing.assert_array_equal(w.numpy(), -GOOD)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_of_an_optimizer(config: eng.SessionConfig) -> None:
    optimizer = laminar.optimizers.Adam(0.1)
    w = laminar.Variable(np.zeros(4, np.float32), name="w")
    optimizer.build([w])
    g = eng.placeholder("float32", [4])
    step = optimizer.apply([check_numerics(g)], [w])
    with eng.Session(config=config) as session:
        session.run(eng.global_variables_initializer())
        with pytest.raises(InvalidArgumentError):
            session.run(step, {g: BAD})
        assert session.run(optimizer.iterations) == 0
        np.testing.assert_array_equal(session.run(w), np.zeros(4))


def test_an_update_stays_before_a_later_read() -> None:
    """Nothing orders them but the program: they run as they stand."""
    v = eng.Variable(1.0, name="v")
    update: Any = v.assign_add(1.0)
    value = square(v.value)
    with eng.Session(config=eng.SessionConfig(jit_compile=False)) as session:
        session.run(v.initializer)
        assert session.run([value, update.op])[0] == 4.0


def test_a_step_does_not_wait_for_what_waits_for_it() -> None:
    """Somebody gives an element once the variable has been seen to grow."""
    queue = FIFOQueue(1, ["float32"], [[]])
    put = queue.enqueue(eng.constant(3.0))
    n = eng.Variable(np.int32(0), name="n")
    update: Any = n.assign_add(1)
    step = [update.op, square(queue.dequeue())]
    with eng.Session() as session:
        session.run(n.initializer)
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(session.run(step)[1]))
        thread.start()
        while session.run(n) == 0:
            pass
        session.run(put)
        thread.join()
        assert found == [9.0]
