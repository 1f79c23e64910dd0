"""What workers run in the tests of training over processes: `workers.py FOLDER`.

Each worker writes what it has found to FOLDER/<rank>.npz: of what all train together, and of its
share of the same by one process ("one").
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import layers, ops
from laminar.distribute import DataParallel, MultiWorker

rng = np.random.default_rng(0)
X = rng.normal(size=(103, 20)).astype("float32")
Y = rng.integers(0, 3, 103)
W = rng.uniform(size=103).astype("float32")
WORDS = rng.integers(1, 30, (52, 7)) * (rng.uniform(size=(52, 7)) < 0.7)

Found = dict[str, Any]


class ClippedByHand(laminar.Model):
    """Two outputs, a step of its own, and gradients that it looks at."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = layers.Dense(8, activation="relu")
        self.classes = layers.Dense(3)

    def call(self, inputs: Any) -> Any:
        hidden = self.hidden(inputs)
        return {"classes": self.classes(hidden), "hidden": hidden}

    def train_step(self, data: Any) -> Any:
        x, y = data
        with laminar.GradientTape() as tape:
            found = self(x, training=True)
            scores = ops.log_softmax(found["classes"])
            picked = ops.sum(scores * ops.one_hot(y, 3), axis=-1)
            # No mean over examples: the spread of the batch, and the largest of it.
            loss = -ops.mean(picked) + ops.std(found["hidden"]) + ops.max(found["classes"])
        variables = self.trainable_weights
        gradients = tape.gradient(loss, variables)
        norm = ops.sqrt(sum(ops.sum(g * g) for g in gradients))
        self.optimizer.apply([g / (1 + norm) for g in gradients], variables)
        return {"loss": loss, "norm": norm}


def dense(dtype: str = "float32", **options: Any) -> Any:
    return laminar.Sequential(
        [
            layers.Input((20,), dtype=dtype),
            layers.Dense(16, activation="tanh", dtype=dtype, **options),
            layers.Dense(3, activation="softmax", dtype=dtype),
        ]
    )


def words() -> Any:
    return laminar.Sequential(
        [
            layers.Input((7,), dtype="int32"),
            layers.Embedding(30, 6, mask_zero=True),
            layers.LSTM(5),
            layers.Dense(3, activation="softmax"),
        ]
    )


def normalized(**options: Any) -> Any:
    return laminar.Sequential(
        [
            layers.Input((20,)),
            layers.Dense(8),
            layers.BatchNormalization(**options),
            layers.Dense(3, activation="softmax"),
        ]
    )


def per_word() -> Any:
    """Masked positions count for nothing: the mean is over those that are left, of all."""
    return laminar.Sequential(
        [
            layers.Input((7,), dtype="int32"),
            layers.Embedding(30, 6, mask_zero=True),
            layers.Dense(3, activation="softmax"),
        ]
    )


SPARSE = "sparse_categorical_crossentropy"
MAKERS: dict[str, tuple[Callable[[], Any], dict[str, Any], dict[str, Any]]] = {
    "sgd": (dense, {"optimizer": "sgd"}, {}),
    "adam": (dense, {"optimizer": "adam"}, {"sample_weight": W}),
    "regularized": (lambda: dense(kernel_regularizer="l2"), {}, {}),
    "activity": (lambda: dense(activity_regularizer="l2"), {}, {}),
    "interpreted": (dense, {"jit_compile": False}, {}),
    "summed": (dense, {"loss": laminar.losses.SparseCategoricalCrossentropy(reduction="sum")}, {}),
    "few": (dense, {}, {"x": X[:9], "y": Y[:9], "batch_size": 4}),
    "words": (words, {}, {"x": WORDS, "y": Y[:52]}),
    "per_word": (per_word, {}, {"x": WORDS, "y": WORDS % 3}),
    "whole_statistics": (lambda: normalized(synchronized=True), {}, {}),
    "by_hand": (ClippedByHand, {"loss": None, "metrics": None}, {"validation_split": 0.0}),
    "accumulated": (
        dense,
        {"optimizer": laminar.optimizers.Adam(0.01, gradient_accumulation_steps=2)},
        {},
    ),
}


def trained(model: Any, options: dict[str, Any], given: dict[str, Any]) -> Any:
    options = {"optimizer": "sgd", "loss": SPARSE, "metrics": ["accuracy"], **options}
    model.compile(**options)
    given = {"x": X, "y": Y, "batch_size": 25, "epochs": 2, "validation_split": 0.2, **given}
    return model.fit(**given, shuffle=False, verbose=0).history


def noted(found: Found, name: str, model: Any, history: Any) -> None:
    for key, values in history.items():
        found[f"{name}/logs/{key}"] = np.array(values)
    for i, weight in enumerate(model.get_weights()):
        found[f"{name}/weights/{i}"] = weight


def of_case(name: str, who: str, strategy: Any) -> Found:
    """What is trained of a model of `MAKERS`."""
    make, options, given = MAKERS[name]
    found: Found = {}
    laminar.set_random_seed(3)
    model = make()
    config = dict(options)
    optimizer = config.get("optimizer")
    if isinstance(optimizer, laminar.Optimizer):
        config["optimizer"] = optimizer.from_config(optimizer.get_config())
    history = trained(model, {**config, "strategy": strategy}, given)
    noted(found, f"{name}/{who}", model, history)
    if name in ("sgd", "words", "few"):
        x, y = given.get("x", X), given.get("y", Y)
        found[f"{name}/{who}/predicted"] = model.predict(x, batch_size=10, verbose=0)
        found[f"{name}/{who}/tested"] = model.evaluate(x, y, batch_size=10, verbose=0)
        found[f"{name}/{who}/batch"] = model.train_on_batch(x[:7], y[:7])
    return found


def with_statistics(who: str, strategy: Any) -> Found:
    """Those of shares: the devices of one process have them, too."""
    found: Found = {}
    laminar.set_random_seed(3)
    model = normalized()
    noted(found, f"normalized/{who}", model, trained(model, {"strategy": strategy}, {}))
    return found


def float64(strategy: MultiWorker) -> Found:
    """Steps of a linear model, for a comparison with NumPy."""
    laminar.config.set_floatx("float64")  # of losses, too
    try:
        return _float64(strategy)
    finally:
        laminar.config.set_floatx("float32")


def _float64(strategy: MultiWorker) -> Found:
    model = laminar.Sequential(
        [layers.Input((20,), dtype="float64"), layers.Dense(1, dtype="float64")]
    )
    model.layers[-1].set_weights([np.ones((20, 1)), np.zeros(1)])
    model.compile(laminar.optimizers.SGD(0.125), "mse", strategy=strategy)
    x, y = X.astype("float64"), Y[:, None].astype("float64")
    history = model.fit(x, y, batch_size=25, epochs=3, shuffle=False, verbose=0)
    found: Found = {}
    noted(found, "float64", model, history.history)
    return found


def random(strategy: MultiWorker) -> Found:
    """Dropout: masks differ from worker to worker, the generators go on together."""
    laminar.set_random_seed(3)
    drop = layers.Dropout(0.5)
    model = laminar.Sequential([layers.Input((200,)), drop])

    class Shown(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model
            self.seen = laminar.Variable(np.zeros((4, 200), "float32"), trainable=False)

        def call(self, inputs: Any, training: bool = False) -> Any:
            return self.inner(inputs, training=training)

        def train_step(self, data: Any) -> Any:
            y = self(data[0], training=True)
            self.seen.assign(y)
            return {"loss": ops.mean(y)}

    shown = Shown()
    shown.compile("sgd", strategy=strategy)
    states = []
    for _ in range(2):
        shown.fit(np.ones((4, 200), "float32"), np.ones(4), batch_size=4, verbose=0)
        states.append(drop.seed_generator.state.numpy())
    return {"random/seen": shown.seen.numpy(), "random/states": np.array(states)}


def dealt(who: str, strategy: Any) -> Found:
    """A Dataset whose elements are dealt out, with batches of 25, the last of 3."""
    found: Found = {}
    laminar.set_random_seed(3)
    data = laminar.datasets.Dataset.from_tensor_slices((X, Y)).shuffle(103, seed=5)
    data = data.map(lambda x, y: (2 * x, y)).batch(25).prefetch(2)
    model = dense()
    model.compile("adam", SPARSE, metrics=["accuracy"], strategy=strategy)
    history = model.fit(data, epochs=2, verbose=0, validation_data=data)
    noted(found, f"dealt/{who}", model, history.history)
    found[f"dealt/{who}/predicted"] = model.predict(data, verbose=0)
    return found


def batches(ranks: Sequence[int]) -> Any:
    """Those of some workers, joined: of 5, 3 and 2 rows, and 6, 4 and 6 of them."""
    sizes, counts = [5, 3, 2], [6, 4, 6]
    begin = 0
    parts = []
    for size, count in zip(sizes, counts, strict=True):
        parts.append([range(begin + k * size, begin + (k + 1) * size) for k in range(count)])
        begin += size * count

    class Batches:
        def __iter__(self) -> Any:
            for k in range(max(counts[r] for r in ranks)):
                rows = [i for r in ranks if k < counts[r] for i in parts[r][k]]
                yield X[rows], Y[rows]

    return Batches()


def own_data(who: str, strategy: Any, ranks: Sequence[int]) -> Found:
    """Batches of each worker's own."""
    found: Found = {}
    laminar.set_random_seed(3)
    model = dense()
    model.compile("adam", SPARSE, metrics=["accuracy"], strategy=strategy)
    given = batches(ranks)
    history = model.fit(given, epochs=2, verbose=0, validation_data=given)
    noted(found, f"own_data/{who}", model, history.history)
    return found


def main() -> None:
    strategy = MultiWorker(timeout_seconds=60)
    rank, size = strategy.rank, strategy.num_replicas
    found: Found = {}
    for name in MAKERS:
        found |= of_case(name, "all", strategy)
    found |= with_statistics("all", strategy) | float64(strategy) | random(strategy)
    found |= own_data("all", MultiWorker(auto_shard="off"), [rank])
    found |= dealt("all", MultiWorker(auto_shard="element"))
    one: list[Callable[[], Found]] = [partial(of_case, name, "one", None) for name in MAKERS]
    one.append(partial(with_statistics, "one", DataParallel(size)))
    one.append(partial(own_data, "one", None, range(size)))
    one.append(partial(dealt, "one", None))
    for train in one[rank::size]:
        found |= train()
    np.savez(Path(sys.argv[1]) / f"{rank}.npz", **found)


if __name__ == "__main__":
    main()
