"""Products and convolutions in laminar."""

from __future__ import annotations

from typing import Any

import laminar
from laminar import ops
from laminar.typing import Padding

from .. import contractions
from ..contractions import Contraction, Products, Shape
from ..problems import Problem


def _at_once(_: Any) -> None:
    """Nothing is left to wait for when a function has returned."""


def products(problem: Problem) -> Products:
    a, b = (ops.convert_to_tensor(m) for m in (problem.x, problem.weights["b"][0]))

    @laminar.function
    def compute(a: Any, b: Any) -> list[Any]:
        p, q = ops.transpose(a), ops.transpose(b)
        return [ops.matmul(x, y) for x, y in ((a, b), (p, b), (a, q), (p, q))]

    return Products(lambda: compute(a, b), _at_once)


def convolution(shape: Shape, problem: Problem) -> Contraction:
    x, w, dy = (
        ops.convert_to_tensor(v)
        for v in (problem.x, problem.weights["filters"][0], problem.weights["gradient"][0])
    )
    padding: Padding = "same" if shape.padding else "valid"

    @laminar.function
    def compute(x: Any, w: Any, dy: Any) -> list[Any]:
        with laminar.GradientTape() as tape:
            tape.watch([x, w])
            y = ops.conv(x, w, strides=shape.stride, padding=padding)
        return [y, *tape.gradient(y, [x, w], output_gradients=dy)]

    return Contraction(lambda: compute(x, w, dy), _at_once)


CASES = contractions.cases(products, convolution)
