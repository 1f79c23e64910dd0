"""Confusion counts at many thresholds, and the best operating point of a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .. import ops
from ..dtype_policies import Policy
from ..typing import DTypeLike, TensorLike
from .confusion import Confusion, count_confusion
from .metric import Metric
from .thresholds import spread_thresholds


class CurveMetric(Metric):
    """Keeps the four confusion counts for a list of thresholds. Abstract."""

    true_positives: Variable
    false_positives: Variable
    true_negatives: Variable
    false_negatives: Variable

    def _add_counts(self, shape: Sequence[int]) -> None:
        for kind in Confusion._fields:
            setattr(self, kind, self.add_variable(shape, "zeros", name=kind))

    def _count(self, counts: Confusion) -> None:
        for kind, count in counts._asdict().items():
            getattr(self, kind).assign_add(count)

    def _counts(self) -> Confusion:
        return Confusion(*(getattr(self, kind).value for kind in Confusion._fields))


class OperatingPoint(CurveMetric):
    """The best of one rate at the thresholds where another one is good enough. Abstract.

    Args:
        value: what the constrained rate must reach at least, between 0 and 1.
        num_thresholds: how many thresholds, spread evenly over [0, 1], are tried.
        class_id: the only class that counts.
        name: of the metric.
        dtype: of the counts.

    Raises:
        InvalidArgumentError: `value` is outside [0, 1], or `num_thresholds` is not positive.
    """

    _argument: ClassVar[str]  # what the constrained rate is called

    def __init__(
        self,
        value: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        who = type(self).__name__
        if not 0 <= value <= 1:
            raise InvalidArgumentError(
                f"{who}: {self._argument} must be between 0 and 1, got {value!r}"
            )
        if num_thresholds < 1:
            raise InvalidArgumentError(
                f"{who}: num_thresholds must be at least 1, got {num_thresholds!r}"
            )
        self.value = value
        self.num_thresholds = num_thresholds
        self.class_id = class_id
        self.thresholds = (
            [0.5] if num_thresholds == 1 else [0.0, *spread_thresholds(num_thresholds), 1.0]
        )
        self._add_counts((len(self.thresholds),))

    def update_state(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        self._count(
            count_confusion(
                type(self).__name__,
                y_true,
                y_pred,
                self.thresholds,
                dtype=self.true_positives.dtype,
                evenly=len(self.thresholds) > 1,
                class_id=self.class_id,
                sample_weight=sample_weight,
            )
        )

    def result(self) -> Any:
        constrained, dependent = self._rates(self._counts())
        good = ops.greater_equal(constrained, ops.cast(self.value, constrained.dtype))
        return ops.max(ops.where(good, dependent, ops.zeros_like(dependent)))

    def _rates(self, counts: Confusion) -> tuple[Tensor, Tensor]:
        """The rate that is constrained and the one to be large, for each threshold."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "class_id": self.class_id,
            "num_thresholds": self.num_thresholds,
            self._argument: self.value,
        }


def precision_of(counts: Confusion) -> Tensor:
    """tp / (tp + fp)."""
    return ops.divide_no_nan(counts.true_positives, counts.true_positives + counts.false_positives)


def recall_of(counts: Confusion) -> Tensor:
    """tp / (tp + fn): also called sensitivity, or rate of true positives."""
    return ops.divide_no_nan(counts.true_positives, counts.true_positives + counts.false_negatives)


def specificity_of(counts: Confusion) -> Tensor:
    """tn / (tn + fp)."""
    return ops.divide_no_nan(counts.true_negatives, counts.true_negatives + counts.false_positives)


class SensitivityAtSpecificity(OperatingPoint):
    """The largest tp / (tp + fn) where tn / (tn + fp) >= `specificity`; see `OperatingPoint`.

    Args:
        specificity: what it must reach at least, between 0 and 1.
        num_thresholds: how many thresholds, spread evenly over [0, 1], are tried.
        class_id: the only class that counts.
        name: of the metric.
        dtype: of the counts.

    Raises:
        InvalidArgumentError: that is outside [0, 1], or `num_thresholds` is not positive.

    Examples:
        >>> metric = laminar.metrics.SensitivityAtSpecificity(specificity=0.5)
        >>> metric.update_state([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
        >>> metric.result()
        Tensor(1., shape=(), dtype=float32)
    """

    _argument = "specificity"

    def __init__(
        self,
        specificity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(specificity, num_thresholds, class_id, name, dtype)
        self.specificity = specificity

    def _rates(self, counts: Confusion) -> tuple[Tensor, Tensor]:
        return specificity_of(counts), recall_of(counts)


class SpecificityAtSensitivity(OperatingPoint):
    """The largest tn / (tn + fp) where tp / (tp + fn) >= `sensitivity`; see `OperatingPoint`.

    Args:
        sensitivity: what it must reach at least, between 0 and 1.
        num_thresholds: how many thresholds, spread evenly over [0, 1], are tried.
        class_id: the only class that counts.
        name: of the metric.
        dtype: of the counts.

    Raises:
        InvalidArgumentError: that is outside [0, 1], or `num_thresholds` is not positive.

    Examples:
        >>> metric = laminar.metrics.SpecificityAtSensitivity(sensitivity=0.5)
        >>> metric.update_state([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
        >>> metric.result()
        Tensor(1., shape=(), dtype=float32)
    """

    _argument = "sensitivity"

    def __init__(
        self,
        sensitivity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(sensitivity, num_thresholds, class_id, name, dtype)
        self.sensitivity = sensitivity

    def _rates(self, counts: Confusion) -> tuple[Tensor, Tensor]:
        return recall_of(counts), specificity_of(counts)


class PrecisionAtRecall(OperatingPoint):
    """The largest tp / (tp + fp) where tp / (tp + fn) >= `recall`; see `OperatingPoint`.

    Args:
        recall: what it must reach at least, between 0 and 1.
        num_thresholds: how many thresholds, spread evenly over [0, 1], are tried.
        class_id: the only class that counts.
        name: of the metric.
        dtype: of the counts.

    Raises:
        InvalidArgumentError: that is outside [0, 1], or `num_thresholds` is not positive.

    Examples:
        >>> metric = laminar.metrics.PrecisionAtRecall(recall=0.5)
        >>> metric.update_state([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
        >>> metric.result()
        Tensor(1., shape=(), dtype=float32)
    """

    _argument = "recall"

    def __init__(
        self,
        recall: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(recall, num_thresholds, class_id, name, dtype)
        self.recall = recall

    def _rates(self, counts: Confusion) -> tuple[Tensor, Tensor]:
        return recall_of(counts), precision_of(counts)


class RecallAtPrecision(OperatingPoint):
    """The largest tp / (tp + fn) where tp / (tp + fp) >= `precision`; see `OperatingPoint`.

    Args:
        precision: what it must reach at least, between 0 and 1.
        num_thresholds: how many thresholds, spread evenly over [0, 1], are tried.
        class_id: the only class that counts.
        name: of the metric.
        dtype: of the counts.

    Raises:
        InvalidArgumentError: that is outside [0, 1], or `num_thresholds` is not positive.

    Examples:
        >>> metric = laminar.metrics.RecallAtPrecision(precision=0.7)
        >>> metric.update_state([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
        >>> metric.result()
        Tensor(0.5, shape=(), dtype=float32)
    """

    _argument = "precision"

    def __init__(
        self,
        precision: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
    ) -> None:
        super().__init__(precision, num_thresholds, class_id, name, dtype)
        self.precision = precision

    def _rates(self, counts: Confusion) -> tuple[Tensor, Tensor]:
        return precision_of(counts), recall_of(counts)
