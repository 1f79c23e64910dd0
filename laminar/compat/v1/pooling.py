"""`tf.nn`: pooling, and the dilation of grey pictures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from laminar import engine, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.nn.windows import Geometry

from .adapting import v1
from .values import as_kind, operands, static, tensor
from .windows import as_given, channels_last, layout, padding_word, per_axis, spatial


def _pooling(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    @v1(input="value")
    def pool(
        value: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None
    ) -> Any:
        x = tensor(value)
        rank = len(x.shape)
        word, where = layout(data_format, rank)
        window = spatial(name, ksize, where, rank)
        moves = spatial(name, strides, where, rank)
        found: Tensor = fn(x, window, moves, padding_word(padding), word)
        return found

    pool.__doc__ = f"{name}: over windows of `ksize` at steps of `strides`."
    return pool


max_pool = _pooling("max_pool", ops.max_pool)
avg_pool = _pooling("avg_pool", ops.average_pool)


class _Windows:
    """The windows over images whose sizes are known, tap by tap.

    Attributes:
        geometry: of the windows.
    """

    def __init__(
        self, who: str, x: Tensor, window: Any, strides: Any, padding: Any, rates: Any
    ) -> None:
        sizes = [d for d in x.shape[1:-1] if d is not None]
        if len(sizes) != len(window):
            raise ShapeError(
                f"{who}: the sizes of the images must be known, got {x.spec}",
                remedy="use set_shape, or reshape to known sizes",
            )
        self.geometry = Geometry(who, sizes, window, strides, padding_word(padding), rates)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """The taps of a window, row by row."""
        return itertools.product(*map(range, self.geometry.window))

    def padded(self, x: Tensor, fill: Any) -> Tensor:
        """`x` with `fill` around it."""
        if not self.geometry.is_padded:
            return x
        found: Tensor = ops.pad(x, ((0, 0), *self.geometry.pads, (0, 0)), constant_values=fill)
        return found

    def cells(self, padded: Tensor, tap: tuple[int, ...]) -> Tensor:
        """What each window has at one of its taps."""
        found: Tensor = padded[(slice(None), *self.geometry.tap_cells(tap), slice(None))]
        return found


def _least(x: Tensor) -> Any:
    return float("-inf") if x.dtype.is_floating else x.dtype.min


@v1()
def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: Any,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Any:
    """The greatest ("MAX") or the mean ("AVG") over windows, with taps `dilation_rate` apart.

    The mean does not count what is outside of the images.
    """
    x = channels_last(tensor(input), data_format)
    rank = len(x.shape)
    where = slice(1, rank - 1)
    window = per_axis("pool", window_shape, where, rank)
    moves = per_axis("pool", strides, where, rank)
    rates = per_axis("pool", dilation_rate if dilations is None else dilations, where, rank)
    if pooling_type not in ("MAX", "AVG"):
        raise InvalidArgumentError(f"pool: expected 'MAX' or 'AVG', got {pooling_type!r}")
    if set(rates) == {1}:
        fn = ops.max_pool if pooling_type == "MAX" else ops.average_pool
        plain: Tensor = fn(x, window, moves, padding_word(padding))
        return as_given(plain, data_format)
    windows = _Windows("pool", x, window, moves, padding, rates)
    if pooling_type == "MAX":
        outside = windows.padded(x, _least(x))
        found = _greatest([windows.cells(outside, tap) for tap in windows])
    else:
        inside, ones = windows.padded(x, 0), windows.padded(lookup("OnesLike")(x), 0)
        found = engine.add_n([windows.cells(inside, tap) for tap in windows]) / engine.add_n(
            [windows.cells(ones, tap) for tap in windows]
        )
    return as_given(found, data_format)


def _greatest(xs: list[Tensor]) -> Tensor:
    found = xs[0]
    for x in xs[1:]:
        found = lookup("Maximum")(found, x)
    return found


@v1()
def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    Targmax: Any = None,  # noqa: N803  # TensorFlow's name
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> tuple[Tensor, Tensor]:
    """(the greatest of each window, its place in the image), the first of several.

    The place is (y * width + x) * channels + channel, with the image's number before y where
    `include_batch_in_index` is set.
    """
    who = "max_pool_with_argmax"
    x = tensor(input)
    if data_format != "NHWC":
        raise InvalidArgumentError(f"{who}: the layout must be NHWC, got {data_format!r}")
    where = slice(1, 3)
    window, moves = per_axis(who, ksize, where, 4), per_axis(who, strides, where, 4)
    windows = _Windows(who, x, window, moves, padding, None)
    outside = windows.padded(x, _least(x))
    taps = lookup("Stack")(*(windows.cells(outside, tap) for tap in windows), axis=0)
    tap = cast(ops.argmax(taps, 0), "int64")
    geometry = windows.geometry
    (rows, columns), channels = geometry.out, ops.shape(x)[3]
    y = ops.reshape(_starts(geometry, 0, rows), (rows, 1, 1)) + tap // window[1]
    z = ops.reshape(_starts(geometry, 1, columns), (columns, 1)) + tap % window[1]
    if include_batch_in_index:
        images = ops.reshape(ops.arange(ops.shape(x)[0], dtype="int64"), (-1, 1, 1, 1))
        y = y + images * geometry.dims[0]
    channel = ops.arange(channels, dtype="int64")
    place = (y * geometry.dims[1] + z) * cast(tensor(channels), "int64") + channel
    greatest = ops.max_pool(x, window, moves, padding_word(padding))
    return greatest, cast(
        place, as_kind(Targmax if output_dtype is None else output_dtype, "int64")
    )


def _starts(geometry: Geometry, axis: int, count: int) -> Tensor:
    """Where the windows begin along an axis, counted in the image."""
    first = -geometry.pads[axis][0]
    step = geometry.strides[axis]
    return engine.constant([first + i * step for i in range(count)], "int64")


def _dilated(who: str, value: Any, kernel: Any, strides: Any, rates: Any, padding: Any) -> Tensor:
    x, taps = operands(value, kernel)
    where = slice(1, 3)
    window = tuple(d for d in taps.shape[:2] if d is not None)
    windows = _Windows(
        who,
        x,
        window,
        per_axis(who, strides, where, 4),
        padding,
        per_axis(who, rates, where, 4),
    )
    outside = windows.padded(x, _least(x))
    return _greatest([windows.cells(outside, tap) + taps[tap] for tap in windows])


@v1(filters="filter", dilations="rates")
def dilation2d(
    input: Any, filter: Any = None, strides: Any = None, rates: Any = None, padding: Any = None
) -> Any:
    """The greatest of image + kernel over each window, channel by channel.

    Args:
        input: (batch, height, width, channels).
        filter: (height, width, channels).
        strides: of the windows, (1, rows, columns, 1).
        rates: how far taps are apart, likewise.
        padding: "SAME" or "VALID"; what is outside counts for nothing.

    Source: Serra, "Image Analysis and Mathematical Morphology", 1982.
    """
    return _dilated("dilation2d", input, filter, strides, rates, padding)


@v1()
def erosion2d(value: Any, kernel: Any, strides: Any, rates: Any, padding: Any) -> Any:
    """The least of image - kernel over each window: the dual of `dilation2d`."""
    x, taps = operands(value, kernel)
    return -_dilated("erosion2d", -x, ops.flip(taps, (0, 1)), strides, rates, padding)


def _of_sequences(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    @v1()
    def pool(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC") -> Any:
        return fn(input, static(ksize), static(strides), padding, data_format)

    pool.__doc__ = f"{name} of sequences, (batch, steps, channels)."
    return pool


max_pool1d = _of_sequences("max_pool", max_pool)
avg_pool1d = _of_sequences("avg_pool", avg_pool)
