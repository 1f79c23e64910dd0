"""Correlation of labels and predictions."""

from __future__ import annotations

from laminar.engine.graph import Tensor

from .. import config, ops
from ..dtype_policies import Policy
from ..losses.alignment import align
from ..typing import AxisLike, DTypeLike, TensorLike
from .reduction import MeanMetricWrapper


def pearson_correlation(y_true: TensorLike, y_pred: TensorLike, axis: AxisLike = -1) -> Tensor:
    """Covariance of labels and predictions along `axis` over the product of their deviations.

    NaN where the labels, or the predictions, are all equal.

    Args:
        y_true: shape of `y_pred`.
        y_pred: (batch, ..., n).
        axis: one axis or several.

    Returns:
        The shape of `y_pred` without `axis`, between -1 and 1.

    Raises:
        ShapeError: the shapes differ.

    Examples:
        >>> laminar.metrics.pearson_correlation([[1.0, 2.0, 3.0]], [[1.0, 2.0, 4.0]])
        Tensor([0.982], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("pearson_correlation", y_true, y_pred)
    d_true, d_pred = _deviations(y_true, axis), _deviations(y_pred, axis)
    covariance = ops.mean(d_true * d_pred, axis=axis)
    variances = ops.mean(ops.square(d_true), axis=axis) * ops.mean(ops.square(d_pred), axis=axis)
    return ops.divide(covariance, ops.sqrt(variances))


def concordance_correlation(y_true: TensorLike, y_pred: TensorLike, axis: AxisLike = -1) -> Tensor:
    """2 * covariance / (variance of labels + variance of predictions + (difference of means)**2).

    Arguments and shapes are those of `pearson_correlation`.

    Source: Lin, "A concordance correlation coefficient to evaluate reproducibility", 1989,
        equation 2.

    Examples:
        >>> laminar.metrics.concordance_correlation([[1.0, 2.0, 3.0]], [[1.0, 2.0, 4.0]])
        Tensor([0.8571], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("concordance_correlation", y_true, y_pred)
    d_true, d_pred = _deviations(y_true, axis), _deviations(y_pred, axis)
    covariance = ops.mean(d_true * d_pred, axis=axis)
    spread = ops.mean(ops.square(d_true), axis=axis) + ops.mean(ops.square(d_pred), axis=axis)
    shift = ops.square(ops.mean(y_true, axis=axis) - ops.mean(y_pred, axis=axis))
    return ops.divide(2.0 * covariance, spread + shift + config.epsilon())


def _deviations(x: Tensor, axis: AxisLike) -> Tensor:
    return ops.subtract(x, ops.mean(x, axis=axis, keepdims=True))


class PearsonCorrelation(MeanMetricWrapper):
    """Mean of the samples' `pearson_correlation`.

    Examples:
        >>> metric = laminar.metrics.PearsonCorrelation()
        >>> metric.update_state([[1.0, 2.0, 3.0]], [[1.0, 2.0, 4.0]])
        >>> metric.result()
        Tensor(0.982, shape=(), dtype=float32)
    """

    def __init__(
        self,
        name: str | None = "pearson_correlation",
        dtype: DTypeLike | Policy | None = None,
        axis: AxisLike = -1,
    ) -> None:
        super().__init__(pearson_correlation, name, dtype, axis=axis)


class ConcordanceCorrelation(MeanMetricWrapper):
    """Mean of the samples' `concordance_correlation`.

    Examples:
        >>> metric = laminar.metrics.ConcordanceCorrelation()
        >>> metric.update_state([[1.0, 2.0, 3.0]], [[1.0, 2.0, 4.0]])
        >>> metric.result()
        Tensor(0.8571, shape=(), dtype=float32)
    """

    def __init__(
        self,
        name: str | None = "concordance_correlation",
        dtype: DTypeLike | Policy | None = None,
        axis: AxisLike = -1,
    ) -> None:
        super().__init__(concordance_correlation, name, dtype, axis=axis)
