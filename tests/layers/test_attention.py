"""Attention and AdditiveAttention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import layers, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import TensorSpec
from laminar.layers.masking import get_mask, set_mask

from .harness import check_layer, check_same_config, random_inputs, rng

wrong: Any = layers  # for arguments of the wrong type

SHAPES: list[tuple[int, ...]] = [(2, 3, 4), (2, 5, 4)]  # query, value
VALUE_MASK = np.array([[1, 1, 0, 1, 0], [1, 0, 0, 1, 1]], bool)
QUERY_MASK = np.array([[1, 1, 0], [1, 0, 0]], bool)

KINDS: list[Any] = [
    ("Attention", {}, {}),
    ("Attention", {"use_scale": True}, {"scale": ()}),
    ("Attention", {"score_mode": "concat"}, {"concat_score_weight": ()}),
    (
        "Attention",
        {"score_mode": "concat", "use_scale": True},
        {"scale": (), "concat_score_weight": ()},
    ),
    ("AdditiveAttention", {}, {"scale": (4,)}),
    ("AdditiveAttention", {"use_scale": False}, {}),
]

CALLS: list[Any] = [
    {},
    {"return_attention_scores": True},
    {"use_causal_mask": True, "return_attention_scores": True},
    {"mask": [None, VALUE_MASK], "return_attention_scores": True},
    {"mask": [QUERY_MASK, None]},
    {"mask": [QUERY_MASK, VALUE_MASK], "use_causal_mask": True},
]


@pytest.mark.parametrize(("name", "kwargs", "weights"), KINDS)
def test_layer(name: str, kwargs: dict[str, Any], weights: dict[str, Any]) -> None:
    check_layer(
        getattr(layers, name),
        kwargs,
        SHAPES,
        expected_output_shape=(2, 3, 4),
        expected_weights=weights,
    )


@pytest.mark.parametrize(("name", "kwargs", "weights"), KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_agrees_with_keras(
    name: str, kwargs: dict[str, Any], weights: dict[str, Any], call: dict[str, Any]
) -> None:
    keras = pytest.importorskip("keras")
    inputs = [*random_inputs(SHAPES), rng(3).normal(size=(2, 5, 4)).astype(np.float32)]
    theirs, ours = getattr(keras.layers, name)(**kwargs), getattr(layers, name)(**kwargs)
    theirs(inputs)
    ours(inputs)
    values = [rng(i).normal(size=w.shape).astype(np.float32) for i, w in enumerate(theirs.weights)]
    assert [w.name for w in ours.weights] == [w.name for w in theirs.weights]
    theirs.set_weights(values)
    ours.set_weights([np.asarray(w.value) for w in theirs.weights])
    for given in (inputs, inputs[:2]):
        expected, found = theirs(given, **call), ours(given, **call)
        assert isinstance(found, tuple) == isinstance(expected, tuple)
        if not isinstance(found, tuple):
            expected, found = (expected,), (found,)
        for y, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(y.numpy(), np.asarray(wanted), rtol=1e-4, atol=1e-5)
    check_same_config(theirs, ours)


def test_attention_is_a_weighted_mean() -> None:
    query, value = (x.astype(np.float64) for x in random_inputs(SHAPES))
    y, weights = layers.Attention(dtype="float64")([query, value], return_attention_scores=True)
    scores = np.exp(query @ value.transpose(0, 2, 1))
    expected = scores / scores.sum(-1, keepdims=True)
    np.testing.assert_allclose(weights.numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(y.numpy(), expected @ value, rtol=1e-12)


@pytest.mark.parametrize("name", ["Attention", "AdditiveAttention"])
def test_masks_that_inputs_carry(name: str) -> None:
    layer = getattr(layers, name)()
    query, value = (ops.convert_to_tensor(x) for x in random_inputs(SHAPES))
    expected = layer([query, value], mask=[QUERY_MASK, VALUE_MASK]).numpy()
    assert (expected[~QUERY_MASK] == 0).all()
    set_mask(query, ops.convert_to_tensor(QUERY_MASK))
    set_mask(value, ops.convert_to_tensor(VALUE_MASK))
    y = layer([query, value])
    np.testing.assert_array_equal(y.numpy(), expected)
    np.testing.assert_array_equal(get_mask(y).numpy(), QUERY_MASK)
    given = layer(random_inputs(SHAPES), mask=[QUERY_MASK, None])
    np.testing.assert_array_equal(get_mask(given).numpy(), QUERY_MASK)
    set_mask(query, None)
    assert get_mask(layer([query, value])) is None


def test_symbolic_masks_and_scores() -> None:
    embedding = layers.Embedding(7, 4, mask_zero=True)
    query, value = (embedding(layers.Input((None,), dtype="int32")) for _ in range(2))
    y, weights = layers.Attention()([query, value], return_attention_scores=True)
    assert tuple(y.shape) == (None, None, 4)
    assert tuple(weights.shape) == (None, None, None)
    assert tuple(get_mask(y).shape) == (None, None)
    shapes = [(None, 3, 4), (None, 5, 6), (None, 5, 4)]
    assert layers.Attention().compute_output_shape(shapes) == (None, 3, 6)


@pytest.mark.parametrize(("name", "kwargs", "weights"), KINDS)
def test_sizes_that_a_trace_does_not_know(
    name: str, kwargs: dict[str, Any], weights: dict[str, Any]
) -> None:
    layer = getattr(layers, name)(**kwargs)
    unknown = TensorSpec((None, None, 4), "float32")
    traced = function(
        lambda q, v: layer([q, v], use_causal_mask=True), input_signature=[unknown] * 2
    )
    others: list[tuple[int, ...]] = [(1, 6, 4), (1, 2, 4)]
    for shapes in (SHAPES, others):
        query, value = random_inputs(shapes)
        expected = layer([query, value], use_causal_mask=True)
        np.testing.assert_allclose(traced(query, value).numpy(), expected.numpy(), atol=1e-6)
    assert traced.trace_count == 1


@pytest.mark.parametrize(("name", "kwargs", "weights"), KINDS)
def test_gradients(name: str, kwargs: dict[str, Any], weights: dict[str, Any]) -> None:
    layer = getattr(layers, name)(**kwargs, dtype="float64")
    points = [x.astype(np.float64) for x in random_inputs([*SHAPES, (2, 5, 4)])]
    layer(points)

    def loss(*xs: Any) -> Any:
        return ops.sum(ops.sin(layer(list(xs), mask=[QUERY_MASK, VALUE_MASK])))

    tensors = [ops.convert_to_tensor(x) for x in points]
    with GradientTape() as tape:
        for x in tensors:
            tape.watch(x)
        y = loss(*tensors)
    found = tape.gradient(y, tensors)
    for i, dx in enumerate(found):
        direction = rng(i).normal(size=points[i].shape)
        ends = []
        for step in (1e-6, -1e-6):
            moved = list(points)
            moved[i] = points[i] + step * direction
            ends.append(float(loss(*moved)))
        np.testing.assert_allclose(
            (dx.numpy() * direction).sum(), (ends[0] - ends[1]) / 2e-6, rtol=1e-6
        )


@pytest.mark.parametrize("name", ["Attention", "AdditiveAttention"])
def test_dropout(name: str) -> None:
    query, value = random_inputs([(8, 30, 4), (8, 50, 4)])
    layer = getattr(layers, name)(dropout=0.4, seed=1)
    same = layer([query, value], return_attention_scores=True)[1].numpy()
    np.testing.assert_array_equal(same, layer([query, value], return_attention_scores=True)[1])
    _, weights = layer([query, value], return_attention_scores=True, training=True)
    dropped = weights.numpy() == 0
    assert abs(dropped.mean() - 0.4) < 0.02
    np.testing.assert_allclose(weights.numpy()[~dropped], same[~dropped] / 0.6, rtol=1e-5)
    again = getattr(layers, name)(dropout=0.4, seed=1)
    if layer.weights:
        again.build([query.shape, value.shape])
        again.set_weights(layer.get_weights())
    first = again([query, value], return_attention_scores=True, training=True)[1]
    np.testing.assert_array_equal(first.numpy(), weights.numpy())
    assert layer.get_config()["seed"] == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_with_nothing_allowed(dtype: str) -> None:
    query, value = random_inputs(SHAPES)
    none = np.zeros((2, 5), bool)
    y = layers.Attention(dtype=dtype)([query, value], mask=[None, none])
    assert np.isfinite(y.numpy().astype(np.float32)).all()


X = np.zeros((2, 3, 4), np.float32)

REFUSED: list[Any] = [
    (lambda: wrong.Attention(score_mode="sum"), "score_mode must be one of 'dot', 'concat'"),
    (lambda: wrong.Attention(dropout=1.5), "dropout must be from 0 to 1"),
    (lambda: wrong.AdditiveAttention(units=3), "unknown arguments units"),
    (lambda: layers.Attention()(X), "must be called on a list"),
    (lambda: layers.Attention()([X]), "of length 2 or 3, got 1"),
    (lambda: layers.AdditiveAttention()([X] * 4), "of length 2 or 3, got 4"),
    (lambda: layers.Attention()([X, X], mask=X[0]), "layer mask must be a list"),
    (lambda: layers.Attention()([X, X], mask=[None]), "of length 2 or 3, got 1"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_refuses(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError):
        layers.Attention()([X, X[:, :, :2]])
    with pytest.raises(ShapeError, match="the number of features .* unknown"):
        layers.AdditiveAttention()([layers.Input((3, None))] * 2)


def test_compute_mask_is_that_of_the_query() -> None:
    layer: Any = layers.Attention()
    xs = [np.zeros((2, 3, 4), "float32"), np.zeros((2, 5, 4), "float32")]
    query = np.ones((2, 3), bool)
    assert layer.supports_masking
    assert layer.compute_mask(xs) is None
    assert layer.compute_mask(inputs=xs, mask=[None, None]) is None
    assert layer.compute_mask(inputs=xs, mask=[query, None]) is query
