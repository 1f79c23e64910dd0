"""Control flow written out as dataflow gives what the operations give, on one device or several."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math.reduce import reduce_sum
from laminar.engine.passes import StepGraph, lower_control_flow, spans_devices, waits_inside
from laminar.engine.passes.inner_graphs import CONTROL_FLOW
from laminar.engine.runtime import Plan, SessionConfig, StepContext, set_inter_op_threads
from laminar.engine.runtime.rendezvous import Rendezvous

from ...sampling import examples

runs: collections.Counter[str] = collections.Counter()


@define("TestCountedRuns")
def counted(x: Any, *, label: str) -> Any:
    """x, counting its runs."""
    return x


@counted.reference
def _counted(xp: Any, x: Any, *, label: str) -> Any:
    runs[label] += 1
    return x


@counted.grad
def _counted_grad(op: Any, dy: Any) -> Any:
    return (dy,)


def power(w: Any, n: Any, x: Any) -> list[Any]:
    _, s = eng.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s * w), (0, w * 0 + 1))
    (d,) = eng.gradients(s, [w])
    return [s, d, *eng.gradients(d, [w])]


def branches(w: Any, n: Any, x: Any) -> list[Any]:
    y = eng.cond(w > 1, lambda: w * w, lambda: -w)
    z = eng.switch_case(n, [lambda: w, lambda: w * 2, lambda: reduce_sum(x) * w])
    return [y, z, *eng.gradients(y * z, [w])]


def scans(w: Any, n: Any, x: Any) -> list[Any]:
    found = []
    for reverse in (False, True):
        c, ys = eng.scan(lambda c, v: (c * v, c + v * w), x[0] * 0 + 1, x, reverse=reverse)
        found += [c, ys, *eng.gradients(reduce_sum(c) + reduce_sum(ys * ys), [x, w])]
    return found


def nested(w: Any, n: Any, x: Any) -> list[Any]:
    def outer(i: Any, s: Any) -> Any:
        _, t = eng.while_loop(
            lambda j, t: j < i,
            lambda j, t: (j + 1, eng.cond(t > 2, lambda: t * w, lambda: t + 1)),
            (0, s),
            maximum_iterations=3,
        )
        return i + 1, t * 0.5 + w

    _, y = eng.while_loop(lambda i, s: i < n, outer, (0, w))
    return [y, *eng.gradients(y, [w])]


PROGRAMS = [power, branches, scans, nested]


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    set_inter_op_threads(request.param)
    yield
    set_inter_op_threads(1)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("program", PROGRAMS)
def test_written_out_it_gives_the_same_bits(program: Callable[..., list[Any]]) -> None:
    with eng.Graph().as_default():
        feeds: list[Any] = [
            eng.placeholder("float64", []),
            eng.placeholder("int32", []),
            eng.placeholder("float64", [None, 2]),
        ]
        fetches = program(*feeds)
    low = lower_control_flow(StepGraph(fetches, feeds))
    plan, written = Plan(StepGraph(fetches, feeds)), Plan(StepGraph(low.fetches, low.feeds))
    assert any(op.definition in CONTROL_FLOW for op in plan.operations)
    assert not any(op.definition in CONTROL_FLOW for op in written.operations)
    x = np.random.default_rng(0).normal(size=(4, 2))
    for w in (1.3, 0.7):
        for n in (0, 1, 4):
            values = [np.float64(w), np.int32(n), x]
            expected = plan.run(values, StepContext())
            for a, b in zip(written.run(values, StepContext()), expected, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("program", PROGRAMS)
def test_written_out_it_is_clustered(program: Callable[..., list[Any]]) -> None:
    """What runs in the same iterations, on the same side of conditions, is one operation."""
    with eng.Graph().as_default():
        feeds: list[Any] = [
            eng.placeholder("float64", []),
            eng.placeholder("int32", []),
            eng.placeholder("float64", [None, 2]),
        ]
        fetches = program(*feeds)
    low = lower_control_flow(StepGraph(fetches, feeds))
    plain = Plan(StepGraph(low.fetches, low.feeds))
    native = Plan(StepGraph(low.fetches, low.feeds), compiled=True)
    assert any(op.type == "Cluster" for op in native.operations)
    assert len(native.operations) < 0.9 * len(plain.operations)
    x = np.random.default_rng(0).normal(size=(4, 2))
    for w in (1.3, 0.7):
        for n in (0, 1, 4):
            values = [np.float64(w), np.int32(n), x]
            expected = plain.run(values, StepContext())
            for a, b in zip(native.run(values, StepContext()), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)


def drawn(data: st.DataObject, x: Any, n: Any, depth: int) -> Any:
    """A random expression of x, with conditions and loops in each other up to `depth`."""
    kind = data.draw(st.sampled_from(["math", "math", "cond", "while", "switch", "scan"]))
    if depth == 0 or kind == "math":
        y = eng.lookup("Tanh")(x * data.draw(st.sampled_from([0.5, 1.5])) + 0.25)
        return eng.lookup("Sin")(y) * x if data.draw(st.booleans()) else y
    inner = partial(drawn, data, depth=depth - 1)
    if kind == "cond":
        return eng.cond(x > 0.3, lambda: inner(x, n), lambda: inner(x - 1.0, n)) + x
    if kind == "switch":
        branches = [lambda k=k: inner(x * (k + 1.0), n) for k in range(3)]
        return eng.switch_case(n, branches) * 0.5
    if kind == "scan":
        ys = eng.scan(
            lambda c, y: (inner(c * y, n),) * 2, x, eng.constant([0.5, 2.0, 1.0], x.dtype)
        )
        return eng.lookup("Sum")(ys[1], axis=(0,)) + ys[0]
    return eng.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, inner(y, n) + x), (0, x))[1]


@settings(examples(12), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_clusters_change_no_program(data: st.DataObject) -> None:
    """Values and derivatives of random programs, with and without clusters."""
    with eng.Graph().as_default():
        x: Any = eng.placeholder("float64", [])
        n: Any = eng.placeholder("int32", [])
        y = drawn(data, drawn(data, x, n, 2), n, 1)
        fetches = [y, *eng.gradients(y, [x])]
    low = lower_control_flow(StepGraph(fetches, [x, n]))
    plain, native = (
        Plan(StepGraph(low.fetches, low.feeds)),
        Plan(StepGraph(low.fetches, low.feeds), compiled=True),
    )
    for w, count in ((0.2, 0), (0.9, 2), (-1.0, 3)):
        values = [np.float64(w), np.int32(count)]
        expected = plain.run(values, StepContext())
        for a, b in zip(native.run(values, StepContext()), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_operations_keep_names_and_lines() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        y = eng.cond(x > 0, lambda: counted(x, label="a", name="inner"), lambda: x, name="choice")
        z: Any = eng.lookup("Identity")(y, name="z")
    low = lower_control_flow(StepGraph([z], [x]))
    assert low.fetches[0].name == "z:0"
    inner = low.graph.get_operation_by_name("choice/branch_1/inner")
    assert inner.location is not None
    assert inner.location.filename == __file__
    assert all(op.location is not None for op in low.graph.operations)


def test_effects_keep_their_order_and_their_branch() -> None:
    def program(n: Any) -> Any:
        v.assign(1.0)

        def body(i: Any, s: Any) -> Any:
            v.assign_add(1.0)
            eng.cond(i > 1, lambda: v.assign(v.value * 2.0), lambda: v.value)
            return i + 1, s * 10 + v.value

        _, s = eng.while_loop(lambda i, s: i < n, body, (0, 0.0))
        return s, v.value

    v = eng.Variable(1.0)
    concrete = eng.function(program).concrete(eng.TensorSpec([], "int32"))
    feeds = [*concrete.inputs, *concrete.captured_inputs]
    low = lower_control_flow(StepGraph(concrete.outputs, feeds, concrete.effects))
    plan = Plan(StepGraph(low.fetches, low.feeds, low.targets))
    for threads in (1, 4):
        set_inter_op_threads(threads)
        for n in (0, 1, 5):
            expected = [float(y) for y in program(eng.constant(n))]
            values = [np.int32(n), *(t.value for t in concrete.captured)]  # type: ignore[attr-defined]  # eager
            assert [float(y) for y in plan.run(values, StepContext())] == expected
    set_inter_op_threads(1)


@define("TestLater")
def later(x: Any) -> Any:
    """x, as soon as nothing else can run."""
    return x


@later.asynchronous
def _later(context: Any, done: Any, x: Any) -> None:
    runs["later"] += 1
    done(x)


def test_what_waits_inside_of_a_loop_is_written_out() -> None:
    with eng.Graph().as_default() as graph:
        n = eng.placeholder("int32", [])
        _, y = eng.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, later(s + 1)), (0, 0))
        assert waits_inside([y.op])
        assert not spans_devices([y.op])
        with eng.Session(graph=graph) as session:
            runs.clear()
            assert session.run(y, {n: 5}) == 5
            assert runs["later"] == 5


@pytest.fixture
def two_cpus() -> SessionConfig:
    return SessionConfig(device_count={"cpu": 2})


def on(index: int) -> Any:
    return eng.device(f"/device:cpu:{index}")


@pytest.mark.parametrize("count", [5, 0, 1])
def test_a_loop_over_two_devices(
    count: int, two_cpus: SessionConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, Any]] = []
    send = Rendezvous.send

    def noted(self: Any, key: Any, value: Any, *, is_dead: bool = False) -> None:
        sent.append((key.tensor_name, None if is_dead else value))
        send(self, key, value, is_dead=is_dead)

    monkeypatch.setattr(Rendezvous, "send", noted)
    with eng.Graph().as_default() as graph:
        n = eng.placeholder("int32", [])

        def body(i: Any, s: Any) -> Any:
            with on(1):
                t = counted(s * 2.0, label="there")
            return i + 1, t + 1.0

        with on(0):
            _, y = eng.while_loop(lambda i, s: i < n, body, (0, 1.0))
        assert spans_devices([y.op])
        with eng.Session(graph=graph, config=two_cpus) as session:
            runs.clear()
            assert session.run(y, {n: count}) == 2.0 ** (count + 1) - 1
    assert runs["there"] == count
    decisions = [bool(v) for name, v in sent if "LoopCond" in name]
    assert decisions == [True] * count + [False]


@pytest.mark.parametrize("taken", [True, False])
def test_branches_on_two_devices(taken: bool, two_cpus: SessionConfig) -> None:
    def branch(index: int, label: str) -> Callable[[], Any]:
        def run() -> Any:
            with on(index):
                return counted(x * (index + 2.0), label=label)

        return run

    with eng.Graph().as_default() as graph:
        x, p = eng.placeholder("float32", []), eng.placeholder("bool", [])
        with on(0):
            y = eng.cond(p, branch(1, "true"), branch(0, "false"))
            (dx,) = eng.gradients(y, [x])
        with eng.Session(graph=graph, config=two_cpus) as session:
            runs.clear()
            assert session.run([y, dx], {x: 2.0, p: taken}) == ([6.0, 3.0] if taken else [4.0, 2.0])
    assert runs == {"true": 1} if taken else {"false": 1}


def test_loops_in_loops_over_two_devices_with_gradients(two_cpus: SessionConfig) -> None:
    def inner(j: Any, t: Any) -> Any:
        with on(1):
            return j + 1, t * w

    def outer(i: Any, s: Any) -> Any:
        _, t = eng.while_loop(lambda j, t: j < i, inner, (0, s))
        return i + 1, t + w

    with eng.Graph().as_default() as graph:
        w, n = eng.placeholder("float64", []), eng.placeholder("int32", [])
        with on(0):
            _, y = eng.while_loop(lambda i, s: i < n, outer, (0, w))
            dw: Any = eng.gradients(y, [w])[0]
    feeds = [w, n]
    plan = Plan(StepGraph([y, dw], feeds))
    with eng.Session(graph=graph, config=two_cpus) as session:
        for k in (0, 1, 4):
            values = [np.float64(1.3), np.int32(k)]
            expected = plan.run(values, StepContext())
            np.testing.assert_array_equal(session.run([y, dw], {w: 1.3, n: k}), expected)


def test_an_error_in_a_loop_over_two_devices_leaves_the_session_usable(
    two_cpus: SessionConfig,
) -> None:
    @define("TestFailsAt")
    def fails_at(x: Any, limit: Any) -> Any:
        """x; raises from `limit` on."""
        return x

    @fails_at.reference
    def kernel(xp: Any, x: Any, limit: Any) -> Any:
        if x >= limit:
            raise ValueError("too large")
        return x

    def body(i: Any, s: Any) -> Any:
        with on(1):
            t = fails_at(s, limit)
        return i + 1, t + 1.0

    with eng.Graph().as_default() as graph:
        limit = eng.placeholder("float32", [])
        with on(0):
            _, y = eng.while_loop(lambda i, s: i < 5, body, (0, 0.0))
        with eng.Session(graph=graph, config=two_cpus) as session:
            with pytest.raises(eng.errors.InvalidArgumentError, match="too large") as caught:
                session.run(y, {limit: 3.0})
            assert caught.value.location is not None
            assert caught.value.location.function == "body"
            assert session.run(y, {limit: 9.0}) == 5.0
