"""`gradients`: derivatives as more operations of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.elementary import exp, tanh
from laminar.engine.ops.math.reduce import reduce_sum
from laminar.engine.ops.nn.activations import relu
from tests.engine import programs

from ...sampling import examples

rng = np.random.default_rng(0)


def test_a_layer_against_differences() -> None:
    values = {"x": rng.normal(size=(3, 4)), "w": rng.normal(size=(4, 2)), "b": rng.normal(size=2)}
    with eng.Graph().as_default():
        x, w, b = (eng.placeholder("float64", v.shape, name=n) for n, v in values.items())
        cost: Any = reduce_sum(relu(matmul(x, w) + b))
        grads = eng.gradients(cost, [b, w, x])

    def at(name: str, value: Any) -> float:
        fed = {**values, name: value}
        return float(np.maximum(fed["x"] @ fed["w"] + fed["b"], 0).sum())

    with eng.Session(graph=cost.graph) as session:
        feed = {x: values["x"], w: values["w"], b: values["b"]}
        for name, found in zip("bwx", session.run(grads, feed), strict=True):
            step = rng.normal(size=values[name].shape)
            h = 1e-6
            slope = (at(name, values[name] + h * step) - at(name, values[name] - h * step)) / (
                2 * h
            )
            assert float(np.sum(found * step)) == pytest.approx(slope, abs=1e-6)


def test_variables_of_the_graph() -> None:
    with eng.Graph().as_default():
        w = eng.Variable(np.asarray([1.0, 2.0]), name="w")
        x = eng.placeholder("float64", [2], name="x")
        loss = reduce_sum(w * w * x) + reduce_sum(w.value)  # two reads of w
        (dw,) = eng.gradients(loss, [w])
        with eng.Session() as session:
            session.run(w.initializer)
            np.testing.assert_array_equal(session.run(dw, {x: [3.0, 4.0]}), [7.0, 17.0])


def test_nothing_runs_and_only_nodes_are_added() -> None:
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float64", [], name="x")
        y = exp(x) * x
        before = graph.operations
        (dx,) = eng.gradients(y, x, name="slopes")
    assert graph.operations[: len(before)] == before
    assert all(op.name.startswith("slopes/") for op in graph.operations[len(before) :])
    assert isinstance(dx, eng.GraphTensor)


def test_the_graph_need_not_be_the_default_one() -> None:
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float64", [], name="x")
        y = x * x
    (dx,) = eng.gradients(y, x)
    assert isinstance(dx, eng.GraphTensor)
    assert dx.graph is graph


def test_unconnected() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float64", [2], name="x")
        w = eng.Variable([1.0, 2.0], name="w")
        y = eng.placeholder("float64", [], name="y")
        assert eng.gradients(y * y, [x, w]) == [None, None]
        zeros = eng.gradients(y * y, [x, w], unconnected="zero")
        with pytest.raises(InvalidArgumentError, match="unconnected"):
            eng.gradients(y, x, unconnected="nothing")
        with eng.Session() as session:
            session.run(w.initializer)
            dx, dw = session.run(zeros, {x: [1.0, 1.0]})
    assert dx.tolist() == dw.tolist() == [0.0, 0.0]


def test_weights() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float64", [2], name="x")
        y, z = x * x, x * 3.0
        weighted = eng.gradients([y, z], x, [[10.0, 1.0], None])
        with eng.Session() as session:
            (found,) = session.run(weighted, {x: [1.0, 2.0]})
            assert found.tolist() == [23.0, 7.0]
            (found,) = session.run(eng.gradients(reduce_sum(y), x, [[3.0]]), {x: [1.0, 2.0]})
            assert found.tolist() == [6.0, 12.0]  # [3.0] is one weight, for one result
        with pytest.raises(InvalidArgumentError, match="2 results are weighted by 3"):
            eng.gradients([y, z], x, [1.0, 2.0, 3.0])
        with pytest.raises(InvalidArgumentError, match="must have its shape and dtype"):
            eng.gradients(y, x, [[1.0, 2.0, 3.0]])


def test_stop_gradients_makes_derivatives_partial() -> None:
    with eng.Graph().as_default():
        a = eng.placeholder("float64", [], name="a")
        b = a * 2.0
        total = eng.gradients(a + b, [a, b])
        partial = eng.gradients(a + b, [a, b], stop_gradients=[a, b])
        with eng.Session() as session:
            assert session.run(total, {a: 1.0}) == [3.0, 1.0]
            assert session.run(partial, {a: 1.0}) == [1.0, 1.0]


def test_a_source_on_the_way_to_another() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float64", [], name="x")
        y = tanh(x)
        z = y * y
        with eng.Session() as session:
            dx, dy, y_value = session.run([*eng.gradients(z, [x, y]), y], {x: 0.3})
    assert dy == pytest.approx(2 * y_value)
    assert dx == pytest.approx(2 * y_value * (1 - y_value**2))


def test_values_have_no_graph() -> None:
    with pytest.raises(InvalidArgumentError, match="belongs to none") as caught:
        eng.gradients(eng.convert_to_tensor(1.0), [])
    assert caught.value.remedy is not None
    assert "GradientTape" in caught.value.remedy


@examples(30)
@given(programs.programs(), st.integers(0, 2**31))
def test_the_graph_agrees_with_the_tape(program: programs.Program, seed: int) -> None:
    inputs = list(np.random.default_rng(seed).normal(size=(2, 2, 2)))
    tensors = [eng.convert_to_tensor(x) for x in inputs]
    with eng.GradientTape() as tape:
        tape.watch(tensors)
        y = programs.run(program, tensors)[-1]
    eager = tape.gradient(y, tensors)
    with eng.Graph().as_default() as graph:
        xs = [eng.placeholder("float64", [2, 2], name=n) for n in "ab"]
        found = eng.gradients(programs.run(program, xs)[-1], xs)
        assert [g is None for g in found] == [g is None for g in eager]
        graph.finalize()
        with eng.Session() as session:
            values = session.run(
                [g for g in found if g is not None], dict(zip(xs, inputs, strict=True))
            )
    for value, e in zip(values, [e for e in eager if e is not None], strict=True):
        np.testing.assert_array_equal(value, e.numpy())
