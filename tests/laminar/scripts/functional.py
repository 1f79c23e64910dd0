"""Models made of symbolic calls: several inputs and outputs, shared layers, nesting, features."""

# mypy: disable-error-code="misc,name-defined"
# (classes derived from those of `keras`, which is any module here)

from __future__ import annotations

from typing import Any

import numpy as np

from .tools import data, describe, fill, labels, texts


def classifier(keras: Any) -> Any:
    layers = keras.layers
    inputs = keras.Input(shape=(16,), name="img")
    dense = layers.Dense(8, activation="relu")
    x = dense(inputs)
    x = layers.Dense(8, activation="relu")(x)
    outputs = layers.Dense(4)(x)
    model = keras.Model(inputs=inputs, outputs=outputs, name="digits_model")
    assert "digits_model" in texts(model)
    fill(model)
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=keras.optimizers.RMSprop(),
        metrics=["accuracy"],
    )
    x_train, y_train = data("x", 100, 16), labels("y", 100, 4)
    history = model.fit(
        x_train,
        y_train,
        batch_size=32,
        epochs=2,
        validation_split=0.2,
        shuffle=False,
        verbose=0,
    )
    scores = model.evaluate(x_train, y_train, verbose=0)
    return {
        **describe(model),
        "inputs": (tuple(inputs.shape), str(inputs.dtype), inputs.name),
        "history": history.history,
        "scores": scores,
        "weights_after": model.get_weights(),
        "shapes": (model.input_shape, model.output_shape),
    }


def encoder_and_autoencoder(keras: Any) -> Any:
    layers = keras.layers
    encoder_input = keras.Input(shape=(12, 12, 1), name="img")
    x = layers.Conv2D(4, 3, activation="relu")(encoder_input)
    x = layers.Conv2D(8, 3, activation="relu")(x)
    x = layers.MaxPooling2D(2)(x)
    x = layers.Conv2D(4, 3, activation="relu")(x)
    encoder_output = layers.GlobalMaxPooling2D()(x)
    encoder = keras.Model(encoder_input, encoder_output, name="encoder")

    x = layers.Reshape((2, 2, 1))(encoder_output)
    x = layers.Conv2DTranspose(4, 3, activation="relu")(x)
    x = layers.UpSampling2D(2)(x)
    x = layers.Conv2DTranspose(4, 3, activation="relu")(x)
    decoder_output = layers.Conv2DTranspose(1, 3, activation="relu")(x)
    autoencoder = keras.Model(encoder_input, decoder_output, name="autoencoder")
    fill(autoencoder)

    autoencoder.compile("adam", "mse")
    images = data("images", 6, 12, 12, 1)
    losses = [autoencoder.train_on_batch(images, images) for _ in range(3)]
    return {
        **describe(autoencoder),
        "encoder": describe(encoder),
        "same_layer": encoder.layers[1] is autoencoder.layers[1],
        "codes": encoder.predict(images, verbose=0),
        "losses": losses,
    }


def models_as_layers(keras: Any) -> Any:
    layers = keras.layers
    encoder_input = keras.Input(shape=(6,), name="original")
    encoder = keras.Model(
        encoder_input, layers.Dense(3, activation="tanh")(encoder_input), name="encoder"
    )
    decoder_input = keras.Input(shape=(3,), name="encoded")
    decoder = keras.Model(decoder_input, layers.Dense(6)(decoder_input), name="decoder")

    original = keras.Input(shape=(6,), name="img")
    autoencoder = keras.Model(original, decoder(encoder(original)), name="autoencoder")
    fill(autoencoder)
    x = data("x", 5, 6)
    return {
        **describe(autoencoder),
        "y": autoencoder(x),
        "step_by_step": decoder(encoder(x)),
        "encoder_shape": autoencoder.get_layer("encoder").output_shape,
        "by_index": autoencoder.get_layer(index=2).name,
    }


def ensemble(keras: Any) -> Any:
    def member() -> Any:
        inputs = keras.Input(shape=(8,))
        return keras.Model(inputs, keras.layers.Dense(1)(inputs))

    members = [member() for _ in range(3)]
    inputs = keras.Input(shape=(8,))
    outputs = keras.layers.average([m(inputs) for m in members])
    model = fill(keras.Model(inputs=inputs, outputs=outputs))
    return {**describe(model), "y": model.predict(data("x", 4, 8), verbose=0)}


def tickets(keras: Any) -> Any:
    """Rank tickets by priority and route them: three inputs, two outputs, by name."""
    layers = keras.layers
    words, tags, departments = 50, 6, 3
    title_input = keras.Input(shape=(None,), name="title")
    body_input = keras.Input(shape=(None,), name="body")
    tags_input = keras.Input(shape=(tags,), name="tags")
    title = layers.GlobalAveragePooling1D()(layers.Embedding(words, 8)(title_input))
    body = layers.GlobalAveragePooling1D()(layers.Embedding(words, 8)(body_input))
    x = layers.concatenate([title, body, tags_input])
    priority = layers.Dense(1, name="priority")(x)
    department = layers.Dense(departments, name="department")(x)
    model = keras.Model(
        inputs=[title_input, body_input, tags_input],
        outputs={"priority": priority, "department": department},
    )
    fill(model)
    model.compile(
        optimizer=keras.optimizers.RMSprop(1e-3),
        loss={
            "priority": keras.losses.BinaryCrossentropy(from_logits=True),
            "department": keras.losses.CategoricalCrossentropy(from_logits=True),
        },
        loss_weights={"priority": 1.0, "department": 0.2},
    )
    count = 48
    inputs = {
        "title": labels("title", count * 5, words).reshape(count, 5),
        "body": labels("body", count * 9, words).reshape(count, 9),
        "tags": labels("tags", count * tags, 2).reshape(count, tags).astype("float32"),
    }
    targets = {
        "priority": labels("p", count, 2).reshape(count, 1).astype("float32"),
        "department": keras.utils.to_categorical(labels("d", count, departments), departments),
    }
    history = model.fit(inputs, targets, epochs=2, batch_size=32, shuffle=False, verbose=0)
    predictions = model.predict(inputs, verbose=0)
    return {
        **describe(model),
        "history": history.history,
        "predictions": predictions,
        "evaluated": model.evaluate(inputs, targets, verbose=0, return_dict=True),
    }


def several_outputs_by_position(keras: Any) -> Any:
    layers = keras.layers
    image = keras.Input(shape=(8, 8, 2), name="img_input")
    series = keras.Input(shape=(10, 3), name="ts_input")
    x1 = layers.GlobalMaxPooling2D()(layers.Conv2D(3, 3)(image))
    x2 = layers.GlobalMaxPooling1D()(layers.Conv1D(3, 3)(series))
    x = layers.concatenate([x1, x2])
    score = layers.Dense(1, name="score_output")(x)
    kind = layers.Dense(5, name="class_output")(x)
    model = fill(keras.Model(inputs=[image, series], outputs=[score, kind]))
    model.compile(
        optimizer=keras.optimizers.SGD(1e-3),
        loss=[
            keras.losses.MeanSquaredError(),
            keras.losses.CategoricalCrossentropy(from_logits=True),
        ],
        metrics=[
            [
                keras.metrics.MeanAbsolutePercentageError(),
                keras.metrics.MeanAbsoluteError(),
            ],
            [keras.metrics.CategoricalAccuracy()],
        ],
        loss_weights=[2.0, 1.0],
    )
    images, series_data = data("i", 20, 8, 8, 2), data("s", 20, 10, 3)
    scores, kinds = data("t", 20, 1), np.eye(5, dtype="float32")[labels("k", 20, 5)]
    first = model.fit(
        [images, series_data], [scores, kinds], batch_size=10, shuffle=False, verbose=0
    )
    second = model.fit(
        {"img_input": images, "ts_input": series_data},
        [scores, kinds],
        batch_size=10,
        shuffle=False,
        verbose=0,
    )
    return {
        **describe(model),
        "first": first.history,
        "second": second.history,
        "list": model.evaluate([images, series_data], [scores, kinds], verbose=0),
        "predicted": model.predict([images, series_data], verbose=0),
    }


def only_one_output_is_trained(keras: Any) -> Any:
    inputs = keras.Input(shape=(4,))
    features = keras.layers.Dense(3, name="features")(inputs)
    outputs = keras.layers.Dense(2, name="head")(features)
    model = fill(keras.Model(inputs, [features, outputs]))
    model.compile("sgd", loss=[None, "mse"])
    x, y = data("x", 8, 4), data("y", 8, 2)
    history = model.fit(x, [data("unused", 8, 3), y], shuffle=False, verbose=0)
    return {"history": history.history, "weights": model.get_weights()}


def residual(keras: Any) -> Any:
    layers = keras.layers
    inputs = keras.Input(shape=(8, 8, 3), name="img")
    x = layers.Conv2D(4, 3, activation="relu")(inputs)
    block_1_output = layers.MaxPooling2D(2)(x)
    x = layers.Conv2D(4, 3, activation="relu", padding="same")(block_1_output)
    x = layers.Conv2D(4, 3, activation="relu", padding="same")(x)
    block_2_output = layers.add([x, block_1_output])
    x = layers.GlobalAveragePooling2D()(block_2_output)
    x = layers.Dropout(0.5)(x)
    outputs = layers.Dense(10)(x)
    model = fill(keras.Model(inputs, outputs, name="toy_resnet"))
    model.compile(
        optimizer=keras.optimizers.RMSprop(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["acc"],
    )
    images, y = data("i", 20, 8, 8, 3), labels("y", 20, 10)
    history = model.fit(images, y, batch_size=8, epochs=1, validation_split=0.2, verbose=0)
    return {
        **describe(model),
        "keys": sorted(history.history),
        "summary": "toy_resnet" in texts(model),
    }


def residual_values(keras: Any) -> Any:
    x = inputs = keras.Input((5,))
    for _ in range(3):
        x = x + keras.layers.Dense(5, activation="gelu")(x)
    model = fill(keras.Model(inputs, keras.layers.LayerNormalization()(x)))
    model.compile("adam", "mae", metrics=["mse"])
    history = model.fit(
        data("x", 40, 5), data("y", 40, 5), batch_size=16, epochs=2, shuffle=False, verbose=0
    )
    return {"history": history.history, "after": model.get_weights(), **describe(model)}


def shared_layer(keras: Any) -> Any:
    shared_embedding = keras.layers.Embedding(20, 4)
    text_a = keras.Input(shape=(None,), dtype="int32")
    text_b = keras.Input(shape=(None,), dtype="int32")
    encoded_a, encoded_b = shared_embedding(text_a), shared_embedding(text_b)
    pooled = [keras.layers.GlobalAveragePooling1D()(e) for e in (encoded_a, encoded_b)]
    model = keras.Model([text_a, text_b], keras.layers.Dot(axes=1, normalize=True)(pooled))
    fill(model)
    a, b = labels("a", 12, 20).reshape(3, 4), labels("b", 18, 20).reshape(3, 6)
    return {
        **describe(model),
        "calls": len(shared_embedding._inbound_nodes)
        if hasattr(shared_embedding, "_inbound_nodes")
        else len(shared_embedding.inbound_nodes),
        "y": model([a, b]),
        "dtypes": [str(t.dtype) for t in (text_a, encoded_a)],
    }


def features_of_every_layer(keras: Any) -> Any:
    base = keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            keras.layers.Conv2D(3, 3, activation="relu", name="conv"),
            keras.layers.Flatten(name="flat"),
            keras.layers.Dense(2, name="head"),
        ]
    )
    fill(base)
    extractor = keras.Model(inputs=base.inputs, outputs=[layer.output for layer in base.layers])
    one = keras.Model(inputs=base.inputs, outputs=base.get_layer(name="conv").output)
    x = data("x", 2, 6, 6, 2)
    return {"all": extractor(x), "one": one(x), "shapes": extractor.output_shape}


def custom_layer_in_a_graph(keras: Any) -> Any:
    class CustomDense(keras.layers.Layer):
        def __init__(self, units: int = 32) -> None:
            super().__init__()
            self.units = units

        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight(
                shape=(input_shape[-1], self.units),
                initializer="random_normal",
                trainable=True,
            )
            self.b = self.add_weight(
                shape=(self.units,), initializer="random_normal", trainable=True
            )

        def call(self, inputs: Any) -> Any:
            return keras.ops.matmul(inputs, self.w) + self.b

        def get_config(self) -> dict[str, Any]:
            return {"units": self.units}

    inputs = keras.Input((4,))
    model = fill(keras.Model(inputs, CustomDense(10)(inputs)))
    config = model.get_config()
    again = keras.Model.from_config(config, custom_objects={"CustomDense": CustomDense})
    again.set_weights(model.get_weights())
    x = data("x", 3, 4)
    return {"shape": again.output_shape, "y": model(x), "again": again(x), **describe(model)}


def functional_inside_subclass(keras: Any) -> Any:
    inputs = keras.Input((5,))
    mlp = keras.Model(inputs, keras.layers.Dense(3, activation="relu")(inputs), name="mlp")

    class Scorer(keras.Model):
        def __init__(self, inner: Any, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.inner = inner
            self.head = keras.layers.Dense(1, name="head")

        def call(self, inputs: Any) -> Any:
            return self.head(self.inner(inputs))

    model = Scorer(mlp, name="scorer")
    y = model(keras.ops.zeros((1, 5)))
    fill(model)
    outer_input = keras.Input((5,), name="outer")
    outer = keras.Model(outer_input, model(outer_input) * 2.0)
    x = data("x", 4, 5)
    return {**describe(model), "y": y.shape, "inside": model(x), "outside": outer(x)}


def ops_on_symbolic_tensors(keras: Any) -> Any:
    ops = keras.ops
    x = keras.Input((4, 6), name="x")
    y = (
        ops.relu(x) - 0.5 * ops.tanh(x[:, :, ::2].sum(axis=-1, keepdims=True))
        if hasattr(x, "sum")
        else ops.relu(x) - 0.5 * ops.tanh(ops.sum(x[:, :, ::2], axis=-1, keepdims=True))
    )
    y = ops.concatenate([y, -y], axis=-1)
    y = ops.einsum("btf,bsf->bts", y, y) / 3.0
    z = ops.softmax(y, axis=-1)
    a, b = ops.split(z, 2, axis=1)
    model = keras.Model(x, [ops.where(a > b, a, b), 1.0 - ops.mean(z, axis=(1, 2))])
    value = data("x", 3, 4, 6)
    return {
        "y": model(value),
        "layers": [type(layer).__name__ for layer in model.layers],
        "shapes": model.output_shape,
        "predicted": model.predict(value, verbose=0),
    }


def nested_structures(keras: Any) -> Any:
    inputs = {"a": keras.Input((2,), name="a"), "b": keras.Input((3,), name="b")}
    first = keras.layers.Dense(2, name="first")(inputs["a"])
    second = keras.layers.Dense(2, name="second")(inputs["b"])
    total = keras.layers.Add(name="total")([first, second])
    model = fill(keras.Model(inputs, {"parts": [first, second], "sum": total}))
    x = {"a": data("a", 3, 2), "b": data("b", 3, 3)}
    return {
        "called": model(x),
        "predicted": model.predict(x, verbose=0),
        "on_batch": model.predict_on_batch(x),
    }


def new_inputs_for_an_old_model(keras: Any) -> Any:
    base = keras.Sequential([keras.Input((None, None, 2)), keras.layers.Conv2D(3, 3, name="conv")])
    fill(base)
    inputs = keras.Input((8, 8, 2))
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(base(inputs)))
    return {
        "shapes": [base.output_shape, model.output_shape],
        "y": model(data("x", 2, 8, 8, 2)),
        "big": base(data("y", 1, 11, 9, 2)),
    }


SCRIPTS = [
    classifier,
    encoder_and_autoencoder,
    models_as_layers,
    ensemble,
    tickets,
    several_outputs_by_position,
    only_one_output_is_trained,
    residual,
    residual_values,
    shared_layer,
    features_of_every_layer,
    custom_layer_in_a_graph,
    functional_inside_subclass,
    ops_on_symbolic_tensors,
    nested_structures,
    new_inputs_for_an_old_model,
]
