"""Sequence to sequence with attention, its encoder and its decoder on devices of their own.

    python examples/translation.py [--epochs 30] [--devices 2]

Dates as people write them ("march 7, 1998") become dates as machines do ("1998-03-07"). The encoder
reads the letters in both directions; the decoder writes one letter after another, and looks at each
step at the places of the input that its state asks for.

Source: Luong, Pham and Manning, "Effective approaches to attention-based neural machine
translation", EMNLP 2015, section 3.1; the placement of layers on devices as in Sutskever, Vinyals
and Le, "Sequence to sequence learning with neural networks", NIPS 2014, section 3.5.
"""

from __future__ import annotations

import argparse
import datetime
from typing import Any

import numpy as np

import laminar
from laminar import engine, layers, ops

LETTERS = " ,0123456789abcdefghijlmnoprstuvy"
DIGITS = "<-0123456789"  # "<" begins
LONGEST, WIDTH = 18, 64


def examples(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Letters of the dates, 0 where one has ended, and the ten characters of the results."""
    rng = np.random.default_rng(seed)
    x, y = np.zeros((count, LONGEST), "int32"), np.zeros((count, 10), "int32")
    for i in range(count):
        day = datetime.date(1950, 1, 1) + datetime.timedelta(int(rng.integers(0, 36500)))
        text = f"{day:%B} {day.day}, {day.year}".lower()
        x[i, : len(text)] = [LETTERS.index(c) + 1 for c in text]
        y[i] = [DIGITS.index(c) for c in day.isoformat()]
    return x, y


class Translator(laminar.Model):
    """Scores of each character of the result, given those before it."""

    def __init__(self, devices: list[str]) -> None:
        super().__init__(name="translator")
        self.reading, self.writing = devices[0], devices[-1]
        self.letters = layers.Embedding(len(LETTERS) + 1, WIDTH, mask_zero=True)
        self.encoder = layers.Bidirectional(layers.LSTM(WIDTH // 2, return_sequences=True))
        self.digits = layers.Embedding(len(DIGITS), WIDTH)
        self.decoder = layers.LSTM(WIDTH, return_sequences=True)
        self.attention = layers.Attention()
        self.scores = layers.Dense(len(DIGITS))

    def call(self, inputs: Any) -> Any:
        text, before = inputs
        with engine.device(self.reading):
            memory = self.encoder(self.letters(text))
            mask = ops.not_equal(text, 0)
        with engine.device(self.writing):
            states = self.decoder(self.digits(before))
            seen = self.attention([states, memory], mask=[None, mask])
            return self.scores(ops.concatenate([states, seen], axis=-1))


def shifted(y: np.ndarray) -> np.ndarray:
    """The characters before each one: the first has only the sign that it begins."""
    return np.pad(y, ((0, 0), (1, 0)))[:, :-1]


def translate(model: Translator, x: np.ndarray) -> np.ndarray:
    """Character by character, each the likeliest after those before it."""
    y = np.zeros((len(x), 10), "int32")
    for i in range(10):
        y[:, i] = model.predict([x, shifted(y)], verbose=0)[:, i].argmax(axis=-1)
    return y


def main(arguments: list[str] | None = None) -> float:
    """Gives the share of dates that are translated without a mistake."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--devices", type=int, default=2)
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    engine.set_device_count({"cpu": options.devices})
    model = Translator([f"cpu:{i}" for i in range(options.devices)])
    model.compile(
        laminar.optimizers.Adam(5e-3),
        laminar.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    x, y = examples(2000, seed=0)
    model.fit([x, shifted(y)], y, batch_size=64, epochs=options.epochs, verbose=2)
    x_test, y_test = examples(200, seed=1)
    found = translate(model, x_test)
    for text, digits in list(zip(x_test, found, strict=True))[:4]:
        words = "".join(LETTERS[c - 1] for c in text if c)
        print(f"{words:>20} -> {''.join(DIGITS[c] for c in digits)}")
    right = float(np.mean((found == y_test).all(axis=1)))
    print(f"{right:.1%} of {len(x_test)} new dates without a mistake")
    return right


if __name__ == "__main__":
    main()
