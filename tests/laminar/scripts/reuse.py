"""Models used again: freezing, new heads, saving and loading, custom objects, partial weights."""

# mypy: disable-error-code="misc,name-defined"
# (classes derived from those of `keras`, which is any module here)

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .tools import data, describe, fill, labels


def frozen_layers(keras: Any) -> Any:
    layer = keras.layers.Dense(3)
    layer.build((None, 4))
    norm = keras.layers.BatchNormalization()
    norm.build((None, 4))

    def count(x: Any) -> tuple[int, ...]:
        return len(x.weights), len(x.trainable_weights), len(x.non_trainable_weights)

    found = [count(layer), count(norm)]
    layer.trainable = False
    found.append(count(layer))
    inner = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(3, "relu"), keras.layers.Dense(3, "relu")]
    )
    model = keras.Sequential([keras.Input((3,)), inner, keras.layers.Dense(3, "sigmoid")])
    model.trainable = False
    assert not inner.trainable
    assert not inner.layers[0].trainable
    found.append(count(model))
    model.trainable = True
    inner.layers[0].trainable = False
    found.append(count(model))
    return found


def fine_tuning(keras: Any) -> Any:
    """A base in inference mode: its statistics stay, then all of it is trained."""
    layers = keras.layers
    base = keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            layers.Conv2D(4, 3, name="conv"),
            layers.BatchNormalization(name="norm"),
            layers.Activation("relu"),
        ],
        name="base",
    )
    fill(base)
    base.trainable = False
    inputs = keras.Input(shape=(6, 6, 2))
    x = layers.Rescaling(scale=1 / 2.0, offset=-0.5)(inputs)
    x = base(x, training=False)
    x = layers.GlobalAveragePooling2D()(x)
    outputs = layers.Dense(1)(x)
    model = keras.Model(inputs, outputs, name="tuned")
    head = model.layers[-1]
    head.set_weights([np.full((4, 1), 0.1), np.zeros(1)])
    model.compile(
        optimizer=keras.optimizers.SGD(0.1),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy()],
    )
    images, y = data("images", 24, 6, 6, 2), labels("y", 24, 2)
    statistics = base.get_layer("norm").get_weights()
    frozen = model.fit(images, y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
    counts = [len(model.trainable_weights), len(model.non_trainable_weights)]
    for a, b in zip(statistics, base.get_layer("norm").get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    base.trainable = True
    counts += [len(model.trainable_weights), len(model.non_trainable_weights)]
    return {"frozen": frozen, "counts": counts, "head": head.get_weights(), **describe(model)}


def headless(keras: Any) -> Any:
    """The old top goes, the base gets a new one; weights of the base come along."""
    layers = keras.layers
    inputs = keras.Input((4,), name="in")
    x = layers.Dense(5, activation="relu", name="one")(inputs)
    x = layers.Dense(5, activation="relu", name="two")(x)
    old = fill(keras.Model(inputs, layers.Dense(10, name="top")(x), name="old"))
    base = keras.Model(old.input, old.layers[-2].output, name="base")
    new = keras.Model(base.input, layers.Dense(2, name="new_top")(base.output), name="new")
    new.get_layer("new_top").set_weights([np.ones((5, 2)), np.zeros(2)])
    x_data = data("x", 3, 4)
    stacked = keras.Sequential([*old.layers[:-1], layers.Dense(1, name="score")])
    stacked.layers[-1].set_weights([np.ones((5, 1)), np.zeros(1)])
    return {
        **describe(new),
        "shared": new.get_layer("one") is old.get_layer("one"),
        "y": new(x_data),
        "stacked": stacked(x_data),
        "features": base.predict(x_data, verbose=0),
    }


def whole_model(keras: Any) -> Any:
    inputs = keras.Input(shape=(8,))
    outputs = keras.layers.Dense(1)(inputs)
    model = fill(keras.Model(inputs, outputs))
    model.compile(optimizer=keras.optimizers.Adam(), loss="mean_squared_error", metrics=["mae"])
    x, y = data("x", 32, 8), data("y", 32, 1)
    model.fit(x, y, shuffle=False, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "my_model.keras"
        model.save(path)
        again = keras.models.load_model(path)
        same = keras.saving.load_model(str(path), compile=False)
    np.testing.assert_allclose(model.predict(x, verbose=0), again.predict(x, verbose=0))
    more = again.fit(x, y, shuffle=False, verbose=0).history
    return {
        "more": more,
        "compiled": (again.compiled, same.compiled),
        "iterations": int(again.optimizer.iterations),
        "slots": [v.path for v in again.optimizer.variables],
        "learning_rate": float(again.optimizer.learning_rate),
    }


def custom_objects_three_ways(keras: Any) -> Any:
    class CustomLayer(keras.layers.Layer):
        def __init__(self, factor: float, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.factor = factor

        def call(self, x: Any) -> Any:
            return x * self.factor

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "factor": self.factor}

    @keras.saving.register_keras_serializable(package="my_package", name="custom_fn")  # type: ignore[untyped-decorator]  # Any
    def custom_fn(x: Any) -> Any:
        return x**2

    def build() -> Any:
        inputs = keras.Input((4,))
        x = CustomLayer(5.0, name="mul")(inputs)
        outputs = keras.layers.Dense(3, activation=custom_fn, name="fn")(x)
        return fill(keras.Model(inputs, outputs, name="custom"))

    model = build()
    x = data("x", 2, 4)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "custom.keras"
        model.save(path)
        by_argument = keras.models.load_model(path, custom_objects={"CustomLayer": CustomLayer})
        found.append(by_argument(x))
        with keras.saving.custom_object_scope({"CustomLayer": CustomLayer}):
            found.append(keras.models.load_model(path)(x))
        with keras.utils.CustomObjectScope({"CustomLayer": CustomLayer}):
            found.append(keras.models.load_model(path)(x))
        registered = keras.saving.register_keras_serializable(package="my_package")(CustomLayer)
        model.save(path)
        found.append(keras.models.load_model(path)(x))
    return {
        "found": found,
        "name": keras.saving.get_registered_name(registered),
        "object": keras.saving.get_registered_object("my_package>custom_fn") is custom_fn,
    }


def subclassed_model_with_config(keras: Any) -> Any:
    @keras.saving.register_keras_serializable(package="habits")
    class Classifier(keras.Model):
        def __init__(self, hidden: list[int], activation: Any = "relu", **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.hidden = hidden
            self.activation = keras.activations.get(activation)
            self.stack = [keras.layers.Dense(n, activation=self.activation) for n in hidden]
            self.head = keras.layers.Dense(2)

        def call(self, x: Any) -> Any:
            for layer in self.stack:
                x = layer(x)
            return self.head(x)

        def get_config(self) -> dict[str, Any]:
            return {
                **super().get_config(),
                "hidden": self.hidden,
                "activation": keras.activations.serialize(self.activation),
            }

    model = Classifier([4, 3], "tanh", name="net")
    x = data("x", 5, 6)
    model(x)
    fill(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.keras"
        model.save(path)
        again = keras.models.load_model(path)
        weights = Path(folder) / "net.weights.h5"
        model.save_weights(weights)
        other = Classifier([4, 3], "tanh")
        other(x)
        other.load_weights(weights)
    return {"y": model(x), "again": again(x), "other": other(x), "names": again.name}


def weights_alone(keras: Any) -> Any:
    def build(top: int) -> Any:
        return keras.Sequential(
            [
                keras.Input((6,), name="digits"),
                keras.layers.Dense(5, activation="relu", name="dense_1"),
                keras.layers.Dense(4, activation="relu", name="dense_2"),
                keras.layers.Dense(top, name=f"predictions_{top}"),
            ]
        )

    pretrained, same = fill(build(3)), build(3)
    same.set_weights(pretrained.get_weights())
    x = data("x", 3, 6)
    by_layer = build(5)
    for layer in by_layer.layers[:2]:
        layer.set_weights(pretrained.get_layer(layer.name).get_weights())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ckpt.weights.h5"
        pretrained.save_weights(path)
        loaded = build(3)
        loaded.load_weights(path)
        extractor = keras.Model(pretrained.inputs, pretrained.layers[1].output)
        extractor.save_weights(path)
        functional = keras.Sequential([*build(3).layers[:2]])
        functional.build((None, 6))
        extracted = keras.Model(functional.inputs, functional.outputs)
        extracted.load_weights(path)
    return {
        "set": same(x),
        "loaded": loaded(x),
        "features": keras.Model(by_layer.inputs, by_layer.layers[1].output)(x),
        "extracted": extracted(x),
    }


def configs_and_clones(keras: Any) -> Any:
    layer = keras.layers.Dense(3, activation="relu", kernel_regularizer="l2")
    config = layer.get_config()
    again = keras.layers.Dense.from_config(config)
    model = keras.Sequential(
        [keras.Input((5,)), keras.layers.Dense(4, name="a"), keras.layers.Dropout(0.1, name="d")],
        name="seq",
    )
    inputs = keras.Input((5,), name="i")
    functional = keras.Model(inputs, keras.layers.Dense(2, name="out")(model(inputs)), name="fun")
    fill(functional)
    clone = keras.models.clone_model(functional)
    clone.set_weights(functional.get_weights())
    text = functional.to_json()
    from_text = keras.models.model_from_json(text)
    from_text.set_weights(functional.get_weights())
    frozen = keras.models.clone_model(
        functional,
        clone_function=lambda each: (
            each.__class__.from_config({**each.get_config(), "trainable": False})
            if each.name == "out"
            else each.__class__.from_config(each.get_config())
        ),
    )
    x = data("x", 2, 5)
    return {
        "config": config,
        "same": again.get_config() == config,
        "model": [(each["class_name"], each["config"]) for each in model.get_config()["layers"]],
        "clone": clone(x),
        "separate": clone.get_layer("out") is not functional.get_layer("out"),
        "json": [(e["class_name"], e["name"]) for e in json.loads(text)["config"]["layers"]],
        "from_text": from_text(x),
        "frozen": [w.path for w in frozen.trainable_weights],
        "from_config": describe(keras.Model.from_config(functional.get_config())),
    }


def own_variables_in_files(keras: Any) -> Any:
    @keras.saving.register_keras_serializable(package="habits")
    class Lookup(keras.layers.Layer):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.table = np.zeros((0,))

        def save_own_variables(self, store: Any) -> None:
            super().save_own_variables(store)
            store["table"] = self.table

        def load_own_variables(self, store: Any) -> None:
            self.table = np.array(store["table"])

        def call(self, x: Any) -> Any:
            return x * 1.0

    inputs = keras.Input((2,))
    layer = Lookup()
    model = keras.Model(inputs, layer(inputs))
    layer.table = np.arange(4.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lookup.keras"
        model.save(path)
        again = keras.models.load_model(path)
    return {"table": again.layers[-1].table}


SCRIPTS = [
    frozen_layers,
    fine_tuning,
    headless,
    whole_model,
    custom_objects_three_ways,
    subclassed_model_with_config,
    weights_alone,
    configs_and_clones,
    own_variables_in_files,
]
