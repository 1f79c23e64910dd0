"""Shapes, axes and sizes given as tensors whose values are known while a graph is built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine, ops
from laminar.engine.ops.array.shape import rank_of, shape_of, size_of
from laminar.engine.ops.core.entries import known_entries, known_value


def c(value: Any, dtype: str = "int32") -> Any:
    return engine.constant(np.asarray(value, dtype))


@pytest.fixture
def x() -> Any:
    with engine.Graph().as_default():
        yield engine.placeholder("float32", [None, 3, 4], name="x")


@pytest.mark.parametrize(
    ("make", "entries"),
    [
        (lambda x: shape_of(x), [None, 3, 4]),
        (lambda x: shape_of(x)[1:], [3, 4]),
        (lambda x: shape_of(x)[-1], [4]),
        (lambda x: shape_of(x)[1] * shape_of(x)[2] // 2 + 1, [7]),
        (lambda x: ops.stack([shape_of(x)[0], shape_of(x)[1] - 1, 5]), [None, 2, 5]),
        (lambda x: ops.concatenate([c([-1]), shape_of(x)[2:]]), [-1, 4]),
        (lambda x: ops.unstack(shape_of(x))[1], [3]),
        (lambda x: ops.prod(shape_of(x)[1:]), [12]),
        (lambda x: ops.cast(ops.cast(shape_of(x)[1], "int64"), "int32"), [3]),
        (lambda x: ops.reshape(engine.identity(c(7)), [1]), [7]),
        (lambda x: ops.squeeze(ops.expand_dims(shape_of(x)[1], 0)), [3]),
        (lambda x: rank_of(x), [3]),
        (lambda x: size_of(x), [None]),
        (lambda x: shape_of(x)[engine.placeholder("int32", [])], None),
        (lambda x: engine.placeholder_with_default(c(3), []), None),
        (lambda x: ops.cast(c(3), "float32"), None),
        (lambda x: c([[1]]), None),
        (
            lambda x: engine.host_function(lambda: [3], [], [engine.TensorSpec((), "int32")])[0],
            None,
        ),
    ],
)
def test_known_entries(x: Any, make: Any, entries: Any) -> None:
    assert known_entries(make(x)) == entries


def test_in_a_branch_and_in_lists(x: Any) -> None:
    size = c([2, 6])
    p = engine.placeholder("bool", [])
    y = engine.cond(p, lambda: ops.zeros(size), lambda: ops.ones(size))
    assert y.shape == (2, 6)
    assert known_value([c(1), 2, shape_of(x)[2], (c(3),)]) == [1, 2, 4, (3,)]
    unknown = shape_of(x)[0]
    assert known_value([unknown])[0] is unknown


SIZES = [
    (lambda x: ops.reshape(x, c([-1, 12])), [None, 12]),
    (lambda x: ops.reshape(x, ops.stack([shape_of(x)[0], 2, 6])), [None, 2, 6]),
    (lambda x: ops.broadcast_to(x[:1], c([2, 3, 4])), [2, 3, 4]),
    (lambda x: ops.zeros(shape_of(x)[1:]), [3, 4]),
    (lambda x: ops.transpose(x, c([2, 0, 1])), [4, None, 3]),
    (lambda x: ops.tile(x, c([1, 2, 1])), [None, 6, 4]),
    (lambda x: ops.pad(x, c([[0, 0], [1, 1], [2, 0]])), [None, 5, 6]),
    (lambda x: ops.slice(x, c([0, 1, 0]), c([1, 2, -1])), [1, 2, 4]),
    (lambda x: x[c(0), c(1) : c(3)], [2, 4]),
    (lambda x: ops.expand_dims(x, c(1)), [None, 1, 3, 4]),
    (lambda x: ops.squeeze(x[:, :1], c(1)), [None, 4]),
    (lambda x: ops.concatenate([x, x], c(2)), [None, 3, 8]),
    (lambda x: ops.sum(x, axis=c([0, 1])), [4]),
    (lambda x: ops.argmax(x, axis=c(1)), [None, 4]),
    (lambda x: ops.split(x, c([1]), axis=c(1))[1], [None, 2, 4]),
    (lambda x: ops.arange(c(0), c(5), c(2)), [3]),
    (lambda x: ops.one_hot(c([1, 2]), c(4)), [2, 4]),
    (lambda x: engine.cumsum(x, c(1)), [None, 3, 4]),
    (lambda x: ops.repeat(x, c(2), axis=1), [None, 6, 4]),
    (lambda x: ops.linspace(0.0, 1.0, c(4)), [4]),
]


@pytest.mark.parametrize(("build", "shape"), SIZES)
def test_sizes_stay_known(x: Any, build: Any, shape: Any) -> None:
    y = build(x)
    assert [*y.shape] == shape
    with engine.Session(graph=x.graph) as session:
        found = session.run(y, {x: np.arange(24, dtype="float32").reshape(2, 3, 4)})
    assert y.shape.is_compatible_with(found.shape)


def test_an_axis_that_is_not_known(x: Any) -> None:
    y = ops.sum(x, axis=shape_of(x)[0])
    assert y.shape.rank is None
    data = np.arange(12, dtype="float32").reshape(1, 3, 4)
    with engine.Session(graph=x.graph) as session:
        np.testing.assert_array_equal(session.run(y, {x: data}), data.sum(axis=1))
