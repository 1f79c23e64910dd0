"""The networks of digits_as_graph.py, as layers: what a graph spells out, `compile` and `fit` do.

    python examples/digits_with_layers.py [softmax | deep | tuned | cnn | large] [--epochs 40]

`--dashboard page.html` draws the batch, the test images, the curves and the weights while it runs.
"""

from __future__ import annotations

import argparse
from typing import Any

import laminar
from laminar import initializers, layers
from laminar.callbacks import Callback, Dashboard
from laminar.datasets import read_data_sets
from laminar.optimizers.decay_schedules import ExponentialDecay

KERNEL: dict[str, Any] = {"kernel_initializer": initializers.TruncatedNormal(stddev=0.1)}
ACTIVE: dict[str, Any] = {
    **KERNEL,
    "bias_initializer": initializers.Constant(0.1),
    "activation": "relu",
}
UNITS = (200, 100, 60, 30)


def convolutions(channels: tuple[int, int, int], first: int, dropout: float) -> list[Any]:
    sizes = zip(channels, (first, 5, 4), (1, 2, 2), strict=True)
    return [
        *(layers.Conv2D(n, size, stride, padding="same", **ACTIVE) for n, size, stride in sizes),
        layers.Flatten(),
        layers.Dense(200, **ACTIVE),
        layers.Dropout(dropout),
    ]


def hidden(network: str) -> list[Any]:
    """The layers between the pixels and the scores."""
    if network == "softmax":
        return [layers.Flatten()]
    if network == "deep":
        return [layers.Flatten(), *(layers.Dense(n, "sigmoid", **KERNEL) for n in UNITS)]
    if network == "tuned":
        pairs = [(layers.Dense(n, **ACTIVE), layers.Dropout(0.25)) for n in UNITS]
        return [layers.Flatten(), *(layer for pair in pairs for layer in pair)]
    if network == "cnn":
        return convolutions((4, 8, 12), 5, dropout=0.0)
    return convolutions((6, 12, 24), 6, dropout=0.25)


def build(network: str, side: int) -> laminar.Sequential:
    scores = layers.Dense(10, activation="softmax", **KERNEL)
    return laminar.Sequential(
        [layers.Input((side, side, 1)), *hidden(network), scores], name=network
    )


def main(arguments: list[str] | None = None) -> float:
    """Gives the accuracy on the test images."""
    parser = argparse.ArgumentParser(description=__doc__)
    choices = ["softmax", "deep", "tuned", "cnn", "large"]
    parser.add_argument("network", nargs="?", choices=choices, default="large")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--data", choices=["digits", "mnist", "fashion_mnist"], default="digits")
    parser.add_argument("--dashboard", default=None, help="a file ending in .html or .png")
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    data = read_data_sets(options.data, reshape=False, one_hot=False)
    test = (data.test.images, data.test.labels)
    model = build(options.network, test[0].shape[1])
    model.summary()
    rate = 0.3 if options.network == "softmax" else ExponentialDecay(0.003, 2000, 1 / 2.718)
    optimizer = laminar.optimizers.SGD if options.network == "softmax" else laminar.optimizers.Adam
    model.compile(optimizer(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    watching: list[Callback] = []
    if options.dashboard:
        watching.append(Dashboard(options.dashboard, test, every=50))
    model.fit(
        data.train.images,
        data.train.labels,
        batch_size=100,
        epochs=options.epochs,
        validation_data=test,
        callbacks=watching,
        verbose=2,
    )
    return float(model.evaluate(*test, verbose=0)[1])


if __name__ == "__main__":
    main()
