"""Transfer: a network of `applications` learns one task, and its features serve another.

    python examples/transfer.py [--epochs 8] [--weights FILE | --weights imagenet]

A MobileNetV2 is trained on the digits 0 to 5; then it is frozen, and a new last layer learns 6 to 9
from twenty images of each. The same layer on a network that has learned nothing shows what the
features bring. `--weights` begins with weights that you have (a .weights.h5 file of Keras's), or
with those for ImageNet (9 MB, downloaded once), in the place of the first task.
"""

from __future__ import annotations

import argparse

import numpy as np

import laminar
from laminar import layers
from laminar.applications import MobileNetV2

SIDE = 32


def images() -> tuple[np.ndarray, np.ndarray]:
    """All digits as colour images of 32x32 from -1 to 1, and their labels."""
    (x, y), (x_test, y_test) = laminar.datasets.digits.load_data()
    grey = np.concatenate([x, x_test]).astype("float32") / 8 - 1
    large = np.asarray(laminar.ops.image.resize(grey[..., None], (SIDE, SIDE)))
    return np.repeat(large, 3, axis=-1), np.concatenate([y, y_test])


def network(weights: str | None = None) -> laminar.Model:
    """Features of an image: 1,280 numbers or, in the small form for digits, fewer."""
    if weights is None:
        small = MobileNetV2(
            (SIDE, SIDE, 3), alpha=0.35, include_top=False, weights=None, pooling="avg"
        )
        for layer in small.layers:
            if isinstance(layer, layers.BatchNormalization):
                layer.momentum = 0.9  # 0.999 is for hundreds of thousands of steps
        return small
    return MobileNetV2((SIDE, SIDE, 3), include_top=False, weights=weights, pooling="avg")


def classifier(features: laminar.Model, classes: int, rate: float) -> laminar.Model:
    x = layers.Input((SIDE, SIDE, 3))
    # Frozen batch normalization keeps its statistics.
    y = features(x, training=None if features.trainable else False)
    model = laminar.Model(x, layers.Dense(classes)(y))
    model.compile(
        laminar.optimizers.Adam(rate),
        laminar.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def accuracy_of_new_digits(features: laminar.Model, x: np.ndarray, y: np.ndarray) -> float:
    """6 to 9, learned from twenty images of each by one layer on frozen features."""
    features.trainable = False
    chosen = np.concatenate([np.flatnonzero(y == digit)[:20] for digit in range(6, 10)])
    others = np.setdiff1d(np.flatnonzero(y >= 6), chosen)
    model = classifier(features, 4, 1e-2)
    model.fit(x[chosen], y[chosen] - 6, epochs=30, batch_size=20, verbose=0)
    return float(model.evaluate(x[others], y[others] - 6, verbose=0)[1])


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    """Gives the accuracy on 6 to 9, and that without the first task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--weights", default=None)
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    x, y = images()
    untrained = accuracy_of_new_digits(network(), x, y)
    features = network(options.weights)
    if options.weights is None:
        known = y < 6
        model = classifier(features, 6, 2e-3)
        model.fit(x[known], y[known], epochs=options.epochs, batch_size=32, verbose=2)
    found = accuracy_of_new_digits(features, x, y)
    print(f"6 to 9 from 20 images each: {found:.1%}; without the first task {untrained:.1%}")
    return found, untrained


if __name__ == "__main__":
    main()
