"""Losses between distributions: Kullback-Leibler and Poisson."""

from __future__ import annotations

from laminar.engine.graph import Tensor

from .. import config, ops
from ..dtype_policies import Policy
from ..typing import DTypeLike, TensorLike
from .alignment import align
from .loss import LossFunctionWrapper
from .reduction import Reduction


def kl_divergence(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """sum(y_true * log(y_true / y_pred)) over the last axis, both clipped to [epsilon, 1].

    Args:
        y_true: probabilities, shape of `y_pred`.
        y_pred: probabilities: (batch, ..., n).

    Returns:
        (batch, ...).

    Raises:
        ShapeError: the shapes differ.

    Examples:
        >>> laminar.losses.kl_divergence([[0.5, 0.5]], [[0.25, 0.75]])
        Tensor([0.1438], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("kl_divergence", y_true, y_pred)
    y_true = ops.clip(y_true, config.epsilon(), 1.0)
    y_pred = ops.clip(y_pred, config.epsilon(), 1.0)
    return ops.sum(y_true * ops.log(y_true / y_pred), axis=-1)


def poisson(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(y_pred - y_true * log(y_pred + epsilon)) over the last axis.

    The negative log-likelihood of counts `y_true` under rates `y_pred`, less log(y_true!).

    Examples:
        >>> laminar.losses.poisson([[1.0, 2.0]], [[1.0, 2.0]])
        Tensor([0.8069], shape=(1,), dtype=float32)
    """
    y_true, y_pred = align("poisson", y_true, y_pred)
    return ops.mean(y_pred - y_true * ops.log(y_pred + config.epsilon()), axis=-1)


class KLDivergence(LossFunctionWrapper):
    """Kullback-Leibler divergence of predictions from labels; see `kl_divergence` and `Loss`.

    Args:
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.KLDivergence()([[0.5, 0.5]], [[0.25, 0.75]])
        Tensor(0.1438, shape=(), dtype=float32)
    """

    def __init__(
        self,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "kl_divergence",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(kl_divergence, reduction, name, dtype)


class Poisson(LossFunctionWrapper):
    """Negative log-likelihood of counts under predicted rates; see `poisson` and `Loss`.

    Args:
        reduction: how the values of a batch become one number; see `Loss`.
        name: of the loss.
        dtype: type in which the loss is computed, by default `config.floatx()`.

    Raises:
        InvalidArgumentError: another reduction.

    Examples:
        >>> laminar.losses.Poisson()([[1.0, 2.0]], [[1.0, 2.0]])
        Tensor(0.8069, shape=(), dtype=float32)
    """

    def __init__(
        self,
        reduction: Reduction | None = "sum_over_batch_size",
        name: str | None = "poisson",
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(poisson, reduction, name, dtype)
