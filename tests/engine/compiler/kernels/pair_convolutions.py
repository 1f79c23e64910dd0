"""Convolutions of bfloat16 into float32, by pairs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from laminar.engine.compiler.kernels import Buffer, Convolution, Launch, PairUnit, Target
from laminar.engine.compiler.kernels.pair_conv import (
    plan_pair_conv_forward,
    plan_pair_conv_input_gradient,
    takes_pairs,
)
from laminar.engine.compiler.kernels.pair_filter_gradient import (
    plan_pair_conv_filter_gradient,
    takes_pixel_pairs,
)

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
    places = Buffer(0), Buffer(1), Buffer(2), conv, target, unit
    found = {}
    if takes_pairs(conv, conv.channels, unit):
        found["forward"] = [x, filters], of_y, plan_pair_conv_forward(*places)
    if takes_pairs(conv, conv.filters, unit):
        found["input-gradient"] = [dy, filters], of_x, plan_pair_conv_input_gradient(*places)
    if takes_pixel_pairs(conv, unit):
        found["filter-gradient"] = [x, dy], of_filters, plan_pair_conv_filter_gradient(*places)
    return found
