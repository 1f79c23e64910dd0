"""wrap_function: traced once, with state of its own; what a concrete function captures."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine import TensorSpec
from laminar.engine.errors import InvalidArgumentError

SCALAR = TensorSpec([], "float32")


def test_each_wrapping_has_its_state() -> None:
    traces = 0

    def count(x: Any, add: bool) -> Any:
        nonlocal traces
        traces += 1
        v = eng.Variable(5.0)
        with eng.control_dependencies([v.assign_add(x) if add else v.assign_sub(x)]):
            return v.read_value()

    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
    down = eng.wrap_function(count, [SCALAR, False])
    assert [float(down(1.0)), float(down(1.0))] == [4.0, 3.0]
    ups = [
        eng.wrap_function(count, [SCALAR, True]),
        eng.wrap_function(count, [x, True], "up"),
        eng.wrap_function(count, SCALAR, True),  # as the RFC has it
        eng.wrap_function(count, ("float32", []), add=True),
        eng.wrap_function(count, x, add=True, name="up"),
        eng.wrap_function(count, {"x": SCALAR, "add": True}),
        eng.wrap_function(count, signature=(SCALAR, True), name="up"),
    ]
    for up in ups:
        assert [float(up(1.0)), float(up(1.0))] == [6.0, 7.0]
    assert [up.name for up in ups] == ["count", "up", "count", "count", "up", "count", "up"]
    assert traces == 8
    with pytest.raises(TypeError, match="add"):
        eng.wrap_function(count, SCALAR)


def test_variables_live_with_it() -> None:
    def net() -> Any:
        weight = eng.get_variable("weight", [10, 10])
        bias = eng.get_variable("bias", [10], initializer=lambda shape, dtype: np.zeros(shape))
        calls = eng.Variable(0, name="weight")
        with eng.control_dependencies([calls.assign_add(1)]):
            return eng.identity(weight.value)[0] + bias, calls.read_value()

    before = eng.get_default_graph().get_collection("variables")
    wrapped = eng.wrap_function(net)
    gc.collect()
    assert [v.name for v in wrapped.variables] == ["weight", "bias", "weight_1"]
    wrapped()
    values, calls = wrapped()
    np.testing.assert_array_equal(values, wrapped.variables[0].numpy()[0])
    assert int(calls) == 2
    assert wrapped.graph.get_collection("variables") == wrapped.variables
    assert eng.get_default_graph().get_collection("variables") == before


def test_only_edges_order_operations() -> None:
    v = eng.Variable(0.0)

    def unordered(x: Any) -> Any:
        before = v.read_value()
        v.assign_add(x)
        return before

    wrapped = eng.wrap_function(unordered, [SCALAR])
    assert not any(op.control_inputs for op in wrapped.graph.operations)
    wrapped(1.0)
    assert float(v) == 0.0  # no output needs the update
    update = next(op for op in wrapped.graph.operations if op.type == "AssignAdd")
    assert wrapped.prune(wrapped.inputs, update)(2.0) is None
    assert float(v) == 2.0


def test_prune_and_gradients() -> None:
    v1 = eng.Variable(2.0)
    made = []

    def product(z: Any) -> Any:
        v2 = eng.Variable(3.0)
        made.append(v2)
        return eng.identity(v1 * v2 * z, name="fetch")

    wrapped = eng.wrap_function(product, [SCALAR])
    pruned = wrapped.prune(wrapped.inputs, {"y": "fetch:0"})
    x = eng.constant(1.0)
    calls: list[Any] = [wrapped, lambda x: pruned(x)["y"]]
    for call in calls:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = call(x)
        assert float(y) == 6.0
        assert [float(g) for g in tape.gradient(y, [x, v1, made[0]])] == [6.0, 3.0, 2.0]
    with pytest.raises(InvalidArgumentError, match="feeds must be tensors"):
        wrapped.prune([wrapped.outputs[0].op], [])


def test_initial_values_are_no_symbols() -> None:
    with pytest.raises(InvalidArgumentError, match="the initial value is symbolic"):
        eng.wrap_function(lambda x: eng.Variable(x + 1.0), [SCALAR])
    with pytest.raises(InvalidArgumentError, match="may return tensors, operations and None"):
        eng.wrap_function(lambda: object())


def test_captures_by_name_and_kind() -> None:
    w, n = eng.Variable(np.eye(2, dtype="float32"), name="w"), eng.Variable(0, name="n")
    table = eng.HashTable(eng.KeyValueTensorInitializer(["a"], [1]), -1, name="words")
    queue = eng.FIFOQueue(3, ["float32"], [[]], name="line")
    bias = eng.constant([1.0, 2.0])

    @eng.function
    def f(x: Any) -> Any:
        n.assign_add(1)
        return x @ w + bias, table.lookup(np.array(["a"])), queue.size()

    concrete = f.concrete(TensorSpec([None, 2], "float32"))
    found = {(c.kind, c.name) for c in concrete.captures if c.kind != "Tensor"}
    assert found == {
        ("Variable", "w"),
        ("Variable", "n"),
        ("HashTable", "words"),
        ("FIFOQueue", "line"),
    }
    items = {id(c.item) for c in concrete.captures}
    assert {id(x) for x in (w, n, table, queue, bias)} <= items
    assert {id(x) for x in concrete.captured_state} == {id(x) for x in (w, n, table, queue)}
    assert [id(c.input) for c in concrete.captures] == list(map(id, concrete.captured_inputs))


@pytest.mark.parametrize("signature", [SCALAR, [SCALAR], ("float32", ())])
def test_a_variable_that_is_returned_has_the_value_after_its_updates(signature: Any) -> None:
    def count(x: Any) -> Any:
        v = eng.Variable(5.0)
        v.assign_add(x)
        return v

    counting = eng.wrap_function(count, signature)
    assert [float(counting(1.0)), float(counting(1.0))] == [6.0, 7.0]


def test_arguments_stand_in_the_order_of_the_parameters() -> None:
    def weighted(x: Any, by: Any, *, a: Any, parts: Any) -> Any:
        return x - 10.0 * by + 100.0 * a + 1000.0 * parts["q"] - 10000.0 * parts["b"]

    spec = eng.TensorSpec([])
    parts = {"q": 4.0, "b": 5.0}
    wrapped = eng.wrap_function(weighted, spec, spec, a=spec, parts={"q": spec, "b": spec})
    expected = weighted(1.0, 2.0, a=3.0, parts=parts)
    assert float(wrapped(1.0, 2.0, 3.0, parts)) == expected
    assert float(wrapped(1.0, 2.0, 3.0, parts_q=4.0, parts_b=5.0)) == expected
