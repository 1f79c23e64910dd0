"""Word vectors by skip-gram: words that stand in like places get like vectors.

    python examples/word_vectors.py [--steps 3000] [--data FILE] [--loss nce]

Each word learns to tell its neighbours from words drawn at random, so a step costs what the words
of its batch cost, however many there are: gradients are rows, not tables. By default the text is
made: sentences about animals, numbers and colours, whose words should end up near their own kind.

Source: Mikolov et al., "Distributed representations of words and phrases and their
compositionality", NIPS 2013.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import engine, ops

KINDS = {
    "animal": ["cat", "dog", "horse", "cow", "goat", "sheep"],
    "number": ["two", "three", "four", "five", "six", "seven"],
    "colour": ["red", "green", "blue", "white", "black", "brown"],
}
SENTENCES = [
    "the {animal} runs to the {animal} in the field",
    "a {animal} eats grass with {number} others",
    "we count {number} and {number} stones",
    "there are {number} doors in the {colour} house",
    "she painted it {colour} and {colour}",
    "the {colour} paint dries on the wall",
]
LOSSES = {"nce": laminar.losses.nce_loss, "softmax": laminar.losses.sampled_softmax_loss}


def made_text(sentences: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    words: list[str] = []
    for _ in range(sentences):
        for word in str(rng.choice(SENTENCES)).split():
            kind = KINDS.get(word.strip("{}"))
            words.append(word if kind is None else str(rng.choice(kind)))
    return words


def pairs(codes: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Each word with each of the `window` words before and after it."""
    offsets = [o for o in range(-window, window + 1) if o]
    places = np.arange(window, len(codes) - window)
    centers = np.repeat(codes[places], len(offsets))
    return centers, codes[places[:, None] + np.array(offsets)].reshape(-1)


class Vectors:
    """The two tables of skip-gram, and the step that trains them."""

    def __init__(self, words: int, width: int, loss: str) -> None:
        rng = np.random.default_rng(0)
        table = rng.uniform(-0.5, 0.5, (words, width)).astype("float32")
        self.words = engine.Variable(table, name="words")
        self.contexts = engine.Variable(np.zeros((words, width), "float32"), name="contexts")
        self.biases = engine.Variable(np.zeros(words, "float32"), name="biases")
        self.optimizer = laminar.optimizers.Adagrad(0.5)
        self.loss = LOSSES[loss]

    @laminar.function
    def step(self, centers: Any, contexts: Any) -> Any:
        variables = [self.words, self.contexts, self.biases]
        with engine.GradientTape() as tape:
            vectors = ops.take(self.words, centers, axis=0)
            labels = ops.expand_dims(contexts, 1)
            classes = len(self.words)
            losses = self.loss(self.contexts, self.biases, labels, vectors, 8, classes)
            loss = ops.mean(losses)
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    def nearest(self, code: int, count: int) -> list[int]:
        """The words whose vectors have the smallest angles to that of `code`."""
        table = np.asarray(self.words)
        table = table / np.linalg.norm(table, axis=1, keepdims=True)
        order = np.argsort(-(table @ table[code]))
        return [int(i) for i in order if i != code][:count]


def main(arguments: list[str] | None = None) -> float:
    """Gives the share of words of a kind whose nearest word is of their kind (1.0: all)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--data", type=Path, default=None, help="a text file")
    parser.add_argument("--loss", choices=LOSSES, default="nce")
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    if options.data is None:
        text = made_text(3000)
    else:
        text = re.findall(r"\w+", options.data.read_text(encoding="utf-8").lower())
    # The sampler takes words to be in the order of how often they occur.
    vocabulary = [word for word, _ in Counter(text).most_common(20_000)]
    code = {word: i for i, word in enumerate(vocabulary)}
    codes = np.array([code[word] for word in text if word in code], "int32")
    centers, contexts = pairs(codes, window=2)
    vectors = Vectors(len(vocabulary), 32, options.loss)
    rng = np.random.default_rng(1)
    for i in range(options.steps):
        chosen = rng.integers(0, len(centers), 128)
        loss = vectors.step(centers[chosen], contexts[chosen])
        if i % max(options.steps // 5, 1) == 0:
            print(f"step {i:5d}: loss {float(loss):.3f}")
    kinds = {w: kind for kind, words in KINDS.items() for w in words if w in code}
    hits = []
    for word in list(kinds) or vocabulary[:10]:
        near = [vocabulary[i] for i in vectors.nearest(code[word], 3)]
        hits.append(kinds.get(near[0]) == kinds.get(word))
        print(f"{word:>8}: {', '.join(near)}")
    return float(np.mean(hits))


if __name__ == "__main__":
    main()
