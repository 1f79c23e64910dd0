"""Precision, recall, and the four counts they are made of, at one or more thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .. import ops
from ..dtype_policies import Policy
from ..typing import DTypeLike, TensorLike
from .confusion import count_confusion
from .metric import Metric
from .thresholds import NEVER, check_thresholds


class ConfusionCount(Metric):
    """The weight of one kind of prediction. Abstract: a subclass names the kind.

    Args:
        thresholds: between 0 and 1, one or a list; above it a prediction means 1. By default 0.5.
        name: of the metric.
        dtype: of the count.

    Raises:
        InvalidArgumentError: a threshold outside [0, 1].
    """

    _kind: ClassVar[str]

    def __init__(
        self,
        thresholds: float | Sequence[float] | None = None,
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.init_thresholds = thresholds
        self.thresholds = check_thresholds(type(self).__name__, thresholds, 0.5)
        self.accumulator = self.add_variable((len(self.thresholds),), "zeros", name="accumulator")

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        counts = count_confusion(
            type(self).__name__,
            y_true,
            y_pred,
            self.thresholds,
            dtype=self.accumulator.dtype,
            sample_weight=sample_weight,
        )
        self.accumulator.assign_add(getattr(counts, self._kind))

    def result(self) -> Any:
        found = self.accumulator.value
        return found[0] if len(self.thresholds) == 1 else found

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "thresholds": self.init_thresholds}


class TruePositives(ConfusionCount):
    """The weight of labels 1 with a prediction above the threshold; see `ConfusionCount`.

    Args:
        thresholds: between 0 and 1, one or a list; above it a prediction means 1. By default 0.5.
        name: of the metric.
        dtype: of the counts.

    Examples:
        >>> metric = laminar.metrics.TruePositives()
        >>> metric.update_state([1, 0, 0], [0.9, 0.2, 0.8])
        >>> metric.result()
        Tensor(1., shape=(), dtype=float32)
    """

    _kind = "true_positives"


class FalsePositives(ConfusionCount):
    """The weight of labels 0 with a prediction above the threshold; see `ConfusionCount`.

    Args:
        thresholds: between 0 and 1, one or a list; above it a prediction means 1. By default 0.5.
        name: of the metric.
        dtype: of the counts.

    Examples:
        >>> metric = laminar.metrics.FalsePositives()
        >>> metric.update_state([1, 1, 0], [0.9, 0.2, 0.8])
        >>> metric.result()
        Tensor(1., shape=(), dtype=float32)
    """

    _kind = "false_positives"


class TrueNegatives(ConfusionCount):
    """The weight of labels 0 without a prediction above the threshold; see `ConfusionCount`.

    Args:
        thresholds: between 0 and 1, one or a list; above it a prediction means 1. By default 0.5.
        name: of the metric.
        dtype: of the counts.

    Examples:
        >>> metric = laminar.metrics.TrueNegatives()
        >>> metric.update_state([1, 0, 0], [0.9, 0.2, 0.8])
        >>> metric.result()
        Tensor(1., shape=(), dtype=float32)
    """

    _kind = "true_negatives"


class FalseNegatives(ConfusionCount):
    """The weight of labels 1 without a prediction above the threshold; see `ConfusionCount`.

    Args:
        thresholds: between 0 and 1, one or a list; above it a prediction means 1. By default 0.5.
        name: of the metric.
        dtype: of the counts.

    Examples:
        >>> metric = laminar.metrics.FalseNegatives()
        >>> metric.update_state([1, 1, 0], [0.9, 0.2, 0.8])
        >>> metric.result()
        Tensor(1., shape=(), dtype=float32)
    """

    _kind = "false_negatives"


class _Share(Metric):
    """true_positives / (true_positives + another count)."""

    _other: ClassVar[str]

    def __init__(
        self,
        thresholds: float | Sequence[float] | None = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.init_thresholds = thresholds
        self.top_k = top_k
        self.class_id = class_id
        default = 0.5 if top_k is None else NEVER
        self.thresholds = check_thresholds(type(self).__name__, thresholds, default)
        shape = (len(self.thresholds),)
        self.true_positives = self.add_variable(shape, "zeros", name="true_positives")
        self._others = self.add_variable(shape, "zeros", name=self._other)

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        counts = count_confusion(
            type(self).__name__,
            y_true,
            y_pred,
            self.thresholds,
            dtype=self.true_positives.dtype,
            top_k=self.top_k,
            class_id=self.class_id,
            sample_weight=sample_weight,
        )
        self.true_positives.assign_add(counts.true_positives)
        self._others.assign_add(getattr(counts, self._other))

    def result(self) -> Any:
        hits = self.true_positives.value
        found = ops.divide_no_nan(hits, hits + self._others.value)
        return found[0] if len(self.thresholds) == 1 else found

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "thresholds": self.init_thresholds,
            "top_k": self.top_k,
            "class_id": self.class_id,
        }


class Precision(_Share):
    """The share of true labels among the predictions of 1: tp / (tp + fp).

    Args:
        thresholds: between 0 and 1, one or a list; above it a prediction means 1. By default 0.5,
            and with `top_k` none.
        top_k: only the largest `top_k` predictions along the last axis can mean 1.
        class_id: the only class that counts.
        name: of the metric.
        dtype: of the counts.

    Raises:
        InvalidArgumentError: a threshold outside [0, 1].

    Examples:
        >>> metric = laminar.metrics.Precision()
        >>> metric.update_state([0, 1, 1, 1], [0.9, 0.8, 0.2, 0.7])
        >>> metric.result()
        Tensor(0.6667, shape=(), dtype=float32)
    """

    _other = "false_positives"

    @property
    def false_positives(self) -> Any:
        """The weight of labels 0 with a prediction of 1, for each threshold."""
        return self._others


class Recall(_Share):
    """The share of the labels 1 that are predicted: tp / (tp + fn).

    The arguments are those of `Precision`.

    Args:
        thresholds: between 0 and 1, one or a list; above it a prediction means 1. By default 0.5,
            and with `top_k` none.
        top_k: only the largest `top_k` predictions along the last axis can mean 1.
        class_id: the only class that counts.
        name: of the metric.
        dtype: of the counts.

    Raises:
        InvalidArgumentError: a threshold outside [0, 1].

    Examples:
        >>> metric = laminar.metrics.Recall()
        >>> metric.update_state([0, 1, 1, 1], [0.9, 0.8, 0.2, 0.7])
        >>> metric.result()
        Tensor(0.6667, shape=(), dtype=float32)
    """

    _other = "false_negatives"

    @property
    def false_negatives(self) -> Any:
        """The weight of labels 1 without a prediction of 1, for each threshold."""
        return self._others
