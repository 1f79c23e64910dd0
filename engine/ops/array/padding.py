"""Pad: more elements before and after those that an axis has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import (
    ANY,
    INTEGER,
    NUMERIC,
    Array,
    Dim,
    OpView,
    Tensor,
    TensorSpec,
    unknown_shape,
)
from ..core.arrays import computing_dtype
from ..core.entries import known_value
from ..core.op_def import Grads
from ..core.registry import define
from .index import strided_slice

Paddings = tuple[tuple[int, int], ...]

_MODES = ("constant", "reflect", "symmetric", "edge")


def check_paddings(who: str, paddings: Paddings, mode: str) -> None:
    """Raise InvalidArgumentError for a mode that is unknown, and for negative numbers."""
    if mode not in _MODES:
        raise InvalidArgumentError(
            f"{who}: mode must be one of {', '.join(_MODES)}, got {mode!r}",
        )
    if any(n < 0 for pair in paddings for n in pair):
        raise InvalidArgumentError(
            f"{who}: the paddings cannot be negative, got {paddings}",
            remedy="take a slice to remove elements",
        )


def _check(who: str, x: TensorSpec, paddings: Paddings, mode: str) -> None:
    check_paddings(who, paddings, mode)
    if x.shape.rank is not None and len(x.shape) != len(paddings):
        raise ShapeError(
            f"{who}: {len(paddings)} pairs of paddings for {x}, which has {len(x.shape)} axes",
            remedy="give (before, after) for each axis",
        )


@define("Pad", dtypes={"x": ANY})
def _pad(x: TensorSpec, *, paddings: Paddings, mode: str, value: complex | str) -> TensorSpec:
    """`x` with paddings[i] = (before, after) more elements at the two ends of each axis i.

    They are, by `mode`: "constant": `value`; "edge": the element at the end; "reflect": the
    elements mirrored at the end (c b | a b c | b a); "symmetric": mirrored beyond it
    (b a | a b c | c b).
    """
    _check("Pad", x, paddings, mode)
    if x.shape.rank is None:
        return TensorSpec([None] * len(paddings), x.dtype)
    dims: list[Dim] = []
    for n, (before, after) in zip(x.shape, paddings, strict=True):
        if mode != "constant" and n == 0 and before + after:
            raise ShapeError(f"Pad: an empty axis of {x} has nothing to pad with in mode {mode!r}")
        dims.append(None if n is None else n + before + after)
    return TensorSpec(dims, x.dtype)


@_pad.reference
def _pad_kernel(xp: Any, x: Array, *, paddings: Paddings, mode: str, value: complex | str) -> Array:
    if mode != "constant":
        return xp.pad(x, paddings, mode=mode)
    shape = [n + before + after for n, (before, after) in zip(x.shape, paddings, strict=True)]
    y = _filled(xp, shape, value, x)
    y[inside(x.shape, paddings)] = x
    return y


def _filled(xp: Any, shape: Sequence[int], value: complex | str, x: Array) -> Array:
    if x.dtype == object:  # byte strings
        return np.full(shape, value.encode() if isinstance(value, str) else b"", object)
    is_zero = not any(np.asarray(value).tobytes())  # no bit is set, as one is in -0.0
    return xp.zeros(shape, x.dtype) if is_zero else xp.full(shape, value, x.dtype)


def inside(shape: Sequence[int], paddings: Paddings) -> tuple[slice, ...]:
    """Where the elements of an array of `shape` stand in the padded one."""
    return tuple(slice(b, b + n) for n, (b, _) in zip(shape, paddings, strict=True))


@_pad.grad
def _pad_grad(op: OpView, dy: Tensor) -> Grads:
    paddings = op.attrs["paddings"]
    if op.attrs["mode"] != "constant":
        return (_pad_grad_op(dy, paddings=paddings, mode=op.attrs["mode"]),)
    return (strided_slice(dy, index=tuple((b, -a or None, None) for b, a in paddings)),)


@define("PadGrad", dtypes={"dy": NUMERIC})
def _pad_grad_op(dy: TensorSpec, *, paddings: Paddings, mode: str) -> TensorSpec:
    """The transpose of Pad: each element of dy added where Pad has copied it from."""
    if dy.shape.rank is None:
        return TensorSpec([None] * len(paddings), dy.dtype)
    dims = zip(dy.shape, paddings, strict=True)
    return TensorSpec([None if n is None else n - b - a for n, (b, a) in dims], dy.dtype)


@_pad_grad_op.reference
def _pad_grad_kernel(xp: Any, dy: Array, *, paddings: Paddings, mode: str) -> Array:
    return fold(xp, dy, paddings, mode)


def fold(xp: Any, dy: Array, paddings: Paddings, mode: str) -> Array:
    """Each element added where it has been copied from, along all axes."""
    dx = dy.astype(computing_dtype(xp, dy), copy=False)
    for axis, (before, after) in enumerate(paddings):
        if before + after:
            dx = _fold_axis(xp, dx, axis, before, after, mode)
    return dx.astype(dy.dtype, copy=False)


def _fold_axis(xp: Any, dy: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """The transpose of padding one axis: a pass over the elements, and one row per padded row."""
    n = dy.shape[axis] - before - after
    source = xp.pad(xp.arange(n), (before, after), mode=mode).tolist()
    lead = (slice(None),) * axis
    dx = dy[(*lead, slice(before, before + n))].copy()
    for row in (*range(before), *range(before + n, before + n + after)):
        dx[(*lead, source[row])] += dy[(*lead, row)]
    return dx


@_pad_grad_op.grad
def _pad_grad_grad(op: OpView, ddx: Tensor) -> Grads:
    return (_pad(ddx, paddings=op.attrs["paddings"], mode=op.attrs["mode"], value=0),)


def _pairs(who: str, x: Array, paddings: Array) -> Paddings:
    if paddings.shape != (x.ndim, 2):
        raise InvalidArgumentError(
            f"{who}: expected (before, after) for each of {x.ndim} axes, got paddings of shape "
            f"{list(paddings.shape)}"
        )
    return tuple((int(before), int(after)) for before, after in paddings)


def _padded(who: str, x: TensorSpec, paddings: TensorSpec) -> TensorSpec:
    if not paddings.shape.is_compatible_with([None, 2]):
        raise ShapeError(f"{who}: expected paddings (axes, 2), got {paddings}")
    rank = paddings.shape[0] if paddings.shape.rank else None
    shape = unknown_shape(x.shape.rank).merge_with(unknown_shape(rank))
    return TensorSpec(shape, x.dtype)


@define("PadBy", dtypes={"x": ANY, "paddings": INTEGER}, same_dtype=False)
def pad_by(x: TensorSpec, paddings: TensorSpec, *, mode: str, value: complex | str) -> TensorSpec:
    """As Pad, with the pairs in a matrix."""
    return _padded("PadBy", x, paddings)


@pad_by.reference
def _pad_by_kernel(xp: Any, x: Array, paddings: Array, *, mode: str, value: complex | str) -> Array:
    pairs = _pairs("PadBy", x, paddings)
    check_paddings("PadBy", pairs, mode)
    if mode != "constant":
        return xp.pad(x, pairs, mode=mode)
    shape = [n + before + after for n, (before, after) in zip(x.shape, pairs, strict=True)]
    y = _filled(xp, shape, value, x)
    y[inside(x.shape, pairs)] = x
    return y


@pad_by.grad
def _pad_by_grad(op: OpView, dy: Tensor) -> Grads:
    return pad_sum_by(dy, op.inputs[1], mode=op.attrs["mode"]), None


@define("PadSumBy", dtypes={"dy": NUMERIC, "paddings": INTEGER}, same_dtype=False)
def pad_sum_by(dy: TensorSpec, paddings: TensorSpec, *, mode: str) -> TensorSpec:
    """The transpose of PadBy: each element of dy added where PadBy has copied it from."""
    return _padded("PadSumBy", dy, paddings)


@pad_sum_by.reference
def _pad_sum_kernel(xp: Any, dy: Array, paddings: Array, *, mode: str) -> Array:
    pairs = _pairs("PadSumBy", dy, paddings)
    if mode != "constant":
        return fold(xp, dy, pairs, mode)
    sizes = [n - b - a for n, (b, a) in zip(dy.shape, pairs, strict=True)]
    return dy[inside(sizes, pairs)]


@pad_sum_by.grad
def _pad_sum_grad(op: OpView, ddx: Tensor) -> Grads:
    return pad_by(ddx, op.inputs[1], mode=op.attrs["mode"], value=0.0), None


def pad(x: Tensor, paddings: Any, mode: str = "constant", value: complex | str = 0) -> Tensor:
    """`x` with more elements at the two ends of its axes.

    Args:
        x: any shape.
        paddings: (before, after) for each axis; one pair, or one number, stands for all axes. A
            tensor whose numbers a run knows is a pair for each axis.
        mode: "constant" (`value`), "edge" (the last element repeated), "reflect" (mirrored at the
            last element), "symmetric" (mirrored beyond it).
        value: what "constant" pads with: a number, or a string.

    Raises:
        InvalidArgumentError: an unknown mode or a negative padding.
        ShapeError: the number of pairs is not that of the axes.
    """
    paddings = known_value(paddings)
    if isinstance(paddings, Tensor):
        return pad_by(x, paddings, mode=mode, value=value)
    pairs: list[Any] = [paddings] if isinstance(paddings, int) else list(paddings)
    if pairs and all(isinstance(n, int) for n in pairs):
        pairs = [(pairs[0], pairs[-1])] * x.ndim
    elif len(pairs) == 1:
        pairs = pairs * x.ndim
    if any(np.shape(pair) != (2,) for pair in pairs):
        raise ShapeError(f"Pad: expected two widths for each axis, got {paddings!r}")
    return _pad(x, paddings=tuple((int(b), int(a)) for b, a in pairs), mode=mode, value=value)
