"""Means of the losses that ask for a margin."""

from __future__ import annotations

from .. import losses
from ..dtype_policies import Policy
from ..typing import DTypeLike
from .reduction import MeanMetricWrapper


class Hinge(MeanMetricWrapper):
    """Mean of `losses.hinge`.

    Examples:
        >>> metric = laminar.metrics.Hinge()
        >>> metric.update_state([[1.0, -1.0]], [[0.5, 0.5]])
        >>> metric.result()
        Tensor(1., shape=(), dtype=float32)
    """

    def __init__(self, name: str | None = "hinge", dtype: DTypeLike | Policy | None = None) -> None:
        super().__init__(losses.hinge, name, dtype)


class SquaredHinge(MeanMetricWrapper):
    """Mean of `losses.squared_hinge`.

    Examples:
        >>> metric = laminar.metrics.SquaredHinge()
        >>> metric.update_state([[1.0, -1.0]], [[0.5, 0.5]])
        >>> metric.result()
        Tensor(1.25, shape=(), dtype=float32)
    """

    def __init__(
        self, name: str | None = "squared_hinge", dtype: DTypeLike | Policy | None = None
    ) -> None:
        super().__init__(losses.squared_hinge, name, dtype)


class CategoricalHinge(MeanMetricWrapper):
    """Mean of `losses.categorical_hinge`.

    Examples:
        >>> metric = laminar.metrics.CategoricalHinge()
        >>> metric.update_state([[0.0, 1.0]], [[0.6, 0.4]])
        >>> metric.result()
        Tensor(1.2, shape=(), dtype=float32)
    """

    def __init__(
        self, name: str | None = "categorical_hinge", dtype: DTypeLike | Policy | None = None
    ) -> None:
        super().__init__(losses.categorical_hinge, name, dtype)
