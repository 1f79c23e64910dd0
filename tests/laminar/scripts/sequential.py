"""Stacks of layers: adding and removing, weights before and after build, features, freezing."""

from __future__ import annotations

from typing import Any

import numpy as np

from .tools import data, describe, fill, labels, texts


def stack(keras: Any) -> Any:
    model = keras.Sequential(
        [
            keras.layers.Dense(2, activation="relu", name="layer1"),
            keras.layers.Dense(3, activation="relu", name="layer2"),
            keras.layers.Dense(4, name="layer3"),
        ]
    )
    before = (len(model.weights), model.built, len(model.layers))
    y = model(keras.ops.ones((3, 3)))
    by_hand = model.layers[2](model.layers[1](model.layers[0](keras.ops.ones((3, 3)))))
    fill(model)
    x = data("x", 2, 3)
    return {
        **describe(model),
        "before": before,
        "y": tuple(y.shape),
        "same": np.array_equal(np.asarray(y), np.asarray(by_hand)),
        "values": model(x),
        "built": model.built,
    }


def add_and_pop(keras: Any) -> Any:
    layers = keras.layers
    model = keras.Sequential(name="my_sequential")
    model.add(layers.Dense(2, activation="relu", name="layer1"))
    model.add(layers.Dense(3, activation="relu", name="layer2"))
    model.add(layers.Dense(4, name="layer3"))
    counts = [len(model.layers)]
    model.pop()
    counts.append(len(model.layers))
    model.add(layers.Dense(5, name="other"))
    model.build((None, 7))
    fill(model)
    return {**describe(model), "counts": counts, "y": model(data("x", 2, 7))}


def weights_come_with_the_input(keras: Any) -> Any:
    layer = keras.layers.Dense(3)
    before = list(layer.weights)
    y = layer(keras.ops.ones((1, 4)))
    return {
        "before": before,
        "after": [tuple(w.shape) for w in layer.weights],
        "names": [w.name for w in layer.weights],
        "y": tuple(y.shape),
        "bias": layer.bias,
    }


def input_first(keras: Any) -> Any:
    model = keras.Sequential()
    model.add(keras.Input(shape=(4,)))
    model.add(keras.layers.Dense(2, activation="relu"))
    summary = texts(model)
    assert "dense" in summary
    assert "Total" in summary
    return {
        **describe(model),
        "shapes": (model.input_shape, model.output_shape),
        "symbols": [tuple(t.shape) for t in (*model.inputs, *model.outputs)],
    }


def built_later(keras: Any) -> Any:
    model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(4)])
    told = []
    try:
        model.count_params()
    except (ValueError, RuntimeError) as error:
        told.append("count_params" if "build" in str(error) else "?")
    model.build((None, 16))
    return {
        "told": told,
        "shapes": [tuple(w.shape) for w in model.get_weights()],
        "params": model.count_params(),
        "layer_params": [layer.count_params() for layer in model.layers],
    }


def convolutions(keras: Any) -> Any:
    layers = keras.layers
    model = keras.Sequential()
    model.add(keras.Input(shape=(50, 50, 3)))
    model.add(layers.Conv2D(4, 5, strides=2, activation="relu"))
    model.add(layers.Conv2D(4, 3, activation="relu"))
    model.add(layers.MaxPooling2D(3))
    shapes = [model.output_shape]
    model.add(layers.Conv2D(4, 3, activation="relu"))
    model.add(layers.AveragePooling2D(2))
    shapes.append(model.output_shape)
    model.add(layers.GlobalMaxPooling2D())
    model.add(layers.Dense(10))
    fill(model)
    return {
        **describe(model),
        "shapes": shapes,
        "outputs": [tuple(layer.output.shape) for layer in model.layers],
        "y": model(data("x", 2, 50, 50, 3)),
    }


def features(keras: Any) -> Any:
    initial = keras.Sequential(
        [
            keras.Input(shape=(20, 20, 3)),
            keras.layers.Conv2D(3, 5, strides=2, activation="relu"),
            keras.layers.Conv2D(3, 3, activation="relu", name="my_intermediate_layer"),
            keras.layers.Conv2D(3, 3, activation="relu"),
        ]
    )
    fill(initial)
    every = keras.Model(inputs=initial.inputs, outputs=[layer.output for layer in initial.layers])
    one = keras.Model(
        inputs=initial.inputs, outputs=initial.get_layer(name="my_intermediate_layer").output
    )
    x = data("x", 1, 20, 20, 3)
    return {"every": every(x), "one": one(x)}


def frozen_base_and_new_head(keras: Any) -> Any:
    layers = keras.layers
    base = keras.Sequential(
        [keras.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(4)], name="base"
    )
    base.trainable = False
    model = keras.Sequential([base, layers.Dense(3, name="head")])
    fill(model)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = model.get_weights()
    history = model.fit(
        data("x", 30, 6), labels("y", 30, 3), batch_size=10, shuffle=False, epochs=2, verbose=0
    )
    after = model.get_weights()
    return {
        "history": history.history,
        "changed": [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)],
        "after": after,
        **describe(model),
    }


def all_but_the_last(keras: Any) -> Any:
    layers = keras.layers
    model = keras.Sequential([keras.Input(shape=(10,))])
    for _ in range(3):
        model.add(layers.Dense(6, activation="relu"))
    model.add(layers.Dense(2))
    for layer in model.layers[:-1]:
        layer.trainable = False
    return {
        "trainable": [layer.trainable for layer in model.layers],
        "count": len(model.trainable_weights),
        "config": [entry["class_name"] for entry in model.get_config()["layers"]],
    }


def cell_of_a_bigger_model(keras: Any) -> Any:
    block = [
        keras.Sequential(
            [keras.layers.Dense(6, use_bias=False), keras.layers.LayerNormalization()],
            name=f"block_{i}",
        )
        for i in range(2)
    ]
    inputs = keras.Input((5,))
    x = inputs
    for each in block:
        x = keras.layers.Activation("silu")(each(x))
    model = fill(keras.Model(inputs, x, name="stacked"))
    model.compile("rmsprop", "huber")
    loss = model.train_on_batch(data("x", 9, 5), data("y", 9, 6))
    return {**describe(model), "loss": loss, "after": model.get_weights()}


def digits(keras: Any) -> Any:
    """A first script: images, one-hot labels, dropout, fit, evaluate, predict."""
    x = (data("x", 60, 8, 8) * 255).astype("uint8")
    y = keras.utils.to_categorical(labels("y", 60, 10), num_classes=10)
    x = np.expand_dims(x.astype("float32") / 255, -1)
    model = keras.Sequential(
        [
            keras.layers.Input(shape=(8, 8, 1)),
            keras.layers.Conv2D(4, kernel_size=(3, 3), activation="relu"),
            keras.layers.MaxPooling2D(pool_size=(2, 2)),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    fill(model)
    model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
    first = model.evaluate(x, y, verbose=0)
    model.fit(x, y, batch_size=32, epochs=1, validation_split=0.1, verbose=0)
    return {
        **describe(model),
        "first": first,
        "labels": y,
        "predicted": model.predict(x, verbose=0).shape,
    }


SCRIPTS = [
    stack,
    add_and_pop,
    weights_come_with_the_input,
    input_first,
    built_later,
    convolutions,
    features,
    frozen_base_and_new_head,
    all_but_the_last,
    cell_of_a_bigger_model,
    digits,
]
