"""Lists that are values: each keeps what it had."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine import errors
from laminar.engine.graph import TensorShape
from laminar.engine.ops.state.tensor_list import (
    tensor_list,
    tensor_list_add,
    tensor_list_from,
    tensor_list_get,
    tensor_list_length,
    tensor_list_pop,
    tensor_list_push,
    tensor_list_reserve,
    tensor_list_resize,
    tensor_list_set,
    tensor_list_stack,
    tensor_list_zeros,
)


def test_what_is_pushed_makes_another_list() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        x = engine.placeholder("float32", [2])
        one = tensor_list_push(tensor_list(), x)
        two = tensor_list_push(one, x * 2.0)
        other = tensor_list_push(one, x * 3.0)
        popped = []
        for values in (two, other):
            for _ in range(2):
                values, value = tensor_list_pop.many(
                    values, dtype="float32", shape=TensorShape([2])
                )
                popped.append(value)
        found = session.run(popped, {x: [1.0, 2.0]})
    np.testing.assert_array_equal(found, [[2, 4], [1, 2], [3, 6], [1, 2]])


@pytest.mark.parametrize(
    ("dtype", "shape", "error"),
    [("int32", [2], errors.DTypeError), ("float32", [3], errors.ShapeError)],
)
def test_what_is_popped_is_what_was_said(
    dtype: str, shape: list[int], error: type[Exception]
) -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        values = tensor_list_push(tensor_list(), engine.constant([1.0, 2.0]))
        _, value = tensor_list_pop.many(values, dtype=dtype, shape=TensorShape(shape))
        with pytest.raises(error):
            session.run(value)
        _, none = tensor_list_pop.many(tensor_list(), dtype=dtype, shape=TensorShape(shape))
        with pytest.raises(errors.InvalidArgumentError, match="the list is empty"):
            session.run(none)


def test_places_of_a_list() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        x = engine.placeholder("float32", [3, 2])
        say: dict[str, Any] = {"dtype": "float32", "shape": TensorShape([2])}
        whole = tensor_list_from(x)
        other = tensor_list_set(whole, engine.constant(1), x[0] * 10.0)
        some = tensor_list_set(tensor_list_reserve(engine.constant(2)), engine.constant(1), x[2])
        results = [
            tensor_list_stack(whole, **say),
            tensor_list_stack(other, **say),
            tensor_list_stack(tensor_list_push(other, x[0]), **say),
            tensor_list_get(whole, engine.constant(2), **say),
            tensor_list_stack(some, **say),
            tensor_list_get(some, engine.constant(0), **say),
            tensor_list_length(tensor_list_push(whole, x[0])),
            tensor_list_stack(tensor_list(), **say),
            tensor_list_stack(tensor_list_zeros(whole), **say),
            tensor_list_stack(tensor_list_add(whole, other, whole), **say),
            tensor_list_stack(tensor_list_add(some, some), **say),
            tensor_list_stack(tensor_list_resize(whole, engine.constant(1)), **say),
            tensor_list_stack(tensor_list_resize(some, engine.constant(3)), **say),
            tensor_list_stack(tensor_list_set(some, engine.constant(3), x[0], grows=True), **say),
            tensor_list_length(tensor_list_set(some, engine.constant(2), x[0], grows=True)),
        ]
        found = session.run(results, {x: [[1, 2], [3, 4], [5, 6]]})
    expected = [
        [[1, 2], [3, 4], [5, 6]],
        [[1, 2], [10, 20], [5, 6]],
        [[1, 2], [10, 20], [5, 6], [1, 2]],
        [5, 6],
        [[0, 0], [5, 6]],
        [0, 0],
        4,
        np.zeros((0, 2)),
        np.zeros((3, 2)),
        [[3, 6], [16, 28], [15, 18]],
        [[0, 0], [10, 12]],
        [[1, 2]],
        [[0, 0], [5, 6], [0, 0]],
        [[0, 0], [5, 6], [0, 0], [1, 2]],
        3,
    ]
    for one, another in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, another)


def test_a_list_that_was_popped_is_pushed_on_anew() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        say: dict[str, Any] = {"dtype": "float32", "shape": TensorShape([])}
        two = tensor_list_push(tensor_list_push(tensor_list(), 1.0), 2.0)
        one, _ = tensor_list_pop.many(two, **say)
        results = [tensor_list_stack(tensor_list_push(one, 3.0), **say)]
        with engine.control_dependencies(results):
            results.append(tensor_list_stack(two, **say))
        found = session.run(results)
    np.testing.assert_array_equal(found, [[1, 3], [1, 2]])


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda one, say: tensor_list_get(one, engine.constant(1), **say), "no place 1 in a list"),
        (lambda one, say: tensor_list_get(one, engine.constant(-1), **say), "no place -1"),
        (lambda one, say: tensor_list_stack(tensor_list_push(one, [1.0]), **say), "several shapes"),
        (
            lambda one, say: tensor_list_get(
                tensor_list_reserve(engine.constant(1)), engine.constant(0), **say
            ),
            "nothing was stored there",
        ),
        (
            lambda one, say: tensor_list_length(tensor_list_reserve(engine.constant(1 << 30))),
            "expected 0 to",
        ),
        (
            lambda one, say: tensor_list_length(tensor_list_resize(one, engine.constant(-1))),
            "expected 0 to",
        ),
        (lambda one, say: tensor_list_set(one, engine.constant(1), [1.0]), "no place 1"),
        (
            lambda one, say: tensor_list_add(one, tensor_list_push(one, [1.0])),
            r"the lists have \[1, 2\] places",
        ),
        (
            lambda one, say: tensor_list_add(one, tensor_list_push(tensor_list(), [1.0])),
            "have the shapes",
        ),
    ],
)
def test_wrong_places(build: Any, text: str) -> None:
    say: dict[str, Any] = {"dtype": "float32", "shape": TensorShape(None)}
    with engine.Graph().as_default(), engine.Session() as session:
        one = tensor_list_push(tensor_list(), engine.constant([1.0, 2.0]))
        with pytest.raises(errors.LaminarError, match=text):
            session.run(build(one, say))
