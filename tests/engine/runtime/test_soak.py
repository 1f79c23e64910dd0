"""Many steps leave nothing behind: no memory, no objects, no threads."""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import DeadlineExceededError, InvalidArgumentError
from laminar.engine.ops.core.checks import check_numerics
from laminar.engine.ops.math.arithmetic import add, multiply
from laminar.engine.ops.math.elementary import tanh

CHAIN = 20  # operations of a step
NODE_STEPS = 20_000  # of each workload, after as many to warm up

SECONDS_TO_END = 20.0  # for threads of steps that were dropped

Step = Callable[[int], object]
Left = tuple[int, ...]


def chain(x: Any) -> Any:
    for _ in range(CHAIN // 2):
        x = tanh(add(x, 0.5))
    return x


def data(i: int) -> Any:
    """Batches of sizes that repeat."""
    return np.full(1 + i % 5, i % 7, "float32")


@contextmanager
def plain() -> Iterator[Step]:
    """A session that runs operation by operation."""
    with session_of_a_chain(eng.SessionConfig(jit_compile=False)) as step:
        yield step


@contextmanager
def native() -> Iterator[Step]:
    """A session that runs native code."""
    with session_of_a_chain(eng.SessionConfig(jit_compile=True)) as step:
        yield step


@contextmanager
def session_of_a_chain(config: eng.SessionConfig) -> Iterator[Step]:
    with eng.Graph().as_default():
        x, v = eng.placeholder("float32", [None]), eng.Variable(0.0, name="v")
        update = v.assign_add(eng.lookup("Sum")(chain(x), axis=(0,)))
        with eng.Session(config=config) as session:
            session.run(v.initializer)
            yield lambda i: session.run(update, {x: data(i)})


@contextmanager
def watched() -> Iterator[Step]:
    """Runs that are traced or limited in time, some of which end by an error."""
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [None])
        y = chain(check_numerics(x, "x"))
        take = eng.FIFOQueue(2, ["float32"], [[]]).dequeue()
        with eng.Session() as session:

            def step(i: int) -> None:
                if i % 10 == 0:
                    with pytest.raises(InvalidArgumentError):
                        session.run(y, {x: [np.nan]})
                elif i % 50 == 1:
                    with pytest.raises(DeadlineExceededError):
                        session.run(take, options=eng.RunOptions(timeout_in_ms=1))
                else:
                    options = eng.RunOptions(timeout_in_ms=60_000, trace=i % 2 == 0)
                    session.run(y, {x: data(i)}, options, eng.RunMetadata())

            yield step


@contextmanager
def functions() -> Iterator[Step]:
    """Calls of a function, under a tape."""
    v: Any = eng.Variable(np.float32(0.5))

    @eng.function
    def loss(x: Any) -> Any:
        return eng.lookup("Sum")(chain(multiply(x, v)), axis=(0,))

    def step(i: int) -> None:
        with eng.GradientTape() as tape:
            y = loss(data(i))
        v.assign_sub(multiply(tape.gradient(y, v), 1e-3))

    yield step


@contextmanager
def queues() -> Iterator[Step]:
    """Steps that put batches into a queue, and steps that take them."""
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [4])
        queue = eng.FIFOQueue(4, ["float32"], [[4]])
        put, take = queue.enqueue([x]), chain(queue.dequeue())
        with eng.Session() as session:

            def step(i: int) -> None:
                if i % 10 == 0:  # the taker comes first, and waits
                    thread = threading.Thread(target=session.run, args=(take,))
                    thread.start()
                    session.run(put, {x: np.ones(4)})
                    thread.join()
                else:
                    session.run(put, {x: np.ones(4)})
                    session.run(take)

            yield step


@contextmanager
def loops() -> Iterator[Step]:
    """Loops with a queue inside, written out as dataflow."""
    with eng.Graph().as_default():
        queue = eng.FIFOQueue(8, ["float32"], [[]])
        put = queue.enqueue([eng.constant(0.5)])
        total = eng.fori_loop(0, 3, lambda i, s: chain(add(s, queue.dequeue())), eng.constant(0.0))
        with eng.Session() as session:
            yield lambda i: [*(session.run(put) for _ in range(3)), session.run(total)]


@contextmanager
def devices() -> Iterator[Step]:
    """Steps over two devices."""
    with eng.Graph().as_default():
        x: Any = eng.placeholder("float32", [None])
        y = x
        for i in range(4):
            with eng.device(f"cpu:{i % 2}"):
                y = chain(y)
        with eng.Session(config=eng.SessionConfig({"cpu": 2})) as session:
            yield lambda i: session.run(y, {x: data(i)})


@contextmanager
def partial_runs() -> Iterator[Step]:
    """Steps that are fed bit by bit, some of which are dropped half-way."""
    with eng.Graph().as_default():
        x, z = eng.placeholder("float32", [None]), eng.placeholder("float32", [None])
        a = chain(x)
        b = chain(add(a, z))
        with eng.Session() as session:

            def step(i: int) -> None:
                handle = session.partial_run_setup([a, b], [x, z])
                session.partial_run(handle, a, {x: data(i)})
                if i % 3:
                    session.partial_run(handle, b, {z: data(i)})

            yield step


@contextmanager
def sessions() -> Iterator[Step]:
    """A graph, a variable and a session for each step."""

    def step(i: int) -> None:
        with session_of_a_chain(eng.SessionConfig()) as run:
            run(i)

    yield step


# How many of the steps above count as many node steps as CHAIN: those that make something count.
WORKLOADS: dict[Any, int] = {
    plain: 1,
    native: 1,
    watched: 5,
    functions: 3,
    queues: 5,
    loops: 20,
    devices: 10,
    partial_runs: 10,
    sessions: 50,
}


def growth(workload: Any, steps: int) -> Left:
    """Bytes, objects and threads that `steps` steps leave, after as many others."""

    def state() -> tuple[int, int, int]:
        for _ in range(3):
            gc.collect()
        return tracemalloc.get_traced_memory()[0], len(gc.get_objects()), threading.active_count()

    with workload() as step:
        for i in range(steps):
            step(i)
        tracemalloc.start()
        try:
            for i in range(50):
                step(i)  # what is traced from now on
            before = state()
            for i in range(steps):
                step(i)
            end = time.monotonic() + SECONDS_TO_END
            while True:
                left = tuple(b - a for a, b in zip(before, state(), strict=True))
                if is_nothing(left) or time.monotonic() > end:
                    return left
                time.sleep(0.1)
        finally:
            tracemalloc.stop()


def is_nothing(left: Left) -> bool:
    bytes_, objects, threads = left
    return bytes_ < 32_000 and objects < 100 and threads <= 1


@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.__name__)
def test_steps_leave_nothing(workload: Any) -> None:
    """What leaks does so each time; what other tests have left may end, or come, once."""
    steps = NODE_STEPS // CHAIN // WORKLOADS[workload]
    found = [growth(workload, steps)]
    while not is_nothing(found[-1]) and len(found) < 3:
        found.append(growth(workload, steps))
    assert is_nothing(found[-1]), found
