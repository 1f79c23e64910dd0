"""The counts behind precision, recall and their kin, for many thresholds in one pass.

All four follow from two sums for each threshold t: the weight of the true labels 1, and that of the
true labels 0, among the predictions above t. For several thresholds each prediction is put into the
bucket between two of them, the weights are summed by bucket, and a cumulative sum from the top
gives what is above each threshold: n predictions and m thresholds cost n + m, not n * m.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import DType, Tensor, bool_, int32

from .. import ops
from ..losses.alignment import (
    check_shapes,
    fit_from_front,
    squeeze_or_expand_to_same_rank,
)
from ..typing import TensorLike
from .reduction import weights_of
from .thresholds import NEVER


class Confusion(NamedTuple):
    """Weights of predictions by threshold (and, for `multi_label`, by label): (thresholds, ...)."""

    true_positives: Tensor
    false_positives: Tensor
    true_negatives: Tensor
    false_negatives: Tensor


def count_confusion(
    who: str,
    y_true: TensorLike,
    y_pred: TensorLike,
    thresholds: Sequence[float],
    *,
    dtype: DType,
    evenly: bool = False,
    from_logits: bool = False,
    top_k: int | None = None,
    class_id: int | None = None,
    sample_weight: TensorLike | None = None,
    multi_label: bool = False,
    label_weights: TensorLike | None = None,
) -> Confusion:
    """Sum the weights of right and wrong predictions for each threshold.

    Args:
        who: the metric, for errors.
        y_true: 0 and 1 (any other value counts as 1), shape of `y_pred`.
        y_pred: (batch, ...), with `multi_label` (batch, labels).
        thresholds: above one, a prediction means 1.
        dtype: type of the counts.
        evenly: whether the thresholds are those of `spread_thresholds` between ends. Then
            `y_pred` is clipped to [0, 1].
        from_logits: whether predictions are sigmoid(y_pred).
        top_k: only the largest `top_k` predictions along the last axis can mean 1.
        class_id: the only place on the last axis that counts.
        sample_weight: weights that broadcast to `y_pred` from the first axis on.
        multi_label: whether each label is counted by itself.
        label_weights: one weight for each label.

    Raises:
        ShapeError: the shapes of `y_true` and `y_pred` differ.
        InvalidArgumentError: there are fewer than `top_k` or `class_id` + 1 classes.
    """
    weights = weights_of(y_pred, sample_weight, dtype)
    scores = ops.convert_to_tensor(y_pred, dtype=dtype)
    labels = ops.convert_to_tensor(y_true, dtype=dtype)
    labels, scores = squeeze_or_expand_to_same_rank(labels, scores)
    check_shapes(who, labels, scores)
    _check_classes(who, scores, top_k, class_id)
    if from_logits:
        scores = ops.sigmoid(scores)
    if top_k is not None:
        scores = _keep_top_k(scores, top_k)
    if class_id is not None:
        labels, scores = labels[..., class_id], scores[..., class_id]
    positive = ops.cast(ops.cast(labels, bool_), dtype)
    negative = 1.0 - positive
    if weights is not None:
        weights = _broadcast(weights, scores)
        positive, negative = positive * weights, negative * weights
    if label_weights is not None:
        positive, negative = positive * label_weights, negative * label_weights
    if len(thresholds) == 1 and not multi_label:
        above = ops.cast(ops.greater(scores, ops.cast(thresholds[0], dtype)), dtype)
        tp = ops.reshape(ops.sum(positive * above), (1,))
        fp = ops.reshape(ops.sum(negative * above), (1,))
    else:
        buckets, num_buckets = _buckets(scores, thresholds, evenly)
        tp = _sums_above(positive, buckets, num_buckets, multi_label)
        fp = _sums_above(negative, buckets, num_buckets, multi_label)
        if not evenly:
            # Bucket b holds what is above b of the sorted thresholds; above threshold i is all from
            # bucket i + 1 on.
            rank = np.argsort(np.argsort(thresholds, kind="stable"), kind="stable")
            places = ops.convert_to_tensor(rank.astype(np.int32) + 1)
            tp, fp = ops.take(tp, places, axis=0), ops.take(fp, places, axis=0)
    axis = 0 if multi_label else None
    # Sums in another order round differently: what remains is not to be below 0.
    tn = ops.maximum(ops.sum(negative, axis=axis) - fp, 0.0)
    fn = ops.maximum(ops.sum(positive, axis=axis) - tp, 0.0)
    return Confusion(tp, fp, tn, fn)


def _check_classes(who: str, y_pred: Tensor, top_k: int | None, class_id: int | None) -> None:
    if y_pred.shape.rank is None or (top_k is None and class_id is None):
        return
    if class_id is not None and len(y_pred.shape) < 2:
        raise ShapeError(
            f"{who}: with class_id the predictions must have an axis of classes, got {y_pred.spec}",
            remedy="leave class_id out, or give scores: (batch, classes)",
        )
    classes = y_pred.shape[-1] if y_pred.shape else 0
    needed = max(top_k or 0, -1 if class_id is None else class_id + 1)
    if classes is not None and classes < needed:
        raise InvalidArgumentError(
            f"{who}: expected predictions of at least {needed} classes "
            f"(top_k={top_k}, class_id={class_id}), got {y_pred.spec}"
        )


def _keep_top_k(y_pred: Tensor, k: int) -> Tensor:
    """`y_pred`, and NEVER where it is not among the k largest along the last axis."""
    _, places = ops.top_k(y_pred, k, sorted=False)
    kept = ops.sum(ops.one_hot(places, ops.shape(y_pred)[-1], dtype="int32"), axis=-2)
    found: Tensor = ops.where(ops.cast(kept, bool_), y_pred, ops.full_like(y_pred, NEVER))
    return found


def _broadcast(weights: Tensor, y_pred: Tensor) -> Tensor:
    """Weights in the shape of the predictions, which they fit from the first axis on."""
    return ops.broadcast_to(fit_from_front(weights, y_pred), ops.shape(y_pred))


def _buckets(y_pred: Tensor, thresholds: Sequence[float], evenly: bool) -> tuple[Tensor, int]:
    """The bucket of each prediction, and the number of buckets."""
    if evenly:
        # Above threshold i, which is i / last, is what has ceil(y * last) - 1 >= i.
        last = len(thresholds) - 1
        y_pred = ops.clip(y_pred, 0.0, 1.0)
        bucket = ops.cast(ops.ceil(y_pred * last), int32) - 1
        return ops.clip(bucket, 0, last), last + 1
    ordered = ops.convert_to_tensor(np.sort(np.asarray(thresholds)), dtype=y_pred.dtype)
    return ops.cast(ops.searchsorted(ordered, y_pred, side="left"), int32), len(thresholds) + 1


def _sums_above(weights: Tensor, buckets: Tensor, num_buckets: int, multi_label: bool) -> Tensor:
    """For each bucket the sum of the weights in it and in those above: (buckets[, labels])."""
    if not multi_label:
        sums = ops.segment_sum(
            ops.reshape(weights, (-1,)), ops.reshape(buckets, (-1,)), num_segments=num_buckets
        )
    else:
        labels = weights.shape[-1]
        assert labels is not None  # AUC has made variables for them
        column = ops.arange(labels, dtype="int32")
        sums = ops.segment_sum(
            ops.reshape(weights, (-1,)),
            ops.reshape(buckets * labels + column, (-1,)),
            num_segments=num_buckets * labels,
        )
        sums = ops.reshape(sums, (num_buckets, labels))
    return ops.flip(ops.cumsum(ops.flip(sums, axis=0), axis=0), axis=0)
