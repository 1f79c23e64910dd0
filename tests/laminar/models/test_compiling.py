"""Losses and metrics of a compiled model, matched with its outputs, and what layers report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, losses, metrics, ops
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.models.trainer import Trainer
from laminar.training.outputs import Outputs

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 3)).astype("float32")
Y = rng.normal(size=(12, 1)).astype("float32")
LABELS = rng.integers(0, 3, 12)


def linear(**options: Any) -> laminar.Sequential:
    model = laminar.Sequential([layers.Input((3,)), layers.Dense(1, name="head")])
    model.compile(**({"optimizer": "sgd", "loss": "mse"} | options))
    return model


def errors_of(model: Any, outputs: list[Any]) -> list[float]:
    return [float(((np.asarray(p) - Y) ** 2).mean()) for p in outputs]


# Outputs by name and place

NESTED = {"parts": [0, 1], "sum": 2}
SPLITS = [
    pytest.param([0, 1], [], None, [None, None], id="none"),
    pytest.param([0, 1], [], ["a", "b"], ["a", "b"], id="list"),
    pytest.param([0, 1], [], ("a", None), ["a", None], id="tuple"),
    pytest.param([0, 1], ["p", "q"], {"q": "b"}, [None, "b"], id="names"),
    pytest.param([0, 1], ["p", "p"], {"p_1": "b"}, [None, "b"], id="one-layer-twice"),
    pytest.param({"q": 1, "p": 0}, ["x", "y"], {"p": "a", "q": "b"}, ["a", "b"], id="dict"),
    pytest.param({"q": 1, "p": 0}, [], ["a", "b"], ["a", "b"], id="dict-by-place"),
    pytest.param(0, ["head"], {"head": "a"}, ["a"], id="one-by-name"),
    pytest.param(0, [], ["a"], ["a"], id="one-in-a-list"),
    pytest.param(NESTED, [], {"parts": ["a", "b"]}, ["a", "b", None], id="nested"),
    pytest.param(NESTED, [], {"parts": "a", "sum": "c"}, ["a", "a", "c"], id="shallow"),
    pytest.param([[0], [1, 2]], [], [["a"], ("b", "c")], ["a", "b", "c"], id="nested-lists"),
]


@pytest.mark.parametrize(("y_pred", "known", "value", "expected"), SPLITS)
def test_split(y_pred: Any, known: list[str], value: Any, expected: list[Any]) -> None:
    assert Outputs(y_pred, known).split(value, "loss", same_for_all=True) == expected


@pytest.mark.parametrize(
    ("y_pred", "value", "words"),
    [
        ([0, 1], ["a"], r"expected 2 entries, one for each output \(output_1, output_2\), got 1"),
        ([0, 1], {"z": "a"}, "no output is named 'z'; the outputs are output_1, output_2"),
        ([0, 1], "a", "the model has 2 outputs"),
        (NESTED, {"part": "a"}, "keys of \\['parts', 'sum'\\]"),
        (NESTED, {"parts": ["a"]}, "expected a list of 2"),
    ],
)
def test_split_errors(y_pred: Any, value: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        Outputs(y_pred, []).split(value, "loss")


# Losses


def two_outputs(**options: Any) -> Any:
    x = layers.Input((3,))
    model = laminar.Model(x, [layers.Dense(1, name="a")(x), layers.Dense(1, name="b")(x)])
    model.compile("sgd", **options)
    return model


def test_targets_of_trained_outputs_alone() -> None:
    model = two_outputs(loss=[None, "mse"])
    expected = errors_of(model, model.predict(X, verbose=0))[1]
    assert model.evaluate(X, [Y], verbose=0) == pytest.approx(expected, rel=1e-5)
    model = two_outputs(loss={"a": "mse"})
    expected = errors_of(model, model.predict(X, verbose=0))[0]
    assert model.evaluate(X, {"a": Y}, verbose=0) == pytest.approx(expected, rel=1e-5)
    model = two_outputs(loss="mse")
    with pytest.raises(InvalidArgumentError, match="the output 'b' has a loss and no target"):
        model.evaluate(X, {"a": Y}, verbose=0)


def test_nested_outputs() -> None:
    x = layers.Input((3,))
    a, b = layers.Dense(1, name="a")(x), layers.Dense(1, name="b")(x)
    model = laminar.Model(x, {"parts": [a, b], "sum": layers.Add(name="sum")([a, b])})
    model.compile("sgd", loss={"parts": "mse", "sum": "mae"}, loss_weights={"sum": 0.5})
    y = {"parts": [Y, Y], "sum": 2 * Y}
    found = model.evaluate(X, y, verbose=0, return_dict=True)
    p = model.predict(X, verbose=0)
    expected = errors_of(model, p["parts"])
    assert found["parts/a_loss"] == pytest.approx(expected[0], rel=1e-5)
    assert found["parts/b_loss"] == pytest.approx(expected[1], rel=1e-5)
    total = sum(expected) + 0.5 * float(np.abs(p["sum"] - 2 * Y).mean())
    assert found["loss"] == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("name", ["crossentropy", "ce"])
def test_crossentropy_by_the_shapes(name: str) -> None:
    softmax = laminar.Sequential([layers.Input((3,)), layers.Dense(3, "softmax")])
    sigmoid = laminar.Sequential([layers.Input((3,)), layers.Dense(1, "sigmoid")])
    one_hot = np.eye(3, dtype="float32")[LABELS]
    for model, y, full in (
        (softmax, LABELS, "sparse_categorical_crossentropy"),
        (softmax, one_hot, "categorical_crossentropy"),
        (sigmoid, one_hot[:, :1], "binary_crossentropy"),
    ):
        model.compile("sgd", name, metrics=[name])
        by_shape = model.evaluate(X, y, verbose=0)
        model.compile("sgd", full, metrics=[full])
        assert by_shape == model.evaluate(X, y, verbose=0)


def test_one_output_takes_one_target() -> None:
    with pytest.raises(InvalidArgumentError, match="the model has one output .*, got 2 arrays"):
        linear().evaluate(X, [Y, Y], verbose=0)


# Metrics and their names


def test_names_in_logs() -> None:
    def top(y_true: Any, y_pred: Any) -> Any:
        return ops.max(y_pred, axis=-1)

    model = linear(
        metrics=["mse", "MAE", top, metrics.MeanSquaredError(), metrics.Mean(name="m"), "mse"][:4],
        weighted_metrics=["mse", metrics.MeanAbsoluteError(name="MAE"), "mape"],
    )
    expected = ["loss", "mse", "MAE", "top", "mean_squared_error"]
    expected += ["weighted_mse", "weighted_MAE", "mape"]
    logs = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert list(logs) == model.metrics_names == expected
    assert model.evaluate(X, Y, verbose=0) == list(logs.values())

    def MeanGap(y_true: Any, y_pred: Any) -> Any:  # noqa: N802  # a name to be changed
        return ops.mean(y_true - y_pred)

    named = linear(metrics=[MeanGap, lambda y_true, y_pred: ops.mean(y_true)])
    assert named.evaluate(X, Y, verbose=0, return_dict=True).keys() == {
        "loss",
        "mean_gap",
        "lambda",
    }
    assert linear(metrics=["mse", "mse"]).evaluate(X, Y, verbose=0, return_dict=True).keys() == {
        "loss",
        "mse",
        "mse_1",
    }


def test_metrics_of_several_outputs_are_sorted_by_name() -> None:
    model = two_outputs(loss="mse", metrics={"b": ["mae", "mape"], "a": "mse"})
    logs = model.evaluate(X, [Y, Y], verbose=0, return_dict=True)
    assert list(logs) == ["loss", "a_loss", "b_loss", "a_mse", "b_mae", "b_mape"]
    assert model.metrics_names == list(logs)


def test_a_metric_without_sample_weights() -> None:
    class Last(metrics.Metric):
        def __init__(self) -> None:
            super().__init__(name="last")
            self.value = self.add_variable((), "zeros", name="value")

        def update_state(self, y_true: Any, y_pred: Any) -> None:
            self.value.assign(ops.mean(y_pred - y_true))

        def result(self) -> Any:
            return self.value.value

    model = linear(metrics=[Last()])
    found = model.evaluate(X, Y, batch_size=12, verbose=0, return_dict=True)["last"]
    assert found == pytest.approx(float((model.predict(X, verbose=0) - Y).mean()), rel=1e-4)


def test_dicts_of_results_are_merged() -> None:
    class Both(metrics.Metric):
        def __init__(self) -> None:
            super().__init__(name="both")
            self.inner = metrics.Mean()

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            self.inner.update_state(y_pred)

        def result(self) -> Any:
            return {"mean": self.inner.result(), "twice": 2 * self.inner.result()}

    found = linear(metrics=[Both()]).evaluate(X, Y, verbose=0, return_dict=True)
    assert set(found) == {"loss", "mean", "twice"}
    assert found["twice"] == 2 * found["mean"]


# What layers report


class Report(layers.Layer):
    def __init__(self, word: str = "size", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.word = word

    def call(self, x: Any) -> Any:
        self.add_metric(ops.abs(x), name=self.word)
        return x


@pytest.mark.parametrize("eager", [False, True])
def test_add_metric_is_the_mean_of_an_epoch(eager: bool) -> None:
    x = layers.Input((3,))
    model = laminar.Model(x, layers.Dense(1)(Report()(x)))
    model.compile("sgd", "mse", run_eagerly=eager)
    history = model.fit(X, Y, epochs=2, batch_size=6, validation_data=(2 * X, Y), verbose=0).history
    size = float(np.abs(X).mean())
    np.testing.assert_allclose(history["size"], [size, size], rtol=1e-5)
    np.testing.assert_allclose(history["val_size"], [2 * size, 2 * size], rtol=1e-5)
    assert model.metrics_names == ["loss", "size"]
    assert model.losses == []


def test_reports_of_one_name() -> None:
    x = layers.Input((3,))
    model = laminar.Model(x, layers.Dense(1)(Report()(Report()(x) * 2)))
    model.compile("sgd", "mse")
    logs = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert logs["size_1"] == pytest.approx(2 * logs["size"], rel=1e-5)


def test_a_model_reports_from_its_own_call() -> None:
    class Net(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.head = layers.Dense(1)

        def call(self, x: Any) -> Any:
            y = self.head(x)
            self.add_metric(ops.mean(y), name="height")
            return y

    model = Net()
    model.compile("sgd", "mse")
    logs = model.evaluate(X, Y, verbose=0, return_dict=True)
    expected = float(model.predict(X, verbose=0).mean())
    assert logs["height"] == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_a_metric_of_that_name_is_not_counted_twice() -> None:
    class Both(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.seen = metrics.Mean(name="seen")

        def call(self, x: Any) -> Any:
            self.add_metric(self.seen(ops.mean(x)), name="seen")
            return x

    x = layers.Input((3,))
    model = laminar.Model(x, layers.Dense(1)(Both()(x)))
    model.compile("sgd", "mse")
    logs = model.evaluate(X, Y, batch_size=4, verbose=0, return_dict=True)
    assert set(logs) == {"loss", "seen"}
    assert logs["seen"] == pytest.approx(float(X.mean()), rel=1e-4)


# compile itself


def test_eager_after_compile() -> None:
    seen: list[str] = []

    class Spy(layers.Layer):
        def call(self, x: Any) -> Any:
            seen.append(type(x).__name__)
            return x

    x = layers.Input((3,))
    model = laminar.Model(x, layers.Dense(1)(Spy()(x)))
    seen.clear()
    model.run_eagerly = True
    model.predict(X, verbose=0)
    assert seen == ["EagerTensor"]
    model.compile("sgd", "mse")
    assert not model.run_eagerly
    model.fit(X, Y, verbose=0)
    seen.clear()
    model.run_eagerly = True
    model.fit(X, Y, batch_size=12, verbose=0)
    assert seen == ["EagerTensor"]


def test_what_compile_was_told() -> None:
    model = linear(loss="mae", metrics=["mse"])
    assert model.loss == "mae"
    config = model.get_compile_config()
    assert config is not None
    again = laminar.Sequential([layers.Input((3,)), layers.Dense(1)])
    again.compile_from_config(config)
    assert again.get_compile_config() == config


def test_a_lambda_is_left_out_of_the_file(tmp_path: Path) -> None:
    model = linear(loss=lambda y, p: ops.mean((y - p) ** 2))
    model.fit(X, Y, verbose=0)
    with pytest.warns(UserWarning, match="saved without what compile.. was told: a lambda"):
        model.save(tmp_path / "m.keras")
    again = laminar.saving.load_model(tmp_path / "m.keras")
    assert not again.compiled
    np.testing.assert_array_equal(again.predict(X, verbose=0), model.predict(X, verbose=0))


def test_a_compile_of_its_own_is_not_called_by_loading(tmp_path: Path) -> None:
    class Two(laminar.Model):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.head = layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.head(x)

        def compile(self, first: Any, second: Any) -> None:  # type: ignore[override]  # its own
            super().compile(first, "mse")
            self.second = second

    model = Two()
    model.compile("sgd", "adam")
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "m.keras")
    with pytest.warns(UserWarning, match="method is custom: that of Two"):
        again = laminar.saving.load_model(tmp_path / "m.keras", custom_objects={"Two": Two})
    assert not again.compiled
    np.testing.assert_array_equal(again.predict(X, verbose=0), model.predict(X, verbose=0))


def test_loss_of_given_values() -> None:
    model = linear(loss=losses.MeanSquaredError(), metrics=["mae"])
    model.evaluate(X, Y, verbose=0)
    groups = (model.trainable_variables, model.non_trainable_variables, model.metrics_variables)
    before = model.get_weights()
    values = [[0 * v.numpy() for v in group] for group in groups]
    loss, after = model.stateless_compute_loss(
        values[0], values[1], values[2], y=Y, y_pred=X[:, :1]
    )
    assert float(loss) == pytest.approx(float(((Y - X[:, :1]) ** 2).mean()), rel=1e-5)
    assert [len(values) for values in after] == [len(group) for group in groups]
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_how_steps_run_can_be_changed() -> None:
    model = linear()
    model.fit(X, Y, verbose=0)
    model.jit_compile = False
    model.steps_per_execution = 2
    model.fit(X, Y, verbose=0)
    assert not model.explain_compiles()
    config = model.get_compile_config()
    assert config is not None
    assert (config["jit_compile"], config["steps_per_execution"]) == (False, 2)
    with pytest.raises(InvalidArgumentError, match="jit_compile must be True, False or 'auto'"):
        model.jit_compile = "always"  # type: ignore[assignment]  # the mistake
    with pytest.raises(InvalidArgumentError, match="steps_per_execution must be at least 1"):
        model.steps_per_execution = 0


def test_without_an_optimizer() -> None:
    model = laminar.Sequential([layers.Input((3,)), layers.Dense(1)])
    model.compile(None, loss="mse")
    assert model.evaluate(X, Y, verbose=0) > 0
    with pytest.raises(FailedPreconditionError, match="compiled without an optimizer"):
        model.fit(X, Y, verbose=0)


def test_a_layer_that_is_a_model_too() -> None:
    class Both(Trainer, layers.Dense):
        def __init__(self) -> None:
            layers.Dense.__init__(self, 1, use_bias=False)
            Trainer.__init__(self)

    model = Both()
    model.compile("sgd", "mse")
    losses = model.fit(X, Y, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert [w.shape for w in model.weights] == [(3, 1)]


def test_a_step_in_the_form_of_jax() -> None:
    class OnJax(laminar.Sequential):
        def train_step(self, state: Any, data: Any) -> Any:  # type: ignore[override]  # the mistake
            return {}, state

    model = OnJax([layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(InvalidArgumentError, match=r"train_step\(state, data\) is the form .* JAX"):
        model.fit(X, Y, verbose=0)


@pytest.mark.parametrize("weights", ["a", ["a"], {"head": "b"}, np.ones(2), np.array("a"), 1j])
def test_loss_weights_that_are_no_numbers_are_refused_before_any_step(weights: Any) -> None:
    model = linear()
    before = model.get_compile_config()
    with pytest.raises(InvalidArgumentError, match="compile: loss_weights: expected a number"):
        model.compile("adam", "mae", loss_weights=weights)
    assert model.get_compile_config() == before


@pytest.mark.parametrize("weights", [2, np.float32(2), np.array(2.0), [2.0], {"head": 2}])
def test_loss_weights_may_be_any_kind_of_number(weights: Any) -> None:
    model = linear(loss_weights=weights)
    error = model.evaluate(X, Y, verbose=0)
    np.testing.assert_allclose(error, 2 * errors_of(model, [model(X)])[0], rtol=1e-5)
