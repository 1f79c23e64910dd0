"""Convolutions of bfloat16 into float32, by pairs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from laminar.engine.compiler.kernels import (
    Buffer,
    Convolution,
    Launch,
    PairUnit,
    Target,
    plan_conv_filter_gradient,
    plan_conv_forward,
    plan_conv_input_gradient,
)
from laminar.engine.compiler.kernels.conv.conv import takes_pairs
from laminar.engine.compiler.kernels.conv.filter_gradient import takes_pixel_pairs
from laminar.engine.graph import float32

from .convolutions import numbers, shapes

VECTOR_BYTES = 64
Array = NDArray[Any]


def cases(
    conv: Convolution, unit: PairUnit, num_threads: int
) -> dict[str, tuple[list[Array], Array, list[Launch]]]:
    """Operands, a result full of numbers, and launches, of those that are made of pairs."""
    x, filters, dy = numbers(conv, ml_dtypes.bfloat16)
    of_x, of_filters, of_y = (np.full(shape, 7, np.float32) for shape in shapes(conv))
    target = Target(VECTOR_BYTES, num_threads)
    places = Buffer(0), Buffer(1), Buffer(2), conv, float32, target
    found = {}
    if takes_pairs(conv, conv.channels, unit):
        found["forward"] = [x, filters], of_y, plan_conv_forward(*places, unit=unit)
    if takes_pairs(conv, conv.filters, unit):
        found["input-gradient"] = [dy, filters], of_x, plan_conv_input_gradient(*places, unit=unit)
    if takes_pixel_pairs(conv, unit):
        found["filter-gradient"] = (
            [x, dy],
            of_filters,
            plan_conv_filter_gradient(*places, unit=unit),
        )
    return found
