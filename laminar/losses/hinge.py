"""Losses that ask for a margin between right and wrong."""

from __future__ import annotations

from laminar.engine.graph import Tensor

from .. import ops
from ..dtype_policies import Policy
from ..typing import DTypeLike, TensorLike
from .alignment import align
from .loss import LossFunctionWrapper
from .reduction import Reduction


def hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(max(1 - y_true * y_pred, 0)) over the last axis.

    Args:
        y_true: -1 and 1, or 0 and 1 (then 0 is taken as -1), shape of `y_pred`.
        y_pred: (batch, ..., n).

    Raises:
        ShapeError: the shapes differ.

    Examples:
        >>> laminar.losses.hinge([[1.0, -1.0]], [[0.5, 0.5]])
        Tensor([1.], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("hinge", y_true, y_pred)
    return ops.mean(ops.maximum(1.0 - _signs(y_true) * y_pred, 0.0), axis=-1)


def squared_hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(max(1 - y_true * y_pred, 0)**2) over the last axis.

    Args:
        y_true: labels -1 and 1, or 0 and 1, where 0 stands for -1: (..., n).
        y_pred: predictions of the same shape.

    Returns:
        (...).

    Raises:
        ShapeError: the shapes do not fit.

    Examples:
        >>> laminar.losses.squared_hinge([[1.0, -1.0]], [[0.5, 0.5]])
        Tensor([1.25], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("squared_hinge", y_true, y_pred)
    return ops.mean(ops.square(ops.maximum(1.0 - _signs(y_true) * y_pred, 0.0)), axis=-1)


def categorical_hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """max(1 + best wrong score - right score, 0), along the last axis.

    Args:
        y_true: one-hot labels, shape of `y_pred`.
        y_pred: scores: (batch, ..., classes).

    Returns:
        (batch, ...).

    Raises:
        ShapeError: the shapes differ.

    Examples:
        >>> laminar.losses.categorical_hinge([[0.0, 1.0]], [[0.6, 0.4]])
        Tensor([1.2], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("categorical_hinge", y_true, y_pred)
    right = ops.sum(y_true * y_pred, axis=-1)
    wrong = ops.max((1.0 - y_true) * y_pred, axis=-1)
    return ops.maximum(wrong - right + 1.0, 0.0)


def _signs(y_true: Tensor) -> Tensor:
    """Labels of 0 and 1 as -1 and 1; labels with any other value as they are."""
    binary = ops.all(ops.logical_or(ops.equal(y_true, 0.0), ops.equal(y_true, 1.0)))
    signs: Tensor = ops.where(binary, 2.0 * y_true - 1.0, y_true)
    return signs


class Hinge(LossFunctionWrapper):
    """Mean of max(1 - y_true * y_pred, 0); see `hinge` and, for the arguments, `Loss`.

    Args:
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.Hinge()([[1.0, -1.0]], [[0.5, 0.5]])
        Tensor(1., shape=(), dtype=float32)
    """

    def __init__(
        self,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "hinge",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(hinge, reduction, name, dtype)


class SquaredHinge(LossFunctionWrapper):
    """Mean of max(1 - y_true * y_pred, 0)**2; see `squared_hinge` and `Loss`.

    Args:
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.SquaredHinge()([[1.0, -1.0]], [[0.5, 0.5]])
        Tensor(1.25, shape=(), dtype=float32)
    """

    def __init__(
        self,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "squared_hinge",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(squared_hinge, reduction, name, dtype)


class CategoricalHinge(LossFunctionWrapper):
    """Margin between the right class and the best wrong one; see `categorical_hinge` and `Loss`.

    Args:
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.CategoricalHinge()([[0.0, 1.0]], [[0.6, 0.4]])
        Tensor(1.2, shape=(), dtype=float32)
    """

    def __init__(
        self,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "categorical_hinge",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(categorical_hinge, reduction, name, dtype)
