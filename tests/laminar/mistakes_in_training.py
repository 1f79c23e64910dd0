"""Common mistakes with data, fit and compile, each with what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import layers, losses
from laminar.engine.errors import LaminarError

from .mistakes import Mistake, X, Y, make, regressor

LABELS = np.arange(8) % 3


def classifier() -> Any:
    model = laminar.Sequential(
        [layers.Input((4,), name="x"), layers.Dense(3, "softmax", name="head")], name="net"
    )
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def two_outputs() -> Any:
    x = layers.Input((4,), name="x")
    model = laminar.Model(x, [layers.Dense(1, name="a")(x), layers.Dense(1, name="b")(x)])
    model.compile("sgd", ["mse", "mse"])
    return model


def temporal() -> Any:
    model = laminar.Sequential([layers.Input((None, 3), name="x"), layers.LSTM(2)], name="net")
    model.compile("sgd", "mse")
    return model


def with_nan() -> Any:
    x = X.copy()
    x[3, 1] = np.nan
    return x


class Unconnected(laminar.Model):
    def __init__(self) -> None:
        super().__init__(name="net")
        self.used = layers.Dense(1)

    def call(self, x: Any) -> Any:
        return laminar.stop_gradient(self.used(x))


def unconnected() -> None:
    model = Unconnected()
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)


def fit(*given: Any, **options: Any) -> Callable[[Path], Any]:
    """Training a regressor with these callbacks and arguments."""
    return lambda folder: regressor().fit(X, Y, callbacks=list(given), verbose=0, **options)


class WrongStep(laminar.Model):
    def __init__(self) -> None:
        super().__init__(name="net")
        self.head = layers.Dense(1)

    def call(self, x: Any) -> Any:
        return self.head(x)

    def train_step(self, data: Any) -> Any:
        return self.compute_loss(data[0], data[1], self(data[0]))


def wrong_step() -> None:
    model = WrongStep()
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)


def four_parts() -> None:
    regressor().fit(iter([(X, Y, Y, Y)]), verbose=0)


MISTAKES_IN_TRAINING: list[Mistake] = [
    # data
    (
        "features",
        make(lambda: regressor().fit(np.ones((8, 5)), Y, verbose=0)),
        ValueError,
        "Sequential 'net': the input 'x' must have shape (?, 4), got (?, 5)",
    ),
    (
        "missing-batch-axis",
        make(lambda: regressor().predict(np.ones(4), verbose=0)),
        ValueError,
        "must have shape (?, 4), got (?)",
    ),
    (
        "lengths",
        make(lambda: regressor().fit(X, Y[:5], verbose=0)),
        ValueError,
        "the arrays must have the same number of examples: x has 8, y has 5",
    ),
    (
        "weights-length",
        make(lambda: regressor().fit(X, Y, sample_weight=np.ones(3), verbose=0)),
        ValueError,
        "x has 8, y has 8, sample_weight has 3",
    ),
    (
        "empty",
        make(lambda: regressor().fit(X[:0], Y[:0], verbose=0)),
        ValueError,
        "fit: the data is empty (0 examples)",
    ),
    ("no-data", make(lambda: regressor().fit(verbose=0)), ValueError, "fit: x is missing"),
    (
        "no-targets",
        make(lambda: regressor().fit(X, verbose=0)),
        ValueError,
        "the loss needs targets and the data has none",
    ),
    (
        "nan",
        make(lambda: regressor().fit(with_nan(), Y, verbose=0)),
        ValueError,
        "fit: x contains NaN: 1 of 32 values, the first at (",
    ),
    (
        "nan-target",
        make(lambda: regressor().fit(X, np.full((8, 1), np.nan), verbose=0)),
        ValueError,
        "fit: y contains NaN: 8 of 8 values",
    ),
    (
        "strings",
        make(lambda: regressor().fit(np.array([["a"] * 4] * 8), Y, verbose=0)),
        ValueError,
        "the input 'x' must be float32, got string",
    ),
    (
        "objects",
        make(lambda: regressor().fit(np.array([[{}] * 4] * 8), Y, verbose=0)),
        TypeError,
        "fit: x: expected numbers or strings, got an element of type dict",
    ),
    (
        "ragged",
        make(lambda: regressor().fit([[1.0, 2.0], [3.0]], Y, verbose=0)),
        ValueError,
        "fit: x: cannot make a tensor of a list",
    ),
    (
        "file-name",
        make(lambda: regressor().fit("data.npy", Y, verbose=0)),
        ValueError,
        "fit: x: expected an array, got str 'data.npy'",
    ),
    (
        "symbolic-data",
        make(lambda: regressor().fit(layers.Input((4,)), Y, verbose=0)),
        ValueError,
        "fit: x: expected data, got the symbolic tensor",
    ),
    (
        "label-range",
        make(lambda: classifier().fit(X, LABELS + 5, verbose=0)),
        ValueError,
        "is not one of the 3 classes 0 to 2",
    ),
    (
        "negative-label",
        make(lambda: classifier().fit(X, LABELS - 1, verbose=0)),
        ValueError,
        "label -1 at (",
    ),
    (
        "one-hot-for-sparse",
        make(lambda: classifier().fit(X, np.eye(3)[LABELS], verbose=0)),
        ValueError,
        "shape",
    ),
    (
        "labels-for-one-hot",
        make(lambda: losses.CategoricalCrossentropy()(LABELS, np.ones((8, 3)) / 3)),
        ValueError,
        "shape",
    ),
    (
        "y-with-generator",
        make(lambda: regressor().fit(iter([(X, Y)]), Y, verbose=0)),
        ValueError,
        "fit: y cannot be given when x is a list_iterator",
    ),
    (
        "generator-ends",
        make(lambda: regressor().fit(iter([(X, Y)]), steps_per_epoch=3, verbose=0)),
        LaminarError,
        "fit: the data ended after 1 batches, 3 were asked for",
    ),
    (
        "function-as-data",
        make(lambda: regressor().fit(lambda: X, verbose=0)),
        ValueError,
        "fit: x is a function, expected data",
    ),
    # arguments of fit and compile
    (
        "not-compiled",
        make(lambda: laminar.Sequential([layers.Dense(1)]).fit(X, Y, verbose=0)),
        RuntimeError,
        "fit: the model has not been compiled",
    ),
    (
        "batch-size",
        make(lambda: regressor().fit(X, Y, batch_size=0, verbose=0)),
        ValueError,
        "fit: batch_size must be a positive whole number, got 0",
    ),
    (
        "epochs",
        make(lambda: regressor().fit(X, Y, epochs=-1, verbose=0)),
        ValueError,
        "fit: epochs must be a whole number of at least 1, got -1",
    ),
    (
        "split",
        make(lambda: regressor().fit(X, Y, validation_split=1.5, verbose=0)),
        ValueError,
        "fit: validation_split must be between 0 and 1",
    ),
    (
        "split-too-small",
        make(lambda: regressor().fit(X[:1], Y[:1], validation_split=0.5, verbose=0)),
        ValueError,
        "fit: validation_split=0.5 of 1 examples leaves 0 for training",
    ),
    (
        "both-weights",
        make(
            lambda: regressor().fit(X, Y, sample_weight=np.ones(8), class_weight={0: 1}, verbose=0)
        ),
        ValueError,
        "fit: give class_weight or sample_weight, not both",
    ),
    (
        "callback-class",
        make(lambda: regressor().fit(X, Y, callbacks=[laminar.callbacks.History], verbose=0)),
        ValueError,
        "callbacks: expected Callback objects, got <class",
    ),
    (
        "verbose",
        make(lambda: regressor().fit(X, Y, verbose=7)),
        ValueError,
        "verbose must be 0, 1, 2 or 'auto', got 7",
    ),
    ("optimizer-name", make(lambda: regressor().compile("adamm", "mse")), ValueError, "'adamm'"),
    ("loss-name", make(lambda: regressor().compile("adam", "msee")), ValueError, "'msee'"),
    (
        "metric-name",
        make(lambda: regressor().compile("adam", "mse", metrics=["acuracy"])),
        ValueError,
        "'acuracy'",
    ),
    (
        "losses-of-outputs",
        make(lambda: (m := two_outputs(), m.compile("sgd", ["mse"]), m.fit(X, [Y, Y], verbose=0))),
        ValueError,
        "compile: loss: expected 2 entries, one for each output (a, b), got 1",
    ),
    (
        "name-of-output",
        make(
            lambda: (
                m := two_outputs(),
                m.compile("sgd", {"c": "mse"}),
                m.fit(X, [Y, Y], verbose=0),
            )
        ),
        ValueError,
        "compile: loss: no output is named 'c'; the outputs are a, b",
    ),
    (
        "targets-of-outputs",
        make(lambda: two_outputs().fit(X, Y, verbose=0)),
        ValueError,
        "y: the model has 2 outputs (a, b), got one entry",
    ),
    (
        "no-loss",
        make(lambda: (m := regressor(), m.compile("sgd"), m.fit(X, Y, verbose=0))),
        ValueError,
        "there is no loss to minimise",
    ),
    ("loss-without-weights", make(unconnected), ValueError, "gradient"),
    (
        "steps-per-execution",
        make(lambda: regressor().compile(steps_per_execution=0)),
        ValueError,
        "compile: steps_per_execution must be at least 1, got 0",
    ),
    (
        "jit-compile",
        make(lambda: regressor().compile(jit_compile="never")),
        ValueError,
        "compile: jit_compile must be True, False or 'auto', got 'never'",
    ),
    (
        "step-without-dict",
        make(wrong_step),
        ValueError,
        "train_step and test_step return a dict of values to report, got <class",
    ),
    ("four-parts", make(four_parts), ValueError, "a batch is x, (x, y) or (x, y, sample_weight)"),
    (
        "evaluate-not-compiled",
        make(lambda: laminar.Sequential([layers.Dense(1)]).evaluate(X, Y, verbose=0)),
        RuntimeError,
        "evaluate: the model has not been compiled",
    ),
    (
        "loss-number",
        make(lambda: regressor().compile("sgd", 3)),
        ValueError,
        "3",
    ),
    (
        "optimizer-number",
        make(lambda: regressor().compile(0.1, "mse")),
        ValueError,
        "0.1",
    ),
    (
        "sequence-axes",
        make(lambda: temporal().predict(X, verbose=0)),
        ValueError,
        "must have shape (?, ?, 3), got (?, 4)",
    ),
    (
        "profile-of-nothing",
        make(lambda: regressor().profile(X[:0])),
        ValueError,
        "profile: the data is empty (0 examples)",
    ),
    (
        "remote-address",
        make(lambda: laminar.callbacks.RemoteMonitor("localhost:9000")),
        ValueError,
        "RemoteMonitor: root must begin with http:// or https://, got 'localhost:9000'",
    ),
    # what fit, evaluate and predict are told
    ("no-epochs", fit(epochs=None), ValueError, "fit: epochs must be a whole number"),
    ("split-text", fit(validation_split="a"), ValueError, "validation_split must be between 0 and"),
    ("steps-text", fit(validation_data=(X, Y), validation_steps="a"), ValueError, "validation_st"),
    ("rows-0", fit(validation_data=(X, Y), validation_batch_size=0), ValueError, "of at least 1"),
    ("never", fit(validation_data=(X, Y), validation_freq=0), ValueError, "validation_freq must"),
    ("epoch-0", fit(validation_data=(X, Y), validation_freq=[0]), ValueError, "list of the epochs"),
    ("freq", fit(validation_data=(X, Y), validation_freq="a"), ValueError, "validation_freq must"),
    (
        "balanced",
        fit(class_weight="balanced"),
        ValueError,
        "class_weight must be a dict of numbers",
    ),
    ("classes", fit(class_weight={"a": 1}), ValueError, "a number for each class number, got 'a'"),
    ("class-below-0", fit(class_weight={-1: 2.0}), ValueError, "for each class number, got -1"),
    ("class-text", fit(class_weight={0: "a"}), ValueError, "for each class number, got 0: 'a'"),
    (
        "predict-steps",
        make(lambda: regressor().predict(X, steps="a", verbose=0)),
        ValueError,
        "predict: steps must be a whole number of at least 1, got 'a'",
    ),
    (
        "evaluate-steps",
        make(lambda: regressor().evaluate(X, Y, steps=0, verbose=0)),
        ValueError,
        "evaluate: steps must be a whole number of at least 1, got 0",
    ),
    (
        "loss-of-one",
        make(lambda: regressor().compile("sgd", lambda y: y)),
        ValueError,
        "compile: a loss is a function of (y_true, y_pred), '<lambda>' takes (y)",
    ),
    (
        "metric-of-nothing",
        make(lambda: regressor().compile("sgd", "mse", metrics=[lambda: 1])),
        ValueError,
        "compile: a metric is a function of (y_true, y_pred), '<lambda>' takes ()",
    ),
]
