"""Plans of convolutions of bfloat16 into float32: those of float32, with pairs as their elements.

Two channels of the operand, which are next to each other in memory, are a pair (see pairs.py). So
bands of the operand are copied as they are, and nothing but filters is rearranged.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...graph import float32
from .conv import COST_OF_FILTERS, ConvGeometry, ConvPlan, Filters, Image, is_empty, is_pointwise
from .filters import plan_pack
from .interleave import plan_interleave
from .launch import Epilogue, Launch, Matrix, Word
from .pair_products import plan_pair_products
from .pairs import PairUnit
from .tiles import Cut, Grid, Target
from .window import Convolution, forward_phases, gradient_phases

_SIZE = 4  # bytes of a pair
# Longer rows of filters are copied to panels.
_MOST_FILTERS = 128


def takes_pairs(conv: Convolution, channels: int, unit: PairUnit) -> bool:
    """Whether a convolution whose sums are over these channels is made of pairs with profit."""
    inside = channels // conv.groups
    return is_pointwise(conv) or (inside % 2 == 0 and unit.pays(inside // 2))


def plan_pair_conv_forward(
    x: Word,
    filters: Word,
    y: Word,
    conv: Convolution,
    target: Target,
    unit: PairUnit,
    *,
    epilogue: Epilogue | None = None,
) -> list[Launch]:
    """As plan_conv_forward, of bfloat16 x and filters to float32 y.

    Args:
        x: (images, *size, channels), contiguous.
        filters: (*window, channels / groups, filters), contiguous.
        y: (images, *output, filters), contiguous.
        conv: the sizes; `takes_pairs` holds for it and its channels.
        target: the vectors, and how many threads there may be.
        unit: what multiplies.
        epilogue: is given each finished block of y; rows are pixels.
    """
    depth, height, width = conv.axes
    geometry = ConvGeometry.of(*map(forward_phases, (depth, height, width)))
    source = Image(x, (depth.size, height.size, width.size), conv.channels // 2)
    result = Image(y, (depth.output, height.output, width.output), conv.filters)
    if is_empty(conv.images, *result.size, conv.filters):
        return []
    if is_pointwise(conv):
        a, b = Matrix(x, conv.channels, 1), Matrix(filters, conv.filters, 1)
        return _products(a, b, y, conv, conv.filters, conv.channels, target, unit, epilogue)
    inside, outside = source.channels // conv.groups, conv.filters // conv.groups
    taps = math.prod(conv.window)
    pairs = replace(conv, channels=source.channels)
    plan = _PairPlan(geometry, source, result, pairs, inside, outside, target, unit)
    first, data = plan_interleave(filters, taps * inside * 2, conv.filters, "pairs_of_filters")
    row = conv.filters * _SIZE
    if conv.filters <= _MOST_FILTERS:
        found = Filters(data, outside * _SIZE, 0, _SIZE, inside * row, row, 0)
        return [first, plan.launch(found, epilogue)]
    pack, packed = plan_pack(
        data,
        [inside * row * tap for tap in range(taps)],
        inside,
        outside,
        plan.groups,
        row,
        outside * _SIZE,
        plan.vectors,
        float32,
        target,
        turned=False,
    )
    return [first, pack, plan.launch(Filters.of(packed), epilogue)]


def plan_pair_conv_input_gradient(
    dy: Word,
    filters: Word,
    dx: Word,
    conv: Convolution,
    target: Target,
    unit: PairUnit,
    *,
    epilogue: Epilogue | None = None,
) -> list[Launch]:
    """As plan_conv_input_gradient, of bfloat16 dy and filters to float32 dx.

    Args:
        dy: (images, *output, filters), contiguous.
        filters: (*window, channels / groups, filters), contiguous.
        dx: (images, *size, channels), contiguous.
        conv: the sizes; `takes_pairs` holds for it and its filters.
        target: the vectors, and how many threads there may be.
        unit: what multiplies.
        epilogue: is given each finished block of dx; for convolutions of stride 1.
    """
    depth, height, width = conv.axes
    geometry = ConvGeometry.of(*map(gradient_phases, (depth, height, width)))
    source = Image(dy, (depth.output, height.output, width.output), conv.filters // 2)
    result = Image(dx, (depth.size, height.size, width.size), conv.channels)
    if is_empty(conv.images, *result.size, conv.channels):
        return []
    if is_pointwise(conv):
        a, b = Matrix(dy, conv.filters, 1), Matrix(filters, 1, conv.filters)
        return _products(a, b, dx, conv, conv.channels, conv.filters, target, unit, epilogue)
    inside, outside = source.channels // conv.groups, conv.channels // conv.groups
    pairs = replace(conv, filters=source.channels)
    plan = _PairPlan(geometry, source, result, pairs, inside, outside, target, unit)
    row = source.channels * _SIZE
    pack, packed = plan_pack(
        filters,
        [outside * row * tap for tap in plan.tap_order],
        inside,
        outside,
        plan.groups,
        row,
        inside * _SIZE,
        plan.vectors,
        float32,
        target,
        turned=True,
    )
    return [pack, plan.launch(Filters.of(packed), epilogue)]


def _products(
    a: Matrix,
    b: Matrix,
    to: Word,
    conv: Convolution,
    columns: int,
    inner: int,
    target: Target,
    unit: PairUnit,
    epilogue: Epilogue | None,
) -> list[Launch]:
    """A convolution that is a product: its rows are pixels."""
    rows = conv.images * math.prod(conv.size)
    c = Matrix(to, columns, 1)
    return plan_pair_products(
        *(a, b, c, rows, columns, inner, target.threads, unit), epilogue=epilogue
    )


class _PairPlan(ConvPlan):
    """A convolution whose operand has pairs for elements."""

    def __init__(
        self,
        geometry: ConvGeometry,
        source: Image,
        result: Image,
        conv: Convolution,
        inside: int,
        outside: int,
        target: Target,
        unit: PairUnit,
    ) -> None:
        self._unit = unit
        super().__init__(geometry, source, result, conv, inside, outside, float32, target)

    def _grid(self) -> Grid:
        vectors = -(-self.outside // self.target.lanes(float32))
        sums = math.prod(self.conv.window) * self.inside
        pixels = self.geometry.counts[2]
        return self._unit.grid(pixels, vectors, sums, self.target, COST_OF_FILTERS)

    def _microkernels(self, rows: Cut, count: int) -> tuple[Word, ...]:
        return self._unit.microkernels(rows, self.vectors, self.outside, count, self.target)
