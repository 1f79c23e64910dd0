"""A small GPT, character by character, trained on the text of a licence, which it then continues.

    python examples/gpt.py [--epochs 20] [--data FILE]

`--data` takes any text file; by default it is the Apache licence that ships with laminar.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import layers, ops

LICENCE = Path(__file__).resolve().parents[1] / "LICENSE"
LENGTH = 64


class Block(layers.Layer):
    """Attention to what came before, then a perceptron; each added to its normalized input."""

    def __init__(self, width: int, heads: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.first, self.second = layers.LayerNormalization(), layers.LayerNormalization()
        self.attention = layers.MultiHeadAttention(heads, width // heads)
        self.wide = layers.Dense(4 * width, activation="gelu")
        self.narrow = layers.Dense(width)

    def call(self, x: Any) -> Any:
        y = self.first(x)
        x = x + self.attention(y, y, use_causal_mask=True)
        return x + self.narrow(self.wide(self.second(x)))


class GPT(laminar.Model):
    """Scores of the next character at each place."""

    def __init__(self, characters: int, width: int = 96, heads: int = 4, depth: int = 3) -> None:
        super().__init__(name="gpt")
        self.characters = layers.Embedding(characters, width)
        self.places = layers.Embedding(LENGTH, width)
        self.blocks = [Block(width, heads) for _ in range(depth)]
        self.norm = layers.LayerNormalization()
        self.scores = layers.Dense(characters)

    def call(self, x: Any) -> Any:
        y = self.characters(x) + self.places(ops.arange(LENGTH))
        for block in self.blocks:
            y = block(y)
        return self.scores(self.norm(y))


def windows(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All stretches of the text that begin at every eighth character, and what follows each one."""
    begins = np.arange(0, len(codes) - LENGTH - 1, 8)[:, None] + np.arange(LENGTH)
    return codes[begins], codes[begins + 1]


def continued(model: GPT, codes: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """`count` characters after the given ones, each drawn from the model's probabilities."""
    rng = np.random.default_rng(seed)
    found = list(codes)
    for _ in range(count):
        given = np.array(found[-LENGTH:])[None]
        filled = np.pad(given, ((0, 0), (0, LENGTH - given.shape[1])))
        scores = model.predict_on_batch(filled)[0, given.shape[1] - 1].astype("float64")
        found.append(int(np.argmax(scores / 0.5 + rng.gumbel(size=len(scores)))))
    return np.array(found)


def main(arguments: list[str] | None = None) -> float:
    """Gives the last loss, in nats for each character."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--data", type=Path, default=LICENCE)
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    text = options.data.read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    codes = np.array([alphabet.index(c) for c in text], "int32")
    model = GPT(len(alphabet))
    model.compile(
        laminar.optimizers.AdamW(2e-3, clipnorm=1.0),
        laminar.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    x, y = windows(codes)
    history = model.fit(x, y, batch_size=32, epochs=options.epochs, verbose=2).history
    start = "You may "
    begin = np.array([alphabet.index(c) for c in start if c in alphabet] or [0])
    print("".join(alphabet[c] for c in continued(model, begin, 200)))
    return float(history["loss"][-1])


if __name__ == "__main__":
    main()
