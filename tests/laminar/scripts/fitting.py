"""compile, fit and evaluate with every argument, on models with one output and with several."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .tools import data, fill

X = data("fitting x", 40, 5)
Y = data("fitting y", 40, 2)
Z = (data("fitting z", 40, 1) > 0).astype("float32")
WEIGHT = np.abs(data("fitting w", 40))


def one(keras: Any, **options: Any) -> Any:
    model = fill(keras.Sequential([keras.Input((5,)), keras.layers.Dense(2, name="p")]))
    model.compile(**({"optimizer": "sgd", "loss": "mse"} | options))
    return model


def two(keras: Any, as_dict: bool = False) -> Any:
    inputs = keras.Input((5,))
    hidden = keras.layers.Dense(4, "tanh", kernel_regularizer="l2", name="hidden")(inputs)
    a = keras.layers.Dense(2, name="a")(hidden)
    b = keras.layers.Dense(1, "sigmoid", name="b")(hidden)
    return fill(keras.Model(inputs, {"a": a, "b": b} if as_dict else [a, b]))


def run(model: Any, x: Any, y: Any, **options: Any) -> Any:
    given = {"batch_size": 16, "epochs": 2, "shuffle": False, "verbose": 0} | options
    history = model.fit(x, y, **given).history
    return [{name: history[name] for name in sorted(history)}, model.get_weights()]


def lists_and_dicts(keras: Any) -> Any:
    """Losses, weights and metrics of two outputs, in every form."""
    found = {}
    forms: dict[str, dict[str, Any]] = {
        "one loss": {"loss": "mse"},
        "lists": {"loss": ["mse", "binary_crossentropy"], "metrics": [["mae"], ["accuracy"]]},
        "dicts": {
            "loss": {"a": "mse", "b": "binary_crossentropy"},
            "loss_weights": {"a": 0.5, "b": 2.0},
            "metrics": {"b": ["accuracy", "mae"]},
        },
        "weights as a list": {"loss": ["mse", "mae"], "loss_weights": [0.25, 3.0]},
        "none": {"loss": [None, "binary_crossentropy"], "metrics": [["mse"], None]},
        "weighted": {
            "loss": ["mse", "mse"],
            "metrics": [["mae"], ["mae"]],
            "weighted_metrics": [["mae"], ["mae", "accuracy"]],
        },
        "objects": {
            "loss": [keras.losses.Huber(0.5), keras.losses.BinaryCrossentropy(label_smoothing=0.1)],
            "metrics": [
                [keras.metrics.RootMeanSquaredError(name="r")],
                [keras.metrics.AUC(name="u")],
            ],
        },
    }
    for name, compiling in forms.items():
        model = two(keras)
        model.compile("sgd", **compiling)
        with warnings.catch_warnings():
            if name == "none":  # an output without a loss leaves its weights without a gradient
                warnings.simplefilter("ignore")
            found[name] = run(model, X, [Y, Z], validation_split=0.25)
        found[f"{name}, evaluated"] = model.evaluate(X, [Y, Z], batch_size=16, verbose=0)
    return found


def outputs_by_name(keras: Any) -> Any:
    """A model that gives a dict, with targets and weights by name."""
    model = two(keras, as_dict=True)
    model.compile(
        "sgd",
        loss={"a": "mse", "b": "binary_crossentropy"},
        loss_weights={"a": 0.5, "b": 2.0},
        metrics={"a": ["mae"]},
        weighted_metrics={"b": ["accuracy"]},
    )
    fitted = run(
        model,
        X,
        {"a": Y, "b": Z},
        sample_weight={"a": WEIGHT, "b": WEIGHT[::-1]},
        validation_data=(X, {"a": Y, "b": Z}, {"a": WEIGHT, "b": WEIGHT}),
    )
    told = model.evaluate(X, {"a": Y, "b": Z}, batch_size=16, verbose=0, return_dict=True)
    return [fitted, told, model.predict(X[:3], verbose=0)]


def weights_of_samples(keras: Any) -> Any:
    """Weights for one output, for several, for classes, for steps in time."""
    found = {}
    model = two(keras)
    model.compile("sgd", ["mse", "mse"], weighted_metrics=[["mae"], ["mae"]])
    found["a list"] = run(model, X, [Y, Z], sample_weight=[WEIGHT, WEIGHT[::-1].copy()])
    found["one output"] = run(
        one(keras, metrics=["mae"], weighted_metrics=["mse"]),
        X,
        Y,
        sample_weight=WEIGHT,
        validation_data=(X, Y, WEIGHT),
        validation_batch_size=7,
    )
    steps = np.stack([X, X * 0.5, X * 2], 1)
    target = np.stack([Y, Y * 2, Y], 1)
    timed = fill(keras.Sequential([keras.Input((3, 5)), keras.layers.Dense(2)]))
    timed.compile("sgd", "mse", weighted_metrics=["mae"])
    found["in time"] = run(timed, steps, target, sample_weight=np.abs(data("t", 40, 3)))
    classes = fill(keras.Sequential([keras.Input((5,)), keras.layers.Dense(3, "softmax")]))
    classes.compile("sgd", "categorical_crossentropy", metrics=["accuracy"])
    hot = np.eye(3, dtype="float32")[np.arange(40) % 3]
    found["classes"] = run(classes, X, hot, class_weight={0: 1.0, 1: 2.0, 2: 0.5})
    return found


def precision(keras: Any) -> Any:
    """Loss scaling: by itself, by hand, with overflows; and the other low precision."""
    found = {}
    for name, policy, compiling in (
        ("by itself", "mixed_float16", {}),
        ("not scaled", "mixed_float16", {"auto_scale_loss": False}),
        ("bfloat16", "mixed_bfloat16", {}),
        ("fixed", "float32", {"optimizer": keras.optimizers.SGD(0.05, loss_scale_factor=8.0)}),
        (
            "dynamic",
            "float32",
            {
                "optimizer": keras.optimizers.LossScaleOptimizer(
                    keras.optimizers.SGD(0.05), initial_scale=4.0, dynamic_growth_steps=2
                )
            },
        ),
        (
            "overflow",
            "mixed_float16",
            {
                "optimizer": keras.optimizers.LossScaleOptimizer(
                    keras.optimizers.SGD(0.05), initial_scale=2.0**40, dynamic_growth_steps=100
                )
            },
        ),
    ):
        keras.config.set_dtype_policy(policy)
        try:
            inputs = keras.Input((5,))
            hidden = keras.layers.Dense(4, "relu")(inputs)
            outputs = keras.layers.Dense(2, dtype="float32")(hidden)
            model = fill(keras.Model(inputs, outputs))
            model.compile(**({"optimizer": "sgd", "loss": "mse"} | compiling))
            history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
            optimizer = model.optimizer
            scaled = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
            is_low = policy != "float32"
            found[name] = [
                type(optimizer).__name__,
                # In low precision, two backends agree to two digits.
                [round(float(v), 2 if is_low else 5) for v in history["loss"]],
                [int(optimizer.step_counter), float(optimizer.dynamic_scale)] if scaled else None,
                int(optimizer.inner_optimizer.iterations if scaled else optimizer.iterations),
            ]
        finally:
            keras.config.set_dtype_policy("float32")
    return found


def steps_in_one(keras: Any) -> Any:
    """Several steps in one execution, with a remainder, give the same."""
    found = []
    for steps in (1, 2, 3, 10):
        model = one(keras, steps_per_execution=steps, metrics=["mae"])
        found.append(run(model, X, Y, batch_size=8, validation_data=(X, Y)))
        found.append(model.evaluate(X, Y, batch_size=8, verbose=0))
        found.append(model.predict(X, batch_size=8, verbose=0))
    return found


def accumulation(keras: Any) -> Any:
    """Gradients of several batches, whose number does not fit the epoch."""
    found = []
    for steps, kind in ((2, "SGD"), (3, "Adam"), (4, "AdamW")):
        optimizer = getattr(keras.optimizers, kind)(0.05, gradient_accumulation_steps=steps)
        model = one(keras, optimizer=optimizer)
        found.append([*run(model, X, Y, batch_size=8, epochs=3), int(optimizer.iterations)])
    return found


def frozen(keras: Any) -> Any:
    """Layers that are frozen, and thawed after some training."""
    model = two(keras)
    model.get_layer("hidden").trainable = False
    model.compile("sgd", "mse")
    first = run(model, X, [Y, Z], epochs=1)
    model.get_layer("hidden").trainable = True
    model.compile("sgd", "mse")
    return [first, run(model, X, [Y, Z], epochs=1)]


def data_of_batches(keras: Any) -> Any:
    """A generator with weights, steps of epochs and of validation."""

    def batches() -> Any:
        while True:
            for start in range(0, 40, 10):
                rows = slice(start, start + 10)
                yield X[rows], Y[rows], WEIGHT[rows]

    model = one(keras, metrics=["mae"], weighted_metrics=["mse"])
    history = model.fit(
        batches(),
        steps_per_epoch=3,
        epochs=4,
        initial_epoch=1,
        validation_data=(X, Y, WEIGHT),
        validation_steps=2,
        validation_freq=2,
        verbose=0,
    )
    return [
        history.history,
        history.epoch,
        model.evaluate(batches(), steps=3, verbose=0, return_dict=True),
        model.predict(batches(), steps=2, verbose=0).shape,
        model.train_on_batch(X[:8], Y[:8], sample_weight=WEIGHT[:8]),
        model.test_on_batch(X[:8], Y[:8], return_dict=True),
        model.train_on_batch(X[:8], Y[:8], class_weight=None, return_dict=True),
    ]


def masked(keras: Any) -> Any:
    """A model of two outputs whose input has a mask, and its tokens, targets and weights."""
    tokens = (np.abs(data("tokens", 40, 4)) * 4).astype("int32") % 6
    inputs = keras.Input((4,), dtype="int32")
    x = keras.layers.Embedding(6, 3, mask_zero=True)(inputs)
    a = keras.layers.Dense(2, name="a")(x)
    b = keras.layers.Dense(1, name="b")(x)
    targets = [data("ta", 40, 4, 2), data("tb", 40, 4, 1)]
    weights = [np.abs(data("s", 40, 4)), np.abs(data("v", 40, 4))]
    return fill(keras.Model(inputs, [a, b])), tokens, targets, weights


def masks_of_two(keras: Any) -> Any:
    """Masks and weights together, on two outputs."""
    model, tokens, targets, weights = masked(keras)
    model.compile("sgd", ["mse", "mae"])
    return run(model, tokens, targets, sample_weight=weights)


def masked_metrics_of_two(keras: Any) -> None:
    """What is masked does not count in metrics either; in Keras it does, with several outputs."""
    model, x, y, weights = masked(keras)
    model.compile("sgd", ["mse", "mse"], metrics=[["mae"], []], weighted_metrics=[[], ["mse"]])
    found = model.evaluate(x, y, sample_weight=weights, batch_size=40, verbose=0, return_dict=True)
    a, b = model.predict(x, verbose=0)
    mask = (x != 0).astype("float64")
    both = mask * weights[1]
    expected = {
        "a_mae": (np.abs(a - y[0]).mean(-1) * mask).sum() / mask.sum(),
        "b_mse": (((b - y[1]) ** 2).mean(-1) * both).sum() / both.sum(),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5)


SCRIPTS = [
    lists_and_dicts,
    outputs_by_name,
    weights_of_samples,
    precision,
    steps_in_one,
    accumulation,
    frozen,
    data_of_batches,
    masks_of_two,
]
OWN_SCRIPTS = [masked_metrics_of_two]
