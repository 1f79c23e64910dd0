"""Weights, masks and the reduction of a loss's values to one number."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor

from .. import config, ops
from ..typing import DTypeLike, TensorLike
from .alignment import fit_from_front, squeeze_or_expand_to_same_rank
from .batch_part import divisor, sum_of_part

# How the values of a batch become one number; see `reduce_values`.
Reduction: TypeAlias = Literal[
    "sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none"
]
REDUCTIONS: tuple[Reduction | None, ...] = (
    "sum_over_batch_size",
    "sum",
    "mean",
    "mean_with_sample_weight",
    "none",
    None,
)


def standardize_reduction(reduction: Reduction | None) -> Reduction | None:
    """`reduction` itself.

    Raises:
        InvalidArgumentError: it is none of `REDUCTIONS`.
    """
    if reduction not in REDUCTIONS:
        known = ", ".join(map(repr, REDUCTIONS))
        raise InvalidArgumentError(f"reduction: expected one of {known}, got {reduction!r}")
    return reduction


def apply_mask(
    sample_weight: TensorLike | None,
    mask: TensorLike | None,
    dtype: DTypeLike,
    reduction: Reduction | None,
) -> Any:
    """Weights in which masked values count 0; None when there are neither weights nor a mask.

    For the reductions that divide by the number of values, the others are scaled up by (number of
    values) / (number of unmasked ones), so that the mean is one over the unmasked values.
    """
    if mask is None:
        return sample_weight
    kept = ops.cast(mask, dtype)
    if reduction in ("mean", "sum_over_batch_size"):
        total = ops.cast(ops.size(kept), dtype)
        kept = kept * (total / (divisor(ops.sum(kept)) + config.epsilon()))
    if sample_weight is None:
        return kept
    weights = ops.cast(sample_weight, dtype)
    kept = fit_from_front(kept, weights)
    return fit_from_front(weights, kept) * kept


def reduce_values(
    values: Tensor,
    sample_weight: TensorLike | None = None,
    reduction: Reduction | None = "sum_over_batch_size",
) -> Tensor:
    """Reduce values, which are already weighted, to one.

    "sum": sum(values). "sum_over_batch_size" and "mean": sum(values) / number of values.
    "mean_with_sample_weight": sum(values) / sum(sample_weight), the weights as they were given
    (not broadcast); without weights as "mean". "none" or None: the values.
    """
    if reduction in (None, "none") or values.shape == () or values.shape == (0,):
        return values
    loss = ops.sum(values)
    if reduction == "sum":
        total: Tensor = sum_of_part(loss)
        return total
    if reduction == "mean_with_sample_weight" and sample_weight is not None:
        weights = ops.convert_to_tensor(sample_weight)
        if weights.shape == ():
            return ops.divide_no_nan(sum_of_part(loss), weights)
        return ops.divide_no_nan(loss, divisor(ops.sum(weights)))
    count: Any = values.shape.num_elements()
    if count is None:
        count = ops.cast(ops.size(values), loss.dtype)
    mean: Tensor = loss / count
    return mean


def reduce_weighted_values(
    values: TensorLike,
    sample_weight: TensorLike | None = None,
    mask: TensorLike | None = None,
    reduction: Reduction | None = "sum_over_batch_size",
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Weight, mask and reduce the values of a loss.

    Args:
        values: (batch, ...).
        sample_weight: a number, or weights that broadcast to `values` from the first axis on.
        mask: shape of `values` (or with one more axis of size 1); true where a value counts.
        reduction: one of `REDUCTIONS`.
        dtype: the type in which all this is done, by default that of `config.floatx()`.
    """
    dtype = dtype or config.floatx()
    losses = ops.convert_to_tensor(values, dtype=dtype)
    if sample_weight is not None:
        sample_weight = ops.convert_to_tensor(sample_weight, dtype=dtype)
    weights = apply_mask(sample_weight, mask, dtype, standardize_reduction(reduction))
    if weights is not None:
        losses, weights = squeeze_or_expand_to_same_rank(losses, weights)
        _check_weights(losses, weights)
        losses = losses * fit_from_front(weights, losses)
    return reduce_values(losses, weights, reduction)


def _check_weights(values: Tensor, weights: Tensor) -> None:
    """Refuse weights that broadcasting would turn into more values.

    Raises:
        ShapeError: the weights have more axes than the values, or other sizes.
    """
    v, w = values.shape, weights.shape
    if not v or v.rank is None or w.rank is None:
        return
    if len(w) <= len(v) and all(b in (a, 1, None) or a is None for a, b in zip(v, w, strict=False)):
        return
    raise ShapeError(
        f"the weights (sample_weight, or the mask of the predictions) must fit the values of the "
        f"loss from the first axis on: the values are {values.spec}, the weights {weights.spec}",
        remedy="give one weight for each sample, or one for each value of the loss",
    )
