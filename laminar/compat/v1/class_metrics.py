"""`tf.metrics`: means by class, and of errors in other forms."""

from __future__ import annotations

from typing import Any

from laminar import ops
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast

from .adapting import v1
from .maths import confusion_matrix, reduce_mean, reduce_sum
from .streaming import kept_count, like_rank, listed, mean
from .values import operands, tensor
from .variables import variable_scope


def _matrix(labels: Any, predictions: Any, num_classes: int, weights: Any) -> Any:
    flat = [ops.reshape(cast(tensor(x), "int64"), (-1,)) for x in (labels, predictions)]
    w = None if weights is None else ops.reshape(cast(tensor(weights), "float32"), (-1,))
    return confusion_matrix(*flat, num_classes, dtype="float32", weights=w)


def _iou(counts: Any) -> Any:
    both = ops.diagonal(counts)
    union = reduce_sum(counts, 0) + reduce_sum(counts, 1) - both
    shares = lookup("DivNoNan")(both, union)
    there = cast(lookup("Greater")(union, tensor(0.0)), "float32")
    return lookup("DivNoNan")(reduce_sum(shares), reduce_sum(there))


@v1()
def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The mean over classes that occur of: intersection over union of labels and predictions.

    The update is the matrix of counts.
    """
    with variable_scope(name, "mean_iou"):
        total = kept_count("total_confusion_matrix", [num_classes, num_classes])
        update = total.assign_add(_matrix(labels, predictions, num_classes, weights))
        return listed(_iou(total.as_tensor()), update, metrics_collections, updates_collections)


@v1()
def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The mean over classes of how often their elements are predicted right."""
    with variable_scope(name, "mean_accuracy"):
        hits, count = kept_count("count", [num_classes]), kept_count("total", [num_classes])
        matrix = _matrix(labels, predictions, num_classes, weights)
        new_count = count.assign_add(reduce_sum(matrix, 1))
        new_hits = hits.assign_add(ops.diagonal(matrix))
        value = reduce_mean(lookup("DivNoNan")(hits.as_tensor(), count.as_tensor()))
        update = lookup("DivNoNan")(new_hits, new_count)
        return listed(value, update, metrics_collections, updates_collections)


@v1()
def mean_relative_error(
    labels: Any,
    predictions: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The mean of |label - prediction| / normalizer, 0 where that is 0."""
    y, t, by = operands(predictions, labels, normalizer)
    each = lookup("DivNoNan")(lookup("Abs")(t - y), by)
    found: tuple[Any, Any] = mean(
        each, weights, metrics_collections, updates_collections, name or "mean_relative_error"
    )
    return found


@v1()
def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """1 - the mean of the inner products along an axis, of vectors of length 1."""
    y, t = operands(predictions, labels)
    products = reduce_sum(y * t, [dim], keepdims=True)
    value, update = mean(products, weights, None, None, name or "mean_cosine_distance")
    return listed(1.0 - value, 1.0 - update, metrics_collections, updates_collections)


@v1()
def percentage_below(
    values: Any,
    threshold: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The part of the values that are below the threshold."""
    x = tensor(values)
    below = cast(lookup("Less")(x, tensor(threshold, x.dtype)), "float32")
    found: tuple[Any, Any] = mean(
        below,
        weights,
        metrics_collections,
        updates_collections,
        name or "percentage_below_threshold",
    )
    return found


@v1()
def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The weighted mean of each element over the batches, which have one shape."""
    x = cast(tensor(values), "float32")
    with variable_scope(name, "mean"):
        sizes = [d for d in x.shape if d is not None]
        if len(sizes) != len(x.shape):
            raise ValueError(f"mean_tensor: the shape must be known, got {x.spec}")
        total, count = kept_count("total_tensor", sizes), kept_count("count_tensor", sizes)
        w = lookup("OnesLike")(x)
        if weights is not None:
            w = w * like_rank(cast(tensor(weights), "float32"), x)
        new_total, new_count = total.assign_add(x * w), count.assign_add(w)
        value = lookup("DivNoNan")(total.as_tensor(), count.as_tensor())
        update = lookup("DivNoNan")(new_total, new_count)
        return listed(value, update, metrics_collections, updates_collections)
