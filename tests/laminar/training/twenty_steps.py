"""Six models, seven optimizers, twenty steps: what `test_twenty_steps` trains on both toolkits.

Run as a script (KERAS_BACKEND=jax python -m tests.laminar.training.twenty_steps), it writes the
losses of Keras to twenty_steps.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

REFERENCE = Path(__file__).with_name("twenty_steps.json")
STEPS, BATCH = 20, 8

_chance = np.random.default_rng(7)
ROWS = _chance.normal(size=(STEPS * BATCH, 6)).astype("float32")
IMAGES = _chance.normal(size=(STEPS * BATCH, 8, 8, 2)).astype("float32")
TOKENS = _chance.integers(0, 20, (STEPS * BATCH, 7)).astype("int32")
LABELS = _chance.integers(0, 3, STEPS * BATCH).astype("int32")


def dense(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(16, activation="tanh", kernel_regularizer="l2"),
            layers.Dense(8, activation="elu"),
            layers.Dense(3),
        ]
    )


def convolutions(keras: Any) -> Any:
    layers = keras.layers
    image = keras.Input((8, 8, 2))
    x = layers.Conv2D(6, 3, padding="same", activation="swish")(image)
    x = layers.AveragePooling2D(2)(x)
    x = layers.SeparableConv2D(8, 3, activation="swish")(x)
    return keras.Model(image, layers.Dense(3)(layers.Flatten()(x)))


def residual(keras: Any) -> Any:
    layers = keras.layers
    image = keras.Input((8, 8, 2))
    x = layers.Conv2D(4, 3, padding="same", use_bias=False)(image)
    y = layers.Activation("tanh")(layers.BatchNormalization()(x))
    y = layers.Conv2D(4, 3, padding="same", use_bias=False)(y)
    x = layers.add([x, layers.BatchNormalization()(y)])
    return keras.Model(image, layers.Dense(3)(layers.GlobalAveragePooling2D()(x)))


def recurrent(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((7,), dtype="int32"),
            layers.Embedding(20, 6, mask_zero=True),
            layers.Bidirectional(layers.LSTM(5, return_sequences=True)),
            layers.GRU(4),
            layers.Dense(3),
        ]
    )


def attention(keras: Any) -> Any:
    layers = keras.layers
    tokens = keras.Input((7,), dtype="int32")
    x = layers.Embedding(20, 8)(tokens)
    y = layers.LayerNormalization()(x)
    x = layers.add([x, layers.MultiHeadAttention(2, 4)(y, y)])
    y = layers.Dense(16, activation="gelu")(layers.LayerNormalization()(x))
    x = layers.add([x, layers.Dense(8)(y)])
    return keras.Model(tokens, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))


def shared(keras: Any) -> Any:
    layers = keras.layers
    rows = keras.Input((6,))
    twice = layers.Dense(6, activation="softplus")
    x = layers.multiply([twice(rows), twice(rows * 0.5)])
    x = layers.concatenate([x, layers.UnitNormalization()(rows)])
    return keras.Model(rows, layers.Dense(3)(x))


MODELS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "dense": (dense, ROWS),
    "convolutions": (convolutions, IMAGES),
    "residual": (residual, IMAGES),
    "recurrent": (recurrent, TOKENS),
    "attention": (attention, TOKENS),
    "shared": (shared, ROWS),
}
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda o: o.SGD(o.schedules.CosineDecay(0.1, 20), momentum=0.9, nesterov=True),
    "Adam": lambda o: o.Adam(0.01, global_clipnorm=1.0),
    "AdamW": lambda o: o.AdamW(0.01, weight_decay=0.1),
    "RMSprop": lambda o: o.RMSprop(0.005, momentum=0.5, centered=True),
    "Adagrad": lambda o: o.Adagrad(0.05),
    "Adadelta": lambda o: o.Adadelta(1.0),
    "Nadam": lambda o: o.Nadam(0.01, clipvalue=0.5),
}


def losses(keras: Any, model_name: str, optimizer_name: str) -> list[float]:
    """What `train_on_batch` gives in each step."""
    make, inputs = MODELS[model_name]
    model = make(keras)
    chance = np.random.default_rng(11)
    model.set_weights(
        [
            np.abs(w)
            if w.min() >= 0 and w.ndim == 1 and w.max() > 0  # gamma, variances
            else chance.normal(0, 0.3, w.shape).astype("float32")
            for w in model.get_weights()
        ]
    )
    model.compile(
        OPTIMIZERS[optimizer_name](keras.optimizers),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    found = []
    for i in range(STEPS):
        batch = slice(i * BATCH, (i + 1) * BATCH)
        found.append(float(model.train_on_batch(inputs[batch], LABELS[batch])))
    return found


def main() -> None:
    """Write the file."""
    import keras

    found = {
        f"{model} {optimizer}": [float(f"{x:.7g}") for x in losses(keras, model, optimizer)]
        for model in MODELS
        for optimizer in OPTIMIZERS
    }
    lines = [f'"{name}": {json.dumps(values)}' for name, values in found.items()]
    REFERENCE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
