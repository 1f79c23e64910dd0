"""Losses of numbers: distances between labels and predictions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from laminar.engine.graph import Tensor

from .. import config, ops
from ..dtype_policies import Policy
from ..typing import DTypeLike, TensorLike
from .alignment import align
from .loss import LossFunctionWrapper
from .reduction import Reduction


def mean_squared_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean((y_true - y_pred)**2) over the last axis.

    Args:
        y_true: shape of `y_pred`.
        y_pred: (batch, ..., n).

    Returns:
        (batch, ...).

    Raises:
        ShapeError: the shapes differ.

    Examples:
        >>> laminar.losses.mean_squared_error([[1.0, 2.0]], [[2.0, 5.0]])
        Tensor([5.], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("mean_squared_error", y_true, y_pred)
    return ops.mean(ops.square(y_true - y_pred), axis=-1)


def mean_absolute_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(|y_true - y_pred|) over the last axis.

    Args:
        y_true: what is to be predicted: (..., n).
        y_pred: predictions of the same shape; others are broadcast, with a warning.

    Returns:
        (...).

    Raises:
        ShapeError: the shapes do not fit.

    Examples:
        >>> laminar.losses.mean_absolute_error([[1.0, 2.0]], [[2.0, 5.0]])
        Tensor([2.], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("mean_absolute_error", y_true, y_pred)
    return ops.mean(ops.abs(y_true - y_pred), axis=-1)


def mean_absolute_percentage_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """100 * mean(|y_true - y_pred| / max(|y_true|, epsilon)) over the last axis.

    Args:
        y_true: what is to be predicted: (..., n).
        y_pred: predictions of the same shape; others are broadcast, with a warning.

    Returns:
        (...).

    Raises:
        ShapeError: the shapes do not fit.

    Examples:
        >>> laminar.losses.mean_absolute_percentage_error([[1.0, 2.0]], [[1.1, 2.0]])
        Tensor([5.], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("mean_absolute_percentage_error", y_true, y_pred)
    size = ops.maximum(ops.abs(y_true), config.epsilon())
    percent: Tensor = 100.0 * ops.mean(ops.abs((y_true - y_pred) / size), axis=-1)
    return percent


def mean_squared_logarithmic_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean((log(1 + y_true) - log(1 + y_pred))**2) over the last axis.

    Both are raised to at least epsilon first, so negative values count as 0.

    Examples:
        >>> laminar.losses.mean_squared_logarithmic_error([[0.0]], [[1.0]])
        Tensor([0.4805], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("mean_squared_logarithmic_error", y_true, y_pred)
    log_true = ops.log(ops.maximum(y_true, config.epsilon()) + 1.0)
    log_pred = ops.log(ops.maximum(y_pred, config.epsilon()) + 1.0)
    return ops.mean(ops.square(log_true - log_pred), axis=-1)


def huber(y_true: TensorLike, y_pred: TensorLike, delta: float = 1.0) -> Tensor:
    """Mean over the last axis of e**2 / 2 where |e| <= delta, else delta * |e| - delta**2 / 2.

    e = y_pred - y_true.

    Source: Huber, "Robust estimation of a location parameter", 1964, section 1.

    Examples:
        >>> laminar.losses.huber([[0.0, 0.0]], [[0.5, 3.0]])
        Tensor([1.3125], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("huber", y_true, y_pred)
    size = ops.abs(y_pred - y_true)
    near = 0.5 * ops.square(size)
    far = delta * size - 0.5 * delta**2
    return ops.mean(ops.where(size <= delta, near, far), axis=-1)


def log_cosh(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(log(cosh(y_pred - y_true))) over the last axis.

    Args:
        y_true: what is to be predicted: (..., n).
        y_pred: predictions of the same shape; others are broadcast, with a warning.

    Returns:
        (...).

    Raises:
        ShapeError: the shapes do not fit.

    Examples:
        >>> laminar.losses.log_cosh([[0.0]], [[1.0]])
        Tensor([0.4338], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("log_cosh", y_true, y_pred)
    error = y_pred - y_true
    # cosh overflows: log(cosh(e)) = e + log(1 + exp(-2 e)) - log(2)
    return ops.mean(error + ops.softplus(-2.0 * error) - math.log(2.0), axis=-1)


def cosine_similarity(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Tensor:
    """Minus the cosine of the angle between labels and predictions along `axis`.

    -1 for the same direction, 0 for a right angle or a vector of zeros, 1 for opposite ones.

    Examples:
        >>> laminar.losses.cosine_similarity([[1.0, 0.0]], [[3.0, 4.0]])
        Tensor([-0.6], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("cosine_similarity", y_true, y_pred)
    product = ops.normalize(y_true, axis=axis) * ops.normalize(y_pred, axis=axis)
    return ops.negative(ops.sum(product, axis=axis))


class MeanSquaredError(LossFunctionWrapper):
    """Mean of (y_true - y_pred)**2; see `mean_squared_error` and, for the arguments, `Loss`.

    Args:
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> loss = laminar.losses.MeanSquaredError()
        >>> loss([[0.0], [0.0]], [[1.0], [3.0]], sample_weight=[1.0, 0.5])
        Tensor(2.75, shape=(), dtype=float32)
    """

    def __init__(
        self,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "mean_squared_error",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(mean_squared_error, reduction, name, dtype)


class MeanAbsoluteError(LossFunctionWrapper):
    """Mean of |y_true - y_pred|; see `mean_absolute_error` and, for the arguments, `Loss`.

    Args:
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.MeanAbsoluteError()([[1.0, 2.0]], [[2.0, 5.0]])
        Tensor(2., shape=(), dtype=float32)
    """

    def __init__(
        self,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "mean_absolute_error",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(mean_absolute_error, reduction, name, dtype)


class MeanAbsolutePercentageError(LossFunctionWrapper):
    """Mean error in percent of the label; see `mean_absolute_percentage_error` and `Loss`.

    Args:
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.MeanAbsolutePercentageError()([[1.0, 2.0]], [[1.1, 2.0]])
        Tensor(5., shape=(), dtype=float32)
    """

    def __init__(
        self,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "mean_absolute_percentage_error",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(mean_absolute_percentage_error, reduction, name, dtype)


class MeanSquaredLogarithmicError(LossFunctionWrapper):
    """Mean squared difference of logarithms; see `mean_squared_logarithmic_error` and `Loss`.

    Args:
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.MeanSquaredLogarithmicError()([[0.0]], [[1.0]])
        Tensor(0.4805, shape=(), dtype=float32)
    """

    def __init__(
        self,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "mean_squared_logarithmic_error",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(mean_squared_logarithmic_error, reduction, name, dtype)


class Huber(LossFunctionWrapper):
    """Squared error that grows linearly beyond `delta`; see `huber` and `Loss`.

    Args:
        delta: where the square ends and the line begins.
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.Huber(delta=1.0)([[0.0, 0.0]], [[0.5, 3.0]])
        Tensor(1.3125, shape=(), dtype=float32)
    """

    _unwritten: ClassVar[dict[str, Any]] = {"delta": 1.0}

    def __init__(
        self,
        delta: float = 1.0,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "huber_loss",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(huber, reduction, name, dtype, delta=delta)


class LogCosh(LossFunctionWrapper):
    """Mean of log(cosh(y_pred - y_true)); see `log_cosh` and `Loss`.

    Args:
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.LogCosh()([[0.0], [0.0]], [[1.0], [0.0]])
        Tensor(0.2169, shape=(), dtype=float32)
    """

    def __init__(
        self,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "log_cosh",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(log_cosh, reduction, name, dtype)


class CosineSimilarity(LossFunctionWrapper):
    """Minus the cosine similarity along `axis`; see `cosine_similarity` and `Loss`.

    Args:
        axis: that of the vectors.
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.CosineSimilarity()([[1.0, 0.0]], [[3.0, 4.0]])
        Tensor(-0.6, shape=(), dtype=float32)
    """

    _unwritten: ClassVar[dict[str, Any]] = {"axis": -1}

    def __init__(
        self,
        axis: int = -1,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "cosine_similarity",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(cosine_similarity, reduction, name, dtype, axis=axis)
