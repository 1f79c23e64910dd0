"""Convolutions and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ....graph import DType, bfloat16, float32, float64
from ....ops.nn.conv_transpose import all_pads, out_dims
from ....ops.nn.windows import Geometry
from ...ir.builder import Builder
from ...ir.kernel_target import Target
from ...ir.launch import Buffer
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Operand, Shape, View
from ...ir.sizes import is_known
from ...kernels.conv.conv import plan_conv_forward, plan_conv_input_gradient, takes_pairs
from ...kernels.conv.filter_gradient import plan_conv_filter_gradient, takes_pixel_pairs
from ...kernels.conv.window import Convolution
from ...target.bfloat16_unit import PairUnit, pair_unit
from .table import Lowered, filled, lowers


def geometry(step: Lowered, spatial: Sequence[int], window: Sequence[int]) -> Geometry:
    """The window over axes of known sizes.

    Raises:
        NotLoweredError: a size is not known before the run.
    """
    if not all(map(is_known, (*spatial, *window))):
        raise NotLoweredError(f"{step.type} over axes of unknown size")
    return Geometry(
        step.type,
        spatial,
        window,
        step.attrs["strides"],
        step.attrs["padding"],
        step.attrs.get("dilations"),
    )


def _described(
    step: Lowered, images: int, spatial: Shape, channels: int, filters: int, window: Shape
) -> tuple[Callable[[Callable[[int], int]], Convolution], tuple[int, ...]]:
    """The convolution for real sizes, and the sizes of its output."""
    found = geometry(step, spatial, window)
    if any(p < 0 for pair in found.pads for p in pair):
        raise NotLoweredError(f"{step.type} that crops")
    groups = step.attrs["groups"]

    def describe(real: Callable[[int], int]) -> Convolution:
        return Convolution(
            real(images),
            found.dims,
            channels,
            filters,
            found.window,
            found.strides,
            found.dilations,
            found.pads,
            groups,
        )

    return describe, found.out


def _check(*dtypes: DType) -> None:
    if any(d not in (float32, float64) for d in dtypes):
        raise NotLoweredError(f"a convolution of {dtypes}")


def _one_for_unknown(size: int) -> int:
    return size if is_known(size) else 1


def _factors(
    b: Builder, takes: Callable[[PairUnit], bool], *operands: Operand
) -> tuple[PairUnit | None, tuple[View, ...]]:
    """What multiplies the operands as bfloat16, and these; None where it is done as they are."""
    unit = pair_unit()
    if unit is not None and takes(unit):
        found = [b.halves_of(x) if isinstance(x, View) else None for x in operands]
        views = tuple(b.whole(x) for x in found if x is not None and b.dtype(x) == bfloat16)
        if len(views) == len(operands):
            return unit, views
    return None, tuple(map(b.whole, operands))


@lowers("Conv")
def forward(b: Builder, step: Lowered, x: Operand, kernel: Operand) -> Operand:
    """y of x and filters (*window, channels / groups, filters)."""
    dtype = b.dtype(x)
    _check(dtype)
    images, *spatial, channels = b.shape(x)
    *window, _, filters = b.shape(kernel)
    describe, out = _described(step, images, tuple(spatial), channels, filters, tuple(window))
    sizes = describe(_one_for_unknown)
    unit, views = _factors(b, lambda unit: takes_pairs(sizes, channels, unit), x, kernel)

    def plan(real: Any, target: Target, inputs: Any, outputs: Any, epilogue: Any = None) -> Any:
        operands = Buffer(inputs[0]), Buffer(inputs[1]), Buffer(outputs[0]), describe(real)
        return plan_conv_forward(*operands, dtype, target, unit=unit, epilogue=epilogue)

    shape = (images, *out, filters)
    work = math.prod(shape) * math.prod(b.shape(kernel)[:-1])
    return b.kernel_call_on("convolution", views, shape, dtype, plan, work=work)


@lowers("ConvInputGrad")
def input_gradient(
    b: Builder, step: Lowered, dy: Operand, kernel: Operand, *dims: Operand
) -> Operand:
    """dx of dy and filters."""
    dtype = b.dtype(dy)
    _check(dtype)
    spatial = filled(step.attrs["input_dims"], dims)
    images, filters = b.shape(dy)[0], b.shape(dy)[-1]
    *window, inside, _ = b.shape(kernel)
    channels = inside * step.attrs["groups"]
    describe, out = _described(step, images, spatial, channels, filters, tuple(window))
    if b.shape(dy)[1:-1] != out:
        raise NotLoweredError(f"ConvInputGrad of {b.shape(dy)} for {spatial}")
    is_one_phase = all(s == 1 for s in step.attrs["strides"])

    sizes = describe(_one_for_unknown)
    unit, views = _factors(b, lambda unit: takes_pairs(sizes, filters, unit), dy, kernel)

    def plan(real: Any, target: Target, inputs: Any, outputs: Any, epilogue: Any = None) -> Any:
        operands = Buffer(inputs[0]), Buffer(inputs[1]), Buffer(outputs[0]), describe(real)
        return plan_conv_input_gradient(*operands, dtype, target, unit=unit, epilogue=epilogue)

    shape = (images, *spatial, channels)
    work = math.prod(b.shape(dy)) * math.prod(b.shape(kernel)[:-1])
    if is_one_phase:
        return b.kernel_call_on("convolution gradient", views, shape, dtype, plan, work=work)
    return b.kernel_call("convolution gradient", views, [(shape, dtype)], plan, work=work)[0]


@lowers("ConvKernelGrad")
def filter_gradient(b: Builder, step: Lowered, x: Operand, dy: Operand, *dims: Operand) -> Operand:
    """The gradient with respect to filters, of x and dy."""
    dtype = b.dtype(x)
    _check(dtype)
    window = filled(step.attrs["window"], dims)
    images, *spatial, channels = b.shape(x)
    filters = b.shape(dy)[-1]
    describe, out = _described(step, images, tuple(spatial), channels, filters, window)
    if b.shape(dy)[1:-1] != out:
        raise NotLoweredError(f"ConvKernelGrad of {b.shape(x)} and {b.shape(dy)}")

    sizes = describe(_one_for_unknown)
    unit, views = _factors(b, lambda unit: takes_pixel_pairs(sizes, unit), x, dy)

    def plan(real: Any, target: Target, inputs: Any, outputs: Any) -> Any:
        operands = Buffer(inputs[0]), Buffer(inputs[1]), Buffer(outputs[0]), describe(real)
        return plan_conv_filter_gradient(*operands, dtype, target, unit=unit)

    shape = (*window, channels // step.attrs["groups"], filters)
    work = math.prod(b.shape(dy)) * math.prod(shape[:-1])
    return b.kernel_call("filter gradient", views, [(shape, dtype)], plan, work=work)[0]


@lowers("ConvTranspose")
def _conv_transpose(
    b: Builder, step: Lowered, x: Operand, kernel: Operand
) -> Operand | Sequence[Operand]:
    """The gradient of a convolution with respect to its input, of the size that the op has."""
    strides, dilations = step.attrs["strides"], step.attrs["dilations"]
    *window, filters, _ = b.shape(kernel)
    spatial = b.shape(x)[1:-1]
    if not all(map(is_known, (*window, *spatial, filters))):
        raise NotLoweredError("ConvTranspose over axes of unknown size")
    pads = all_pads(window, strides, step.attrs["padding"], step.attrs["output_padding"], dilations)
    dims = out_dims(spatial, window, strides, pads, dilations)
    attrs = {
        "strides": strides,
        "dilations": dilations,
        "padding": pads,
        "groups": 1,
        "input_dims": dims,
    }
    return input_gradient(b, Lowered(step.type, attrs, step.dtypes), x, kernel)
