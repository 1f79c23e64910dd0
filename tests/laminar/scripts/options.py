"""Arguments of all kinds: optimizers, precision, initializers by name, masks, seeds, settings."""

# mypy: disable-error-code="misc,name-defined"
# (classes derived from those of `keras`, which is any module here)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .tools import data, describe, fill, labels, texts

X, Y = data("options x", 40, 5), data("options y", 40, 2)


def dense(keras: Any, **options: Any) -> Any:
    return fill(
        keras.Sequential(
            [
                keras.Input((5,)),
                keras.layers.Dense(6, activation="tanh", **options),
                keras.layers.Dense(2),
            ]
        )
    )


def optimizers(keras: Any) -> Any:
    made = keras.optimizers
    schedules = made.schedules
    found = {}
    for name, optimizer in {
        "clipnorm": made.SGD(0.1, clipnorm=0.1),
        "clipvalue": made.Adam(0.01, clipvalue=0.01),
        "global_clipnorm": made.RMSprop(0.01, global_clipnorm=0.5),
        "decay": made.AdamW(0.01, weight_decay=0.1),
        "accumulation": made.SGD(0.1, gradient_accumulation_steps=2),
        "ema": made.SGD(0.1, use_ema=True, ema_momentum=0.5),
        "overwritten ema": made.Adam(
            0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2
        ),
        "exponential": made.SGD(schedules.ExponentialDecay(0.1, 2, 0.5, staircase=True)),
        "cosine": made.Adam(
            schedules.CosineDecay(0.0, 20, warmup_target=0.1, warmup_steps=3), amsgrad=True
        ),
        "piecewise": made.SGD(schedules.PiecewiseConstantDecay([1, 3], [0.1, 0.01, 0.001])),
        "adagrad": "adagrad",
        "nadam": made.get({"class_name": "Nadam", "config": {"learning_rate": 0.02}}),
    }.items():
        model = dense(keras)
        model.compile(optimizer, "mse")
        history = model.fit(X, Y, batch_size=10, epochs=2, shuffle=False, verbose=0).history
        found[name] = [history, model.get_weights(), int(model.optimizer.iterations)]
    return found


def options_of_layers(keras: Any) -> Any:
    """Initializers, regularizers, constraints and activations by name, as objects, as functions."""
    layers = keras.layers
    found = []
    for options in (
        {"kernel_initializer": "zeros", "bias_initializer": keras.initializers.Constant(0.5)},
        {"kernel_regularizer": "l2", "activity_regularizer": keras.regularizers.L1(0.01)},
        {"kernel_regularizer": keras.regularizers.L1L2(0.1, 0.2), "activation": "gelu"},
        {"kernel_constraint": keras.constraints.MaxNorm(0.5), "activation": keras.ops.sigmoid},
        {"kernel_constraint": "non_neg", "bias_constraint": keras.constraints.UnitNorm(axis=0)},
        {"activation": lambda x: x * 2, "use_bias": False},
        {"kernel_initializer": lambda shape, dtype=None: np.ones(shape, dtype)},
    ):
        inputs = keras.Input((5,))
        layer = layers.Dense(3, **options)
        model = keras.Model(inputs, layer(inputs))
        if "initializer" not in str(list(options)):
            fill(model)
        model.compile("sgd", "mse")
        history = model.fit(X, data("y3", 40, 3), batch_size=20, shuffle=False, verbose=0)
        found.append([history.history, model.get_weights()])
    return found


def names_make_objects(keras: Any) -> Any:
    return [
        (type(found).__name__, found.get_config())
        for found in (
            keras.initializers.get("he_uniform"),
            keras.initializers.get(keras.initializers.RandomNormal(stddev=0.1)),
            keras.regularizers.get("l1"),
            keras.constraints.get("max_norm"),
            keras.losses.get("MeanSquaredError"),
            keras.metrics.get("AUC"),
            keras.optimizers.get("adam"),
        )
    ]


def functions_by_name(keras: Any) -> Any:
    x = np.linspace(-2, 2, 8).astype("float32").reshape(2, 4)
    return {
        name: keras.activations.get(name)(x)
        for name in ("relu", "softmax", "swish", "elu", "hard_sigmoid", "leaky_relu", "linear")
    } | {
        "advanced": [
            layer(x)
            for layer in (
                keras.layers.LeakyReLU(negative_slope=0.1),
                keras.layers.PReLU(alpha_initializer="ones"),
                keras.layers.ReLU(max_value=1.0),
                keras.layers.Activation(keras.activations.mish),
                keras.layers.Softmax(axis=0),
            )
        ]
    }


def low_precision(keras: Any) -> Any:
    """Policies for all layers, for one layer, and the loss scale."""
    found = []
    for policy in ("mixed_bfloat16", "mixed_float16"):
        keras.config.set_dtype_policy(policy)
        try:
            inputs = keras.Input((5,))
            x = keras.layers.Dense(8, activation="relu", name="one")(inputs)
            outputs = keras.layers.Dense(2, dtype="float32", name="two")(x)
            model = fill(keras.Model(inputs, outputs, name=policy))
            model.compile("rmsprop", "mse")
            history = model.fit(X, Y, batch_size=20, epochs=2, shuffle=False, verbose=0).history
            one = model.get_layer("one")
            found.append(
                {
                    **describe(model),
                    "dtypes": [one.dtype, one.compute_dtype, one.variable_dtype, str(x.dtype)],
                    "optimizer": type(model.optimizer).__name__,
                    "losses": bool(history["loss"][1] < history["loss"][0]),
                    "y": str(model.predict(X, verbose=0).dtype),
                }
            )
        finally:
            keras.config.set_dtype_policy("float32")
    layer = keras.layers.Dense(3, dtype="mixed_bfloat16")
    y = layer(X)
    half = keras.layers.Dense(3, dtype="float16")
    return [*found, str(y.dtype), layer.dtype_policy.name, layer.kernel.dtype, str(half(X).dtype)]


def masks(keras: Any) -> Any:
    layers = keras.layers
    padded = keras.utils.pad_sequences(
        [[5, 1, 2], [3], [7, 2, 1, 4, 6, 5]], maxlen=5, padding="post", truncating="post"
    )
    inputs = keras.Input((None,), dtype="int32")
    embedded = layers.Embedding(10, 3, mask_zero=True)(inputs)
    pooled = layers.GlobalAveragePooling1D()(layers.Dropout(0.0)(embedded))
    model = fill(keras.Model(inputs, layers.Dense(1)(pooled)))
    model.compile("sgd", "mse")
    embedding = model.layers[1]
    masking = layers.Masking(mask_value=0.0)
    series = np.where(padded[..., None] > 0, 1.5, 0.0).astype("float32")

    class MeanOverTime(layers.Layer):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.supports_masking = True

        def call(self, x: Any, mask: Any = None) -> Any:
            weight = keras.ops.cast(keras.ops.expand_dims(mask, -1), x.dtype)
            return keras.ops.sum(x * weight, axis=1) / keras.ops.sum(weight, axis=1)

        def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
            return None

    return {
        "padded": padded,
        "y": model.predict(padded, verbose=0),
        "mask": embedding.compute_mask(padded),
        "masking": masking.compute_mask(series),
        "mean": MeanOverTime()(embedding(padded)),
        "loss": model.train_on_batch(padded, np.ones((3, 1))),
        "after": model.get_weights(),
    }


def masked_loss(keras: Any) -> Any:
    """A loss at each step counts the steps that are there alone."""
    inputs = keras.Input((4,), dtype="int32")
    x = keras.layers.Embedding(6, 3, mask_zero=True)(inputs)
    model = fill(keras.Model(inputs, keras.layers.Dense(2)(x)))
    model.compile(
        "sgd",
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        weighted_metrics=["sparse_categorical_crossentropy"],
    )
    words = np.array([[1, 2, 0, 0], [3, 4, 5, 1], [2, 0, 0, 0]])
    tags = labels("tags", 12, 2).reshape(3, 4)
    return {
        "evaluated": model.evaluate(words, tags, verbose=0),
        "weighted": model.evaluate(
            words, tags, sample_weight=np.arange(12.0).reshape(3, 4), verbose=0
        ),
        "loss": model.fit(words, tags, verbose=0).history["loss"],
    }


def wrapped_functions(keras: Any) -> Any:
    layers, ops = keras.layers, keras.ops
    inputs = keras.Input((6,))
    x = layers.Lambda(lambda t: ops.concatenate([t, -t], axis=-1), output_shape=(12,))(inputs)
    x = layers.Lambda(lambda t, power: t**power, arguments={"power": 2})(x)
    y = ops.mean(x, axis=-1, keepdims=True) * 2 + inputs[:, :1]
    a, b = ops.split(x, 2, axis=-1)
    model = keras.Model(inputs, [y, ops.maximum(a, b), ops.matmul(x, ops.transpose(x))])
    value = data("lambda", 3, 6)
    return {"called": model(value), "predicted": model.predict(value, verbose=0, batch_size=3)}


def seeds(keras: Any) -> Any:
    def train() -> Any:
        keras.utils.set_random_seed(812)
        model = keras.Sequential(
            [
                keras.Input((5,)),
                keras.layers.Dense(6, activation="relu"),
                keras.layers.Dropout(0.5),
                keras.layers.Dense(2),
            ]
        )
        model.compile("adam", "mse")
        model.fit(X, Y, epochs=2, verbose=0)
        return [*model.get_weights(), keras.random.normal((3,)), np.random.rand(2)]

    first, second = train(), train()
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    generator = keras.random.SeedGenerator(5)
    draws = [np.asarray(keras.random.uniform((4,), seed=generator)) for _ in range(2)]
    fixed = [np.asarray(keras.random.normal((2, 2), seed=3)) for _ in range(2)]
    np.testing.assert_array_equal(fixed[0], fixed[1])
    return {
        "differ": bool((draws[0] != draws[1]).any()),
        "shapes": [np.shape(a) for a in first],
        "choice": keras.random.randint((5,), 0, 3, seed=1).shape,
    }


def tools_of_models(keras: Any) -> Any:
    inner = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="deep")], name="inside")
    inputs = keras.Input((4,), name="outside")
    hidden = inner(inputs)
    outputs = keras.layers.Dense(2, name="head")(hidden)
    model = fill(keras.Model(inputs, outputs, name="whole"))
    inner.trainable = False
    text = texts(model, expand_nested=True, show_trainable=True, line_length=100)
    other = keras.models.clone_model(model)
    other.set_weights(model.get_weights())
    told = []
    mistakes: list[Callable[[], Any]] = [
        lambda: model.get_layer("nowhere"),
        lambda: model.get_layer(index=9),
        lambda: model.set_weights([np.zeros(3)]),
        lambda: model.get_layer("head").set_weights([np.zeros((1, 1)), np.zeros(2)]),
    ]
    for wrong in mistakes:
        try:
            wrong()
        except (ValueError, KeyError):
            told.append("refused")
    return {
        "named": [word in text for word in ("whole", "inside", "deep", "head", "Trainable")],
        "params": [word in text for word in ("15", "8")],
        "same": bool((np.asarray(model(X[:, :4])) == np.asarray(other(X[:, :4]))).all()),
        "told": told,
        "indices": [model.get_layer(index=i).name for i in range(3)],
        "counts": [model.count_params(), inner.count_params()],
        "trainable": [layer.trainable for layer in model.layers],
    }


def helpers(keras: Any) -> Any:
    to_categorical = keras.utils.to_categorical
    return {
        "one_hot": to_categorical([0, 2, 1], num_classes=4),
        "guessed": to_categorical(np.array([[1], [3]])),
        "normalized": keras.utils.normalize(np.array([[3.0, 4.0], [0.0, 5.0]])),
        "floatx": keras.config.floatx(),
        "epsilon": keras.config.epsilon(),
        "format": keras.config.image_data_format(),
        "backend": keras.backend.image_data_format(),
        "policy": keras.mixed_precision.dtype_policy().name,
        "variable": keras.Variable(np.ones(3, "float32")).assign_add([1.0, 2.0, 3.0]),
        "tree": keras.tree.map_structure(lambda x: x + 1, {"a": [1, 2], "b": 3}),
        "flat": keras.tree.flatten({"b": 3, "a": [1, 2]}),
        "shape": keras.ops.shape(np.zeros((2, 3))),
        "array": keras.ops.convert_to_numpy(keras.ops.ones((2,))),
    }


SCRIPTS = [
    optimizers,
    options_of_layers,
    names_make_objects,
    functions_by_name,
    low_precision,
    masks,
    masked_loss,
    wrapped_functions,
    seeds,
    tools_of_models,
    helpers,
]
