"""Common mistakes: each gives one clear first line and the user's own line."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, losses, metrics, ops, optimizers
from laminar.engine.errors import LaminarError

X = np.ones((8, 4), "float32")
Y = np.zeros((8, 1), "float32")
LABELS = np.arange(8) % 3


def regressor() -> Any:
    model = laminar.Sequential(
        [layers.Input((4,), name="x"), layers.Dense(1, name="head")], name="net"
    )
    model.compile("sgd", "mse")
    return model


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


def with_nan() -> Any:
    x = X.copy()
    x[3, 1] = np.nan
    return x


def make(fn: Callable[[], Any]) -> Callable[[Path], Any]:
    return lambda folder: fn()


def unbuilt_save(folder: Path) -> None:
    laminar.Sequential([layers.Dense(1)]).save(folder / "m.keras")


def truncated(folder: Path) -> None:
    regressor().save(folder / "m.keras")
    whole = (folder / "m.keras").read_bytes()
    (folder / "m.keras").write_bytes(whole[:100])
    laminar.saving.load_model(folder / "m.keras")


def unknown_class(folder: Path) -> None:
    regressor().save(folder / "m.keras")
    with zipfile.ZipFile(folder / "m.keras") as archive:
        parts = {n: archive.read(n) for n in archive.namelist()}
    parts["config.json"] = parts["config.json"].replace(b'"Dense"', b'"Densee"')
    with zipfile.ZipFile(folder / "m.keras", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    laminar.saving.load_model(folder / "m.keras")


class NoSuper(layers.Layer):
    def __init__(self) -> None:
        pass

    def call(self, x: Any) -> Any:
        return x


class NoCall(layers.Layer):
    pass


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


def branch_on_tensor() -> None:
    @laminar.function
    def f(x: Any) -> Any:
        return x if ops.sum(x) > 0 else -x

    f(X)


def leak() -> None:
    kept: list[Any] = []

    @laminar.function
    def f(x: Any) -> Any:
        kept.append(x * 2)
        return x

    f(X)
    _ = kept[0] + 1


def tape_twice() -> None:
    v = laminar.Variable(1.0)
    with laminar.GradientTape() as tape:
        y = v * v
    tape.gradient(y, v)
    tape.gradient(y, v)


def make_each_time() -> None:
    @laminar.function
    def f(x: Any) -> Any:
        return x + laminar.Variable(1.0, name="v").value

    f(X)


def duplicate_names() -> None:
    x = layers.Input((2,))
    y = layers.Dense(1, name="d")(layers.Dense(2, name="d")(x))
    laminar.Model(x, y)


def not_an_input() -> None:
    a, b = layers.Input((2,), name="a"), layers.Input((2,), name="b")
    laminar.Model(a, layers.Add()([a, b]))


def temporal() -> Any:
    model = laminar.Sequential([layers.Input((None, 3), name="x"), layers.LSTM(2)], name="net")
    model.compile("sgd", "mse")
    return model


def fit(*given: Any, **options: Any) -> Callable[[Path], Any]:
    """Training a regressor with these callbacks and arguments."""
    return lambda folder: regressor().fit(X, Y, callbacks=list(given), verbose=0, **options)


def resumed_with_other_batches(folder: Path) -> None:
    regressor().fit(X, Y, resume=folder, verbose=0)
    regressor().fit(X, Y, resume=folder, batch_size=2, verbose=0)


def logs_of_zero() -> None:
    x = layers.Input((4,), name="x")
    model = laminar.Model(x, layers.Dense(1, name="head")(ops.log(x)), name="net")
    model.compile("sgd", "mse")
    model.fit(X * 0, Y, check="nan", verbose=0)


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


def other_optimizer_variables() -> None:
    model = regressor()
    model.fit(X, Y, verbose=0)
    model.optimizer.apply([ops.ones(3)], [laminar.Variable(np.ones(3), name="new")])


def groups(factors: Any) -> Callable[[Path], Any]:
    def do(folder: Path) -> None:
        model = regressor()
        model.optimizer.groups(factors)
        model.fit(X, Y, verbose=0)

    return do


# id, what is done, the class of the error, its first line (a part of it)
Kinds = type[BaseException] | tuple[type[BaseException], ...]
MISTAKES: list[tuple[str, Callable[[Path], Any], Kinds, str]] = [
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
    # layers and models
    ("units", make(lambda: layers.Dense(0)), ValueError, "units"),
    (
        "unknown-argument",
        make(lambda: layers.Dense(2, unit=3)),
        (ValueError, TypeError),
        "unit",
    ),
    ("activation-name", make(lambda: layers.Dense(2, activation="rellu")), ValueError, "'rellu'"),
    (
        "initializer-name",
        make(lambda: layers.Dense(2, kernel_initializer="glorot")),
        ValueError,
        "'glorot'",
    ),
    ("dropout-rate", make(lambda: layers.Dropout(1.5)), ValueError, "rate"),
    ("kernel-size", make(lambda: layers.Conv2D(3, 0)), ValueError, "kernel_size"),
    (
        "image-axes",
        make(lambda: layers.Conv2D(3, 3)(np.ones((8, 8, 1), "float32"))),
        ValueError,
        "expected 4 axes, got shape (8, 8, 1)",
    ),
    (
        "pool-too-large",
        make(lambda: layers.MaxPooling2D(9)(np.ones((1, 4, 4, 1), "float32"))),
        ValueError,
        "",
    ),
    ("reshape", make(lambda: layers.Reshape((3, 3))(X)), ValueError, ""),
    (
        "concatenate",
        make(lambda: layers.Concatenate()([np.ones((2, 3, 4)), np.ones((2, 5, 4))])),
        ValueError,
        "",
    ),
    ("merge", make(lambda: layers.Add()([np.ones((2, 3)), np.ones((2, 4))])), ValueError, ""),
    (
        "rebuilt-size",
        make(lambda: (d := layers.Dense(2, name="d"), d(X), d(np.ones((8, 5))))),
        ValueError,
        "Dense 'd': input 0: expected size 4 along axis -1, got shape (8, 5)",
    ),
    ("unknown-width", make(lambda: layers.Dense(2)(layers.Input((None,)))), ValueError, ""),
    ("input-without-shape", make(lambda: layers.Input()), ValueError, "the shape is missing"),
    (
        "input-number",
        make(lambda: layers.Input(4)),  # type: ignore[arg-type]  # the mistake
        ValueError,
        "a shape is a tuple, got 4",
    ),
    (
        "no-super",
        make(lambda: NoSuper()(X)),
        RuntimeError,
        "NoSuper: __init__ did not call super().__init__()",
    ),
    ("no-call", make(lambda: NoCall()(X)), ValueError, "NoCall does not say what it computes"),
    (
        "layer-class",
        make(lambda: laminar.Sequential([layers.Dense])),
        ValueError,
        "Sequential: expected a layer, got the class Dense",
    ),
    ("duplicate-names", make(duplicate_names), ValueError, "two layers are named 'd'"),
    (
        "not-an-input",
        make(not_an_input),
        ValueError,
        "the outputs need the input 'b', which is not among the inputs of the model",
    ),
    (
        "arrays-as-inputs",
        make(lambda: laminar.Model(X, Y)),
        ValueError,
        "inputs must be symbolic tensors",
    ),
    (
        "layer-name",
        make(lambda: regressor().get_layer("haed")),
        KeyError,
        "the model 'net' has no layer 'haed'",
    ),
    (
        "set-weights",
        make(lambda: regressor().set_weights([np.ones((4, 1))])),
        ValueError,
        "net: set_weights() got 1 arrays, the layer has 2 weights",
    ),
    (
        "set-weights-shape",
        make(lambda: regressor().set_weights([np.ones((4, 2)), np.ones(1)])),
        ValueError,
        "has shape (4, 1), the array has (4, 2)",
    ),
    (
        "symbolic-value",
        make(lambda: layers.Input((3,)).numpy()),
        RuntimeError,
        "numpy(): a symbolic tensor",
    ),
    (
        "symbolic-truth",
        make(lambda: bool(layers.Input((3,)) > 1)),
        RuntimeError,
        "a truth value: a symbolic tensor",
    ),
    # files
    (
        "missing-file",
        lambda f: laminar.saving.load_model(f / "no.keras"),
        FileNotFoundError,
        "no.keras",
    ),
    (
        "wrong-ending",
        lambda f: regressor().save(f / "model.txt"),
        ValueError,
        "save: the file must end in .keras",
    ),
    (
        "weights-ending",
        lambda f: regressor().save_weights(f / "model.h5"),
        ValueError,
        "save_weights: the file must end in .weights.h5",
    ),
    ("unbuilt-save", unbuilt_save, ValueError, "has no weights yet"),
    ("truncated", truncated, ValueError, ""),
    (
        "unknown-class",
        unknown_class,
        KeyError,
        "the config names 'Densee'",
    ),
    # tensors, functions, gradients
    (
        "matmul",
        make(lambda: ops.matmul(np.ones((2, 3)), np.ones((4, 5)))),
        ValueError,
        "the inner dimensions differ",
    ),
    (
        "broadcast",
        make(lambda: ops.add(np.ones((2, 3)), np.ones((2, 4)))),
        ValueError,
        "Add: the shapes [2, 3] and [2, 4] do not broadcast",
    ),
    (
        "assign-shape",
        make(lambda: laminar.Variable(np.ones(3)).assign(np.ones(4))),
        ValueError,
        "the value assigned to it is",
    ),
    ("dtype-name", make(lambda: ops.cast(X, "flaot32")), TypeError, "dtype: expected one of"),
    ("branch", make(branch_on_tensor), RuntimeError, "Python cannot branch on a value"),
    ("leak", make(leak), RuntimeError, "belongs to a function that has been traced"),
    ("tape-twice", make(tape_twice), RuntimeError, "gradient() was called a second time"),
    ("variable-each-trace", make(make_each_time), ValueError, "may do so on its first call only"),
    (
        "grad-of-vector",
        make(lambda: laminar.grad(lambda x: x * 2.0)(X)),
        ValueError,
        "grad: the function must return a scalar, got float32[8, 4]",
    ),
    (
        "learning-rate",
        make(lambda: optimizers.Adam("fast")),  # type: ignore[arg-type]  # the mistake
        (ValueError, TypeError),
        "",
    ),
    (
        "gradient-count",
        make(
            lambda: optimizers.SGD(0.1).apply(
                [ops.ones(3)], [laminar.Variable(np.ones(3)), laminar.Variable(np.ones(3))]
            )
        ),
        ValueError,
        "",
    ),
    (
        "metric-shapes",
        make(lambda: metrics.MeanSquaredError().update_state(np.ones((2, 3)), np.ones((4, 5)))),
        ValueError,
        "",
    ),
    # callbacks, and what fit has beyond Keras
    (
        "half-an-epoch",
        fit(epochs=1.5),
        ValueError,
        "fit: epochs must be a whole number of at least 1, got 1.5",
    ),
    (
        "early-stopping-mode",
        make(lambda: laminar.callbacks.EarlyStopping(mode="lower")),
        ValueError,
        "EarlyStopping: mode must be 'auto', 'min' or 'max', got 'lower'",
    ),
    (
        "patience",
        make(lambda: laminar.callbacks.EarlyStopping(patience=-1)),
        ValueError,
        "EarlyStopping: patience must be a whole number of at least 0, got -1",
    ),
    (
        "checkpoint-ending",
        make(lambda: laminar.callbacks.ModelCheckpoint("model.h5")),
        ValueError,
        "the file must end in .keras, got 'model.h5'",
    ),
    (
        "checkpoint-name",
        lambda f: regressor().fit(
            X, Y, verbose=0, callbacks=laminar.callbacks.ModelCheckpoint(f / "{val_los}.keras")
        ),
        KeyError,
        "names 'val_los', which is not among the values epoch, loss",
    ),
    (
        "plateau-factor",
        make(lambda: laminar.callbacks.ReduceLROnPlateau(factor=1.5)),
        ValueError,
        "ReduceLROnPlateau: factor must be at least 0 and less than 1, got 1.5",
    ),
    (
        "schedule-without-return",
        fit(laminar.callbacks.LearningRateScheduler(lambda epoch: None)),
        ValueError,
        "the schedule gave None for epoch 0, expected a number",
    ),
    (
        "callback-method",
        make(lambda: laminar.callbacks.LambdaCallback(on_epoch_ends=print)),
        ValueError,
        "LambdaCallback: a callback has no method 'on_epoch_ends'",
    ),
    (
        "function-as-callback",
        fit(print),
        ValueError,
        "callbacks: expected Callback objects, got <built-in function print>",
    ),
    (
        "averages-not-kept",
        fit(laminar.callbacks.SwapEMAWeights()),
        RuntimeError,
        "SwapEMAWeights: the optimizer keeps no averages of the weights",
    ),
    (
        "backup-frequency",
        make(lambda: laminar.callbacks.BackupAndRestore("b", save_freq=0)),
        ValueError,
        "BackupAndRestore: save_freq must be a whole number of at least 1, got 0",
    ),
    (
        "tensorboard-frequency",
        make(lambda: laminar.callbacks.TensorBoard(update_freq="epochs")),
        ValueError,
        "TensorBoard: update_freq must be 'epoch', 'batch' or a number of batches, got 'epochs'",
    ),
    (
        "resume-other-data",
        resumed_with_other_batches,
        RuntimeError,
        "fit: resume: the folder holds a training with batch_size=32, this training has",
    ),
    ("resume-number", fit(resume=1), ValueError, "fit: resume must be the name of a folder, got 1"),
    ("check", fit(check="inf"), ValueError, "fit: check must be None or 'nan', got 'inf'"),
    (
        "logarithm-of-zero",
        make(logs_of_zero),
        RuntimeError,
        "fit: batch 0 of epoch 1: operation 'net/Log' (Log) of layer 'net' gave",
    ),
    (
        "overfit-batches",
        fit(overfit_batches=-2),
        ValueError,
        "fit: overfit_batches must be a whole number of at least 1, got -2",
    ),
    ("plot", fit(plot=3), ValueError, "fit: plot must be True or the name of a file, got 3"),
    (
        "groups-name",
        groups({"haed": 0.1}),
        ValueError,
        "groups: 'haed' fits none of the 2 variables (net/head/kernel, net/head/bias)",
    ),
    (
        "groups-factor",
        groups({"head": -0.1}),
        ValueError,
        "groups: a factor must be a number of at least 0, got -0.1",
    ),
    (
        "rate-finder-range",
        make(lambda: laminar.lr_find(regressor(), X, Y, start=1, end=0.1)),
        ValueError,
        "lr_find: expected 0 < start < end, got start=1, end=0.1",
    ),
    (
        "one-cycle",
        make(lambda: optimizers.schedules.OneCycle(0.1, 0)),
        ValueError,
        "OneCycle: total_steps must be",
    ),
    # more of fit, compile and the layers
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
        "other-variables",
        make(other_optimizer_variables),
        ValueError,
        "the variable 'new' is not among the 2 that the optimizer was built for",
    ),
    (
        "two-clips",
        make(lambda: optimizers.SGD(clipnorm=1.0, clipvalue=1.0)),
        ValueError,
        "clip",
    ),
    (
        "scaled-twice",
        make(lambda: optimizers.LossScaleOptimizer("sgd")),  # type: ignore[arg-type]  # the mistake
        ValueError,
        "LossScaleOptimizer: expected an optimizer to wrap, got 'sgd'",
    ),
    (
        "sequence-axes",
        make(lambda: temporal().predict(X, verbose=0)),
        ValueError,
        "must have shape (?, ?, 3), got (?, 4)",
    ),
    (
        "embedding-size",
        make(lambda: layers.Embedding(0, 4)),
        ValueError,
        "",
    ),
    (
        "conv-padding",
        make(lambda: layers.Conv2D(3, 3, padding="sane")),
        ValueError,
        "padding",
    ),
    (
        "axis-of-normalization",
        make(lambda: layers.BatchNormalization(axis=7)(X)),
        ValueError,
        "",
    ),
    (
        "policy-name",
        make(lambda: layers.Dense(2, dtype="mixed_float8")),
        (ValueError, TypeError),
        "mixed_float8",
    ),
    (
        "empty-sequential",
        make(lambda: laminar.Sequential([])(X)),
        (ValueError, RuntimeError),
        "",
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
]


@pytest.mark.parametrize(
    ("do", "kind", "words"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES]
)
def test_mistake(do: Callable[[Path], Any], kind: Kinds, words: str, tmp_path: Path) -> None:
    with pytest.raises(kind) as caught:
        do(tmp_path)
    error = caught.value
    assert isinstance(error, LaminarError), f"{type(error).__name__}: {error}"
    first = str(error).splitlines()[0]
    assert words in first, first
    assert error.location is not None, "the user's line is not named"
    assert error.location.filename == __file__, error.location


def test_the_table_is_long_enough() -> None:
    assert len(MISTAKES) >= 120
