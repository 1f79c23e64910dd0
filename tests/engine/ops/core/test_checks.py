from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.checks import check, check_numerics, ensure_shape
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math.arithmetic import square
from laminar.engine.runtime import Session

from ..harness import check_op

rng = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)])
def test_finite_numbers_pass(shape: tuple[int, ...]) -> None:
    check_op(
        lambda x: check_numerics(square(x), "x"),
        lambda x: x * x,
        [rng.normal(size=shape)],
        dtypes=["float32", "float16", "bfloat16", "complex64"],
    )


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_what_is_not_finite_is_named(dtype: str) -> None:
    x = convert_to_tensor(np.array([[1, 2, np.inf], [np.nan, 5, -np.inf]]), dtype)
    with pytest.raises(InvalidArgumentError) as caught:
        check_numerics(x, "the loss")
    assert caught.value.message == (
        "the loss: 1 NaN and 2 infinite of 6 numbers, the first is inf at (0, 2)"
    )


def test_numbers_are_checked_in_a_graph() -> None:
    graph = Graph()
    with graph.as_default():
        x = placeholder("float32", [None])
        y = check_numerics(x, "y")
    with Session(graph=graph) as session:
        assert session.run(y, {x: [1, 2]}).tolist() == [1, 2]
        with pytest.raises(InvalidArgumentError, match="y: 1 NaN and 0 infinite of 2 numbers"):
            session.run(y, {x: [1, np.nan]})


def test_a_condition_that_holds() -> None:
    check(convert_to_tensor(True), "never")
    check(convert_to_tensor(np.ones((2, 2), bool)), "never", [convert_to_tensor(1)])
    check(convert_to_tensor(np.zeros(0, bool)), "never")


@pytest.mark.parametrize("condition", [False, [True, False]])
def test_a_condition_that_fails(condition: Any) -> None:
    x = convert_to_tensor(np.array([[1, 2], [3, 4]], "int32"))
    with pytest.raises(InvalidArgumentError) as caught:
        check(convert_to_tensor(condition), "x must be small", [x, convert_to_tensor(7)])
    assert caught.value.message == (
        "Assert: x must be small\n  int32[2, 2]: 1, 2, 3, ...\n  int32[]: 7"
    )


def test_a_condition_is_checked_in_a_graph() -> None:
    graph = Graph()
    with graph.as_default():
        x = placeholder("float32", [])
        checked = check(x > 0, "x must be positive", [x])
    with Session(graph=graph) as session:
        session.run(checked, {x: 1})
        with pytest.raises(InvalidArgumentError, match="x must be positive"):
            session.run(checked, {x: -1})


def test_shapes_are_ensured_when_built_and_when_run() -> None:
    x = convert_to_tensor(np.arange(6.0).reshape(2, 3))
    assert ensure_shape(x, [None, 3]).numpy().tolist() == x.numpy().tolist()
    with pytest.raises(ShapeError):
        ensure_shape(x, [3, None])
    check_op(lambda v: ensure_shape(v, [2, None]), lambda v: v, [np.ones((2, 3))])
