"""Small things that scripts rely on: shapes of data, structures, names, attributes, tools alone."""

# mypy: disable-error-code="misc,name-defined"
# (classes derived from those of `keras`, which is any module here)

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from .tools import data, fill, labels, texts

X, Y = data("corners x", 24, 4), data("corners y", 24, 1)


def linear(keras: Any, **options: Any) -> Any:
    model = fill(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]))
    model.compile(**({"optimizer": "sgd", "loss": "mse"} | options))
    return model


def functions_of_a_batch(keras: Any) -> Any:
    """Losses and metrics that give one number for a batch."""

    def bias(y_true: Any, y_pred: Any) -> Any:
        return keras.ops.mean(y_pred - y_true)

    loss = linear(keras, loss=lambda y, p: keras.ops.mean(keras.ops.abs(y - p)))
    metric = linear(keras, metrics=[bias])
    options = {"batch_size": 10, "shuffle": False, "verbose": 0}
    return [m.fit(X, Y, **options).history for m in (loss, metric)]


def forms_of_data(keras: Any) -> Any:
    """Flat labels, lists of one array, integers, tensors, double precision."""
    model = linear(keras, metrics=["mae"])
    late = keras.Sequential([keras.layers.Dense(2)])
    late(np.arange(8).reshape(2, 4))
    fill(late)
    return {
        "flat": model.evaluate(X, Y[:, 0], verbose=0),
        "lists": model.evaluate([X], [Y], verbose=0),
        "tensors": model.evaluate(
            keras.ops.convert_to_tensor(X), keras.ops.convert_to_tensor(Y), verbose=0
        ),
        "double": model.evaluate(X.astype("float64"), Y.astype("float64"), verbose=0),
        "whole": model.predict(np.arange(8).reshape(2, 4), verbose=0),
        "late": late.predict(np.arange(8).reshape(2, 4), verbose=0),
        "steps": model.predict(X, steps=2, batch_size=5, verbose=0),
        "best": np.argmax(late.predict(X, verbose=0), axis=-1),
    }


def boolean_inputs(keras: Any) -> Any:
    inputs = keras.Input((3,), dtype="bool")
    model = keras.Model(inputs, keras.ops.cast(inputs, "float32") * 2)
    return model.predict(np.array([[True, False, True]]), verbose=0)


def more_data_than_inputs(keras: Any) -> Any:
    a, b = keras.Input((2,), name="a"), keras.Input((2,), name="b")
    model = fill(keras.Model({"a": a, "b": b}, keras.layers.Dense(1)(a) + b))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the entry that the model does not have
        return model.predict({"a": X[:, :2], "b": X[:, 2:], "unused": X}, verbose=0)


def dicts_from_a_class(keras: Any) -> Any:
    class Pair(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first = keras.layers.Dense(1, name="one")
            self.second = keras.layers.Dense(1, name="two")

        def call(self, x: Any) -> Any:
            return {"p": self.first(x), "q": self.second(x)}

    model = Pair()
    model(X)
    fill(model)
    model.compile(
        "sgd",
        {"p": "mse", "q": "mae"},
        loss_weights={"p": 1.0, "q": 0.5},
        metrics={"p": ["mae"]},
    )
    return {
        "logs": model.evaluate(X, {"p": Y, "q": Y}, return_dict=True, verbose=0),
        "predicted": model.predict(X[:2], verbose=0),
    }


def weights_for_each_output(keras: Any) -> Any:
    inputs = keras.Input((4,))
    heads = [keras.layers.Dense(1, name=name)(inputs) for name in ("a", "b")]
    model = fill(keras.Model(inputs, heads))
    model.compile("sgd", "mse")
    weights = [np.ones(24), np.arange(24) / 24]
    return [
        model.evaluate(X, [Y, Y], sample_weight=weights, return_dict=True, verbose=0),
        model.evaluate(X, {"a": Y, "b": Y}, return_dict=True, verbose=0),
    ]


def crossentropy_by_name(keras: Any) -> Any:
    model = fill(keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "softmax")]))
    model.compile("sgd", "crossentropy", metrics=["acc"])
    return model.evaluate(X, labels("three", 24, 3), verbose=0)


def penalties(keras: Any) -> Any:
    dense = keras.layers.Dense(
        1, kernel_regularizer="l2", activity_regularizer=keras.regularizers.L2(0.1)
    )
    model = fill(keras.Sequential([keras.Input((4,)), dense]))
    model.compile("sgd", "mse")
    regularizer = keras.regularizers.OrthogonalRegularizer(0.1)
    return [
        model.evaluate(X, Y, batch_size=10, verbose=0),
        regularizer(keras.ops.convert_to_tensor(X[:4])),
        keras.regularizers.L2(0.3)(X),
    ]


def only_added_losses(keras: Any) -> Any:
    class Small(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            y = self.dense(x)
            self.add_loss(keras.ops.mean(y**2))
            return y

    model = Small()
    model(X)
    fill(model)
    model.compile("sgd")
    return model.fit(X, epochs=2, verbose=0, shuffle=False).history


def what_fit_returns(keras: Any) -> Any:
    model = linear(keras)
    history = model.fit(X, Y, verbose=0, epochs=2)
    return [history is model.history, history.model is model, history.epoch, sorted(history.params)]


def attributes_of_a_model(keras: Any) -> Any:
    model = linear(keras, metrics=["mae"])
    dense = model.layers[0]
    return {
        "told": [model.loss, model.optimizer.name, model.compiled, model.run_eagerly],
        "flags": [model.stop_training, model.built, model.trainable],
        "kinds": [model.dtype, str(model.inputs[0].dtype), dense.dtype_policy.name],
        "shapes": [tuple(dense.output.shape), tuple(dense.input.shape)],
        "weights": [(w.name, w.path) for w in model.weights],
    }


def state_of_an_optimizer(keras: Any) -> Any:
    model = linear(keras, optimizer="adam")
    model.fit(X, Y, verbose=0)
    variables = model.optimizer.variables
    tree = model.get_state_tree("numpy_array")
    return {
        "variables": [(v.path, tuple(v.shape)) for v in variables],
        "groups": {key: sorted(value) for key, value in tree.items()},
    }


def compiled_again(keras: Any) -> Any:
    model = linear(keras)
    options = {"verbose": 0, "shuffle": False}
    first = model.fit(X, Y, **options).history
    model.compile("adam", "mae", metrics=["mse"])
    second = model.fit(X, Y, **options).history
    model.compile(run_eagerly=True, loss="mse", metrics=["mae"])
    return [first, second, model.fit(X, Y, **options).history]


def the_learning_rate(keras: Any) -> Any:
    model = linear(keras)
    model.optimizer.learning_rate = 0.5
    seen = [float(np.asarray(model.optimizer.learning_rate))]
    model.optimizer.learning_rate.assign(0.25)
    model.fit(X, Y, verbose=0, shuffle=False)
    seen.append(float(np.asarray(model.optimizer.learning_rate)))
    return [seen, model.get_weights()]


def normalization(keras: Any) -> Any:
    norm = keras.layers.BatchNormalization()
    model = fill(keras.Sequential([keras.Input((4,)), norm, keras.layers.Dense(1)]))
    model.compile("sgd", "mse")
    history = model.fit(X, Y, batch_size=8, verbose=0, shuffle=False).history
    moving = model.get_weights()
    norm.trainable = False
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0, shuffle=False)
    return [history, moving, model.get_weights(), model(X[:3], training=True)]


def three_parts_of_a_batch(keras: Any) -> Any:
    def batches() -> Iterator[Any]:
        for _ in range(4):
            yield X[:8], Y[:8], np.full(8, 0.5)

    model = linear(keras, metrics=["mae"], weighted_metrics=["mse"])
    return model.fit(batches(), verbose=0).history


def slices_and_constants(keras: Any) -> Any:
    inputs = keras.Input((4, 4))
    sliced = keras.Model(inputs, inputs[:, ::2, 1:3, None])
    other = keras.Input((3,))
    shifted = keras.Model(other, other + np.ones(3, "float32") * [1.0, 2.0, 3.0])
    return [
        sliced(np.arange(32.0, dtype="float32").reshape(2, 4, 4)),
        shifted(np.zeros((1, 3), "float32")).shape,
    ]


def attributes_made_late(keras: Any) -> Any:
    class Late(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.late: Any = None
            self.early = keras.layers.Dense(2, name="early")

        def build(self, shape: Any) -> None:
            self.late = keras.layers.Dense(3, name="late")

        def call(self, x: Any) -> Any:
            return self.late(self.early(x))

    model = Late()
    model(X)
    text = texts(model)
    return [[w.path for w in model.weights], "early" in text, "late" in text]


def builds(keras: Any) -> Any:
    """The ways in which a `build` ends."""

    class Calls(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.w = self.add_weight(name="w", shape=(shape[-1], 2), initializer="ones")
            super().build(shape)

        def call(self, x: Any) -> Any:
            return x @ self.w

    class Sets(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.w = self.add_weight(name="w", shape=(shape[-1], 2), initializer="ones")
            self.built = True

        def call(self, x: Any) -> Any:
            return keras.ops.dot(x, self.w)

        def compute_output_shape(self, shape: Any) -> Any:
            return (*shape[:-1], 2)

    inputs = keras.Input((4,))
    calls, sets = Calls(name="calls"), Sets(name="sets")
    model = keras.Model(inputs, sets(inputs))
    return [
        calls(X),
        calls.built,
        [w.path for w in calls.weights],
        model(X),
        model.output_shape,
        sets.compute_output_shape((None, 4)),
    ]


def outputs_of_a_layer(keras: Any) -> Any:
    class Several(keras.layers.Layer):
        def call(self, x: Any, extra: Any = None) -> Any:
            return x + 1 if extra is None else x + extra, {"a": x * 2, "b": [x * 3]}

    inputs = keras.Input((4,))
    first, rest = Several()(inputs, extra=inputs)
    model = keras.Model(inputs, [first, rest["a"], rest["b"][0]])
    return [model(X[:2]), Several()(X[:1])[1]["b"][0]]


def loops(keras: Any) -> Any:
    ops = keras.ops
    x = ops.convert_to_tensor(X[:3])
    return [
        ops.scan(lambda total, row: (total + row, total * row), ops.zeros((4,)), x),
        ops.vectorized_map(lambda row: ops.sum(row * row), x),
        ops.cond(ops.sum(x) > 0, lambda: x * 2.0, lambda: x * 3.0),
    ]


def variables(keras: Any) -> Any:
    v = keras.Variable([1.0, 2.0], name="v")
    v.assign(v * 2)
    v.assign_sub([0.5, 0.5])
    model = linear(keras)
    dense = model.layers[0]
    dense.kernel.assign(np.ones((4, 1)))
    dense.bias.assign([1.0])
    return [v + 1, 2 * v, tuple(v.shape), v.trainable, v.name, model.predict(X[:3], verbose=0)]


def modules(keras: Any) -> Any:
    names = """layers models optimizers losses metrics callbacks utils backend ops random tree
    initializers regularizers constraints activations saving config dtype_policies datasets
    mixed_precision optimizers.schedules ops.image ops.linalg"""
    found = [importlib.import_module(f"{keras.__name__}.{name}") for name in names.split()]
    return [module.__name__.rpartition(".")[2] for module in found]


def tools_by_themselves(keras: Any) -> Any:
    accuracy = keras.metrics.Accuracy()
    accuracy.update_state([[1], [2]], [[0], [2]])
    half = accuracy.result()
    accuracy.reset_state()
    accuracy.update_state([1, 2, 3], [1, 2, 4], sample_weight=[1, 1, 2])
    auc = keras.metrics.AUC(num_thresholds=3)
    auc.update_state([0, 0, 1, 1], [0, 0.5, 0.3, 0.9])
    mean = keras.metrics.Mean()
    mean(3.0)
    mean(5.0)
    schedule = keras.optimizers.schedules.CosineDecayRestarts(0.1, 5)
    return {
        "metrics": [half, accuracy.result(), auc.result(), mean.result()],
        "losses": [
            keras.losses.BinaryCrossentropy(from_logits=True, reduction="none")(
                np.array([[0.0], [1.0]]), np.array([[0.5], [2.0]])
            ),
            keras.losses.CosineSimilarity(axis=1)(X, X[::-1]),
            keras.losses.Huber(delta=0.5)(Y, Y * 0),
            keras.losses.categorical_crossentropy(
                np.eye(3, dtype="float32"), np.full((3, 3), 1 / 3, dtype="float32")
            ),
        ],
        "schedule": [float(schedule(i)) for i in range(0, 20, 3)],
    }


def names(keras: Any) -> Any:
    layers = keras.layers
    inputs = keras.Input((2,))
    made = [
        layers.Dense(1),
        layers.Dense(1),
        layers.Conv2D(1, 1),
        layers.ReLU(),
        layers.LeakyReLU(),
        layers.GlobalAveragePooling2D(),
        keras.Sequential(),
        keras.Model(inputs, inputs * 2),
        layers.BatchNormalization(),
        keras.metrics.Mean(),
        keras.metrics.AUC(),
        keras.optimizers.Adam(),
        keras.losses.MeanSquaredError(),
        layers.InputLayer(shape=(2,)),
    ]
    return [each.name for each in made]


def models_in_models(keras: Any) -> Any:
    part = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="d")], name="part")
    inputs = keras.Input((4,))
    model = fill(keras.Model(inputs, [part(inputs), part(inputs * 2)]))
    config = json.loads(model.to_json())
    return [
        model(X[:2]),
        [tuple(t.shape) for t in model.outputs],
        model.count_params(),
        config["class_name"],
    ]


def other_sizes(keras: Any) -> Any:
    """A stack without an Input takes images of any size."""
    model = keras.Sequential([keras.layers.Conv2D(2, 3), keras.layers.GlobalAveragePooling2D()])
    model(np.zeros((1, 8, 8, 3)))
    fill(model)
    return [model(data("big", 1, 10, 12, 3)), model.predict(data("small", 2, 5, 5, 3), verbose=0)]


SCRIPTS = [
    functions_of_a_batch,
    forms_of_data,
    boolean_inputs,
    more_data_than_inputs,
    dicts_from_a_class,
    weights_for_each_output,
    crossentropy_by_name,
    penalties,
    only_added_losses,
    what_fit_returns,
    attributes_of_a_model,
    state_of_an_optimizer,
    compiled_again,
    the_learning_rate,
    normalization,
    three_parts_of_a_batch,
    slices_and_constants,
    attributes_made_late,
    builds,
    outputs_of_a_layer,
    loops,
    variables,
    modules,
    tools_by_themselves,
    names,
    models_in_models,
    other_sizes,
]
