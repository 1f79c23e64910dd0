"""Recurrent layers that are compared with Keras's: the same for the reference and for the test."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_rng = np.random.default_rng(11)
X = _rng.normal(size=(3, 5, 4)).astype(np.float32)
STATE = _rng.normal(size=(3, 2)).astype(np.float32)
# Masked in the middle, at the end, from the beginning on, everywhere, nowhere.
MASK = np.array([[1, 1, 0, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 1, 0]], bool)
ALL_MASKED = np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 1, 0]], bool)
FRAMES = _rng.normal(size=(2, 3, 4, 5, 3, 2)).astype(np.float32)


class Case(NamedTuple):
    """A layer, made from a module of layers, its input, and how many states it begins with."""

    name: str
    make: Callable[[Any], Any]
    x: Any = X
    states: int = 0
    masks: bool = True

    def calls(self) -> dict[str, dict[str, Any]]:
        """The arguments of the calls that are compared, by name."""
        found: dict[str, dict[str, Any]] = {"plain": {}}
        if self.masks:
            found["masked"] = {"mask": MASK}
            found["much masked"] = {"mask": ALL_MASKED}
        if self.states:
            states = [STATE * (i + 1) for i in range(self.states)]
            found["from states"] = {"initial_state": states, **found.get("much masked", {})}
        return found

    def last_call(self) -> dict[str, Any]:
        """The arguments of the call whose gradients are compared."""
        return list(self.calls().values())[-1]


def _of(kind: str, states: int, **kwargs: Any) -> Case:
    text = ", ".join(f"{k}={v}" for k, v in kwargs.items())
    if kwargs.get("unroll"):  # Keras then gives zeros before the first step, not the first state
        states = 0
    return Case(f"{kind}({text})", lambda m: getattr(m, kind)(2, **kwargs), states=states)


_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"return_state": True, "return_sequences": True},
    {"go_backwards": True, "return_sequences": True, "return_state": True},
    {"go_backwards": True},
    {"unroll": True, "return_sequences": True},
    {"use_bias": False, "activation": "relu", "zero_output_for_mask": True},
    {"return_sequences": True, "zero_output_for_mask": True, "go_backwards": True},
)
_FLAGS: tuple[dict[str, Any], ...] = (
    {},
    {"return_sequences": True, "return_state": True},
    {"go_backwards": True, "return_sequences": True},
    {"zero_output_for_mask": True, "return_sequences": True},
)
_CELLS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "lstm": (lambda m: m.LSTMCell(2), 2),
    "gru": (lambda m: m.GRUCell(2, reset_after=False), 1),
    "simple": (lambda m: m.SimpleRNNCell(2, use_bias=False), 1),
}
_STACKS: dict[str, Callable[[Any], Any]] = {
    "several": lambda m: [m.LSTMCell(3), m.GRUCell(2)],
    "stacked": lambda m: m.StackedRNNCells([m.SimpleRNNCell(3), m.SimpleRNNCell(2)]),
}


def _rnn(name: str, cell: Callable[[Any], Any], states: int, **flags: Any) -> Case:
    return Case(f"RNN({name}, {flags})", lambda m: m.RNN(cell(m), **flags), states=states)


def _both(kind: str, inner: dict[str, Any], **outer: Any) -> Case:
    return Case(
        f"Bidirectional({kind}, {inner}, {outer})",
        lambda m: m.Bidirectional(getattr(m, kind)(2, **inner), **outer),
        states=4 if kind == "LSTM" else 2,
    )


def _convolution(kind: str, shape: tuple[int, ...], **kwargs: Any) -> Case:
    x = FRAMES.reshape(-1)[: int(np.prod(shape))].reshape(shape)
    make = lambda m: getattr(m, kind)(filters=2, **kwargs)  # noqa: E731  # one of many
    return Case(f"{kind}({kwargs})", make, x, masks=False)


CASES = [
    *[
        _of(kind, 1 + (kind == "LSTM"), **o)
        for kind in ("SimpleRNN", "LSTM", "GRU")
        for o in _OPTIONS
    ],
    _of("LSTM", 2, recurrent_activation="hard_sigmoid", unit_forget_bias=False),
    _of("GRU", 1, reset_after=False, return_sequences=True),
    _of("GRU", 1, reset_after=False, use_bias=False),
    _of("GRU", 1, recurrent_activation="hard_sigmoid", kernel_regularizer="l2"),
    _of("SimpleRNN", 1, recurrent_regularizer="l2", bias_constraint="non_neg"),
    *[_rnn(name, *cell, **flags) for name, cell in _CELLS.items() for flags in _FLAGS],
    *[_rnn(name, cell, 0) for name, cell in _STACKS.items()],
    _both("LSTM", {}),
    _both("GRU", {"return_sequences": True}, merge_mode="sum"),
    _both("GRU", {"return_sequences": True}, merge_mode=None),
    _both("SimpleRNN", {"return_sequences": True, "return_state": True}, merge_mode="ave"),
    _both("LSTM", {"return_state": True}, merge_mode="mul"),
    _both("LSTM", {"return_state": True, "return_sequences": True}, merge_mode=None),
    Case(
        "Bidirectional(LSTM, GRU)",
        lambda m: m.Bidirectional(m.LSTM(2), backward_layer=m.GRU(3, go_backwards=True)),
    ),
    Case("TimeDistributed(Dense)", lambda m: m.TimeDistributed(m.Dense(3)), masks=False),
    Case(
        "TimeDistributed(Conv2D)",
        lambda m: m.TimeDistributed(m.Conv2D(3, 2, activation="relu")),
        FRAMES[..., 0],
        masks=False,
    ),
    _convolution("ConvLSTM1D", (2, 3, 6, 2), kernel_size=3, padding="same"),
    _convolution("ConvLSTM1D", (2, 3, 7, 2), kernel_size=2, strides=2, return_sequences=True),
    _convolution("ConvLSTM2D", (2, 3, 5, 6, 2), kernel_size=(2, 3), return_state=True),
    _convolution("ConvLSTM2D", (2, 3, 4, 4, 2), kernel_size=2, dilation_rate=2, go_backwards=True),
    _convolution("ConvLSTM2D", (2, 3, 4, 4, 1), kernel_size=3, use_bias=False, padding="same"),
    _convolution("ConvLSTM3D", (2, 2, 3, 4, 3, 2), kernel_size=2, return_sequences=True),
]


def described(layer: Any) -> list[Any]:
    """The weights of a layer: paths without its own name and without counters, shapes, kinds."""
    found = []
    for w in layer.weights:
        path = re.sub(r"_\d+(?=/)", "", w.path.partition("/")[2])
        found.append([path, [*w.shape], w.trainable])
    return found


def weights_for(shapes: list[tuple[int, ...]]) -> list[Any]:
    """The weights that a layer gets."""
    source = np.random.default_rng(12)
    return [source.normal(size=s).astype(np.float32) / 2 for s in shapes]


def factors_for(outputs: list[Any]) -> list[Any]:
    """What outputs are multiplied by before their sum is differentiated."""
    source = np.random.default_rng(13)
    return [source.normal(size=y.shape).astype(np.float32) for y in outputs]


def names_removed(config: Any) -> Any:
    """A config without names that depend on what was made before, and shapes of a first call."""
    if isinstance(config, dict):
        kept = {k: v for k, v in config.items() if k != "build_config"}
        return {k: names_removed(v) for k, v in kept.items() if k != "name" or v == "float32"}
    return [names_removed(v) for v in config] if isinstance(config, list) else config
