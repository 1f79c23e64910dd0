"""Means of losses between distributions."""

from __future__ import annotations

from .. import losses
from ..dtype_policies import Policy
from ..typing import DTypeLike
from .reduction import MeanMetricWrapper


class BinaryCrossentropy(MeanMetricWrapper):
    """Mean of `losses.binary_crossentropy`, whose options the arguments are.

    Args:
        name: of the metric.
        dtype: of what is counted, by default `config.floatx()`.
        from_logits: whether predictions are logits, not probabilities.
        label_smoothing: s pulls labels to 1/2: y_true * (1 - s) + s / 2.

    Examples:
        >>> metric = laminar.metrics.BinaryCrossentropy()
        >>> metric.update_state([[1.0], [0.0]], [[0.5], [0.5]])
        >>> metric.result()
        Tensor(0.6931, shape=(), dtype=float32)
    """

    def __init__(
        self,
        name: str | None = "binary_crossentropy",
        dtype: DTypeLike | Policy | None = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
    ) -> None:
        super().__init__(
            losses.binary_crossentropy,
            name,
            dtype,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
        )


class CategoricalCrossentropy(MeanMetricWrapper):
    """Mean of `losses.categorical_crossentropy`, whose options the arguments are.

    Args:
        name: of the metric.
        dtype: of what is counted, by default `config.floatx()`.
        from_logits: whether predictions are logits, not probabilities.
        label_smoothing: s pulls labels to 1 / classes: y_true * (1 - s) + s / classes.
        axis: that of the classes.

    Examples:
        >>> metric = laminar.metrics.CategoricalCrossentropy()
        >>> metric.update_state([[0.0, 1.0]], [[0.5, 0.5]])
        >>> metric.result()
        Tensor(0.6931, shape=(), dtype=float32)
    """

    def __init__(
        self,
        name: str | None = "categorical_crossentropy",
        dtype: DTypeLike | Policy | None = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
        axis: int = -1,
    ) -> None:
        super().__init__(
            losses.categorical_crossentropy,
            name,
            dtype,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """Mean of `losses.sparse_categorical_crossentropy`, whose options the arguments are.

    Args:
        name: of the metric.
        dtype: of what is counted, by default `config.floatx()`.
        from_logits: whether predictions are logits, not probabilities.
        ignore_class: a label that does not count.
        axis: that of the classes.

    Examples:
        >>> metric = laminar.metrics.SparseCategoricalCrossentropy()
        >>> metric.update_state([1], [[0.5, 0.5]])
        >>> metric.result()
        Tensor(0.6931, shape=(), dtype=float32)
    """

    def __init__(
        self,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: DTypeLike | Policy | None = None,
        from_logits: bool = False,
        ignore_class: int | None = None,
        axis: int = -1,
    ) -> None:
        super().__init__(
            losses.sparse_categorical_crossentropy,
            name,
            dtype,
            from_logits=from_logits,
            ignore_class=ignore_class,
            axis=axis,
        )


class KLDivergence(MeanMetricWrapper):
    """Mean of `losses.kl_divergence`.

    Examples:
        >>> metric = laminar.metrics.KLDivergence()
        >>> metric.update_state([[0.5, 0.5]], [[0.25, 0.75]])
        >>> metric.result()
        Tensor(0.1438, shape=(), dtype=float32)
    """

    def __init__(
        self, name: str | None = "kl_divergence", dtype: DTypeLike | Policy | None = None
    ) -> None:
        super().__init__(losses.kl_divergence, name, dtype)


class Poisson(MeanMetricWrapper):
    """Mean of `losses.poisson`.

    Examples:
        >>> metric = laminar.metrics.Poisson()
        >>> metric.update_state([[1.0, 2.0]], [[1.0, 2.0]])
        >>> metric.result()
        Tensor(0.8069, shape=(), dtype=float32)
    """

    def __init__(
        self, name: str | None = "poisson", dtype: DTypeLike | Policy | None = None
    ) -> None:
        super().__init__(losses.poisson, name, dtype)
