"""Tensors with more elements at the ends of their axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError, UnimplementedError
from laminar.engine.graph import FLOATING, Tensor, int32, string
from laminar.engine.ops.array import padding
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core.arrays import to_array
from laminar.engine.ops.core.entries import known_value
from laminar.engine.ops.math.cast import cast

from ..typing import TensorLike
from . import arithmetic, creation, reduction, rounding, statistics
from .arguments import floating, known_rank, tensor
from .indexing import take
from .join import concatenate
from .manipulation import repeat
from .recording import public

__all__ = ["pad"]


@public
def pad(
    x: TensorLike,
    pad_width: TensorLike,
    mode: str = "constant",
    constant_values: TensorLike | None = None,
) -> Tensor:
    """`x` with more elements at the ends of its axes.

    Args:
        x: any tensor.
        pad_width: (before, after) for each axis; one pair, or one number, stands for all axes.
        mode: "constant"; "edge", the last element again; "reflect", mirrored at the last element;
            "symmetric", mirrored beyond it; "wrap" or "circular", as if `x` went on from its other
            end; "maximum", "minimum", "mean" or "median" of the axis; "linear_ramp", from the
            last element down to 0; "empty", anything. Axes follow each other.
        constant_values: what "constant" pads with, by default 0.

    Raises:
        ShapeError: there are not as many pairs as axes, or "wrap" of an axis without elements.
        InvalidArgumentError: constant_values with another mode, or an unknown mode.
        UnimplementedError: a mode that does not copy single elements, with a `pad_width` that only
            a run knows.

    Examples:
        >>> ops.pad([1, 2], (1, 2), constant_values=0)
        Tensor([0, 1, 2, 0, 0], shape=(5,), dtype=int32)
    """
    if constant_values is not None and mode != "constant":
        raise InvalidArgumentError(
            f"pad: constant_values has a meaning for mode 'constant' only, the mode is {mode!r}"
        )
    x = tensor(x)
    widths = known_value(pad_width)
    if not isinstance(widths, Tensor):
        widths = _widths(widths)
    if mode in _BORDERS:
        return _with_borders(x, widths, mode)
    kind = "constant" if mode == "empty" else mode
    return padding.pad(x, widths, kind, _one_value(constant_values, x))


def _widths(pad_width: Any) -> Any:
    widths = to_array(pad_width, copy=False)[0]
    is_whole = widths.dtype.kind in "iu" or not widths.size
    is_paired = widths.shape in ((), (1,)) or (widths.ndim <= 2 and widths.shape[-1] == 2)
    if not is_whole or (widths.size and not is_paired):
        raise InvalidArgumentError(
            f"pad: expected a pair (before, after) for each axis, got pad_width={pad_width!r}",
            remedy="pad_width=((1, 1), (2, 2)), for two axes",
        )
    return widths.tolist()


def _one_value(constant_values: Any, x: Tensor) -> Any:
    if constant_values is None:
        return "" if x.dtype == string else 0
    value = np.asarray(constant_values)
    if x.dtype == string and value.size == 1 and value.dtype.kind in "USO":
        found = value.item()
        return found.decode() if isinstance(found, bytes) else str(found)
    if value.size != 1 or value.dtype.kind not in "biufc":
        raise InvalidArgumentError(
            f"pad: constant_values must be one number, got {constant_values!r}",
            remedy="join the borders yourself, with concatenate, where they differ",
        )
    return value.item()


def _with_borders(x: Tensor, widths: Any, mode: str) -> Tensor:
    """`x` between borders that are made of it, axis by axis."""
    if isinstance(widths, Tensor):
        raise UnimplementedError(f"pad: mode {mode!r} needs a pad_width that is known beforehand")
    rank = known_rank("pad", x)
    pairs = np.asarray(widths)
    pairs = pairs if pairs.ndim == 2 else np.broadcast_to(pairs, (1, 2))
    if len(pairs) not in (1, rank):
        raise ShapeError(f"pad: {len(pairs)} pairs for the {rank} axes of {x.spec}")
    for axis, pair in enumerate(np.broadcast_to(pairs, (rank, 2)).tolist()):
        if min(pair) < 0:
            raise InvalidArgumentError(f"pad: widths are at least 0, got {pair}")
        if any(pair):
            if x.shape[axis] == 0:
                raise ShapeError(f"pad: there is nothing along axis {axis} of {x.spec} to go on")
            before, after = (_BORDERS[mode](x, axis, n, i) for i, n in enumerate(pair))
            x = concatenate([before, x, after], axis)
    return x


def _other_end(x: Tensor, axis: int, width: int, side: int) -> Tensor:
    first = 0 if side else -width
    places = creation.arange(first, first + width, dtype="int32")
    return take(x, arithmetic.mod(places, cast(dim_of(x, axis=axis), int32)), axis)


def _ramp(x: Tensor, axis: int, width: int, side: int) -> Tensor:
    shares = np.arange(width) / max(width, 1)
    shape = [1] * len(x.shape)
    shape[axis] = width
    last = floating(take(x, [-1 if side else 0], axis))
    shares = (shares[::-1] if side else shares).reshape(shape)
    values = arithmetic.multiply(last, tensor(shares, last.dtype))
    return cast(values if x.dtype in FLOATING else rounding.floor(values), x.dtype)


def _repeated(statistic: Callable[..., Any]) -> Callable[[Tensor, int, int, int], Tensor]:
    """Borders that repeat a statistic of their axis, rounded among integers."""

    def border(x: Tensor, axis: int, width: int, side: int) -> Tensor:
        found = statistic(x, axis=axis, keepdims=True)
        if found.dtype != x.dtype:
            found = cast(rounding.round(found), x.dtype)
        return repeat(found, width, axis)

    return border


# How a mode makes a border: of a tensor, along an axis, of a width, before it (0) or after it (1).
_BORDERS: dict[str, Callable[[Tensor, int, int, int], Tensor]] = {
    "wrap": _other_end,
    "circular": _other_end,
    "linear_ramp": _ramp,
    "maximum": _repeated(reduction.max),
    "minimum": _repeated(reduction.min),
    "mean": _repeated(reduction.mean),
    "median": _repeated(statistics.median),
}
