"""Gather, gather_nd, scatter_nd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.gradients import GradientTape, gradients
from laminar.engine.graph import Graph, Tensor, TensorShape
from laminar.engine.ops.array.gather import gather, gather_nd, scatter_nd
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.runtime import Session

from ..harness import check_op

rng = np.random.default_rng(5)

GATHERS = [
    pytest.param((5, 3), [2, 0, 2], 0, 0, id="rows"),
    pytest.param((5, 3), [[2, -1], [0, 4]], 0, 0, id="matrix-of-indices"),
    pytest.param((5, 3), [2, 0, 2], 1, 0, id="columns"),
    pytest.param((5, 3, 2), [1, 1], -2, 0, id="negative-axis"),
    pytest.param((5, 3), 4, 0, 0, id="scalar-index"),
    pytest.param((5,), [3, 3, 3], 0, 0, id="vector"),
    pytest.param((5, 3), np.zeros((0, 2), np.int32), 0, 0, id="no-indices"),
    pytest.param((5, 0), [1, 2], 0, 0, id="empty-rows"),
    pytest.param((2, 4), [[0, 3, 3], [1, -1, 0]], 1, 1, id="batch"),
    pytest.param((2, 4, 3), [[0, 3], [1, 2]], 1, 1, id="batch-rows"),
    pytest.param((2, 3, 4), [[0, 3], [1, -2]], 2, 1, id="batch-and-inner"),
    pytest.param((2, 3, 4, 2), [[[0], [3], [1]], [[1], [2], [0]]], 2, 2, id="two-batch-axes"),
    pytest.param((2, 4), [0, 3], 1, 1, id="batch-scalars"),
    pytest.param((2, 4, 3), [[0, 3], [1, 2]], 1, -1, id="negative-batch"),
    pytest.param((0, 4), np.zeros((0, 2), np.int64), 1, 1, id="empty-batch"),
]


def reference_gather(x: Any, indices: Any, axis: int, batch_dims: int) -> Any:
    axis %= x.ndim
    batch_dims = batch_dims if batch_dims >= 0 else batch_dims + indices.ndim
    if batch_dims == 0:
        return np.take(x, indices, axis)
    if not len(x):
        return np.zeros((0, *indices.shape[1:], *x.shape[2:]))
    rows = zip(x, indices, strict=True)
    return np.stack([reference_gather(a, i, axis - 1, batch_dims - 1) for a, i in rows])


@pytest.mark.parametrize(("shape", "indices", "axis", "batch_dims"), GATHERS)
def test_gather(shape: tuple[int, ...], indices: Any, axis: int, batch_dims: int) -> None:
    check_op(
        lambda x, i: gather(x, i, axis, batch_dims),
        lambda x, i: reference_gather(x, i, axis, batch_dims),
        [rng.normal(size=shape), np.asarray(indices)],
        dtypes=["float16", "bfloat16", "complex64", "int8", "bool"],
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_types_of_indices(dtype: str) -> None:
    x = rng.normal(size=(5, 3))
    found = gather(constant(x), constant(np.array([4, 0], dtype)))
    np.testing.assert_array_equal(found.numpy(), x[[4, 0]])


def test_strings() -> None:
    x = convert_to_tensor(np.array([[b"a", b"b"], [b"c", b"d"]], object))
    index = constant(np.array([1, 0]))
    assert gather(x, index).numpy().tolist() == [[b"c", b"d"], [b"a", b"b"]]
    assert gather(x, constant(np.array([[0], [1]])), 1, 1).numpy().tolist() == [[b"a"], [b"d"]]
    assert gather_nd(x, constant(np.array([[1, 0]]))).numpy().tolist() == [b"c"]


def test_gradients_of_half_precision_are_summed_in_single() -> None:
    x = constant(np.zeros((2, 1), np.float16))
    with GradientTape() as tape:
        tape.watch(x)
        y = gather(x, constant(np.zeros(5000, np.int32)))
    assert tape.gradient(y, x).numpy().tolist() == [[5000.0], [0.0]]


ND = [
    pytest.param((4, 3, 2), [[0], [3], [0]], id="one-axis"),
    pytest.param((4, 3, 2), [[0, 2], [-1, 1]], id="two-axes"),
    pytest.param((4, 3, 2), [[[0, 2, 1]], [[3, 0, 0]]], id="elements"),
    pytest.param((4, 3), [1, 2], id="one-index"),
    pytest.param((4, 3), np.zeros((0, 1), np.int32), id="none"),
    pytest.param((4, 0), [[1]], id="empty-slices"),
]


@pytest.mark.parametrize(("shape", "indices"), ND)
def test_gather_nd(shape: tuple[int, ...], indices: Any) -> None:
    check_op(
        gather_nd,
        lambda x, i: x[tuple(np.moveaxis(i, -1, 0))],
        [rng.normal(size=shape), np.asarray(indices)],
        dtypes=["float32", "bool"],
        dynamic=False,
    )


@pytest.mark.parametrize(("shape", "indices"), ND)
def test_scatter_nd(shape: tuple[int, ...], indices: Any) -> None:
    index = np.asarray(indices)

    def reference(updates: Any) -> Any:
        y = np.zeros(shape)
        np.add.at(y, tuple(np.moveaxis(index, -1, 0)), updates)
        return y

    check_op(
        lambda u: scatter_nd(constant(index), u, shape),
        reference,
        [rng.normal(size=(*index.shape[:-1], *shape[index.shape[-1] :]))],
        dtypes=["float16", "bfloat16", "float32"],
    )


def test_scatter_nd_into_a_shape_known_at_run_time() -> None:
    def fn(u: Tensor, like: Tensor) -> Tensor:
        index = constant(np.array([[1], [0], [1]]))
        return scatter_nd(index, u, [dim_of(like, axis=0), 2])

    def reference(u: Any, like: Any) -> Any:
        y = np.zeros((len(like), 2))
        np.add.at(y, [1, 0, 1], u)
        return y

    check_op(fn, reference, [rng.normal(size=(3, 2)), np.zeros(4, np.int32)])


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 5, None])
        i = placeholder("int32", [None, 7])
        assert gather(x, i, 1).shape == TensorShape([None, None, 7, None])
        assert gather(x, i, 1, 1).shape == TensorShape([None, 7, None])
        assert gather_nd(x, placeholder("int32", [None, 2])).shape == TensorShape([None, None])
        assert gather(placeholder("float32", None), i).shape.rank is None
        with pytest.raises(ShapeError, match="axis -1 needs a known number of axes"):
            gather(placeholder("float32", None), i, -1)
        assert gather_nd(x, placeholder("int32", [2, None])).shape.rank is None


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_points_of_a_depth_known_at_run_time(depth: int) -> None:
    x, weight = rng.normal(size=(4, 3, 2)), rng.normal(size=(5, *(4, 3, 2)[depth:]))
    index = np.stack([rng.integers(0, n, 5) for n in (4, 3, 2)], -1)[:, :depth]
    expected, slope = np.empty_like(weight), np.zeros_like(x)
    for k, place in enumerate(map(tuple, index)):
        expected[k] = x[place]
        slope[place] += weight[k]
    with Graph().as_default(), Session() as session:
        given, at = placeholder("float64"), placeholder("int64")
        y = gather_nd(given, at)
        (dx,) = gradients(y, [given], [constant(weight)])
        z = scatter_nd(at, constant(weight), [4, 3, 2])
        assert z.shape == (4, 3, 2)
        found = session.run([y, dx, z], {given: x, at: index})
    for a, b in zip(found, [expected, slope, slope], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def ints(*values: Any) -> Tensor:
    return constant(np.array(values, np.int32))


ERRORS = [
    pytest.param(
        lambda x: gather(x, ints(0, 1, 3)),
        InvalidArgumentError,
        r"Gather: index 3 at position \[2\] is out of range for axis 0 of size 3",
        id="beyond",
    ),
    pytest.param(
        lambda x: gather(x, ints([0], [-3]), 1),
        InvalidArgumentError,
        r"Gather: index -3 at position \[1, 0\] is out of range for axis 1 of size 2",
        id="before",
    ),
    pytest.param(lambda x: gather(x, ints(0), 2), ShapeError, r"axis 2 does not exist", id="axis"),
    pytest.param(
        lambda x: gather(x, ints(0, 1), 1, 1),
        ShapeError,
        r"the first 1 axes of x .*\[3, 2\] and of the indices .*\[2\] differ",
        id="batch",
    ),
    pytest.param(
        lambda x: gather(x, ints(0), 0, 1), ShapeError, r"1 batch axes do not fit", id="batch-axis"
    ),
    pytest.param(
        lambda x: gather(x, constant(np.zeros(2))), DTypeError, r"Gather: indices", id="dtype"
    ),
    pytest.param(
        lambda x: gather_nd(x, ints([0, 2])),
        InvalidArgumentError,
        r"GatherNd: index 2 at position \[0\] is out of range for axis 1 of size 2",
        id="nd",
    ),
    pytest.param(
        lambda x: gather_nd(x, ints([0, 0, 0])), ShapeError, r"3 indices for", id="nd-axes"
    ),
    pytest.param(
        lambda x: gather_nd(x, constant(np.zeros((1, 1)))),
        DTypeError,
        "indices must be integers",
        id="nd-dtype",
    ),
    pytest.param(
        lambda x: scatter_nd(ints([4]), x, [4, 3, 2]),
        ShapeError,
        r"slices of shape \[1, 3, 2\], the updates are .*\[3, 2\]",
        id="updates",
    ),
    pytest.param(
        lambda x: scatter_nd(ints([0], [1], [5]), x, [4, 2]),
        InvalidArgumentError,
        r"ScatterNd: index 5 at position \[2\] is out of range for axis 0 of size 4",
        id="scatter",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(constant(np.zeros((3, 2))))


def test_an_index_out_of_an_empty_axis() -> None:
    with pytest.raises(InvalidArgumentError, match="out of range for axis 0 of size 0"):
        gather(constant(np.zeros((0, 2))), ints(0))


def test_an_index_out_of_range_at_run_time() -> None:
    graph = Graph()
    with graph.as_default():
        x = placeholder("float32", [None, 2])
        i = placeholder("int32", [None])
        y = gather(x, i)
    with (
        Session(graph=graph) as session,
        pytest.raises(InvalidArgumentError, match=r"index 7 at position \[1\]"),
    ):
        session.run(y, {x: np.zeros((3, 2), np.float32), i: np.array([0, 7])})
