"""What examples/digits.py does, in Keras; without saving the model.

python -m benchmarks.frameworks.digits_keras EPOCHS
"""

from __future__ import annotations

import sys

import keras

from ..problems import digits


def main(epochs: int) -> None:
    """Train, evaluate, print the accuracy."""
    problem, layers = digits(epochs), keras.layers
    test, train = problem.test_and_train
    model = keras.Sequential(
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
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(*train, batch_size=problem.batch, epochs=epochs, validation_split=0.1, verbose=0)
    _, accuracy = model.evaluate(*test, verbose=0)
    print(f"test accuracy {accuracy:.2%}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
