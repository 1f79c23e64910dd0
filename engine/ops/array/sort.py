"""Order: sort, argsort, the k greatest.

NaN counts as greater than every number. Equal elements keep their order, unless said otherwise.
"""

from __future__ import annotations

from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import (
    BOOLEAN,
    FLOATING,
    INTEGER,
    REAL,
    Array,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    bool_,
    canonical_axis,
    int32,
)
from ..core.arrays import in_order
from ..core.basic import zeros_like
from ..core.entries import known_value
from ..core.op_def import Grads
from ..core.registry import define, no_gradient
from ..math.cast import cast
from .along import put_along_axis, take_along_axis
from .index import get_item

_ORDERED = REAL | BOOLEAN


def _check_axis(who: str, x: TensorSpec, axis: int) -> None:
    if x.shape.rank is not None:
        canonical_axis(who, axis, len(x.shape))


@define("Sort", dtypes=_ORDERED)
def _sort(x: TensorSpec, *, axis: int, descending: bool) -> TensorSpec:
    """The elements along `axis` in rising, or falling, order."""
    _check_axis("Sort", x, axis)
    return x


@_sort.reference
def _sort_kernel(xp: Any, x: Array, *, axis: int, descending: bool) -> Array:
    y = xp.sort(in_order(xp, x), axis=axis).astype(x.dtype, copy=False)
    return xp.flip(y, axis) if descending else y


@_sort.grad
def _sort_grad(op: OpView, dy: Tensor) -> Grads:
    (x,) = op.inputs
    order = _argsort(x, stable=True, **op.attrs)
    return (put_along_axis(zeros_like(x), order, dy, op.attrs["axis"], "add"),)


@define("ArgSort", dtypes=_ORDERED)
def _argsort(x: TensorSpec, *, axis: int, descending: bool, stable: bool) -> TensorSpec:
    """The int32 indices i, along `axis`, by which take_along_axis(x, i, axis) is sorted.

    With `stable` equal elements keep their order; without it their order may be any.
    """
    _check_axis("ArgSort", x, axis)
    return TensorSpec(x.shape, int32)


@_argsort.reference
def _argsort_kernel(xp: Any, x: Array, *, axis: int, descending: bool, stable: bool) -> Array:
    return _order(xp, x, axis, descending, "stable" if stable else None).astype(xp.int32)


def _order(xp: Any, x: Array, axis: int, descending: bool, kind: str | None) -> Array:
    x = in_order(xp, x)
    if not descending:
        return xp.argsort(x, axis=axis, kind=kind)
    # The order of the reversed line, reversed: so equal elements stay in their order.
    backward = xp.argsort(xp.flip(x, axis), axis=axis, kind=kind)
    return x.shape[axis] - 1 - xp.flip(backward, axis)


_argsort.grad(no_gradient)


def sort(x: Tensor, axis: int = -1, descending: bool = False) -> Tensor:
    """The elements along `axis` in rising, or falling, order."""
    return _sort(x, axis=axis, descending=descending)


def argsort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The int32 indices that sort `x` along `axis`.

    Args:
        x: real numbers or bools.
        axis: the axis to sort along.
        descending: whether the greatest comes first.
        stable: whether equal elements keep their order; without it sorting may be faster.
    """
    return _argsort(x, axis=axis, descending=descending, stable=stable)


@define("TopK", dtypes=REAL)
def _top_k(x: TensorSpec, *, k: int, sorted: bool) -> tuple[TensorSpec, TensorSpec]:
    """The k greatest elements along the last axis, and their int32 indices.

    `sorted`: from the greatest down; otherwise in the order of x. Of equal elements those with the
    lower index are taken, and stand, first.
    """
    if k < 0:
        raise InvalidArgumentError(f"TopK: k cannot be negative, got {k}")
    if x.shape.rank is None:
        return TensorSpec(None, x.dtype), TensorSpec(None, int32)
    if not x.shape or (x.shape[-1] is not None and x.shape[-1] < k):
        raise ShapeError(
            f"TopK: the last axis of {x} does not hold {k} elements",
            remedy="choose a smaller k",
        )
    shape = TensorShape([*x.shape[:-1], k])
    return TensorSpec(shape, x.dtype), TensorSpec(shape, int32)


@_top_k.reference
def _top_k_kernel(xp: Any, x: Array, *, k: int, sorted: bool) -> tuple[Array, Array]:
    if x.shape[-1] < k:
        raise ShapeError(f"TopK: {k} elements of a line of {x.shape[-1]}")
    chosen = _greatest(xp, x, k)
    values = xp.take_along_axis(x, chosen, axis=-1)
    if sorted:
        order = _order(xp, values, -1, True, "stable")
        values = xp.take_along_axis(values, order, axis=-1)
        chosen = xp.take_along_axis(chosen, order, axis=-1)
    return values, chosen.astype(xp.int32)


def _greatest(xp: Any, x: Array, k: int) -> Array:
    """The indices of the k greatest elements of each line, rising; of equal ones the first."""
    n = x.shape[-1]
    if k == n or x.size == 0:
        return xp.broadcast_to(xp.arange(k), (*x.shape[:-1], k))
    nan = xp.isnan(x) if x.dtype.kind not in "iu" else None
    if k == 0 or n < 64 or (nan is not None and bool(nan.any())):
        return xp.sort(_order(xp, x, -1, True, "stable")[..., :k], axis=-1)
    # Linear time: the k-th greatest by partition, all above it, and enough of those equal to it.
    least = xp.partition(x, n - k, axis=-1)[..., n - k : n - k + 1]
    taken = x >= least
    if bool((xp.sum(taken, axis=-1) > k).any()):
        above, equal = x > least, x == least
        missing = k - xp.sum(above, axis=-1, keepdims=True)
        taken = above | (equal & (xp.cumsum(equal, axis=-1) <= missing))
    return xp.nonzero(taken)[-1].reshape(*x.shape[:-1], k)


@_top_k.grad
def _top_k_grad(op: OpView, dvalues: Tensor | None, dindices: Tensor | None) -> Grads:
    if dvalues is None:
        return (None,)
    return (put_along_axis(zeros_like(op.inputs[0]), op.outputs[1], dvalues, -1, "add"),)


def top_k(x: Tensor, k: Any, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The k greatest elements along the last axis, and their int32 indices.

    Args:
        x: (..., n), real.
        k: how many, at most n.
        sorted: from the greatest down; otherwise in the order in which they stand in `x`.

    Of equal elements those with the lower index are taken, and stand, first. `k` may be a scalar
    tensor.
    """
    k = known_value(k)
    if isinstance(k, Tensor):
        order = argsort(x, -1, descending=True)
        chosen = get_item(order, (..., slice(None, k)))
        return take_along_axis(x, chosen, -1), cast(chosen, int32)
    values, indices = _top_k.many(x, k=k, sorted=sorted)
    return values, indices


@define("InTopK", dtypes={"targets": INTEGER, "predictions": FLOATING}, same_dtype=False)
def _in_top_k(targets: TensorSpec, predictions: TensorSpec, *, k: int) -> TensorSpec:
    """Whether fewer than k elements of predictions[..., :] exceed predictions[..., targets[...]].

    So elements equal to the k-th count as among the first k. False where the target is no class,
    and where its prediction is not finite.
    """
    if predictions.shape.rank is None or targets.shape.rank is None:
        return TensorSpec(targets.shape, bool_)
    lead = TensorShape(predictions.shape[:-1])
    if not predictions.shape or not lead.is_compatible_with(targets.shape):
        raise ShapeError(
            f"InTopK: the targets {targets} do not stand for rows of the predictions {predictions}",
            remedy="give targets [...] and predictions [..., classes]",
        )
    return TensorSpec(lead.merge_with(targets.shape), bool_)


@_in_top_k.reference
def _in_top_k_kernel(xp: Any, targets: Array, predictions: Array, *, k: int) -> Array:
    is_class = (targets >= 0) & (targets < predictions.shape[-1])
    index = xp.where(is_class, targets, 0).astype(xp.int64)[..., None]
    if not predictions.shape[-1]:
        return is_class
    own = xp.take_along_axis(predictions, index, axis=-1)
    ahead = xp.sum(predictions > own, axis=-1)
    return is_class & xp.isfinite(own[..., 0]) & (ahead < k)


_in_top_k.grad(no_gradient)


def in_top_k(targets: Tensor, predictions: Tensor, k: int) -> Tensor:
    """Whether the prediction for the target is among the k greatest.

    Args:
        targets: (...), the index of a class for each row, integers.
        predictions: (..., classes), floating.
        k: how many predictions count. Those equal to the k-th count too.

    Returns:
        (...), bool. False where the target is no class or its prediction is not finite.

    Raises:
        ShapeError: there is not one target for each row.
    """
    return _in_top_k(targets, predictions, k=k)
