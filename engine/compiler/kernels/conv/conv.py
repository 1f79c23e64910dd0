"""Plans of convolutions: forward, and the gradient with respect to the input.

Two channels of bfloat16 that are next to each other in memory are a pair (see pairs.py): then only
filters are rearranged, and all else is as for numbers.
"""

from __future__ import annotations

import math
from functools import partial

from ....errors import InvalidArgumentError
from ....graph import DType
from ...ir.kernel_target import Target
from ...ir.launch import Epilogue, Launch, Matrix, Word
from ...target.bfloat16_unit import PairUnit
from ..bf16.interleave import plan_interleave
from ..bf16.pairs import pays
from ..gemm.operand_format import Factors
from ..gemm.products import plan_product
from .conv_plan import ConvGeometry, ConvPlan, Filters, Image, is_lanewise
from .depthwise import is_in_rows, plan_depthwise_forward, plan_depthwise_input_gradient
from .filter_layout import plan_pack
from .narrow_gradient import is_narrow, plan_narrow_gradient
from .window import Convolution, forward_phases, gradient_phases
from .winograd import (
    codes_for_more_images,
    is_winograd,
    plan_winograd_forward,
    plan_winograd_input_gradient,
    ready_for_an_image,
)

# Rows of filters this far apart are copied to panels.
_FAR_BYTES = 512


def takes_pairs(conv: Convolution, channels: int, unit: PairUnit) -> bool:
    """Whether a convolution whose sums are over these channels is made of pairs with profit."""
    inside = channels // conv.groups
    return is_pointwise(conv) or (inside % 2 == 0 and pays(unit, inside // 2))


def plan_conv_forward(
    x: Word,
    filters: Word,
    y: Word,
    conv: Convolution,
    dtype: DType,
    target: Target,
    *,
    unit: PairUnit | None = None,
    epilogue: Epilogue | None = None,
) -> list[Launch]:
    """The convolution `conv` of x with filters, to y.

    Args:
        x: (images, *size, channels), contiguous.
        filters: (*window, channels / groups, filters), contiguous.
        y: (images, *output, filters), contiguous.
        conv: the sizes.
        dtype: float32 or float64, of all three.
        target: the vectors, and how many threads there may be.
        unit: what multiplies x and filters if they are bfloat16, and y float32; `takes_pairs` holds
            for the channels.
        epilogue: is given each finished block of y; rows are pixels.
    """
    depth, height, width = conv.axes
    geometry = ConvGeometry.of(*map(forward_phases, (depth, height, width)))
    factors = Factors(dtype, unit)
    result = Image(y, (depth.output, height.output, width.output), conv.filters)
    if is_empty(conv.images, *result.size, conv.filters):
        return []
    if is_pointwise(conv):
        a, b = Matrix(x, conv.channels, 1), Matrix(filters, conv.filters, 1)
        return _plan_pointwise(
            a, b, y, conv, conv.channels, conv.filters, factors, target, epilogue
        )
    if unit is None and is_lanewise(conv) and is_in_rows(conv):
        return plan_depthwise_forward(x, filters, y, conv, dtype, target, epilogue)
    if unit is None and is_winograd(conv, dtype, target):
        found = plan_winograd_forward(x, filters, y, conv, dtype, target, epilogue)
        other = partial(plan_conv_forward, x, filters, y, epilogue=epilogue)
        return ready_for_an_image(found, conv, dtype, target, other)
    source = Image(x, (depth.size, height.size, width.size), factors.elements(conv.channels))
    inside, outside = _channels(conv, source.channels, conv.filters)
    plan = ConvPlan(geometry, source, result, conv, inside, outside, factors, target)
    found, taps = list[Launch](), math.prod(conv.window)
    others = () if unit else codes_for_more_images(conv, dtype, target)
    if unit is not None:
        first, filters = plan_interleave(filters, taps * inside, conv.filters, "pairs_of_filters")
        found.append(first)
    row = conv.filters * dtype.size
    if row < _FAR_BYTES:
        group = outside * dtype.size
        near = Filters(filters, group, 0, dtype.size, inside * row, row, 0)
        return [*found, plan.launch(near, epilogue)._replace(others=others)]
    pack, packed = plan_pack(
        filters,
        [inside * row * tap for tap in range(taps)],
        inside,
        outside,
        plan.groups,
        row,
        outside * dtype.size,
        plan.vectors,
        dtype,
        target,
        transposed=False,
    )
    return [*found, pack, plan.launch(Filters.of(packed), epilogue)._replace(others=others)]


def plan_conv_input_gradient(
    dy: Word,
    filters: Word,
    dx: Word,
    conv: Convolution,
    dtype: DType,
    target: Target,
    *,
    unit: PairUnit | None = None,
    epilogue: Epilogue | None = None,
) -> list[Launch]:
    """The gradient of plan_conv_forward with respect to x, from dy to dx.

    Args:
        dy: (images, *output, filters), contiguous.
        filters: (*window, channels / groups, filters), contiguous.
        dx: (images, *size, channels), contiguous.
        conv: the sizes.
        dtype: float32 or float64, of all three.
        target: the vectors, and how many threads there may be.
        unit: what multiplies dy and filters if they are bfloat16, and dx float32; `takes_pairs`
            holds for the filters.
        epilogue: is given each finished block of dx; for convolutions of stride 1.

    Raises:
        InvalidArgumentError: an epilogue with strides, where dx is not made row by row.
    """
    if epilogue is not None and max(conv.strides) > 1:
        raise InvalidArgumentError(
            f"plan_conv_input_gradient: an epilogue takes strides of 1, not {conv.strides}"
        )
    depth, height, width = conv.axes
    geometry = ConvGeometry.of(*map(gradient_phases, (depth, height, width)))
    factors = Factors(dtype, unit)
    result = Image(dx, (depth.size, height.size, width.size), conv.channels)
    if is_empty(conv.images, *result.size, conv.channels):
        return []
    if is_pointwise(conv):
        a, b = Matrix(dy, conv.filters, 1), Matrix(filters, 1, conv.filters)
        return _plan_pointwise(
            a, b, dx, conv, conv.filters, conv.channels, factors, target, epilogue
        )
    if unit is None and epilogue is None and is_narrow(conv, dtype, target):
        return plan_narrow_gradient(dy, filters, dx, conv, dtype, target)
    is_in_order = is_lanewise(conv) and max(conv.strides) == 1
    if unit is None and is_in_order and is_in_rows(conv):
        return plan_depthwise_input_gradient(dy, filters, dx, conv, dtype, target, epilogue)
    if unit is None and is_winograd(conv, dtype, target):
        found = plan_winograd_input_gradient(dy, filters, dx, conv, dtype, target, epilogue)
        other = partial(plan_conv_input_gradient, dy, filters, dx, epilogue=epilogue)
        return ready_for_an_image(found, conv, dtype, target, other)
    source = Image(dy, (depth.output, height.output, width.output), factors.elements(conv.filters))
    inside, outside = _channels(conv, source.channels, conv.channels)
    plan = ConvPlan(geometry, source, result, conv, inside, outside, factors, target)
    row = source.channels * dtype.size
    pack, packed = plan_pack(
        filters,
        [conv.channels // conv.groups * row * tap for tap in plan.tap_order],
        inside,
        outside,
        plan.groups,
        row,
        inside * dtype.size,
        plan.vectors,
        dtype,
        target,
        transposed=not plan.is_lanewise,
    )
    others = () if unit else codes_for_more_images(conv, dtype, target)
    return [pack, plan.launch(Filters.of(packed), epilogue)._replace(others=others)]


def is_empty(*sizes: int) -> bool:
    """Whether there is nothing of some kind."""
    return min(sizes) == 0


def is_pointwise(conv: Convolution) -> bool:
    """Whether it is a product of matrices."""
    ones = {*conv.window, *conv.strides}
    return ones == {1} and conv.groups == 1 and not any(p for pair in conv.padding for p in pair)


def _plan_pointwise(
    a: Matrix,
    b: Matrix,
    to: Word,
    conv: Convolution,
    inner: int,
    columns: int,
    factors: Factors,
    target: Target,
    epilogue: Epilogue | None,
) -> list[Launch]:
    """A convolution that is a product: its rows are pixels."""
    rows = conv.images * math.prod(conv.size)
    c = Matrix(to, columns, 1)
    return plan_product(a, b, c, rows, columns, inner, factors, target, epilogue=epilogue)


def _channels(conv: Convolution, source: int, result: int) -> tuple[int, int]:
    """Channels of the operand in a sum, and of the result that are made together."""
    return (1, result) if is_lanewise(conv) else (source // conv.groups, result // conv.groups)
