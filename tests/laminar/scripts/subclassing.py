"""Layers and models of one's own: weights, deferred build, added losses and metrics, training."""

# mypy: disable-error-code="misc,name-defined"
# (classes derived from those of `keras`, which is any module here)

from __future__ import annotations

from typing import Any

import numpy as np

from .tools import data, describe, fill, labels


def weights_at_once(keras: Any) -> Any:
    class Linear(keras.layers.Layer):
        def __init__(self, units: int = 4, input_dim: int = 3) -> None:
            super().__init__()
            self.w = self.add_weight(
                shape=(input_dim, units), initializer="random_normal", trainable=True, name="w"
            )
            self.b = self.add_weight(shape=(units,), initializer="zeros", trainable=True, name="b")

        def call(self, inputs: Any) -> Any:
            return keras.ops.matmul(inputs, self.w) + self.b

    layer = Linear(4, 2)
    y = layer(keras.ops.ones((2, 2)))
    fill(layer)
    return {
        "y": tuple(y.shape),
        "own": [layer.weights[0] is layer.w, layer.weights[1] is layer.b],
        "values": layer(data("x", 3, 2)),
        "paths": [w.path for w in layer.weights],
        "name": layer.name,
        "trainable": len(layer.trainable_weights),
    }


def state_that_is_not_trained(keras: Any) -> Any:
    class ComputeSum(keras.layers.Layer):
        def __init__(self, input_dim: int) -> None:
            super().__init__()
            self.total = self.add_weight(initializer="zeros", shape=(input_dim,), trainable=False)

        def call(self, inputs: Any) -> Any:
            self.total.assign_add(keras.ops.sum(inputs, axis=0))
            return self.total

    layer = ComputeSum(2)
    x = keras.ops.ones((2, 2))
    values = [np.asarray(layer(x)).tolist() for _ in range(3)]
    return {
        "values": values,
        "weights": len(layer.weights),
        "non_trainable": len(layer.non_trainable_weights),
        "trainable": layer.trainable_weights,
    }


def deferred_build(keras: Any) -> Any:
    class Linear(keras.layers.Layer):
        def __init__(self, units: int = 32, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.units = units

        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight(
                shape=(input_shape[-1], self.units), initializer="he_normal", trainable=True
            )
            self.b = self.add_weight(
                shape=(self.units,), initializer="ones", trainable=True, name="offset"
            )

        def call(self, inputs: Any) -> Any:
            return keras.ops.matmul(inputs, self.w) + self.b

        def get_config(self) -> dict[str, Any]:
            config: dict[str, Any] = super().get_config()
            config.update({"units": self.units})
            return config

    class Block(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.linear_1 = Linear(6)
            self.linear_2 = Linear(6)
            self.linear_3 = Linear(1)

        def call(self, inputs: Any) -> Any:
            x = keras.activations.relu(self.linear_1(inputs))
            x = keras.activations.relu(self.linear_2(x))
            return self.linear_3(x)

    block = Block()
    y = block(keras.ops.ones(shape=(3, 5)))
    fill(block)
    config = Linear(64, name="wide").get_config()
    again = Linear.from_config(config)
    return {
        "y": tuple(y.shape),
        "weights": [(w.path, tuple(w.shape)) for w in block.weights],
        "trainable": len(block.trainable_weights),
        "values": block(data("x", 2, 5)),
        "config": config,
        "again": (again.units, again.name),
        "built": (block.built, block.linear_1.built, again.built),
    }


def added_losses(keras: Any) -> Any:
    class ActivityPenalty(keras.layers.Layer):
        def __init__(self, rate: float = 1e-2) -> None:
            super().__init__()
            self.rate = rate

        def call(self, inputs: Any) -> Any:
            self.add_loss(self.rate * keras.ops.mean(inputs))
            return inputs

    class Outer(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.penalty = ActivityPenalty(1e-1)

        def call(self, inputs: Any) -> Any:
            return self.penalty(inputs)

    class WithRegularizer(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(4, kernel_regularizer=keras.regularizers.l2(1e-3))

        def call(self, inputs: Any) -> Any:
            return self.dense(inputs)

    outer = Outer()
    counts = [len(outer.losses)]
    outer(keras.ops.zeros((1, 1)))
    counts.append(len(outer.losses))
    outer(keras.ops.zeros((1, 1)))
    counts.append(len(outer.losses))
    regular = WithRegularizer()
    regular(keras.ops.zeros((1, 3)))
    fill(regular)

    x = data("x", 8, 3)
    evaluated = []
    for loss in ("mse", None):
        inputs = keras.Input(shape=(3,))
        model = keras.Model(inputs, ActivityPenalty()(inputs))
        model.compile(optimizer="adam", loss=loss)
        evaluated.append(model.evaluate(x, 2 * x, verbose=0))
    return {
        "counts": counts,
        "regularized": regular.losses,
        "evaluated": evaluated,
    }


def endpoint_layer(keras: Any) -> Any:
    class LogisticEndpoint(keras.layers.Layer):
        def __init__(self, name: str | None = None) -> None:
            super().__init__(name=name)
            self.loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)

        def call(self, targets: Any, logits: Any, sample_weights: Any = None) -> Any:
            self.add_loss(self.loss_fn(targets, logits, sample_weights))
            return keras.ops.softmax(logits)

    inputs = keras.Input(shape=(3,), name="inputs")
    targets = keras.Input(shape=(10,), name="targets")
    logits = keras.layers.Dense(10)(inputs)
    predictions = LogisticEndpoint(name="predictions")(targets, logits)
    model = fill(keras.Model(inputs=[inputs, targets], outputs=predictions))
    model.compile(optimizer="adam")
    batch = {
        "inputs": data("x", 12, 3),
        "targets": labels("t", 120, 2).reshape(12, 10).astype("float32"),
    }
    history = model.fit(batch, epochs=2, shuffle=False, batch_size=6, verbose=0)
    return {
        "history": history.history,
        "predicted": model.predict(batch, verbose=0),
    }


def training_argument(keras: Any) -> Any:
    class Switch(keras.layers.Layer):
        def call(self, inputs: Any, training: Any = None) -> Any:
            return inputs * 10.0 if training else inputs

    class Nested(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.switch = Switch()

        def call(self, inputs: Any) -> Any:
            return self.switch(inputs)

    inputs = keras.Input((1,))
    model = keras.Model(inputs, Nested()(inputs))
    fixed = keras.Model(inputs, Switch()(inputs, training=True))
    x = np.ones((2, 1), "float32")
    model.compile("sgd", "mse")
    return {
        "default": model(x),
        "training": model(x, training=True),
        "inference": model(x, training=False),
        "fixed": fixed(x),
        "layer": [Nested()(x, training=True), Nested()(x)],
        "predict": model.predict(x, verbose=0),
        "evaluate": model.evaluate(x, x, verbose=0),
        "train": model.train_on_batch(x, x),
    }


def model_class(keras: Any) -> Any:
    layers = keras.layers

    class Block(layers.Layer):
        def __init__(self, filters: int, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.conv = layers.Conv2D(filters, 3, padding="same", use_bias=False)
            self.norm = layers.BatchNormalization()

        def call(self, x: Any, training: bool = False) -> Any:
            return keras.ops.relu(self.norm(self.conv(x), training=training) + x)

    class Net(keras.Model):
        def __init__(self, num_classes: int = 3, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.stem = layers.Conv2D(4, 3)
            self.blocks = [Block(4, name=f"block_{i}") for i in range(2)]
            self.pool = layers.GlobalAveragePooling2D()
            self.classifier = layers.Dense(num_classes)

        def call(self, inputs: Any, training: bool = False) -> Any:
            x = self.stem(inputs)
            for block in self.blocks:
                x = block(x, training=training)
            return self.classifier(self.pool(x))

    model = Net(name="net")
    model(keras.ops.zeros((1, 8, 8, 2)))
    fill(model)
    described = describe(model)
    model.compile(
        keras.optimizers.SGD(0.05, momentum=0.9),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    x, y = data("x", 24, 8, 8, 2), labels("y", 24, 3)
    history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return {
        **described,
        "history": history.history,
        "after": model.get_weights(),
        "predicted": model.predict(x, verbose=0),
    }


def lazily_built_model(keras: Any) -> Any:
    class Regressor(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.stack = keras.Sequential([keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)])
            self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

        def call(self, x: Any) -> Any:
            return self.stack(x) * self.scale

    model = Regressor()
    model.compile("sgd", "mse")
    model.fit(data("x", 6, 3), data("y", 6, 1), epochs=1, verbose=0)
    fill(model)
    return {**describe(model), "y": model(data("x", 2, 3))}


def several_tensors_in_call(keras: Any) -> Any:
    class Gate(keras.layers.Layer):
        def __init__(self, units: int) -> None:
            super().__init__()
            self.units = units

        def build(self, x_shape: Any, context_shape: Any = None) -> None:
            self.w = self.add_weight(shape=(x_shape[-1], self.units), name="w")
            self.u = self.add_weight(shape=(context_shape[-1], self.units), name="u")

        def call(self, x: Any, context: Any = None) -> Any:
            return keras.ops.sigmoid(x @ self.w + context @ self.u)

    layer = Gate(3)
    layer(keras.ops.ones((1, 2)), context=keras.ops.ones((1, 4)))
    fill(layer)
    a, b = keras.Input((2,)), keras.Input((4,))
    model = keras.Model([a, b], layer(a, context=b))
    x, c = data("x", 3, 2), data("c", 3, 4)
    return {
        "paths": [w.path for w in layer.weights],
        "y": layer(x, context=c),
        "model": model([x, c]),
    }


def containers_of_layers(keras: Any) -> Any:
    class Experts(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.experts = {
                "small": keras.layers.Dense(2, name="small"),
                "wide": keras.Sequential([keras.layers.Dense(5), keras.layers.Dense(2)]),
            }
            self.pairs = [(keras.layers.Dense(2), keras.layers.Dense(2)) for _ in range(2)]

        def call(self, x: Any) -> Any:
            y = self.experts["small"](x) + self.experts["wide"](x)
            for a, b in self.pairs:
                y = y + a(x) * b(x)
            return y

    model = Experts()
    model(keras.ops.zeros((1, 3)))
    fill(model)
    return {**describe(model), "y": model(data("x", 4, 3))}


def random_layer(keras: Any) -> Any:
    class Noise(keras.layers.Layer):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.seed_generator = keras.random.SeedGenerator(7)

        def call(self, x: Any) -> Any:
            return x + keras.random.normal(keras.ops.shape(x), seed=self.seed_generator)

    layer = Noise()
    x = np.zeros((2, 3), "float32")
    a, b = np.asarray(layer(x)), np.asarray(layer(x))
    again = np.asarray(Noise()(x))
    return {
        "differ": bool((a != b).all()),
        "again": np.array_equal(a, again),
        "weights": len(layer.weights),
        "variables": len(layer.variables),
        "shape": a.shape,
    }


def variational_autoencoder(keras: Any) -> Any:
    ops, layers = keras.ops, keras.layers

    class Sampling(layers.Layer):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.seed_generator = keras.random.SeedGenerator(1337)

        def call(self, inputs: Any) -> Any:
            mean, log_var = inputs
            shape = ops.shape(mean)
            noise = keras.random.normal(shape=shape, seed=self.seed_generator)
            return mean + 0.0 * noise * ops.exp(0.5 * log_var)

    class Encoder(layers.Layer):
        def __init__(self, latent: int = 2, hidden: int = 6, name: str = "encoder") -> None:
            super().__init__(name=name)
            self.proj = layers.Dense(hidden, activation="relu")
            self.mean = layers.Dense(latent)
            self.log_var = layers.Dense(latent)
            self.sampling = Sampling()

        def call(self, inputs: Any) -> Any:
            x = self.proj(inputs)
            mean, log_var = self.mean(x), self.log_var(x)
            return mean, log_var, self.sampling((mean, log_var))

    class Decoder(layers.Layer):
        def __init__(self, size: int, hidden: int = 6, name: str = "decoder") -> None:
            super().__init__(name=name)
            self.proj = layers.Dense(hidden, activation="relu")
            self.out = layers.Dense(size, activation="sigmoid")

        def call(self, inputs: Any) -> Any:
            return self.out(self.proj(inputs))

    class Autoencoder(keras.Model):
        def __init__(self, size: int, name: str = "autoencoder") -> None:
            super().__init__(name=name)
            self.encoder = Encoder()
            self.decoder = Decoder(size)

        def call(self, inputs: Any) -> Any:
            mean, log_var, z = self.encoder(inputs)
            reconstructed = self.decoder(z)
            kl = -0.5 * ops.mean(log_var - ops.square(mean) - ops.exp(log_var) + 1)
            self.add_loss(kl)
            return reconstructed

    model = Autoencoder(5)
    x = np.abs(data("x", 32, 5))
    model(x[:1])
    fill(model)
    model.compile(keras.optimizers.Adam(1e-2), loss=keras.losses.MeanSquaredError())
    history = model.fit(x, x, epochs=3, batch_size=16, shuffle=False, verbose=0)
    return {
        "history": history.history,
        "weights": [(w.path, tuple(w.shape)) for w in model.weights],
        "predicted": model.predict(x, verbose=0),
    }


SCRIPTS = [
    weights_at_once,
    state_that_is_not_trained,
    deferred_build,
    added_losses,
    endpoint_layer,
    training_argument,
    model_class,
    lazily_built_model,
    several_tensors_in_call,
    containers_of_layers,
    random_layer,
    variational_autoencoder,
]
