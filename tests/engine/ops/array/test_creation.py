"""full, eye, arange, linspace, one_hot, meshgrid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, Tensor, TensorShape
from laminar.engine.ops.array.creation import (
    arange,
    eye,
    full,
    linspace,
    meshgrid,
    one_hot,
    ones,
    sequence_mask,
    zeros,
)
from laminar.engine.ops.array.shape import dim_of, shape_of
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.runtime import Session

from ..harness import check_op

rng = np.random.default_rng(12)


def test_full() -> None:
    assert full([2, 3], 7, "int8").numpy().tolist() == [[7] * 3] * 2
    assert zeros([2]).dtype == "float32"
    np.testing.assert_array_equal(ones((2, 0)).numpy(), np.ones((2, 0)))
    assert full([], 1.5).shape == ()
    assert full([2, 2], [1.0, 2.0]).numpy().tolist() == [[1, 2], [1, 2]]


def test_full_in_the_shape_of_another() -> None:
    check_op(
        lambda v, x: full(shape_of(x), v),
        lambda v, x: np.full(x.shape, v),
        [np.array(2.5), rng.normal(size=(2, 3))],
        dynamic=False,  # the number of axes must be known
    )
    check_op(
        lambda v, x: full([dim_of(x, axis=0), 2], v),
        lambda v, x: np.full((len(x), 2), v),
        [np.array(2.5), rng.normal(size=(3,))],
    )


@pytest.mark.parametrize(("rows", "columns", "k"), [(3, None, 0), (2, 4, 1), (4, 2, -2), (0, 3, 0)])
def test_eye(rows: int, columns: int | None, k: int) -> None:
    for dtype in ("float32", "int32", "bool", "bfloat16", "complex64"):
        found = eye(rows, columns, k, dtype)
        assert found.dtype == dtype
        np.testing.assert_array_equal(
            found.numpy().astype(complex), np.eye(rows, columns, k, dtype=complex)
        )


def test_eye_of_a_size_known_at_run_time() -> None:
    check_op(
        lambda x: eye(dim_of(x, axis=0), dim_of(x, axis=1), 1, "float64"),
        lambda x: np.eye(2, 3, 1),
        [np.zeros((2, 3), np.int32)],
        grad=False,
    )


RANGES = [
    pytest.param((5,), "int32", id="stop"),
    pytest.param((2, 9, 3), "int32", id="step"),
    pytest.param((9, 2, -3), "int32", id="down"),
    pytest.param((2, 8, 3), "int32", id="exact"),
    pytest.param((0,), "int32", id="nothing"),
    pytest.param((5, 2), "int32", id="wrong-way"),
    pytest.param((0.0, 1.0, 0.25), "float32", id="floats"),
    pytest.param((1.0, 0.0, -0.3), "float32", id="floats-down"),
    pytest.param((2, 3, 0.5), "float32", id="mixed"),
]


@pytest.mark.parametrize(("args", "dtype"), RANGES)
def test_arange(args: Any, dtype: str) -> None:
    found = arange(*args)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.numpy(), np.arange(*args), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int64", "uint8"])
def test_arange_of_a_type(dtype: str) -> None:
    found = arange(1, 4, 0.5, dtype)
    assert found.dtype == dtype
    expected = [1, 1.5, 2, 2.5, 3, 3.5] if "float" in dtype else [1, 1, 2, 2, 3, 3]
    assert found.numpy().astype(float).tolist() == expected


def test_arange_by_values_known_at_run_time() -> None:
    check_op(
        lambda a, b: (arange(a, b), arange(b), arange(b, a, -2), arange(0, b, 1.5, "float64")),
        lambda a, b: (np.arange(a, b), np.arange(b), np.arange(b, a, -2), np.arange(0, b, 1.5)),
        [np.array(2, np.int32), np.array(7, np.int32)],
        grad=False,
    )


def test_arange_of_eager_tensors_has_a_known_length() -> None:
    assert arange(constant(3)).shape == (3,)
    graph = Graph()
    with graph.as_default():
        n = placeholder("int32", [])
        assert arange(n).shape == TensorShape([None])
        assert arange(2, 8).shape == TensorShape([6])
        y = arange(0, 5, n)
    with Session(graph=graph) as session:
        assert session.run(y, {n: 2}).tolist() == [0, 2, 4]
        with pytest.raises(InvalidArgumentError, match="Range: the step cannot be 0"):
            session.run(y, {n: 0})


def test_arange_refuses() -> None:
    with pytest.raises(InvalidArgumentError, match="Range: the step cannot be 0"):
        arange(1, 2, 0)


LINES = [
    pytest.param((), (), 5, True, 0, id="scalars"),
    pytest.param((), (), 5, False, 0, id="open-end"),
    pytest.param((3,), (3,), 4, True, 0, id="vectors"),
    pytest.param((3, 1), (2,), 4, True, -1, id="broadcast"),
    pytest.param((2,), (), 3, True, 1, id="axis"),
    pytest.param((), (), 1, True, 0, id="one"),
    pytest.param((), (), 1, False, 0, id="one-open"),
    pytest.param((2,), (2,), 0, True, 0, id="none"),
]


@pytest.mark.parametrize(("start", "stop", "num", "endpoint", "axis"), LINES)
def test_linspace(start: Any, stop: Any, num: int, endpoint: bool, axis: int) -> None:
    check_op(
        lambda a, b: linspace(a, b, num, endpoint, axis=axis),
        lambda a, b: np.linspace(a, b, num, endpoint, axis=axis),
        [rng.normal(size=start), rng.normal(size=stop)],
        dtypes=["float16", "bfloat16", "float32"],
    )


def test_linspace_of_numbers() -> None:
    y = linspace(0, 1, 3)
    assert y.dtype == "float32"
    assert y.numpy().tolist() == [0, 0.5, 1]
    assert linspace(0, 10, 3, dtype="int32").numpy().tolist() == [0, 5, 10]
    assert linspace(0.1, 0.3, 7).numpy()[-1] == np.float32(0.3)
    with pytest.raises(InvalidArgumentError, match="num cannot be negative, got -1"):
        linspace(0, 1, -1)


HOTS = [
    pytest.param([0, 2, 1], 3, -1, id="vector"),
    pytest.param([[0, 2], [-1, 5]], 3, -1, id="outside"),
    pytest.param([[0, 2], [1, 1]], 3, 0, id="first"),
    pytest.param([[0, 2], [1, 1]], 3, 1, id="inside"),
    pytest.param(1, 4, 0, id="scalar"),
    pytest.param(np.zeros((0, 2), np.int32), 3, -1, id="empty"),
    pytest.param([0, 1], 0, -1, id="no-classes"),
]


@pytest.mark.parametrize(("indices", "depth", "axis"), HOTS)
def test_one_hot(indices: Any, depth: int, axis: int) -> None:
    index = np.asarray(indices)

    def reference(i: Any) -> Any:
        flat = np.array([[j == k for k in range(depth)] for j in i.ravel().tolist()], np.float32)
        return np.moveaxis(flat.reshape((*i.shape, depth)), -1, axis)

    for dtype in ("float32", "bool", "int8", "bfloat16"):
        found = one_hot(constant(index), depth, axis, dtype)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy().astype(np.float32), reference(index))
    check_op(lambda i: one_hot(i, depth, axis), reference, [index], grad=False)


def test_one_hot_of_bytes() -> None:
    found = one_hot(constant(np.array([3, 200], np.uint8)), 201)
    assert found.numpy().argmax(1).tolist() == [3, 200]


def test_one_hot_refuses() -> None:
    with pytest.raises(InvalidArgumentError, match="depth cannot be negative"):
        one_hot(constant(1), -1)
    with pytest.raises(DTypeError, match="OneHot: indices must be"):
        one_hot(constant(1.0), 2)
    with pytest.raises(ShapeError, match="axis 3 does not exist"):
        one_hot(constant([1]), 2, 3)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sizes", [[3], [3, 2], [2, 3, 4], [2, 0], []])
def test_meshgrid(sizes: list[int], indexing: Any) -> None:
    if not sizes:
        assert meshgrid(indexing=indexing) == ()
        return
    check_op(
        lambda *xs: meshgrid(*(x * 1.0 for x in xs), indexing=indexing),
        lambda *xs: tuple(np.meshgrid(*xs, indexing=indexing)),
        [rng.normal(size=n) for n in sizes],
    )


def test_meshgrid_of_a_matrix_takes_its_elements() -> None:
    given = [[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0]
    found = meshgrid(*map(constant, given))
    for value, expected in zip(found, np.meshgrid(*given), strict=True):
        np.testing.assert_array_equal(value.numpy(), expected)


def test_meshgrid_of_a_scalar() -> None:
    x, y = meshgrid(constant(1.0), constant([2.0, 3.0]))
    assert x.numpy().tolist() == [[1], [1]]
    assert y.numpy().tolist() == [[2], [3]]


ERRORS = [
    pytest.param(lambda: meshgrid(constant([1.0]), indexing="ab"), "indexing must be", id="index"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors(call: Callable[[], tuple[Tensor, ...]], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call()


def test_sequence_mask() -> None:
    expected = [[[True, False, False], [True, True, False]], [[True] * 3, [False] * 3]]
    lengths = [[1, 2], [3, 0]]
    np.testing.assert_array_equal(sequence_mask(lengths).numpy(), expected)
    wide = sequence_mask(np.asarray(lengths, "int64"), 5, "float32")
    assert (wide.shape, wide.dtype) == ((2, 2, 5), "float32")
    np.testing.assert_array_equal(wide.numpy()[..., :3], expected)
    assert not wide.numpy()[..., 3:].any()
