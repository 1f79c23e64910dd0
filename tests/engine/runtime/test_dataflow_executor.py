"""Kernels that wait, cancellation, threads, errors: runs that decide as they go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.cancellation import CancellationManager
from laminar.engine.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    UnavailableError,
)
from laminar.engine.graph import FLOATING, TensorSpec
from laminar.engine.ops.core.basic import identity
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math.arithmetic import square
from laminar.engine.passes import StepGraph
from laminar.engine.runtime import Plan, StepContext, set_inter_op_threads


class Mailbox:
    """A one-value queue: who comes too early waits."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: list[Any] = []
        self.waiting: list[Callable[[Any], None]] = []

    def put(self, value: Any) -> None:
        with self.lock:
            if not self.waiting:
                self.values.append(value)
                return
            taker = self.waiting.pop(0)
        taker(value)

    def take(self, taker: Callable[[Any], None]) -> None:
        with self.lock:
            if not self.values:
                self.waiting.append(taker)
                return
            value = self.values.pop(0)
        taker(value)


boxes: dict[str, Mailbox] = {}


@pytest.fixture(autouse=True)
def fresh_boxes() -> Iterator[None]:
    boxes.clear()
    yield
    set_inter_op_threads(1)


def box(key: str) -> Mailbox:
    return boxes.setdefault(key, Mailbox())


@define("TestTake", stateful=True)
def take(*, key: str) -> TensorSpec:
    """What is put into a mailbox."""
    return TensorSpec([], "float32")


@take.asynchronous
def _take(context: Any, done: Any, *, key: str) -> None:
    token = context.cancellation.register(done.fail)
    if token is None:
        done.fail(context.cancelled)
        return

    def arrived(value: Any) -> None:
        if context.cancellation.deregister(token):
            done(value)

    box(key).take(arrived)


@define("TestPut", stateful=True)
def put(x: TensorSpec, *, key: str) -> tuple[TensorSpec, ...]:
    """Put x into a mailbox."""
    return ()


@put.effect
def _put(context: Any, x: Any, *, key: str) -> Any:
    box(key).put(x)
    return ()


@define("TestAsync")
def misbehave(x: TensorSpec, *, how: str) -> TensorSpec:
    """x, given in a strange way."""
    return x


@misbehave.asynchronous
def _misbehave(context: Any, done: Any, x: Any, *, how: str) -> None:
    if how == "raises":
        raise ValueError("bad value")
    if how == "fails":
        done.fail(UnavailableError("gone", remedy="come back"))
    if how == "later":
        threading.Timer(0.02, done, [x + 1]).start()
    if how == "twice":
        done(x)
        done(x)
    if how == "first then fails":
        done(x)
        done.fail(ValueError("no"))


@define("TestSleep")
def sleep(x: TensorSpec, *, seconds: float) -> TensorSpec:
    """x, after a while."""
    return x


threads: list[int] = []
most_threads: list[int] = []


@sleep.reference
def _sleep(xp: Any, x: Any, *, seconds: float) -> Any:
    threads.append(1)
    most_threads.append(len(threads))
    time.sleep(seconds)
    threads.pop()
    return x


# In a graph they give symbols; what is called here is any of these.
take_: Any = take
misbehave_: Any = misbehave
sleep_: Any = sleep
square_: Any = square
identity_: Any = identity


def test_a_kernel_that_ends_later() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        y = square_(misbehave_(x, how="later"))
    assert Plan(StepGraph([y], [x])).run([np.float32(2)], StepContext()) == [9.0]
    assert float(misbehave_(2.0, how="later")) == 3.0  # computed at once, it is waited for


def test_many_waiting_kernels_hold_no_thread() -> None:
    set_inter_op_threads(2)
    with eng.Graph().as_default():
        taken = [take_(key="box") for _ in range(100)]
        x = eng.placeholder("float32", [])
        with eng.control_dependencies([]):
            puts = [eng.get_default_graph().add(put, [identity_(x)], {"key": "box"}) for _ in taken]
    before = threading.active_count()
    plan = Plan(StepGraph(taken, [x], puts))
    counts: list[int] = []
    box("box").waiting.append(lambda value: counts.append(threading.active_count()))
    box("box").put(0.0)
    assert plan.run([np.float32(3)], StepContext()) == [3.0] * 100
    assert threading.active_count() <= before + 2
    assert counts


@pytest.mark.parametrize("threads", [1, 3])
def test_two_steps_that_need_each_other(threads: int) -> None:
    set_inter_op_threads(threads)
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        here = Plan(
            StepGraph([take_(key="a")], [x], [eng.get_default_graph().add(put, [x], {"key": "b"})])
        )
        there = Plan(
            StepGraph([take_(key="b")], [x], [eng.get_default_graph().add(put, [x], {"key": "a"})])
        )
    results: dict[str, Any] = {}
    other = threading.Thread(
        target=lambda: results.update(b=there.run([np.float32(2)], StepContext()))
    )
    other.start()
    results["a"] = here.run([np.float32(1)], StepContext())
    other.join(10)
    assert results == {"a": [2.0], "b": [1.0]}


BAD = [
    pytest.param("raises", InvalidArgumentError, "bad value", id="raises"),
    pytest.param("fails", UnavailableError, "gone", id="fails"),
    pytest.param("twice", InternalError, "ended twice", id="twice"),
    pytest.param("first then fails", InternalError, "ended twice", id="twice-failing"),
]


@pytest.mark.parametrize(("how", "kind", "message"), BAD)
def test_errors_of_kernels_that_wait(how: str, kind: type[Exception], message: str) -> None:
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float32", [])
        y = square_(misbehave_(x, how=how, name="culprit"))
        good = square_(x)
    with eng.Session(graph=graph) as session:
        with pytest.raises(kind, match=rf"{message} \[operation 'culprit'\]") as caught:
            session.run([y, good], {x: 2.0})
        found: Any = caught.value
        assert found.location == y.op.location
        assert session.run(good, {x: 3.0}) == 9.0


def test_the_first_error_stops_what_waits() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        waits = [take_(key=f"never {i}") for i in range(3)]
        bad = misbehave_(x, how="fails")
    context = StepContext()
    plan = Plan(StepGraph([*waits, bad], [x]))
    with pytest.raises(UnavailableError, match="gone"):
        plan.run([np.float32(1)], context)
    assert context.cancelled is None  # the step was, and not what it belongs to
    for i in range(3):  # what comes too late is not taken by the step that has ended
        box(f"never {i}").put(5.0)
        box(f"never {i}").put(6.0)
    assert Plan(StepGraph(waits)).run([], context) == [6.0] * 3


def test_cancelling_from_outside() -> None:
    with eng.Graph().as_default():
        y = square_(take_(key="never"))
    session = CancellationManager()
    context = StepContext(cancellation=CancellationManager(session))
    timer = threading.Timer(0.05, session.cancel, [DeadlineExceededError("it took too long")])
    timer.start()
    with pytest.raises(DeadlineExceededError, match="it took too long"):
        Plan(StepGraph([y])).run([], context)
    with pytest.raises(DeadlineExceededError, match="it took too long"):
        Plan(StepGraph([y])).run([], context)  # not even begun
    timer.join()


class InFlight:
    """How many kernels are waiting for their time to come, and the most there were."""

    lock = threading.Lock()
    now = most = 0


@define("TestInAWhile", dtypes={"x": FLOATING})
def in_a_while(x: TensorSpec) -> TensorSpec:
    """2 x, after 20 ms that hold no thread."""
    return x


@in_a_while.asynchronous
def _in_a_while(context: Any, done: Any, x: Any) -> None:
    def end() -> None:
        with InFlight.lock:
            InFlight.now -= 1
        done(2 * x)

    with InFlight.lock:
        InFlight.now += 1
        InFlight.most = max(InFlight.most, InFlight.now)
    threading.Timer(0.02, end).start()


@pytest.mark.parametrize(("parallel", "most"), [(1, 1), (4, 4)])
def test_iterations_overlap_up_to_their_limit(parallel: int, most: int) -> None:
    """What is slow hangs on the counter alone: later iterations begin before it has ended."""
    with eng.Graph().as_default():
        n: Any = eng.placeholder("float32", [])
        _, total = eng.while_loop(
            lambda i, s: i < n,
            lambda i, s: (i + 1.0, s + in_a_while(i)),
            (eng.constant(0.0), eng.constant(0.0)),
            parallel_iterations=parallel,
        )
        with eng.Session() as session:
            InFlight.most = 0
            assert session.run(total, {n: 8.0}) == 2.0 * sum(range(8))
    assert InFlight.most == most


def test_a_loop_is_cancelled_between_its_iterations() -> None:
    manager = CancellationManager()
    with eng.Graph().as_default():
        _, y = eng.while_loop(
            lambda i, v: i >= 0, lambda i, v: (i, sleep_(v, seconds=0.001)), (0, eng.constant(1.0))
        )
    timer = threading.Timer(0.05, manager.cancel)
    timer.start()
    with pytest.raises(CancelledError, match="the step was cancelled"):
        Plan(StepGraph([y])).run([], StepContext(cancellation=manager))
    timer.join()


def test_expensive_operations_run_side_by_side() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        y = sum([sleep_(x + i, seconds=0.03) for i in range(3)], x)
    plan = Plan(StepGraph([y], [x]))
    most_threads.clear()
    assert plan.run([np.float32(1)], StepContext()) == [7.0]
    assert max(most_threads) == 1
    set_inter_op_threads(3)
    most_threads.clear()
    assert plan.run([np.float32(1)], StepContext()) == [7.0]
    assert max(most_threads) > 1


def test_what_waits_for_something_cheap_runs_beside_what_is_expensive() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        first = sleep_(x, seconds=0.05)
        y = first + sleep_(x + 1.0, seconds=0.05)
    plan = Plan(StepGraph([y], [x]))
    set_inter_op_threads(4)
    most_threads.clear()
    assert plan.run([np.float32(1)], StepContext()) == [3.0]
    assert max(most_threads) == 2


def test_an_error_in_another_thread() -> None:
    set_inter_op_threads(3)
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        slow = [sleep_(x + i, seconds=0.02) for i in range(3)]
        bad = [misbehave_(sleep_(x - i, seconds=0.01), how="raises") for i in range(2)]
    plan = Plan(StepGraph([*slow, *bad], [x]))
    for _ in range(3):
        with pytest.raises(InvalidArgumentError, match="bad value"):
            plan.run([np.float32(1)], StepContext())


@pytest.mark.parametrize("seed", range(8))
def test_threads_do_not_change_results(seed: int) -> None:
    rng = np.random.default_rng(seed)
    with eng.Graph().as_default():
        xs: list[Any] = [eng.placeholder("float64", [200, 200]) for _ in range(2)]
        ys = list(xs)
        for _ in range(30):
            a, b = (ys[i] for i in rng.integers(0, len(ys), 2))
            ys.append(a * 0.5 + square_(b) * 0.1)
        plan = Plan(StepGraph(ys[-10:], xs))
    feeds = [rng.uniform(-1, 1, size=(200, 200)) for _ in range(2)]
    expected = plan.run(feeds, StepContext())
    set_inter_op_threads(4)
    for _ in range(3):
        for a, b in zip(plan.run(feeds, StepContext()), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_many_threads_run_one_plan() -> None:
    set_inter_op_threads(2)
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        y = misbehave_(x, how="later")
        z = square_(y) + sleep_(x, seconds=0.001)
    plan = Plan(StepGraph([z], [x]))
    results: dict[int, Any] = {}

    def work(k: int) -> None:
        results[k] = [plan.run([np.float32(k + i)], StepContext())[0] for i in range(5)]

    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert results == {k: [(k + i + 1) ** 2 + k + i for i in range(5)] for k in range(8)}


def test_an_interrupt_leaves_nothing_behind() -> None:
    def interrupt(context: Any, x: Any) -> Any:
        raise KeyboardInterrupt

    stop: Any = define("TestInterrupt")(_same)
    stop.effect(interrupt)
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        y, z = stop(x), take_(key="never")
    with pytest.raises(KeyboardInterrupt):
        Plan(StepGraph([z, y], [x])).run([np.float32(1)], StepContext())


def _same(x: Any) -> Any:
    """x."""
    return x


def test_at_least_one_thread() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one operation must run at a time"):
        set_inter_op_threads(0)
