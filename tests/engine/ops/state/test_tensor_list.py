"""Lists that are values: each keeps what it had."""

from __future__ import annotations

import numpy as np
import pytest

from laminar import engine
from laminar.engine import errors
from laminar.engine.graph import TensorShape
from laminar.engine.ops.state.tensor_list import tensor_list, tensor_list_pop, tensor_list_push


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
