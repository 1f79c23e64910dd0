"""Writes keras2_files.zip: what Keras 2 makes of a few models, for the tests of old files.

Run once, with tf-keras (2.21) and TensorFlow installed: python make_keras2_files.py
For each model: the whole model as `.h5` and `.keras`, its weights in the older and the newer
layout, its JSON, and what it predicts.
"""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf
import tf_keras as keras
from tf_keras import layers

rng = np.random.default_rng(0)


def cnn() -> tuple[Any, list[Any]]:
    model = keras.Sequential(
        [
            layers.Conv2D(
                *(3, 3),
                padding="same",
                activation="relu",
                input_shape=(6, 6, 2),
                kernel_regularizer="l2",
            ),
            layers.BatchNormalization(),
            layers.DepthwiseConv2D(3),
            layers.SeparableConv2D(4, 2),
            layers.Conv2DTranspose(2, 2, strides=2),
            layers.LeakyReLU(alpha=0.2),
            layers.MaxPooling2D(),
            layers.Dropout(0.1),
            layers.Flatten(),
            layers.Dense(3, activation="softmax", kernel_initializer="he_normal"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", ["accuracy"])
    x = rng.normal(size=(8, 6, 6, 2)).astype("float32")
    model.fit(x, rng.integers(0, 3, 8), epochs=3, verbose=0)
    return model, [x[:3]]


def old_adam() -> tuple[Any, list[Any]]:
    model = keras.Sequential(
        [layers.InputLayer(input_shape=(4,)), layers.Dense(5, activation="tanh"), layers.Dense(2)]
    )
    optimizer = keras.optimizers.legacy.Adam(0.01, decay=0.1)
    metrics = [keras.metrics.MeanAbsoluteError(), "mse"]
    model.compile(optimizer, keras.losses.MeanSquaredError(), metrics)
    x = rng.normal(size=(8, 4)).astype("float32")
    model.fit(x, x[:, :2], epochs=3, verbose=0)
    return model, [x[:3]]


def functional() -> tuple[Any, list[Any]]:
    a, b = layers.Input((5,), name="a"), layers.Input((5,), name="b")
    t = layers.Input((7,), dtype="int32", name="t")
    shared = layers.Dense(4, activation="relu", name="shared")
    inside = layers.Input((4,))
    dense = layers.Dense(4, name="id")(inside)
    inner = keras.Model(inside, layers.BatchNormalization()(dense), name="inner")
    of_a, of_b = shared(a), shared(b)
    h = inner(layers.Add()([of_a, of_b])) * 2.0 + of_a
    h = tf.nn.relu(h) - 1.0
    e = layers.LayerNormalization()(layers.Embedding(11, 4, mask_zero=True)(t))
    e = layers.GlobalAveragePooling1D()(layers.MultiHeadAttention(2, 3)(e, e))
    h = layers.Concatenate()([h, e, tf.reduce_mean(of_b, axis=-1, keepdims=True)])
    o1 = layers.Dense(2, name="o1")(h)
    o2 = layers.Dense(1, activation="sigmoid", name="o2")(h)
    model = keras.Model([a, b, t], [o1, o2])
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    model.compile(
        keras.optimizers.SGD(rate, momentum=0.9),
        {"o1": "mse", "o2": keras.losses.BinaryCrossentropy(label_smoothing=0.1)},
        loss_weights={"o1": 1.0, "o2": 0.5},
        metrics={"o2": ["accuracy"]},
    )
    xs: list[Any] = [rng.normal(size=(8, 5)).astype("float32") for _ in range(2)]
    xs.append(rng.integers(0, 11, (8, 7)).astype("int32"))
    ys = [xs[0][:, :2], rng.integers(0, 2, (8, 1)).astype("float32")]
    model.fit(xs, ys, epochs=2, verbose=0)
    return model, [x[:3] for x in xs]


def frozen() -> tuple[Any, list[Any]]:
    x = layers.Input((6,))
    parts = [layers.Dense(4, input_shape=(6,)), layers.BatchNormalization(), layers.Dense(3)]
    base = keras.Sequential(parts, name="base")
    base.trainable = False
    h = layers.ZeroPadding1D(1)(layers.Reshape((3, 1))(base(x)))
    h = layers.GlobalMaxPooling1D()(layers.Conv1D(2, 2)(h[:, 1:4]))
    h = tf.concat([h, h], -1)
    h = tf.math.square(h) + tf.sqrt(tf.abs(h) + 1.0)
    model = keras.Model(x, layers.Softmax()(layers.PReLU()(h)))
    return model, [rng.normal(size=(3, 6)).astype("float32")]


def recurrent() -> tuple[Any, list[Any]]:
    x = layers.Input((5, 3))
    h = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x)
    h = layers.GRU(3, return_sequences=True, recurrent_activation="hard_sigmoid")(h)
    h = layers.SimpleRNN(2, return_sequences=True)(h)
    h = layers.TimeDistributed(layers.Dense(3))(h)
    model = keras.Model(x, layers.LSTM(2)(h))
    model.compile(keras.optimizers.RMSprop(1e-3), "mae")
    return model, [rng.normal(size=(3, 5, 3)).astype("float32")]


def mixed() -> tuple[Any, list[Any]]:
    keras.mixed_precision.set_global_policy("mixed_float16")
    first = layers.Dense(4, activation="relu", input_shape=(3,))
    model = keras.Sequential([first, layers.Dense(2, dtype="float32")])
    keras.mixed_precision.set_global_policy("float32")
    return model, [rng.normal(size=(3, 3)).astype("float32")]


def main() -> None:
    target = Path(__file__).with_name("keras2_files.zip")
    with tempfile.TemporaryDirectory() as folder:
        for make in (cnn, old_adam, functional, frozen, recurrent, mixed):
            keras.utils.set_random_seed(0)
            model, inputs = make()
            stem = f"{folder}/{make.__name__}"
            model.save(f"{stem}.h5")
            model.save_weights(f"{stem}_weights.h5")
            model.save(f"{stem}.keras")
            model.save_weights(f"{stem}.weights.h5")
            Path(f"{stem}.json").write_text(model.to_json())
            outputs = model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)
            outputs = outputs if isinstance(outputs, list) else [outputs]
            arrays = {f"x{i}": x for i, x in enumerate(inputs)}
            arrays |= {f"y{i}": y for i, y in enumerate(outputs)}
            np.savez(f"{stem}.npz", **arrays)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for file in sorted(Path(folder).iterdir()):
                info = zipfile.ZipInfo(file.name, (2026, 1, 1, 0, 0, 0))
                archive.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    print(target, target.stat().st_size, "bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
