"""Focal losses: cross-entropy in which easy samples count little.

Source: Lin et al., "Focal loss for dense object detection", 2017, arXiv:1708.02002, equations 4, 5.
"""

from __future__ import annotations

from laminar.engine.graph import Tensor

from .. import config, ops
from ..dtype_policies import Policy
from ..typing import DTypeLike, TensorLike
from .alignment import align
from .crossentropy import smooth_binary, smooth_categorical
from .loss import LossFunctionWrapper
from .reduction import Reduction


def binary_focal_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """mean((1 - p_t)**gamma * binary cross-entropy) over `axis`.

    p_t = y_true * p + (1 - y_true) * (1 - p).

    Args:
        y_true: between 0 and 1, shape of `y_pred`.
        y_pred: probabilities p, or logits.
        apply_class_balancing: whether labels 1 weigh `alpha` and labels 0 weigh 1 - `alpha`.
        alpha: that weight.
        gamma: the larger, the less easy samples count.
        from_logits: whether p = sigmoid(y_pred).
        label_smoothing: see `binary_crossentropy`.
        axis: over which the mean goes.

    Returns:
        The shape of `y_pred` without `axis`.

    Raises:
        ShapeError: the shapes differ.

    Examples:
        >>> laminar.losses.binary_focal_crossentropy([[1.0]], [[0.5]])
        Tensor([0.1733], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("binary_focal_crossentropy", y_true, y_pred)
    y_true = smooth_binary(y_true, label_smoothing)
    p = ops.sigmoid(y_pred) if from_logits else y_pred
    entropy = ops.binary_crossentropy(y_true, p, from_logits=False)
    p_t = y_true * p + (1.0 - y_true) * (1.0 - p)
    losses = ops.power(1.0 - p_t, gamma) * entropy
    if apply_class_balancing:
        losses = losses * (y_true * alpha + (1.0 - y_true) * (1.0 - alpha))
    return ops.mean(losses, axis=axis)


def categorical_focal_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    alpha: TensorLike = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """-sum(alpha * (1 - p)**gamma * y_true * log(p)) over `axis`.

    Args:
        y_true: one-hot labels or probabilities, shape of `y_pred`.
        y_pred: probabilities p, scaled to sum to 1 and clipped to [epsilon, 1 - epsilon]; or
            logits.
        alpha: a weight, or one for each class.
        gamma: the larger, the less easy samples count.
        from_logits: whether p = softmax(y_pred).
        label_smoothing: see `categorical_crossentropy`.
        axis: that of the classes.

    Returns:
        The shape of `y_pred` without `axis`.

    Raises:
        ShapeError: the shapes differ.

    Examples:
        >>> laminar.losses.categorical_focal_crossentropy([[0.0, 1.0]], [[0.5, 0.5]])
        Tensor([0.0433], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("categorical_focal_crossentropy", y_true, y_pred)
    y_true = smooth_categorical(y_true, label_smoothing)
    p = ops.softmax(y_pred, axis=axis) if from_logits else y_pred
    p = p / ops.sum(p, axis=axis, keepdims=True)
    p = ops.clip(p, config.epsilon(), 1.0 - config.epsilon())
    weight = ops.power(1.0 - p, gamma) * ops.convert_to_tensor(alpha, dtype=p.dtype)
    return ops.negative(ops.sum(weight * y_true * ops.log(p), axis=axis))


class BinaryFocalCrossentropy(LossFunctionWrapper):
    """Focal loss of labels 0 and 1; see `binary_focal_crossentropy` and, for the rest, `Loss`.

    Args:
        apply_class_balancing: whether labels 1 weigh `alpha` and labels 0 weigh 1 - `alpha`.
        alpha: that weight.
        gamma: the larger, the less easy samples count.
        from_logits: whether predictions are logits, not probabilities.
        label_smoothing: s pulls labels to 1/2: y_true * (1 - s) + s / 2.
        axis: over which the mean goes.
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.BinaryFocalCrossentropy(gamma=2)([[1.0]], [[0.5]])
        Tensor(0.1733, shape=(), dtype=float32)
    """

    def __init__(
        self,
        apply_class_balancing: bool = False,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "binary_focal_crossentropy",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(
            binary_focal_crossentropy,
            reduction,
            name,
            dtype,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
            apply_class_balancing=apply_class_balancing,
            alpha=alpha,
            gamma=gamma,
        )


class CategoricalFocalCrossentropy(LossFunctionWrapper):
    """Focal loss of one-hot labels; see `categorical_focal_crossentropy` and `Loss`.

    Args:
        alpha: a weight, or one for each class.
        gamma: the larger, the less easy samples count.
        from_logits: whether predictions are logits, not probabilities.
        label_smoothing: s pulls labels to 1 / classes: y_true * (1 - s) + s / classes.
        axis: that of the classes.
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.CategoricalFocalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]])
        Tensor(0.0433, shape=(), dtype=float32)
    """

    def __init__(
        self,
        alpha: TensorLike = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "categorical_focal_crossentropy",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(
            categorical_focal_crossentropy,
            reduction,
            name,
            dtype,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
            alpha=alpha,
            gamma=gamma,
        )
