"""Ops that no other file is about: Identity and its like, handles of variables.

And the gradient of each op that is itself the gradient of a linear one. There the second
derivative of the linear op alone is 0, so it is squared: then it depends on what is checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine import (
    GradientTape,
    Graph,
    GraphTensor,
    Session,
    Variable,
    assign,
    assign_add,
    assign_sub,
    custom_gradient,
    no_op,
    py_function,
    report_uninitialized_variables,
)
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from laminar.engine.ops.array.along import take_along_axis
from laminar.engine.ops.array.padding import pad
from laminar.engine.ops.array.rearrange import repeat, tile
from laminar.engine.ops.core.basic import identity, stop_gradient
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.nn.losses import check_labels
from laminar.engine.ops.state import variable

from .harness import check_op

Array = np.ndarray[Any, Any]

rng = np.random.default_rng(0)
X = rng.normal(size=(3, 4))
INDICES = np.array([[0, 2, 2], [1, 0, 3], [3, 3, 3]], np.int32)

LINEAR = [
    pytest.param(lambda x: pad(x, [(1, 2), (2, 0)], "reflect"), "reflect", id="pad-reflect"),
    pytest.param(lambda x: pad(x, [(1, 2), (2, 0)], "edge"), "edge", id="pad-edge"),
    pytest.param(lambda x: repeat(x, 3, 1), lambda x: np.repeat(x, 3, 1), id="repeat"),
    pytest.param(lambda x: tile(x, [2, 1, 3]), lambda x: np.tile(x, (2, 1, 3)), id="tile"),
    pytest.param(lambda x: x[1:, ::-2], lambda x: x[1:, ::-2], id="slice"),
    pytest.param(
        lambda x: take_along_axis(x, convert_to_tensor(INDICES), 1),
        lambda x: np.take_along_axis(x, INDICES, 1),
        id="take-along-axis",
    ),
]


@pytest.mark.parametrize(("fn", "reference"), LINEAR)
@pytest.mark.parametrize("x", [X, rng.normal(size=(3, 1, 4))[:, 0]], ids=["matrix", "strided"])
def test_gradient_of_the_gradient(fn: Callable[..., Any], reference: Any, x: Array) -> None:
    if isinstance(reference, str):
        mode: Any = reference
        check_op(lambda x: fn(x) * fn(x), lambda x: np.pad(x, [(1, 2), (2, 0)], mode) ** 2, [x])
    else:
        check_op(lambda x: fn(x) * fn(x), lambda x: reference(x) ** 2, [x])


SHAPES = [(3, 4), (), (0, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_identity(shape: tuple[int, ...]) -> None:
    check_op(identity, np.array, [rng.normal(size=shape)], dtypes=["bfloat16", "int8", "complex64"])
    check_op(lambda x: identity(x) * x, np.square, [rng.normal(size=shape)])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_stop_gradient(shape: tuple[int, ...]) -> None:
    x = rng.normal(size=shape)
    check_op(stop_gradient, np.array, [x], grad=False, dtypes=["float16", "bool"])
    y = convert_to_tensor(x)
    with GradientTape() as tape:
        tape.watch(y)
        z = stop_gradient(y) * y
    np.testing.assert_array_equal(tape.gradient(z, y).numpy(), x)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_custom_gradient(shape: tuple[int, ...]) -> None:
    """The gradient given here is the true one, so differences can check that it arrives."""

    @custom_gradient
    def cube_and_product(x: Any, y: Any) -> Any:
        return (x * x * x, x * y), lambda dc, dp: (3.0 * x * x * dc + y * dp, x * dp)

    check_op(
        cube_and_product,
        lambda x, y: (x**3, x * y),
        [rng.normal(size=shape), rng.normal(size=shape)],
    )


def test_read_variable() -> None:
    """Its gradient is found inside `fn`, whose own derivatives then go through it."""

    v = Variable(np.full((3, 4), 2.0))

    def slope_times_x(x: Any) -> Any:
        with GradientTape() as tape:
            y = v * v * x
        return tape.gradient(y, v) * x

    check_op(slope_times_x, lambda x: 4 * x * x, [X])


UPDATES = [
    pytest.param(variable.assign, assign, lambda v, x: x, id="assign"),
    pytest.param(variable.assign_add, assign_add, lambda v, x: v + x, id="add"),
    pytest.param(variable.assign_sub, assign_sub, lambda v, x: v - x, id="sub"),
]


@pytest.mark.parametrize(("op", "public", "expected"), UPDATES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "complex64"])
def test_updates(op: Any, public: Any, expected: Any, dtype: str) -> None:
    value = convert_to_tensor(np.array([[3], [5]]), dtype)
    v = Variable(np.array([[1], [2]]), dtype=dtype)
    before = v.value.numpy()
    result = public(v, value)
    assert result.dtype == v.dtype == dtype
    np.testing.assert_array_equal(before.astype(complex), [[1], [2]])  # a value read stays
    for found in (result.numpy(), v.numpy()):
        np.testing.assert_array_equal(
            found.astype(complex), expected(np.array([[1], [2]]), np.array([[3], [5]]))
        )
    with pytest.raises(ShapeError, match=f"{op.type}: the variable is {dtype}"):
        op(v.handle, value[0], shape=v.shape, dtype=v.dtype)
    np.testing.assert_array_equal(v.numpy(), result.numpy())


def test_variables_of_a_graph() -> None:
    with Graph().as_default() as graph:
        v, w = Variable([1.0, 2.0], name="v"), Variable(3, name="w")
        missing = report_uninitialized_variables([v, w])
        nothing = no_op()
    assert [x.op.type for x in (v, w)] == ["VarHandle", "VarHandle"]
    with Session(graph=graph) as session:
        assert session.run(missing).tolist() == [b"v", b"w"]
        session.run(v.initializer)
        assert session.run(missing).tolist() == [b"w"]
        assert session.run(nothing) is None
        with pytest.raises(FailedPreconditionError, match="'w' is read before"):
            session.run(w)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_check_labels(dtype: Any) -> None:
    labels = np.array([[0, 2], [1, 3]], dtype)
    check_op(lambda x: check_labels(x, classes=4), np.array, [labels], grad=False)
    with pytest.raises(InvalidArgumentError, match=r"the label 3 at \(1, 1\) is not one of the 3"):
        check_labels(convert_to_tensor(labels), classes=3)


def test_python_functions() -> None:
    def cubes(x: Any) -> Any:
        y = py_function(lambda a: a * a * a, [x], x.dtype)
        if isinstance(y, GraphTensor):
            y.set_shape(x.shape)
        return y

    check_op(cubes, lambda x: x**3, [X])
