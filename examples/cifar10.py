"""Colour images of ten kinds, with augmentation: CIFAR-10 where it is at hand, else made images.

    python examples/cifar10.py [--epochs 8] [--data cifar10]

Images are shifted, mirrored and changed in brightness and contrast while they are trained on, by
layers that do nothing afterwards. `--data cifar10` takes the 60,000 images of 32x32 (170 MB,
downloaded once); by default 2,000 images of ten coloured shapes are made.
"""

from __future__ import annotations

import argparse

import numpy as np

import laminar
from laminar import layers

SIDE = 32


def shapes(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Discs, rings, squares, crosses and stripes, in one of two colours; noise over all."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    images = np.zeros((count, SIDE, SIDE, 3), "float32")
    for image, label in zip(images, labels, strict=True):
        y, x = rows - rng.integers(12, 20), columns - rng.integers(12, 20)
        size, far = rng.integers(6, 10), np.hypot(rows - SIDE / 2, columns - SIDE / 2)
        covered = [
            np.hypot(y, x) < size,
            (np.hypot(y, x) < size) & (np.hypot(y, x) > size / 2),
            np.maximum(abs(y), abs(x)) < size,
            (np.minimum(abs(y), abs(x)) < 2) & (np.maximum(abs(y), abs(x)) < size),
            (abs(y) % 5 < 2) & (far < 14),
        ][label % 5]
        colour = np.array([0.9, 0.3, 0.2]) if label < 5 else np.array([0.2, 0.4, 0.9])
        image[covered] = colour * rng.uniform(0.7, 1.1)
        image += rng.normal(0.2, 0.08, image.shape)
    return images.clip(0, 1), labels


def load(source: str) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    if source == "shapes":
        return shapes(2000, seed=0), shapes(500, seed=1)
    (x, y), (x_test, y_test) = laminar.datasets.cifar10.load_data()
    return (x.astype("float32") / 255, y[:, 0]), (x_test.astype("float32") / 255, y_test[:, 0])


def build() -> laminar.Model:
    """Augmentation, then three blocks of convolutions that halve the image."""
    images = layers.Input((SIDE, SIDE, 3))
    x = layers.RandomTranslation(0.1, 0.1, fill_mode="reflect")(images)
    x = layers.RandomFlip("horizontal")(x)
    x = layers.RandomBrightness(0.1, value_range=(0, 1))(x)
    x = layers.RandomContrast(0.2, value_range=(0, 1))(x)
    for channels in (16, 32, 64):
        for _ in range(2):
            x = layers.Conv2D(channels, 3, padding="same", use_bias=False)(x)
            x = layers.Activation("relu")(layers.BatchNormalization(momentum=0.9)(x))
        x = layers.MaxPooling2D()(x)
    x = layers.Dropout(0.3)(layers.GlobalAveragePooling2D()(x))
    return laminar.Model(images, layers.Dense(10, activation="softmax")(x), name="cifar10")


def main(arguments: list[str] | None = None) -> float:
    """Gives the accuracy on the test images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--data", choices=["shapes", "cifar10"], default="shapes")
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    (x, y), test = load(options.data)
    model = build()
    steps = -(-len(x) // 64) * options.epochs
    rate = laminar.optimizers.schedules.CosineDecay(3e-3, steps)
    model.compile(
        laminar.optimizers.AdamW(rate, weight_decay=1e-3),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(x, y, batch_size=64, epochs=options.epochs, validation_data=test, verbose=2)
    return float(model.evaluate(*test, verbose=0)[1])


if __name__ == "__main__":
    main()
