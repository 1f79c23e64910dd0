"""Classes of the user's own that write no config: the arguments of their constructors do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import (
    constraints,
    initializers,
    layers,
    losses,
    metrics,
    models,
    ops,
    optimizers,
    regularizers,
)
from laminar.engine.errors import AlreadyExistsError, InvalidArgumentError
from laminar.saving import load_model

X = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")


class Block(layers.Layer):
    def __init__(
        self, units: int, inner: Any = None, acts: Any = ("relu",), **options: Any
    ) -> None:
        super().__init__(**options)
        self.inner = inner or layers.Dense(units)
        self.functions = [laminar.activations.get(name) for name in acts]

    def call(self, x: Any) -> Any:
        x = self.inner(x)
        for function in self.functions:
            x = function(x)
        return x


class Stack(layers.Layer):
    def __init__(self, blocks: Any, *, scale: float = 2.0) -> None:  # without **options
        super().__init__()
        self.blocks = list(blocks)
        self.scale = scale

    def call(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x * self.scale


class Wide(layers.Dense):
    """Derived from a layer that has a config."""

    def __init__(self, units: int, times: int, **options: Any) -> None:
        super().__init__(units, **options)
        self.times = times

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        return super().call(inputs) * self.times


class Weighed(losses.Loss):
    def __init__(self, alpha: float, beta: float = 2.0, name: str = "weighed") -> None:
        super().__init__(name=name)
        self.alpha, self.beta = alpha, beta

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return ops.mean(ops.abs(y_true - y_pred) * self.alpha, axis=-1)


class Power(metrics.Metric):
    def __init__(self, power: int = 1, name: str = "power", **options: Any) -> None:
        super().__init__(name=name, **options)
        self.power = power
        self.total = self.add_weight(shape=(), initializer="zeros", name="total")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.total.assign_add(ops.sum(ops.abs(y_true - y_pred) ** self.power))

    def result(self) -> Any:
        return self.total


class Fill(initializers.Initializer):
    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        return ops.full(shape, self.value, dtype=dtype)


class Ridge(regularizers.Regularizer):
    def __init__(self, strength: float) -> None:
        self.strength = strength

    def __call__(self, x: Any) -> Any:
        return self.strength * ops.sum(x * x)


class Box(constraints.Constraint):
    def __init__(self, most: float) -> None:
        self.most = most

    def __call__(self, w: Any) -> Any:
        return ops.clip(w, -self.most, self.most)


class Slower(optimizers.schedules.LearningRateSchedule):
    def __init__(self, base: float, k: float = 2.0) -> None:
        self.base, self.k = base, k

    def __call__(self, step: Any) -> Any:
        return self.base / (1.0 + self.k * ops.cast(step, "float32"))


class Descent(optimizers.SGD):
    def __init__(self, learning_rate: Any = 0.1, extra: int = 5, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.extra = extra


class Net(laminar.Model):
    def __init__(self, width: int, blocks: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.first = layers.Dense(width)
        self.blocks = blocks or []

    def call(self, x: Any) -> Any:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x


OWN = (Block, Stack, Wide, Weighed, Power, Fill, Ridge, Box, Slower, Descent, Net)
OBJECTS = {kind.__name__: kind for kind in OWN}


def stack(*inner: Any) -> Any:
    return laminar.Sequential([layers.Input((3,)), *inner])


def again(model: Any, folder: Path, suffix: str = ".keras") -> Any:
    model.save(folder / f"m{suffix}")
    found = load_model(folder / f"m{suffix}", custom_objects=OBJECTS)
    np.testing.assert_array_equal(np.asarray(found(X)), np.asarray(model(X)))
    return found


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: Block(4, acts=("relu", "tanh")),
        lambda: Stack([Block(4), Block(5, inner=layers.Dense(5, activation="tanh"))], scale=3.0),
        lambda: Wide(4, times=7, kernel_initializer=Fill(0.3)),
    ],
)
def test_layers(make: Any, suffix: str, tmp_path: Path) -> None:
    again(stack(make()), tmp_path, suffix)


def test_nested_ones_are_made_again() -> None:
    model = stack(Stack([Block(4), Block(5)], scale=3.0))
    for copied in (models.clone_model(model), models.model_from_json(model.to_json(), OBJECTS)):
        layer: Any = copied.layers[0]
        assert (layer.scale, len(layer.blocks)) == (3.0, 2)
        assert isinstance(layer.blocks[1], Block)


def test_models(tmp_path: Path) -> None:
    model = Net(4, blocks=[Block(3)])
    model(X)
    found = again(model, tmp_path)
    assert isinstance(found.blocks[0], Block)


def test_what_compile_was_given(tmp_path: Path) -> None:
    model = stack(layers.Dense(2))
    model.compile(Descent(Slower(0.1, k=3.0), extra=9), Weighed(0.5, beta=7.0), metrics=[Power(2)])
    model.fit(X, X[:, :2], verbose=0)
    found = again(model, tmp_path)
    assert (found.optimizer.extra, found.loss.alpha, found.loss.beta) == (9, 0.5, 7.0)
    rates = [float(np.asarray(m.optimizer.learning_rate)) for m in (model, found)]
    assert rates[0] == rates[1] == np.float32(0.1) / np.float32(4.0)
    logs = [m.evaluate(X, X[:, :2], return_dict=True, verbose=0) for m in (model, found)]
    assert logs[0] == logs[1]


def test_options_of_weights(tmp_path: Path) -> None:
    dense = layers.Dense(
        2, kernel_initializer=Fill(0.3), kernel_regularizer=Ridge(0.1), kernel_constraint=Box(0.9)
    )
    found = again(stack(dense), tmp_path).layers[0]
    assert found.kernel_initializer.value == 0.3
    assert found.kernel_regularizer.strength == 0.1
    assert found.kernel_constraint.most == 0.9


def test_arguments_without_a_name(tmp_path: Path) -> None:
    class Many(layers.Layer):
        def __init__(self, *values: int) -> None:
            super().__init__()
            self.values = values

        def call(self, x: Any) -> Any:
            return x

    with pytest.raises(InvalidArgumentError, match="Many was made with more arguments"):
        stack(Many(1, 2)).save(tmp_path / "m.keras")


def test_an_argument_that_no_file_holds(tmp_path: Path) -> None:
    model = stack(Block(2, inner=layers.Dense(2, activation=lambda x: x)))
    with pytest.raises(InvalidArgumentError, match="lambda"):
        model.save(tmp_path / "m.keras")


# Variables and files of one's own


class Counter(layers.Layer):
    """Keeps a state of its own beside weights, and a file."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.state = np.zeros(3, "float32")
        self.text = "nothing"

    def call(self, x: Any) -> Any:
        return x

    def save_own_variables(self, store: Any) -> None:
        store["state"] = self.state

    def load_own_variables(self, store: Any) -> None:
        self.state = np.asarray(store["state"])

    def save_assets(self, dir_path: Any) -> None:
        with open(os.path.join(dir_path, "notes.txt"), "w") as file:
            file.write(self.text)

    def load_assets(self, dir_path: Any) -> None:
        with open(os.path.join(dir_path, "notes.txt")) as file:
            self.text = file.read()


def test_own_variables_and_assets(tmp_path: Path) -> None:
    model = stack(layers.Dense(2), Counter())
    model.layers[1].state = np.arange(3, dtype="float32")
    model.layers[1].text = "kept"
    model.save(tmp_path / "m.keras")
    found = load_model(tmp_path / "m.keras", custom_objects={"Counter": Counter})
    np.testing.assert_array_equal(found.layers[1].state, [0.0, 1.0, 2.0])
    assert found.layers[1].text == "kept"


def test_state_trees() -> None:
    model = stack(layers.Dense(2, name="dense"))
    model.compile("adam", "mse")
    model.fit(X, X[:, :2], verbose=0)
    tree = model.get_state_tree(value_format="numpy_array")
    assert set(tree) == {
        "trainable_variables",
        "non_trainable_variables",
        "optimizer_variables",
        "metrics_variables",
    }
    before = model.get_weights()
    model.fit(X, X[:, :2], verbose=0)
    model.set_state_tree(tree)
    for mine, old in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(mine, old)
    assert int(model.optimizer.iterations) == 1


# Existing files


class Terminal:
    """Answers questions as a user would."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self.lines.pop(0) + "\n"


@pytest.mark.parametrize(("answers", "replaced"), [(("what", "y"), True), (("n",), False)])
def test_a_terminal_is_asked(
    answers: tuple[str, ...], replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.keras"
    path.write_bytes(b"older")
    monkeypatch.setattr("sys.stdin", Terminal(*answers))
    stack(layers.Dense(1)).save(path, overwrite=False)
    assert (path.read_bytes() != b"older") == replaced


def test_nobody_is_there_to_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.weights.h5"
    path.write_bytes(b"older")
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(AlreadyExistsError):
        stack(layers.Dense(1)).save_weights(path, overwrite=False)
    assert path.read_bytes() == b"older"
