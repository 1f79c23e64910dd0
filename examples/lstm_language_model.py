"""An LSTM language model over words, whose state goes on from one batch to the next.

    python examples/lstm_language_model.py [--epochs 15] [--data FILE]

The text is cut into `batch` long strips that are read side by side, 20 words at a time; the state
at the end of a stretch is where the next begins. Perplexity is exp(mean loss): how many words the
model is torn between. By default the text is the licence that ships with laminar.

Source: Zaremba, Sutskever and Vinyals, "Recurrent neural network regularization", 2014
(arXiv:1409.2329), section 4.1.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import layers

LICENCE = Path(__file__).resolve().parents[1] / "LICENSE"
BATCH, LENGTH = 8, 20


def strips(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stretches (windows * BATCH, LENGTH): rows of one batch go on in those of the next."""
    count = (len(codes) - 1) // (BATCH * LENGTH)
    used = count * BATCH * LENGTH

    def cut(part: np.ndarray) -> np.ndarray:
        return part[:used].reshape(BATCH, count, LENGTH).swapaxes(0, 1).reshape(-1, LENGTH)

    return cut(codes), cut(codes[1:])


class NewState(laminar.callbacks.Callback):
    """An epoch begins at the beginning of the text."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        for layer in self.model.layers:
            if getattr(layer, "stateful", False):
                layer.reset_states()


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    """Gives the perplexity after the first epoch and after the last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--data", type=Path, default=LICENCE)
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    words = re.findall(r"\w+|[^\w\s]", options.data.read_text(encoding="utf-8").lower())
    known = [word for word, count in Counter(words).most_common(10_000) if count > 1]
    code = {word: i + 1 for i, word in enumerate(known)}  # 0 is a word that is not known
    x, y = strips(np.array([code.get(word, 0) for word in words], "int32"))
    model = laminar.Sequential(
        [
            layers.Input(batch_shape=(BATCH, LENGTH), dtype="int32"),
            layers.Embedding(len(known) + 1, 128),
            layers.Dropout(0.2),
            layers.LSTM(128, return_sequences=True, stateful=True),
            layers.Dropout(0.2),
            layers.LSTM(128, return_sequences=True, stateful=True),
            layers.Dense(len(known) + 1),
        ]
    )
    model.compile(
        laminar.optimizers.Adam(5e-3, clipnorm=5.0),
        laminar.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    history = model.fit(
        x,
        y,
        batch_size=BATCH,
        epochs=options.epochs,
        shuffle=False,
        callbacks=[NewState()],
        verbose=2,
    ).history
    first, last = np.exp(history["loss"][0]), np.exp(history["loss"][-1])
    print(f"{len(words)} words, {len(known)} known; perplexity {first:.1f} -> {last:.1f}")
    return float(first), float(last)


if __name__ == "__main__":
    main()
