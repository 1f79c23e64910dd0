"""The networks in layers, for laminar and for Keras: `k` is either of the two modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..cases import Case
from ..problems import Block, Problem
from ..rows import ends
from ..workloads import CHECKED_STEPS

Network = Callable[[Any, Problem], Any]


def perceptron(k: Any, problem: Problem) -> Any:
    """Dense layers with ReLU between."""
    *hidden, last = problem.weights
    return k.Sequential(
        [
            k.layers.Input(problem.x.shape[1:]),
            *(k.layers.Dense(problem.units(name), activation="relu", name=name) for name in hidden),
            k.layers.Dense(problem.units(last), name=last),
        ]
    )


def convnet(k: Any, problem: Problem) -> Any:
    """Two convolutions, pooling, two dense layers."""
    layers, units = k.layers, problem.units
    return k.Sequential(
        [
            layers.Input(problem.x.shape[1:]),
            layers.Conv2D(units("conv1"), 3, activation="relu", name="conv1"),
            layers.Conv2D(units("conv2"), 3, activation="relu", name="conv2"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(units("dense1"), activation="relu", name="dense1"),
            layers.Dense(units("dense2"), name="dense2"),
        ]
    )


def resnet(k: Any, problem: Problem) -> Any:
    """The residual network for small images."""
    image = k.layers.Input(problem.x.shape[1:])
    x = k.layers.ReLU()(normalized(k, image, "conv0", "norm0", 16))
    for block in problem.blocks:
        x = residual(k, x, block)
    x = k.layers.GlobalAveragePooling2D()(x)
    return k.Model(image, k.layers.Dense(problem.units("dense"), name="dense")(x))


def residual(k: Any, x: Any, block: Block) -> Any:
    name, width, stride = block.name, block.width, block.stride
    y = normalized(k, x, f"{name}-conv1", f"{name}-norm1", width, stride=stride)
    y = normalized(k, k.layers.ReLU()(y), f"{name}-conv2", f"{name}-norm2", width)
    if stride > 1:
        x = normalized(k, x, f"{name}-conv3", f"{name}-norm3", width, size=1, stride=stride)
    return k.layers.ReLU()(k.layers.Add()([x, y]))


def normalized(
    k: Any, x: Any, conv: str, norm: str, width: int, *, size: int = 3, stride: int = 1
) -> Any:
    """A convolution without bias and its batch normalization.

    With a stride, "same" would pad below and right only, torch pads all around: so it is done here.
    """
    padding = "same"
    if size > 1 and stride > 1:
        x, padding = k.layers.ZeroPadding2D(size // 2)(x), "valid"
    x = k.layers.Conv2D(width, size, strides=stride, padding=padding, use_bias=False, name=conv)(x)
    return k.layers.BatchNormalization(name=norm)(x)


def gpt(k: Any, problem: Problem) -> Any:
    """A decoder of words, or an encoder; the output is the logits of the next, or of all."""
    layers, units = k.layers, problem.units
    words = layers.Input(problem.x.shape[1:], dtype="int32")
    x = layers.Embedding(*problem.weights["words"][0].shape, name="words")(words)
    x = positions(k, problem.weights["positions"][0].shape)(x)
    return k.Model(words, layers.Dense(units("head"), name="head")(transformer(k, x, problem)))


def vit(k: Any, problem: Problem) -> Any:
    """An encoder of the patches of images, and a dense layer."""
    layers, units = k.layers, problem.units
    image = layers.Input(problem.x.shape[1:])
    size = problem.weights["patches"][0].shape[0]
    x = layers.Conv2D(units("patches"), size, strides=size, name="patches")(image)
    x = layers.Reshape((-1, units("patches")))(x)
    x = transformer(k, positions(k, problem.weights["positions"][0].shape)(x), problem)
    x = layers.GlobalAveragePooling1D()(x)
    return k.Model(image, layers.Dense(units("dense"), name="dense")(x))


def recurrent(k: Any, problem: Problem) -> Any:
    """An LSTM, and a dense layer on its last output."""
    layers = k.layers
    return k.Sequential(
        [
            layers.Input(problem.x.shape[1:]),
            layers.LSTM(problem.units("lstm") // 4, name="lstm"),
            layers.Dense(problem.units("dense"), name="dense"),
        ]
    )


def bag(k: Any, problem: Problem) -> Any:
    """The mean of embeddings, and a dense layer."""
    layers = k.layers
    return k.Sequential(
        [
            layers.Input(problem.x.shape[1:], dtype="int32"),
            layers.Embedding(*problem.weights["words"][0].shape, name="words"),
            layers.GlobalAveragePooling1D(),
            layers.Dense(problem.units("dense"), name="dense"),
        ]
    )


def positions(k: Any, shape: tuple[int, ...]) -> Any:
    """The layer that adds a row of weights at each place."""

    class Positions(k.layers.Layer):  # type: ignore[misc]  # the module is Any to the type checker
        def build(self, _: Any) -> None:
            self.table = self.add_weight(shape=shape, name="table")

        def call(self, x: Any) -> Any:
            return x + self.table

    return Positions(name="positions")


def transformer(k: Any, x: Any, problem: Problem) -> Any:
    for name in problem.decoders:
        x = block_of(k, x, name, problem)
    return k.layers.LayerNormalization(epsilon=1e-5, name="norm")(x)


def block_of(k: Any, x: Any, name: str, problem: Problem) -> Any:
    layers = k.layers
    _, heads, width = problem.weights[f"{name}-attention"][0].shape
    y = layers.LayerNormalization(epsilon=1e-5, name=f"{name}-norm1")(x)
    attention = layers.MultiHeadAttention(heads, width, name=f"{name}-attention")
    x = layers.Add()([x, attention(y, y, use_causal_mask=problem.is_causal)])
    y = layers.LayerNormalization(epsilon=1e-5, name=f"{name}-norm2")(x)
    for part, activation in (("dense1", "gelu"), ("dense2", None)):
        full = f"{name}-{part}"
        y = layers.Dense(problem.units(full), activation=activation, name=full)(y)
    return layers.Add()([x, y])


def build(k: Any, network: Network, problem: Problem, policy: str = "float32") -> Any:
    """The network with the weights of the problem."""
    before = k.mixed_precision.dtype_policy()
    k.mixed_precision.set_dtype_policy(policy)
    model = network(k, problem)
    k.mixed_precision.set_dtype_policy(before)
    for name, arrays in problem.weights.items():
        model.get_layer(name).set_weights(arrays)
    return model


class Training(Case):
    """Steps of `fit` without shuffling."""

    def __init__(
        self, k: Any, network: Network, optimizer: Any, problem: Problem, policy: str = "float32"
    ) -> None:
        self.problem = problem
        self.model = build(k, network, problem, policy)
        loss = k.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.model.compile(optimizer=optimizer, loss=loss)
        self.steps = problem.batches

    def checks(self) -> list[float]:
        """The losses of the first steps, all on the first batch."""
        history = self.fit(self.problem.batch, epochs=CHECKED_STEPS)
        return [float(loss) for loss in history.history["loss"]]

    def run(self) -> None:
        self.fit(len(self.problem.x))

    def fit(self, count: int, epochs: int = 1) -> Any:
        x, y, batch = self.problem.x[:count], self.problem.y[:count], self.problem.batch
        return self.model.fit(x, y, batch_size=batch, epochs=epochs, shuffle=False, verbose=0)


class Inference(Case):
    """`predict_on_batch`, from a NumPy array to a NumPy array."""

    def __init__(self, k: Any, network: Network, problem: Problem) -> None:
        self.model = build(k, network, problem)
        self.x = problem.x[: problem.batch]

    def checks(self) -> list[float]:
        return ends(self.model.predict_on_batch(self.x))

    def run(self) -> None:
        self.model.predict_on_batch(self.x)
