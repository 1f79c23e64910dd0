"""Losses of segmentation: how far predicted and true regions are from covering each other."""

from __future__ import annotations

from typing import Any

from laminar.engine.graph import Tensor

from .. import config, ops
from ..dtype_policies import Policy
from ..typing import AxisLike, DTypeLike, TensorLike
from .alignment import align
from .loss import LossFunctionWrapper
from .reduction import Reduction


def dice(y_true: TensorLike, y_pred: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """1 - 2 * sum(y_true * y_pred) / (sum(y_true) + sum(y_pred) + epsilon).

    Args:
        y_true: between 0 and 1, shape of `y_pred`.
        y_pred: between 0 and 1.
        axis: the axes of the sums; None for all, the batch included.

    Returns:
        The shape of `y_pred` without `axis`.

    Raises:
        ShapeError: the shapes differ.

    Source: Milletari et al., "V-Net", 2016, arXiv:1606.04797, section 3.

    Examples:
        >>> laminar.losses.dice([[1.0, 0.0]], [[0.5, 0.5]])
        Tensor(0.5, shape=(), dtype=float32)
    """
    y_true, y_pred = align("dice", y_true, y_pred)
    axis = _axes(axis)
    both = 2.0 * ops.sum(y_true * y_pred, axis=axis)
    sizes = ops.sum(y_true, axis=axis) + ops.sum(y_pred, axis=axis)
    loss: Tensor = 1.0 - both / (sizes + config.epsilon())
    return loss


def tversky(
    y_true: TensorLike,
    y_pred: TensorLike,
    alpha: float = 0.5,
    beta: float = 0.5,
    axis: AxisLike | None = None,
) -> Tensor:
    """1 - t / (t + alpha * missed + beta * wrong + epsilon).

    t = sum(y_true * y_pred), missed = sum(y_true * (1 - y_pred)), wrong = sum((1 - y_true) *
    y_pred). alpha and beta have the roles that they have in Keras; in the paper they are exchanged.

    Args:
        y_true: between 0 and 1, shape of `y_pred`.
        y_pred: between 0 and 1.
        alpha: weight of what is missed.
        beta: weight of what is predicted wrongly.
        axis: the axes of the sums; None for all, the batch included.

    Returns:
        The shape of `y_pred` without `axis`.

    Raises:
        ShapeError: the shapes differ.

    Source: Salehi et al., "Tversky loss function for image segmentation using 3D fully
        convolutional deep networks", 2017, arXiv:1706.05721, equation 3.

    Examples:
        >>> laminar.losses.tversky([[1.0, 0.0]], [[0.5, 0.5]], alpha=0.3, beta=0.7)
        Tensor(0.5, shape=(), dtype=float32)
    """
    y_true, y_pred = align("tversky", y_true, y_pred)
    axis = _axes(axis)
    hits = ops.sum(y_true * y_pred, axis=axis)
    wrong = ops.sum((1.0 - y_true) * y_pred, axis=axis)
    missed = ops.sum(y_true * (1.0 - y_pred), axis=axis)
    loss: Tensor = 1.0 - hits / (hits + alpha * missed + beta * wrong + config.epsilon())
    return loss


def _axes(axis: AxisLike | None) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


class Dice(LossFunctionWrapper):
    """Dice loss; see `dice` and, for the other arguments, `Loss`.

    Args:
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        axis: the axes of the sums; None for all, the batch included.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.Dice()([[1.0, 0.0]], [[0.5, 0.5]])
        Tensor(0.5, shape=(), dtype=float32)
    """

    def __init__(
        self,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "dice",
        axis: AxisLike | None = None,
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(dice, reduction, name, dtype, axis=axis)


class Tversky(LossFunctionWrapper):
    """Tversky loss; see `tversky` and, for the other arguments, `Loss`.

    Args:
        alpha: weight of what is missed.
        beta: weight of what is predicted wrongly.
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        axis: the axes of the sums; None for all, the batch included.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.Tversky(alpha=0.3, beta=0.7)([[1.0, 0.0]], [[0.5, 0.5]])
        Tensor(0.5, shape=(), dtype=float32)
    """

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "tversky",
        axis: AxisLike | None = None,
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(tversky, reduction, name, dtype, alpha=alpha, beta=beta, axis=axis)
