"""take_along_axis and put_along_axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, TensorShape
from laminar.engine.ops.array.along import put_along_axis, take_along_axis
from laminar.engine.ops.core.basic import constant, placeholder

from ..harness import check_op

rng = np.random.default_rng(7)

CASES = [
    pytest.param((3, 4), [[0, 3], [1, 1], [2, -1]], -1, id="last"),
    pytest.param((3, 4), [[0, 2, 2, 1]], 0, id="first"),
    pytest.param((3, 4), [[0, 2]], 1, id="indices-broadcast"),
    pytest.param((2, 3, 4), rng.integers(0, 3, size=(2, 5, 4)), 1, id="inside"),
    pytest.param((4,), [3, 3, 0], 0, id="vector"),
    pytest.param((3, 4), np.zeros((3, 0), np.int32), 1, id="none"),
    pytest.param((0, 4), np.zeros((0, 2), np.int32), 1, id="empty"),
]


@pytest.mark.parametrize(("shape", "indices", "axis"), CASES)
def test_take(shape: tuple[int, ...], indices: Any, axis: int) -> None:
    check_op(
        lambda x, i: take_along_axis(x, i, axis),
        lambda x, i: np.take_along_axis(x, i, axis),
        [rng.normal(size=shape), np.asarray(indices)],
        dtypes=["float16", "bfloat16", "complex64", "bool"],
    )


def test_take_where_x_broadcasts() -> None:
    index = rng.integers(0, 4, size=(3, 2))
    check_op(
        lambda x, i: take_along_axis(x, i, 1),
        lambda x, i: np.take_along_axis(np.broadcast_to(x, (3, 4)), i, 1),
        [rng.normal(size=(1, 4)), index],
    )


def test_take_from_the_elements_in_row_order() -> None:
    check_op(
        lambda x, i: take_along_axis(x, i, None),
        lambda x, i: np.take_along_axis(x, i, None),
        [rng.normal(size=(3, 4)), np.array([11, 0, -2])],
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["update", "add"])
@pytest.mark.parametrize(("shape", "indices", "axis"), CASES)
def test_put(shape: tuple[int, ...], indices: Any, axis: int, mode: str) -> None:
    index = np.asarray(indices)
    full = list(shape)
    full[axis] = index.shape[axis]

    def reference(x: Any, values: Any) -> Any:
        y = x.copy()
        lines = np.broadcast_to(index, full)
        values = np.broadcast_to(values, full)
        for place in np.ndindex(*full):
            to = list(place)
            to[axis] = lines[place]
            y[tuple(to)] = values[place] + (y[tuple(to)] if mode == "add" else 0)
        return y

    for values_shape in (tuple(full), (1,) * len(full), ()):
        check_op(
            lambda x, v: put_along_axis(x, constant(index), v, axis, mode),
            reference,
            [rng.normal(size=shape), rng.normal(size=values_shape)],
            dtypes=["float32", "bfloat16"],
        )


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 5])
        i = placeholder("int32", [7, None])
        assert take_along_axis(x, i).shape == TensorShape([7, None])
        assert take_along_axis(x, i, 0).shape == TensorShape([7, 5])
        assert put_along_axis(x, i, constant(1.0)).shape == TensorShape([None, 5])
        assert take_along_axis(placeholder("float32", None), i).shape.rank is None


def ints(*values: Any) -> Any:
    return constant(np.array(values, np.int32))


ERRORS = [
    pytest.param(
        lambda x: take_along_axis(x, ints([0], [1], [2])),
        InvalidArgumentError,
        r"TakeAlongAxis: index 2 at position \[2, 0\] is out of range for axis 1 of size 2",
        id="range",
    ),
    pytest.param(
        lambda x: take_along_axis(x, ints(0, 1)),
        ShapeError,
        r"x .*\[3, 2\] and the indices int32\[2\] must have the same number of axes",
        id="axes",
    ),
    pytest.param(
        lambda x: take_along_axis(x, ints([0], [1])),
        ShapeError,
        "TakeAlongAxis: the shapes .* do not broadcast",
        id="shape",
    ),
    pytest.param(
        lambda x: take_along_axis(x, constant(np.zeros((3, 1)))),
        DTypeError,
        "indices must be integers",
        id="dtype",
    ),
    pytest.param(
        lambda x: take_along_axis(x, ints([0]), 2), ShapeError, "axis 2 does not exist", id="axis"
    ),
    pytest.param(
        lambda x: put_along_axis(x, ints([0]), constant(np.zeros((3, 2)))),
        ShapeError,
        r"PutAlongAxis: the indices .* and the values .* do not fit",
        id="values",
    ),
    pytest.param(
        lambda x: put_along_axis(x, ints([0]), constant(np.zeros(())), mode="mul"),
        InvalidArgumentError,
        'mode must be "update" or "add", got \'mul\'',
        id="mode",
    ),
    pytest.param(
        lambda x: put_along_axis(x, ints([-4], [0]), constant(np.zeros(())), 0),
        InvalidArgumentError,
        r"PutAlongAxis: index -4 at position \[0, 0\]",
        id="put-range",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(constant(np.zeros((3, 2))))
