"""The loops over data: what an epoch is, how they end, what is told when."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import callbacks, config, layers, ops, optimizers
from laminar.engine.errors import InvalidArgumentError, OutOfRangeError

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5]]) + 0.1).astype("float32")


def linear(**options: Any) -> laminar.Sequential:
    model = laminar.Sequential(
        [layers.Input((3,)), layers.Dense(1, kernel_initializer="ones", name="head")]
    )
    given: dict[str, Any] = {"optimizer": optimizers.SGD(0.1), "loss": "mse"}
    model.compile(**(given | options))
    return model


def batches(sizes: list[int]) -> Iterator[Any]:
    start = 0
    for size in sizes:
        yield X[start : start + size], Y[start : start + size]
        start += size


class Indexed:
    """Data that is indexed, and wants to know when an epoch ends."""

    def __init__(self) -> None:
        self.ended = 0

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        rows = slice(10 * index, 10 * index + 10)
        return X[rows], Y[rows]

    def on_epoch_end(self) -> None:
        self.ended += 1


def same_weights(a: laminar.Model, b: laminar.Model) -> None:
    for left, right in zip(a.get_weights(), b.get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)


# What an epoch is


def test_epochs_of_fixed_length_go_on_where_the_last_one_ended() -> None:
    short, long = linear(), linear()
    history = short.fit(X, Y, batch_size=10, steps_per_epoch=2, epochs=6, shuffle=False, verbose=0)
    long.fit(X, Y, batch_size=10, epochs=3, shuffle=False, verbose=0)
    assert history.epoch == [0, 1, 2, 3, 4, 5]
    same_weights(short, long)


@pytest.mark.parametrize(("steps", "expected"), [(3, [3, 1, 3, 1]), (5, [4, 4, 4, 4])])
def test_an_epoch_ends_where_the_data_does(steps: int, expected: list[int]) -> None:
    ends: list[int] = []
    told = callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: ends.append(batch + 1))
    model, whole = linear(), linear()
    options: Any = {"batch_size": 10, "epochs": 4, "shuffle": False, "verbose": 0}
    with pytest.warns(UserWarning, match="the data ended after . batches, . were .*epoch ends"):
        model.fit(X, Y, steps_per_epoch=steps, callbacks=told, **options)
    assert ends == [n + 1 for count in expected for n in range(count)]
    whole.fit(X, Y, **options | {"epochs": sum(expected) // 4})
    same_weights(model, whole)


def test_a_shorter_group_of_steps_is_told_of_by_its_last_number() -> None:
    ends: dict[str, list[int]] = {"train": [], "test": [], "predict": []}
    told = callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: ends["train"].append(batch),
        on_test_batch_end=lambda batch, logs: ends["test"].append(batch),
        on_predict_batch_end=lambda batch, logs: ends["predict"].append(batch),
    )
    model = linear(steps_per_execution=3)
    model.fit(X, Y, batch_size=10, callbacks=told, verbose=0)
    model.evaluate(X, Y, batch_size=10, callbacks=told, verbose=0)
    model.predict(X, batch_size=10, callbacks=told, verbose=0)
    assert ends == {"train": [2, 5], "test": [2, 5], "predict": [2, 5]}


def test_weights_of_classes_are_for_training_alone() -> None:
    x = np.linspace(0, 1, 20, dtype="float32").reshape(20, 1)
    y = np.arange(20) % 2
    model = laminar.Sequential([layers.Input((1,)), layers.Dense(2, activation="softmax")])
    model.compile(laminar.optimizers.SGD(0.0), "sparse_categorical_crossentropy")
    options: Any = {"validation_split": 0.5, "class_weight": {0: 5.0, 1: 9.0}, "verbose": 0}
    history = model.fit(x, y, **options).history
    loss = model.evaluate(x[10:], y[10:], verbose=0)
    assert history["val_loss"][0] == pytest.approx(loss, rel=1e-5)
    assert history["loss"][0] > 4 * loss


def test_the_size_of_batches_is_for_arrays() -> None:
    data = laminar.datasets.Dataset.from_tensor_slices((X, Y)).batch(20)
    model, plain = linear(), linear()
    model.fit(data, batch_size=7, verbose=0)
    plain.fit(data, verbose=0)
    same_weights(model, plain)
    assert model.predict(data.map(lambda x, y: x), batch_size=3, verbose=0).shape == (40, 1)


def test_data_that_is_indexed() -> None:
    data, by_index, by_array = Indexed(), linear(), linear()
    by_index.fit(data, epochs=3, verbose=0)
    by_array.fit(X, Y, batch_size=10, epochs=3, shuffle=False, verbose=0)
    assert data.ended == 3
    same_weights(by_index, by_array)
    assert by_index.predict(data, verbose=0).shape == (40, 1)


def test_data_that_ends_in_the_first_epoch_is_an_error() -> None:
    with pytest.raises(OutOfRangeError, match="ended after 2 batches, 3 were asked for"):
        linear().fit(batches([10, 10]), steps_per_epoch=3, epochs=2, verbose=0)


def test_data_that_ends_later_ends_training() -> None:
    with pytest.warns(UserWarning, match="ended after 1 batches, 2 .*: training ends") as told:
        history = (
            linear().fit(batches([10, 10, 10]), steps_per_epoch=2, epochs=9, verbose=0).history
        )
    assert len(history["loss"]) == 2
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="ended after 0 batches, 1 were"):
        history = linear().fit(batches([10, 10]), epochs=9, verbose=0).history
    assert len(history["loss"]) == 1


def test_fewer_steps_than_asked_for() -> None:
    model = linear()
    with pytest.warns(UserWarning, match="evaluate: the data ended after 2 batches, 5 were"):
        model.evaluate(batches([10, 10]), steps=5, verbose=0)
    with pytest.warns(UserWarning, match="predict: the data ended after 1 batches, 5 were"):
        assert model.predict(batches([4]), steps=5, verbose=0).shape == (4, 1)
    with pytest.raises(OutOfRangeError, match="evaluate: the data ended after 0"):
        model.evaluate(batches([]), verbose=0)


def test_validation_data_goes_before_the_split() -> None:
    model = linear()
    history = model.fit(
        X, Y, validation_split=0.5, validation_data=(X[:4], Y[:4]), shuffle=False, verbose=0
    ).history
    expected = float(((model.predict(X[:4], verbose=0) - Y[:4]) ** 2).mean())
    assert history["val_loss"][0] == pytest.approx(expected, rel=1e-5)
    other = linear()
    other.fit(X, Y, shuffle=False, verbose=0)
    same_weights(model, other)


def test_limits_for_trying_out() -> None:
    config.set_max_epochs(2)
    config.set_max_steps_per_epoch(3)
    try:
        told: list[int] = []
        count = callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: told.append(batch))
        with pytest.warns(UserWarning, match="epochs is limited to 2"):
            linear().fit(X, Y, batch_size=5, epochs=7, callbacks=count, verbose=0)
        assert told == [0, 1, 2] * 2
        with pytest.warns(UserWarning, match="steps_per_epoch is limited to 3"):
            linear().evaluate(X, Y, batch_size=5, steps=4, verbose=0)
        assert linear().predict(X, batch_size=5, verbose=0).shape == (15, 1)
    finally:
        config.set_max_epochs(None)
        config.set_max_steps_per_epoch(None)


# Many calls


@pytest.mark.slow
@pytest.mark.parametrize("call", ["predict", "predict_on_batch", "evaluate"])
def test_a_call_leaves_nothing_behind(call: str) -> None:
    """However often it is made: no objects, and no memory."""
    model = linear()
    given: dict[str, Any] = {} if call == "predict_on_batch" else {"verbose": 0}
    arrays = (X[:1], Y[:1]) if call == "evaluate" else (X[:1],)

    def repeat(count: int) -> tuple[int, int]:
        for _ in range(count):
            getattr(model, call)(*arrays, **given)
        gc.collect()
        return len(gc.get_objects()), tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        repeat(50)
        objects, held = repeat(50)
        later_objects, later_held = repeat(500)
    finally:
        tracemalloc.stop()
    assert later_objects - objects < 100
    assert later_held - held < 20_000


# Ends


def test_evaluation_and_prediction_can_be_stopped() -> None:
    class Stop(callbacks.Callback):
        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            self.model.stop_evaluating = batch == 1

        def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
            self.model.stop_predicting = batch == 2

    model = linear()
    loss = model.evaluate(X, Y, batch_size=10, callbacks=[Stop()], verbose=0)
    assert loss == pytest.approx(model.evaluate(X[:20], Y[:20], verbose=0), rel=1e-6)
    assert model.predict(X, batch_size=5, callbacks=[Stop()], verbose=0).shape == (15, 1)


def test_an_error_is_not_the_end_of_training(tmp_path: Path) -> None:
    ended: list[bool] = []

    class Fail(callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            raise KeyboardInterrupt

        def on_train_end(self, logs: Any = None) -> None:
            ended.append(True)

    logger = callbacks.CSVLogger(tmp_path / "log.csv")
    model = linear()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, callbacks=[logger, Fail()], verbose=0)
    assert not ended
    assert logger._file is None
    assert model.fit(X, Y, verbose=0).epoch == [0]


def test_moving_averages_are_in_place_after_fit() -> None:
    model = linear(optimizer=optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5))
    seen: list[Any] = []
    model.fit(
        X,
        Y,
        epochs=2,
        batch_size=40,
        callbacks=callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs: seen.append(model.get_weights()[0])
        ),
        verbose=0,
    )
    np.testing.assert_allclose(model.get_weights()[0], (seen[0] + seen[1]) / 2, rtol=1e-6)


# Single batches


def test_a_batch_has_results_of_its_own() -> None:
    model = linear(metrics=["mae"])
    expected = [
        [float((e**2).mean()), float(np.abs(e).mean())]
        for e in (model.predict(part, verbose=0) - y for part, y in batches([10, 30]))
    ]
    for (x, y), values in zip(batches([10, 30]), expected, strict=True):
        np.testing.assert_allclose(model.test_on_batch(x, y), values, rtol=1e-5)
    model.train_on_batch(X[:10], Y[:10])
    x, y = X[10:], Y[10:]
    loss = float(((model.predict(x, verbose=0) - y) ** 2).mean())
    assert model.train_on_batch(x, y, return_dict=True)["loss"] == pytest.approx(loss, rel=1e-5)


def test_class_weights_of_a_batch() -> None:
    labels = (X[:, 0] > 0).astype("int64")
    weights = np.where(labels == 1, 3.0, 0.5).astype("float32")
    found = []
    for options in ({"class_weight": {0: 0.5, 1: 3.0}}, {"sample_weight": weights}):
        model = linear(loss=laminar.losses.BinaryCrossentropy(from_logits=True))
        found.append(model.train_on_batch(X, labels[:, None], **options))
    assert found[0] == found[1]
    with pytest.raises(InvalidArgumentError, match="class_weight or sample_weight"):
        model.train_on_batch(X, labels, sample_weight=weights, class_weight={0: 1.0})


def test_batches_of_another_structure() -> None:
    a, b = layers.Input((3,), name="a"), layers.Input((3,), name="b")
    model = laminar.Model([a, b], layers.Subtract()([a, b]))
    model.compile("sgd", "mse")
    x, z = X[:4], X[4:8]
    for given in ([x, z], {"b": z, "a": x}, (x, z), {"a": x, "b": z}):
        np.testing.assert_array_equal(model.predict_on_batch(given), x - z)
        found = model.test_on_batch(given, np.zeros((4, 3), "float32"))
        assert found == pytest.approx(float(((x - z) ** 2).mean()), rel=1e-5)


def test_steps_get_the_data_as_it_was_given() -> None:
    seen: list[str] = []

    class Spy(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.total = laminar.metrics.Sum(name="total")

        def train_step(self, data: Any) -> Any:
            if isinstance(data, tuple):
                seen.append(f"tuple of {len(data)}")
                data = data[0]
            else:
                seen.append(type(data).__name__)
            self.total.update_state(ops.sum(data))
            return {"total": self.total.result()}

    def ones() -> Iterator[Any]:
        yield np.ones((2, 2))

    def singles() -> Iterator[Any]:
        yield (np.ones((2, 2)),)

    for x, y in (
        (np.ones((2, 2)), None),
        (np.ones((2, 2)), np.ones(2)),
        (ones(), None),
        (singles(), None),
    ):
        model = Spy()
        model.compile()
        assert model.fit(x, y, verbose=0).history["total"] == [4.0]
    assert seen == ["GraphTensor", "tuple of 2", "GraphTensor", "tuple of 1"]


def test_an_optimizer_is_told_of_the_end_of_training() -> None:
    told: list[list[str]] = []

    class Final(optimizers.SGD):
        def finalize_variable_values(self, var_list: Any) -> None:
            told.append([v.name for v in var_list])

    for optimizer in (Final(0.1), optimizers.LossScaleOptimizer(Final(0.1))):
        linear(optimizer=optimizer).fit(X, Y, verbose=0)
    assert told == [["kernel", "bias"]] * 2


def test_a_call_goes_over_the_layers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = linear(optimizer="sgd", metrics=["mae"])
    model.fit(X, Y, verbose=0)
    model.train_on_batch(X, Y)
    walks: list[Any] = []
    walk = layers.Layer._laminar_flatten_layers

    def counted(self: Any, include_self: bool = True) -> Any:
        walks.append(self)
        return walk(self, include_self)

    monkeypatch.setattr(layers.Layer, "_laminar_flatten_layers", counted)
    model.fit(X, Y, verbose=0)
    assert len(walks) == 1
    model.train_on_batch(X, Y)
    assert len(walks) == 2


def test_results_come_in_the_order_of_their_names() -> None:
    class Counts(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.total = laminar.metrics.Mean(name="a_total")

        def call(self, x: Any) -> Any:
            self.total.update_state(ops.sum(x))
            return x

    model = laminar.Sequential([layers.Input((3,)), Counts(), layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    named = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert model.metrics_names == ["loss", "mae", "a_total"]
    assert model.evaluate(X, Y, verbose=0) == [named[name] for name in model.metrics_names]

    class Reversed(laminar.Sequential):
        @property
        def metrics(self) -> Any:
            return super().metrics[::-1]

    turned = Reversed([layers.Input((3,)), layers.Dense(1)])
    turned.compile("sgd", "mse", metrics=["mae"])
    named = turned.evaluate(X, Y, verbose=0, return_dict=True)
    assert turned.evaluate(X, Y, verbose=0) == [named["mae"], named["loss"]]
