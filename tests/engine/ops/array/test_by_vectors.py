"""Numbers that a run knows alone: shapes, orders, paddings, axes, in vectors of any length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar import engine, ops
from laminar.engine.errors import LaminarError
from laminar.engine.ops.array import (
    creation,
    diagonal,
    index,
    padding,
    rearrange,
    search,
    slicing,
    sort,
)
from laminar.engine.ops.array.by_vectors import (
    reduction_order,
    slice_by,
    swap_axes,
    tile_by,
    tile_sum_by,
    transpose_by,
    unslice_by,
)
from laminar.engine.ops.array.points import gather_points, scatter_points
from laminar.engine.ops.math import reduce

from ..harness import check_op

rng = np.random.default_rng(5)
X = rng.normal(size=(2, 3, 4))
V = [np.array(v) for v in ([2, 0, 1], [3, 8], [2, 1, 3], [0, 1, 2], [1, -1, 2], [1, 0])]
ORDER, SHAPE, TIMES, BEGIN, SIZE, AXES = V
PADDING = np.array([[1, 0], [0, 2], [1, 1]])
MASK = np.array([[True, False, True], [False, True, True]])

CASES: list[Any] = [
    pytest.param(ops.reshape, lambda x, s: x.reshape(s), SHAPE, id="reshape"),
    pytest.param(ops.transpose, lambda x, o: x.transpose(o), ORDER, id="transpose"),
    pytest.param(
        lambda x, _: ops.swapaxes(x, 0, -1), lambda x, _: x.swapaxes(0, 2), AXES, id="swap"
    ),
    pytest.param(ops.tile, np.tile, TIMES, id="tile"),
    pytest.param(lambda x, _: ops.tile(x, [2, 1, 1]), lambda x, _: np.tile(x, (2, 1, 1)), AXES),
    pytest.param(ops.pad, np.pad, PADDING, id="pad"),
    pytest.param(
        lambda x, p: ops.pad(x, p, "reflect"),
        lambda x, p: np.pad(x, p, "reflect"),
        np.array([[1, 0], [0, 2], [1, 1]]),
        id="pad-reflect",
    ),
    pytest.param(
        lambda x, b: slicing.slice_at(x, b, engine.constant(SIZE)),
        lambda x, b: x[0:1, 1:, 2:4],
        BEGIN,
        id="slice",
    ),
    pytest.param(ops.broadcast_to, np.broadcast_to, np.array([2, 2, 3, 4]), id="broadcast"),
    pytest.param(reduce.reduce_sum, lambda x, a: x.sum((0, 1)), AXES, id="sum"),
    pytest.param(
        lambda x, a: reduce.reduce_max(x, a, True),
        lambda x, a: x.max((0, 1), keepdims=True),
        AXES,
        id="max",
    ),
    pytest.param(lambda x, _: ops.flip(x, (0, 2)), lambda x, _: x[::-1, :, ::-1], AXES, id="flip"),
    pytest.param(
        lambda x, m: index.boolean_mask(x, m > 0),
        lambda x, m: x[m > 0],
        MASK.astype(int),
        id="mask",
    ),
    pytest.param(
        lambda x, m: index.boolean_mask(x, m > 0, 1),
        lambda x, m: x[:, m > 0],
        np.array([0, 1, 1]),
        id="mask-inside",
    ),
    pytest.param(lambda x, a: x[a[0]], lambda x, a: x[a[0]], AXES, id="item"),
    pytest.param(lambda x, _: ops.norm(x), lambda x, _: np.linalg.norm(x), AXES, id="norm"),
    pytest.param(
        lambda x, n: diagonal.band_part(x, n[0], n[1]),
        lambda x, n: np.tril(np.triu(x, -1), 0),
        AXES,
        id="band",
    ),
]


@pytest.mark.parametrize(("fn", "reference", "numbers"), CASES)
def test_values_and_gradients(fn: Any, reference: Any, numbers: Any) -> None:
    step, expected = rng.normal(size=X.shape), reference(X, numbers)
    weight = rng.normal(size=expected.shape)
    with engine.Graph().as_default(), engine.Session() as session:
        rank = numbers.ndim
        x = engine.placeholder("float64")
        given = engine.placeholder("int64", [None] * rank)
        y = fn(x, given)
        assert y.shape.is_compatible_with(expected.shape)
        (dx,) = engine.gradients(y, [x], [engine.constant(weight)])
        assert dx is not None
        (ddx,) = engine.gradients(dx * dx, [x])
        found, slope = session.run([y, dx], {x: X, given: numbers})
        assert ddx is None or session.run(ddx, {x: X, given: numbers}).shape == X.shape
        moved = [session.run(y, {x: X + s * step, given: numbers}) for s in (1e-6, -1e-6)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    difference = ((moved[0] - moved[1]) * weight).sum() / 2e-6
    np.testing.assert_allclose((slope * step).sum(), difference, rtol=1e-6)


def run(build: Any, *values: Any) -> Any:
    """What a graph of placeholders gives, of whose shapes nothing is known."""
    with engine.Graph().as_default(), engine.Session() as session:
        arrays = [np.asarray(v) for v in values]
        given = [engine.placeholder(a.dtype) for a in arrays]
        return session.run(build(*given), dict(zip(given, arrays, strict=True)))


def scalar(build: Any, x: Any, value: Any) -> Any:
    """Likewise, of a scalar of which only its value is unknown."""
    with engine.Graph().as_default(), engine.Session() as session:
        given, number = engine.placeholder("float64"), engine.placeholder("int32", [])
        given.set_shape(np.shape(x))
        return session.run(build(given, number), {given: x, number: value})


def test_shapes_of_what_is_made() -> None:
    assert run(lambda s: ops.zeros(s), [2, 0, 3]).shape == (2, 0, 3)
    assert run(lambda s: engine.lookup("Shape")(ops.ones(s)), [2, 3]).tolist() == [2, 3]
    assert run(lambda s: tf.fill(s, 7), [2, 2]).tolist() == [[7, 7], [7, 7]]
    drawn = run(lambda s: tf.random_uniform(s, seed=3), [3, 2])
    assert drawn.shape == (3, 2)
    assert len(set(drawn.ravel().tolist())) == 6
    assert run(lambda s: tf.random_uniform(s, 0, 9, "int32"), [3, 2]).max() < 9
    assert tf.zeros([2], tf.string).dtype == "string"


def test_scalars() -> None:
    assert scalar(lambda x, n: rearrange.roll(x, n, 1), X, 5).tolist() == np.roll(X, 5, 1).tolist()
    values, places = scalar(lambda x, k: sort.top_k(x, k), X, 2)
    assert values.tolist() == (-np.sort(-X)[..., :2]).tolist()
    assert places.tolist() == np.argsort(-X)[..., :2].tolist()
    hot = scalar(lambda _, n: creation.one_hot(engine.constant([1, 5, 0]), n), X, 3)
    assert hot.tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]
    spaced = scalar(lambda _, n: creation.linspace(0.0, 1.0, n), X, 5)
    assert spaced.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert scalar(lambda _, n: creation.linspace(2.0, 1.0, n), X, 1).tolist() == [2.0]


def test_places_of_what_is_not_zero() -> None:
    for x in (X > 0, np.array(True), np.array(False), np.zeros((0, 3))):
        assert run(search.argwhere, x).tolist() == np.argwhere(x).tolist()


def test_strings_are_padded() -> None:
    words = engine.constant(["a", "b"])
    assert ops.pad(words, [[1, 0]]).numpy().tolist() == [b"", b"a", b"b"]
    assert ops.pad(words, [[0, 1]], constant_values="-").numpy().tolist() == [b"a", b"b", b"-"]
    assert ops.pad(words, [[1, 0]], "edge").numpy().tolist() == [b"a", b"a", b"b"]


def test_order_of_a_reduction() -> None:
    order, sizes, kept = reduction_order.many(engine.constant([2, 3, 4]), engine.constant([-2]))
    assert [t.numpy().tolist() for t in (order, sizes, kept)] == [[0, 2, 1], [2, 4, 3], [2, 1, 4]]


@pytest.mark.parametrize(
    ("build", "numbers"),
    [
        (ops.transpose, [0, 0, 1]),
        (ops.transpose, [0, 1]),
        (ops.tile, [1, 2]),
        (ops.tile, [1, -2, 1]),
        (ops.reshape, [5, 5]),
        (lambda x, b: slicing.slice_at(x, b, engine.constant([1, 1, 1])), [0, 0, 4]),
        (reduce.reduce_sum, [3]),
        (lambda x, p: ops.pad(x, engine.lookup("Reshape")(p, shape=(-1, 2))), [1, 1]),
        (lambda x, p: ops.pad(x, engine.lookup("Reshape")(p, shape=(-1, 2))), [1, 1, -1, 0, 0, 0]),
        (lambda x, n: diagonal.band_part(x, n[0], n[0]), [-2]),
    ],
)
def test_what_does_not_fit_is_an_error_of_the_run(build: Any, numbers: Any) -> None:
    with pytest.raises(LaminarError):
        run(build, X, np.array(numbers))


def whole(*numbers: Any) -> Any:
    return engine.constant(np.array(numbers, "int64"))


def scattered(x: Any) -> Any:
    y = np.zeros((5, 4))
    np.add.at(y, np.array([[0, 4, 0], [1, 2, 0]]), x)
    return y


PLACES = whole([[0], [4], [0]], [[1], [2], [0]])
OPS: list[Any] = [
    (lambda x: transpose_by(x, whole(2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    (lambda x: swap_axes(x, axis1=0, axis2=-1), lambda x: x.swapaxes(0, -1)),
    (lambda x: tile_by(x, whole(2, 1, 3)), lambda x: np.tile(x, (2, 1, 3))),
    (lambda x: tile_sum_by(x, whole(2, 3, 1)), lambda x: x.sum((0, 1), keepdims=True)),
    (lambda x: slice_by(x, whole(0, 1, 2), whole(1, -1, 2)), lambda x: x[:1, 1:, 2:]),
    (
        lambda x: unslice_by(x, whole(1, 0, 0), whole(4, 3, 5)),
        lambda x: np.pad(x, [(1, 1), (0, 0), (0, 1)]),
    ),
    (
        lambda x: padding.pad_by(x, whole(*PADDING), mode="constant", value=0.0),
        lambda x: np.pad(x, PADDING),
    ),
    (
        lambda x: padding.pad_by(x, whole(*PADDING), mode="reflect", value=0.0),
        lambda x: np.pad(x, PADDING, "reflect"),
    ),
    (
        lambda x: padding.pad_sum_by(x, whole([1, 0], [0, 1], [0, 0]), mode="constant"),
        lambda x: x[1:, :-1],
    ),
    (
        lambda x: diagonal.band_part_by(x, whole(1)[0], whole(0)[0]),
        lambda x: np.tril(np.triu(x, -1)),
    ),
    (lambda x: gather_points(x, whole([0, 1], [1, 2])), lambda x: x[[0, 1], [1, 2]]),
    (lambda x: scatter_points(x, PLACES, whole(5, 4), static=engine.TensorShape(None)), scattered),
]


@pytest.mark.parametrize(("fn", "reference"), OPS)
def test_ops(fn: Any, reference: Any) -> None:
    check_op(fn, reference, [X], dynamic=False)
