"""Norms, trace, rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import Graph
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.linalg.norms import matrix_rank, norm, trace

from ..harness import check_op

rng = np.random.default_rng(19)

inf = float("inf")
VECTOR = [None, 0, 1, 2, 3, 0.5, -1, inf, -inf]
MATRIX = [None, "fro", "nuc", 1, -1, 2, -2, inf, -inf]


@pytest.mark.slow
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("ord", VECTOR)
@pytest.mark.parametrize(("shape", "axis"), [((4,), None), ((3, 4), 0), ((2, 3, 4), (-1,))])
def test_of_vectors(shape: Any, axis: Any, ord: Any, keepdims: bool) -> None:
    check_op(
        lambda x: norm(x, ord, axis, keepdims),
        lambda x: np.linalg.norm(x, ord, axis[0] if isinstance(axis, tuple) else axis, keepdims),
        [rng.normal(size=shape) + np.sign(rng.normal(size=shape))],
        dtypes=["float32"],
        rtol=1e-4,
    )


@pytest.mark.slow
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("ord", MATRIX)
@pytest.mark.parametrize(("shape", "axis"), [((3, 4), None), ((2, 3, 4), (0, 2)), ((3, 4), (1, 0))])
def test_of_matrices(shape: Any, axis: Any, ord: Any, keepdims: bool) -> None:
    check_op(
        lambda x: norm(x, ord, axis, keepdims),
        lambda x: np.linalg.norm(x, ord, axis, keepdims),
        [rng.normal(size=shape)],
        dtypes=["float32"],
        rtol=1e-4,
    )


def test_of_all_elements() -> None:
    x = rng.normal(size=(2, 3, 4))
    check_op(norm, np.linalg.norm, [x])
    check_op(
        lambda x: norm(x, keepdims=True),
        lambda x: np.linalg.norm(x, None, None, keepdims=True),
        [x],
    )


def test_the_slope_at_zero_is_zero() -> None:
    x = constant(np.zeros(3))
    with GradientTape() as tape:
        tape.watch(x)
        y = norm(x)
    assert tape.gradient(y, x).numpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("shape", "ord", "axis", "error", "message"),
    [
        ((3,), "fro", None, InvalidArgumentError, "'fro' is not a norm of vectors"),
        ((3, 3), 0, None, InvalidArgumentError, "0 is not a norm of matrices"),
        ((3, 3), 3, None, InvalidArgumentError, "3 is not a norm of matrices"),
        ((3, 3, 3), 2, None, ShapeError, "expected one axis .* or two"),
        ((3, 3), 2, 2, ShapeError, "norm: axis 2 does not exist"),
    ],
)
def test_errors(shape: Any, ord: Any, axis: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        norm(constant(np.zeros(shape)), ord, axis)


@pytest.mark.parametrize(
    ("shape", "args"),
    [((3, 4), ()), ((3, 4), (1,)), ((3, 4), (-2,)), ((2, 3, 4), (0, 1, 2)), ((0, 3), ())],
)
def test_trace(shape: Any, args: Any) -> None:
    check_op(
        lambda x: trace(x, *args),
        lambda x: np.trace(x, *args),
        [rng.normal(size=shape)],
        dtypes=["float32", "int32"],
    )


def test_matrix_rank() -> None:
    x = rng.normal(size=(2, 4, 3))
    x[1, :, 2] = x[1, :, 0] - x[1, :, 1]
    assert matrix_rank(constant(x)).numpy().tolist() == [3, 2]
    assert matrix_rank(constant(np.diag([3.0, 0.1])), 0.5).numpy() == 1
    assert matrix_rank(constant(np.zeros((2, 2)))).numpy() == 0
    with Graph().as_default():
        y = placeholder("float32", [None, 3])
        assert matrix_rank(y, 0.1).shape == ()
        with pytest.raises(ShapeError, match="default tolerance needs the sizes"):
            matrix_rank(y)
