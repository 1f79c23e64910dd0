"""Convolutions and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....graph import DType, bfloat16, float32, float64
from ....ops.nn.conv_transpose import all_pads, out_dims
from ....ops.nn.windows import Geometry
from ...ir.builder import Builder
from ...ir.launch import Launch
from ...ir.not_lowered import NotLoweredError
from ...ir.program import KernelArguments, KernelPlanner, Operand, Shape, View
from ...ir.sizes import is_known
from ...kernels.conv.conv import plan_conv_forward, plan_conv_input_gradient, takes_pairs
from ...kernels.conv.filter_gradient import plan_conv_filter_gradient, takes_pixel_pairs
from ...kernels.conv.window import Convolution
from ...kernels.conv.winograd import beats_pairs
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
) -> Convolution:
    """The convolution, of a number of images that may be symbolic."""
    found = geometry(step, spatial, window)
    if any(p < 0 for pair in found.pads for p in pair):
        raise NotLoweredError(f"{step.type} that crops")
    return Convolution(
        images,
        found.dims,
        channels,
        filters,
        found.window,
        found.strides,
        found.dilations,
        found.pads,
        step.attrs["groups"],
    )


@dataclass(frozen=True)
class ConvolutionPlanner(KernelPlanner):
    """The kernels of a convolution.

    Attributes:
        geometry: its sizes; that of images may be symbolic.
        dtype: of the operands.
        unit: what multiplies them as bfloat16, if anything does.
    """

    geometry: Convolution
    dtype: DType
    unit: PairUnit | None

    def parameters(self) -> dict[str, Any]:
        x = self.geometry
        sizes = {"strides": x.strides, "padding": x.padding}
        return {**sizes, "dilation": x.dilation, "groups": x.groups}

    def sized(self, real: Callable[[int], int]) -> Convolution:
        """The geometry in a run."""
        return replace(self.geometry, images=real(self.geometry.images))

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        (x, filters), (y,) = arguments.inputs, arguments.outputs
        return plan_conv_forward(
            x,
            filters,
            y,
            self.sized(arguments.real),
            self.dtype,
            arguments.target,
            unit=self.unit,
            epilogue=arguments.epilogue,
        )


class InputGradientPlanner(ConvolutionPlanner):
    """The kernels of the gradient with respect to the input."""

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        (dy, filters), (dx,) = arguments.inputs, arguments.outputs
        return plan_conv_input_gradient(
            dy,
            filters,
            dx,
            self.sized(arguments.real),
            self.dtype,
            arguments.target,
            unit=self.unit,
            epilogue=arguments.epilogue,
        )


class FilterGradientPlanner(ConvolutionPlanner):
    """The kernels of the gradient with respect to the filters."""

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        (x, dy), (df,) = arguments.inputs, arguments.outputs
        sizes = self.sized(arguments.real)
        return plan_conv_filter_gradient(
            x, dy, df, sizes, self.dtype, arguments.target, unit=self.unit
        )


def _check(*dtypes: DType) -> None:
    if any(d not in (float32, float64) for d in dtypes):
        raise NotLoweredError(f"a convolution of {dtypes}")


def _factors(
    b: Builder, sizes: Convolution, takes: Callable[[PairUnit], bool], *operands: Operand
) -> tuple[PairUnit | None, tuple[View, ...]]:
    """What multiplies the operands as bfloat16, and these; None where it is done as they are."""
    if b.machine.halves:
        found = [b.halves_of(x) if isinstance(x, View) else None for x in operands]
        dtypes = {b.dtype(x) for x in found if x is not None}
        if None not in found and len(dtypes) == 1 and dtypes <= b.machine.halves:
            return None, tuple(b.whole(x) for x in found if x is not None)
    unit = pair_unit() if b.machine.halves is None else None
    if unit is not None and takes(unit) and not beats_pairs(sizes, unit):
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
    sizes = _described(step, images, tuple(spatial), channels, filters, tuple(window))
    unit, views = _factors(b, sizes, lambda unit: takes_pairs(sizes, channels, unit), x, kernel)
    planner = ConvolutionPlanner(sizes, dtype, unit)
    shape = (images, *sizes.output, filters)
    work = math.prod(shape) * math.prod(b.shape(kernel)[:-1])
    return b.kernel_call_on("convolution", views, shape, dtype, planner, work=work)


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
    sizes = _described(step, images, spatial, channels, filters, tuple(window))
    if b.shape(dy)[1:-1] != sizes.output:
        raise NotLoweredError(f"ConvInputGrad of {b.shape(dy)} for {spatial}")
    unit, views = _factors(b, sizes, lambda unit: takes_pairs(sizes, filters, unit), dy, kernel)
    planner = InputGradientPlanner(sizes, dtype, unit)
    shape = (images, *spatial, channels)
    work = math.prod(b.shape(dy)) * math.prod(b.shape(kernel)[:-1])
    if all(s == 1 for s in sizes.strides):  # rows are finished in one phase
        return b.kernel_call_on("convolution gradient", views, shape, dtype, planner, work=work)
    return b.kernel_call("convolution gradient", views, [(shape, dtype)], planner, work=work)[0]


@lowers("ConvKernelGrad")
def filter_gradient(b: Builder, step: Lowered, x: Operand, dy: Operand, *dims: Operand) -> Operand:
    """The gradient with respect to filters, of x and dy."""
    dtype = b.dtype(x)
    _check(dtype)
    window = filled(step.attrs["window"], dims)
    images, *spatial, channels = b.shape(x)
    filters = b.shape(dy)[-1]
    sizes = _described(step, images, tuple(spatial), channels, filters, window)
    if b.shape(dy)[1:-1] != sizes.output:
        raise NotLoweredError(f"ConvKernelGrad of {b.shape(x)} and {b.shape(dy)}")
    unit, views = _factors(b, sizes, lambda unit: takes_pixel_pairs(sizes, unit), x, dy)
    planner = FilterGradientPlanner(sizes, dtype, unit)
    shape = (*window, channels // step.attrs["groups"], filters)
    work = math.prod(b.shape(dy)) * math.prod(shape[:-1])
    return b.kernel_call("filter gradient", views, [(shape, dtype)], planner, work=work)[0]


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
