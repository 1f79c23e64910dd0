"""Operations on sparse arrays against dense NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine, ops
from laminar.engine.errors import DTypeError, InvalidArgumentError, NoTensorError, ShapeError

from ..harness import check_op

rng = np.random.default_rng(7)


def dense_of(shape: tuple[int, ...], dtype: str = "float64") -> Any:
    """About half of the elements are 0."""
    x = rng.normal(size=shape) * (rng.random(shape) < 0.5)
    return (x * 10).astype(dtype) if dtype.startswith("int") else x.astype(dtype)


def sparse_of(x: Any) -> Any:
    places = np.argwhere(x)
    return engine.SparseValues(places, x[tuple(places.T)], np.asarray(x.shape, "int64"))


def dense(sparse: Any) -> Any:
    """The dense array, by NumPy."""
    indices, values, shape = (np.asarray(part) for part in sparse)
    y = np.zeros(tuple(shape), values.dtype)
    y[tuple(indices.T)] = values if len(shape) else values[0]
    return y


def in_both(fn: Callable[..., Any], *arrays: Any) -> Any:
    """What a function of sparse arrays gives eagerly; a graph of placeholders must agree."""
    eager = fn(*(engine.SparseValues.from_value(a) for a in arrays))
    with engine.Graph().as_default(), engine.Session() as session:
        fed = [engine.sparse_placeholder(a.dtype, [None] * len(a.dense_shape)) for a in arrays]
        y = fn(*fed)
        found = session.run(y, dict(zip(fed, arrays, strict=True)))
        kinds = [y] if not isinstance(y, tuple | list) else list(y)
        for symbol, value in zip(kinds, [found] if len(kinds) == 1 else found, strict=False):
            if isinstance(symbol, engine.Tensor):
                assert symbol.shape.is_compatible_with(value.shape)
    for a, b in zip(engine_leaves(eager), engine_leaves(found), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    return found


def engine_leaves(x: Any) -> list[Any]:
    if isinstance(x, tuple | list):
        return [leaf for item in x for leaf in engine_leaves(item)]
    return [x]


SHAPES = [(5,), (3, 4), (2, 3, 4), (0, 3), (4, 0)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
def test_to_and_from_dense(shape: tuple[int, ...], dtype: str) -> None:
    x = dense_of(shape, dtype)
    np.testing.assert_array_equal(in_both(engine.sparse_tensor_to_dense, sparse_of(x)), x)
    again = engine.sparse_from_dense(engine.constant(x))
    np.testing.assert_array_equal(dense(again), x)
    assert again.dtype == dtype


def test_other_defaults_and_types() -> None:
    words = engine.SparseValues([[0, 1], [1, 0]], ["a", "b"], [2, 2])
    assert words.dtype == "string"
    assert words.shape == (2, 2)
    found = engine.sparse_tensor_to_dense(words, "-").numpy()
    assert found.tolist() == [[b"-", b"a"], [b"b", b"-"]]
    assert engine.sparse_tensor_to_dense(words).numpy()[0, 0] == b""
    back = engine.sparse_from_dense(engine.constant([["", "x"]]))
    assert back.indices.numpy().tolist() == [[0, 1]]
    flags = engine.SparseValues([[1]], [True], [3])
    assert engine.sparse_tensor_to_dense(flags).numpy().tolist() == [False, True, False]


def test_places_are_checked() -> None:
    outside = engine.SparseValues([[0, 5]], [1.0], [2, 3])
    with pytest.raises(InvalidArgumentError, match=r"indices\[0\] = \[0, 5\] is out of bounds"):
        engine.sparse_tensor_to_dense(outside)
    unordered = engine.SparseValues([[1], [0]], [1.0, 2.0], [2])
    with pytest.raises(InvalidArgumentError, match="out of order"):
        engine.sparse_tensor_to_dense(unordered)
    loose = engine.sparse_tensor_to_dense(unordered, validate_indices=False)
    assert loose.numpy().tolist() == [2.0, 1.0]
    twice = engine.SparseValues([[1], [1]], [1.0, 2.0], [2])
    with pytest.raises(InvalidArgumentError, match="repeated"):
        engine.sparse_tensor_to_dense(twice)


def test_parts_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="number of values"):
        engine.SparseValues([[0]], [1.0, 2.0], [3])
    with pytest.raises(ShapeError, match="number of axes"):
        engine.SparseValues([[0, 1]], [1.0], [3])
    with pytest.raises(ShapeError, match="indices"):
        engine.SparseValues([0], [1.0], [3])
    with pytest.raises(DTypeError, match="expected SparseValues"):
        engine.sparse_reorder(engine.constant([1.0]))
    with pytest.raises(DTypeError, match="whole numbers"):
        engine.sparse_reorder(engine.SparseValues(np.zeros((1, 1)), np.zeros(1), np.ones(1, int)))


@pytest.mark.parametrize("shape", SHAPES)
def test_reorder_reshape_and_transpose(shape: tuple[int, ...]) -> None:
    x = dense_of(shape)
    sparse = sparse_of(x)
    order = rng.permutation(len(sparse.values))
    mixed = engine.SparseValues(sparse.indices[order], sparse.values[order], sparse.dense_shape)
    found = in_both(engine.sparse_reorder, mixed)
    np.testing.assert_array_equal(found.indices, sparse.indices)
    np.testing.assert_array_equal(found.values, sparse.values)
    turned = in_both(engine.sparse_transpose, sparse)
    np.testing.assert_array_equal(dense(turned), x.T)
    if x.size:
        flat = in_both(lambda s: engine.sparse_reshape(s, [-1]), sparse)
        np.testing.assert_array_equal(dense(flat), x.reshape(-1))


def test_reshape_refuses() -> None:
    x = sparse_of(dense_of((3, 4)))
    assert engine.sparse_reshape(x, [2, -1]).shape == (2, 6)
    for bad in ([5, -1], [3, 5], [-1, -1], [-2, -6]):
        with pytest.raises(InvalidArgumentError, match="SparseReshape"):
            engine.sparse_reshape(x, bad)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_split_and_slice(axis: int) -> None:
    parts = [dense_of((3, 4)) for _ in range(3)]
    joined = in_both(lambda *xs: engine.sparse_concat(axis, xs), *map(sparse_of, parts))
    np.testing.assert_array_equal(dense(joined), np.concatenate(parts, axis))
    assert [*map(tuple, joined.indices)] == sorted(map(tuple, joined.indices))
    pieces = in_both(lambda x: engine.sparse_split(x, 5, axis), joined)
    for piece, expected in zip(
        pieces, np.array_split(np.concatenate(parts, axis), 5, axis), strict=True
    ):
        np.testing.assert_array_equal(dense(piece), expected)
    cut = in_both(lambda x: engine.sparse_slice(x, [1, 2], [9, 2]), sparse_of(parts[0]))
    np.testing.assert_array_equal(dense(cut), parts[0][1:, 2:4])


def test_concat_of_unequal_sizes() -> None:
    a, b = dense_of((2, 3)), dense_of((2, 5))
    with pytest.raises(InvalidArgumentError, match="differ besides axis 0"):
        engine.sparse_concat(0, [sparse_of(a), sparse_of(b)])
    found = engine.sparse_concat(0, [sparse_of(a), sparse_of(b)], expand_nonconcat_dims=True)
    wide = np.concatenate([np.pad(a, [(0, 0), (0, 2)]), b])
    np.testing.assert_array_equal(dense(found), wide)
    with pytest.raises(InvalidArgumentError, match="numbers of axes differ"):
        engine.sparse_concat(0, [sparse_of(a), sparse_of(np.ones(3))])
    with pytest.raises(InvalidArgumentError, match="pieces"):
        engine.sparse_split(sparse_of(a), 4, 1)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (0, 1, 2)])
def test_reductions(axis: Any, keepdims: bool) -> None:
    x = np.abs(dense_of((2, 3, 4)))
    sparse = sparse_of(x)
    for dense_fn, sparse_fn, reference in (
        (engine.sparse_reduce_sum, engine.sparse_reduce_sum_sparse, np.sum),
        (engine.sparse_reduce_max, engine.sparse_reduce_max_sparse, np.max),
    ):
        expected = reference(x, axis=axis, keepdims=keepdims)
        found = in_both(lambda s, f=dense_fn: f(s, axis, keepdims), sparse)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        places = in_both(lambda s, f=sparse_fn: f(s, axis, keepdims), sparse)
        np.testing.assert_allclose(dense(places), expected, rtol=1e-12)


def test_maximum_of_negative_elements_is_theirs() -> None:
    x = engine.SparseValues([[0, 0], [0, 2]], [-3.0, -1.0], [2, 3])
    assert engine.sparse_reduce_max(x, 1).numpy().tolist() == [-1.0, 0.0]


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int32", "float16"])
def test_matmul(adjoint_a: bool, adjoint_b: bool, dtype: str) -> None:
    a = dense_of((5, 4), dtype).T if adjoint_a else dense_of((4, 5), dtype)
    a = a.T.copy() if adjoint_a else a
    a = dense_of((5, 4) if adjoint_a else (4, 5), dtype)
    b = dense_of((3, 5) if adjoint_b else (5, 3), dtype)
    wide = [m.astype("complex128") for m in (a, b)]
    expected = (wide[0].conj().T if adjoint_a else wide[0]) @ (
        wide[1].conj().T if adjoint_b else wide[1]
    )
    found = in_both(
        lambda s: engine.sparse_dense_matmul(s, engine.constant(b), adjoint_a, adjoint_b),
        sparse_of(a),
    )
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "float16" else 1e-5)


def test_matmul_of_a_dense_and_a_sparse_matrix() -> None:
    a, b = dense_of((2, 5)), dense_of((5, 3))
    found = engine.sparse_dense_matmul(engine.constant(a), sparse_of(b))
    np.testing.assert_allclose(found.numpy(), a @ b, rtol=1e-12)
    with pytest.raises(InvalidArgumentError, match="inner sizes differ"):
        engine.sparse_dense_matmul(sparse_of(a), engine.constant(np.ones((4, 3))))


def test_arithmetic() -> None:
    a, b = dense_of((3, 4)), dense_of((3, 4))
    x, y = sparse_of(a), sparse_of(b)
    np.testing.assert_allclose(dense(in_both(engine.sparse_add, x, y)), a + b)
    np.testing.assert_allclose(in_both(lambda s: engine.sparse_add(s, b), x), a + b)
    np.testing.assert_allclose(dense(in_both(engine.sparse_maximum, x, y)), np.maximum(a, b))
    np.testing.assert_allclose(dense(in_both(engine.sparse_minimum, x, y)), np.minimum(a, b))
    full = rng.normal(size=(1, 4)) + 3
    times = in_both(lambda s: s * engine.constant(full), x)
    np.testing.assert_allclose(dense(times), a * full)
    over = in_both(lambda s: s / engine.constant(full), x)
    np.testing.assert_allclose(dense(over), a / full)
    np.testing.assert_allclose(dense(2.0 * engine.SparseValues.from_value(x)), a * 2)
    small = engine.sparse_add(sparse_of(np.eye(2)), sparse_of(np.eye(2) * -0.9), 0.2)
    assert small.values.shape == (0,)
    with pytest.raises(InvalidArgumentError, match="one shape"):
        engine.sparse_add(x, sparse_of(b.T))
    with pytest.raises(InvalidArgumentError, match="cannot be broadcast"):
        x * np.ones((2, 4))
    with pytest.raises(InvalidArgumentError, match="at least one"):
        engine.sparse_add(a, b)


def test_softmax() -> None:
    a = dense_of((2, 3, 4))
    found = in_both(engine.sparse_softmax, sparse_of(a))
    lowest = np.where(a == 0, -np.inf, a)
    with np.errstate(invalid="ignore"):
        e = np.exp(lowest - lowest.max(-1, keepdims=True))
        expected = np.nan_to_num(e / e.sum(-1, keepdims=True))
    np.testing.assert_allclose(dense(found), expected, rtol=1e-12)
    with pytest.raises(ShapeError, match="two axes"):
        engine.sparse_softmax(sparse_of(np.ones(3)))


def test_rows() -> None:
    x = engine.SparseValues([[0, 1], [3, 0]], [5, 7], [4, 2])
    filled, empty = engine.sparse_fill_empty_rows(x, -1)
    assert empty.numpy().tolist() == [False, True, True, False]
    assert filled.indices.numpy().tolist() == [[0, 1], [1, 0], [2, 0], [3, 0]]
    assert filled.values.numpy().tolist() == [5, -1, -1, 7]
    kept = engine.sparse_retain(x, [False, True])
    assert kept.values.numpy().tolist() == [7]
    assert engine.sparse_reset_shape(x).dense_shape.numpy().tolist() == [4, 2]
    assert engine.sparse_reset_shape(kept, [9, 9]).dense_shape.numpy().tolist() == [9, 9]
    with pytest.raises(InvalidArgumentError, match="does not fit"):
        engine.sparse_reset_shape(x, [3, 9])
    wide = engine.sparse_expand_dims(x, 1)
    assert (wide.indices.numpy().tolist(), wide.shape) == ([[0, 0, 1], [3, 0, 0]], (4, 1, 2))
    assert engine.sparse_expand_dims(x).shape == (4, 2, 1)


def test_merge_and_indicator() -> None:
    ids = engine.SparseValues([[0, 0], [1, 0], [1, 1]], [2, 4, 0], [2, 2])
    values = engine.SparseValues([[0, 0], [1, 0], [1, 1]], [1.5, 2.5, 3.5], [2, 2])
    found = engine.sparse_merge(ids, values, 5)
    expected = np.zeros((2, 5))
    expected[0, 2], expected[1, 4], expected[1, 0] = 1.5, 2.5, 3.5
    np.testing.assert_array_equal(dense(found), expected)
    np.testing.assert_array_equal(engine.sparse_to_indicator(ids, 5).numpy(), expected != 0)


GRADIENTS: list[Any] = [
    pytest.param(lambda s, d: engine.sparse_dense_matmul(s, d), id="matmul"),
    pytest.param(
        lambda s, d: engine.sparse_dense_matmul(s, d, adjoint_a=True)[:, :1], id="adjoint"
    ),
    pytest.param(lambda s, d: engine.sparse_tensor_to_dense(s) * d, id="dense"),
    pytest.param(lambda s, d: engine.sparse_reduce_sum(s, 1) * d[0], id="sum"),
    pytest.param(lambda s, d: engine.sparse_reduce_sum(s, [0], True) * d[0], id="sum-kept"),
    pytest.param(lambda s, d: (s * d).values ** 2, id="times"),
    pytest.param(lambda s, d: engine.sparse_softmax(s / d).values ** 2, id="softmax"),
    pytest.param(lambda s, d: engine.sparse_add(s, d) ** 2, id="add-dense"),
    pytest.param(lambda s, d: engine.sparse_add(s, s * d).values ** 2, id="add"),
    pytest.param(lambda s, d: engine.sparse_fill_empty_rows(s, d[0, 0])[0].values ** 2, id="fill"),
    pytest.param(lambda s, d: engine.sparse_concat(1, [s, s * d]).values ** 2, id="concat"),
]


@pytest.mark.parametrize("fn", GRADIENTS)
def test_gradients_against_differences(fn: Callable[..., Any]) -> None:
    x = sparse_of(dense_of((4, 4)))
    values, d = x.values, np.abs(dense_of((4, 4))) + 1

    def loss(v: Any, w: Any) -> Any:
        return fn(engine.SparseValues(x.indices, v, x.dense_shape), w)

    with engine.GradientTape() as tape:
        v, w = engine.constant(values), engine.constant(d)
        tape.watch([v, w])
        y = loss(v, w)
    grads = tape.gradient(y, [v, w], None, "zero")
    for k, at in enumerate((values, d)):
        step = rng.normal(size=at.shape)
        moved = [[values, d], [values, d]]
        for sign, pair in zip((1, -1), moved, strict=True):
            pair[k] = at + sign * 1e-6 * step
        high, low = (loss(*map(engine.constant, pair)).numpy().sum() for pair in moved)
        expected = (high - low) / 2e-6
        np.testing.assert_allclose((grads[k].numpy() * step).sum(), expected, rtol=1e-5, atol=1e-7)


def test_sessions_feed_and_fetch_sparse_values() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        x = engine.sparse_placeholder("float32")
        y = engine.sparse_reorder(x)
        value = engine.SparseValues(
            np.array([[2], [0]]), np.array([1, 2], "float32"), np.array([3])
        )
        found = session.run(y, {x: value})
        assert isinstance(found, engine.SparseValues)
        assert found.indices.tolist() == [[0], [2]]
        again = session.run(y.values, {x: ([[2], [0]], [1.0, 2.0], [3])})
        assert again.tolist() == [2.0, 1.0]
        with pytest.raises(InvalidArgumentError, match="3 values"):
            session.run(y, {x: (1, 2)})


def test_ops_with_gradients() -> None:
    x = sparse_of(dense_of((4, 4)))
    d = dense_of((4, 3))

    def put(v: Any) -> Any:
        y = np.zeros((4, 4))
        y[tuple(x.indices.T)] = v
        return y

    def own(v: Any) -> Any:
        return engine.SparseValues(engine.constant(x.indices), v, engine.constant(x.dense_shape))

    check_op(
        lambda v, b: engine.sparse_dense_matmul(own(v), b),
        lambda v, b: put(v) @ b,
        [x.values, d],
        dynamic=False,
    )
    check_op(lambda v: engine.sparse_tensor_to_dense(own(v)), put, [x.values], dynamic=False)
    check_op(
        lambda v: engine.sparse_reduce_sum(own(v), 1),
        lambda v: put(v).sum(1),
        [x.values],
        dynamic=False,
    )


def test_an_eager_part_beside_a_tensor_of_a_graph_belongs_to_the_graph() -> None:
    """Sessions fetch what is made of arrays, eager tensors and tensors of the graph."""
    values, places = engine.constant([5.0, 7.0]), np.array([[0, 1], [1, 0]])
    whole = engine.SparseValues(places, values, [2, 2])
    with engine.Graph().as_default(), engine.Session() as session:
        for parts in (
            (places, values, [2, 2]),
            (engine.constant(places), values, np.array([2, 2])),
            (places, engine.constant([1.0, 2.0]) * values, np.array([2, 2])),
        ):
            sparse = engine.SparseValues(*parts)
            found, y = session.run((sparse, engine.sparse_tensor_to_dense(sparse)))
            np.testing.assert_array_equal(dense(found), y)
            assert y[0, 1] == 5.0
            assert y[1, 0] in (7.0, 14.0)
        fed = engine.sparse_placeholder("float32", (2, 2))
        value = engine.SparseValues(places, np.ones(2, "float32"), np.array([2, 2]))
        y = session.run(engine.sparse_tensor_to_dense(fed), {fed: value})
        np.testing.assert_array_equal(y, [[0.0, 1.0], [1.0, 0.0]])

    @engine.function
    def scaled(x: Any) -> Any:
        return engine.sparse_tensor_to_dense(whole.with_values(whole.values * x))

    np.testing.assert_array_equal(scaled(2.0), [[0.0, 10.0], [14.0, 0.0]])


def test_sums_are_of_one_type() -> None:
    one, other = sparse_of(np.array([1.0])), sparse_of(np.array([1]))
    for fn in (engine.sparse_add, engine.sparse_maximum):
        with pytest.raises(DTypeError, match=f"{fn.__name__}: .* must have one type"):
            fn(one, other)


def test_a_sparse_array_is_no_tensor() -> None:
    s = sparse_of(np.array([[1.0, 0.0]]))
    for fn in (engine.convert_to_tensor, ops.abs, lambda x: ops.matmul(x, np.ones((2, 2)))):
        with pytest.raises(NoTensorError, match="a sparse array of float64 is no tensor"):
            fn(s)
