"""compile, fit, evaluate and predict as users call them: losses, metrics, weights, data."""

# mypy: disable-error-code="misc,name-defined"
# (classes derived from those of `keras`, which is any module here)

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .tools import data, fill, labels

X, Y = data("training x", 60, 6), labels("training y", 60, 3)


def uncompiled(keras: Any) -> Any:
    inputs = keras.Input(shape=(6,), name="features")
    x = keras.layers.Dense(8, activation="relu", name="dense_1")(inputs)
    x = keras.layers.Dense(8, activation="relu", name="dense_2")(x)
    outputs = keras.layers.Dense(3, activation="softmax", name="predictions")(x)
    return fill(keras.Model(inputs=inputs, outputs=outputs))


def compiled(keras: Any, **options: Any) -> Any:
    model = uncompiled(keras)
    defaults = {
        "optimizer": "rmsprop",
        "loss": "sparse_categorical_crossentropy",
        "metrics": ["sparse_categorical_accuracy"],
    }
    model.compile(**(defaults | options))
    return model


def end_to_end(keras: Any) -> Any:
    model = uncompiled(keras)
    model.compile(
        optimizer=keras.optimizers.RMSprop(),
        loss=keras.losses.SparseCategoricalCrossentropy(),
        metrics=[keras.metrics.SparseCategoricalAccuracy()],
    )
    history = model.fit(
        X[:40],
        Y[:40],
        batch_size=16,
        epochs=2,
        validation_data=(X[40:50], Y[40:50]),
        shuffle=False,
        verbose=0,
    )
    return {
        "history": history.history,
        "epochs": history.epoch,
        "params": history.params,
        "results": model.evaluate(X[50:], Y[50:], batch_size=4, verbose=0),
        "predictions": model.predict(X[:3], verbose=0),
    }


def own_loss_function(keras: Any) -> Any:
    def custom_mean_squared_error(y_true: Any, y_pred: Any) -> Any:
        return keras.ops.mean(keras.ops.square(y_true - y_pred), axis=-1)

    model = compiled(keras, loss=custom_mean_squared_error, metrics=None)
    one_hot = keras.ops.one_hot(Y, 3)
    history = model.fit(X, np.asarray(one_hot), batch_size=20, shuffle=False, verbose=0)
    return {"history": history.history, "weights": model.get_weights()}


def own_loss_class(keras: Any) -> Any:
    class CustomMSE(keras.losses.Loss):
        def __init__(self, regularization_factor: float = 0.1, name: str = "custom_mse") -> None:
            super().__init__(name=name)
            self.regularization_factor = regularization_factor

        def call(self, y_true: Any, y_pred: Any) -> Any:
            mse = keras.ops.mean(keras.ops.square(y_true - y_pred), axis=-1)
            reg = keras.ops.mean(keras.ops.square(0.5 - y_pred), axis=-1)
            return mse + reg * self.regularization_factor

    model = compiled(keras, loss=CustomMSE(), metrics=["mae", "mse"])
    weight = np.linspace(0, 1, 60).astype("float32")
    one_hot = keras.utils.to_categorical(Y, 3)
    history = model.fit(X, one_hot, sample_weight=weight, batch_size=20, shuffle=False, verbose=0)
    return {"history": history.history, "weights": model.get_weights()}


def own_metrics(keras: Any) -> Any:
    class CategoricalTruePositives(keras.metrics.Metric):
        def __init__(self, name: str = "categorical_true_positives", **kwargs: Any) -> None:
            super().__init__(name=name, **kwargs)
            self.true_positives = self.add_variable(shape=(), name="ctp", initializer="zeros")

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            y_pred = keras.ops.reshape(keras.ops.argmax(y_pred, axis=1), (-1, 1))
            values = keras.ops.equal(
                keras.ops.cast(y_true, "int32"), keras.ops.cast(y_pred, "int32")
            )
            values = keras.ops.cast(values, "float32")
            if sample_weight is not None:
                values = keras.ops.multiply(values, keras.ops.cast(sample_weight, "float32"))
            self.true_positives.assign_add(keras.ops.sum(values))

        def result(self) -> Any:
            return (
                self.true_positives.value
                if hasattr(self.true_positives, "value")
                else self.true_positives
            )

        def reset_state(self) -> None:
            self.true_positives.assign(0)

    def top_error(y_true: Any, y_pred: Any) -> Any:
        return 1 - keras.ops.max(y_pred, axis=-1)

    model = compiled(keras, metrics=[CategoricalTruePositives(), top_error, "acc"])
    history = model.fit(X, Y[:, None], batch_size=20, epochs=2, shuffle=False, verbose=0)
    return {
        "history": history.history,
        "evaluated": model.evaluate(X, Y[:, None], verbose=0),
        "named": model.evaluate(X, Y[:, None], verbose=0, return_dict=True),
    }


def weights_of_classes_and_samples(keras: Any) -> Any:
    class_weight = {0: 1.0, 1: 2.0, 2: 0.5}
    sample_weight = np.where(Y == 1, 2.0, 1.0)
    options = {"batch_size": 20, "shuffle": False, "verbose": 0, "epochs": 2}
    by_class = compiled(keras).fit(X, Y, class_weight=class_weight, **options)
    by_sample = compiled(keras).fit(X, Y, sample_weight=sample_weight, **options)
    weighted = compiled(keras, metrics=["accuracy"], weighted_metrics=["accuracy"]).fit(
        X, Y, sample_weight=sample_weight, validation_data=(X, Y, sample_weight), **options
    )
    return {
        "class": by_class.history,
        "sample": by_sample.history,
        "weighted": weighted.history,
    }


def validation(keras: Any) -> Any:
    model = compiled(keras, metrics=["accuracy", "crossentropy"][:1])
    options = {"batch_size": 16, "shuffle": False, "verbose": 0}
    held_out = model.fit(X, Y, validation_split=0.25, epochs=2, **options).history
    seldom = model.fit(
        X, Y, validation_data=(X[:8], Y[:8]), validation_freq=2, epochs=4, **options
    ).history
    listed = model.fit(
        X, Y, validation_data=(X, Y), validation_freq=[1, 3], epochs=3, **options
    ).history
    few_steps = model.fit(
        X,
        Y,
        validation_data=(X, Y),
        validation_batch_size=10,
        validation_steps=2,
        **options,
    ).history
    both = model.fit(X, Y, validation_split=0.25, validation_data=(X[:5], Y[:5]), **options).history
    return {
        "held_out": held_out,
        "seldom": seldom,
        "listed": listed,
        "few_steps": few_steps,
        "both": both,
    }


def generators(keras: Any) -> Any:
    def endless() -> Iterator[Any]:
        i = 0
        while True:
            rows = slice(i % 60, i % 60 + 10)
            yield X[rows], Y[rows]
            i += 10

    def once() -> Iterator[Any]:
        for i in range(0, 60, 20):
            yield X[i : i + 20], Y[i : i + 20], np.ones(20) * (i + 1)

    class Sequence(getattr(keras.utils, "PyDataset", object)):
        def __init__(self, batch: int, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.batch = batch

        def __len__(self) -> int:
            return -(-len(X) // self.batch)

        def __getitem__(self, index: int) -> Any:
            rows = slice(index * self.batch, (index + 1) * self.batch)
            return X[rows], Y[rows]

    model = compiled(keras)
    first = model.fit(endless(), steps_per_epoch=4, epochs=2, verbose=0).history
    second = model.fit(once(), verbose=0).history
    sequence = Sequence(16)
    third = model.fit(
        sequence, epochs=2, shuffle=False, validation_data=Sequence(25), verbose=0
    ).history
    return {
        "endless": first,
        "once": second,
        "sequence": third,
        "evaluated": model.evaluate(Sequence(7), verbose=0),
        "predicted": model.predict(Sequence(30), verbose=0),
        "some": model.predict(endless(), steps=2, verbose=0).shape,
    }


def batches_by_hand(keras: Any) -> Any:
    model = compiled(keras, metrics=["accuracy"])
    told: list[Any] = []
    for epoch in range(2):
        model.reset_metrics()
        for i in range(0, 60, 20):
            told.append(model.train_on_batch(X[i : i + 20], Y[i : i + 20]))
        told.append(model.test_on_batch(X, Y, return_dict=True))
        told.append(epoch)
    weighted = model.train_on_batch(X, Y, class_weight={0: 0.1, 1: 1.0, 2: 3.0})
    sampled = model.train_on_batch(X, Y, sample_weight=np.arange(60) / 60, return_dict=True)
    return {
        "told": told,
        "weighted": weighted,
        "sampled": sampled,
        "predicted": model.predict_on_batch(X[:5]),
        "metrics": {k: np.asarray(v) for k, v in model.get_metrics_result().items()},
    }


def names_for_everything(keras: Any) -> Any:
    """Losses, metrics and optimizers by name give logs under these names."""
    found = {}
    for loss, metrics in (
        ("mse", ["mae", "mse", "cosine_similarity"]),
        ("mean_absolute_error", ["mean_squared_error", "RootMeanSquaredError"]),
        ("huber", ["mape", keras.metrics.MeanAbsoluteError(name="my_error")]),
        ("log_cosh", [keras.losses.mean_squared_error, keras.metrics.R2Score()]),
    ):
        model = fill(keras.Sequential([keras.Input((6,)), keras.layers.Dense(2)]))
        model.compile("sgd", loss, metrics=metrics)
        found[loss] = model.evaluate(X, X[:, :2], verbose=0, return_dict=True)
    return found


def binary(keras: Any) -> Any:
    model = fill(keras.Sequential([keras.Input((6,)), keras.layers.Dense(1, activation="sigmoid")]))
    model.compile(
        "adam",
        "binary_crossentropy",
        metrics=["accuracy", "AUC", keras.metrics.Precision(), keras.metrics.Recall(name="found")],
    )
    y = (Y == 1).astype("int32")
    flat = model.fit(X, y, batch_size=30, epochs=2, shuffle=False, verbose=0).history
    column = model.evaluate(X, y[:, None], verbose=0)
    return {"flat": flat, "column": column}


def steps_and_epochs(keras: Any) -> Any:
    model = compiled(keras, steps_per_execution=2)
    counted: list[Any] = []

    class Count(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            counted.append(("begin", batch))

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            counted.append(("end", batch, sorted(logs)))

    history = model.fit(
        X,
        Y,
        batch_size=10,
        initial_epoch=1,
        epochs=2,
        callbacks=[Count()],
        shuffle=False,
        verbose=0,
    )
    limited = compiled(keras).fit(
        X, Y, batch_size=10, steps_per_epoch=3, epochs=2, shuffle=False, verbose=0
    )
    return {
        "counted": counted,
        "epoch": history.epoch,
        "history": history.history,
        "limited": limited.history,
    }


SCRIPTS = [
    end_to_end,
    own_loss_function,
    own_loss_class,
    own_metrics,
    weights_of_classes_and_samples,
    validation,
    generators,
    batches_by_hand,
    names_for_everything,
    binary,
    steps_and_epochs,
]
