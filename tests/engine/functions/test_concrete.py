"""Concrete functions: a graph as a callable, and functions carved out of a graph."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine import TensorSpec
from laminar.engine.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ShapeError,
)
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import square
from laminar.engine.ops.math.elementary import tanh


def tensor(value: Any, dtype: str = "float32") -> Any:
    return eng.convert_to_tensor(np.asarray(value, dtype))


# Concrete functions


def test_a_graph_for_specs() -> None:
    w = eng.Variable(np.ones((10, 3), np.float32))
    f = eng.function(lambda x: matmul(x, w.value))
    g = f.concrete(TensorSpec([None, 10]))
    assert f.concrete(TensorSpec([None, 10])) is g
    assert f.trace_count == 1
    (x,) = g.inputs
    assert (x.op.type, x.shape, x.dtype) == ("Placeholder", (None, 10), "float32")
    assert [y.shape for y in g.outputs] == [(None, 3)]
    assert g.captured == [w.handle]
    np.testing.assert_array_equal(g(np.ones((4, 10), np.float32)), np.full((4, 3), 10.0))


def test_the_effects_of_a_graph_happen_when_it_is_called() -> None:
    v = eng.Variable(0.0)
    g = eng.function(lambda: v.assign_add(1.0)).concrete()
    assert float(v) == 0.0
    g()
    assert float(v) == 1.0


def test_structured_outputs() -> None:
    g = eng.function(lambda x: {"a": x, "b": [None, x * 2.0]}).concrete(TensorSpec([]))
    assert g.structured_outputs["b"][0] is None
    found = g(3.0)
    assert (found["a"], found["b"][0], found["b"][1]) == (3.0, None, 6.0)


def test_arguments_are_checked() -> None:
    g = eng.function(lambda x, y: x).concrete(TensorSpec([None, 2]), TensorSpec([], "float64"))
    assert g(np.array([[1, 2]], np.float32), 3.0).tolist() == [[1.0, 2.0]]
    with pytest.raises(InvalidArgumentError, match="expected 2 tensors, got 1"):
        g(1.0)
    with pytest.raises(ShapeError, match=r"the argument 'x' was traced as float32\[\?, 2\]"):
        g(np.ones((2, 3), np.float32), 3.0)
    with pytest.raises(DTypeError, match="the argument 'y' was traced as float64"):
        g(np.ones((2, 2), np.float32), tensor(1.0))


def test_what_is_not_needed_does_not_run() -> None:
    def f(x: Any) -> Any:
        tanh(x)
        return x * 2.0

    g = eng.function(f).concrete(TensorSpec([]))
    assert "Tanh" in [op.type for op in g.graph.operations]
    assert "Tanh" not in [op.type for op in g.operations]


def test_a_graph_that_captures_a_symbol_runs_in_its_place_only() -> None:
    inner: list[Any] = []

    def f(x: Any) -> Any:
        g = eng.function(lambda z: z + x).concrete(TensorSpec([]))
        inner.append(g)
        return g(x)

    assert eng.function(f)(tensor(2)) == 4.0
    with pytest.raises(FailedPreconditionError, match="is symbolic, and the call runs outside"):
        inner[0](1.0)
    assert not inner[0].fits(None)
    assert not inner[0].fits(eng.Graph())


def test_the_values_of_a_call_are_freed() -> None:
    g = eng.function(lambda x: x * 2.0).concrete(TensorSpec([3]))
    x = tensor([1, 2, 3])
    array = weakref.ref(x)
    g(x)
    del x
    gc.collect()
    assert array() is None


# graph_function


def chain() -> eng.Graph:
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float32", [], name="x")
        square(square(x))
    return graph


def test_carve() -> None:
    f = eng.graph_function(chain(), ["Square:0"], "Square_1:0")
    assert f(2.0) == 4.0
    assert f(tensor(3)) == 9.0
    with pytest.raises(ShapeError, match="Square"):
        f(tensor([1, 2]))
    assert (
        eng.graph_function(chain(), ["Square:0"], ["Square_1:0"])(2.0) == 4.0
    )  # as the RFC has it
    pair = eng.graph_function(chain(), ["x:0"], ["Square:0", "Square_1:0"])(2.0)
    assert [float(y) for y in pair] == [4.0, 16.0]


def test_carve_tensors_of_a_trace() -> None:
    traced = eng.function(lambda x: square(square(x))).concrete(TensorSpec([], "float64"))
    graph = traced.graph
    whole = eng.graph_function(graph, traced.inputs, {"y": traced.outputs[0], "ops": ["Square"]})
    found = whole(2.0)
    assert (float(found["y"]), found["ops"]) == (16.0, [None])
    x = tensor(3.0, "float64")
    half = eng.graph_function(graph, ["Square:0"], "Square_1:0")
    with eng.GradientTape() as outer:
        outer.watch(x)
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = half(x)
        dx = tape.gradient(y, x)
    assert (float(dx), float(outer.gradient(dx, x))) == (6.0, 2.0)
    assert float(eng.function(lambda z: half(z) + 1.0)(x)) == 10.0


def test_pruning() -> None:
    counter = eng.Variable(0.0)

    def f(x: Any) -> Any:
        counter.assign_add(1.0)
        return square(x)

    graph = eng.function(f).concrete(TensorSpec([])).graph
    assert eng.graph_function(graph, ["x:0"], "Square:0")(3.0) == 9.0
    assert float(counter) == 0.0
    assert eng.graph_function(graph, ["x:0"], "Square:0", prune=False)(3.0) == 9.0
    assert float(counter) == 1.0


def test_the_variables_of_a_plain_graph_are_shared_by_its_functions() -> None:
    with eng.Graph().as_default() as graph:
        v = eng.Variable(5.0, name="v")
        eng.global_variables_initializer()
        v.assign_add(1.0)
    read = eng.graph_function(graph, [], "v/read:0")
    with pytest.raises(FailedPreconditionError, match="variable 'v' is read before"):
        read()
    assert eng.graph_function(graph, [], graph.get_operation_by_name("init"))() is None
    assert [float(eng.graph_function(graph, [], "AssignAdd:0")()) for _ in range(2)] == [6.0, 7.0]
    assert read() == 7.0


WRONG: list[Any] = [
    pytest.param(["Square"], "Square_1:0", InvalidArgumentError, "must be different", id="op"),
    pytest.param(["x:0", "x:0"], "Square:0", InvalidArgumentError, "must be different", id="twice"),
    pytest.param(["y:0"], "Square:0", NotFoundError, "no operation is named 'y'", id="input"),
    pytest.param(["x:0"], ["y"], NotFoundError, "no operation is named 'y'", id="output"),
]


@pytest.mark.parametrize(("inputs", "outputs", "kind", "message"), WRONG)
def test_what_cannot_be_carved(
    inputs: Any, outputs: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        eng.graph_function(chain(), inputs, outputs)


@pytest.mark.parametrize(
    "given", [("float32", (None, 10)), ((None, 10), "float32"), [(None, 10), np.float32]]
)
def test_a_pair_of_dtype_and_shape_is_a_spec(given: Any) -> None:
    w = eng.Variable(np.ones((10, 2), np.float32))
    f = eng.function(lambda x: matmul(x, w.value))
    g = f.concrete(tuple(given))
    assert [x.spec for x in g.inputs] == [TensorSpec((None, 10), "float32")]
    assert g(np.ones((4, 10))).tolist() == [[10.0, 10.0]] * 4  # cast, as a session casts feeds
    assert g(np.ones((1, 10), np.int64)).tolist() == [[10.0, 10.0]]
    assert f.concrete(TensorSpec((None, 10), "float32")) is g
    with pytest.raises(DTypeError, match="was traced as"):
        g(np.ones((4, 10), np.complex64))
    with pytest.raises(DTypeError, match="was traced as"):
        g(eng.convert_to_tensor(np.ones((4, 10))))


def test_a_graph_without_inputs_is_warned_of() -> None:
    f = eng.function(lambda x, n=2: x)
    with pytest.warns(UserWarning, match="has no inputs.*x=3, n=2"):
        f.concrete(3)
    with pytest.warns(UserWarning, match=r"has no inputs.*x=\[None, 10\]"):
        f.concrete([None, 10])
    eng.function(lambda: 1.0).concrete()


def test_the_graph_and_the_state_of_a_function_by_the_names_of_the_rfc() -> None:
    weight = eng.Variable(np.ones((10, 3), "float32"))

    @eng.function
    def product(x: Any) -> Any:
        return x @ weight

    found = product.graph_function(("float32", (None, 10)))
    (node,) = (n for n in found.graph.get_operations() if n.name == "x")
    assert node.type == "Placeholder"
    assert node.outputs[0].shape == (None, 10)
    assert found(np.ones((4, 10))).shape == (4, 3)
    assert product.graph_function(("float32", (None, 10))) is found
    assert [v is weight for v in product.captured_state] == [True]


def test_arguments_are_in_the_order_of_the_parameters() -> None:
    spec = eng.TensorSpec((), "float32")

    @eng.function
    def less(b: Any, a: Any, *, c: Any) -> Any:
        return b["y"] - 2.0 * b["x"] - 10.0 * a + 100.0 * c

    concrete = less.concrete({"y": spec, "x": spec}, spec, c=spec)
    expected = less({"y": 1.0, "x": 2.0}, 3.0, c=4.0).numpy()
    assert expected == 367.0
    assert concrete({"y": 1.0, "x": 2.0}, 3.0, 4.0).numpy() == expected
    assert concrete(2.0, 1.0, 3.0, 4.0).numpy() == expected
    assert concrete(b_x=2.0, b_y=1.0, a=3.0, c=4.0).numpy() == expected


def test_arguments_by_name() -> None:
    @eng.function
    def affine(x: Any, scale: Any, **more: Any) -> Any:
        return x * scale + more["shift"]

    spec = eng.TensorSpec((), "float32")
    concrete = affine.concrete(eng.TensorSpec((), "float32", "first"), spec, shift=spec)
    assert concrete(first=2.0, more_shift=1.0, scale=3.0).numpy() == 7.0
    assert concrete(2.0, more_shift=1.0, scale=3.0).numpy() == 7.0
    for given in ({"first": 2.0}, {"first": 2.0, "scale": 3.0, "shift": 1.0}):
        with pytest.raises(InvalidArgumentError, match="by name"):
            concrete(**given)
    with pytest.raises(InvalidArgumentError, match="by name"):
        concrete(2.0, first=2.0, scale=3.0, more_shift=1.0)


def test_of_a_signature_without_arguments() -> None:
    double = eng.function(lambda x: 2 * x, input_signature=[TensorSpec((None,), "float32")])
    concrete = double.concrete()
    assert concrete is double.concrete(TensorSpec((None,), "float32"))
    np.testing.assert_array_equal(concrete(np.ones(2, np.float32)), [2.0, 2.0])
    with pytest.raises(TypeError, match="missing a required argument"):
        eng.function(lambda x: 2 * x).concrete()
    nothing = eng.function(lambda: eng.constant(1.0), input_signature=[])
    assert nothing.concrete()().numpy() == 1.0


def test_a_list_is_the_value_of_one_tensor_or_of_several() -> None:
    def plus(x: Any, y: Any) -> Any:
        return x + y

    of_two = eng.function(plus).concrete(eng.TensorSpec([2]), eng.TensorSpec([]))
    for found in (of_two([1.0, 2.0], 3.0), of_two([1.0, 2.0], y=3.0)):
        np.testing.assert_array_equal(found, [4.0, 5.0])
    with pytest.raises(InvalidArgumentError, match="expected 2 tensors, got 3"):
        of_two([1.0, 2.0, 3.0])
    of_a_list = eng.function(lambda xs: xs[0] - xs[1]).concrete([eng.TensorSpec([])] * 2)
    assert float(of_a_list([5.0, 2.0])) == float(of_a_list(5.0, 2.0)) == 3.0
    wrapped = eng.wrap_function(lambda x: x * 2.0, [eng.TensorSpec([3])])
    np.testing.assert_array_equal(wrapped([1.0, 2.0, 3.0]), [2.0, 4.0, 6.0])
