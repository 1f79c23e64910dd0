"""Recognise handwritten digits: train a small convolutional network, save it, load it, look at it.

    python examples/digits.py [--epochs 30]

The 1,797 images ship with laminar (UCI "Optical recognition of handwritten digits").
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import laminar
from laminar import layers

SHADES = " .:-=+*#%@"


def load() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Images as floats in [0, 1] with a channel axis, and their labels."""
    (x_train, y_train), (x_test, y_test) = laminar.datasets.digits.load_data()
    return (scaled(x_train), y_train), (scaled(x_test), y_test)


def scaled(images: np.ndarray) -> np.ndarray:
    """Grey values 0 to 16 as floats in [0, 1]."""
    return images[..., None].astype("float32") / 16


def build() -> laminar.Sequential:
    """Two convolutions, one hidden layer."""
    return laminar.Sequential(
        [
            layers.Input(shape=(8, 8, 1)),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dropout(0.4),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.4),
            layers.Dense(10, activation="softmax"),
        ],
        name="digits",
    )


def picture(image: np.ndarray) -> list[str]:
    """An image as lines of characters, darker for more ink."""
    steps = (image[..., 0] * (len(SHADES) - 1)).round().astype(int)
    return ["".join(SHADES[s] * 2 for s in row) for row in steps]


def show(images: np.ndarray, labels: np.ndarray, probabilities: np.ndarray) -> None:
    """Print images side by side over what the model makes of them."""
    rows = zip(*(picture(image) for image in images), strict=True)
    for row in rows:
        print("   ".join(row))
    captions = (
        f"{p.argmax()} ({p.max():.0%}), is {label}"
        for p, label in zip(probabilities, labels, strict=True)
    )
    print("   ".join(caption.ljust(16) for caption in captions))


def main(arguments: list[str] | None = None) -> float:
    """Train, save, load, evaluate; gives the accuracy on the test images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--folder", default=None, help="where to save digits.keras")
    options = parser.parse_args(arguments)

    laminar.set_random_seed(1)
    (x_train, y_train), (x_test, y_test) = load()
    model = build()
    model.summary()
    model.compile(
        optimizer=laminar.optimizers.Adam(2e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(
        x_train,
        y_train,
        batch_size=options.batch_size,
        epochs=options.epochs,
        validation_split=0.1,
    )

    path = Path(options.folder or tempfile.gettempdir()) / "digits.keras"
    model.save(path)
    loaded = laminar.saving.load_model(path)
    _, accuracy = loaded.evaluate(x_test, y_test, verbose=0)
    print(f"saved to {path} and loaded again: test accuracy {accuracy:.2%}")

    probabilities = loaded.predict(x_test, verbose=0)
    doubtful = np.argsort(probabilities.max(axis=1))[:2]
    chosen = np.concatenate([np.arange(3), doubtful])
    print("three test images, and the two the model is least sure of:")
    show(x_test[chosen], y_test[chosen], probabilities[chosen])
    return float(accuracy)


if __name__ == "__main__":
    main()
