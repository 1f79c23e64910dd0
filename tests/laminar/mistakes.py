"""Common mistakes with layers, models, files, tensors and optimizers, each with what it says."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import laminar
from laminar import layers, metrics, ops, optimizers
from laminar.utils import timeseries_dataset_from_array as windows
from laminar.utils import to_categorical

Kinds: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]
# id, what is done, the class of the error, its first line (a part of it)
Mistake: TypeAlias = tuple[str, Callable[[Path], Any], Kinds, str]

X = np.ones((8, 4), "float32")
Y = np.zeros((8, 1), "float32")


def make(fn: Callable[[], Any]) -> Callable[[Path], Any]:
    return lambda folder: fn()


def regressor() -> Any:
    model = laminar.Sequential(
        [layers.Input((4,), name="x"), layers.Dense(1, name="head")], name="net"
    )
    model.compile("sgd", "mse")
    return model


class NoSuper(layers.Layer):
    def __init__(self) -> None:
        pass

    def call(self, x: Any) -> Any:
        return x


class NoCall(layers.Layer):
    pass


def duplicate_names() -> None:
    x = layers.Input((2,))
    y = layers.Dense(1, name="d")(layers.Dense(2, name="d")(x))
    laminar.Model(x, y)


def not_an_input() -> None:
    a, b = layers.Input((2,), name="a"), layers.Input((2,), name="b")
    laminar.Model(a, layers.Add()([a, b]))


def unbuilt_save(folder: Path) -> None:
    laminar.Sequential([layers.Dense(1)]).save_weights(folder / "m.weights.h5")


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


def branch_on_tensor() -> None:
    @laminar.function(autograph=False)
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


MISTAKES: list[Mistake] = [
    # layers and models
    ("units", make(lambda: layers.Dense(0)), ValueError, "units"),
    (
        "unknown-argument",
        make(lambda: layers.Dense(2, unit=3)),  # type: ignore[call-arg]  # the mistake
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
    (
        "no-call",
        make(lambda: NoCall()(X)),
        NotImplementedError,
        "NoCall does not say what it computes",
    ),
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
    (
        "embedding-size",
        make(lambda: layers.Embedding(0, 4)),
        ValueError,
        "",
    ),
    (
        "conv-padding",
        make(lambda: layers.Conv2D(3, 3, padding="sane")),  # type: ignore[arg-type]  # the mistake
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
    # files
    (
        "missing-file",
        lambda f: laminar.saving.load_model(f / "no.keras"),
        FileNotFoundError,
        "no.keras",
    ),
    (
        "save-to-no-folder",
        lambda f: regressor().save(f / "none" / "m.keras"),
        FileNotFoundError,
        "m.keras: there is no folder",
    ),
    (
        "custom-objects-list",
        lambda f: laminar.saving.load_model(f / "m.keras", custom_objects=[regressor]),  # type: ignore[arg-type]  # the mistake
        ValueError,
        "load_model: custom_objects must map names to classes and functions, got [<function",
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
    ("tape-twice", make(tape_twice), RuntimeError, "gradients were asked for a second time"),
    ("variable-each-trace", make(make_each_time), ValueError, "may do so on its first call only"),
    (
        "grad-of-vector",
        make(lambda: laminar.grad(lambda x: x * 2.0)(X)),
        ValueError,
        "grad: the function must return a scalar, got float32[8, 4]",
    ),
    (
        "metric-shapes",
        make(lambda: metrics.MeanSquaredError().update_state(np.ones((2, 3)), np.ones((4, 5)))),
        ValueError,
        "",
    ),
    # optimizers
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
        "one-cycle",
        make(lambda: optimizers.schedules.OneCycle(0.1, 0)),
        ValueError,
        "OneCycle: total_steps must be",
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
    # what is not of the kind that is asked for
    ("scope", make(lambda: laminar.StatelessScope([3])), ValueError, "(variable, value), got 3"),  # type: ignore[list-item]  # the mistake
    ("scope-3", make(lambda: laminar.StatelessScope(3)), ValueError, "(variable, value), got 3"),  # type: ignore[arg-type]  # the mistake
    ("input-2.5", make(lambda: layers.Input(2.5)), ValueError, "a shape is a tuple, got 2.5"),  # type: ignore[arg-type]  # the mistake
    ("input-text", make(lambda: layers.Input("ab")), ValueError, "a tuple, got 'ab'"),  # type: ignore[arg-type]  # the mistake
    ("input-of-3", make(lambda: layers.Input(tensor=3)), ValueError, "tensor must be a symbolic"),  # type: ignore[arg-type]  # the mistake
    (
        "series-text",
        make(lambda: windows("foo", None, 2)),
        ValueError,
        "timeseries_dataset_from_array: data must be an array with a step in each row, got 'foo'",
    ),
    ("series-targets", make(lambda: windows(X, 3, 2)), ValueError, "targets must be an array"),
    (
        "series-start",
        make(lambda: windows(X, None, 2, start_index="a")),  # type: ignore[arg-type]  # the mistake
        ValueError,
        "expected 0 <= start_index < end_index <= 8, got 'a' and None",
    ),
    ("save-3", make(lambda: regressor().save(3)), ValueError, "save: expected the name of a file"),
    ("load-3", make(lambda: laminar.saving.load_model(3)), ValueError, "load_model: expected the"),  # type: ignore[arg-type]  # the mistake
    ("categories", make(lambda: to_categorical("a")), ValueError, "the labels must be numbers"),
    (
        "not-pairs",
        make(lambda: optimizers.SGD().apply_gradients([3])),  # type: ignore[list-item]  # the mistake
        ValueError,
        "apply_gradients() takes (gradient, variable) pairs, got 3",
    ),
    ("function-3", make(lambda: laminar.function(3)), ValueError, "that can be called, got 3"),  # type: ignore[call-overload]  # the mistake
    (
        "function-signature",
        make(lambda: laminar.function(ops.relu, input_signature=3)),  # type: ignore[call-overload]  # the mistake
        ValueError,
        "relu: input_signature is a list with a TensorSpec for each argument, got 3",
    ),
    (
        "function-jit",
        make(lambda: laminar.function(ops.relu, jit_compile="yes")),  # type: ignore[call-overload]  # the mistake
        ValueError,
        "function: jit_compile must be True or False, got 'yes'",
    ),
    (
        "threads",
        make(lambda: laminar.set_threads(10**9)),
        ValueError,
        "of threads, at most 1024",
    ),
    ("pad-text", make(lambda: ops.pad(X, "a")), ValueError, "a pair (before, after) for each axis"),
    ("pad-half", make(lambda: ops.pad(X, 1.5)), ValueError, "a pair (before, after) for each axis"),
    ("pad-three", make(lambda: ops.pad(X, [1, 2, 3])), ValueError, "(before, after) for each axis"),
    (
        "pad-values",
        make(lambda: ops.pad(X, 1, constant_values=[1, 2])),
        ValueError,
        "pad: constant_values must be one number, got [1, 2]",
    ),
]
