"""Means of the losses that ask for a margin."""

from __future__ import annotations

from .. import losses
from ..dtype_policies import Policy
from ..typing import DTypeLike
from .reduction import MeanMetricWrapper


class Hinge(MeanMetricWrapper):
    """Mean of `losses.hinge`."""

    def __init__(self, name: str | None = "hinge", dtype: DTypeLike | Policy | None = None) -> None:
        super().__init__(losses.hinge, name, dtype)


class SquaredHinge(MeanMetricWrapper):
    """Mean of `losses.squared_hinge`."""

    def __init__(
        self, name: str | None = "squared_hinge", dtype: DTypeLike | Policy | None = None
    ) -> None:
        super().__init__(losses.squared_hinge, name, dtype)


class CategoricalHinge(MeanMetricWrapper):
    """Mean of `losses.categorical_hinge`."""

    def __init__(
        self, name: str | None = "categorical_hinge", dtype: DTypeLike | Policy | None = None
    ) -> None:
        super().__init__(losses.categorical_hinge, name, dtype)
