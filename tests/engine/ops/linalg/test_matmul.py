"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, ShapeError
from laminar.engine.graph import Graph, TensorShape
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.linalg.matmul import adjoint, matmul, matmul_nd

from ..harness import check_op

rng = np.random.default_rng(15)

TYPES = ["float16", "bfloat16", "float32", "complex64"]

MATRICES = [
    pytest.param((2, 3), (3, 4), id="matrices"),
    pytest.param((2, 0), (0, 4), id="empty-sum"),
    pytest.param((0, 3), (3, 4), id="empty"),
    pytest.param((5, 2, 3), (5, 3, 4), id="stacks"),
    pytest.param((5, 2, 3), (3, 4), id="stack-and-matrix"),
    pytest.param((2, 3), (5, 3, 4), id="matrix-and-stack"),
    pytest.param((2, 1, 2, 3), (4, 3, 2), id="stacks-broadcast"),
]


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(("a", "b"), MATRICES)
def test_matmul(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> None:
    x, y = rng.normal(size=a), rng.normal(size=b)
    x = np.swapaxes(x, -1, -2).copy() if transpose_a else x
    y = np.swapaxes(y, -1, -2).copy() if transpose_b else y

    def reference(x: Any, y: Any) -> Any:
        x = np.swapaxes(x, -1, -2) if transpose_a else x
        return x @ (np.swapaxes(y, -1, -2) if transpose_b else y)

    check_op(
        lambda x, y: matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b),
        reference,
        [x, y],
        dtypes=TYPES,
    )


def test_half_precision_sums_in_single() -> None:
    x = constant(np.ones((1, 5000), np.float16))
    assert matmul(x, x, transpose_b=True).numpy().tolist() == [[5000.0]]


def test_integers() -> None:
    x = rng.integers(-9, 9, size=(3, 4))
    check_op(matmul, np.matmul, [x, x.T.copy()], grad=False)


GENERAL = [
    pytest.param((3,), (3,), id="vectors"),
    pytest.param((3,), (3, 2), id="row"),
    pytest.param((2, 3), (3,), id="column"),
    pytest.param((3,), (4, 3, 2), id="row-and-stack"),
    pytest.param((4, 2, 3), (3,), id="stack-and-column"),
    pytest.param((0,), (0,), id="empty-vectors"),
    *MATRICES,
]


@pytest.mark.parametrize(("a", "b"), GENERAL)
def test_matmul_nd(a: Any, b: Any) -> None:
    check_op(matmul_nd, np.matmul, [rng.normal(size=a), rng.normal(size=b)], dtypes=TYPES)


def test_the_operator_takes_vectors_and_mixed_types() -> None:
    y = constant(np.ones((2, 3), np.float32)) @ constant(np.arange(3))
    assert y.dtype == "float32"
    assert y.numpy().tolist() == [3, 3]


def test_adjoint() -> None:
    check_op(adjoint, lambda x: np.swapaxes(x, -1, -2), [rng.normal(size=(2, 3, 4))])
    z = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    np.testing.assert_array_equal(adjoint(constant(z)).numpy(), z.conj().T)


def test_static_shapes() -> None:
    with Graph().as_default():
        a = placeholder("float32", [None, 3, None])
        b = placeholder("float32", [None, 5])
        assert matmul(a, b).shape == TensorShape([None, 3, 5])
        c = placeholder("float32", [5, 3])
        assert matmul(a, c, transpose_a=True, transpose_b=True).shape == TensorShape(
            [None, None, 5]
        )
        assert matmul(placeholder("float32", None), b).shape.rank is None


def test_errors() -> None:
    a, b = constant(np.zeros((2, 3))), constant(np.zeros((2, 4)))
    message = r"MatMul: the inner dimensions differ: a is float64\[2, 3\], .* \(3 != 2\)"
    with pytest.raises(ShapeError, match=message):
        matmul(a, b)
    with pytest.raises(ShapeError, match="at least two axes"):
        matmul(a, constant(np.zeros(3)))
    with pytest.raises(ShapeError, match="matmul: expected vectors or matrices"):
        matmul_nd(a, constant(1.0))
    with pytest.raises(DTypeError, match="one dtype"):
        matmul(a, constant(np.zeros((3, 2), np.float32)))
    with pytest.raises(ShapeError, match="MatMul: the shapes .* do not broadcast"):
        matmul(constant(np.zeros((2, 1, 1))), constant(np.zeros((3, 1, 1))))
