"""The LU decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import ShapeError, UnimplementedError
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import Graph, TensorShape
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.linalg.lu import lu_factor

from ..harness import check_op

linalg = pytest.importorskip("scipy.linalg")
rng = np.random.default_rng(21)


def reference_lu(x: Any) -> tuple[Any, Any]:
    steps = min(x.shape[-2:])
    lu, pivots = np.zeros(x.shape, x.dtype), np.zeros((*x.shape[:-2], steps), np.int32)
    for place in np.ndindex(*x.shape[:-2]):
        lu[place], pivots[place] = linalg.lu_factor(x[place])
    return lu, pivots


@pytest.mark.parametrize("shape", [(4, 4), (1, 1), (2, 3, 3), (3, 1, 2, 2), (0, 2, 2)])
def test_square(shape: tuple[int, ...]) -> None:
    check_op(lu_factor, reference_lu, [rng.normal(size=shape)], dtypes=["float32"], rtol=1e-4)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 2)])
def test_other_shapes(shape: tuple[int, ...]) -> None:
    x = rng.normal(size=shape)
    check_op(lu_factor, reference_lu, [x], grad=False)
    t = constant(x)
    with GradientTape() as tape:
        tape.watch(t)
        lu, _ = lu_factor(t)
    with pytest.raises(UnimplementedError, match="only square matrices have a gradient"):
        tape.gradient(lu, t)


def test_a_singular_matrix() -> None:
    lu, pivots = lu_factor(constant(np.array([[0.0, 1.0], [0.0, 2.0]])))
    assert lu.numpy().tolist() == [[0, 1], [0, 2]]
    assert pivots.numpy().tolist() == [0, 1]


def test_complex() -> None:
    z = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    lu, pivots = (t.numpy() for t in lu_factor(constant(z)))
    exchanged = z.copy()
    for i, p in enumerate(pivots):
        exchanged[[i, p]] = exchanged[[p, i]]
    np.testing.assert_allclose((np.tril(lu, -1) + np.eye(3)) @ np.triu(lu), exchanged)


def test_static_shapes() -> None:
    with Graph().as_default():
        lu, pivots = lu_factor(placeholder("float32", [None, 3, 5]))
        assert (lu.shape, pivots.shape) == (TensorShape([None, 3, 5]), TensorShape([None, 3]))
    with pytest.raises(ShapeError, match="Lu: expected a matrix"):
        lu_factor(constant(np.zeros(2)))
