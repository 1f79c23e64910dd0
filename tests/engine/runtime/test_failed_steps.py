"""A step that fails has changed nothing, however it is run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, LaminarError
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


# Updates that something after them depends on


def read_after(w: Any, x: Any) -> Any:
    y = w.assign_add(1.0)
    checked = check_numerics(x * x * y)
    w.assign(y * 2.0)
    return checked


def in_a_loop(w: Any, x: Any) -> Any:
    def body(i: Any, s: Any) -> Any:
        w.assign_add(1.0)
        return i + 1, check_numerics(s * x)

    return laminar.ops.while_loop(lambda i, s: i < 5, body, (0, 1.0))[1]


def in_a_scan(w: Any, x: Any) -> Any:
    def body(s: Any, _: Any) -> Any:
        w.assign_add(1.0)
        s = check_numerics(s * x)
        return s, s

    return laminar.ops.scan(body, laminar.ops.ones(()), laminar.ops.arange(5))[0]


def in_a_branch(w: Any, x: Any) -> Any:
    def updated() -> Any:
        return check_numerics(w.assign_add(1.0) * x * 1e30)

    return laminar.ops.cond(x > 1.0, updated, lambda: x * 1.0)


def after_a_branch(w: Any, x: Any) -> Any:
    y = laminar.ops.cond(x > 1.0, lambda: w.assign_add(1.0), lambda: x * 1.0)
    return check_numerics(x * y * 1e30)


def scattered(w: Any, x: Any) -> Any:
    rows = eng.scatter_add(w, [0, 2], laminar.ops.ones((2,)))
    return check_numerics(laminar.ops.sum(rows) * x * 1e30)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize(
    "fn", [read_after, in_a_loop, in_a_scan, in_a_branch, after_a_branch, scattered]
)
def test_of_a_function_that_goes_on(fn: Callable[..., Any], jit_compile: bool) -> None:
    shape = (3,) if fn is scattered else ()
    with eng.eager_scope():
        w = eng.Variable(np.ones(shape, np.float32))
        step = eng.function(lambda x: fn(w, x), jit_compile=jit_compile)
        for _ in range(2):
            with pytest.raises(InvalidArgumentError):
                step(eng.constant(np.float32(1e30)))
            np.testing.assert_array_equal(w.numpy(), np.ones(shape))
        step(eng.constant(np.float32(0.5)))
        assert (w.numpy() != 1.0).any() or fn in (in_a_branch, after_a_branch)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("fn", [read_after, in_a_loop, in_a_branch, after_a_branch])
def test_of_a_session_that_goes_on(fn: Callable[..., Any], config: eng.SessionConfig) -> None:
    w, x = eng.Variable(1.0, name="w"), eng.placeholder("float32", [])
    y = fn(w, x)
    with eng.Session(config=config) as session:
        session.run(w.initializer)
        for _ in range(2):
            with pytest.raises(InvalidArgumentError):
                session.run(y, {x: 1e30})
            assert session.run(w) == 1.0


def test_a_variable_without_a_value_leaves_the_others() -> None:
    n, w = eng.Variable(0, name="n"), eng.Variable(0, name="w")
    both = eng.group(n.assign_add(1), w.assign_add(1))
    with eng.Session() as session:
        session.run(n.initializer)
        with pytest.raises(FailedPreconditionError, match="'w' is read before"):
            session.run(both)
        assert session.run(n) == 0


def test_what_another_step_stores_meanwhile_stays() -> None:
    """Only what the failing step has stored itself is taken back."""
    with eng.eager_scope():
        w = eng.Variable(1.0)

        def meddle(x: Any) -> Any:
            w.assign(7.0)
            raise InvalidArgumentError("it fails")

        @eng.function
        def step(x: Any) -> Any:
            y = w.assign_add(x)
            return eng.py_function(meddle, [y], "float32")

        with pytest.raises(InvalidArgumentError):
            step(eng.constant(1.0))
        assert w.numpy() == 7.0


# Over several devices


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_over_several_devices(order: tuple[int, int], jit_compile: bool) -> None:
    config = eng.SessionConfig(device_count={"CPU": 2}, jit_compile=jit_compile)
    g = eng.placeholder("float32", [4])
    first, second = order
    with eng.device(f"/cpu:{first}"):
        n = eng.Variable(np.int32(0), name="n")
        w = eng.Variable(np.zeros(4, np.float32), name="w")
        updates = [n.assign_add(1), w.assign_add(g)]
    with eng.device(f"/cpu:{second}"):
        v = eng.Variable(np.zeros(4, np.float32), name="v")
        late: Any = g
        for _ in range(20):  # the other device has long been ready
            late = laminar.ops.tanh(late)
        updates.append(v.assign_sub(check_numerics(late)))
    step = eng.group(*updates)
    with eng.Session(config=config) as session:
        session.run([n.initializer, w.initializer, v.initializer])
        for count in (1, 2):
            with pytest.raises(InvalidArgumentError):
                session.run(step, {g: BAD})
            assert session.run(n) == count - 1
            session.run(step, {g: GOOD})
            assert session.run(n) == count
            np.testing.assert_array_equal(session.run(w), GOOD * count)
