"""Cross-entropies between targets and predictions, as the losses use them."""

from __future__ import annotations

from laminar.engine.errors import ShapeError
from laminar.engine.graph import INTEGER, Tensor, TensorShape, canonical_axis, int32
from laminar.engine.ops.array import axes
from laminar.engine.ops.array.along import take_along_axis
from laminar.engine.ops.core.basic import ones_like
from laminar.engine.ops.math import arithmetic
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.elementary import log
from laminar.engine.ops.math.reduce import reduce_sum
from laminar.engine.ops.nn import losses as engine
from laminar.settings import epsilon

from ..typing import TensorLike
from .arguments import floating, floating_pair, known_rank, tensor
from .recording import public

__all__ = ["binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy"]


def _same_shape(who: str, target: Tensor, output: Tensor) -> None:
    if not target.shape.is_compatible_with(output.shape):
        raise ShapeError(
            f"{who}: target and output must have one shape, "
            f"got target {target.spec} and output {output.spec}",
            remedy="give one-hot targets, or use the sparse form for class numbers"
            if who == "categorical_crossentropy"
            else None,
        )


def _probability(p: Tensor) -> Tensor:
    """`p` kept away from 0 and 1, so that logarithms are finite."""
    small = epsilon()
    low, high = tensor(small, p.dtype), tensor(1.0 - small, p.dtype)
    return arithmetic.minimum(arithmetic.maximum(p, low), high)


@public
def categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """-(sum of target * log(p) over `axis`).

    Args:
        target: probabilities of the classes, one-hot or soft.
        output: predictions of the same shape: logits, or probabilities (which are divided by
            their sum, and kept `epsilon()` away from 0 and 1).
        from_logits: whether `output` holds logits.
        axis: the class axis.

    Returns:
        The losses, without the class axis.

    Raises:
        ShapeError: the shapes differ.

    Examples:
        >>> ops.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]])
        Tensor([0.6931], shape=(1,), dtype=float32)
    """
    t, y = floating_pair(target, output)
    _same_shape("categorical_crossentropy", t, y)
    if from_logits:
        return engine.softmax_cross_entropy(t, y, axis)
    p = _probability(arithmetic.divide(y, reduce_sum(y, axis, keepdims=True)))
    return arithmetic.negative(reduce_sum(arithmetic.multiply(t, log(p)), axis))


@public
def sparse_categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """-log(p[target]).

    Args:
        target: the number of the class of each example; a last axis of size 1 is dropped.
        output: predictions with the class axis: logits, or probabilities (which are divided by
            their sum, and kept `epsilon()` away from 0 and 1).
        from_logits: whether `output` holds logits.
        axis: the class axis.

    Returns:
        The losses, with the shape of the target.

    Raises:
        ShapeError: the shapes do not fit.
        InvalidArgumentError: at run time, a target is not the number of a class.

    Examples:
        >>> ops.sparse_categorical_crossentropy([1], [[0.5, 0.5]])
        Tensor([0.6931], shape=(1,), dtype=float32)
    """
    labels, y = tensor(target), floating(output)
    if labels.dtype not in INTEGER:
        labels = cast(labels, int32)
    rank = known_rank("sparse_categorical_crossentropy", y)
    place = canonical_axis("sparse_categorical_crossentropy", axis, rank)
    if labels.shape.rank == rank and labels.shape[-1] in (1, None):
        labels = axes.squeeze(labels, -1)
    if place != rank - 1:
        y = axes.moveaxis(y, place, -1)
    if not labels.shape.is_compatible_with(TensorShape(y.shape[:-1])):
        raise ShapeError(
            f"sparse_categorical_crossentropy: the target must have the shape of the output "
            f"without the class axis, got target {labels.spec} and output {y.spec}",
            remedy="use categorical_crossentropy for one-hot targets",
        )
    if from_logits:
        return engine.sparse_softmax_cross_entropy(labels, y)
    if y.shape[-1] is not None:
        labels = engine.check_labels(labels, classes=y.shape[-1])
    total = reduce_sum(y, -1)
    chosen = axes.squeeze(take_along_axis(y, axes.expand_dims(labels, -1), -1), -1)
    return arithmetic.negative(log(_probability(arithmetic.divide(chosen, total))))


@public
def binary_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False
) -> Tensor:
    """-(target * log(p) + (1 - target) * log(1 - p)), element by element.

    Args:
        target: probabilities, most often 0 or 1.
        output: predictions of the same shape: logits, or probabilities (kept `epsilon()` away
            from 0 and 1).
        from_logits: whether `output` holds logits.

    Returns:
        The losses, in the shape of `output` and a float type.

    Raises:
        ShapeError: the shapes differ.

    Examples:
        >>> ops.binary_crossentropy([1.0, 0.0], [0.5, 0.25])
        Tensor([0.6931, 0.2877], shape=(2,), dtype=float32)
    """
    t, y = floating_pair(target, output)
    _same_shape("binary_crossentropy", t, y)
    if from_logits:
        return engine.sigmoid_cross_entropy(t, y)
    p = _probability(y)
    one = ones_like(p)
    hit = arithmetic.multiply(t, log(p))
    miss = arithmetic.multiply(arithmetic.subtract(one, t), log(arithmetic.subtract(one, p)))
    return arithmetic.negative(arithmetic.add(hit, miss))
