"""Small models of each kind, with data, and how they train."""

from __future__ import annotations

from typing import Any

import numpy as np

import laminar
from laminar import layers


def dense() -> tuple[Any, Any]:
    model = laminar.Sequential(
        [
            layers.Input((8,)),
            layers.Dense(16, activation="relu"),
            layers.Dropout(0.2, seed=1),
            layers.BatchNormalization(),
            layers.Dense(3, activation="softmax"),
        ]
    )
    return model, np.random.default_rng(0).normal(size=(64, 8)).astype("float32")


def convolutional() -> tuple[Any, Any]:
    model = laminar.Sequential(
        [
            layers.Input((8, 8, 2)),
            layers.Conv2D(4, 3, activation="relu", padding="same"),
            layers.MaxPooling2D(),
            # The gradient of a bias here would be zero but for rounding, which Adam scales up.
            layers.Conv2D(4, 3, strides=2, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dense(3, activation="softmax"),
        ]
    )
    return model, np.random.default_rng(0).normal(size=(64, 8, 8, 2)).astype("float32")


def recurrent() -> tuple[Any, Any]:
    model = laminar.Sequential(
        [
            layers.Input((5,), dtype="int32"),
            layers.Embedding(20, 6),
            layers.LSTM(7),
            layers.Dense(3, activation="softmax"),
        ]
    )
    return model, np.random.default_rng(0).integers(0, 20, (64, 5))


def attention() -> tuple[Any, Any]:
    words = layers.Input((5,), dtype="int32")
    x: Any = layers.Embedding(20, 8)(words)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
    x = layers.GlobalAveragePooling1D()(layers.Dense(8, activation="gelu")(x))
    model = laminar.Model(words, layers.Dense(3, activation="softmax")(x))
    return model, np.random.default_rng(0).integers(0, 20, (64, 5))


MODELS = {f.__name__: f for f in (dense, convolutional, recurrent, attention)}


def trained(
    name: str, *, epochs: int = 2, devices: int | None = None, **options: Any
) -> tuple[list[float], Any]:
    """The losses of epochs, and the predictions afterwards."""
    laminar.utils.set_random_seed(0)
    model, x = MODELS[name]()
    y = np.random.default_rng(1).integers(0, 3, len(x))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], **options)
    history = model.fit(x, y, epochs=epochs, batch_size=20, verbose=0, devices=devices).history
    return history["loss"], model.predict(x, verbose=0)
