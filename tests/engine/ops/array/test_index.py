"""Indexing with brackets: slices, integers, arrays, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, Tensor, TensorShape
from laminar.engine.ops.array.index import get_item
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.runtime import Session

from ....sampling import examples
from ..harness import check_op

rng = np.random.default_rng(2)

# Index expressions for an array of shape (4, 3, 5, 2).
PLAIN = [
    pytest.param(0, id="int"),
    pytest.param(-1, id="negative-int"),
    pytest.param((1, 2, -3, 0), id="all-ints"),
    pytest.param((slice(None), 0), id="column"),
    pytest.param((..., -1), id="ellipsis-int"),
    pytest.param(slice(1, None), id="from"),
    pytest.param(slice(None, -1), id="to-negative"),
    pytest.param((slice(None), slice(None, None, -1)), id="reversed"),
    pytest.param((slice(3, 0, -2), ..., slice(1, None)), id="negative-step"),
    pytest.param((slice(2, 2),), id="empty"),
    pytest.param((slice(9, 99), slice(-99, 2)), id="beyond-the-ends"),
    pytest.param((None, ..., None), id="new-axes"),
    pytest.param((0, None, slice(0, 2), ..., None, 1), id="everything"),
    pytest.param((slice(None, None, 2), slice(None), slice(1, None, 3)), id="strides"),
]

ADVANCED = [
    pytest.param([2, 0, 2], id="list"),
    pytest.param(np.array([[0, -1], [3, 1]]), id="matrix"),
    pytest.param((slice(None), [2, 0]), id="second-axis"),
    pytest.param((..., [1, 1, 0]), id="last-axis"),
    pytest.param(([0, 1], [2, -1]), id="two"),
    pytest.param(([[0], [1]], [0, 2]), id="two-broadcast"),
    pytest.param((slice(None), [0, 1], [4, 2]), id="two-inside"),
    pytest.param(([0, 1], slice(None), [4, 2]), id="two-apart"),
    pytest.param((0, [1, 2]), id="int-beside"),
    pytest.param((0, slice(None), [1, 2]), id="int-apart"),
    pytest.param((slice(1, None), [1, 2], None, 3), id="mixed"),
    pytest.param(([0, 1], [0, 1], [0, 1], [0, 1]), id="all"),
    pytest.param([], id="empty-list"),
    pytest.param((slice(None), np.array([True, False, True])), id="mask"),
    pytest.param((np.arange(12).reshape(4, 3) % 2 == 0), id="mask-of-two-axes"),
    pytest.param((np.zeros(4, bool), slice(None), 1), id="mask-without-hits"),
]


@pytest.mark.parametrize("index", PLAIN)
def test_plain(index: Any) -> None:
    check_op(
        lambda x: get_item(x, index),
        lambda x: x[index],
        [rng.normal(size=(4, 3, 5, 2))],
        dtypes=["float16", "bfloat16", "complex64", "int8", "bool"],
    )


@pytest.mark.parametrize("index", ADVANCED)
def test_advanced(index: Any) -> None:
    check_op(lambda x: x[index], lambda x: x[index], [rng.normal(size=(4, 3, 5, 2))])


def test_repeated_indices_add_their_gradients() -> None:
    check_op(lambda x: x[[1, 1, 1, 0]], lambda x: x[[1, 1, 1, 0]], [rng.normal(size=(3, 2))])


def test_strings() -> None:
    x = np.array([[b"a", b"bc"], [b"", b"d\x00"]], object)
    t = convert_to_tensor(x)
    np.testing.assert_array_equal(t[:, 1].numpy(), x[:, 1])
    np.testing.assert_array_equal(t[[1, 0], 0].numpy(), [b"", b"a"])
    assert t[0, 0].numpy().item() == b"a"


def test_values_known_at_run_time() -> None:
    def fn(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        return x[i], x[:, :i], x[i:, i], x[-2:i], x[..., None, i]

    def reference(x: Any, i: Any) -> tuple[Any, ...]:
        return x[i], x[:, :i], x[i:, i], x[-2:i], x[..., None, i]

    check_op(fn, reference, [rng.normal(size=(4, 4)), np.array(2, np.int32)])


def test_an_array_known_at_run_time() -> None:
    check_op(
        lambda x, i: x[:, i],
        lambda x, i: x[:, i],
        [rng.normal(size=(3, 4)), np.array([3, 0, 0])],
    )


def test_a_mask_computed_in_the_graph() -> None:
    check_op(lambda x: x[x > 0], lambda x: x[x > 0], [rng.normal(size=(3, 4))])


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 6, None])
        for index, shape in [
            (np.s_[0], [6, None]),
            (np.s_[:, 1:-1], [None, 4, None]),
            (np.s_[:, ::2], [None, 3, None]),
            (np.s_[1:], [None, 6, None]),
            (np.s_[::-1], [None, 6, None]),
            (np.s_[..., 0], [None, 6]),
            (np.s_[None, :, 5:1:-1], [1, None, 4, None]),
            (np.s_[:, [1, 2]], [None, 2, None]),
            (np.s_[:, : dim_of(x, axis=0)], [None, None, None]),
            (np.s_[:, 0, [1]], [None, 1]),
        ]:
            assert x[index].shape == TensorShape(shape), index
        y = placeholder("float32", None)
        assert y[0].shape.rank is None
        assert y[..., 0].shape.rank is None


def test_the_whole_is_the_tensor_itself() -> None:
    x = constant(np.zeros((2, 3)))
    assert x[:] is x
    assert x[...] is x
    assert x[:, :] is x


def test_iteration_and_reversed_order() -> None:
    x = np.arange(6.0).reshape(3, 2)
    rows: Any = convert_to_tensor(x)
    assert [row.tolist() for row in rows] == x.tolist()
    np.testing.assert_array_equal(convert_to_tensor(x).T.numpy(), x.T)


ERRORS = [
    pytest.param(np.s_[3], InvalidArgumentError, r"index 3 is out of range for axis 0", id="int"),
    pytest.param(np.s_[:, -3], InvalidArgumentError, r"index -3 is out of range", id="negative"),
    pytest.param(np.s_[0, 0, 0], ShapeError, r"3 indices for a tensor with 2 axes", id="many"),
    pytest.param(np.s_[:, :, :], ShapeError, r"3 indices for a tensor with 2 axes", id="slices"),
    pytest.param(np.s_[..., ...], InvalidArgumentError, r"more than one Ellipsis", id="ellipses"),
    pytest.param(np.s_[1.5], DTypeError, r"expected an integer.*got 1.5", id="float"),
    pytest.param(np.s_[True], DTypeError, r"expected an integer.*got True", id="bool"),
    pytest.param(np.s_[::0], InvalidArgumentError, r"step of a slice must be .* got 0", id="step"),
    pytest.param(np.s_[:1.5], DTypeError, r"bound of a slice is a scalar integer", id="bound"),
    pytest.param(
        np.s_[[0, 3]],
        InvalidArgumentError,
        r"Gather: index 3 at position \[1\] is out of range for axis 0 of size 3",
        id="array",
    ),
    pytest.param(
        np.s_[[0, 1], [[0], [-3]]],
        InvalidArgumentError,
        r"GatherNd: index -3 at position \[1, 0\] is out of range for axis 1 of size 2",
        id="arrays",
    ),
    pytest.param(
        np.s_[np.array([True, False])],
        ShapeError,
        r"a mask of shape \[2\] stands for axes of shape \[3\]",
        id="mask",
    ),
]


@pytest.mark.parametrize(("index", "error", "message"), ERRORS)
def test_errors(index: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        get_item(constant(np.zeros((3, 2))), index)


def test_an_index_that_is_out_of_range_at_run_time() -> None:
    graph = Graph()
    with graph.as_default():
        x = placeholder("float32", [None])
        i = placeholder("int32", [])
        y, z = x[i], x[2]
    with Session(graph=graph) as session:
        with pytest.raises(InvalidArgumentError, match="StridedSlice.*index 5.*axis 0.*size 3"):
            session.run(y, {x: np.zeros(3, np.float32), i: 5})
        with pytest.raises(InvalidArgumentError, match="StridedSlice.*index 2.*axis 0.*size 1"):
            session.run(z, {x: np.zeros(1, np.float32)})


def test_a_scalar_index_of_another_type_is_refused() -> None:
    with Graph().as_default():
        x = placeholder("float32", [3])
        with pytest.raises(DTypeError, match="get_item"):
            x[placeholder("float32", [])]
        with pytest.raises(DTypeError, match="scalar integer"):
            x[: placeholder("int32", [2])]
        with pytest.raises(InvalidArgumentError, match="step of a slice must be a known number"):
            x[:: placeholder("int32", [])]


ends = st.one_of(st.none(), st.integers(-6, 6))
slices = st.builds(slice, ends, ends, st.one_of(st.none(), st.sampled_from([1, 2, -1, -3])))
arrays = st.lists(st.integers(-2, 1), min_size=2, max_size=2)
items = st.one_of(
    st.integers(-2, 1), slices, st.none(), st.just(...), arrays, arrays.map(lambda a: [a, a])
)


@examples(300)
@given(st.lists(items, max_size=6).map(tuple))
def test_as_numpy(index: tuple[Any, ...]) -> None:
    x = np.arange(120.0).reshape(2, 3, 4, 5)
    try:
        expected = x[index]
    except IndexError:
        with pytest.raises((InvalidArgumentError, ShapeError)):
            get_item(constant(x), index)
        return
    np.testing.assert_array_equal(get_item(constant(x), index).numpy(), expected)
    graph = Graph()
    with graph.as_default():
        p = placeholder("float64", [None] * 4)
        y = p[index] + 0.0
        assert y.shape.is_compatible_with(expected.shape)
    with Session(graph=graph) as session:
        np.testing.assert_array_equal(session.run(y, {p: x}), expected)
