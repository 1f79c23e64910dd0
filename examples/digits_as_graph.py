"""Five networks that read digits, written as graphs and run by a session.

    python examples/digits_as_graph.py [softmax | deep | tuned | cnn | large] [--steps 3000]

From softmax regression to convolutions with dropout: what each step to a better network changes.
`examples/digits_with_layers.py` has the same networks as layers. The images are the 1,797 digits of
8x8 pixels that ship with laminar; `--data mnist` takes 70,000 of 28x28 (11 MB, downloaded once).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import laminar
from laminar import engine, ops
from laminar.datasets import DataSets, read_data_sets

CLASSES = 10


class Inputs(NamedTuple):
    """What a step is fed."""

    images: Any  # (batch, height, width, 1)
    labels: Any  # (batch, 10), one-hot
    learning_rate: Any
    keep: Any  # the share of units that dropout keeps


def inputs(side: int) -> Inputs:
    """The batch size is open: a batch of 100 and the whole test set run through one graph."""
    return Inputs(
        engine.placeholder("float32", (None, side, side, 1), name="images"),
        engine.placeholder("float32", (None, CLASSES), name="labels"),
        engine.placeholder("float32", (), name="learning_rate"),
        engine.placeholder("float32", (), name="keep"),
    )


def weights(shape: tuple[int, ...], bias: float) -> tuple[Any, Any]:
    """Normal numbers cut off at two deviations of 0.1, and biases that are all the same."""
    kernel = laminar.random.truncated_normal(shape, stddev=0.1)
    return engine.Variable(kernel, name="w"), engine.Variable(np.full(shape[-1], bias, "float32"))


def dense(x: Any, units: int, bias: float) -> Any:
    w, b = weights((x.shape[-1], units), bias)
    return ops.matmul(x, w) + b


def flat(x: Any) -> Any:
    return ops.reshape(x, (-1, math.prod(x.shape[1:])))


def dropout(x: Any, keep: Any) -> Any:
    """Units that stay are scaled, so that the sum is about the same; keep = 1 changes nothing."""
    stays = ops.cast(laminar.random.uniform(ops.shape(x)) < keep, "float32")
    return x * stays / keep


def softmax_regression(x: Inputs) -> Any:
    """One layer, from zeros: the scores are a linear function of the pixels."""
    pixels = flat(x.images)
    w = engine.Variable(np.zeros((pixels.shape[-1], CLASSES), "float32"), name="w")
    b = engine.Variable(np.zeros(CLASSES, "float32"), name="b")
    return ops.matmul(pixels, w) + b


def deep(x: Inputs) -> Any:
    """Five layers with sigmoids, which learn slowly: their slope is 1/4 at most."""
    y = flat(x.images)
    for units in (200, 100, 60, 30):
        y = ops.sigmoid(dense(y, units, bias=0.0))
    return dense(y, CLASSES, bias=0.0)


def tuned(x: Inputs) -> Any:
    """The same five with ReLU, biases of 0.1 so that units begin active, and dropout."""
    y = flat(x.images)
    for units in (200, 100, 60, 30):
        y = dropout(ops.relu(dense(y, units, bias=0.1)), x.keep)
    return dense(y, CLASSES, bias=0.1)


def convolutions(x: Inputs, channels: tuple[int, int, int], first: int, keep: Any) -> Any:
    """Three convolutions, which keep where a pixel is, and two layers on what they find."""
    y = x.images
    for size, stride, count in zip((first, 5, 4), (1, 2, 2), channels, strict=True):
        w, b = weights((size, size, y.shape[-1], count), bias=0.1)
        y = ops.relu(ops.conv(y, w, strides=stride, padding="same") + b)
    y = dropout(ops.relu(dense(flat(y), 200, bias=0.1)), keep)
    return dense(y, CLASSES, bias=0.1)


def cnn(x: Inputs) -> Any:
    """4, 8 and 12 channels."""
    return convolutions(x, (4, 8, 12), first=5, keep=1.0)


def large(x: Inputs) -> Any:
    """6, 12 and 24 channels, with dropout against learning by heart."""
    return convolutions(x, (6, 12, 24), first=6, keep=x.keep)


def fixed_rate(rate: float) -> Callable[[int], float]:
    return lambda step: rate


def decaying_rate(step: int) -> float:
    """From 0.003 to 0.0001: great steps first, then small ones, for curves without noise."""
    return 0.0001 + 0.0029 * math.exp(-step / 2000)


NETWORKS: dict[str, tuple[Callable[[Inputs], Any], Any, Callable[[int], float], float]] = {
    # the scores of a batch, the optimizer, its rate at a step, the share that dropout keeps
    "softmax": (softmax_regression, laminar.optimizers.SGD, fixed_rate(0.003), 1.0),
    "deep": (deep, laminar.optimizers.Adam, fixed_rate(0.003), 1.0),
    "tuned": (tuned, laminar.optimizers.Adam, decaying_rate, 0.75),
    "cnn": (cnn, laminar.optimizers.Adam, decaying_rate, 1.0),
    "large": (large, laminar.optimizers.Adam, decaying_rate, 0.75),
}


def train(network: str, data: DataSets, side: int, steps: int) -> list[tuple[int, float, float]]:
    """Train on batches of 100; gives (step, loss, accuracy) on the test images, in between."""
    build, optimizer, rate_at, keep = NETWORKS[network]
    found = []
    with engine.Graph().as_default() as graph:
        x = inputs(side)
        scores = build(x)
        # Of scores, not of probabilities: log(0) is not finite, this always is.
        losses = laminar.losses.categorical_crossentropy(x.labels, scores, from_logits=True)
        loss = ops.sum(losses) if network == "softmax" else 100 * ops.mean(losses)
        step = optimizer(x.learning_rate).minimize(loss)
        hits = ops.argmax(scores, axis=1) == ops.argmax(x.labels, axis=1)
        accuracy = ops.mean(ops.cast(hits, "float32"))
        mean_loss = ops.mean(losses)
        init = engine.global_variables_initializer()
    test = {x.images: data.test.images, x.labels: data.test.labels, x.keep: 1.0}
    with engine.Session(graph=graph) as session:
        session.run(init)
        for i in range(steps + 1):
            if i % max(steps // 5, 1) == 0:
                test_loss, hit = session.run([mean_loss, accuracy], test)
                found.append((i, float(test_loss), float(hit)))
                print(f"step {i:5d}: test loss {test_loss:.4f}, accuracy {hit:.2%}")
            images, labels = data.train.next_batch(100)
            fed = {x.images: images, x.labels: labels, x.keep: keep, x.learning_rate: rate_at(i)}
            session.run(step, fed)
    return found


def main(arguments: list[str] | None = None) -> float:
    """Gives the last accuracy on the test images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", nargs="?", choices=NETWORKS, default="large")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--data", choices=["digits", "mnist", "fashion_mnist"], default="digits")
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    data = read_data_sets(options.data, reshape=False)
    print(f"{options.network}: {NETWORKS[options.network][0].__doc__}")
    side = data.train.images.shape[1]
    return train(options.network, data, side, options.steps)[-1][-1]


if __name__ == "__main__":
    main()
