"""Texts to classes, from strings to answers in one model that is saved whole.

    python examples/text_classifier.py [--epochs 6] [--data imdb]

Made reviews, good and bad, with negations ("not a dull moment"), are split into words by a layer
that learns the vocabulary; convolutions find phrases. `--data imdb` takes 50,000 film reviews
(17 MB, downloaded once), which come as numbers of words.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import laminar
from laminar import layers

Examples: TypeAlias = tuple[np.ndarray, np.ndarray]

GOOD = ["wonderful", "moving", "brilliant", "funny", "superb"]
BAD = ["dull", "boring", "awful", "clumsy", "tedious"]
FORMS = ["a {} film", "the plot is {}", "what a {} cast", "I found it {}", "{} from start to end"]
EXTRA = ["we saw it on a monday", "the music is by a friend", "it runs two hours", "in colour"]


def reviews(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One opinion each, among sentences that say nothing; a third of the opinions are negated."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(count):
        is_good, is_negated = rng.random() < 0.5, rng.random() < 0.33
        word = str(rng.choice(GOOD if is_good != is_negated else BAD))
        opinion = str(rng.choice(FORMS)).format(f"not {word}" if is_negated else word)
        parts = [opinion, *rng.choice(EXTRA, rng.integers(1, 4))]
        texts.append(". ".join(rng.permutation(parts)))
        labels.append(int(is_good))
    return np.array(texts), np.array(labels, "float32")


def network(x: Any, vocabulary: int) -> Any:
    """Scores from word numbers."""
    x = layers.Embedding(vocabulary, 32)(x)
    x = layers.Conv1D(32, 3, activation="relu")(x)
    x = layers.Dropout(0.3)(layers.GlobalMaxPooling1D()(x))
    return layers.Dense(1, activation="sigmoid")(x)


def from_strings() -> tuple[laminar.Model, Examples, Examples]:
    train, test = reviews(2000, seed=0), reviews(500, seed=1)
    words = layers.TextVectorization(max_tokens=2000, output_sequence_length=32)
    words.adapt(train[0].tolist())
    text = layers.Input((), dtype="string")
    return laminar.Model(text, network(words(text), 2000), name="reviews"), train, test


def from_numbers() -> tuple[laminar.Model, Examples, Examples]:
    (x, y), (x_test, y_test) = laminar.datasets.imdb.load_data(num_words=10_000)
    cut = laminar.utils.pad_sequences
    numbers = layers.Input((200,), dtype="int32")
    model = laminar.Model(numbers, network(numbers, 10_000), name="imdb")
    return model, (cut(list(x), 200), y), (cut(list(x_test), 200), y_test)


def main(arguments: list[str] | None = None) -> float:
    """Gives the accuracy on new texts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--data", choices=["made", "imdb"], default="made")
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    model, train, test = from_strings() if options.data == "made" else from_numbers()
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    model.fit(*train, batch_size=32, epochs=options.epochs, validation_data=test, verbose=2)
    if options.data == "made":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "reviews.keras"
            model.save(path)
            model = laminar.saving.load_model(path)
        model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
        texts = np.array(
            ["the plot is not dull. in colour", "what a clumsy cast. it runs two hours"]
        )
        for text, p in zip(texts, model.predict(texts, verbose=0)[:, 0], strict=True):
            print(f"{p:.1%} good: {text}")
    return float(model.evaluate(*test, verbose=0)[1])


if __name__ == "__main__":
    main()
