"""MultiHeadAttention and GroupQueryAttention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import TensorSpec
from laminar.layers.masking import get_mask
from laminar.saving import load_model, register_keras_serializable

from .harness import check_layer, check_same_config, random_inputs, rng

wrong: Any = layers  # for arguments of the wrong type

MULTI: dict[str, Any] = {"num_heads": 2, "key_dim": 3}
GROUP: dict[str, Any] = {"head_dim": 3, "num_query_heads": 4, "num_key_value_heads": 2}

QUERY, VALUE, KEY = (2, 3, 6), (2, 5, 7), (2, 5, 8)
QUERY_MASK = np.array([[1, 1, 0], [1, 0, 0]], bool)
VALUE_MASK = np.array([[1, 1, 0, 1, 0], [1, 0, 0, 1, 1]], bool)
KEY_MASK = np.array([[1, 1, 1, 0, 1], [1, 1, 0, 0, 1]], bool)
PAIRS = rng(5).integers(0, 2, (2, 3, 5)).astype(bool)
PAIRS[..., 0] = True

KINDS: list[Any] = [
    ("MultiHeadAttention", MULTI),
    ("MultiHeadAttention", MULTI | {"value_dim": 5, "output_shape": 4, "dropout": 0.1}),
    ("MultiHeadAttention", MULTI | {"output_shape": [4, 2], "use_bias": False}),
    ("MultiHeadAttention", MULTI | {"use_gate": True, "sliding_window": 2}),
    ("MultiHeadAttention", MULTI | {"dropout": 0.3, "attention_axes": -2, "seed": 3}),
    ("GroupQueryAttention", GROUP),
    ("GroupQueryAttention", GROUP | {"use_gate": True, "sliding_window": 2, "use_bias": False}),
    ("GroupQueryAttention", GROUP | {"num_key_value_heads": 4, "dropout": 0.3, "seed": 3}),
    ("GroupQueryAttention", GROUP | {"num_key_value_heads": 1}),
]

CALLS: list[Any] = [
    {},
    {"return_attention_scores": True},
    {"use_causal_mask": True},
    {"use_causal_mask": True, "return_attention_scores": True, "value_mask": VALUE_MASK},
    {"attention_mask": PAIRS},
    {"attention_mask": PAIRS[0], "use_causal_mask": True},
    {"attention_mask": PAIRS[:, None], "return_attention_scores": True},
    {"attention_mask": PAIRS, "key_mask": KEY_MASK, "value_mask": VALUE_MASK.astype(np.int32)},
    {"attention_mask": np.zeros((3, 5), bool)},
    {"attention_mask": np.zeros((3, 5), bool), "return_attention_scores": True},
]


def pair(name: str, kwargs: dict[str, Any], *inputs: Any) -> tuple[Any, layers.Layer]:
    """Keras's layer and ours with equal weights."""
    keras = pytest.importorskip("keras")
    theirs, ours = getattr(keras.layers, name)(**kwargs), getattr(layers, name)(**kwargs)
    theirs(*inputs)
    ours(*inputs)
    described = [[(w.path, tuple(w.shape)) for w in layer.weights] for layer in (theirs, ours)]
    assert _without_root(described[0]) == _without_root(described[1])
    values = [rng(i).normal(size=w.shape) / 2 for i, w in enumerate(ours.weights)]
    ours.set_weights([v.astype(np.float32) for v in values])
    theirs.set_weights(ours.get_weights())
    return theirs, ours


def _without_root(weights: list[Any]) -> list[Any]:
    return [(path.partition("/")[2], shape) for path, shape in weights]


def compare(theirs: Any, ours: Any, *inputs: Any, **call: Any) -> None:
    expected, found = theirs(*inputs, **call), ours(*inputs, **call)
    assert isinstance(found, tuple) == isinstance(expected, tuple)
    if not isinstance(found, tuple):
        expected, found = (expected,), (found,)
    for y, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(y.numpy(), np.asarray(wanted), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kwargs"), KINDS)
def test_agrees_with_keras(name: str, kwargs: dict[str, Any]) -> None:
    query, value, key = random_inputs([QUERY, VALUE, KEY])
    theirs, ours = pair(name, kwargs, query, value)
    check_same_config(theirs, ours)
    for call in CALLS:
        compare(theirs, ours, query, value, **call)
    theirs, ours = pair(name, kwargs, query, value, key)
    check_same_config(theirs, ours)
    for call in CALLS[1:3]:
        compare(theirs, ours, query, value, key, **call)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("axes", "shapes"),
    [
        ((1,), [(2, 3, 4, 6), (2, 5, 4, 6)]),
        ((2,), [(2, 3, 4, 6), (2, 3, 5, 6)]),
        (-2, [(2, 3, 4, 6), (2, 3, 5, 6)]),
        (None, [(2, 3, 4, 6), (2, 2, 5, 6)]),
        ((1, 3), [(2, 3, 2, 4, 6), (2, 2, 2, 5, 6)]),
    ],
)
def test_attention_along_some_axes(axes: Any, shapes: list[Any]) -> None:
    query, value = random_inputs(shapes)
    theirs, ours = pair("MultiHeadAttention", MULTI | {"attention_axes": axes}, query, value)
    check_same_config(theirs, ours)
    _, scores = ours(query, value, return_attention_scores=True)
    compare(theirs, ours, query, value, return_attention_scores=True)
    used = ours.get_config()["attention_axes"]
    ends = [x.shape[i] for x in (query, value) for i in used]
    mask = rng(4).integers(0, 2, ends).astype(bool)
    compare(theirs, ours, query, value, attention_mask=mask)
    assert scores.shape[-len(ends) :] == tuple(ends)


def test_values_of_another_size_than_keys() -> None:
    query, value = random_inputs([QUERY, VALUE])
    layer = layers.MultiHeadAttention(**MULTI, value_dim=5)
    y = layer(query, value, attention_mask=PAIRS)
    again = layer(query, value, attention_mask=PAIRS, return_attention_scores=True)[0]
    np.testing.assert_allclose(y.numpy(), again.numpy(), rtol=1e-5, atol=1e-6)


def test_causal_order_along_another_axis() -> None:
    (x,) = random_inputs([(2, 3, 4, 6)])
    layer = layers.MultiHeadAttention(**MULTI, attention_axes=2)
    y = layer(x, x, use_causal_mask=True).numpy()
    flat = layers.MultiHeadAttention(**MULTI)
    flat.build((None, 4, 6), (None, 4, 6))
    flat.set_weights(layer.get_weights())
    rows = x.reshape(6, 4, 6)
    expected = flat(rows, rows, use_causal_mask=True).numpy().reshape(x.shape)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(InvalidArgumentError, match="go by the order along one axis"):
        layers.MultiHeadAttention(**MULTI)(x, x, use_causal_mask=True)


# Keras's GroupQueryAttention passes the masks on to projections that warn of them.
WARNS = pytest.mark.filterwarnings("ignore:Layer .* was passed an input with a mask")


@pytest.mark.slow
@WARNS
@pytest.mark.parametrize(("name", "kwargs"), [KINDS[0], KINDS[5]])
@pytest.mark.parametrize("call", [{}, {"return_attention_scores": True}, {"use_causal_mask": True}])
def test_masks_that_inputs_carry(name: str, kwargs: dict[str, Any], call: dict[str, Any]) -> None:
    keras = pytest.importorskip("keras")
    ids, others = np.array([[1, 2, 3, 0], [3, 0, 0, 0]]), np.array([[5, 4, 0], [2, 0, 0]])
    theirs, ours = pair(name, kwargs, *random_inputs([(2, 4, 6), (2, 3, 6)]))
    table = rng(9).normal(size=(6, 6)).astype(np.float32)
    embedded = []
    for module in (keras.layers, layers):
        embedding = module.Embedding(6, 6, mask_zero=True)
        embedding.build(())
        embedding.set_weights([table])
        embedded.append((embedding(ids), embedding(others)))
    expected = theirs(*embedded[0], **call)
    found = ours(*embedded[1], **call)
    if call.get("return_attention_scores"):
        np.testing.assert_allclose(found[1].numpy(), np.asarray(expected[1]), atol=1e-5)
        expected, found = expected[0], found[0]
    np.testing.assert_allclose(found.numpy(), np.asarray(expected), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(get_mask(found).numpy(), ids != 0)
    by_name = ours(value=embedded[1][1], query=embedded[1][0], **call)
    by_name = by_name[0] if isinstance(by_name, tuple) else by_name
    np.testing.assert_array_equal(by_name.numpy(), found.numpy())
    np.testing.assert_array_equal(get_mask(by_name).numpy(), ids != 0)


def test_a_query_mask_that_is_given() -> None:
    query, value = random_inputs([QUERY, VALUE])
    theirs, ours = pair("MultiHeadAttention", MULTI, query, value)
    compare(theirs, ours, query, value, query_mask=QUERY_MASK)
    np.testing.assert_array_equal(get_mask(ours(query, value, query_mask=QUERY_MASK)), QUERY_MASK)
    theirs, ours = pair("GroupQueryAttention", GROUP, query, value)
    compare(theirs, ours, query, value, query_mask=QUERY_MASK, return_attention_scores=True)


@pytest.mark.parametrize(("name", "kwargs"), KINDS)
def test_places(name: str, kwargs: dict[str, Any]) -> None:
    """With the causal mask nothing later matters; with a window nothing far away."""
    layer = getattr(layers, name)(**kwargs)
    (x,) = random_inputs([(2, 6, 4)])
    other = x.copy()
    other[:, 4] += 1
    y, z = (layer(v, v, use_causal_mask=True).numpy() for v in (x, other))
    np.testing.assert_array_equal(y[:, :4], z[:, :4])
    assert (y[:, 4] != z[:, 4]).any()
    scores = layer(x, x, return_attention_scores=True)[1].numpy()
    near = np.abs(np.subtract.outer(range(6), range(6))) < (kwargs.get("sliding_window") or 9)
    assert ((scores > 0) == near).all()
    np.testing.assert_allclose(scores.sum(-1), 1, rtol=1e-5)


@register_keras_serializable("tests")
class SelfAttention(layers.Layer):
    """Attention of a sequence to itself, for harnesses that give one input."""

    def __init__(self, kind: str, options: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.attention = getattr(layers, kind)(**options, dtype=self.dtype_policy)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        self.attention.build(input_shape, input_shape)

    def call(self, x: Any) -> Any:
        return self.attention(x, x)


@pytest.mark.parametrize(("name", "kwargs"), KINDS)
def test_layer(name: str, kwargs: dict[str, Any]) -> None:
    options = kwargs | {"dropout": 0.0}  # a step lowers a loss without noise
    shape = kwargs.get("output_shape", 6)
    output = (2, 3, *(shape if isinstance(shape, list) else [shape]))
    check_layer(
        SelfAttention,
        {"kind": name, "options": options},
        QUERY,
        expected_output_shape=output,
        tolerance=1e-5,
    )


@pytest.mark.parametrize(("name", "kwargs"), KINDS)
@pytest.mark.parametrize("scores", [False, True])
def test_sizes_that_a_trace_does_not_know(name: str, kwargs: dict[str, Any], scores: bool) -> None:
    layer = getattr(layers, name)(**kwargs)
    layer.build((None, None, 6), (None, None, 7))

    def call(q: Any, v: Any, mask: Any) -> Any:
        y = layer(q, v, value_mask=mask, use_causal_mask=True, return_attention_scores=scores)
        return y[0] if scores else y

    signature = [TensorSpec((None, None, n), "float32") for n in (6, 7)]
    signature.append(TensorSpec((None, None), "bool"))
    traced = function(call, input_signature=signature)
    for batch, queries, keys in ((2, 3, 5), (1, 4, 2), (0, 2, 2), (2, 0, 3)):
        query, value = random_inputs([(batch, queries, 6), (batch, keys, 7)])
        mask = rng(2).integers(0, 2, (batch, keys)).astype(bool)
        y = traced(query, value, mask).numpy()
        np.testing.assert_allclose(y, call(query, value, mask).numpy(), rtol=1e-5, atol=1e-6)
    assert traced.trace_count == 1


@pytest.mark.parametrize(("name", "kwargs"), KINDS)
def test_symbolic(name: str, kwargs: dict[str, Any]) -> None:
    layer = getattr(layers, name)(**kwargs)
    query, value = layers.Input((None, 6)), layers.Input((5, 6))
    y, scores = layer(query, value, return_attention_scores=True)
    heads = kwargs.get("num_heads") or kwargs["num_query_heads"]
    assert tuple(scores.shape) == (None, heads, None, 5)
    assert tuple(y.shape) == layer.compute_output_shape(query.shape, value.shape)
    fresh = getattr(layers, name)(**kwargs)
    assert fresh.compute_output_shape((2, 3, 6), (2, 5, 6), key_shape=None)[:2] == (2, 3)
    assert not fresh.built


@pytest.mark.parametrize(("name", "kwargs"), [*KINDS[:1], *KINDS[3:6], KINDS[6]])
def test_gradients(name: str, kwargs: dict[str, Any]) -> None:
    layer = getattr(layers, name)(**kwargs, dtype="float64")
    query, value, key = (x.astype(np.float64) for x in random_inputs([QUERY, VALUE, KEY]))

    def loss() -> Any:
        return ops.sum(ops.sin(layer(query, value, key, attention_mask=PAIRS)))

    loss()
    with GradientTape() as tape:
        y = loss()
    for i, (v, dv) in enumerate(zip(layer.weights, tape.gradient(y, layer.weights), strict=True)):
        direction, before = rng(i).normal(size=v.shape), v.numpy()
        ends = []
        for step in (1e-6, -1e-6):
            v.assign(before + step * direction)
            ends.append(float(loss()))
        v.assign(before)
        expected = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose((dv.numpy() * direction).sum(), expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16", "float16"])
@pytest.mark.parametrize(("name", "kwargs"), [KINDS[3], KINDS[4], KINDS[5]])
def test_dtypes(name: str, kwargs: dict[str, Any], dtype: str) -> None:
    layer = getattr(layers, name)(**kwargs, dtype=dtype)
    query, value = random_inputs([QUERY, VALUE])
    y, scores = layer(query, value, return_attention_scores=True, use_causal_mask=True)
    assert y.dtype == scores.dtype == layer.compute_dtype
    assert {w.dtype for w in layer.weights} == {layer.variable_dtype}
    full = getattr(layers, name)(**kwargs)
    full.build(QUERY, VALUE)
    full.set_weights(layer.get_weights())
    expected = full(query, value, use_causal_mask=True).numpy()
    np.testing.assert_allclose(y.numpy().astype(np.float32), expected, atol=0.05)


@pytest.mark.parametrize(("name", "kwargs"), [KINDS[4], KINDS[7]])
def test_dropout(name: str, kwargs: dict[str, Any]) -> None:
    query, value = random_inputs([(8, 20, 6), (8, 30, 6)])
    layer = getattr(layers, name)(**kwargs)
    calm = layer(query, value)
    np.testing.assert_array_equal(layer(query, value, training=False), calm)
    first, second = (layer(query, value, training=True).numpy() for _ in range(2))
    assert (first != second).any()
    weights = layer(query, value, training=True, return_attention_scores=True)[1].numpy()
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)  # as before dropout
    again = getattr(layers, name)(**kwargs)
    again.build(query.shape, value.shape)
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(again(query, value, training=True).numpy(), first)


def test_weights_differ_and_are_penalized() -> None:
    layer = layers.MultiHeadAttention(
        **MULTI, kernel_regularizer="l2", bias_regularizer="l1", bias_initializer="ones"
    )
    query, value = random_inputs([QUERY, QUERY])
    layer(query, value)
    kernels = [w.numpy() for w in layer.weights if w.name == "kernel"]
    assert (kernels[0] != kernels[1]).any()
    expected = sum(0.01 * (k**2).sum() for k in kernels) + 0.01 * (3 * 6 + 6)
    np.testing.assert_allclose(sum(float(loss) for loss in layer.losses), expected, rtol=1e-5)


@pytest.mark.parametrize(("name", "kwargs"), [KINDS[0], KINDS[5]])
def test_activity_penalties(name: str, kwargs: dict[str, Any]) -> None:
    query, value = random_inputs([QUERY, VALUE])
    options = kwargs | {"activity_regularizer": "l2"}
    theirs, ours = pair(name, options, query, value)
    theirs(query, value)
    ours(query, value)
    expected = sorted(float(loss) for loss in theirs.losses)
    np.testing.assert_allclose(sorted(float(x) for x in ours.losses), expected, rtol=1e-4)
    check_same_config(theirs, ours)


def block(module: Any, **options: Any) -> Any:
    """A small transformer that says which of three tokens comes most often."""
    ids = module.layers.Input((None,), dtype="int32")
    x = module.layers.Embedding(4, 8, mask_zero=True)(ids)
    y = module.layers.MultiHeadAttention(2, 4, **options)(x, x)
    y = module.layers.GroupQueryAttention(4, 4, 2, use_gate=True)(y, y, use_causal_mask=True)
    x = module.layers.LayerNormalization()(module.layers.Add()([x, y]))
    x = module.layers.GlobalAveragePooling1D()(x)
    return module.Model(ids, module.layers.Dense(3, activation="softmax")(x))


IDS = rng(1).integers(1, 4, (48, 7)).astype(np.int32)
IDS[::2, 5:] = 0
MOST = np.array([np.bincount(row, minlength=4)[1:].argmax() for row in IDS])


@pytest.mark.slow
@WARNS
@pytest.mark.filterwarnings("ignore:__array__ implementation")  # of Keras's variables
@pytest.mark.parametrize("options", [{}, {"dropout": 0.1, "use_gate": True}])
def test_files_travel_both_ways(tmp_path: Path, options: dict[str, Any]) -> None:
    keras = pytest.importorskip("keras")
    theirs = block(keras, **options)
    expected = np.asarray(theirs(IDS))
    theirs.save(tmp_path / "theirs.keras")
    ours = load_model(tmp_path / "theirs.keras")
    np.testing.assert_allclose(ours.predict(IDS, verbose=0), expected, rtol=1e-4, atol=1e-5)
    for v in ours.weights:
        v.assign(v + 0.1 * rng(3).normal(size=v.shape))
    ours.save(tmp_path / "ours.keras")
    again = keras.saving.load_model(tmp_path / "ours.keras")
    expected = ours.predict(IDS, verbose=0)
    np.testing.assert_allclose(np.asarray(again(IDS)), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(
        load_model(tmp_path / "ours.keras").predict(IDS, verbose=0), expected
    )


def test_a_transformer_learns() -> None:
    laminar.set_random_seed(0)
    model = block(laminar, dropout=0.1)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.optimizer.learning_rate = 0.02
    history = model.fit(IDS, MOST, batch_size=20, epochs=15, verbose=0).history
    assert history["loss"][-1] < 0.6 * history["loss"][0]
    assert history["accuracy"][-1] > 0.8


X = np.zeros((2, 3, 4), np.float32)

REFUSED: list[Any] = [
    (lambda: wrong.MultiHeadAttention(0, 3), "num_heads must be a whole number of at least 1"),
    (lambda: wrong.MultiHeadAttention(2, -3), "key_dim must be"),
    (lambda: wrong.MultiHeadAttention(2, 3, value_dim=0), "value_dim must be"),
    (lambda: wrong.MultiHeadAttention(2, 3, sliding_window=0), "sliding_window must be"),
    (lambda: wrong.MultiHeadAttention(2, 3, dropout=2), "dropout must be from 0 to 1"),
    (lambda: wrong.MultiHeadAttention(2, 3, output_shape=8.0), "output_shape must be"),
    (lambda: wrong.MultiHeadAttention(2, 3, attention_axes="1"), "attention_axes must be"),
    (lambda: wrong.MultiHeadAttention(2, 3, flash_attention=True), "no separate kernel"),
    (lambda: layers.MultiHeadAttention(2, 3, attention_axes=2)(X, X), "between batch and features"),
    (lambda: wrong.GroupQueryAttention(3, 4, 3), "num_query_heads must be divisible by"),
    (lambda: wrong.GroupQueryAttention(3, 4, 0), "num_key_value_heads must be"),
    (lambda: wrong.GroupQueryAttention(3, 4, 2, heads=1), "unknown arguments heads"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_refuses(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


@pytest.mark.parametrize(("name", "kwargs"), [KINDS[0], KINDS[5]])
def test_shapes_that_do_not_fit(name: str, kwargs: dict[str, Any]) -> None:
    layer = getattr(layers, name)(**kwargs)
    with pytest.raises(ShapeError, match="value and key but the last must be equal"):
        layer(X, X, X[:, :2])
    with pytest.raises(ShapeError, match="must be equal"):
        layer.compute_output_shape((2, 3, 4), (2, 3, 4), (2, 5, 4))
    with pytest.raises(ShapeError, match="must have at least 2 axes"):
        layer(X, X, attention_mask=np.ones(3, bool))
    with pytest.raises(ShapeError):
        layer(X, X, attention_mask=np.ones((2, 3, 7), bool))
    with pytest.raises(TypeError, match="missing a required argument: 'value'"):
        getattr(layers, name)(**kwargs)(X)
