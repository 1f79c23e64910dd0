"""Cross-entropy: binary, of one-hot labels, and of class numbers."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor, TensorShape, int64
from laminar.engine.source import warn
from laminar.layers.masking import set_mask

from .. import ops
from ..dtype_policies import Policy
from ..typing import DTypeLike, TensorLike
from .alignment import align, can_broadcast
from .loss import ClassNumberLoss, LossFunctionWrapper
from .reduction import Reduction


def binary_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """mean(-y_true * log(p) - (1 - y_true) * log(1 - p)) over `axis`.

    Args:
        y_true: between 0 and 1, shape of `y_pred`.
        y_pred: probabilities p, clipped to [epsilon, 1 - epsilon]; or logits.
        from_logits: whether p = sigmoid(y_pred).
        label_smoothing: s pulls labels to 1/2: y_true * (1 - s) + s / 2.
        axis: over which the mean goes.

    Returns:
        The shape of `y_pred` without `axis`.

    Raises:
        ShapeError: the shapes differ.

    Examples:
        >>> laminar.losses.binary_crossentropy([[1.0, 0.0]], [[0.5, 0.25]])
        Tensor([0.4904], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("binary_crossentropy", y_true, y_pred)
    y_true = smooth_binary(y_true, label_smoothing)
    return ops.mean(ops.binary_crossentropy(y_true, y_pred, from_logits=from_logits), axis=axis)


def categorical_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """-sum(y_true * log(p)) over `axis`.

    Args:
        y_true: one-hot labels or probabilities, shape of `y_pred`.
        y_pred: probabilities p, scaled to sum to 1 and clipped to [epsilon, 1 - epsilon]; or
            logits.
        from_logits: whether p = softmax(y_pred).
        label_smoothing: s pulls labels to equal ones: y_true * (1 - s) + s / (size of the last
            axis, whatever `axis` is).
        axis: that of the classes.

    Returns:
        The shape of `y_pred` without `axis`.

    Raises:
        ShapeError: the shapes differ.

    Source: label smoothing: Szegedy et al., "Rethinking the Inception architecture for computer
        vision", 2015, arXiv:1512.00567, section 7.

    Examples:
        >>> laminar.losses.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]])
        Tensor([0.6931], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("categorical_crossentropy", y_true, y_pred)
    if y_pred.shape.rank and y_pred.shape[-1] == 1:
        warnings.warn(
            f"categorical_crossentropy of one class is always 0: y_pred is {y_pred.spec}. "
            "For two classes in one unit use binary_crossentropy.",
            stacklevel=2,
        )
    y_true = smooth_categorical(y_true, label_smoothing)
    return ops.categorical_crossentropy(y_true, y_pred, from_logits=from_logits, axis=axis)


def sparse_categorical_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    ignore_class: int | None = None,
    axis: int = -1,
) -> Tensor:
    """-log(p[y_true]), the class numbers y_true indexing `axis` of p.

    Args:
        y_true: class numbers from 0 to classes - 1: the shape of `y_pred` without `axis`, or with
            a last axis of size 1.
        y_pred: probabilities p, scaled to sum to 1 and clipped to [epsilon, 1 - epsilon]; or
            logits.
        from_logits: whether p = softmax(y_pred).
        ignore_class: a class number (such as -1) of values that do not count: their loss
            is 0, and the result carries a mask without them.
        axis: that of the classes.

    Returns:
        The shape of `y_pred` without `axis`.

    Raises:
        ShapeError: the shapes do not belong together.
        InvalidArgumentError: at run time, a label that is no class number.

    Examples:
        >>> laminar.losses.sparse_categorical_crossentropy([1, 0], [[0.5, 0.5], [0.25, 0.75]])
        Tensor([0.6931, 1.3863], shape=(2,), dtype=float32)
    """
    y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    y_true = class_numbers("sparse_categorical_crossentropy", y_true, y_pred, axis)
    if ignore_class is None:
        return ops.sparse_categorical_crossentropy(
            y_true, y_pred, from_logits=from_logits, axis=axis
        )
    counts = ops.not_equal(ops.cast(y_true, "int64"), ignore_class)  # bytes hold no -1
    y_true = ops.where(counts, y_true, ops.zeros_like(y_true))
    losses = ops.sparse_categorical_crossentropy(y_true, y_pred, from_logits=from_logits, axis=axis)
    counted: Tensor = ops.where(counts, losses, ops.zeros_like(losses))
    set_mask(counted, counts)
    return counted


def smooth_binary(y_true: Tensor, smoothing: float) -> Tensor:
    """y_true * (1 - smoothing) + smoothing / 2."""
    return y_true * (1.0 - smoothing) + 0.5 * smoothing if smoothing else y_true


def smooth_categorical(y_true: Tensor, smoothing: float) -> Tensor:
    """y_true * (1 - smoothing) + smoothing / (size of the last axis)."""
    if not smoothing:
        return y_true
    classes = ops.cast(ops.shape(y_true)[-1], y_true.dtype)
    smooth: Tensor = y_true * (1.0 - smoothing) + smoothing / classes
    return smooth


def class_numbers(
    who: str, y_true: Tensor, y_pred: Tensor, axis: int = -1, *, broadcasts: bool = False
) -> Tensor:
    """Class numbers as whole numbers of the shape of `y_pred` without `axis`.

    Args:
        broadcasts: whether those that broadcast to that shape are let pass, with a warning.

    Raises:
        ShapeError: `y_true` has another shape.
    """
    if not y_true.dtype.is_integer:
        y_true = ops.cast(y_true, int64)
    true, pred = y_true.shape, y_pred.shape
    if true.rank is None or pred.rank is None:
        return y_true
    if len(true) == len(pred) and true[-1] == 1:
        y_true = ops.squeeze(y_true, axis=-1)
        true = y_true.shape
    wanted = TensorShape([d for i, d in enumerate(pred) if i != axis % max(len(pred), 1)])
    if not pred or not true.is_compatible_with(wanted):
        one_hot = true.is_compatible_with(pred)
        if broadcasts and pred and not one_hot and can_broadcast(true, wanted):
            warn(
                f"{who}: class numbers {y_true.spec} are broadcast against scores {y_pred.spec}; "
                f"give labels of shape {wanted}"
            )
            return y_true
        raise ShapeError(
            f"{who}: y_true must have the shape of y_pred without the axis of the classes, "
            f"{wanted}; got y_true {y_true.spec} and y_pred {y_pred.spec}",
            remedy="the labels look one-hot: use categorical_crossentropy, or pass class numbers: "
            "ops.argmax(y, axis=-1)"
            if one_hot
            else "give one class number for each row of scores; check that the model keeps the "
            "batch axis",
        )
    return y_true


class BinaryCrossentropy(LossFunctionWrapper):
    """Cross-entropy of labels 0 and 1; see `binary_crossentropy` and, for the rest, `Loss`.

    Args:
        from_logits: whether predictions are logits, not probabilities.
        label_smoothing: s pulls labels to 1/2: y_true * (1 - s) + s / 2.
        axis: over which the mean goes.
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> loss = laminar.losses.BinaryCrossentropy(from_logits=True)
        >>> loss([[1.0], [0.0]], [[0.0], [0.0]])
        Tensor(0.6931, shape=(), dtype=float32)
    """

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "binary_crossentropy",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(
            binary_crossentropy,
            reduction,
            name,
            dtype,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


class CategoricalCrossentropy(LossFunctionWrapper):
    """Cross-entropy of one-hot labels; see `categorical_crossentropy` and, for the rest, `Loss`.

    Args:
        from_logits: whether predictions are logits, not probabilities.
        label_smoothing: s pulls labels to 1 / classes: y_true * (1 - s) + s / classes.
        axis: that of the classes.
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> loss = laminar.losses.CategoricalCrossentropy(label_smoothing=0.1)
        >>> loss([[0.0, 1.0]], [[0.1, 0.9]])
        Tensor(0.2152, shape=(), dtype=float32)
    """

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "categorical_crossentropy",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(
            categorical_crossentropy,
            reduction,
            name,
            dtype,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


class SparseCategoricalCrossentropy(ClassNumberLoss):
    """Cross-entropy of class numbers; see `sparse_categorical_crossentropy` and `Loss`.

    Values of `ignore_class` are left out of the mean.

    Args:
        from_logits: whether predictions are logits, not probabilities.
        ignore_class: a label that does not count.
        reduction: how the values of a batch become one number; see `Loss`.
        axis: that of the classes.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
        >>> loss([1, 0], [[0.0, 0.0], [0.0, 0.0]])
        Tensor(0.6931, shape=(), dtype=float32)
    """

    _unwritten: ClassVar[dict[str, Any]] = {"axis": -1}

    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: int | None = None,
        reduction: Reduction | None = "sum_over_batch_size",
        axis: int = -1,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(
            sparse_categorical_crossentropy,
            reduction,
            name,
            dtype,
            from_logits=from_logits,
            ignore_class=ignore_class,
            axis=axis,
        )
