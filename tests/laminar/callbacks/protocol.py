"""What callbacks are told, in scenarios that run on laminar and on Keras alike.

KERAS_BACKEND=jax python protocol.py > protocol.json      # the reference, from Keras
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

X = (np.arange(40, dtype="float32").reshape(10, 4) % 7) / 7
Y = X[:, :1] * 2
METHODS = [
    f"on_{what}_{when}"
    for what in ("train", "test", "predict", "epoch", "train_batch", "test_batch", "predict_batch")
    for when in ("begin", "end")
]


def recorder(keras: Any, act: Callable[[str, Any, Any], None] | None = None) -> Any:
    """A callback that writes down all that it is told; `act` may do something then."""

    class Recorder(keras.callbacks.Callback):  # type: ignore[misc]  # of either toolkit
        def __init__(self) -> None:
            super().__init__()
            self.told: list[Any] = []

    def method(name: str) -> Any:
        def told(self: Any, *args: Any, logs: Any = None) -> None:
            if args and (args[-1] is None or isinstance(args[-1], dict)):
                *args, logs = args  # type: ignore[assignment]  # a list of what stands before
            numbers = [int(a) for a in args]
            kinds = sorted({type(v).__name__ for v in (logs or {}).values()} - {"ndarray"})
            self.told.append([name, *numbers, sorted(logs or {}), kinds])
            if act is not None:
                act(name, numbers[0] if numbers else None, self.model)

        return told

    for name in METHODS:
        setattr(Recorder, name, method(name))
    return Recorder()


def compiled(keras: Any, **options: Any) -> Any:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile(**({"optimizer": "sgd", "loss": "mse", "metrics": ["mae"]} | options))
    return model


def stop_at(event: str, number: int | None) -> Callable[[str, Any, Any], None]:
    def act(name: str, found: Any, model: Any) -> None:
        if name == event and found == number:
            model.stop_training = model.stop_evaluating = model.stop_predicting = True

    return act


def fit(keras: Any, act: Any = None, compiling: Any = None, **options: Any) -> Any:
    told = recorder(keras, act)
    given = {"x": X, "y": Y, "batch_size": 4, "verbose": 0, "callbacks": [told]} | options
    model = compiled(keras, **(compiling or {}))
    model.fit(**given)
    return told.told


def evaluate(keras: Any, act: Any = None, compiling: Any = None, **options: Any) -> Any:
    told = recorder(keras, act)
    model = compiled(keras, **(compiling or {}))
    model.evaluate(X, Y, batch_size=4, verbose=0, callbacks=[told], **options)
    return told.told


def predict(keras: Any, act: Any = None, compiling: Any = None, **options: Any) -> Any:
    told = recorder(keras, act)
    model = compiled(keras, **(compiling or {}))
    model.predict(X, batch_size=4, verbose=0, callbacks=[told], **options)
    return told.told


def forever() -> Any:
    while True:
        yield X[:4], Y[:4]


SCENARIOS: dict[str, Callable[[Any], Any]] = {
    "fit": lambda k: fit(k, epochs=2),
    "fit-validation": lambda k: fit(k, epochs=2, validation_data=(X, Y)),
    "fit-validation-split": lambda k: fit(k, validation_split=0.4),
    "fit-validation-freq": lambda k: fit(k, epochs=4, validation_data=(X, Y), validation_freq=2),
    "fit-validation-listed": lambda k: fit(
        k, epochs=3, validation_data=(X, Y), validation_freq=[1, 3]
    ),
    "fit-initial-epoch": lambda k: fit(k, initial_epoch=2, epochs=4),
    "fit-initial-epoch-is-last": lambda k: fit(k, initial_epoch=2, epochs=2),
    "fit-generator": lambda k: fit(
        k, x=forever(), y=None, batch_size=None, steps_per_epoch=2, epochs=2
    ),
    "fit-validation-steps": lambda k: fit(
        k, validation_data=forever(), validation_steps=2, epochs=2
    ),
    "fit-grouped": lambda k: fit(k, epochs=2, compiling={"steps_per_execution": 2}),
    "fit-grouped-whole": lambda k: fit(k, batch_size=5, compiling={"steps_per_execution": 2}),
    "fit-grouped-validation": lambda k: fit(
        k, validation_data=(X, Y), compiling={"steps_per_execution": 2}
    ),
    "stop-at-epoch-begin": lambda k: fit(k, stop_at("on_epoch_begin", 0), epochs=2),
    "stop-at-batch-begin": lambda k: fit(k, stop_at("on_train_batch_begin", 1), epochs=2),
    "stop-at-batch-end": lambda k: fit(
        k, stop_at("on_train_batch_end", 1), epochs=2, validation_data=(X, Y)
    ),
    "stop-at-epoch-end": lambda k: fit(k, stop_at("on_epoch_end", 0), epochs=3),
    "stop-at-test-begin": lambda k: fit(
        k, stop_at("on_test_begin", None), epochs=2, validation_data=(X, Y)
    ),
    "stop-at-test-batch": lambda k: fit(
        k, stop_at("on_test_batch_end", 0), epochs=2, validation_data=(X, Y)
    ),
    "evaluate": evaluate,
    "evaluate-steps": lambda k: evaluate(k, steps=2),
    "evaluate-grouped": lambda k: evaluate(k, compiling={"steps_per_execution": 2}),
    "evaluate-stopped": lambda k: evaluate(k, stop_at("on_test_batch_end", 0)),
    "predict": predict,
    "predict-steps": lambda k: predict(k, steps=2),
    "predict-grouped": lambda k: predict(k, compiling={"steps_per_execution": 2}),
    "predict-stopped": lambda k: predict(k, stop_at("on_predict_batch_end", 0)),
}

if __name__ == "__main__":
    import keras  # type: ignore[import-untyped, unused-ignore]  # the reference

    for name, run in SCENARIOS.items():
        print("{" if name == next(iter(SCENARIOS)) else ",")
        print(f"{json.dumps(name)}: {json.dumps(run(keras))}", end="")
    print("}")
