"""Sliding windows over the spatial axes of a tensor (batch, *spatial, channels).

The geometry that convolution and pooling share. Along one axis of size D, a window of size k with
dilation d covers k' = (k - 1) d + 1 cells; it moves by the stride s over the axis, which is padded
by `before` and `after` cells (a negative number crops).
Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
    arXiv:1603.07285, sections 2 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import Array, Dim, Tensor, TensorSpec
from ..array.shape import dim_of

Pair: TypeAlias = tuple[int, int]
# "valid": no padding. "same": ceil(D / s) positions, the odd cell after. "causal": k' - 1 before.
Padding: TypeAlias = str | tuple[Pair, ...]

# Bytes that a kernel works on at a time, so that they stay in the second-level cache.
_BLOCK_BYTES = 1 << 20

_NAMED = ("valid", "same", "causal")


def per_axis(who: str, what: str, value: int | Sequence[int], axes: int) -> tuple[int, ...]:
    """`value` as one whole number >= 1 for each of `axes` spatial axes.

    Raises:
        DTypeError: it is neither a whole number nor `axes` of them.
        InvalidArgumentError: a number is less than 1.
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    found = tuple(value) if isinstance(value, Sequence) else (value,) * axes
    expected = (
        f"{who}: {what} must be one whole number >= 1, or {axes} of them "
        f"(one per spatial axis), got {value!r}"
    )
    if len(found) != axes or not all(hasattr(v, "__index__") for v in found):
        raise DTypeError(expected)
    if any(v < 1 for v in found):
        raise InvalidArgumentError(expected)
    return tuple(int(v) for v in found)


def as_padding(who: str, padding: str | Sequence[Sequence[int]], axes: int) -> Padding:
    """`padding` as an attribute: "valid", "same", "causal", or a pair for each spatial axis.

    Raises:
        InvalidArgumentError: it is none of these.
    """
    if isinstance(padding, str):
        if padding.lower() in _NAMED:
            return padding.lower()
    elif np.shape(padding) == (axes, 2):
        return tuple((int(before), int(after)) for before, after in padding)
    raise InvalidArgumentError(
        f"{who}: padding must be one of {', '.join(map(repr, _NAMED))}, "
        f"or {axes} pairs (before, after), got {padding!r}"
    )


def covered(size: int, dilation: int) -> int:
    """The cells from the first to the last that a window of `size` taps covers."""
    return (size - 1) * dilation + 1


def pad_pair(padding: Padding, axis: int, dim: int, window: int, stride: int) -> Pair:
    """The cells to add before and after spatial axis `axis` of size `dim`.

    Args:
        padding: see `Padding`.
        axis: which spatial axis.
        dim: its size.
        window: the cells that the window covers.
        stride: the step of the window.
    """
    if not isinstance(padding, str):
        return padding[axis]
    if padding == "valid":
        return 0, 0
    if padding == "causal":
        return window - 1, 0
    total = max((-(-dim // stride) - 1) * stride + window - dim, 0)
    return total // 2, total - total // 2


def window_dims(
    who: str,
    dims: Sequence[Dim],
    window: Sequence[Dim],
    strides: Sequence[int],
    padding: Padding,
    dilations: Sequence[int],
) -> tuple[Dim, ...]:
    """How many positions the window has along each axis; None where that is not known.

    Raises:
        ShapeError: a window is larger than its padded axis.
    """
    found: list[Dim] = []
    for axis, (dim, size, stride, dilation) in enumerate(
        zip(dims, window, strides, dilations, strict=True)
    ):
        if dim is not None and padding == "same":
            found.append(-(-dim // stride))
            continue
        if dim is None or size is None:
            found.append(None)
            continue
        span = covered(size, dilation)
        padded = dim + sum(pad_pair(padding, axis, dim, span, stride))
        if padded < span:
            raise ShapeError(
                f"{who}: the window covers {span} cells along spatial axis {axis}, "
                f"but the input has {dim} there ({padded} with padding {padding!r})",
                remedy='use padding="same", a smaller window or dilation, or a larger input',
            )
        found.append((padded - span) // stride + 1)
    return tuple(found)


class Geometry:
    """A window over spatial axes whose sizes are known: what a kernel computes with.

    Attributes:
        dims: size of each spatial axis.
        window: taps along each axis.
        strides: step along each axis.
        dilations: distance of neighbouring taps along each axis.
        pads: cells added before and after each axis.
        out: positions along each axis.
        padded: size of each axis with its padding.
    """

    def __init__(
        self,
        who: str,
        dims: Sequence[int],
        window: Sequence[int],
        strides: Sequence[int],
        padding: Padding,
        dilations: Sequence[int] | None = None,
    ) -> None:
        self.dims = tuple(dims)
        self.window = tuple(window)
        self.strides = tuple(strides)
        self.dilations = (1,) * len(self.dims) if dilations is None else tuple(dilations)
        self.out: tuple[int, ...] = window_dims(  # type: ignore[assignment]  # nothing is unknown
            who, dims, window, strides, padding, self.dilations
        )
        self.pads = tuple(
            pad_pair(padding, axis, dim, covered(size, dilation), stride)
            for axis, (dim, size, stride, dilation) in enumerate(
                zip(dims, window, strides, self.dilations, strict=True)
            )
        )
        self.padded = tuple(d + b + a for d, (b, a) in zip(self.dims, self.pads, strict=True))

    @property
    def taps(self) -> int:
        """The number of cells that the window looks at."""
        return math.prod(self.window)

    @property
    def is_padded(self) -> bool:
        """Whether any axis is padded or cropped."""
        return self.padded != self.dims or any(before for before, _ in self.pads)

    def interior(self) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Where the cells of the axes lie in the padded axes, and which of them are not cropped."""
        inside, kept = [], []
        for dim, (before, after) in zip(self.dims, self.pads, strict=True):
            first, last = max(0, -before), dim - max(0, -after)
            inside.append(slice(first + before, max(last, first) + before))
            kept.append(slice(first, max(last, first)))
        return tuple(inside), tuple(kept)

    def reach(self, axis: int, tap: int) -> tuple[slice, slice]:
        """The positions at which tap `tap` of `axis` meets a cell, and the cells it meets there."""
        stride, out, dim = self.strides[axis], self.out[axis], self.dims[axis]
        offset = tap * self.dilations[axis] - self.pads[axis][0]
        first = max(0, -(offset // stride))
        last = max(first, min(out, (dim - 1 - offset) // stride + 1))
        start = first * stride + offset
        return slice(first, last), slice(start, start + (last - first) * stride, stride)

    def tap_cells(self, tap: Sequence[int]) -> tuple[slice, ...]:
        """The cells of the padded axes that one tap of the window meets, position by position."""
        return tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, self.dilations, self.out, self.strides, strict=True)
        )


def spatial_dims(x: Tensor, axes: int, first: int = 1) -> tuple[tuple[Dim, ...], list[Tensor]]:
    """The sizes of `axes` axes of `x` from `first` on, and tensors for those that are unknown."""
    known = dims_at(x.spec, first, axes)
    return known, [dim_of(x, axis=first + i) for i, d in enumerate(known) if d is None]


def dim_at(x: TensorSpec, axis: int) -> Dim:
    """The size of `x` along `axis`, None where that is not known."""
    return None if x.shape.rank is None else x.shape[axis]


def dims_at(x: TensorSpec, first: int, count: int) -> tuple[Dim, ...]:
    """The sizes of `count` axes of `x` from `first` on, None where they are not known."""
    return (None,) * count if x.shape.rank is None else tuple(x.shape[first : first + count])


def check_rank(who: str, what: str, x: TensorSpec, rank: int) -> None:
    """Refuse an input whose number of axes is known to be wrong.

    Raises:
        ShapeError: it does not have `rank` axes.
    """
    if x.shape.rank not in (None, rank):
        axes = {3: "length", 4: "height, width", 5: "depth, height, width"}
        raise ShapeError(
            f"{who}: {what} must have {rank} axes, got {x}",
            remedy=f"x is (batch, {axes.get(rank, '*spatial')}, channels), "
            "with one stride and one window size per spatial axis",
        )


def batches(size: int, cells: int) -> Iterator[slice]:
    """A batch of `size` examples in parts, when the work on one example fills `cells` numbers."""
    step = max(1, _BLOCK_BYTES // max(1, cells * 4))
    for first in range(0, size, step):
        yield slice(first, min(first + step, size))


def padded_blocks(
    xp: Any, x: Array, geometry: Geometry, dtype: Any, cells: int
) -> Iterator[tuple[slice, Array]]:
    """`x` with its padding, as `dtype`, in parts of the batch; each part overwrites the one before.

    Args:
        xp: the array library.
        x: (batch, *spatial, channels).
        geometry: says how the spatial axes are padded.
        dtype: of the parts.
        cells: numbers that the work fills for one position of the window.
    """
    parts = batches(x.shape[0], math.prod(geometry.out) * cells)
    if not geometry.is_padded and x.dtype == dtype:
        yield from ((batch, x[batch]) for batch in parts)
        return
    inside, kept = geometry.interior()
    block: Array = None
    for batch in parts:
        count = batch.stop - batch.start
        if block is None:
            block = xp.zeros((count, *geometry.padded, x.shape[-1]), dtype)
        block[(slice(count), *inside)] = x[(batch, *kept)]
        yield batch, block[:count]


def without_padding(xp: Any, dx: Array, geometry: Geometry) -> Array:
    """`dx` without the padding of its spatial axes, and with zeros for what was cropped."""
    if not geometry.is_padded:
        return dx
    inside, kept = geometry.interior()
    if all(before >= 0 and after >= 0 for before, after in geometry.pads):
        return xp.ascontiguousarray(dx[(slice(None), *inside)])
    whole = xp.zeros((dx.shape[0], *geometry.dims, dx.shape[-1]), dx.dtype)
    whole[(slice(None), *kept)] = dx[(slice(None), *inside)]
    return whole
