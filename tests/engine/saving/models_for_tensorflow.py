"""Small models of each kind that is written for TensorFlow: what builds the loss, and what is fed.

Each is deterministic, so that TensorFlow's losses are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import laminar
import laminar.compat.v1 as tf
from laminar import layers

Build = Callable[[], Any]

_chance = np.random.default_rng(0)
_IMAGES = _chance.normal(size=(3, 8, 8, 3)).astype("float32")
_ROWS = _chance.normal(size=(4, 4)).astype("float32")
_IDS = _chance.integers(0, 9, (3, 5)).astype("int32")
_LABELS = np.eye(4, dtype="float32")[[0, 2, 3]]


def convolutions() -> Any:
    x = tf.placeholder("float32", [None, 8, 8, 3], "x")
    y = tf.placeholder("float32", [None, 4], "y")
    h = tf.nn.conv2d(x, tf.get_variable("k", [3, 3, 3, 6]), [1, 2, 2, 1], "SAME")
    h = tf.nn.relu(tf.nn.bias_add(h, tf.get_variable("b", [6])))
    h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    h = tf.nn.avg_pool(h, [1, 2, 2, 1], [1, 1, 1, 1], "SAME")
    logits = tf.matmul(tf.reshape(h, [-1, 24]), tf.get_variable("w", [24, 4]))
    losses = tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits)
    return tf.reduce_mean(losses)


def of_layers() -> Any:
    x = tf.placeholder("float32", [None, 8, 8, 3], "x")
    model = laminar.Sequential(
        [
            layers.Conv2D(4, 3, padding="same", groups=1, dilation_rate=1),
            layers.BatchNormalization(),
            layers.DepthwiseConv2D(3),
            layers.Conv2DTranspose(4, 3, strides=2),
            layers.MaxPooling2D(2),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5, activation="gelu"),
            layers.LayerNormalization(),
            layers.Dense(3, activation="elu"),
        ]
    )
    return tf.reduce_mean(tf.square(model(x, training=True) - 1.0))


def other_dimensions() -> Any:
    x = tf.placeholder("float32", [None, 8, 8, 3], "x")
    line = [
        layers.Conv1D(4, 3, padding="causal", activation="relu"),
        layers.MaxPooling1D(2),
        layers.Conv1D(4, 2, strides=2),
        layers.AveragePooling1D(2),
    ]
    cube = [layers.Conv3D(4, (2, 2, 1)), layers.MaxPooling3D((2, 2, 1)), layers.AveragePooling3D(2)]
    one = laminar.Sequential(line)(x[:, 0])
    other = laminar.Sequential(cube)(x[..., tf.newaxis])
    return tf.reduce_mean(tf.square(one)) + tf.reduce_mean(tf.square(other))


def embeddings() -> Any:
    ids = tf.placeholder("int32", [None, 5], "x")
    rows = tf.nn.embedding_lookup(tf.get_variable("t", [9, 4]), ids)
    return tf.reduce_mean(tf.square(rows))


def arrays() -> Any:
    ids = tf.placeholder("int32", [None, 5], "x")
    rows = tf.nn.embedding_lookup(tf.get_variable("t", [9, 4]), ids)
    last, middle = rows[:, -1], rows[:, 1:3, :]
    wide = tf.concat([last, tf.pad(last, [[0, 0], [1, 1]])], 1)
    halves = tf.split(wide, 2, axis=1)
    parts = tf.unstack(tf.stack(halves, 0), axis=0)
    other = [
        tf.tile(last, [1, 2]),
        tf.gather(last, [0, 1], axis=1),
        tf.gather_nd(last, [[0, 0]]),
        tf.cumsum(last, 1),
        tf.reverse(last, [1]),
        tf.slice(last, [0, 1], [-1, 2]),
        tf.clip_by_value(last, -1.0, 1.0),
        tf.squeeze(tf.expand_dims(last, 1), 1),
        tf.nn.leaky_relu(last) + tf.nn.elu(last) + tf.nn.selu(last),
        tf.nn.softmax(middle, axis=1) * middle,
        tf.nn.sigmoid_cross_entropy_with_logits(labels=last, logits=last),
        rows[:, 0, tf.newaxis] * tf.cast(tf.range(5), "float32")[:4],
        tf.one_hot(ids, 4) * tf.cast(tf.reduce_any(last > 0), "float32") * rows,
        tf.norm(last) * tf.einsum("bi,bj->bij", last, last),
        tf.linalg.band_part(tf.matmul(last, last, transpose_b=True), -1, 0),
        tf.cast(tf.argmax(last, 1), "float32") + tf.nn.top_k(last, 2)[0][:, 0] * 0.0,
    ]
    return sum(tf.reduce_sum(tf.square(x)) for x in [wide, *parts, *other[:-1]])


def loop() -> Any:
    x = tf.placeholder("float32", [None, 4], "x")
    w = tf.get_variable("w", [4, 4])

    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.tanh(tf.matmul(h, w))

    return tf.reduce_mean(tf.while_loop(lambda i, _: i < 3, body, [0, x])[1])


def loops() -> Any:
    """One in the other, one that is never entered, and names that loops take for themselves."""
    x = tf.placeholder("float32", [4, 4], "x")
    w = tf.get_variable("w", [4, 4])

    def inner(j: Any, h: Any) -> Any:
        return j + 1, tf.tanh(tf.matmul(h, w))

    def outer(i: Any, h: Any) -> Any:
        return i + 1, 1.1 * tf.while_loop(lambda j, _: j < i + 1, inner, [0, h])[1]

    h = tf.while_loop(lambda i, _: i < 3, outer, [0, x])[1]
    none = tf.while_loop(lambda j, _: j < 0, inner, [0, x])[1]
    rows = tf.map_fn(lambda row: tf.tanh(tf.reduce_sum(row * w, 1)), x)
    merged = tf.add(tf.reduce_mean(h), tf.reduce_mean(none), name="Merge")
    return tf.add(merged, tf.reduce_mean(rows), name="Add")


def cases() -> Any:
    x = tf.placeholder("float32", [None, 4], "x")
    w = tf.get_variable("w", [4, 4])
    branches = [lambda: tf.matmul(x, w), lambda: x + w[0], lambda: x * 2.0]
    number = tf.cast(tf.reduce_sum(x) * 0.0, "int32") + 1
    return tf.reduce_mean(tf.square(tf.switch_case(number, branches)))


def attention() -> Any:
    x = tf.placeholder("float32", [None, 8, 8, 3], "x")
    rows = tf.reshape(x, [-1, 8, 24])
    h = layers.LayerNormalization()(layers.MultiHeadAttention(2, 4)(rows, rows) + rows)
    return tf.reduce_mean(tf.square(layers.Dense(3, activation="softmax")(h)))


def condition() -> Any:
    x = tf.placeholder("float32", [None, 4], "x")
    w = tf.get_variable("w", [4, 4])
    taken = tf.cond(tf.reduce_sum(x) < 1e9, lambda: tf.matmul(x, w), lambda: x * 2.0)
    return tf.reduce_mean(tf.square(taken))


def condition_in_a_loop() -> Any:
    x = tf.placeholder("float32", [None, 4], "x")
    w = tf.get_variable("w", [4, 4])

    def body(i: Any, h: Any) -> Any:
        even = tf.equal(i % 2, 0)
        h = tf.cond(even, lambda: tf.tanh(tf.matmul(h, w)), lambda: h * 1.5)
        return i + 1, tf.concat([h[:, 1:], tf.nn.softmax(h[:, :1], axis=0)], 1)

    return tf.reduce_mean(tf.square(tf.while_loop(lambda i, _: i < 4, body, [0, x])[1]))


def recurrent() -> Any:
    x = tf.placeholder("float32", [None, 8, 8, 3], "x")
    model = laminar.Sequential([layers.LSTM(4, return_sequences=True), layers.GRU(3)])
    return tf.reduce_mean(tf.square(model(x[:, 0])))


MODELS: dict[str, tuple[Build, dict[str, Any]]] = {
    "convolutions": (convolutions, {"x:0": _IMAGES, "y:0": _LABELS}),
    "of_layers": (of_layers, {"x:0": _IMAGES}),
    "other_dimensions": (other_dimensions, {"x:0": _IMAGES}),
    "embeddings": (embeddings, {"x:0": _IDS}),
    "arrays": (arrays, {"x:0": _IDS}),
    "loop": (loop, {"x:0": _ROWS}),
    "loops": (loops, {"x:0": _ROWS}),
    "cases": (cases, {"x:0": _ROWS}),
    "attention": (attention, {"x:0": _IMAGES}),
    "condition": (condition, {"x:0": _ROWS}),
    "condition_in_a_loop": (condition_in_a_loop, {"x:0": _ROWS}),
    "recurrent": (recurrent, {"x:0": _IMAGES}),
}
