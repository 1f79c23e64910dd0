"""What is written to a tensor array and read from it is differentiated as what it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine import TensorArray
from laminar.engine.ops.state import tensor_array as ops

from ..harness import check_op

X = np.random.default_rng(0).normal(size=(3, 2))


def array_of(x: Any) -> TensorArray:
    return TensorArray(x.dtype, 3, clear_after_read=False, element_shape=x.shape[1:])


@pytest.mark.parametrize(
    ("fn", "reference"),
    [
        (lambda x: array_of(x).unstack(x).stack(), lambda x: x),
        (lambda x: array_of(x).scatter([2, 0, 1], x).gather([0, 0, 2]), lambda x: x[[1, 1, 0]]),
        (lambda x: array_of(x).write(0, x[1]).write(2, x[0]).read(2), lambda x: x[0]),
        (
            lambda x: (
                TensorArray(x.dtype, 2, infer_shape=False, element_shape=[None, x.shape[1]])
                .split(x, [1, 2])
                .concat()
            ),
            lambda x: x,
        ),
    ],
    ids=["stack", "gather", "read", "concat"],
)
def test_gradients(fn: Any, reference: Any) -> None:
    check_op(lambda x: fn(x) * fn(x), lambda x: reference(x) ** 2, [X], dtypes=["float32"])


def test_the_rest_of_an_arrays_life() -> None:
    array = array_of(np.zeros((3, 2))).unstack(X)
    own, _ = ops.tensor_array_grad.many(array.handle, array.flow, source="mine")
    assert ops.tensor_array_size(own, array.flow).numpy() == 3
    array.close()
