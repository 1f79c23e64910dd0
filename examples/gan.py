"""A generative adversarial network with a train step of its own: it learns to write digits.

    python examples/gan.py [--epochs 100]

A generator makes images from noise; a critic tells them from real ones. Each learns from the
other, so a step has two losses and two optimizers, which `fit` runs as one native function.

Source: Goodfellow et al., "Generative adversarial nets", NIPS 2014, algorithm 1, with the
generator's loss -log D(G(z)).
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import laminar
from laminar import engine, layers, ops

NOISE = 16
SHADES = " .:-=+*#%@"


class GAN(laminar.Model):
    """Both networks, and how they are trained."""

    def __init__(self) -> None:
        super().__init__(name="gan")
        self.generator = laminar.Sequential(
            [
                layers.Input((NOISE,)),
                layers.Dense(128, activation="leaky_relu"),
                layers.Dense(128, activation="leaky_relu"),
                layers.Dense(64, activation="sigmoid"),
            ]
        )
        self.critic = laminar.Sequential(
            [
                layers.Input((64,)),
                layers.Dense(128, activation="leaky_relu"),
                layers.Dropout(0.3),
                layers.Dense(1),
            ]
        )
        self.seeds = laminar.random.SeedGenerator(0)
        self.critic_optimizer = laminar.optimizers.Adam(1e-3, beta_1=0.5)

    def call(self, noise: Any) -> Any:
        return self.generator(noise)

    def train_step(self, data: Any) -> dict[str, Any]:
        real = data[0] if isinstance(data, tuple) else data
        size = ops.shape(real)[0]
        noise = laminar.random.normal((size, NOISE), seed=self.seeds)
        with engine.GradientTape() as tape:
            made = self.generator(noise, training=True)
            doubts = ops.concatenate([self.critic(real, training=True), self.critic(made)])
            truth = ops.concatenate([ops.ones((size, 1)) * 0.9, ops.zeros((size, 1))])
            critic_loss = ops.mean(cross_entropy(truth, doubts))
        weights = self.critic.trainable_weights
        self.critic_optimizer.apply(tape.gradient(critic_loss, weights), weights)
        with engine.GradientTape() as tape:
            doubts = self.critic(self.generator(noise, training=True))
            generator_loss = ops.mean(cross_entropy(ops.ones((size, 1)), doubts))
        weights = self.generator.trainable_weights
        self.optimizer.apply(tape.gradient(generator_loss, weights), weights)
        return {"critic_loss": critic_loss, "generator_loss": generator_loss}


def cross_entropy(truth: Any, scores: Any) -> Any:
    return laminar.losses.binary_crossentropy(truth, scores, from_logits=True)


def show(images: np.ndarray) -> None:
    """Images side by side, darker for more ink."""
    for row in (images.reshape(-1, 8, 8) * (len(SHADES) - 1)).round().astype(int).swapaxes(0, 1):
        print("   ".join("".join(SHADES[s] * 2 for s in line) for line in row))


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Gives the history, and how far the mean image of the generator is from that of the digits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=100)
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    (x, _), _ = laminar.datasets.digits.load_data()
    x = x.reshape(len(x), 64).astype("float32") / 16
    model = GAN()
    model.compile(laminar.optimizers.Adam(1e-3, beta_1=0.5))
    history = model.fit(x, batch_size=64, epochs=options.epochs, verbose=0).history
    noise = np.random.default_rng(0).normal(size=(500, NOISE)).astype("float32")
    made = model.predict(noise, verbose=0)
    distance = float(np.abs(made.mean(axis=0) - x.mean(axis=0)).mean())
    losses = [f"{name} {values[-1]:.3f}" for name, values in history.items()]
    print(", ".join(losses), f"; mean images differ by {distance:.3f}")
    show(made[:6])
    return {**history, "distance": distance}


if __name__ == "__main__":
    main()
