"""Sessions: feeds, fetches, a model, threads."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    DTypeError,
    InvalidArgumentError,
    LaminarError,
    ShapeError,
)
from laminar.engine.graph import DENSE, FLOATING, TensorSpec
from laminar.engine.ops.core.basic import identity
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import add, square
from laminar.engine.ops.math.reduce import reduce_mean
from laminar.engine.ops.nn.activations import relu
from laminar.engine.runtime import Plan, partitioned

runs: list[str] = []


@define("TestCounted", dtypes=FLOATING)
def counted(*xs: TensorSpec, label: str) -> TensorSpec:
    """The first input, counting runs."""
    return xs[0]


@counted.reference
def _counted(xp: Any, *xs: Any, label: str) -> Any:
    runs.append(label)
    return xs[0]


@pytest.fixture(autouse=True)
def graph() -> Iterator[eng.Graph]:
    """A graph of its own for each test."""
    runs.clear()
    with eng.Graph().as_default() as fresh:
        yield fresh


def scalar(name: str) -> Any:
    return eng.placeholder("float32", [], name=name)


# Feeds and fetches


def test_feeds_reach_any_tensor() -> None:
    x = scalar("x")
    y: Any = square(x)
    z = x + y
    with eng.Session() as session:
        assert session.run(z, {x: 2.0}) == 6.0
        assert session.run(z, {x: 2.0, y: 2.0}) == 4.0
        assert session.run(z, {"x:0": 2.0, "Square:0": 10.0}) == 12.0
        assert session.run(y, {y: 7.0}) == 7.0


def test_only_what_is_needed_runs() -> None:
    x = scalar("x")
    a: Any = counted(x, label="a")
    b: Any = counted(a, label="b")
    counted(b, label="c")
    counted(x, label="d")
    with eng.Session() as session:
        session.run(b, {x: 1.0})
        assert runs == ["a", "b"]


def test_a_feed_cuts_what_is_upstream() -> None:
    a, d = (counted(scalar(n), label=n) for n in "ad")
    b: Any = counted(scalar("pb"), label="b")
    c: Any = counted(a, b, label="c")
    counted(d, label="e")
    f: Any = counted(c, label="f")
    with eng.Session() as session:
        assert session.run(f, {b: 2.0, "a:0": 1.0}) == 1.0
    assert sorted(runs) == ["a", "c", "f"]


def test_fetches_come_in_the_structure_asked_for() -> None:
    a, b = eng.constant(1.0, name="a"), eng.constant(2.0, name="b")
    op = eng.no_op("nothing")
    v = eng.Variable(5.0, name="v")
    with eng.Session() as session:
        session.run(v.initializer)
        assert session.run([b, a, b]) == [2.0, 1.0, 2.0]
        assert session.run({"x": a, "l": [b, {"t": (a,)}]}) == {"x": 1.0, "l": [2.0, {"t": (1.0,)}]}
        assert session.run([op, a]) == [None, 1.0]
        assert session.run(op) is None
        assert session.run("nothing") is None
        assert session.run(["a:0", "nothing", v]) == [1.0, None, 5.0]
        assert session.run([]) == []
        assert session.run({}) == {}


UNKNOWN: list[Any] = [
    pytest.param("y:0", KeyError, "no operation is named 'y'", id="name"),
    pytest.param("x:3", KeyError, "has 1 outputs", id="output"),
    pytest.param(3.0, ValueError, "expected a tensor, an operation or a name", id="number"),
    pytest.param(None, ValueError, "expected a tensor", id="none"),
    pytest.param([None], ValueError, "expected a tensor", id="none-in-a-list"),
]


@pytest.mark.parametrize(("fetch", "kind", "message"), UNKNOWN)
def test_what_cannot_be_fetched(fetch: Any, kind: type[Exception], message: str) -> None:
    scalar("x")
    with eng.Session() as session, pytest.raises(kind, match=message):
        session.run(fetch)


def test_a_tensor_with_a_value_gives_it() -> None:
    with eng.eager_scope():
        eager = eng.constant("Hello")
    with eng.Graph().as_default() as graph:
        x = eng.constant(2.0)
    with eng.Session(graph=graph) as session:
        assert session.run(eager) == b"Hello"
        found = session.run({"x": x, "eager": [eager, x]})
        assert found == {"x": 2.0, "eager": [b"Hello", 2.0]}
        assert graph.operations == [x.op]  # type: ignore[attr-defined]  # a symbol


def test_what_is_of_another_kind_is_a_type_error() -> None:
    graph = eng.Graph()
    with graph.as_default():
        symbol = eng.placeholder("float32", [])
    for wrong in (
        lambda: eng.Session(graph=3),  # type: ignore[arg-type]  # it is wrong
        lambda: eng.Session(graph=graph).run(3),
        lambda: eng.Session(graph=graph).run([], [3]),  # type: ignore[arg-type]  # it is wrong
        lambda: eng.Session(graph=graph).run([], {symbol: symbol}),
        lambda: eng.import_graph_def(b"bytes"),  # type: ignore[arg-type]  # it is wrong
        lambda: graph.get_operation_by_name(3),  # type: ignore[arg-type]  # it is wrong
        lambda: graph.get_tensor_by_name(3),  # type: ignore[arg-type]  # it is wrong
    ):
        with pytest.raises(TypeError) as caught:
            wrong()
        assert isinstance(caught.value, ValueError)
        assert "got " in str(caught.value) or "is symbolic" in str(caught.value)


def test_tensors_of_another_graph() -> None:
    with eng.Graph().as_default():
        x = scalar("x")
    with eng.Session() as session:
        with pytest.raises(ValueError, match="belongs to another graph"):
            session.run(x)
        with pytest.raises(ValueError, match="belongs to another graph"):
            session.run([], {x: 1.0})


def test_a_placeholder_that_is_needed_must_be_fed() -> None:
    x, y = scalar("images"), scalar("labels")
    with eng.Session() as session:
        assert session.run(square(y), {y: 2.0}) == 4.0  # x is not needed
        with pytest.raises(InvalidArgumentError, match="was not fed .*'images'"):
            session.run(square(x))


FEEDS: list[Any] = [
    pytest.param("float32", [2], [1, 2.5], id="list"),
    pytest.param("float32", [2], np.array([1.0, 2.5]), id="float64-array"),
    pytest.param("float64", [], 0.1, id="python-float-keeps-its-bits"),
    pytest.param("float32", [2], np.array([1, 2]), id="integers-for-floats"),
    pytest.param("int32", [None], [], id="empty"),
    pytest.param("complex64", [], 2.0, id="real-for-complex"),
    pytest.param("bfloat16", [], 1.5, id="bfloat16"),
    pytest.param("int64", [], 2**40, id="large"),
    pytest.param("bool", [2], [True, False], id="bool"),
    pytest.param("string", [2], ["ä", b"\x00\xff"], id="strings"),
    pytest.param("float32", None, [[1.0]], id="unknown-rank"),
]


@pytest.mark.parametrize(("dtype", "shape", "value"), FEEDS)
def test_what_can_be_fed(dtype: str, shape: Any, value: Any) -> None:
    x: Any = eng.placeholder(dtype, shape, name="x")
    with eng.Session() as session:
        found = np.asarray(session.run(identity(x), {x: value}))
    if dtype == "string":
        assert found.tolist() == ["ä".encode(), b"\x00\xff"]
        return
    expected = np.asarray(value).astype(eng.as_dtype(dtype).numpy)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_what_is_no_graph_and_no_feeds() -> None:
    with pytest.raises(InvalidArgumentError, match="Session: graph must be a Graph, got 3"):
        eng.Session(graph=3)  # type: ignore[arg-type]  # the mistake
    x = scalar("x")
    with eng.Session() as session:
        with pytest.raises(InvalidArgumentError, match="must map tensors to values, got list"):
            session.run(x, [1.0])  # type: ignore[arg-type]  # the mistake
        assert session.run(x, {x: 1.0}) == 1.0


REFUSED: list[Any] = [
    pytest.param("float32", [2], [1.0, 2.0, 3.0], ShapeError, r"must have shape \[2\], got \[3\]"),
    pytest.param("float32", [2], 1.0, ShapeError, r"must have shape \[2\], got \[\]"),
    pytest.param("int32", [], 2.5, DTypeError, "must be int32, got float32"),
    pytest.param("int32", [1], np.array([2.0]), DTypeError, "must be int32, got float64"),
    pytest.param("bool", [], 1, DTypeError, "must be bool, got int32"),
    pytest.param("float32", [], 1j, DTypeError, "must be float32, got complex64"),
    pytest.param("float32", [], "one", DTypeError, "must be float32, got string"),
    pytest.param("string", [], 1, DTypeError, "as a string"),
    pytest.param("float32", [], object(), DTypeError, "expected numbers or strings"),
    pytest.param("float32", [2], [[1], [2, 3]], InvalidArgumentError, "equal lengths"),
    pytest.param("float32", [], None, InvalidArgumentError, "expected a tensor or an array"),
]


@pytest.mark.parametrize(("dtype", "shape", "value", "kind", "message"), REFUSED)
def test_what_cannot_be_fed(
    dtype: str, shape: Any, value: Any, kind: type[LaminarError], message: str
) -> None:
    x: Any = eng.placeholder(dtype, shape, name="x")
    with eng.Session() as session, pytest.raises(kind, match=message):
        session.run(x, {x: value})


def test_tensors_as_feeds() -> None:
    x = scalar("x")
    with eng.eager_scope():
        one, double = eng.convert_to_tensor(1.0), eng.convert_to_tensor(1.0, "float64")
    with eng.Session() as session:
        assert session.run(x, {x: one}) == 1.0
        with pytest.raises(DTypeError, match="must be float32, got float64"):
            session.run(x, {x: double})
        with pytest.raises(InvalidArgumentError, match="is symbolic"):
            session.run(x, {x: square(x)})
        with pytest.raises(InvalidArgumentError, match="an operation cannot be fed"):
            session.run(x, {"x": 1.0})
        with pytest.raises(InvalidArgumentError, match="x:0 is fed twice"):
            session.run(x, {x: 1.0, "x:0": 2.0})


def test_values_are_the_callers_own() -> None:
    v = eng.Variable([1.0, 2.0], name="v")
    x: Any = eng.placeholder("float32", [2], name="x")
    update = v.assign(x)
    value = np.array([5.0, 6.0], np.float32)
    with eng.Session() as session:
        session.run(update, {x: value})
        value[0] = 100.0
        found = session.run(v)
        found[1] = 100.0
        assert session.run(v).tolist() == [5.0, 6.0]


@pytest.mark.parametrize("dtype", sorted(DENSE))
def test_every_type_goes_through(dtype: str) -> None:
    value = np.array([0, 1, 100]).astype(eng.as_dtype(dtype).numpy)
    with eng.Session() as session:
        found = session.run(identity(eng.constant(value)))
    assert found.dtype == value.dtype
    np.testing.assert_array_equal(found, value)


def test_bytes_go_through() -> None:
    with eng.Session() as session:
        assert session.run(identity(eng.constant(b"\x00\xff\x00"))) == b"\x00\xff\x00"
        assert session.run(eng.constant([b"a", "b"])).tolist() == [b"a", b"b"]
        assert type(session.run(eng.constant(1.5, "bfloat16"))) is ml_dtypes.bfloat16


# A model


def test_the_name_of_a_variable_stands_for_its_value() -> None:
    with eng.Graph().as_default() as graph:
        w = eng.Variable([1.0, 2.0], name="w")
        doubled = eng.identity(w * 2.0)
        with eng.Session() as session:
            session.run(eng.global_variables_initializer())
            assert [v.tolist() for v in session.run(["w", "w:0", w])] == [[1.0, 2.0]] * 3
            assert session.run(doubled, {"w:0": [3.0, 4.0]}).tolist() == [6.0, 8.0]
            assert session.run(w.op) is None  # the operation itself: its handle
        found = graph.as_graph_def()
    with eng.Graph().as_default():
        eng.import_graph_def(found, name="")
        with eng.Session() as session:
            session.run("init")
            assert session.run("w:0").tolist() == [1.0, 2.0]


def test_ten_steps_of_a_layer() -> None:
    rng = np.random.default_rng(0)
    b = eng.Variable(np.zeros(100, np.float32), name="b")
    w = eng.Variable(rng.uniform(-1, 1, (784, 100)).astype(np.float32), name="w")
    x: Any = eng.placeholder("float32", [None, 784], name="x")
    cost = reduce_mean(relu(matmul(x, w.value) + b))
    with eng.Session() as session:
        session.run(eng.global_variables_initializer())
        weights, bias = session.run([w, b])
        for _ in range(10):
            row = rng.normal(size=(1, 784)).astype(np.float32)
            expected = np.maximum(row @ weights + bias, 0).mean()
            assert session.run(cost, {x: row}) == pytest.approx(expected, abs=1e-5)


def test_a_graph_may_grow_between_runs(graph: eng.Graph) -> None:
    v = eng.Variable(1.0, name="v")
    with eng.Session() as session:
        session.run([v.initializer])
        session.run(v.assign_add(2.0))
        more = v.value * 10.0
        assert session.run(more) == 30.0
        first, second = eng.no_op("first"), counted(scalar("x"), label="second")
        session.run(second, {"x:0": 1.0})
        first.add_control_input(graph.get_operation_by_name("AssignAdd"))
        second.op.add_control_input(first)  # type: ignore[attr-defined]  # in a graph
        session.run(second, {"x:0": 1.0})
        assert session.run(v) == 5.0  # the edge is seen, although the same fetch ran before


def test_a_plan_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Counting(Plan):
        def __init__(self, *args: Any, **options: Any) -> None:
            made.append(args)
            super().__init__(*args, **options)

    monkeypatch.setattr(partitioned, "Plan", Counting)
    x = scalar("x")
    y = square(x)
    with eng.Session() as session:
        for i in range(1000):
            assert session.run(y, {x: float(i)}) == float(i) ** 2
        assert len(made) == 1
        session.run(y, {y: 1.0})
        assert len(made) == 2


def test_the_order_of_feeds_makes_no_other_plan() -> None:
    x, y, z = scalar("x"), scalar("y"), scalar("z")
    total = eng.lookup("Sub")(eng.lookup("Mul")(x, y), z)
    values = {x: 5.0, y: 3.0, z: 1.0}
    with eng.Session() as session:
        for order in itertools.permutations(values):
            assert session.run(total, {t: values[t] for t in order}) == 14.0
        call = session.make_callable(total, [z, x, y])
        assert call(1.0, 5.0, 3.0) == 14.0
        assert len(vars(session._engine)["_signatures"]) == 1


def test_make_callable() -> None:
    x = scalar("x")
    y: Any = square(x)
    session = eng.Session()
    call = session.make_callable({"y": y, "op": "Square"}, [x])
    assert call(3.0) == session.run({"y": y, "op": "Square"}, {x: 3.0}) == {"y": 9.0, "op": None}
    assert session.make_callable(y, ["x:0"])(4.0) == 16.0
    with pytest.raises(InvalidArgumentError, match="takes 1 values, got 2"):
        call(1.0, 2.0)
    with pytest.raises(InvalidArgumentError, match="an operation cannot be fed"):
        session.make_callable(y, ["x"])
    with pytest.raises(InvalidArgumentError, match="is fed twice"):
        session.make_callable(y, [x, x])
    session.close()
    with pytest.raises(RuntimeError, match="the session is closed"):
        call(1.0)


# Control dependencies and threads


def test_control_dependencies_run_first() -> None:
    c = eng.Variable(0, name="c")
    x = eng.constant(7.0)
    with eng.control_dependencies([c.assign_add(1)]):
        y = identity(x)
    with eng.Session() as session:
        session.run(c.initializer)
        assert session.run(y) == 7.0
        assert session.run(c) == 1


def test_a_fed_placeholder_as_a_control_input() -> None:
    x = scalar("x")
    with eng.control_dependencies([x]):
        y = eng.constant(1.0)
        z: Any = identity(y)
    with eng.Session() as session:
        assert session.run(z, {x: 5.0}) == 1.0
        with pytest.raises(InvalidArgumentError, match="was not fed"):
            session.run(z)


def test_concurrent_updates() -> None:
    v = eng.Variable(0, name="v")
    update = v.assign_add(1)
    session = eng.Session()
    session.run(v.initializer)

    def work() -> None:
        for _ in range(100):
            session.run(update.op)  # type: ignore[attr-defined]  # in a graph

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.run(v) == 800
    session.close()


def test_concurrent_runs_do_not_mix() -> None:
    x: Any = eng.placeholder("float64", [64], name="x")
    y = x
    for _ in range(20):
        y = add(y, x)
    session = eng.Session()
    wrong: list[int] = []

    def work(i: int) -> None:
        fed = np.full(64, float(i))
        for _ in range(50):
            if not np.array_equal(session.run(y, {x: fed}), 21 * fed):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    session.close()


def test_eager_variables_are_used_by_reference() -> None:
    with eng.eager_scope():
        v = eng.Variable(3.0)
    y: Any = scalar("x")
    total = y * v
    with eng.Session() as session:
        assert session.run(total, {y: 2.0}) == 6.0
        with eng.eager_scope():
            v.assign(10.0)
        assert session.run(total, {y: 2.0}) == 20.0
        session.run(v.assign_add(1.0))
    with eng.eager_scope():
        assert float(v) == 11.0


def test_in_one_process_no_socket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError("a socket is opened")

    monkeypatch.setattr("socket.socket.__init__", refuse)
    x: Any = eng.placeholder("float32", [])
    y = x
    for i in range(4):
        with eng.device(f"cpu:{i % 2}"):
            y = square(y)
    with eng.Session(config=eng.SessionConfig({"cpu": 2}, jit_compile=True)) as session:
        assert session.run(y, {x: 2.0}) == 2.0**16


def test_a_config_of_another_kind_is_refused() -> None:
    config: Any = {"device_count": {"cpu": 2}}
    with pytest.raises(InvalidArgumentError, match="must be a SessionConfig, got dict"):
        eng.Session(config=config)
    assert not isinstance(eng.Session().run(eng.constant(1.0)), dict)
