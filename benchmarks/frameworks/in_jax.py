"""The workloads in bare JAX: a training step is one jitted function that reuses its buffers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import jax
from jax import numpy as jnp

from ..cases import Case, FirstUse, Late, Program
from ..problems import Problem
from ..rows import ends, on_rows
from ..workloads import CHECKED_STEPS
from . import jax_contractions
from .jax_networks import (
    Arrays,
    Network,
    convnet,
    cross_entropy,
    gpt,
    layer_norm,
    perceptron,
    recurrent,
    residual_network,
    vit,
)


class Rule(Protocol):
    """An optimizer: what it keeps, and how it changes weights."""

    def slots(self, weights: Arrays) -> Any: ...

    def update(self, weights: Arrays, gradients: Arrays, slots: Any) -> tuple[Arrays, Any]: ...


@dataclass(frozen=True)
class SGD:
    """w -= learning_rate * gradient."""

    learning_rate: float

    def slots(self, weights: Arrays) -> Any:
        return ()

    def update(self, weights: Arrays, gradients: Arrays, slots: Any) -> tuple[Arrays, Any]:
        moved = jax.tree.map(lambda w, g: w - self.learning_rate * g, weights, gradients)
        return moved, slots


@dataclass(frozen=True)
class Momentum:
    """w += v after v = decay * v - learning_rate * gradient."""

    learning_rate: float
    decay: float

    def slots(self, weights: Arrays) -> Any:
        return jax.tree.map(jnp.zeros_like, weights)

    def update(self, weights: Arrays, gradients: Arrays, slots: Any) -> tuple[Arrays, Any]:
        rate, decay = self.learning_rate, self.decay
        slots = jax.tree.map(lambda v, g: decay * v - rate * g, slots, gradients)
        return jax.tree.map(jnp.add, weights, slots), slots


@dataclass(frozen=True)
class Adam:
    """Adam with Keras's constants.

    Source: Kingma and Ba, "Adam", 2015, arXiv:1412.6980, the end of section 2.
    """

    learning_rate: float
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-7

    def slots(self, weights: Arrays) -> Any:
        m, v = (jax.tree.map(jnp.zeros_like, weights) for _ in range(2))
        return m, v, jnp.zeros((), "float32")

    def update(self, weights: Arrays, gradients: Arrays, slots: Any) -> tuple[Arrays, Any]:
        m, v, step = slots
        beta_1, beta_2, step = self.beta_1, self.beta_2, step + 1
        rate = self.learning_rate * jnp.sqrt(1 - beta_2**step) / (1 - beta_1**step)
        m = jax.tree.map(lambda m, g: beta_1 * m + (1 - beta_1) * g, m, gradients)
        v = jax.tree.map(lambda v, g: beta_2 * v + (1 - beta_2) * g * g, v, gradients)

        def moved(w: Any, m: Any, v: Any) -> Any:
            return w - rate * m / (jnp.sqrt(v) + self.epsilon)

        return jax.tree.map(moved, weights, m, v), (m, v, step)


def cast(arrays: Any, dtype: str) -> Any:
    """Floating point numbers as another type."""

    def one(x: Any) -> Any:
        return x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x

    return jax.tree.map(one, arrays)


class Training(Case):
    """Steps of a plain training loop."""

    def __init__(
        self, network: Network, rule: Rule, problem: Problem, dtype: str = "float32"
    ) -> None:
        self.weights: Any = jax.tree.map(jnp.array, problem.weights)
        self.slots = rule.slots(self.weights)
        x, y, size = jnp.array(problem.x), jnp.array(problem.y), problem.batch
        self.data = [(x[at : at + size], y[at : at + size]) for at in range(0, len(x), size)]
        self.steps = problem.batches

        def loss_of(weights: Arrays, x: Any, y: Any) -> tuple[Any, Arrays]:
            logits, moved = network(cast(weights, dtype), cast(x, dtype), True)
            return cross_entropy(cast(logits, "float32"), y), moved

        def step(weights: Arrays, slots: Any, x: Any, y: Any) -> tuple[Any, Arrays, Any]:
            gradient_of = jax.value_and_grad(loss_of, has_aux=True)
            (loss, moved), gradients = gradient_of(weights, x, y)
            weights, slots = rule.update(weights, gradients, slots)
            moved = {name: [*weights[name][:2], *new[2:]] for name, new in moved.items()}
            return loss, {**weights, **moved}, slots

        self.step = jax.jit(step, donate_argnums=(0, 1))

    def checks(self) -> list[float]:
        return [float(self.advance(*self.data[0])) for _ in range(CHECKED_STEPS)]

    def run(self) -> None:
        for x, y in self.data:
            self.advance(x, y)
        jax.block_until_ready(self.weights)

    def advance(self, x: Any, y: Any) -> Any:
        loss, self.weights, self.slots = self.step(self.weights, self.slots, x, y)
        return loss


class Inference(Case):
    """One batch, from a NumPy array to a NumPy array."""

    def __init__(self, network: Network, problem: Problem) -> None:
        self.weights = jax.tree.map(jnp.array, problem.weights)
        self.network = jax.jit(lambda weights, x: network(weights, x, False)[0])
        self.x = problem.x[: problem.batch]

    def checks(self) -> list[float]:
        return ends(self.network(self.weights, self.x))

    def run(self) -> None:
        jax.device_get(self.network(self.weights, self.x))


class Rows(Case):
    """A function of the numbers."""

    def __init__(self, function: Callable[[Any], Any], problem: Problem) -> None:
        self.x = jnp.array(problem.x)
        self.function = jax.jit(function)

    def checks(self) -> list[float]:
        return ends(self.function(self.x))

    def run(self) -> None:
        jax.block_until_ready(self.function(self.x))


class Updates(Case):
    """Updates of the numbers, which are their own first gradient."""

    def __init__(self, rule: Rule, problem: Problem) -> None:
        self.gradients: Arrays = {"x": [jnp.array(problem.x)]}
        self.weights: Arrays = {"x": [jnp.array(problem.x)]}
        self.slots = rule.slots(self.weights)
        self.update = jax.jit(rule.update, donate_argnums=(0, 2))

    def checks(self) -> list[float]:
        for _ in range(CHECKED_STEPS):
            self.run()
        return ends(self.weights["x"][0])

    def run(self) -> None:
        self.weights, self.slots = self.update(self.weights, self.gradients, self.slots)
        jax.block_until_ready(self.weights)


class Add(Case):
    """`a + b` of two small arrays, done when the last of the sums is there."""

    steps = 100

    def __init__(self) -> None:
        self.a, self.b = jnp.ones((4, 4)), jnp.full((4, 4), 2.0)

    def checks(self) -> list[float]:
        return [float(number) for number in (self.a + self.b).ravel()]

    def run(self) -> None:
        a, b = self.a, self.b
        for _ in range(self.steps):
            c = a + b
        jax.block_until_ready(c)


def resnet(problem: Problem) -> Network:
    return residual_network(problem.blocks)


CASES: dict[str, Callable[[Problem], Case]] = {
    "import": lambda _: FirstUse("import jax"),
    "first-add": lambda _: FirstUse("import jax; a = jax.numpy.ones((4, 4)); a + a"),
    "add": lambda _: Add(),
    "fit-step": lambda p: Training(perceptron, SGD(1e-3), p),
    "train-mlp": lambda p: Training(perceptron, Adam(1e-5), p),
    "train-mlp-late": lambda p: Late(Training(perceptron, Adam(1e-3), p)),
    "train-convnet": lambda p: Training(convnet, Adam(1e-5), p),
    "train-resnet20": lambda p: Training(resnet(p), Momentum(1e-3, 0.9), p),
    "train-gpt": lambda p: Training(gpt(p.decoders), Adam(1e-5), p),
    "train-mlp-bf16": lambda p: Training(perceptron, Adam(1e-5), p, "bfloat16"),
    "train-convnet-bf16": lambda p: Training(convnet, Adam(1e-5), p, "bfloat16"),
    "train-gpt-bf16": lambda p: Training(gpt(p.decoders), Adam(1e-5), p, "bfloat16"),
    "train-lstm": lambda p: Training(recurrent, Adam(1e-5), p),
    "train-lstm-256": lambda p: Training(recurrent, Adam(1e-5), p),
    "train-bert-110m": lambda p: Training(gpt(p.decoders, is_causal=False), Adam(1e-5), p),
    "train-vit": lambda p: Training(vit(p.decoders), Adam(1e-5), p),
    "infer-mlp-1": lambda p: Inference(perceptron, p),
    "infer-mlp-256": lambda p: Inference(perceptron, p),
    "infer-resnet20-1": lambda p: Inference(resnet(p), p),
    "infer-resnet20-32": lambda p: Inference(resnet(p), p),
    **on_rows(
        {
            "softmax": lambda p: Rows(jax.nn.softmax, p),
            "layer-norm": lambda p: Rows(partial(layer_norm, (1.0, 0.0)), p),
            "gelu": lambda p: Rows(partial(jax.nn.gelu, approximate=False), p),
            "adam": lambda p: Updates(Adam(1e-3), p),
        }
    ),
    **jax_contractions.CASES,
    "digits": lambda p: Program("-m", "benchmarks.frameworks.digits_jax", str(p.epochs)),
}
