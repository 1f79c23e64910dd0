"""What examples/digits.py does, in JAX; without saving the model.

python -m benchmarks.frameworks.digits_jax EPOCHS
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from ..problems import digits
from .in_jax import Adam
from .jax_networks import Arrays, convolve, cross_entropy, dense, max_pool, relu


def dropout(key: Any, x: Any, rate: float = 0.4) -> Any:
    """Keep with probability 1 - rate and scale up; without a key, keep all."""
    if key is None:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def network(weights: Arrays, x: Any, keys: Any = (None, None)) -> Any:
    """Two convolutions, one hidden layer."""
    for kernel, bias in (weights["conv1"], weights["conv2"]):
        x = relu(convolve(kernel, x, padding=1) + bias)
    x = dropout(keys[0], max_pool(x).reshape(len(x), -1))
    x = dropout(keys[1], relu(dense(weights["dense1"], x)))
    return dense(weights["dense2"], x)


rule = Adam(2e-3)


def train(weights: Arrays, slots: Any, key: Any, x: Any, y: Any) -> tuple[Arrays, Any, Any]:
    """One training step; gives the next key too."""
    key, *keys = jax.random.split(key, 3)
    gradients = jax.grad(lambda w: cross_entropy(network(w, x, keys), y))(weights)
    return (*rule.update(weights, gradients, slots), key)


def test(weights: Arrays, x: Any, y: Any) -> Any:
    return (network(weights, x).argmax(1) == y).mean()


def main(epochs: int) -> None:
    """Train with a validation after each epoch, print the accuracy."""
    problem = digits(epochs)
    held_out, (x, y) = problem.test_and_train
    count = len(x) - len(x) // 10
    draw = np.random.default_rng(1)
    step, accuracy = jax.jit(train), jax.jit(test)
    weights: Any = jax.tree.map(jnp.array, problem.weights)
    slots, key = rule.slots(weights), jax.random.key(1)
    for _ in range(epochs):
        order = draw.permutation(count)
        for at in range(0, count, problem.batch):
            rows = order[at : at + problem.batch]
            weights, slots, key = step(weights, slots, key, x[rows], y[rows])
        accuracy(weights, x[count:], y[count:])
    print(f"test accuracy {float(accuracy(weights, *held_out)):.2%}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
