"""Layers as users write them, for the tests of the base."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar import layers, ops


class Linear(layers.Layer):
    """A layer as users write them."""

    def __init__(self, units: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape: Any) -> None:
        self.w = self.add_weight((input_shape[-1], self.units), "ones", name="w")
        self.steps = self.add_weight((), "zeros", trainable=False, name="steps")

    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            self.steps.assign_add(1)
        return ops.matmul(x, self.w)


class Block(layers.Layer):
    """Layers in attributes, lists and dicts."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.first = Linear(3)
        self.many = [Linear(3), Linear(3)]
        self.named = {"last": Linear(1)}

    def call(self, x: Any) -> Any:
        x = self.first(x)
        for layer in self.many:
            x = layer(x)
        return self.named["last"](x)


ONES = np.ones((2, 4), np.float32)
