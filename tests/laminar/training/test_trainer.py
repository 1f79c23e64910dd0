"""compile, fit, evaluate, predict and their parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, losses, metrics, ops, optimizers
from laminar.callbacks import Callback
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.core.checks import check_numerics

rng = np.random.default_rng(0)
X = rng.normal(size=(70, 4)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5], [0.0]]) + 0.3).astype("float32")
LABELS = (X[:, 0] > 0).astype("int64") + (X[:, 1] > 0)


def linear(**options: Any) -> laminar.Sequential:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(1, kernel_initializer="zeros")])
    settings: dict[str, Any] = {"optimizer": optimizers.SGD(0.1), "loss": "mse"}
    model.compile(**(settings | options))
    return model


def classifier(**options: Any) -> laminar.Sequential:
    model = laminar.Sequential(
        [layers.Input((4,)), layers.Dense(8, "relu"), layers.Dense(3, "softmax")]
    )
    model.compile(
        **(
            {
                "optimizer": "adam",
                "loss": "sparse_categorical_crossentropy",
                "metrics": ["accuracy"],
            }
            | options
        )
    )
    return model


def numpy_descent(batches: list[tuple[Any, Any]], rate: float) -> tuple[Any, Any, list[float]]:
    """Gradient descent on a linear model with mean squared error, in float64."""
    w, b = np.zeros((4, 1)), np.zeros(1)
    values = []
    for x, y in batches:
        error = x @ w + b - y
        values.append(float((error**2).mean()))
        w = w - rate * 2 * x.T @ error / len(x)
        b = b - rate * 2 * error.mean(axis=0)
    return w, b, values


def test_fit_is_gradient_descent() -> None:
    model = linear()
    history = model.fit(X, Y, batch_size=32, epochs=3, shuffle=False, verbose=0)
    batches = [(X[i : i + 32].astype("float64"), Y[i : i + 32]) for i in (0, 32, 64)]
    w, b, values = numpy_descent(batches * 3, 0.1)
    found_w, found_b = model.get_weights()
    np.testing.assert_allclose(found_w, w, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found_b, b, rtol=1e-5, atol=1e-6)
    sizes = np.array([32, 32, 6])
    expected = [np.average(values[e : e + 3], weights=sizes) for e in (0, 3, 6)]
    np.testing.assert_allclose(history.history["loss"], expected, rtol=1e-5)
    assert history.epoch == [0, 1, 2]


def test_eager_and_traced_steps_agree() -> None:
    weights = None
    for eager in (False, True):
        laminar.set_random_seed(3)
        model = classifier(run_eagerly=eager)
        model.fit(X, LABELS, epochs=2, verbose=0)
        if weights is None:
            weights = model.get_weights()
        else:
            for a, b in zip(weights, model.get_weights(), strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_same_seed_same_bits() -> None:
    runs = []
    for _ in range(2):
        laminar.set_random_seed(7)
        model = laminar.Sequential(
            [layers.Input((4,)), layers.Dense(8, "relu"), layers.Dropout(0.5), layers.Dense(1)]
        )
        model.compile("adam", "mse")
        model.fit(X, Y, epochs=2, verbose=0)
        runs.append(model.get_weights())
    for a, b in zip(*runs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_trace_serves_every_batch_size() -> None:
    model = classifier()
    model.fit(X, LABELS, batch_size=32, verbose=0)
    model.fit(X, LABELS, batch_size=7, verbose=0)
    step = model.make_train_function()
    assert step._function is not None
    assert step._function.trace_count == 1


def test_evaluate_weights_a_short_last_batch() -> None:
    model = classifier()
    loss, accuracy = model.evaluate(X, LABELS, batch_size=32, verbose=0)
    p = model.predict(X, verbose=0).astype("float64")
    assert loss == pytest.approx(-np.log(p[np.arange(70), LABELS]).mean(), rel=1e-5)
    assert accuracy == pytest.approx((p.argmax(1) == LABELS).mean())
    logs = model.evaluate(X, LABELS, verbose=0, return_dict=True)
    assert set(logs) == {"loss", "accuracy"}


def test_validation_split_takes_the_last_examples() -> None:
    model = linear()
    history = model.fit(X, Y, epochs=1, validation_split=0.2, shuffle=True, verbose=0)
    expected = ((model.predict(X[56:], verbose=0) - Y[56:]) ** 2).mean()
    assert history.history["val_loss"][0] == pytest.approx(expected, rel=1e-5)


def test_validation_data_and_frequency() -> None:
    history = linear().fit(
        X, Y, epochs=4, validation_data=(X[:9], Y[:9]), validation_freq=2, verbose=0
    )
    assert len(history.history["val_loss"]) == 2
    assert len(history.history["loss"]) == 4


def test_sample_weight_and_class_weight_agree() -> None:
    weights = {0: 1.0, 1: 3.0, 2: 0.5}
    by_example = np.array([weights[i] for i in LABELS], "float32")
    found = []
    for options in ({"sample_weight": by_example}, {"class_weight": weights}):
        laminar.set_random_seed(1)
        model = classifier()
        model.fit(X, LABELS, epochs=2, verbose=0, **options)
        found.append(model.get_weights())
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_weighted_metrics_take_the_weights() -> None:
    weight = np.where(LABELS == 0, 0.0, 1.0).astype("float32")
    model = classifier(weighted_metrics=["accuracy"])
    logs = model.evaluate(X, LABELS, sample_weight=weight, verbose=0, return_dict=True)
    hit = model.predict(X, verbose=0).argmax(1) == LABELS
    assert logs["accuracy"] == pytest.approx(hit.mean(), rel=1e-6)
    assert logs["weighted_accuracy"] == pytest.approx(hit[LABELS != 0].mean(), rel=1e-6)


def endless(batch: int = 10) -> Iterator[Any]:
    while True:
        yield X[:batch], Y[:batch]


def test_generator_with_steps() -> None:
    history = linear().fit(endless(), steps_per_epoch=5, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    model = linear()
    assert model.evaluate(endless(), steps=3, verbose=0) == pytest.approx(
        float((Y[:10] ** 2).mean()), rel=1e-5
    )


def test_list_of_batches_restarts_each_epoch() -> None:
    class Batches:
        def __len__(self) -> int:
            return 2

        def __iter__(self) -> Iterator[Any]:
            yield X[:32], Y[:32]
            yield X[32:], Y[32:]

    model = linear()
    model.fit(Batches(), epochs=3, verbose=0)
    batches = [(X[:32].astype("float64"), Y[:32]), (X[32:].astype("float64"), Y[32:])]
    w, _, _ = numpy_descent(batches * 3, 0.1)
    np.testing.assert_allclose(model.get_weights()[0], w, rtol=1e-5, atol=1e-6)


def test_initial_epoch_and_on_batch_methods() -> None:
    model = linear()
    assert model.fit(X, Y, initial_epoch=2, epochs=4, verbose=0).epoch == [2, 3]
    model = linear()
    first = model.train_on_batch(X, Y)
    assert first == pytest.approx(float((Y**2).mean()), rel=1e-5)
    assert model.test_on_batch(X, Y, return_dict=True)["loss"] < first
    assert model.predict_on_batch(X[:3]).shape == (3, 1)


def test_several_outputs_losses_and_metrics() -> None:
    x = layers.Input((4,), name="x")
    model = laminar.Model(
        x, [layers.Dense(1, name="a")(x), layers.Dense(3, "softmax", name="b")(x)]
    )
    model.compile(
        "sgd",
        loss={"a": "mse", "b": "sparse_categorical_crossentropy"},
        loss_weights={"a": 2.0},
        metrics={"b": ["accuracy"]},
    )
    logs = model.evaluate(X, [Y, LABELS], verbose=0, return_dict=True)
    assert set(logs) == {"loss", "a_loss", "b_loss", "b_accuracy"}
    assert logs["loss"] == pytest.approx(2 * logs["a_loss"] + logs["b_loss"], rel=1e-5)
    history = model.fit(X, {"a": Y, "b": LABELS}, epochs=2, verbose=0)
    assert history.history["loss"][1] < history.history["loss"][0]


def test_add_loss_and_regularizers_count() -> None:
    class Penalty(layers.Layer):
        def call(self, x: Any) -> Any:
            self.add_loss(ops.mean(x**2))
            return x

    x = layers.Input((4,))
    y = layers.Dense(1, kernel_initializer="ones", kernel_regularizer="l2")(Penalty()(x))
    model = laminar.Model(x, y)
    model.compile("sgd", "mse")
    found = model.evaluate(X, Y, batch_size=70, verbose=0)
    error = (X.sum(1, keepdims=True) - Y).astype("float64")
    assert found == pytest.approx((error**2).mean() + (X**2).mean() + 0.01 * 4, rel=1e-5)


def test_custom_train_step() -> None:
    class Custom(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(1)
            self.tracker = metrics.Mean(name="error")

        def call(self, x: Any) -> Any:
            return self.dense(x)

        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with laminar.GradientTape() as tape:
                loss = ops.mean(ops.abs(self(x, training=True) - y))
            grads = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(grads, self.trainable_variables)
            self.tracker.update_state(loss)
            return {"error": self.tracker.result()}

    model = Custom()
    model.compile(optimizers.Adam(0.05))
    history = model.fit(X, Y, epochs=15, verbose=0)
    assert list(history.history) == ["error"]
    assert history.history["error"][-1] < 0.5 * history.history["error"][0]


def test_subclassed_model() -> None:
    class Net(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = [layers.Dense(8, "relu"), layers.Dense(8, "relu")]
            self.head = layers.Dense(1)

        def call(self, x: Any, training: bool = False) -> Any:
            for layer in self.hidden:
                x = layer(x)
            return self.head(x)

    model = Net()
    model.compile("adam", losses.MeanSquaredError())
    history = model.fit(X, Y, epochs=5, verbose=0)
    assert len(model.weights) == 6
    assert history.history["loss"][-1] < history.history["loss"][0]


def test_frozen_layers_stay() -> None:
    model = classifier()
    model.fit(X, LABELS, verbose=0)
    model.layers[0].trainable = False
    frozen = model.layers[0].get_weights()
    head = model.layers[1].get_weights()
    model.fit(X, LABELS, verbose=0)
    np.testing.assert_array_equal(frozen[0], model.layers[0].get_weights()[0])
    assert not np.array_equal(head[0], model.layers[1].get_weights()[0])


def test_callbacks_are_told_in_order() -> None:
    told: list[str] = []

    class Tell(Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            told.append("begin")

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            told.append(f"epoch {epoch}")

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            told.append(f"batch {batch} {sorted(logs)}")

        def on_test_end(self, logs: Any = None) -> None:
            told.append("validated")

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            told.append(f"end {sorted(logs)}")
            self.model.stop_training = True

        def on_train_end(self, logs: Any = None) -> None:
            told.append("done")

    linear().fit(X[:64], Y[:64], epochs=5, validation_data=(X, Y), callbacks=[Tell()], verbose=0)
    assert told == [
        "begin",
        "epoch 0",
        "batch 0 ['loss']",
        "batch 1 ['loss']",
        "validated",
        "end ['loss', 'val_loss']",
        "done",
    ]


def test_predict_joins_batches_and_keeps_structure() -> None:
    x = layers.Input((4,))
    model = laminar.Model(x, {"a": layers.Dense(2)(x), "b": layers.Dense(3)(x)})
    found = model.predict(X, batch_size=16, verbose=0)
    assert found["a"].shape == (70, 2)
    np.testing.assert_allclose(found["b"], np.asarray(model(X)["b"]), rtol=1e-5, atol=1e-6)


def test_summary_text() -> None:
    lines: list[str] = []
    classifier().summary(print_fn=lines.append, line_length=80)
    text = "\n".join(lines)
    assert "Total params: 67 (268.00 B)" in text
    assert "(None, 8)" in text


@pytest.mark.parametrize(
    "options", [{}, {"jit_compile": False}, {"run_eagerly": True}], ids=["native", "plain", "eager"]
)
def test_a_step_that_fails_changes_nothing(options: dict[str, Any]) -> None:
    """Moving averages and the generators of dropout neither."""

    class Checked(laminar.layers.Layer):
        def call(self, x: Any) -> Any:
            return check_numerics(x, "activations")

    model = laminar.Sequential(
        [
            laminar.layers.Input((3,)),
            laminar.layers.BatchNormalization(),
            laminar.layers.Dropout(0.5),
            Checked(),
            laminar.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"], **options)
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    model.train_on_batch(x, y)
    variables = [*model.variables, *model.optimizer.variables]
    before = [v.numpy() for v in variables]
    x[2, 1] = np.nan
    for _ in range(2):
        with pytest.raises(InvalidArgumentError):
            model.train_on_batch(x, y)
        for v, value in zip(variables, before, strict=True):
            np.testing.assert_array_equal(v.numpy(), value, err_msg=v.path)
