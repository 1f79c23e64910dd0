"""Change a tensor at positions given by integers: its values replaced, added to, or compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import DTypeError, InvalidArgumentError
from ...graph import (
    ANY,
    Array,
    OpView,
    Tensor,
    TensorSpec,
    bool_,
    broadcast_shapes,
    string,
)
from ..core.basic import ones_like, zeros_like
from ..core.op_def import Grads
from ..core.registry import define, no_gradient
from ..math.arithmetic import conjugate, divide, maximum, multiply
from ..math.cast import cast
from ..math.compare import equal, where
from .axes import expand_dims
from .gather import check_index_types, check_updates, coordinates, gather_along
from .positions import last_writes, rows_of, write

_MODES = ("update", "add", "mul", "max", "min")


@define("TensorScatter", dtypes={"x": ANY, "updates": ANY})
def _scatter(x: TensorSpec, updates: TensorSpec, *indices: TensorSpec, mode: str) -> TensorSpec:
    """`x`, where x[indices[0], indices[1], ...] is combined with `updates`.

    The index arrays broadcast. `mode` is "update" (replace; the last of equal indices stays),
    "add", "mul", "max" or "min".
    """
    if mode not in _MODES:
        raise InvalidArgumentError(
            f"TensorScatter: mode must be one of {', '.join(_MODES)}, got {mode!r}"
        )
    if mode != "update" and x.dtype in (string, bool_):
        raise DTypeError(
            f"TensorScatter: {x.dtype} values cannot be combined by {mode}",
            remedy='use "update", or cast to a number',
        )
    check_index_types("TensorScatter", indices)
    check_updates("TensorScatter", x, updates, indices)
    return x


@_scatter.reference
def _scatter_kernel(xp: Any, x: Array, updates: Array, *indices: Array, mode: str) -> Array:
    axes = len(indices)
    rows = rows_of(xp, "TensorScatter", x.shape, indices).reshape(-1)
    width = math.prod(x.shape[axes:])
    into = x.copy().reshape(math.prod(x.shape[:axes]), width)
    return write(xp, into, rows, updates.reshape(rows.size, width), mode).reshape(x.shape)


@define("IsLastWrite", dtypes={"x": ANY})
def _is_last_write(x: TensorSpec, *indices: TensorSpec) -> TensorSpec:
    """For each place that the indices name in x, in order: whether no later one names it again."""
    return TensorSpec(broadcast_shapes("IsLastWrite", *(i.shape for i in indices)), bool_)


@_is_last_write.reference
def _is_last_write_kernel(xp: Any, x: Array, *indices: Array) -> Array:
    rows = rows_of(xp, "IsLastWrite", x.shape, indices)
    return last_writes(xp, rows, math.prod(x.shape[: len(indices)]))


_is_last_write.grad(no_gradient)


@_scatter.grad
def _scatter_grad(op: OpView, dy: Tensor) -> Grads:
    x, updates, *indices = op.inputs
    (y,) = op.outputs
    rule = {
        "update": _update_grad,
        "add": _add_grad,
        "mul": _multiply_grad,
        "max": _extremum_grad,
        "min": _extremum_grad,
    }[op.attrs["mode"]]
    dx, du = rule(x, updates, indices, y, dy)
    return (dx, du, *(None for _ in indices))


def _add_grad(
    x: Tensor, updates: Tensor, indices: Sequence[Tensor], y: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor]:
    return dy, gather_along(dy, indices)


def _update_grad(
    x: Tensor, updates: Tensor, indices: Sequence[Tensor], y: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor]:
    zeros = zeros_like(updates)
    stays = _is_last_write(x, *indices)
    stays = expand_dims(stays, range(stays.ndim, updates.ndim))  # one flag for each slice
    dx = _scatter(dy, zeros, *indices, mode="update")
    return dx, where(stays, gather_along(dy, indices), zeros)


def _multiply_grad(
    x: Tensor, updates: Tensor, indices: Sequence[Tensor], y: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor]:
    """Each factor gets the product of the others; zeros are left out of it and counted."""
    is_zero = equal(updates, zeros_like(updates))
    factors = where(is_zero, ones_like(updates), updates)
    product = _scatter(x, factors, *indices, mode="mul")
    zero = cast(is_zero, x.dtype)
    zeros_here = gather_along(_scatter(zeros_like(x), zero, *indices, mode="add"), indices)
    others = where(
        equal(zeros_here, zero),
        divide(gather_along(product, indices), factors),
        zeros_like(updates),
    )
    dx = _scatter(dy, conjugate(updates), *indices, mode="mul")
    return dx, multiply(gather_along(dy, indices), conjugate(others))


def _extremum_grad(
    x: Tensor, updates: Tensor, indices: Sequence[Tensor], y: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor]:
    """All that are equal to the result share its gradient equally."""
    from_x = cast(equal(x, y), x.dtype)
    from_update = cast(equal(updates, gather_along(y, indices)), x.dtype)
    share = divide(dy, maximum(_scatter(from_x, from_update, *indices, mode="add"), ones_like(x)))
    return multiply(share, from_x), multiply(gather_along(share, indices), from_update)


def scatter_update(x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """`x` with the slices x[indices[..., 0], indices[..., 1], ...] replaced by `updates`.

    Args:
        x: (n_0, ..., n_k-1, q...).
        indices: (i..., k), integers; of equal indices the last one counts.
        updates: (i..., q...), dtype of `x`.

    Raises:
        InvalidArgumentError: an index is out of range.
        ShapeError: the updates do not fit.
    """
    return _apply("scatter_update", x, indices, updates, "update")


def scatter_add(x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """`x` with `updates` added at the indices; see `scatter_update`. Equal indices add up."""
    return _apply("scatter_add", x, indices, updates, "add")


def scatter_mul(x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """`x` multiplied by `updates` at the indices; see `scatter_update`."""
    return _apply("scatter_mul", x, indices, updates, "mul")


def scatter_max(x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """The greatest of `x` and `updates` at the indices; see `scatter_update`."""
    return _apply("scatter_max", x, indices, updates, "max")


def scatter_min(x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """The least of `x` and `updates` at the indices; see `scatter_update`."""
    return _apply("scatter_min", x, indices, updates, "min")


def _apply(who: str, x: Tensor, indices: Tensor, updates: Tensor, mode: str) -> Tensor:
    return _scatter(x, updates, *coordinates(who, indices), mode=mode)
